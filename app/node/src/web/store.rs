//! The cache, as the node worker sees it: writes go to the storage worker, reads straight from OPFS.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;

use futures::FutureExt;
use futures::channel::oneshot;
use futures::future::{LocalBoxFuture, Shared};
use futures::lock::Mutex;
use js_sys::{Array, ArrayBuffer, Uint8Array};
use potluck_engine::Staging;
use potluck_panel::BUILD;
use potluck_plan::{ModelId, WeightUnit};
use wasm_bindgen::prelude::Closure;
use wasm_bindgen::{JsCast, JsValue};
use web_sys::{ErrorEvent, MessageEvent, Worker};

use super::js;
use super::locks::{self, Ask};
use super::opfs::{self, Mode, OpenFile, store_error};
use super::storage::{Done, Reply, Request, UP, What};
use super::time::WorkerClock;
use crate::blob::{BlobKey, BlobName};
use crate::pack::{Extent, Index, Pack, slice};
use crate::platform::{BlobReader, BlobStore, Clock, LockGuard, StoreError, Usage};

type Answer = Result<(Done, Option<ArrayBuffer>), StoreError>;

/// OPFS through the storage worker.
#[derive(Clone)]
pub struct OpfsStore(Rc<Shop>);

struct Shop {
    worker: Option<Worker>,
    up: Shared<LocalBoxFuture<'static, bool>>,
    waiting: Rc<RefCell<HashMap<u32, oneshot::Sender<Answer>>>>,
    next: Cell<u32>,
    /// What the journals of models say, as far as they were read.
    indexes: RefCell<HashMap<ModelId, Index>>,
    shelf: Rc<RefCell<Shelf>>,
    /// This browser opens files for one context alone: it is the storage worker.
    alone: Cell<bool>,
    /// Buffers in which bytes went to the storage worker and that came back.
    spare: RefCell<Vec<ArrayBuffer>>,
}

/// Buffers that are kept for the next bytes to write. New ones for each piece would be left to the browser's collector, which
/// lets a hundred megabytes of them lie around.
const SPARE: usize = 3;
/// Sizes of such buffers are multiples of this.
const SPARE_STEP: u32 = 1 << 20;

/// Milliseconds for which a pack stays open that nobody reads any more: opening and closing block this worker for a few,
/// and a load returns to a pack again and again.
const IDLE: f64 = 250.0;

/// A pack that is open, being opened, or neither.
type Slot = Rc<Mutex<Option<Rc<OpenFile>>>>;

/// The packs that are open in this worker.
#[derive(Default)]
struct Shelf {
    packs: HashMap<(ModelId, Pack), Slot>,
    closing: bool,
}

impl Shelf {
    /// A pack that nobody reads now.
    fn unread(&self) -> Option<(ModelId, Pack)> {
        let read = |slot: &Slot| {
            // Who opens it now holds the slot as well.
            Rc::strong_count(slot) > 1
                || slot.try_lock().is_none_or(|file| file.as_ref().is_some_and(|file| Rc::strong_count(file) > 1))
        };
        self.packs.iter().find(|(_, slot)| !read(slot)).map(|(key, _)| *key)
    }
}

/// Closes packs that nobody reads, one at a time.
async fn close_unread(shelf: Rc<RefCell<Shelf>>) {
    loop {
        WorkerClock.sleep(IDLE).await;
        let unread = shelf.borrow().unread();
        if let Some(key) = unread {
            let slot = shelf.borrow_mut().packs.remove(&key);
            drop(slot);
        }
        let mut shelf = shelf.borrow_mut();
        if shelf.packs.is_empty() {
            shelf.closing = false;
            return;
        }
    }
}

/// A unit in a pack that is open in this worker.
struct Open {
    pack: Rc<OpenFile>,
    extents: Vec<Extent>,
}

/// A blob that the storage worker reads.
struct Remote {
    store: OpfsStore,
    key: BlobKey,
}

