//! Loads weight units to the GPU: from the cache, else from the source into the cache, through the staging buffers.
//!
//! A load is one ordered list of jobs, each a piece of a tensor. Jobs are fetched ahead, in parallel and across units (experts
//! are small), but they are stored and uploaded in order: a blob grows from the front, so an interrupted download resumes
//! where it stopped.

mod cached_blob;
mod error;
mod experts;
mod jobs;
mod layout;
mod pipeline;
mod progress;
mod rates;
mod requantizer;
#[cfg(test)]
mod tests;
mod uploader;

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use potluck_engine::{Engine, Verdict};
use potluck_model::UnitMap;
use potluck_plan::{Bytes, ModelId, PooledExperts, WeightUnit};
use potluck_protocol::LoadPhase;

use crate::compute::Compute;
use crate::platform::Platform;
use crate::source::Source;
use jobs::{Job, cut, runs, split_resident};
use layout::sort_units;
use pipeline::Sink;

pub use error::LoadError;
pub use experts::{ExpertLoader, LoadedExperts};
pub use progress::{Progress, Rate};
pub use rates::LoadRates;

/// Cached pieces whose blobs are opened ahead of their turn: opening takes a browser milliseconds, reading is fast. Blobs of
/// many pieces are in one file.
const OPEN_AHEAD: usize = 512;

/// Bytes that are requantized at a time, a multiple of 4: nothing else on this thread runs meanwhile.
const REQUANTIZED_BYTES: u64 = 1 << 18;

/// One load.
pub struct Load {
    /// The platform adapters.
    pub platform: Platform,
    /// The engine that gets the weights.
    pub engine: Engine,
    /// Owns the engine and tunes it.
    pub compute: Rc<Compute>,
    /// The model's id.
    pub model: ModelId,
    /// The model's units.
    pub units: Rc<UnitMap>,
    /// The model's bytes.
    pub source: Rc<dyn Source>,
    /// Receives the progress.
    pub progress: Rc<Progress>,
    /// Receives sentences for people, each once.
    pub notice: Box<dyn Fn(String)>,
}

impl Load {
    /// True if every wanted unit is on the GPU already.
    pub fn is_resident(&self, wanted: &BTreeSet<WeightUnit>) -> bool {
        wanted.iter().all(|unit| self.engine.is_resident(*unit))
    }

    /// True if what is missing needs no kernels besides those that are compiled.
    pub fn is_prepared(&self) -> bool {
        self.engine.is_prepared_for_missing()
    }

    /// Reserves GPU memory for the wanted units; returns the bytes of their weights.
    ///
    /// # Errors
    /// There is too little memory.
    pub fn reserve(&self, wanted: &BTreeSet<WeightUnit>) -> Result<Bytes, LoadError> {
        self.reserve_pool(wanted, &PooledExperts::default())
    }

    /// The same, with slots for experts that come on demand.
    ///
    /// # Errors
    /// There is too little memory.
    pub fn reserve_pool(&self, wanted: &BTreeSet<WeightUnit>, pool: &PooledExperts) -> Result<Bytes, LoadError> {
        self.progress.phase(LoadPhase::Find);
        let layout = self.engine.reserve_pool(wanted, pool)?;
        self.progress.used(layout.total);
        Ok(layout.weights())
    }

    /// Loads what is missing of the reserved units. With `test`, compiles and tests the kernels meanwhile: the two are
    /// independent, and with a warm cache the compiler takes longer than the weights. Afterwards the engine has every byte, and
    /// kernels that were tested are tuned on the weights.
    ///
    /// # Errors
    /// Bytes cannot be read, the GPU is lost, or its kernels compute wrong results and have no replacement.
    pub async fn run(&self, test: bool) -> Result<Option<Verdict>, LoadError> {
        let (_, verdict) = futures::try_join!(self.progress.watch(self.load_missing()), async {
            Ok::<_, LoadError>(if test { Some(self.test().await?) } else { None })
        })?;
        if !test {
            return Ok(verdict);
        }
        self.compute.tune(&self.engine).await;
        // A variant that was measured for one product is also used for two products in one kernel.
        if self.engine.is_prepared() { Ok(verdict) } else { self.self_test().await.map(Some) }
    }

    async fn load_missing(&self) -> Result<(), LoadError> {
        let policy = self.source.fetch_policy();
        let stored = if policy.cache { self.stored().await } else { BTreeMap::new() };
        let jobs = self.jobs(|blob| stored.get(&blob).copied())?;
        let total: u64 = jobs.iter().map(|job| job.len).sum();
        let cached: u64 = jobs.iter().map(Job::stored).sum();
        let phase = if policy.cache && cached < total { LoadPhase::Download } else { LoadPhase::Upload };
        if phase == LoadPhase::Download {
            self.make_ready(&jobs).await?;
        }
        self.progress.start(phase, Bytes(total), Bytes(cached));
        let runs = self.runs_of(jobs);
        // Cached blobs only have to be opened.
        let ahead = if policy.cache && cached == total { OPEN_AHEAD } else { policy.parallel };
        let _staging = StagingGuard(&self.engine);
        self.pipeline(runs, (policy.cache, ahead), &Sink::AsStored).await?;
        self.progress.complete();
        Ok(())
    }

