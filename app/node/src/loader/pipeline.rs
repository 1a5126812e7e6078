//! The pipeline of a load: fetch ahead, upload in order, and write to the cache meanwhile.

use std::cell::{Cell, RefCell};
use std::pin::pin;
use std::rc::Rc;

use futures::channel::mpsc;
use futures::future::{Either, select};
use futures::{FutureExt, StreamExt};
use potluck_engine::Engine;
use potluck_model::{FileRange, UnitMap};
use potluck_plan::{Bytes, Millis, ModelId};

use super::cache_writes::{BlobWrite, CacheWriter, WAITING_WRITES};
use super::cached_blob::CachedBlob;
use super::error::LoadError;
use super::jobs::Job;
use super::origin::Origin;
use super::progress::{Arriving, Progress};
use super::requantizer::Requantizer;
use super::soundness::Soundness;
use super::uploader::{FailedRead, ReadFrom, Uploader};
use crate::blob::{BlobKey, BlobName};
use crate::open::OpenError;
use crate::platform::{Platform, StoreError, Traffic};
use crate::source::{Permit, Permits, Source};

/// Milliseconds of work on the CPU after which others get their turn. A browser's timer takes half as long.
const TURN_MILLIS: f64 = 8.0;
/// Where the bytes of a pipeline go.
pub(super) enum Sink<'a> {
    /// To the load's own engine, as they are stored.
    AsStored(&'a Engine),
    /// To a shadow's engine, as the types of its units.
    Requantized(&'a Engine, &'a UnitMap),
    /// To the cache and nowhere else.
    Stored,
}

/// Brings bytes from the cache or the source to a sink.
pub(super) struct Pipeline<'a> {
    pub platform: &'a Platform,
    pub model: ModelId,
    pub units: &'a UnitMap,
    pub checks: Soundness<'a>,
    pub source: &'a dyn Source,
    pub progress: &'a Progress,
    /// Receives sentences for people.
    pub notice: &'a dyn Fn(String),
    pub sink: Sink<'a>,
    /// The bytes belong in the cache.
    pub cache: bool,
}

/// What the fetched bytes of a pipeline pass on their way.
pub(super) struct Way<'a> {
    pub origin: &'a Origin<'a>,
    pub queue: mpsc::Sender<BlobWrite>,
    /// Bytes are still written to the cache.
    pub storing: &'a Cell<bool>,
}

