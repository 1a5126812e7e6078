//! Where the bytes of uploads go.

use potluck_plan::WeightUnit;

use crate::runtime::error::EngineError;
use crate::runtime::layout::Segment;
use crate::runtime::model::Model;
use crate::runtime::staging::{Piece, StagedCopy};

impl Model {
    /// Splits a piece at the boundaries of its tensor's segments.
    pub fn locate(&self, piece: &Piece, staging: u64, copies: &mut Vec<StagedCopy>) -> Result<(), EngineError> {
        let unit = piece.unit;
        if !self.weights.holds(unit) && !self.weights.is_loading(unit) {
            return Err(EngineError::NotHeld(unit));
        }
        let bad = EngineError::BadPiece(unit);
        let tensor = self.units.tensors(unit).get(piece.tensor).ok_or(bad.clone())?;
        let end = piece.tensor_offset.checked_add(piece.len).ok_or(bad.clone())?;
        let staging_end = piece.staging_offset.checked_add(piece.len.next_multiple_of(4)).ok_or(bad.clone())?;
        let aligned = piece.tensor_offset.is_multiple_of(4) && piece.staging_offset.is_multiple_of(4);
        let whole = piece.len.is_multiple_of(4) || end == tensor.range.len;
        if end > tensor.range.len || staging_end > staging || !aligned || !whole {
            return Err(bad);
        }
        if let WeightUnit::Expert(block, expert) = unit {
            let places = self.memory.layout().experts.get(&block).ok_or(EngineError::NotHeld(unit))?;
            let slot = self.expert_slot((block, expert)).ok_or(EngineError::NotHeld(unit))?;
            let matrix = places.all().find(|(role, _)| *role == tensor.role).map(|(_, matrix)| matrix).ok_or(bad)?;
            let (key, at) = matrix.slot(slot);
            copies.push(StagedCopy {
                from: piece.staging_offset,
                key,
                to: at + piece.tensor_offset,
                len: piece.len.next_multiple_of(4),
            });
            return Ok(());
        }
        let place = self.memory.layout().places.get(&(unit, piece.tensor)).ok_or(EngineError::NotHeld(unit))?;
        let row_bytes = u64::from(place.shape.row_bytes);
        for &Segment { key, offset, first_row, bytes, .. } in &place.segments {
            let start = u64::from(first_row) * row_bytes;
            let from = piece.tensor_offset.max(start);
            let to = end.min(start + bytes);
            if from < to {
                let source = piece.staging_offset + (from - piece.tensor_offset);
                copies.push(StagedCopy {
                    from: source,
                    key,
                    to: offset + (from - start),
                    len: (to - from).next_multiple_of(4),
                });
            }
        }
        Ok(())
    }
}
