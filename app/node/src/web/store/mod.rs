//! The cache as the node worker sees it: the storage worker writes, this worker reads straight from OPFS.

mod open_files;
mod worker;

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;

use futures::future::LocalBoxFuture;
use js_sys::{ArrayBuffer, Uint8Array};
use potluck_engine::StagingPart;
use potluck_plan::{ModelId, WeightUnit};
use wasm_bindgen::JsValue;

use self::open_files::OpenFileCache;
use self::worker::{Answer, StorageWorker};
use super::js;
use super::locks::{self, LockRequest};
use super::open_file::OpenFile;
use super::storage::{Done, What};
use crate::blob::{BlobKey, BlobName};
use crate::pack::{Extent, Index, Pack, slice};
use crate::platform::{BlobReader, BlobStore, LockGuard, StoreError, Usage};

/// Buffers that are kept for the next bytes to write. A new one for each piece would wait for the browser's garbage collector,
/// which lets a hundred megabytes of them accumulate.
const SPARE_BUFFERS: usize = 3;
/// The size of such a buffer is a multiple of this.
const SPARE_BUFFER_STEP: u32 = 1 << 20;

/// OPFS, through the storage worker. Cheap to clone.
#[derive(Clone)]
pub struct OpfsStore(Rc<Inner>);

struct Inner {
    worker: StorageWorker,
    /// The journals of models, as far as they were read.
    indexes: RefCell<HashMap<ModelId, Index>>,
    open_files: OpenFileCache,
    /// In this browser only one context can have a file open: the storage worker reads.
    exclusive_files: Cell<bool>,
    /// Buffers that the storage worker returned.
    spare_buffers: RefCell<Vec<ArrayBuffer>>,
}

/// A unit in a pack that is open in this worker.
struct LocalReader {
    pack: Rc<OpenFile>,
    extents: Vec<Extent>,
}

impl BlobReader for LocalReader {
    fn read(&self, offset: u64, part: StagingPart) -> LocalBoxFuture<'static, Result<(), StoreError>> {
        let extents = slice(&self.extents, offset, part.len()).ok_or(StoreError::ShortRead);
        let read = extents.and_then(|extents| self.pack.gather(&extents, part.js_view()));
        Box::pin(std::future::ready(read))
    }
}

/// A blob that the storage worker reads.
struct WorkerReader {
    store: OpfsStore,
    key: BlobKey,
}

impl BlobReader for WorkerReader {
    fn read(&self, offset: u64, part: StagingPart) -> LocalBoxFuture<'static, Result<(), StoreError>> {
        let (store, key) = (self.store.clone(), self.key);
        Box::pin(async move {
            let (done, buffer) = store.request(What::Read(key, offset, part.len()), None).await?;
            let (Done::Bytes, Some(buffer)) = (done, buffer) else { return Err(unexpected()) };
            part.js_view().set(&Uint8Array::new(&buffer), 0);
            Ok(())
        })
    }
}

impl OpfsStore {
    /// Starts the storage worker.
    pub fn new() -> Self {
        Self(Rc::new(Inner {
            worker: StorageWorker::start(),
            indexes: RefCell::default(),
            open_files: OpenFileCache::default(),
            exclusive_files: Cell::default(),
            spare_buffers: RefCell::default(),
        }))
    }

    async fn request(self, what: What, buffer: Option<ArrayBuffer>) -> Answer {
        self.0.worker.request(what, buffer).await
    }

    /// A buffer of at least `len` bytes: a spare one, or a new one that replaces a spare one that is too small.
    fn buffer(&self, len: u32) -> ArrayBuffer {
        let mut spare = self.0.spare_buffers.borrow_mut();
        if let Some(at) = spare.iter().position(|buffer| buffer.byte_length() >= len) {
            return spare.swap_remove(at);
        }
        spare.truncate(SPARE_BUFFERS - 1);
        ArrayBuffer::new(len.next_multiple_of(SPARE_BUFFER_STEP))
    }