impl BlobReader for Remote {
    fn read<'a>(
        &'a self,
        offset: u64,
        len: u64,
        staging: &'a mut Staging,
        at: u64,
    ) -> LocalBoxFuture<'a, Result<(), StoreError>> {
        Box::pin(async move {
            let (done, buffer) = self.store.clone().ask(What::Read(self.key, offset, len), None).await?;
            let (Done::Bytes, Some(buffer)) = (done, buffer) else { return Err(unexpected()) };
            staging.js_view(at, len).set(&Uint8Array::new(&buffer), 0);
            Ok(())
        })
    }
}

impl BlobReader for Open {
    fn read<'a>(
        &'a self,
        offset: u64,
        len: u64,
        staging: &'a mut Staging,
        at: u64,
    ) -> LocalBoxFuture<'a, Result<(), StoreError>> {
        let extents = slice(&self.extents, offset, len).ok_or(StoreError::ShortRead);
        let read = extents.and_then(|extents| self.pack.gather(&extents, &staging.js_view(at, len)));
        Box::pin(std::future::ready(read))
    }
}

impl OpfsStore {
    /// Starts the storage worker.
    pub fn new() -> Self {
        let waiting: Rc<RefCell<HashMap<u32, oneshot::Sender<Answer>>>> = Rc::default();
        let (up_sender, up) = oneshot::channel();
        let up_sender = Rc::new(RefCell::new(Some(up_sender)));
        let worker = Worker::new(&format!("/storage_loader.js?v={BUILD}")).ok();
        if let Some(worker) = &worker {
            let (known, told) = (waiting.clone(), up_sender.clone());
            let on_message = Closure::<dyn FnMut(MessageEvent)>::new(move |event: MessageEvent| {
                if event.data().as_string().as_deref() == Some(UP) {
                    if let Some(up) = told.borrow_mut().take() {
                        // Nobody may have asked for the storage yet.
                        let _ = up.send(true);
                    }
                } else {
                    deliver(&known, &event.data());
                }
            });
            worker.set_onmessage(Some(on_message.as_ref().unchecked_ref()));
            on_message.forget();
            let known = waiting.clone();
            let on_error = Closure::<dyn FnMut(ErrorEvent)>::new(move |event: ErrorEvent| {
                log::error!("the storage worker failed: {}", event.message());
                up_sender.borrow_mut().take();
                // Whoever waits hears that there is no storage, and goes on without it.
                known.borrow_mut().clear();
            });
            worker.set_onerror(Some(on_error.as_ref().unchecked_ref()));
            on_error.forget();
        }
        let up = up.map(|up| up == Ok(true)).boxed_local().shared();
        Self(Rc::new(Shop {
            worker,
            up,
            waiting,
            next: Cell::default(),
            indexes: RefCell::default(),
            shelf: Rc::default(),
            alone: Cell::default(),
            spare: RefCell::default(),
        }))
    }

    async fn ask(self, what: What, buffer: Option<ArrayBuffer>) -> Answer {
        let gone = || StoreError::Unavailable("the storage worker does not run".to_owned());
        let worker = self.0.worker.as_ref().ok_or_else(gone)?;
        if !self.0.up.clone().await {
            return Err(gone());
        }
        let id = self.0.next.get();
        self.0.next.set(id.wrapping_add(1));
        let json = serde_json::to_string(&Request { id, what });
        let json = json.map_err(|error| StoreError::Failed(error.to_string()))?;
        let parts = Array::of1(&json.into());
        let transfer = Array::new();
        if let Some(buffer) = buffer {
            parts.push(&buffer);
            transfer.push(&buffer);
        }
        let (sender, answer) = oneshot::channel();
        self.0.waiting.borrow_mut().insert(id, sender);
        worker.post_message_with_transfer(&parts, &transfer).map_err(|error| store_error(&error))?;
        answer.await.unwrap_or_else(|_| Err(gone()))
    }