    /// Gets what the files are checked with that are downloaded from. On a slow line the hashes of a large file take minutes.
    async fn make_ready(&self, jobs: &[Job]) -> Result<(), LoadError> {
        let files: BTreeSet<u16> = jobs.iter().filter(|job| job.stored() < job.len).map(|job| job.file).collect();
        for file in files {
            self.source.make_ready(file).await?;
        }
        Ok(())
    }

    /// The pieces of what is missing, in the order of the file. `stored` returns the length of a unit's blob.
    fn jobs(&self, stored: impl Fn(WeightUnit) -> Option<u64>) -> Result<Vec<Job>, LoadError> {
        let needs = |unit, tensor| self.engine.needs(unit, tensor);
        let (resident, mut missing) = split_resident(self.engine.missing(), &self.units, needs);
        resident.into_iter().try_for_each(|unit| self.engine.finish(unit))?;
        sort_units(&mut missing, &self.units);
        Ok(cut(&missing, &self.units, self.source.fetch_policy().max_bytes, stored, needs))
    }

    /// Jobs that are fetched together.
    fn runs_of(&self, jobs: Vec<Job>) -> Vec<Vec<Job>> {
        let policy = self.source.fetch_policy();
        match policy.cache || policy.beside {
            true => jobs.into_iter().map(|job| vec![job]).collect(),
            false => runs(jobs, policy.max_bytes),
        }
    }

    /// Fills a shadow's engine, which has reserved units of these types, with the bytes of this model: read where the model's own
    /// engine reads them, one piece at a time, and requantized between the work of others. The shadow keeps nothing on storage. What
    /// is not in the cache yet comes last: an answer that needs such a unit while it is fetched waits for it.
    ///
    /// # Errors
    /// Bytes cannot be read or requantized, or the GPU is lost.
    pub async fn requantize(&self, shadow: &Engine, to: &UnitMap) -> Result<(), LoadError> {
        let policy = self.source.fetch_policy();
        let stored = if policy.cache { self.stored().await } else { BTreeMap::new() };
        let needs = |unit, tensor| shadow.needs(unit, tensor);
        let (resident, mut missing) = split_resident(shadow.missing(), &self.units, needs);
        resident.into_iter().try_for_each(|unit| shadow.finish(unit))?;
        sort_units(&mut missing, &self.units);
        let most = policy.max_bytes.min(REQUANTIZED_BYTES);
        let jobs = cut(&missing, &self.units, most, |blob| stored.get(&blob).copied(), needs);
        self.progress.start(LoadPhase::Upload, Bytes(jobs.iter().map(|job| job.len).sum()), Bytes::ZERO);
        let incomplete: BTreeSet<WeightUnit> =
            jobs.iter().filter(|job| !job.blob.is_complete()).map(|job| job.unit.unit).collect();
        let (others, cached): (Vec<Job>, Vec<Job>) =
            jobs.into_iter().partition(|job| incomplete.contains(&job.unit.unit));
        let _staging = StagingGuard(shadow);
        let sink = Sink::Requantized(shadow, to);
        let runs = cached.into_iter().chain(others).map(|job| vec![job]).collect();
        self.pipeline(runs, (policy.cache, 1), &sink).await?;
        Ok(())
    }

    async fn stored(&self) -> BTreeMap<WeightUnit, u64> {
        match self.platform.store.units(self.model).await {
            Ok(stored) => stored,
            Err(error) => {
                (self.notice)(error.to_string());
                BTreeMap::new()
            }
        }
    }

    /// Compiles the kernels and compares their results with the CPU's; then compiles what may replace them.
    async fn test(&self) -> Result<Verdict, LoadError> {
        let verdict = self.self_test().await?;
        self.compute.prepare_tuning(&self.engine).await;
        Ok(verdict)
    }

    /// Compiles the kernels in use and tests them.
    async fn self_test(&self) -> Result<Verdict, LoadError> {
        self.progress.beside(LoadPhase::Kernels);
        self.engine.prepare().await?;
        self.progress.beside(LoadPhase::SelfTest);
        let verdict = self.engine.self_test().await?;
        if verdict.usable { Ok(verdict) } else { Err(LoadError::WrongResults(Box::new(verdict))) }
    }
}

/// Frees the staging buffers when the load ends, however it ends.
struct StagingGuard<'a>(&'a Engine);

impl Drop for StagingGuard<'_> {
    fn drop(&mut self) {
        self.0.close_staging();
    }
}