    /// Reads what is new in a model's journal.
    async fn refresh_index(&self, model: ModelId) -> Result<(), StoreError> {
        let known = self.0.indexes.borrow().get(&model).map(|index| (index.generation(), index.next()));
        let (generation, known) = known.unwrap_or_default();
        let (done, buffer) = self.clone().request(What::Journal(model, generation, known), None).await?;
        let (Done::Journal(start), Some(buffer)) = (done, buffer) else { return Err(unexpected()) };
        let mut indexes = self.0.indexes.borrow_mut();
        let index = indexes.entry(model).or_default();
        if start != index.next() {
            *index = Index::default();
        }
        if start == index.next() {
            index.read(&Uint8Array::new(&buffer).to_vec());
        }
        Ok(())
    }

    /// Finds a unit: its pack, and the extents in it.
    async fn locate(&self, model: ModelId, unit: WeightUnit) -> Result<(Pack, Vec<Extent>), StoreError> {
        let known = |store: &Self| {
            let indexes = store.0.indexes.borrow();
            let index = indexes.get(&model)?;
            let extents = index.extents(unit, 0, index.len(unit)).filter(|extents| !extents.is_empty())?;
            Some((Pack::of(unit, index.generation()?), extents))
        };
        if known(self).is_none() {
            self.refresh_index(model).await?;
        }
        known(self).ok_or(StoreError::ShortRead)
    }
}

fn unexpected() -> StoreError {
    StoreError::Failed("the storage worker sent a reply to another request".to_owned())
}