impl Pipeline<'_> {
    /// Uploads the runs and writes them to the cache. The upload waits for the cache only when [`WAITING_WRITES`] pieces queue.
    /// `ahead` runs are under way at a time, fetched ones that wait for their upload included. Returns the bytes that were read
    /// from the source.
    ///
    /// # Errors
    /// Bytes cannot be read, or the GPU is lost.
    pub async fn run(&self, runs: Vec<Vec<Job>>, ahead: usize) -> Result<Bytes, LoadError> {
        let writer = CacheWriter {
            store: self.platform.store.as_ref(),
            model: self.model,
            notice: self.notice,
            storing: Cell::new(self.cache),
            failed: RefCell::default(),
        };
        let (queue, writes) = mpsc::channel(WAITING_WRITES);
        let write = writer.run(writes);
        let (fetched, to_upload) = mpsc::unbounded();
        // What is cached may be under way in larger numbers than the origin allows reads. Of a file on this device as many
        // reads as runs are under way.
        let reads = self.cache.then(|| Permits::new(self.source.fetch_policy().parallel.max(1)));
        let origin = Origin { source: self.source, reads, bytes: Cell::new(0) };
        let load = async {
            let way = Way { origin: &origin, queue, storing: &writer.storing };
            let upload = pin!(async {
                match self.sink {
                    Sink::AsStored(engine) => self.upload(engine, None, to_upload, way).await,
                    Sink::Requantized(engine, to) => self.upload(engine, Some(to), to_upload, way).await,
                    Sink::Stored => self.store(to_upload, way).await,
                }
            });
            let fetch = pin!(self.fetch_all(runs, ahead, &origin, fetched));
            // Fetches go on during an upload: it may need a file that one of them has begun to open.
            match select(upload, fetch).await {
                Either::Left((uploaded, _)) => uploaded,
                Either::Right(((), upload)) => upload.await,
            }
        };
        let (loaded, ()) = futures::join!(load, write);
        if let (Sink::Stored, Some(error)) = (&self.sink, writer.failed.take()) {
            return Err(error.into());
        }
        loaded?;
        Ok(Bytes(origin.bytes.get()))
    }

    /// Fetches runs in parallel and hands them on in order.
    async fn fetch_all(
        &self,
        runs: Vec<Vec<Job>>,
        ahead: usize,
        origin: &Origin<'_>,
        fetched: mpsc::UnboundedSender<Result<FetchedRun, LoadError>>,
    ) {
        let under_way = &Permits::new(ahead.max(1));
        let begun = futures::stream::iter(runs).then(|run| async move { (run, under_way.acquire().await) });
        let fetches = begun.map(|(run, under_way)| async move {
            let (run, found) = self.fetch(run, origin).await?;
            Ok(FetchedRun { run, found, _under_way: under_way })
        });
        let mut done = pin!(fetches.buffered(ahead.max(1)));
        while let Some(run) = done.next().await {
            if fetched.unbounded_send(run).is_err() {
                // The upload has failed.
                return;
            }
        }
    }

    /// Uploads to this engine, as the types of these units if they are others than the model's.
    async fn upload(
        &self,
        engine: &Engine,
        to: Option<&UnitMap>,
        mut fetched: mpsc::UnboundedReceiver<Result<FetchedRun, LoadError>>,
        Way { origin, mut queue, storing }: Way<'_>,
    ) -> Result<(), LoadError> {
        let recover = |read| self.refetch(read, origin).boxed_local();
        let mut requantizer = to.map(|to| Requantizer::new(self.units, to));
        let mut turn = Turn::new(self.platform);
        let checks = self.checks;
        let mut uploader = Uploader::new(engine.clone(), &recover, checks);
        while let Some(done) = fetched.next().await {
            let FetchedRun { run, found, _under_way } = done?;
            let start = run.first().map_or(0, |job| job.offset);
            for job in run {
                match (&found, &mut requantizer) {
                    (Fetched::InCache, None) => self.upload_cached(&job, origin, &mut uploader).await?,
                    (Fetched::InSource, None) => uploader.pull(&job, &ReadFrom::Source(origin.source)).await?,
                    (Fetched::InCache | Fetched::InSource, Some(requantizer)) => {
                        let bytes = match found {
                            Fetched::InCache => self.read_cached(&job, origin).await?,
                            _ => origin.read(job.range(), &Traffic::default()).await?,
                        };
                        let (place, bytes) = requantizer.push(job.place(), &bytes).map_err(OpenError::from)?;
                        uploader.push(place, &bytes).await?;
                        turn.let_others_run().await;
                    }
                    (Fetched::Bytes(bytes, _), requantizer) => {
                        let from = (job.offset - start) as usize;
                        let bytes = &bytes[from..from + job.len as usize];
                        // Before they are stored: the next visit must not find them in the cache.
                        checks.check(job.place(), bytes)?;
                        if let Some(requantizer) = requantizer {
                            let (place, bytes) = requantizer.push(job.place(), bytes).map_err(OpenError::from)?;
                            uploader.push(place, &bytes).await?;
                            turn.let_others_run().await;
                        } else {
                            uploader.push(job.place(), bytes).await?;
                        }
                        job.blob.close().await;
                        if storing.get() {
                            job.blob.buffer(job.blob_offset, bytes);
                            BlobWrite::send_buffered(&job.blob, &mut queue).await;
                        }
                    }
                }
                self.progress.done(job.len, found.arriving());
                if job.unit.job_done() {
                    uploader.end(job.unit.unit)?;
                }
                if job.blob.job_done() {
                    job.blob.close().await;
                    BlobWrite::send_rest(&job.blob, &mut queue).await;
                }
            }
        }
        uploader.flush().await
    }

    /// Fetches the bytes of a run of jobs unless they are cached (cached jobs are runs of their own). The first job of a unit
    /// waits for the unit's lock: if two tabs share a cache, one downloads and the other then finds the bytes. A complete
    /// blob is opened here, ahead of its turn.
    async fn fetch(&self, run: Vec<Job>, origin: &Origin<'_>) -> Result<(Vec<Job>, Fetched), LoadError> {
        let (Some(first), Some(last)) = (run.first(), run.last()) else { return Ok((run, Fetched::InCache)) };
        if self.cache && last.end_in_blob() > last.blob.stored() {
            last.blob.lock(self.platform, self.model).await;
        }
        if self.cache && last.end_in_blob() <= last.blob.stored() && !last.blob.is_given_up() {
            let opened = if last.blob.is_complete() {
                last.blob.reader(self.platform.store.as_ref(), self.model).await.map(drop)
            } else {
                Ok(())
            };
            match opened {
                Ok(()) => return Ok((run, Fetched::InCache)),
                // It is fetched here, beside the others.
                Err(error) => self.give_up(&last.blob, &error).await,
            }
        }
        if self.source.fetch_policy().beside {
            return Ok((run, Fetched::InSource));
        }
        let len = last.offset + last.len - first.offset;
        let range = FileRange { file: first.file, offset: first.offset, len };
        let arriving = self.progress.arriving(len);
        let bytes = origin.read(range, &arriving.count).await?;
        Ok((run, Fetched::Bytes(bytes, arriving)))
    }

    async fn upload_cached<'a>(
        &'a self,
        job: &Job,
        origin: &'a Origin<'a>,
        uploader: &mut Uploader<'a>,
    ) -> Result<(), LoadError> {
        // Opened before the read is queued: to open it takes a lock that whoever deletes the blob needs, too.
        match job.blob.reader(self.platform.store.as_ref(), self.model).await {
            Ok(reader) => uploader.pull(job, &ReadFrom::Blob(reader)).await,
            Err(error) => {
                let read = FailedRead { blob: job.blob.clone(), range: job.range(), error };
                uploader.push(job.place(), &self.refetch(read, origin).await?).await
            }
        }
    }

    /// Bytes of a job that are in the cache; from the source if they cannot be read there.
    async fn read_cached(&self, job: &Job, origin: &Origin<'_>) -> Result<Vec<u8>, LoadError> {
        let key = BlobKey { model: self.model, name: BlobName::Unit(job.blob.unit) };
        match self.platform.store.read(key, job.blob_offset, job.len).await {
            Ok(bytes) => Ok(bytes),
            Err(error) => {
                let read = FailedRead { blob: job.blob.clone(), range: job.range(), error };
                self.refetch(read, origin).await
            }
        }
    }

    /// Fetches a cached piece that cannot be read from the source instead.
    async fn refetch(&self, read: FailedRead, origin: &Origin<'_>) -> Result<Vec<u8>, LoadError> {
        let FailedRead { blob, range, error } = read;
        if !blob.is_given_up() {
            self.give_up(&blob, &error).await;
        }
        Ok(origin.read(range, &Traffic::default()).await?)
    }

    /// A cached blob cannot be read: deletes it if it is broken.
    async fn give_up(&self, blob: &CachedBlob, error: &StoreError) {
        log::warn!("a cached piece cannot be read: {error}");
        let key = BlobKey { model: self.model, name: BlobName::Unit(blob.unit) };
        blob.stop_storing();
        blob.close().await;
        // A blob that another tab has open is not broken.
        if *error != StoreError::Busy
            && let Err(error) = self.platform.store.delete(key).await
        {
            log::warn!("it cannot be deleted either: {error}");
        }
    }
}

/// A run that waits for its upload.
pub(super) struct FetchedRun {
    pub run: Vec<Job>,
    pub found: Fetched,
    /// Given to the next run once this one is uploaded.
    pub _under_way: Permit,
}

/// The bytes of a run of jobs when its turn comes.
pub(super) enum Fetched {
    /// They are in the cache.
    InCache,
    /// The source reads them straight into staging buffers.
    InSource,
    /// They came from the source.
    Bytes(Vec<u8>, Rc<Arriving>),
}

impl Fetched {
    pub fn arriving(&self) -> Option<&Arriving> {
        match self {
            Self::Bytes(_, arriving) => Some(arriving),
            Self::InCache | Self::InSource => None,
        }
    }
}

/// Work on the CPU that lets others on this thread run.
struct Turn<'a> {
    platform: &'a Platform,
    since: Millis,
}

impl<'a> Turn<'a> {
    fn new(platform: &'a Platform) -> Self {
        Self { platform, since: platform.clock.now() }
    }

    async fn let_others_run(&mut self) {
        if self.platform.clock.now().0 - self.since.0 >= TURN_MILLIS {
            self.platform.clock.sleep(0.0).await;
            self.since = self.platform.clock.now();
        }
    }
}
