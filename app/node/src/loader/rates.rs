//! Measures how fast weights load from the cache, and how fast reading and uploading alone are.

use std::collections::{BTreeMap, BTreeSet};

use futures::FutureExt;
use futures::future::{LocalBoxFuture, join_all};
use potluck_engine::{EngineError, Staging};
use potluck_model::FileRange;
use potluck_plan::{Bytes, WeightUnit};
use potluck_protocol::LoadPhase;

use super::error::LoadError;
use super::jobs::{Job, runs};
use super::layout::{blob_bytes, blobs};
use super::load::Load;
use super::uploader::{FailedRead, ReadFrom, Uploader, begin};

/// Rates of a load whose bytes are all on this device, in bytes a second, measured in one go with its two halves.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LoadRates {
    /// Bytes loaded.
    pub bytes: Bytes,
    /// The whole load: look up, open, read, upload, until the GPU has the last byte.
    pub load: f64,
    /// Reading the same pieces into a mapped staging buffer that is never uploaded; opening does not count.
    pub read: f64,
    /// Uploading the same pieces through the staging buffers without reading anything into them.
    pub upload: f64,
}

impl LoadRates {
    /// The load's rate over that of its slower half.
    pub fn share(&self) -> f64 {
        self.load / self.read.min(self.upload)
    }
}

impl Load {
    /// Measures a load of units that are loaded already. They are loaded again into the memory they have: new memory, while
    /// the device has not freed the old, would need twice the size of the model. `None` if not every byte is on this device.
    ///
    /// # Errors
    /// As [`Load::run`].
    pub async fn rates(&self, wanted: &BTreeSet<WeightUnit>) -> Result<Option<LoadRates>, LoadError> {
        let policy = self.source.fetch_policy();
        let stored = if policy.cache { self.copy().units().await } else { BTreeMap::new() };
        let bytes = |blob| blob_bytes(&self.units, blob);
        let whole = |blob: WeightUnit| stored.get(&blob).is_some_and(|&len| len >= bytes(blob));
        if policy.cache && !blobs(&self.units, wanted.iter().copied()).into_iter().all(whole) {
            return Ok(None);
        }
        self.progress.phase(LoadPhase::Upload);
        self.engine.invalidate_weights();
        let jobs = || self.jobs(|blob| policy.cache.then(|| bytes(blob)));
        let read = if policy.cache { self.read_blobs(jobs()?).await? } else { self.read_file(jobs()?).await? };
        let (bytes, upload) = self.upload_blanks(jobs()?).await?;
        self.engine.invalidate_weights();
        let load = self
            .timed(async {
                self.reserve(wanted)?;
                self.run(false).await.map(drop)
            })
            .await?;
        let rate = |(bytes, millis): (u64, f64)| bytes as f64 * 1e3 / millis.max(1e-3);
        let rates = LoadRates {
            bytes: Bytes(bytes),
            load: rate((bytes, load)),
            read: rate(read),
            upload: rate((bytes, upload)),
        };
        Ok(Some(rates))
    }

    /// Milliseconds that some work takes until the GPU has what was uploaded.
    async fn timed(&self, work: impl Future<Output = Result<(), LoadError>>) -> Result<f64, LoadError> {
        let started = self.platform.clock.now().0;
        work.await?;
        self.engine.uploaded().await?;
        Ok(self.platform.clock.now().0 - started)
    }

    /// Reads every piece from the cache; returns bytes and milliseconds.
    async fn read_blobs(&self, jobs: Vec<Job>) -> Result<(u64, f64), LoadError> {
        let mut reads = Reads::new(self).await?;
        for job in jobs {
            let reader = job.blob.reader(self.platform.store.as_ref(), self.model).await?;
            reads.read(&job, ReadFrom::Blob(reader)).await?;
            if job.blob.job_done() {
                job.blob.close().await;
            }
        }
        reads.end().await
    }

    /// Reads everything from the file; returns bytes and milliseconds.
    async fn read_file(&self, jobs: Vec<Job>) -> Result<(u64, f64), LoadError> {
        let policy = self.source.fetch_policy();
        if policy.beside {
            let mut reads = Reads::new(self).await?;
            for job in jobs {
                reads.read(&job, ReadFrom::Source(self.source.as_ref())).await?;
            }
            return reads.end().await;
        }
        let mut staging = self.engine.staging().await?;
        let (mut bytes, started) = (0, self.platform.clock.now().0);
        for run in runs(jobs, policy.max_bytes.min(staging.len())) {
            let (Some(first), Some(last)) = (run.first(), run.last()) else { continue };
            let len = last.offset + last.len - first.offset;
            staging.write(0, &self.source.read(FileRange { file: first.file, offset: first.offset, len }).await?);
            bytes += len;
        }
        Ok((bytes, self.platform.clock.now().0 - started))
    }

    /// Uploads every piece without reading it; returns bytes and milliseconds.
    async fn upload_blanks(&self, jobs: Vec<Job>) -> Result<(u64, f64), LoadError> {
        let mut bytes = 0;
        let work = async {
            // Nothing is read, so nothing fails.
            let recover = |read: FailedRead| std::future::ready(Err(read.error.into())).boxed_local();
            let mut uploader = Uploader::new(self.engine.clone(), &recover, self.checks());
            for job in jobs {
                uploader.blank(&job).await?;
                bytes += job.len;
                if job.unit.job_done() {
                    uploader.end(job.unit.unit)?;
                }
            }
            uploader.flush().await
        };
        let millis = self.timed(work).await?;
        Ok((bytes, millis))
    }
}

/// Reads into one staging buffer again and again, as many pieces at a time as fit it. Only reads are timed.
struct Reads<'a> {
    load: &'a Load,
    staging: Staging,
    under_way: Vec<LocalBoxFuture<'a, Result<(), LoadError>>>,
    filled: u64,
    bytes: u64,
    millis: f64,
}

impl<'a> Reads<'a> {
    async fn new(load: &'a Load) -> Result<Self, LoadError> {
        let staging = load.engine.staging().await?;
        Ok(Self { load, staging, under_way: Vec::new(), filled: 0, bytes: 0, millis: 0.0 })
    }

    async fn read(&mut self, job: &Job, from: ReadFrom<'a>) -> Result<(), LoadError> {
        let mut done = 0;
        while done < job.len {
            if self.filled >= self.staging.len() {
                self.wait().await?;
            }
            let len = (job.len - done).min(self.staging.len() - self.filled);
            let started = self.load.platform.clock.now().0;
            let part = self.staging.part(self.filled, len).ok_or(EngineError::PartsOut)?;
            let range = FileRange { file: job.file, offset: job.offset + done, len };
            self.under_way.push(begin(&from, job.blob_offset + done, range, part));
            self.millis += self.load.platform.clock.now().0 - started;
            self.filled = (self.filled + len).next_multiple_of(8);
            done += len;
        }
        self.bytes += job.len;
        Ok(())
    }

    async fn wait(&mut self) -> Result<(), LoadError> {
        let started = self.load.platform.clock.now().0;
        join_all(self.under_way.drain(..)).await.into_iter().collect::<Result<(), _>>()?;
        self.millis += self.load.platform.clock.now().0 - started;
        self.filled = 0;
        Ok(())
    }

    /// Bytes and milliseconds.
    async fn end(mut self) -> Result<(u64, f64), LoadError> {
        self.wait().await?;
        Ok((self.bytes, self.millis))
    }
}