    /// A buffer for `len` bytes: one that came back, or a new one in the place of a smaller one.
    fn buffer(&self, len: u32) -> ArrayBuffer {
        let mut spare = self.0.spare.borrow_mut();
        if let Some(at) = spare.iter().position(|buffer| buffer.byte_length() >= len) {
            return spare.swap_remove(at);
        }
        spare.truncate(SPARE - 1);
        ArrayBuffer::new(len.next_multiple_of(SPARE_STEP))
    }

    /// Reads the news of a model's journal.
    async fn look(&self, model: ModelId) -> Result<(), StoreError> {
        let known = self.0.indexes.borrow().get(&model).map(|index| (index.generation(), index.next()));
        let (generation, known) = known.unwrap_or_default();
        let (done, buffer) = self.clone().ask(What::Journal(model, generation, known), None).await?;
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

    /// Where a unit lies: its pack, and what of it.
    async fn find(&self, model: ModelId, unit: WeightUnit) -> Result<(Pack, Vec<Extent>), StoreError> {
        let known = |store: &Self| {
            let indexes = store.0.indexes.borrow();
            let index = indexes.get(&model)?;
            let extents = index.extents(unit, 0, index.len(unit)).filter(|extents| !extents.is_empty())?;
            Some((Pack::of(unit, index.generation()?), extents))
        };
        if known(self).is_none() {
            self.look(model).await?;
        }
        known(self).ok_or(StoreError::ShortRead)
    }

    /// The pack, opened once for all its readers.
    async fn pack(&self, model: ModelId, pack: Pack) -> Result<Rc<OpenFile>, JsValue> {
        let slot = self.0.shelf.borrow_mut().packs.entry((model, pack)).or_default().clone();
        let mut open = slot.lock().await;
        if let Some(file) = open.as_ref() {
            return Ok(file.clone());
        }
        let file = Rc::new(opfs::open(model, pack.to_string(), Mode::Shared { create: false }).await?);
        if !std::mem::replace(&mut self.0.shelf.borrow_mut().closing, true) {
            wasm_bindgen_futures::spawn_local(close_unread(self.0.shelf.clone()));
        }
        *open = Some(file.clone());
        Ok(file)
    }

    /// Closes what nobody reads: an open file cannot be deleted.
    fn close(&self) {
        let mut shelf = self.0.shelf.borrow_mut();
        while let Some(key) = shelf.unread() {
            shelf.packs.remove(&key);
        }
    }
}

fn deliver(waiting: &RefCell<HashMap<u32, oneshot::Sender<Answer>>>, data: &JsValue) {
    let Some(parts) = data.dyn_ref::<Array>() else { return };
    let reply = parts.get(0).as_string().and_then(|json| serde_json::from_str::<Reply>(&json).ok());
    let Some(Reply { id, result }) = reply else { return log::error!("an answer of the storage cannot be read") };
    let buffer = parts.get(1).dyn_into::<ArrayBuffer>().ok();
    if let Some(sender) = waiting.borrow_mut().remove(&id) {
        // The load that asked may have been replaced.
        let _ = sender.send(result.map(|done| (done, buffer)));
    }
}

fn unexpected() -> StoreError {
    StoreError::Failed("the storage worker gave another answer than asked for".to_owned())
}

impl BlobStore for OpfsStore {
    fn list(&self, model: ModelId) -> LocalBoxFuture<'static, Result<BTreeMap<BlobName, u64>, StoreError>> {
        let store = self.clone();
        Box::pin(async move {
            let (done, buffer) = store.clone().ask(What::List(model), None).await?;
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
            store.look(model).await?;
            Ok(store.0.indexes.borrow().get(&model).map(|index| index.units().collect()).unwrap_or_default())
        })
    }

