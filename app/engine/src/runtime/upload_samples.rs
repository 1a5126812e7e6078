//! Samples of what was uploaded, to compare with what the GPU then has: drivers are known that lose uploads without an error
//! (buffers of zeros after many gigabytes without other work in between).

use std::collections::BTreeMap;

use potluck_plan::WeightUnit;

use crate::runtime::layout::Key;
use crate::runtime::model::Model;
use crate::runtime::staging::{Piece, StagedCopy, Staging};
use crate::runtime::staging_part::{SAMPLE_BYTES, Sample};

/// Most samples that are kept: 64 KiB. Pieces beyond are not compared.
const MAX_SAMPLES: usize = 4096;

/// Bytes that a tensor should have.
#[derive(Clone, Debug)]
pub struct UploadSample {
    /// The buffer.
    pub key: Key,
    /// Offset in that buffer.
    pub at: u64,
    /// The bytes.
    pub bytes: Sample,
}

/// The first bytes of each piece since they were compared last, by unit, tensor and offset.
#[derive(Debug, Default)]
pub struct UploadSamples(BTreeMap<(WeightUnit, usize, u64), UploadSample>);

impl UploadSamples {
    /// Notes the pieces of a buffer that is uploaded. Pooled experts come and go, so their slots are not compared.
    pub fn note(&mut self, model: &Model, staging: &Staging, pieces: &[Piece]) {
        for piece in pieces {
            let pooled = matches!(piece.unit, WeightUnit::Expert(block, _) if model.weights.slots().has(block));
            if pooled || piece.len < SAMPLE_BYTES as u64 {
                continue;
            }
            let place = (piece.unit, piece.tensor, piece.tensor_offset);
            if self.0.len() >= MAX_SAMPLES && !self.0.contains_key(&place) {
                return;
            }
            let mut copies = Vec::new();
            let head = Piece { len: SAMPLE_BYTES as u64, ..*piece };
            let located = model.locate(&head, staging.len(), &mut copies);
            // Rows that end within the sample may continue in another buffer.
            if let ([StagedCopy { key, to, len, .. }], Ok(()), Some(bytes)) =
                (&copies[..], located, staging.sample(piece.staging_offset))
                && *len == SAMPLE_BYTES as u64
            {
                self.0.insert(place, UploadSample { key: *key, at: *to, bytes });
            }
        }
    }

    /// Forgets all: places change.
    pub fn clear(&mut self) {
        self.0.clear();
    }

    /// Takes the samples, with the unit and the tensor of each.
    pub fn take(&mut self) -> Vec<(WeightUnit, usize, UploadSample)> {
        std::mem::take(&mut self.0).into_iter().map(|((unit, tensor, _), sample)| (unit, tensor, sample)).collect()
    }
}
