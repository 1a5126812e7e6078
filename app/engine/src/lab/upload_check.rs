//! Compares samples of uploaded weights with what the GPU has.

use crate::lab::microbench::map;
use crate::runtime::engine::Engine;
use crate::runtime::error::EngineError;
use crate::runtime::layout::Key;
use crate::runtime::staging_part::SAMPLE_BYTES;

impl Engine {
    /// Reads back the first bytes of every piece that was uploaded since the last check, and compares them. If they differ, no
    /// weights count as uploaded any more.
    ///
    /// # Errors
    /// The GPU has other bytes, or is lost.
    pub async fn check_uploads(&self) -> Result<(), EngineError> {
        let samples = {
            let mut core = self.inner.core.borrow_mut();
            core.check_alive()?;
            core.upload_samples.take()
        };
        let len = SAMPLE_BYTES as u64;
        let ranges: Vec<_> =
            samples.iter().map(|(.., sample)| WeightRange { key: sample.key, at: sample.at, len }).collect();
        let kept = self.read_weights(&ranges).await?;
        let mut pairs = kept.chunks_exact(SAMPLE_BYTES).zip(&samples);
        match pairs.find(|(kept, (.., sample))| *kept != sample.bytes) {
            None => Ok(()),
            Some((_, (unit, tensor, _))) => {
                self.invalidate_weights();
                Err(EngineError::NotKept(*unit, *tensor))
            }
        }
    }

    /// Reads weights back, one range after another. The buffer for it is gone when this returns.
    ///
    /// # Errors
    /// The GPU is lost.
    pub(super) async fn read_weights(&self, ranges: &[WeightRange]) -> Result<Vec<u8>, EngineError> {
        let size: u64 = ranges.iter().map(|range| range.len).sum();
        if size == 0 {
            return Ok(Vec::new());
        }
        let (gpu, readback) = {
            let mut core = self.inner.core.borrow_mut();
            core.check_alive()?;
            let gpu = core.model.gpu.clone();
            let usage = wgpu::BufferUsages::MAP_READ | wgpu::BufferUsages::COPY_DST;
            let readback = core.model.memory.create(&gpu.device, "samples of weights", size, usage);
            let mut encoder = gpu.device.create_command_encoder(&Default::default());
            let mut to = 0;
            for range in ranges {
                let from = &core.model.memory.slab(range.key).buffer;
                encoder.copy_buffer_to_buffer(from, range.at, &readback.buffer, to, range.len);
                to += range.len;
            }
            gpu.queue.submit([encoder.finish()]);
            (gpu, readback)
        };
        map(&gpu, &readback.buffer).await?;
        let view = readback.buffer.get_mapped_range(..).map_err(|_| EngineError::Lost)?;
        Ok(view.to_vec())
    }
}

/// Bytes of weights on the GPU: whole words.
#[derive(Clone, Copy, Debug)]
pub(super) struct WeightRange {
    pub key: Key,
    /// Offset in the buffer.
    pub at: u64,
    pub len: u64,
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use std::collections::BTreeSet;

    use futures::executor::block_on;
    use potluck_gguf::join;
    use potluck_gguf::synthetic::Synthetic;
    use potluck_model::ModelSpec;
    use potluck_plan::WeightUnit;

    use super::*;
    use crate::runtime::gpu::{Gpu, GpuOptions};
    use crate::runtime::settings::Settings;
    use crate::runtime::staging::Piece;

    /// An engine with every weight of a small model, and the model's units.
    fn loaded() -> (Engine, Vec<WeightUnit>) {
        let model = Synthetic { blocks: 2, ..Synthetic::default() };
        let file = model.to_bytes().unwrap();
        let (spec, units) = ModelSpec::from_gguf(&join([model.header().unwrap()]).unwrap()).unwrap();
        let gpu = block_on(Gpu::open(GpuOptions::default())).expect("these tests need a Vulkan adapter");
        let settings = Settings { context: 64, ..Settings::default() };
        let engine = Engine::new(&gpu, spec, units.clone(), settings, Box::new(|_| {})).unwrap();
        let all: BTreeSet<WeightUnit> = units.units().collect();
        engine.reserve(&all).unwrap();
        for &unit in &all {
            for (tensor, info) in units.tensors(unit).iter().enumerate() {
                let mut staging = block_on(engine.staging()).unwrap();
                let bytes = &file[info.range.offset as usize..(info.range.offset + info.range.len) as usize];
                assert!(bytes.len() as u64 <= staging.len());
                staging.write(0, bytes);
                let piece = Piece { unit, tensor, tensor_offset: 0, staging_offset: 0, len: info.range.len };
                engine.upload(staging, &[piece]).unwrap();
            }
            engine.finish(unit).unwrap();
        }
        (engine, all.into_iter().collect())
    }

    #[test]
    fn kernels_are_right_on_the_weights_themselves() {
        let (engine, units) = loaded();
        let test = |units: &[WeightUnit]| block_on(engine.test_weights(&units.iter().copied().collect())).unwrap();
        assert!(test(&units).is_empty(), "no kernel is compiled for that");
        block_on(engine.prepare()).unwrap();
        let verdicts = test(&units);
        assert!(verdicts.len() > 1, "an embedding and a product at least");
        assert!(verdicts.iter().all(|verdict| verdict.ok), "{verdicts:?}");
        assert!(test(&[]).is_empty(), "what was loaded before is not tested again");
        assert!(!test(&[WeightUnit::Embedding]).is_empty());
    }

    #[test]
    fn what_was_uploaded_is_found_again() {
        let (engine, units) = loaded();
        block_on(engine.check_uploads()).unwrap();
        assert!(units.iter().all(|unit| engine.is_resident(*unit)));
        block_on(engine.check_uploads()).unwrap();
    }

    /// As a driver does that loses uploads.
    #[test]
    fn a_buffer_of_zeros_is_noticed_whichever_it_is() {
        let (engine, _) = loaded();
        let samples = engine.inner.core.borrow_mut().upload_samples.take();
        // Norms may be zeros from the start, and those are no loss.
        let not_zero = samples.iter().filter(|(.., sample)| sample.bytes != [0; SAMPLE_BYTES]);
        let buffers: BTreeSet<Key> = not_zero.map(|(.., sample)| sample.key).collect();
        assert!(buffers.len() > 1, "weights lie in several buffers");
        engine.destroy();
        for zeroed in buffers {
            let (engine, units) = loaded();
            {
                let core = engine.inner.core.borrow();
                let mut encoder = core.model.gpu.device.create_command_encoder(&Default::default());
                encoder.clear_buffer(&core.model.memory.slab(zeroed).buffer, 0, None);
                core.model.gpu.queue.submit([encoder.finish()]);
            }
            let checked = block_on(engine.check_uploads());
            assert!(matches!(checked, Err(EngineError::NotKept(..))), "{zeroed:?}: {checked:?}");
            assert!(!units.iter().any(|unit| engine.is_resident(*unit)), "nothing counts as uploaded any more");
            engine.destroy();
        }
    }
}