    fn len(&self, key: BlobKey) -> LocalBoxFuture<'static, Result<u64, StoreError>> {
        let store = self.clone();
        Box::pin(async move {
            if let BlobName::Unit(unit) = key.name {
                store.look(key.model).await?;
                return Ok(store.0.indexes.borrow().get(&key.model).map_or(0, |index| index.len(unit)));
            }
            match store.ask(What::Len(key), None).await?.0 {
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
            let (_, buffer) = store.clone().ask(What::Append(key, offset, len), Some(buffer)).await?;
            store.0.spare.borrow_mut().extend(buffer);
            Ok(())
        })
    }

    fn read(&self, key: BlobKey, offset: u64, len: u64) -> LocalBoxFuture<'static, Result<Vec<u8>, StoreError>> {
        let asked = self.clone().ask(What::Read(key, offset, len), None);
        Box::pin(async move {
            match asked.await? {
                (Done::Bytes, Some(buffer)) => Ok(Uint8Array::new(&buffer).to_vec()),
                _ => Err(unexpected()),
            }
        })
    }

    /// A unit's pack is opened in this worker, so that its bytes go straight into the mapped buffer; the storage worker reads
    /// where files are opened for one context alone, and what is no unit.
    fn reader(&self, key: BlobKey) -> LocalBoxFuture<'static, Result<Rc<dyn BlobReader>, StoreError>> {
        let store = self.clone();
        Box::pin(async move {
            let BlobName::Unit(unit) = key.name else {
                return Ok(Rc::new(Remote { store, key }) as Rc<dyn BlobReader>);
            };
            let (pack, extents) = store.find(key.model, unit).await?;
            if store.0.alone.get() {
                return Ok(Rc::new(Remote { store, key }) as Rc<dyn BlobReader>);
            }
            match store.pack(key.model, pack).await {
                Ok(pack) if pack.is_shared() => Ok(Rc::new(Open { pack, extents }) as Rc<dyn BlobReader>),
                Ok(pack) => {
                    log::info!("reading through the storage worker: this browser opens files for one context alone");
                    drop(pack);
                    store.0.alone.set(true);
                    store.close();
                    Ok(Rc::new(Remote { store, key }) as Rc<dyn BlobReader>)
                }
                Err(error) => {
                    log::info!("reading through the storage worker: {}", js::error_text(&error));
                    Ok(Rc::new(Remote { store, key }) as Rc<dyn BlobReader>)
                }
            }
        })
    }

    fn delete(&self, key: BlobKey) -> LocalBoxFuture<'static, Result<(), StoreError>> {
        let asked = self.clone().ask(What::Delete(key), None);
        Box::pin(async move { asked.await.map(drop) })
    }

    fn delete_model(&self, model: ModelId) -> LocalBoxFuture<'static, Result<(), StoreError>> {
        self.close();
        self.0.indexes.borrow_mut().remove(&model);
        let asked = self.clone().ask(What::DeleteModel(model), None);
        Box::pin(async move { asked.await.map(drop) })
    }

    fn models(&self) -> LocalBoxFuture<'static, Result<Vec<ModelId>, StoreError>> {
        let asked = self.clone().ask(What::Models, None);
        Box::pin(async move {
            match asked.await?.0 {
                Done::Models(models) => Ok(models),
                _ => Err(unexpected()),
            }
        })
    }

    fn usage(&self) -> LocalBoxFuture<'static, Result<Usage, StoreError>> {
        let asked = self.clone().ask(What::Usage, None);
        Box::pin(async move {
            match asked.await?.0 {
                Done::Usage(usage) => Ok(usage),
                _ => Err(unexpected()),
            }
        })
    }

    fn lock(&self, name: String) -> LocalBoxFuture<'static, Result<LockGuard, StoreError>> {
        Box::pin(async move {
            let navigator: JsValue = js::worker().navigator().into();
            match locks::request(&navigator, &name, Ask::Wait).await {
                Ok(Some(lock)) => Ok(Box::new(lock) as LockGuard),
                Ok(None) => Err(StoreError::Unavailable("the lock was not given".to_owned())),
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
