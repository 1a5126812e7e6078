//! Bringing weight units to the GPU: from the cache, else from the source into the cache, and through the staging ring.
//!
//! The plan of a load is one ordered list of jobs, each a piece of a tensor. Some jobs are fetched ahead, in parallel and
//! across units (experts are small), but they are stored and uploaded in order: a blob grows from the front, so an
//! interrupted download goes on where it was.

mod jobs;
mod progress;
mod uploader;

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use futures::StreamExt;
use potluck_engine::{Engine, EngineError, LayoutError, Verdict};
use potluck_model::{FileRange, UnitMap};
use potluck_plan::{Bytes, ModelId, WeightUnit};
use potluck_protocol::{LoadFault, LoadPhase};
use thiserror::Error;

use crate::blob::{BlobKey, BlobName};
use crate::open::OpenError;
use crate::platform::{Platform, StoreError};
use crate::source::{Source, SourceError};
use jobs::{Job, UnitState, cut, sort_units};
use uploader::Uploader;

pub use progress::{Progress, Rate};

/// Bytes of a unit that are written to the cache at once, where it has so many: each write opens the file anew, which takes
/// a browser 15 to 30 ms.
const APPEND_BYTES: usize = 4 << 20;

/// Why a load failed, in one sentence.
#[derive(Clone, Debug, Error)]
pub enum LoadError {
    /// The model.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// Its bytes.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// The engine.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// A stored piece.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// There is no GPU.
    #[error("{0}")]
    NoGpu(String),
    /// The kernels are wrong here.
    #[error("This device's GPU computes wrongly ({0}), so it cannot take part; a newer driver or browser may help.")]
    Wrong(String),
}

/// One load.
pub struct Load {
    /// The adapters.
    pub platform: Platform,
    /// The GPU.
    pub engine: Engine,
    /// Which model.
    pub model: ModelId,
    /// Its units.
    pub units: Rc<UnitMap>,
    /// Its bytes.
    pub source: Rc<dyn Source>,
    /// Hears how far it is.
    pub progress: Rc<Progress>,
    /// Hears sentences worth showing, once each.
    pub notice: Box<dyn Fn(String)>,
}

impl Load {
    /// True if every wanted unit is on the GPU already.
    pub fn holds(&self, wanted: &BTreeSet<WeightUnit>) -> bool {
        wanted.iter().all(|unit| self.engine.resident(*unit))
    }

    /// True if the held units need no kernel besides those that are compiled.
    pub fn is_prepared(&self) -> bool {
        self.engine.is_prepared()
    }

    /// Holds the wanted units and brings what is missing. Afterwards the engine has every byte; gives how many weight bytes
    /// these are.
    ///
    /// # Errors
    /// Too little memory, or bytes that cannot be had.
    pub async fn run(&self, wanted: &BTreeSet<WeightUnit>) -> Result<Bytes, LoadError> {
        self.progress.phase(LoadPhase::Find);
        let layout = self.engine.hold(wanted)?;
        self.progress.used(layout.total);
        let mut missing = self.engine.missing();
        sort_units(&mut missing, &self.units);
        let keep = self.source.manners().keep;
        let stored = if keep { self.stored().await } else { BTreeMap::new() };
        let total: u64 = missing.iter().map(|unit| self.units.bytes(*unit).0).sum();
        let cached: u64 = missing
            .iter()
            .map(|unit| stored.get(&BlobName::Unit(*unit)).copied().unwrap_or(0).min(self.units.bytes(*unit).0))
            .sum();
        let phase = if keep && cached < total { LoadPhase::Download } else { LoadPhase::Upload };
        self.progress.start(phase, Bytes(total), Bytes(cached));
        let states: Vec<Rc<UnitState>> = missing
            .iter()
            .map(|unit| Rc::new(UnitState::new(*unit, stored.get(&BlobName::Unit(*unit)).copied())))
            .collect();
        let piece = self.source.manners().bytes;
        let jobs = states.iter().flat_map(|state| cut(state, &self.units, piece)).collect::<Vec<_>>();
        self.work(jobs, keep).await?;
        Ok(layout.weights())
    }

