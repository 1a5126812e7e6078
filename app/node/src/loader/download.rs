//! Downloads a whole model to the cache, without a GPU. A load finds it there.

use std::rc::Rc;

use futures::StreamExt;
use futures::channel::mpsc;
use potluck_plan::{Bytes, WeightUnit};
use potluck_protocol::LoadPhase;

use super::cache_writes::BlobWrite;
use super::error::LoadError;
use super::jobs::{Job, cut};
use super::layout::sort_units;
use super::pipeline::{Fetched, FetchedRun, Pipeline, Sink, Way};
use super::progress::Progress;
use super::soundness::Soundness;
use super::stored_copy::StoredCopy;
use crate::open::Model;
use crate::platform::Platform;
use crate::storage::remember;

/// A download.
pub struct Download<'a> {
    /// The platform adapters.
    pub platform: &'a Platform,
    /// The model.
    pub model: &'a Model,
    /// Receives the progress.
    pub progress: Rc<Progress>,
    /// Receives sentences for people.
    pub notice: &'a dyn Fn(String),
}

impl Download<'_> {
    /// Fetches what the cache lacks of the model, and checks it as a load does. What it fetched before it ended, however it ended,
    /// stays in the cache. Returns the bytes that it fetched.
    ///
    /// # Errors
    /// Bytes cannot be read, are not of one version, or cannot be stored.
    pub async fn run(&self) -> Result<Bytes, LoadError> {
        self.progress.watch(self.fetch()).await
    }

    async fn fetch(&self) -> Result<Bytes, LoadError> {
        let Model { card, units, names, source, .. } = self.model;
        let source = source.as_ref();
        source.is_unchanged(0).await?;
        let copy = StoredCopy { platform: self.platform, model: card.id, source, notice: self.notice };
        let stored = copy.units().await;
        let mut jobs = self.jobs(|unit| stored.get(&unit).copied());
        if copy.gives_way(&jobs).await? {
            jobs = self.jobs(|_| None);
        }
        remember(self.platform, self.model).await;
        copy.make_ready(&jobs).await?;
        let total = Bytes(jobs.iter().map(|job| job.len).sum());
        let cached = Bytes(jobs.iter().map(Job::stored).sum());
        self.progress.start(LoadPhase::Download, total, cached);
        let _expecting = copy.expect(&jobs);
        let pipeline = Pipeline {
            platform: self.platform,
            model: card.id,
            units,
            checks: Soundness { units, names },
            source,
            progress: &self.progress,
            // What cannot be stored is an error.
            notice: &|_| {},
            sink: Sink::Stored,
            cache: true,
        };
        let runs = jobs.into_iter().map(|job| vec![job]).collect();
        let read = pipeline.run(runs, source.fetch_policy().parallel).await;
        copy.of_one_version(read, usize::MAX).await
    }

    /// The pieces of every unit, in the order of the file.
    fn jobs(&self, stored: impl Fn(WeightUnit) -> Option<u64>) -> Vec<Job> {
        let units = &self.model.units;
        let mut all: Vec<WeightUnit> = units.units().collect();
        sort_units(&mut all, units);
        cut(&all, units, self.model.source.fetch_policy().max_bytes, stored, |_, _| true)
    }
}

impl Pipeline<'_> {
    /// Writes what was fetched to the cache, in order. Ends early if it cannot be written.
    pub(super) async fn store(
        &self,
        mut fetched: mpsc::UnboundedReceiver<Result<FetchedRun, LoadError>>,
        Way { mut queue, storing, .. }: Way<'_>,
    ) -> Result<(), LoadError> {
        while let Some(done) = fetched.next().await {
            let FetchedRun { run, found, _under_way } = done?;
            let start = run.first().map_or(0, |job| job.offset);
            for job in run {
                if let Fetched::Bytes(bytes, _) = &found {
                    let from = (job.offset - start) as usize;
                    let bytes = &bytes[from..from + job.len as usize];
                    self.checks.check(job.place(), bytes)?;
                    job.blob.buffer(job.blob_offset, bytes);
                    BlobWrite::send_buffered(&job.blob, &mut queue).await;
                }
                self.progress.done(job.len, found.arriving());
                if job.blob.job_done() {
                    job.blob.close().await;
                    BlobWrite::send_rest(&job.blob, &mut queue).await;
                }
            }
            if !storing.get() {
                return Ok(());
            }
        }
        Ok(())
    }
}
