//! Packs the pieces of many units into staging buffers, and uploads full buffers.

use potluck_engine::{Engine, EngineError, Piece, Staging};
use potluck_plan::{ModelId, WeightUnit};

use super::LoadError;
use super::jobs::Job;
use crate::platform::BlobStore;

/// Packs pieces into staging buffers.
pub struct Uploader {
    engine: Engine,
    open: Option<Staging>,
    filled: u64,
    pieces: Vec<Piece>,
    /// Units with every piece in a buffer; they are finished with the next upload.
    ended: Vec<WeightUnit>,
}

impl Uploader {
    /// An uploader to this engine.
    pub fn new(engine: Engine) -> Self {
        Self { engine, open: None, filled: 0, pieces: Vec::new(), ended: Vec::new() }
    }

    /// Uploads the bytes of a job.
    ///
    /// # Errors
    /// The device is lost.
    pub async fn push(&mut self, job: &Job, bytes: &[u8]) -> Result<(), LoadError> {
        let mut done = 0;
        while done < job.len {
            let (at, len) = self.room(job.len - done).await?;
            if let Some(staging) = &mut self.open {
                staging.write(at, &bytes[done as usize..(done + len) as usize]);
            }
            self.add(job, done, at, len);
            done += len;
        }
        Ok(())
    }

    /// Uploads a job's bytes from the cache.
    ///
    /// # Errors
    /// The cache cannot be read, or the device is lost.
    pub async fn pull(&mut self, store: &dyn BlobStore, model: ModelId, job: &Job) -> Result<(), LoadError> {
        let reader = job.blob.reader(store, model).await?;
        let mut done = 0;
        while done < job.len {
            let (at, len) = self.room(job.len - done).await?;
            if let Some(staging) = &mut self.open {
                reader.read(job.blob_offset + done, len, staging, at).await?;
            }
            self.add(job, done, at, len);
            done += len;
        }
        Ok(())
    }

    /// Uploads whatever the staging buffers contain instead of a job's bytes. For measurements only.
    ///
    /// # Errors
    /// The device is lost.
    pub async fn blank(&mut self, job: &Job) -> Result<(), LoadError> {
        let mut done = 0;
        while done < job.len {
            let (at, len) = self.room(job.len - done).await?;
            self.add(job, done, at, len);
            done += len;
        }
        Ok(())
    }

    /// All pieces of the unit have been pushed.
    ///
    /// # Errors
    /// The device is lost.
    pub fn end(&mut self, unit: WeightUnit) -> Result<(), EngineError> {
        self.ended.push(unit);
        if self.open.is_none() { self.finish() } else { Ok(()) }
    }

    /// Uploads the open buffer.
    ///
    /// # Errors
    /// The device is lost.
    pub fn flush(&mut self) -> Result<(), EngineError> {
        if let Some(staging) = self.open.take() {
            self.engine.upload(staging, &self.pieces)?;
            self.pieces.clear();
        }
        self.finish()
    }

    fn finish(&mut self) -> Result<(), EngineError> {
        self.ended.drain(..).try_for_each(|unit| self.engine.finish(unit))
    }

    /// Finds room for up to `wanted` bytes; returns the offset in the buffer and the number of bytes. Pieces start at
    /// multiples of 4. A piece that is cut is cut at such a multiple too, because buffers end at one.
    async fn room(&mut self, wanted: u64) -> Result<(u64, u64), LoadError> {
        let at = self.filled.next_multiple_of(4);
        match &self.open {
            Some(staging) if at < staging.len() => Ok((at, wanted.min(staging.len() - at))),
            _ => {
                self.flush()?;
                let staging = self.engine.staging().await?;
                let len = staging.len();
                self.open = Some(staging);
                self.filled = 0;
                Ok((0, wanted.min(len)))
            }
        }
    }

    fn add(&mut self, job: &Job, done: u64, at: u64, len: u64) {
        let tensor_offset = job.tensor_offset + done;
        self.filled = at + len;
        self.pieces.push(Piece { unit: job.unit.unit, tensor: job.tensor, tensor_offset, staging_offset: at, len });
    }
}
