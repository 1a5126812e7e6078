//! The cache, as the node worker sees it: writes go to the storage worker, reads straight from OPFS.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;

use futures::FutureExt;
use futures::channel::oneshot;
use futures::future::{LocalBoxFuture, Shared};
use js_sys::{Array, ArrayBuffer, Uint8Array};
use potluck_engine::Staging;
use potluck_panel::BUILD;
use potluck_plan::ModelId;
use wasm_bindgen::prelude::Closure;
use wasm_bindgen::{JsCast, JsValue};
use web_sys::{ErrorEvent, MessageEvent, Worker};

use super::js;
use super::locks::{self, Ask};
use super::opfs::{self, Mode, OpenFile, store_error};
use super::storage::{Done, Reply, Request, UP, What};
use super::time::WorkerClock;
use crate::blob::{BlobKey, BlobName};
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
    /// Blobs that were read and are still to be closed.
    closing: Rc<RefCell<Vec<OpenFile>>>,
}

/// Milliseconds between two blobs being closed: closing blocks this worker for two or three, which hundreds of small units
/// must not cost a load.
const CLOSE_PAUSE: f64 = 10.0;

/// A blob that is open in this worker. Dropped, it is closed within a moment, and before this store writes or deletes.
struct Open {
    file: Option<OpenFile>,
    closing: Rc<RefCell<Vec<OpenFile>>>,
}

impl Drop for Open {
    fn drop(&mut self) {
        let idle = self.closing.borrow().is_empty();
        self.closing.borrow_mut().extend(self.file.take());
        if idle {
            let closing = self.closing.clone();
            wasm_bindgen_futures::spawn_local(async move {
                while !closing.borrow().is_empty() {
                    WorkerClock.sleep(CLOSE_PAUSE).await;
                    let next = closing.borrow_mut().pop();
                    drop(next);
                }
            });
        }
    }
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
        let read = match &self.file {
            Some(file) => file.fill(offset, &staging.js_view(at, len)),
            None => Err(unexpected()),
        };
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
        Self(Rc::new(Shop { worker, up, waiting, next: Cell::default(), closing: Rc::default() }))
    }

    async fn ask(self, what: What, bytes: Option<Vec<u8>>) -> Answer {
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
        if let Some(bytes) = bytes {
            let buffer = Uint8Array::from(bytes.as_slice()).buffer();
            parts.push(&buffer);
            transfer.push(&buffer);
        }
        let (sender, answer) = oneshot::channel();
        self.0.waiting.borrow_mut().insert(id, sender);
        worker.post_message_with_transfer(&parts, &transfer).map_err(|error| store_error(&error))?;
        answer.await.unwrap_or_else(|_| Err(gone()))
    }

    /// Closes what was read: an open blob can be neither written nor deleted.
    fn close(&self) {
        let files = std::mem::take(&mut *self.0.closing.borrow_mut());
        drop(files);
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
        let asked = self.clone().ask(What::List(model), None);
        Box::pin(async move {
            match asked.await?.0 {
                Done::List(blobs) => Ok(blobs.into_iter().collect()),
                _ => Err(unexpected()),
            }
        })
    }

    fn len(&self, key: BlobKey) -> LocalBoxFuture<'static, Result<u64, StoreError>> {
        let asked = self.clone().ask(What::Len(key), None);
        Box::pin(async move {
            match asked.await?.0 {
                Done::Len(len) => Ok(len),
                _ => Err(unexpected()),
            }
        })
    }

    fn append(&self, key: BlobKey, offset: u64, bytes: Vec<u8>) -> LocalBoxFuture<'static, Result<(), StoreError>> {
        self.close();
        let asked = self.clone().ask(What::Append(key, offset), Some(bytes));
        Box::pin(async move { asked.await.map(drop) })
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

    /// A file that is open in this worker, so that its bytes go straight into the mapped buffer; or the storage worker
    /// where it cannot be opened here.
    fn reader(&self, key: BlobKey) -> LocalBoxFuture<'static, Result<Rc<dyn BlobReader>, StoreError>> {
        let store = self.clone();
        Box::pin(async move {
            Ok(match opfs::open(key, Mode::Read).await {
                Ok(file) => Rc::new(Open { file: Some(file), closing: store.0.closing.clone() }) as Rc<dyn BlobReader>,
                Err(error) => {
                    log::info!("reading through the storage worker: {}", js::error_text(&error));
                    Rc::new(Remote { store, key })
                }
            })
        })
    }

    fn delete(&self, key: BlobKey) -> LocalBoxFuture<'static, Result<(), StoreError>> {
        self.close();
        let asked = self.clone().ask(What::Delete(key), None);
        Box::pin(async move { asked.await.map(drop) })
    }

    fn delete_model(&self, model: ModelId) -> LocalBoxFuture<'static, Result<(), StoreError>> {
        self.close();
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
}
