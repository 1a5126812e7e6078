//! Tests kernels on blocks of the loaded model, as the GPU has them. Random blocks have the usual scales; a file may have some so
//! small that a driver flushes them to zero.

use std::collections::{BTreeMap, BTreeSet};

use potluck_plan::WeightUnit;
use potluck_shaders::{Format, Job, Kernel, Operand, reference};

use super::data::Matrices;
use super::{KernelVerdict, cases};
use crate::lab::upload_check::WeightRange;
use crate::runtime::engine::Engine;
use crate::runtime::error::EngineError;
use crate::runtime::layout::ExpertMatrix;
use crate::runtime::model::Model;

/// Blocks of a tensor that are read, a multiple of 4 so that they are whole words.
const BLOCKS: u64 = 32;
/// Most tensors of a format.
const TENSORS: usize = 4;
/// A file's values differ more in magnitude than random ones, and so do rounding errors.
const MORE_TOLERANCE: f64 = 10.0;

impl Engine {
    /// Tests the kernels that look tokens up or multiply a vector, in each format of these units, on blocks of those that are
    /// resident. Kernels that are not compiled are skipped: work may be under way that must not wait for a compiler.
    ///
    /// # Errors
    /// The device is gone.
    pub async fn test_weights(&self, units: &BTreeSet<WeightUnit>) -> Result<Vec<KernelVerdict>, EngineError> {
        let (kernels, ranges) = {
            let core = self.inner.core.borrow();
            let mut kernels = core.model.kernels_in_use();
            kernels.retain(|kernel| core.recording().has(*kernel));
            (kernels, ranges(&core.model, units))
        };
        let mut verdicts = Vec::new();
        for (format, ranges) in ranges {
            let single = kernels.iter().copied().filter(|kernel| multiplies_one_vector_of(*kernel) == Some(format));
            let single: Vec<Kernel> = single.collect();
            if single.is_empty() {
                continue;
            }
            let bytes = self.read_weights(&ranges).await?;
            let blocks: Vec<(Vec<u8>, Vec<f32>)> = bytes
                .chunks_exact(format.block_bytes() as usize)
                .map(|block| (block.to_vec(), reference::dequantize(format, block)))
                .collect();
            let matrices = Matrices { known: Some(&blocks), ..Matrices::ODD };
            let cases: Vec<_> = single.into_iter().flat_map(|kernel| cases::with(kernel, &matrices)).collect();
            let outputs = self.probe(&cases).await?;
            verdicts.extend(cases.iter().zip(outputs).map(|(case, output)| {
                let (worst, tolerance) = case.expected.judge(&output);
                let tolerance = tolerance * MORE_TOLERANCE;
                let name = format!("{} on this model's weights", case.probe.kernel.name());
                KernelVerdict { name, worst, tolerance, ok: worst <= tolerance, replaced_by: None }
            }));
        }
        Ok(verdicts)
    }
}

/// The format of a kernel that takes one vector, or token, at a time.
fn multiplies_one_vector_of(kernel: Kernel) -> Option<Format> {
    match kernel {
        Kernel::Embed(format)
        | Kernel::MatVec { format, rows: 1, operand: Operand::Plain, .. }
        | Kernel::Fused { format, rows: 1, job: Job::Normed, .. } => Some(format),
        _ => None,
    }
}

/// Blocks of these units to read, of each format.
fn ranges(model: &Model, units: &BTreeSet<WeightUnit>) -> BTreeMap<Format, Vec<WeightRange>> {
    let mut all: BTreeMap<Format, Vec<WeightRange>> = BTreeMap::new();
    let mut add = |format: Format, key, at, bytes: u64| {
        let size = u64::from(format.block_bytes());
        let len = (bytes / size).min(BLOCKS) / 4 * 4 * size;
        if len > 0 {
            all.entry(format).or_default().push(WeightRange { key, at, len });
        }
    };
    let layout = model.memory.layout();
    let is_there = |unit| units.contains(&unit) && model.weights.is_resident(unit);
    for ((unit, _), place) in &layout.places {
        if let (true, Some(segment)) = (is_there(*unit), place.segments.first()) {
            add(place.shape.format, segment.key, segment.offset, segment.bytes);
        }
    }
    for (block, places) in &layout.experts {
        let slots = places.slots.iter().filter(|(expert, _)| is_there(WeightUnit::Expert(*block, **expert)));
        let matrices = [&places.gate, &places.up, &places.down];
        for (matrix, (_, slot)) in matrices.into_iter().zip(slots) {
            let ((key, at), ExpertMatrix { shape, .. }) = (matrix.slot(*slot), matrix);
            add(shape.format, key, at, shape.bytes());
        }
    }
    for ranges in all.values_mut() {
        *ranges = spread(ranges.len()).map(|index| ranges[index]).collect();
    }
    all
}

/// At most [`TENSORS`] out of this many: the first, the last, and some in between.
fn spread(len: usize) -> impl Iterator<Item = usize> {
    let count = TENSORS.min(len);
    (0..count).map(move |index| index * (len - 1) / (count - 1).max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_and_the_last_tensor_are_always_tested() {
        let chosen = |len| spread(len).collect::<Vec<_>>();
        assert_eq!(
            [1, 2, 3, 4, 10].map(chosen),
            [vec![0], vec![0, 1], vec![0, 1, 2], vec![0, 1, 2, 3], vec![0, 3, 6, 9]]
        );
    }
}
