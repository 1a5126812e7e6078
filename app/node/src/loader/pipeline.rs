//! The pipeline of a load: fetch ahead, upload in order, and write to the cache meanwhile.

use std::cell::Cell;
use std::pin::pin;
use std::rc::Rc;

use futures::channel::mpsc;
use futures::future::{Either, select};
use futures::{FutureExt, SinkExt, StreamExt};
use potluck_engine::Engine;
use potluck_model::{FileRange, UnitMap};
use potluck_plan::{Bytes, Millis};

use super::cached_blob::CachedBlob;
use super::jobs::Job;
use super::progress::Arriving;
use super::requantizer::Requantizer;
use super::uploader::{FailedRead, ReadFrom, Uploader};
use super::{Load, LoadError};
use crate::blob::{BlobKey, BlobName};
use crate::open::OpenError;
use crate::platform::{Platform, StoreError, Traffic};
use crate::source::{Permit, Permits, Source, SourceError};

/// Bytes of a unit that are written to the cache at once, if it has that many: each write opens the file, which takes a
/// browser 15 to 30 ms.
const APPEND_BYTES: usize = 4 << 20;
/// Milliseconds of work on the CPU after which others get their turn. A browser's timer takes half as long.
const TURN_MILLIS: f64 = 8.0;
/// Pieces that may wait to be written. Bounds the memory that a slow storage holds up.
const WAITING_WRITES: usize = 2;

/// Where the bytes of a pipeline go.
pub(super) enum Sink<'a> {
    /// To the load's own engine, as they are stored.
    AsStored,
    /// To a shadow's engine, as the types of its units.
    Requantized(&'a Engine, &'a UnitMap),
}

impl Load {
    /// Uploads the runs and writes them to the cache. The upload waits for the cache only when [`WAITING_WRITES`] pieces queue.
    /// `ahead` runs are under way at a time, fetched ones that wait for their upload included. Returns the bytes that were read
    /// from the source.
    ///
    /// # Errors
    /// Bytes cannot be read, or the GPU is lost.
    pub(super) async fn pipeline(
        &self,
        runs: Vec<Vec<Job>>,
        (cache, ahead): (bool, usize),
        sink: &Sink<'_>,
    ) -> Result<Bytes, LoadError> {
        let storing = Cell::new(cache);
        let (queue, writes) = mpsc::channel(WAITING_WRITES);
        let write = writes.for_each(|write| self.write(write, &storing));
        let (fetched, to_upload) = mpsc::unbounded();
        // What is cached may be under way in larger numbers than the origin allows reads. Of a file on this device as many
        // reads as runs are under way.
        let reads = cache.then(|| Permits::new(self.source.fetch_policy().parallel.max(1)));
        let origin = Origin { source: self.source.as_ref(), reads, bytes: Cell::new(0) };
        let load = async {
            let upload = pin!(self.upload(to_upload, &origin, (queue, &storing), sink));
            let fetch = pin!(self.fetch_all(runs, cache, ahead, &origin, fetched));
            // Fetches go on during an upload: it may need a file that one of them has begun to open.
            match select(upload, fetch).await {
                Either::Left((uploaded, _)) => uploaded,
                Either::Right(((), upload)) => upload.await,
            }
        };
        futures::join!(load, write).0?;
        Ok(Bytes(origin.bytes.get()))
    }

