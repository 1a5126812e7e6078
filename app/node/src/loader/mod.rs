//! Bringing weight units to the GPU: from the cache, else from the source into the cache, and through the staging ring.
//!
//! The plan of a load is one ordered list of jobs, each a piece of a tensor. Some jobs are fetched ahead, in parallel and
//! across units (experts are small), but they are stored and uploaded in order: a blob grows from the front, so an
//! interrupted download goes on where it was.

mod jobs;
mod progress;
mod rates;
mod uploader;

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use futures::channel::mpsc;
use futures::{SinkExt, StreamExt};
use potluck_engine::{Engine, EngineError, LayoutError, Verdict};
use potluck_model::{FileRange, UnitMap};
use potluck_plan::{Bytes, ModelId, WeightUnit};
use potluck_protocol::{LoadFault, LoadPhase};
use thiserror::Error;

use crate::blob::{BlobKey, BlobName};
use crate::compute::Compute;
use crate::open::OpenError;
use crate::platform::{Platform, StoreError};
use crate::source::{Source, SourceError};
use jobs::{Job, UnitState, cut, runs, sort_units, split};
use uploader::Uploader;

pub use progress::{Progress, Rate};
pub use rates::LoadRates;

/// Bytes of a unit that are written to the cache at once, where it has so many: each write opens the file anew, which takes
/// a browser 15 to 30 ms.
const APPEND_BYTES: usize = 4 << 20;
/// Pieces that may wait to be written: what a slow storage may hold up in memory.
const WAITING_WRITES: usize = 2;
/// Stored pieces whose blobs are opened ahead of their turn: opening takes a browser milliseconds, and reading is fast. Blobs
/// of many pieces lie in one file.
const OPEN_AHEAD: usize = 512;

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
    #[error(
        "This device's GPU computes wrongly ({}), so it cannot take part; a newer driver or browser may help.",
        wrong_kernels(.0)
    )]
    Wrong(Box<Verdict>),
}

/// The kernels that are wrong and have no replacement.
fn wrong_kernels(verdict: &Verdict) -> String {
    let wrong = verdict.kernels.iter().filter(|kernel| !kernel.ok && kernel.replaced_by.is_none());
    wrong.map(|kernel| kernel.name.as_str()).collect::<Vec<_>>().join(", ")
}

