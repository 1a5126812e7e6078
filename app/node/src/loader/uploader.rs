//! Packs the pieces of many units into staging buffers, and uploads full buffers.

use std::rc::Rc;

use futures::future::{LocalBoxFuture, join_all};
use potluck_engine::{Engine, EngineError, Piece, Staging, StagingPart};
use potluck_model::FileRange;
use potluck_plan::WeightUnit;

use super::cached_blob::CachedBlob;
use super::error::LoadError;
use super::jobs::{Job, Place};
use super::soundness::{Soundness, Watch};
use crate::platform::{BlobReader, StoreError};
use crate::source::Source;

/// Where a job's bytes are read into staging buffers from.
pub enum ReadFrom<'a> {
    /// The cache. The blob was opened before: a read that waits in a buffer must not wait for anything else.
    Blob(Rc<dyn BlobReader>),
    /// The source.
    Source(&'a dyn Source),
}

/// Bytes of a cached blob that could not be read.
pub struct FailedRead {
    /// The blob.
    pub blob: Rc<CachedBlob>,
    /// Where the source has them.
    pub range: FileRange,
    /// Why.
    pub error: StoreError,
}

/// Gets the bytes of a failed read from elsewhere.
pub type Recover<'a> = dyn Fn(FailedRead) -> LocalBoxFuture<'a, Result<Vec<u8>, LoadError>> + 'a;

/// Packs pieces into staging buffers. While one is packed, reads into the one before it go on.
pub struct Uploader<'a> {
    engine: Engine,
    recover: &'a Recover<'a>,
    checks: Soundness<'a>,
    /// Its reads may be under way.
    full: Option<Filling<'a>>,
    open: Option<Filling<'a>>,
}

/// A staging buffer that is being filled.
struct Filling<'a> {
    staging: Staging,
    filled: u64,
    pieces: Vec<Piece>,
    reads: Vec<Read<'a>>,
    /// Units with every piece in this buffer or one before it.
    ended: Vec<WeightUnit>,
}

/// A read under way.
struct Read<'a> {
    done: LocalBoxFuture<'a, Result<(), LoadError>>,
    blob: Rc<CachedBlob>,
    range: FileRange,
    place: Place,
    at: u64,
    watch: Watch,
}

impl<'a> Uploader<'a> {
    /// An uploader to this engine.
    pub fn new(engine: Engine, recover: &'a Recover<'a>, checks: Soundness<'a>) -> Self {
        Self { engine, recover, checks, full: None, open: None }
    }

    /// Uploads bytes.
    ///
    /// # Errors
    /// The device is lost, or a read before these cannot be done.
    pub async fn push(&mut self, place: Place, bytes: &[u8]) -> Result<(), LoadError> {
        let (all, mut done) = (bytes.len() as u64, 0);
        while done < all {
            let (filling, at, len) = self.room(all - done).await?;
            filling.staging.write(at, &bytes[done as usize..(done + len) as usize]);
            filling.add(place, done, at, len);
            done += len;
        }
        Ok(())
    }

    /// Uploads a job's bytes, which are read meanwhile.
    ///
    /// # Errors
    /// The device is lost, or a read before these cannot be done.
    pub async fn pull(&mut self, job: &Job, from: &ReadFrom<'a>) -> Result<(), LoadError> {
        let (mut done, checks) = (0, self.checks);
        while done < job.len {
            let (filling, at, len) = self.room(job.len - done).await?;
            // Nobody else has a part of what is not filled yet.
            let mut part = filling.staging.part(at, len).ok_or(EngineError::PartsOut)?;
            let place = Place { offset: job.tensor_offset + done, ..job.place() };
            let watch = checks.watch(place, &mut part);
            let range = FileRange { file: job.file, offset: job.offset + done, len };
            let done_reading = begin(from, job.blob_offset + done, range, part);
            filling.reads.push(Read { done: done_reading, blob: job.blob.clone(), range, place, at, watch });
            filling.add(job.place(), done, at, len);
            done += len;
        }
        Ok(())
    }

    /// Uploads whatever the staging buffers contain instead of a job's bytes: the page's benchmark times uploads alone.
    ///
    /// # Errors
    /// The device is lost.
    pub async fn blank(&mut self, job: &Job) -> Result<(), LoadError> {
        let mut done = 0;
        while done < job.len {
            let (filling, at, len) = self.room(job.len - done).await?;
            filling.add(job.place(), done, at, len);
            done += len;
        }
        Ok(())
    }