impl BlobStore for OpfsStore {
    fn list(&self, model: ModelId) -> LocalBoxFuture<'static, Result<BTreeMap<BlobName, u64>, StoreError>> {
        let store = self.clone();
        Box::pin(async move {
            let (done, buffer) = store.clone().request(What::List(model), None).await?;
            let (Done::List(blobs), Some(buffer)) = (done, buffer) else { return Err(unexpected()) };
            let mut index = Index::default();
            index.read(&Uint8Array::new(&buffer).to_vec());
            let units = index.units().map(|(unit, len)| (BlobName::Unit(unit), len));
            let all = blobs.into_iter().chain(units).collect();
            store.0.indexes.borrow_mut().insert(model, index);
            Ok(all)
        })
    }

    fn units(&self, model: ModelId) -> LocalBoxFuture<'static, Result<BTreeMap<WeightUnit, u64>, StoreError>> {
        let store = self.clone();
        Box::pin(async move {
            store.refresh_index(model).await?;
            Ok(store.0.indexes.borrow().get(&model).map(|index| index.units().collect()).unwrap_or_default())
        })
    }

    fn len(&self, key: BlobKey) -> LocalBoxFuture<'static, Result<u64, StoreError>> {
        let store = self.clone();
        Box::pin(async move {
            if let BlobName::Unit(unit) = key.name {
                store.refresh_index(key.model).await?;
                return Ok(store.0.indexes.borrow().get(&key.model).map_or(0, |index| index.len(unit)));
            }
            match store.request(What::Len(key), None).await?.0 {
                Done::Len(len) => Ok(len),
                _ => Err(unexpected()),
            }
        })
    }

    fn append(&self, key: BlobKey, offset: u64, bytes: Vec<u8>) -> LocalBoxFuture<'static, Result<(), StoreError>> {
        let store = self.clone();
        Box::pin(async move {
            let len =
                u32::try_from(bytes.len()).map_err(|_| StoreError::Failed("too many bytes at once".to_owned()))?;
            let buffer = store.buffer(len);
            Uint8Array::new_with_byte_offset_and_length(&buffer, 0, len).copy_from(&bytes);
            drop(bytes);
            let (_, buffer) = store.clone().request(What::Append(key, offset, len), Some(buffer)).await?;
            store.0.spare_buffers.borrow_mut().extend(buffer);
            Ok(())
        })
    }

    fn read(&self, key: BlobKey, offset: u64, len: u64) -> LocalBoxFuture<'static, Result<Vec<u8>, StoreError>> {
        let reply = self.clone().request(What::Read(key, offset, len), None);
        Box::pin(async move {
            match reply.await? {
                (Done::Bytes, Some(buffer)) => Ok(Uint8Array::new(&buffer).to_vec()),
                _ => Err(unexpected()),
            }
        })
    }

    /// Units are read in this worker, straight from their pack into the mapped buffer. The storage worker reads everything else,
    /// and also units in browsers where only one context can have a file open.
    fn reader(&self, key: BlobKey) -> LocalBoxFuture<'static, Result<Rc<dyn BlobReader>, StoreError>> {
        let store = self.clone();
        Box::pin(async move {
            let BlobName::Unit(unit) = key.name else {
                return Ok(Rc::new(WorkerReader { store, key }) as Rc<dyn BlobReader>);
            };
            let (pack, extents) = store.locate(key.model, unit).await?;
            if store.0.exclusive_files.get() {
                return Ok(Rc::new(WorkerReader { store, key }) as Rc<dyn BlobReader>);
            }
            match store.0.open_files.open(key.model, pack).await {
                Ok(pack) if pack.is_shared() => Ok(Rc::new(LocalReader { pack, extents }) as Rc<dyn BlobReader>),
                Ok(pack) => {
                    log::info!(
                        "reading through the storage worker: in this browser only one context can have a file open"
                    );
                    drop(pack);
                    store.0.exclusive_files.set(true);
                    store.0.open_files.close_unused();
                    Ok(Rc::new(WorkerReader { store, key }) as Rc<dyn BlobReader>)
                }
                Err(error) => {
                    log::info!("reading through the storage worker: {}", js::error_text(&error));
                    Ok(Rc::new(WorkerReader { store, key }) as Rc<dyn BlobReader>)
                }
            }
        })
    }

    fn delete(&self, key: BlobKey) -> LocalBoxFuture<'static, Result<(), StoreError>> {
        let reply = self.clone().request(What::Delete(key), None);
        Box::pin(async move { reply.await.map(drop) })
    }

    fn delete_model(&self, model: ModelId) -> LocalBoxFuture<'static, Result<(), StoreError>> {
        self.0.open_files.close_unused();
        self.0.indexes.borrow_mut().remove(&model);
        let reply = self.clone().request(What::DeleteModel(model), None);
        Box::pin(async move { reply.await.map(drop) })
    }

    fn models(&self) -> LocalBoxFuture<'static, Result<Vec<ModelId>, StoreError>> {
        let reply = self.clone().request(What::Models, None);
        Box::pin(async move {
            match reply.await?.0 {
                Done::Models(models) => Ok(models),
                _ => Err(unexpected()),
            }
        })
    }

    fn usage(&self) -> LocalBoxFuture<'static, Result<Usage, StoreError>> {
        let reply = self.clone().request(What::Usage, None);
        Box::pin(async move {
            match reply.await?.0 {
                Done::Usage(usage) => Ok(usage),
                _ => Err(unexpected()),
            }
        })
    }

    fn lock(&self, name: String) -> LocalBoxFuture<'static, Result<LockGuard, StoreError>> {
        Box::pin(async move {
            let navigator: JsValue = js::worker().navigator().into();
            match locks::request(&navigator, &name, LockRequest::Wait).await {
                Ok(Some(lock)) => Ok(Box::new(lock) as LockGuard),
                Ok(None) => Err(StoreError::Unavailable("the lock was not granted".to_owned())),
                Err(error) => Err(StoreError::Unavailable(js::error_text(&error))),
            }
        })
    }

    fn is_awaited(&self, name: String) -> LocalBoxFuture<'static, bool> {
        Box::pin(async move {
            let navigator: JsValue = js::worker().navigator().into();
            locks::is_awaited(&navigator, &name).await.unwrap_or(false)
        })
    }
}
