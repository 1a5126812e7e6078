//! Loads from memory, in the engine's public API. Loaders that stream fill [`Engine::staging`] themselves.

use potluck_plan::WeightUnit;

use crate::runtime::engine::Engine;
use crate::runtime::error::EngineError;
use crate::runtime::staging::Piece;

impl Engine {
    /// Loads all reserved units that are missing from the bytes of their file.
    ///
    /// # Errors
    /// [`EngineError::FileTooShort`], or as [`Engine::upload_tensor`].
    pub async fn load_from(&self, file: &[u8]) -> Result<(), EngineError> {
        for unit in self.missing() {
            let ranges: Vec<_> = {
                let core = self.inner.core.borrow();
                core.model.units.tensors(unit).iter().map(|tensor| tensor.range).collect()
            };
            for (tensor, range) in ranges.into_iter().enumerate().filter(|(tensor, _)| self.needs(unit, *tensor)) {
                let (start, len) = (range.offset as usize, range.len as usize);
                let bytes = file.get(start..).and_then(|rest| rest.get(..len));
                self.upload_tensor(unit, tensor, bytes.ok_or(EngineError::FileTooShort(unit))?).await?;
            }
            self.finish(unit)?;
        }
        Ok(())
    }

    /// Copies the bytes of a whole tensor, through as many staging buffers as it takes.
    ///
    /// # Errors
    /// As [`Engine::upload`]: there are more bytes than the tensor has, the unit is not reserved, or the device is lost.
    pub async fn upload_tensor(&self, unit: WeightUnit, tensor: usize, bytes: &[u8]) -> Result<(), EngineError> {
        let mut tensor_offset = 0;
        for part in bytes.chunks(self.staging_bytes() as usize) {
            let mut staging = self.staging().await?;
            staging.write(0, part);
            let len = part.len() as u64;
            self.upload(staging, &[Piece { unit, tensor, tensor_offset, staging_offset: 0, len }])?;
            tensor_offset += len;
        }
        Ok(())
    }
}