/// One load.
pub struct Load {
    /// The adapters.
    pub platform: Platform,
    /// The GPU.
    pub engine: Engine,
    /// Whose it is, and who tunes it.
    pub compute: Rc<Compute>,
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
        wanted.iter().all(|unit| self.engine.is_resident(*unit))
    }

    /// True if the held units need no kernel besides those that are compiled.
    pub fn is_prepared(&self) -> bool {
        self.engine.is_prepared()
    }

    /// Reserves memory for the wanted units. Gives how many weight bytes these are.
    ///
    /// # Errors
    /// Too little memory.
    pub fn hold(&self, wanted: &BTreeSet<WeightUnit>) -> Result<Bytes, LoadError> {
        self.progress.phase(LoadPhase::Find);
        let layout = self.engine.reserve(wanted)?;
        self.progress.used(layout.total);
        Ok(layout.weights())
    }

    /// Brings what is missing of the held units and, meanwhile, compiles and tests the kernels if `test` says so: neither
    /// needs the other, and on a warm visit the compiler takes longer than the weights. Afterwards the engine has every
    /// byte, and kernels that were tested are tuned on them.
    ///
    /// # Errors
    /// Bytes that cannot be had, a GPU that is gone, or one whose kernels are wrong and have no replacement.
    pub async fn run(&self, test: bool) -> Result<Option<Verdict>, LoadError> {
        let (_, verdict) = futures::try_join!(self.bring(), async {
            Ok::<_, LoadError>(if test { Some(self.test().await?) } else { None })
        })?;
        if test {
            self.compute.tune(&self.engine).await;
        }
        Ok(verdict)
    }

    /// Brings what is missing of the held units.
    async fn bring(&self) -> Result<(), LoadError> {
        let manners = self.source.manners();
        let keep = manners.keep;
        let stored = if keep { self.stored().await } else { BTreeMap::new() };
        let jobs = self.jobs(|blob| stored.get(&blob).copied())?;
        let total: u64 = jobs.iter().map(|job| job.len).sum();
        let cached: u64 = jobs.iter().map(Job::stored).sum();
        let phase = if keep && cached < total { LoadPhase::Download } else { LoadPhase::Upload };
        self.progress.start(phase, Bytes(total), Bytes(cached));
        let runs = if keep { jobs.into_iter().map(|job| vec![job]).collect() } else { runs(jobs, manners.bytes) };
        // What is stored only has to be opened.
        let ahead = if keep && cached == total { OPEN_AHEAD } else { manners.parallel };
        let _staged = Staged(&self.engine);
        self.work(runs, keep, ahead).await?;
        self.progress.complete();
        Ok(())
    }

    /// The pieces of what is missing, in the order of the file. `stored` tells how long a unit's blob is.
    fn jobs(&self, stored: impl Fn(WeightUnit) -> Option<u64>) -> Result<Vec<Job>, LoadError> {
        let needs = |unit, tensor| self.engine.needs(unit, tensor);
        let (here, mut missing) = split(self.engine.missing(), &self.units, needs);
        here.into_iter().try_for_each(|unit| self.engine.finish(unit))?;
        sort_units(&mut missing, &self.units);
        Ok(cut(&missing, &self.units, self.source.manners().bytes, stored, needs))
    }

    /// Uploads and, beside it, stores: neither waits for the other but for the few pieces that may wait to be written.
    async fn work(&self, runs: Vec<Vec<Job>>, keep: bool, ahead: usize) -> Result<(), LoadError> {
        let storing = Cell::new(keep);
        let (queue, writes) = mpsc::channel(WAITING_WRITES);
        let write = writes.for_each(|write| self.write(write, &storing));
        futures::join!(self.upload(runs, ahead, queue, &storing), write).0
    }

    async fn upload(
        &self,
        runs: Vec<Vec<Job>>,
        ahead: usize,
        mut queue: mpsc::Sender<Write>,
        storing: &Cell<bool>,
    ) -> Result<(), LoadError> {
        let keep = storing.get();
        let fetches = runs.into_iter().map(|run| self.fetch(run, keep));
        let mut fetched = std::pin::pin!(futures::stream::iter(fetches).buffered(ahead));
        let mut uploader = Uploader::new(self.engine.clone());
        while let Some(done) = fetched.next().await {
            let (run, found) = done?;
            let start = run.first().map_or(0, |job| job.offset);
            for job in run {
                match &found {
                    Found::Stored => {
                        let read = uploader.pull(self.platform.store.as_ref(), self.model, &job).await;
                        if let Err(LoadError::Store(error)) = read {
                            self.broken_blob(&job, &error, &mut uploader).await?;
                        } else {
                            read?;
                        }
                    }
                    Found::Fetched(bytes) => {
                        let from = (job.offset - start) as usize;
                        let bytes = &bytes[from..from + job.len as usize];
                        uploader.push(&job, bytes).await?;
                        job.state.close().await;
                        if storing.get() {
                            job.keep(bytes);
                            Write::some(&job.state, APPEND_BYTES, &mut queue).await;
                        }
                    }
                }
                self.progress.done(job.len);
                if job.wanted.done() {
                    uploader.end(job.wanted.unit)?;
                }
                if job.state.done() {
                    job.state.close().await;
                    Write::end(&job.state, &mut queue).await;
                }
            }
        }
        uploader.flush()?;
        Ok(())
    }

    /// The bytes of a run of jobs, if they are not stored (stored jobs come one by one). The first job of a unit waits for
    /// the unit's lock: of two tabs with one cache one downloads, and the other finds the bytes stored. A unit that is
    /// stored to its end is opened here, ahead of its turn.
    async fn fetch(&self, run: Vec<Job>, keep: bool) -> Result<(Vec<Job>, Found), LoadError> {
        let (Some(first), Some(last)) = (run.first(), run.last()) else { return Ok((run, Found::Stored)) };
        if keep && last.end_in_blob() > last.state.stored() {
            last.state.lock(&self.platform, self.model).await;
        }
        if keep && last.end_in_blob() <= last.state.stored() {
            if last.state.is_whole() {
                // What is wrong with it is told when its turn comes.
                let _ = last.state.reader(self.platform.store.as_ref(), self.model).await;
            }
            return Ok((run, Found::Stored));
        }
        let len = last.offset + last.len - first.offset;
        let bytes = self.source.read(FileRange { file: first.file, offset: first.offset, len }).await?;
        Ok((run, Found::Fetched(bytes)))
    }

    /// Writes a piece of a unit, unless an earlier one could not be written.
    async fn write(&self, write: Write, storing: &Cell<bool>) {
        let Write { state, piece, end } = write;
        if let Some((offset, bytes)) = piece.filter(|_| storing.get()) {
            let len = bytes.len() as u64;
            let blob = BlobKey { model: self.model, name: BlobName::Unit(state.unit) };
            match self.platform.store.append(blob, offset, bytes).await {
                Ok(()) => state.written(len),
                Err(error) => {
                    storing.set(false);
                    (self.notice)(format!("{error} The model is used without keeping it."));
                }
            }
        }
        if end {
            state.release();
        }
    }

    /// A stored piece that cannot be read is fetched instead, and deleted if it is broken.
    async fn broken_blob(&self, job: &Job, error: &StoreError, uploader: &mut Uploader) -> Result<(), LoadError> {
        log::warn!("a stored piece cannot be read: {error}");
        let key = BlobKey { model: self.model, name: BlobName::Unit(job.state.unit) };
        job.state.close().await;
        // What somebody else has open is not broken.
        if *error != StoreError::Busy
            && let Err(error) = self.platform.store.delete(key).await
        {
            log::warn!("it cannot be deleted either: {error}");
        }
        job.state.leave_out();
        let bytes = self.source.read(FileRange { file: job.file, offset: job.offset, len: job.len }).await?;
        uploader.push(job, &bytes).await
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

    /// Compiles the kernels and compares them with the CPU.
    async fn test(&self) -> Result<Verdict, LoadError> {
        self.progress.beside(LoadPhase::Kernels);
        self.engine.prepare().await?;
        self.progress.beside(LoadPhase::SelfTest);
        let verdict = self.engine.self_test().await?;
        if !verdict.usable {
            return Err(LoadError::Wrong(Box::new(verdict)));
        }
        self.compute.prepare_tuning(&self.engine).await;
        Ok(verdict)
    }
}

/// A load that uses staging buffers: they go when it ends, however it ends.
struct Staged<'a>(&'a Engine);

impl Drop for Staged<'_> {
    fn drop(&mut self) {
        self.0.close_staging();
    }
}

/// A piece of a unit on its way to the cache.
struct Write {
    state: Rc<UnitState>,
    /// Where, and what.
    piece: Option<(u64, Vec<u8>)>,
    /// Nothing of the unit comes after it.
    end: bool,
}

impl Write {
    /// Hands on what waits of a unit, if that is `least` bytes or more.
    async fn some(state: &Rc<UnitState>, least: usize, queue: &mut mpsc::Sender<Write>) {
        if let Some(piece) = state.to_append(least) {
            // The other end is there as long as the load is.
            let _ = queue.send(Write { state: state.clone(), piece: Some(piece), end: false }).await;
        }
    }

    /// Hands on the rest of a unit.
    async fn end(state: &Rc<UnitState>, queue: &mut mpsc::Sender<Write>) {
        let _ = queue.send(Write { state: state.clone(), piece: state.to_append(0), end: true }).await;
    }
}

/// What became of a run of jobs before its turn.
enum Found {
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