    async fn work(&self, jobs: Vec<Job>, keep: bool) -> Result<(), LoadError> {
        let storing = Cell::new(keep);
        let fetches = jobs.into_iter().map(|job| self.fetch(job, keep));
        let mut fetched = std::pin::pin!(futures::stream::iter(fetches).buffered(self.source.manners().parallel));
        let mut uploader = Uploader::new(self.engine.clone());
        while let Some(done) = fetched.next().await {
            let (job, bytes) = done?;
            match bytes {
                Found::Unneeded => job.state.leave_out(),
                Found::Stored => {
                    let read = uploader.pull(self.platform.store.as_ref(), self.model, &job).await;
                    if let Err(LoadError::Store(error)) = read {
                        self.broken_blob(&job, &error, &mut uploader).await?;
                    } else {
                        read?;
                    }
                }
                Found::Fetched(bytes) => {
                    uploader.push(&job, &bytes).await?;
                    if storing.get() {
                        job.keep(&bytes);
                        self.store(&job.state, APPEND_BYTES, &storing).await;
                    }
                }
            }
            self.progress.done(job.len);
            if job.last {
                self.store(&job.state, 0, &storing).await;
                uploader.end(job.state.unit)?;
                job.state.release();
            }
        }
        uploader.flush()?;
        Ok(())
    }

    /// The bytes of a job, if they are not stored. The first job of a unit waits for the unit's lock: of two tabs with one
    /// cache one downloads, and the other finds the bytes stored.
    async fn fetch(&self, job: Job, keep: bool) -> Result<(Job, Found), LoadError> {
        if !self.engine.needs(job.state.unit, job.tensor) {
            return Ok((job, Found::Unneeded));
        }
        if keep && job.end_in_unit() > job.state.stored() {
            job.state.lock(&self.platform, self.model).await;
        }
        if keep && job.end_in_unit() <= job.state.stored() {
            return Ok((job, Found::Stored));
        }
        let bytes = self.source.read(FileRange { file: job.file, offset: job.offset, len: job.len }).await?;
        Ok((job, Found::Fetched(bytes)))
    }

    /// Writes what waits of a unit, if that is `least` bytes or more.
    async fn store(&self, state: &UnitState, least: usize, storing: &Cell<bool>) {
        let blob = BlobKey { model: self.model, name: BlobName::Unit(state.unit) };
        let Some((offset, bytes)) = state.to_append(least).filter(|_| storing.get()) else { return };
        let len = bytes.len() as u64;
        match self.platform.store.append(blob, offset, bytes).await {
            Ok(()) => state.grew(offset + len),
            Err(error) => {
                storing.set(false);
                (self.notice)(format!("{error} The model is used without keeping it."));
            }
        }
    }

    /// A stored piece that cannot be read is deleted and fetched instead.
    async fn broken_blob(&self, job: &Job, error: &StoreError, uploader: &mut Uploader) -> Result<(), LoadError> {
        log::warn!("a stored piece cannot be read: {error}");
        let key = BlobKey { model: self.model, name: BlobName::Unit(job.state.unit) };
        if let Err(error) = self.platform.store.delete(key).await {
            log::warn!("it cannot be deleted either: {error}");
        }
        job.state.leave_out();
        let bytes = self.source.read(FileRange { file: job.file, offset: job.offset, len: job.len }).await?;
        uploader.push(job, &bytes).await
    }

    async fn stored(&self) -> BTreeMap<BlobName, u64> {
        match self.platform.store.list(self.model).await {
            Ok(stored) => stored,
            Err(error) => {
                (self.notice)(error.to_string());
                BTreeMap::new()
            }
        }
    }

    /// Compiles the kernels and compares them with the CPU.
    ///
    /// # Errors
    /// The device is gone, or computes wrongly.
    pub async fn test(&self) -> Result<Verdict, LoadError> {
        self.progress.phase(LoadPhase::Kernels);
        self.engine.prepare().await?;
        self.progress.phase(LoadPhase::SelfTest);
        Ok(self.engine.self_test().await?)
    }
}

/// What became of a job before its turn.
enum Found {
    /// Another unit brought the tensor.
    Unneeded,
    /// In the cache.
    Stored,
    /// From the source.
    Fetched(Vec<u8>),
}

impl LoadError {
    /// As the coordinator is told.
    pub fn fault(&self) -> LoadFault {
        let sentence = self.to_string();
        match self {
            Self::Engine(EngineError::Layout(LayoutError::TooLarge { .. })) => LoadFault::NoRoom(sentence),
            _ => LoadFault::Failed(sentence),
        }
    }
}
