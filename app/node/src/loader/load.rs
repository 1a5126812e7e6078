//! One load: what is missing, in which order, and the tests of kernels beside it.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use potluck_engine::{Engine, EngineError, KernelVerdict, Verdict};
use potluck_model::UnitMap;
use potluck_plan::{Bytes, ModelId, PooledExperts, WeightUnit};
use potluck_protocol::LoadPhase;

use super::error::LoadError;
use super::jobs::{Job, Place, cut, runs, split_resident};
use super::layout::sort_units;
use super::pipeline::{Pipeline, Sink};
use super::progress::Progress;
use super::soundness::Soundness;
use super::stored_copy::StoredCopy;
use super::tuner::Tuner;
use crate::open::TensorNames;
use crate::platform::Platform;
use crate::source::Source;

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
    /// Tunes the engine.
    pub tuner: Rc<dyn Tuner>,
    /// The model's id.
    pub model: ModelId,
    /// The model's units.
    pub units: Rc<UnitMap>,
    /// The names of its tensors.
    pub names: Rc<TensorNames>,
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
        let new: BTreeSet<WeightUnit> = self.engine.missing().into_iter().collect();
        let (_, mut verdict) = futures::try_join!(self.progress.watch(self.load_missing()), async {
            Ok::<_, LoadError>(if test { Some(self.test().await?) } else { None })
        })?;
        if test {
            self.tuner.tune(&self.engine).await;
            // A variant that was measured for one product is also used for two products in one kernel.
            if !self.engine.is_prepared() {
                verdict = Some(self.self_test().await?);
            }
        }
        // Tuning may have chosen other kernels: those that are tested here compute the answers.
        if !new.is_empty() {
            let of_weights = self.test_weights(&new).await?;
            if let Some(verdict) = &mut verdict {
                verdict.kernels.extend(of_weights);
            }
        }
        Ok(verdict)
    }

    async fn load_missing(&self) -> Result<(), LoadError> {
        let policy = self.source.fetch_policy();
        // Also if nothing is missing: what was loaded before may be of a version that is gone.
        self.source.is_unchanged(0).await?;
        let copy = self.copy();
        let stored = if policy.cache { copy.units().await } else { BTreeMap::new() };
        let mut jobs = self.jobs(|blob| stored.get(&blob).copied())?;
        if copy.gives_way(&jobs).await? {
            jobs = self.jobs(|_| None)?;
        }
        let total: u64 = jobs.iter().map(|job| job.len).sum();
        let cached: u64 = jobs.iter().map(Job::stored).sum();
        let phase = if policy.cache && cached < total { LoadPhase::Download } else { LoadPhase::Upload };
        if phase == LoadPhase::Download {
            copy.make_ready(&jobs).await?;
        }
        self.progress.start(phase, Bytes(total), Bytes(cached));
        let _expecting = copy.expect(&jobs);
        let runs = self.runs_of(jobs);
        // Cached blobs only have to be opened.
        let ahead = if policy.cache && cached == total { OPEN_AHEAD } else { policy.parallel };
        let _staging = StagingGuard(&self.engine);
        let read = self.pipeline(Sink::AsStored(&self.engine), policy.cache).run(runs, ahead).await;
        copy.of_one_version(read, usize::MAX).await?;
        self.check_uploads().await?;
        self.progress.complete();
        Ok(())
    }

    /// What checks the bytes on their way.
    pub(super) fn checks(&self) -> Soundness<'_> {
        Soundness { units: &self.units, names: &self.names }
    }

    /// Compares samples of what was uploaded with what the GPU has.
    async fn check_uploads(&self) -> Result<(), LoadError> {
        self.engine.check_uploads().await.map_err(|error| match error {
            EngineError::NotKept(unit, tensor) => {
                LoadError::NotKept(self.checks().name(Place { unit, tensor, offset: 0 }))
            }
            error => error.into(),
        })
    }

    /// The pieces of what is missing, in the order of the file. `stored` returns the length of a unit's blob.
    pub(super) fn jobs(&self, stored: impl Fn(WeightUnit) -> Option<u64>) -> Result<Vec<Job>, LoadError> {
        let needs = |unit, tensor| self.engine.needs(unit, tensor);
        let (resident, mut missing) = split_resident(self.engine.missing(), &self.units, needs);
        resident.into_iter().try_for_each(|unit| self.engine.finish(unit))?;
        sort_units(&mut missing, &self.units);
        Ok(cut(&missing, &self.units, self.source.fetch_policy().max_bytes, stored, needs))
    }

    /// Jobs that are fetched together.
    pub(super) fn runs_of(&self, jobs: Vec<Job>) -> Vec<Vec<Job>> {
        let policy = self.source.fetch_policy();
        if policy.cache || policy.beside {
            jobs.into_iter().map(|job| vec![job]).collect()
        } else {
            runs(jobs, policy.max_bytes)
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
        let copy = self.copy();
        let stored = if policy.cache { copy.units().await } else { BTreeMap::new() };
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
        let _expecting = copy.expect(&others);
        let runs = cached.into_iter().chain(others).map(|job| vec![job]).collect();
        self.pipeline(Sink::Requantized(shadow, to), policy.cache).run(runs, 1).await?;
        Ok(())
    }

    /// What the cache has of the model.
    pub(super) fn copy(&self) -> StoredCopy<'_> {
        StoredCopy {
            platform: &self.platform,
            model: self.model,
            source: self.source.as_ref(),
            notice: self.notice.as_ref(),
        }
    }

    /// What brings bytes to a sink.
    pub(super) fn pipeline<'a>(&'a self, sink: Sink<'a>, cache: bool) -> Pipeline<'a> {
        Pipeline {
            platform: &self.platform,
            model: self.model,
            units: &self.units,
            checks: self.checks(),
            source: self.source.as_ref(),
            progress: &self.progress,
            notice: self.notice.as_ref(),
            sink,
            cache,
        }
    }

    /// Compiles the kernels and compares their results with the CPU's; then compiles what may replace them.
    async fn test(&self) -> Result<Verdict, LoadError> {
        let verdict = self.self_test().await?;
        self.tuner.prepare_tuning(&self.engine).await;
        Ok(verdict)
    }

    /// Tests kernels on blocks of units that were loaded.
    async fn test_weights(&self, units: &BTreeSet<WeightUnit>) -> Result<Vec<KernelVerdict>, LoadError> {
        let kernels = self.engine.test_weights(units).await?;
        if kernels.iter().all(|kernel| kernel.ok) {
            return Ok(kernels);
        }
        self.engine.invalidate_weights();
        Err(LoadError::WrongResults(Box::new(Verdict { kernels, usable: false, fallback: false, rows_agree: true })))
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