    /// Fetches runs in parallel and hands them on in order.
    async fn fetch_all(
        &self,
        runs: Vec<Vec<Job>>,
        cache: bool,
        ahead: usize,
        origin: &Origin<'_>,
        fetched: mpsc::UnboundedSender<Result<FetchedRun, LoadError>>,
    ) {
        let under_way = &Permits::new(ahead.max(1));
        let begun = futures::stream::iter(runs).then(|run| async move { (run, under_way.acquire().await) });
        let fetches = begun.map(|(run, under_way)| async move {
            let (run, found) = self.fetch(run, cache, origin).await?;
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

    async fn upload(
        &self,
        mut fetched: mpsc::UnboundedReceiver<Result<FetchedRun, LoadError>>,
        origin: &Origin<'_>,
        (mut queue, storing): (mpsc::Sender<BlobWrite>, &Cell<bool>),
        sink: &Sink<'_>,
    ) -> Result<(), LoadError> {
        let recover = |read| self.refetch(read, origin).boxed_local();
        let (engine, mut requantizer) = match sink {
            Sink::AsStored => (&self.engine, None),
            Sink::Requantized(engine, to) => (*engine, Some(Requantizer::new(&self.units, to))),
        };
        let mut turn = Turn::new(&self.platform);
        let mut uploader = Uploader::new(engine.clone(), &recover);
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
                            BlobWrite::send_buffered(&job.blob, APPEND_BYTES, &mut queue).await;
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
    async fn fetch(&self, run: Vec<Job>, cache: bool, origin: &Origin<'_>) -> Result<(Vec<Job>, Fetched), LoadError> {
        let (Some(first), Some(last)) = (run.first(), run.last()) else { return Ok((run, Fetched::InCache)) };
        if cache && last.end_in_blob() > last.blob.stored() {
            last.blob.lock(&self.platform, self.model).await;
        }
        if cache && last.end_in_blob() <= last.blob.stored() && !last.blob.is_given_up() {
            let opened = match last.blob.is_complete() {
                true => last.blob.reader(self.platform.store.as_ref(), self.model).await.map(drop),
                false => Ok(()),
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

    /// Writes a piece of a unit to the cache. After the first failure nothing is written any more.
    async fn write(&self, write: BlobWrite, storing: &Cell<bool>) {
        let BlobWrite { blob, piece, last } = write;
        if let Some((offset, bytes)) = piece.filter(|_| storing.get()) {
            let len = bytes.len() as u64;
            let key = BlobKey { model: self.model, name: BlobName::Unit(blob.unit) };
            match self.platform.store.append(key, offset, bytes).await {
                Ok(()) => blob.written(len),
                Err(error) => {
                    storing.set(false);
                    (self.notice)(format!("{error} The model is used without keeping it."));
                }
            }
        }
        if last {
            blob.release();
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

/// The source of a load.
struct Origin<'a> {
    source: &'a dyn Source,
    /// Limits the reads at a time further than the runs under way do.
    reads: Option<Permits>,
    /// Bytes read so far.
    bytes: Cell<u64>,
}

impl Origin<'_> {
    async fn read(&self, range: FileRange, arrived: &Traffic) -> Result<Vec<u8>, SourceError> {
        let _read = match &self.reads {
            Some(reads) => Some(reads.acquire().await),
            None => None,
        };
        let bytes = self.source.read_counted(range, arrived).await?;
        self.bytes.set(self.bytes.get() + bytes.len() as u64);
        Ok(bytes)
    }
}

/// A run that waits for its upload.
struct FetchedRun {
    run: Vec<Job>,
    found: Fetched,
    /// Given to the next run once this one is uploaded.
    _under_way: Permit,
}

/// The bytes of a run of jobs when its turn comes.
enum Fetched {
    /// They are in the cache.
    InCache,
    /// The source reads them straight into staging buffers.
    InSource,
    /// They came from the source.
    Bytes(Vec<u8>, Rc<Arriving>),
}

impl Fetched {
    fn arriving(&self) -> Option<&Arriving> {
        match self {
            Self::Bytes(_, arriving) => Some(arriving),
            Self::InCache | Self::InSource => None,
        }
    }
}

/// A piece of a unit on its way to the cache.
struct BlobWrite {
    blob: Rc<CachedBlob>,
    /// Offset and bytes.
    piece: Option<(u64, Vec<u8>)>,
    /// No piece of the unit follows.
    last: bool,
}

impl BlobWrite {
    /// Queues what is buffered of a unit if that is at least `min` bytes.
    async fn send_buffered(blob: &Rc<CachedBlob>, min: usize, queue: &mut mpsc::Sender<BlobWrite>) {
        if let Some(piece) = blob.take_buffered(min) {
            // The receiver lives as long as the load.
            let _ = queue.send(BlobWrite { blob: blob.clone(), piece: Some(piece), last: false }).await;
        }
    }

    /// Queues the rest of a unit.
    async fn send_rest(blob: &Rc<CachedBlob>, queue: &mut mpsc::Sender<BlobWrite>) {
        let _ = queue.send(BlobWrite { blob: blob.clone(), piece: blob.take_buffered(0), last: true }).await;
    }
}
