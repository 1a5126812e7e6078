//! Writes a load's bytes to the cache, beside the upload.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use futures::channel::mpsc;
use futures::{SinkExt, StreamExt};
use potluck_plan::ModelId;

use super::cached_blob::CachedBlob;
use crate::blob::{BlobKey, BlobName};
use crate::platform::{BlobStore, StoreError};

/// Bytes of a unit that are written to the cache at once, if it has that many: each write opens the file, which takes a
/// browser 15 to 30 ms.
const APPEND_BYTES: usize = 4 << 20;
/// Pieces that may wait to be written. Bounds the memory that a slow storage holds up.
pub(super) const WAITING_WRITES: usize = 2;

/// Writes pieces as they come. After the first failure nothing is written any more.
pub(super) struct CacheWriter<'a> {
    pub store: &'a dyn BlobStore,
    pub model: ModelId,
    /// Receives a sentence for people.
    pub notice: &'a dyn Fn(String),
    /// Bytes are still written.
    pub storing: Cell<bool>,
    /// The first failure.
    pub failed: RefCell<Option<StoreError>>,
}

impl CacheWriter<'_> {
    pub async fn run(&self, writes: mpsc::Receiver<BlobWrite>) {
        writes.for_each(|write| self.write(write)).await;
    }

    async fn write(&self, write: BlobWrite) {
        let BlobWrite { blob, piece, last } = write;
        if let Some((offset, bytes)) = piece.filter(|_| self.storing.get()) {
            let len = bytes.len() as u64;
            let key = BlobKey { model: self.model, name: BlobName::Unit(blob.unit) };
            match self.store.append(key, offset, bytes).await {
                Ok(()) => blob.written(len),
                Err(error) => {
                    self.storing.set(false);
                    (self.notice)(format!("{error} The model is used without keeping it."));
                    *self.failed.borrow_mut() = Some(error);
                }
            }
        }
        if last {
            blob.release();
        }
    }
}

/// A piece of a unit on its way to the cache.
pub(super) struct BlobWrite {
    blob: Rc<CachedBlob>,
    /// Offset and bytes.
    piece: Option<(u64, Vec<u8>)>,
    /// No piece of the unit follows.
    last: bool,
}

impl BlobWrite {
    /// Queues what is buffered of a unit if that is enough for one write.
    pub async fn send_buffered(blob: &Rc<CachedBlob>, queue: &mut mpsc::Sender<BlobWrite>) {
        if let Some(piece) = blob.take_buffered(APPEND_BYTES) {
            // The receiver lives as long as the load.
            let _ = queue.send(BlobWrite { blob: blob.clone(), piece: Some(piece), last: false }).await;
        }
    }

    /// Queues the rest of a unit.
    pub async fn send_rest(blob: &Rc<CachedBlob>, queue: &mut mpsc::Sender<BlobWrite>) {
        let _ = queue.send(BlobWrite { blob: blob.clone(), piece: blob.take_buffered(0), last: true }).await;
    }
}