    /// All pieces of the unit have been pushed or pulled.
    ///
    /// # Errors
    /// The device is lost.
    pub fn end(&mut self, unit: WeightUnit) -> Result<(), EngineError> {
        match self.open.as_mut().or(self.full.as_mut()) {
            Some(filling) => filling.ended.push(unit),
            None => self.engine.finish(unit)?,
        }
        Ok(())
    }

    /// Uploads everything, once it is read.
    ///
    /// # Errors
    /// The device is lost, or a read cannot be done.
    pub async fn flush(&mut self) -> Result<(), LoadError> {
        for filling in [self.full.take(), self.open.take()].into_iter().flatten() {
            self.upload(filling).await?;
        }
        Ok(())
    }

    /// Waits for the reads of a buffer, and uploads it.
    async fn upload(&self, filling: Filling<'a>) -> Result<(), LoadError> {
        let Filling { mut staging, pieces, reads, ended, .. } = filling;
        let mut failed = Vec::new();
        let reads = reads.into_iter().map(|mut read| async move { ((&mut read.done).await, read) });
        for (done, Read { blob, range, place, at, watch, .. }) in join_all(reads).await {
            match done {
                Ok(()) => watch.check(self.checks, place)?,
                Err(LoadError::Store(error)) => failed.push((FailedRead { blob, range, error }, place, at)),
                Err(error) => return Err(error),
            }
        }
        // All parts are back, and nobody reads a blob that is deleted now.
        for (read, place, at) in failed {
            let bytes = (self.recover)(read).await?;
            self.checks.check(place, &bytes)?;
            staging.write(at, &bytes);
        }
        self.engine.upload(staging, &pieces)?;
        ended.into_iter().try_for_each(|unit| self.engine.finish(unit))?;
        Ok(())
    }

    /// Finds room for up to `wanted` bytes; returns the buffer, the offset in it and the number of bytes. Parts start at multiples
    /// of 8. A piece that is cut is cut at such a multiple too, because buffers end at one.
    async fn room(&mut self, wanted: u64) -> Result<(&mut Filling<'a>, u64, u64), LoadError> {
        let has_room = |filling: &Filling| filling.next() < filling.staging.len();
        let open = match self.open.take() {
            Some(open) if has_room(&open) => open,
            open => {
                if let Some(full) = self.full.take() {
                    self.upload(full).await?;
                }
                match open {
                    // A browser reads as a read begins, so there is nothing to wait for meanwhile.
                    Some(open) if open.reads.is_empty() || cfg!(target_arch = "wasm32") => self.upload(open).await?,
                    open => self.full = open,
                }
                let staging = match self.engine.free_staging()? {
                    Some(staging) => staging,
                    // It may be the one that is full: never wait while holding one.
                    None => {
                        self.flush().await?;
                        self.engine.staging().await?
                    }
                };
                Filling { staging, filled: 0, pieces: Vec::new(), reads: Vec::new(), ended: Vec::new() }
            }
        };
        let at = open.next();
        let len = wanted.min(open.staging.len() - at);
        Ok((self.open.insert(open), at, len))
    }
}

impl Filling<'_> {
    /// Where the next piece starts.
    fn next(&self) -> u64 {
        self.filled.next_multiple_of(8)
    }

    fn add(&mut self, Place { unit, tensor, offset }: Place, done: u64, at: u64, len: u64) {
        self.filled = at + len;
        self.pieces.push(Piece { unit, tensor, tensor_offset: offset + done, staging_offset: at, len });
    }
}

/// Begins to read into a part.
pub fn begin<'a>(
    from: &ReadFrom<'a>,
    blob_offset: u64,
    range: FileRange,
    part: StagingPart,
) -> LocalBoxFuture<'a, Result<(), LoadError>> {
    match from {
        ReadFrom::Blob(reader) => {
            let read = reader.read(blob_offset, part);
            Box::pin(async move { Ok(read.await?) })
        }
        ReadFrom::Source(source) => {
            let read = source.read_into(range, part);
            Box::pin(async move { Ok(read.await?) })
        }
    }
}
