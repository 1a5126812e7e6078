//! The cached copy of a weight unit while it is read or written.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use futures::lock::Mutex;
use potluck_plan::{ModelId, WeightUnit};

use crate::blob::{BlobKey, BlobName};
use crate::platform::{BlobReader, BlobStore, LockGuard, Platform, StoreError};

/// The blob of a unit in the cache. It grows only at its end.
pub struct CachedBlob {
    /// The unit.
    pub unit: WeightUnit,
    /// Its length once it is complete.
    bytes: u64,
    /// Jobs that still use it.
    jobs_left: Cell<usize>,
    /// Bytes in the cache.
    stored: Cell<u64>,
    /// Bytes behind those that are being written.
    queued: Cell<u64>,
    /// Bytes behind those that are not written yet: opening a file takes longer than writing a small piece.
    buffered: RefCell<Vec<u8>>,
    /// A piece was not stored, so nothing behind it can be.
    storing_stopped: Cell<bool>,
    locked: Mutex<bool>,
    guard: RefCell<Option<LockGuard>>,
    reader: Mutex<Option<Rc<dyn BlobReader>>>,
}

impl CachedBlob {
    /// A blob that has `bytes` bytes once complete, of which `stored` are in the cache.
    pub fn new(unit: WeightUnit, bytes: u64, stored: Option<u64>) -> Self {
        Self {
            unit,
            bytes,
            jobs_left: Cell::new(0),
            stored: Cell::new(stored.unwrap_or(0)),
            queued: Cell::new(0),
            buffered: RefCell::default(),
            storing_stopped: Cell::new(false),
            locked: Mutex::new(false),
            guard: RefCell::new(None),
            reader: Mutex::new(None),
        }
    }

    /// Bytes in the cache.
    pub fn stored(&self) -> u64 {
        self.stored.get()
    }

    /// Bytes that can be read from the cache later: none if it broke.
    pub fn kept(&self) -> u64 {
        if self.storing_stopped.get() { 0 } else { self.stored() }
    }

    /// True if all of it is in the cache.
    pub fn is_complete(&self) -> bool {
        self.stored() >= self.bytes
    }

    /// Counts one more job that uses the blob.
    pub fn add_job(&self) {
        self.jobs_left.set(self.jobs_left.get() + 1);
    }

    /// A job is done with the blob; true if it was the last.
    pub fn job_done(&self) -> bool {
        self.jobs_left.set(self.jobs_left.get().saturating_sub(1));
        self.jobs_left.get() == 0
    }

    /// Buffers the part of `bytes`, which begin at `offset` in the blob, that continues the blob. Nothing if the blob has
    /// them already or lacks bytes before them.
    pub fn buffer(&self, offset: u64, bytes: &[u8]) {
        let mut buffered = self.buffered.borrow_mut();
        let end = self.stored() + self.queued.get() + buffered.len() as u64;
        if !self.storing_stopped.get() && (offset..offset + bytes.len() as u64).contains(&end) {
            buffered.extend_from_slice(&bytes[(end - offset) as usize..]);
        }
    }

    /// Takes everything that is buffered, with its offset, if that is at least `min` bytes. Pieces must be written in the
    /// order in which they were taken.
    pub fn take_buffered(&self, min: usize) -> Option<(u64, Vec<u8>)> {
        let mut buffered = self.buffered.borrow_mut();
        if buffered.is_empty() || buffered.len() < min {
            return None;
        }
        let offset = self.stored() + self.queued.get();
        self.queued.set(self.queued.get() + buffered.len() as u64);
        Some((offset, std::mem::take(&mut *buffered)))
    }

    /// `bytes` of the taken bytes are now in the cache.
    pub fn written(&self, bytes: u64) {
        self.stored.set(self.stored() + bytes);
        self.queued.set(self.queued.get() - bytes);
    }

    /// A piece will not be stored, so nothing behind it can be.
    pub fn stop_storing(&self) {
        self.storing_stopped.set(true);
    }

    /// True if it cannot be read, or not be written any further.
    pub fn is_given_up(&self) -> bool {
        self.storing_stopped.get()
    }

    /// Opens the blob, once.
    ///
    /// # Errors
    /// It cannot be opened.
    pub async fn reader(&self, store: &dyn BlobStore, model: ModelId) -> Result<Rc<dyn BlobReader>, StoreError> {
        let mut reader = self.reader.lock().await;
        if let Some(open) = reader.as_ref() {
            return Ok(open.clone());
        }
        let open = store.reader(BlobKey { model, name: BlobName::Unit(self.unit) }).await?;
        *reader = Some(open.clone());
        Ok(open)
    }

    /// Closes the blob; an open one can be neither written nor deleted.
    pub async fn close(&self) {
        self.reader.lock().await.take();
    }

    /// Waits, once, until no other tab downloads this unit, then looks up again what is stored. Without locks (an old
    /// browser) both download.
    pub async fn lock(&self, platform: &Platform, model: ModelId) {
        let mut locked = self.locked.lock().await;
        if *locked {
            return;
        }
        *locked = true;
        let name = BlobName::Unit(self.unit);
        match platform.store.lock(format!("potluck-unit-{model}-{name}")).await {
            Ok(guard) => *self.guard.borrow_mut() = Some(guard),
            Err(error) => return log::info!("no lock: {error}"),
        }
        if let Ok(stored) = platform.store.len(BlobKey { model, name }).await {
            self.stored.set(stored);
        }
    }

    /// Releases the lock to other tabs.
    pub fn release(&self) {
        self.guard.borrow_mut().take();
    }
}
