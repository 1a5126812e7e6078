//! Requests to the storage worker.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::pin::pin;
use std::rc::Rc;

use futures::FutureExt;
use futures::channel::oneshot;
use futures::future::{Either, LocalBoxFuture, Shared, select};
use js_sys::{Array, ArrayBuffer};
use potluck_panel::BUILD;
use wasm_bindgen::prelude::Closure;
use wasm_bindgen::{JsCast, JsValue};
use web_sys::{ErrorEvent, MessageEvent, Worker};

use super::super::opfs::store_error;
use super::super::storage::{Done, Reply, Request, UP, What};
use super::super::time::pause_for;
use crate::platform::StoreError;

/// The reply to a request, with its buffer.
pub type Answer = Result<(Done, Option<ArrayBuffer>), StoreError>;

type Waiting = Rc<RefCell<HashMap<u32, oneshot::Sender<Answer>>>>;

/// Milliseconds that the worker may take to start. Without it, everything goes on without storage.
const START: i32 = 60_000;

/// The storage worker, and the requests it has not answered.
pub struct StorageWorker {
    worker: Option<Worker>,
    /// Resolves to true once the worker listens, to false if it failed.
    up: Shared<LocalBoxFuture<'static, bool>>,
    waiting: Waiting,
    next_id: Cell<u32>,
}

impl StorageWorker {
    /// Starts the worker.
    pub fn start() -> Self {
        let waiting = Waiting::default();
        let (up_sender, up) = oneshot::channel();
        let up_sender = Rc::new(RefCell::new(Some(up_sender)));
        let worker = Worker::new(&format!("storage_loader.js?v={BUILD}")).ok();
        if let Some(worker) = &worker {
            let (requests, up_once) = (waiting.clone(), up_sender.clone());
            let on_message = Closure::<dyn FnMut(MessageEvent)>::new(move |event: MessageEvent| {
                if event.data().as_string().as_deref() == Some(UP) {
                    if let Some(up) = up_once.borrow_mut().take() {
                        // Fails if nothing has used the storage yet.
                        let _ = up.send(true);
                    }
                } else {
                    deliver(&requests, &event.data());
                }
            });
            worker.set_onmessage(Some(on_message.as_ref().unchecked_ref()));
            on_message.forget();
            let requests = waiting.clone();
            let on_error = Closure::<dyn FnMut(ErrorEvent)>::new(move |event: ErrorEvent| {
                // Otherwise it goes on to the page, which takes it for an error of this worker.
                event.prevent_default();
                log::warn!("the storage worker failed: {}", event.message());
                up_sender.borrow_mut().take();
                // Every request fails, and its caller goes on without storage.
                requests.borrow_mut().clear();
            });
            worker.set_onerror(Some(on_error.as_ref().unchecked_ref()));
            on_error.forget();
        }
        let up = async { matches!(select(up, pin!(pause_for(START))).await, Either::Left((Ok(true), _))) };
        let up = up.boxed_local().shared();
        Self { worker, up, waiting, next_id: Cell::default() }
    }

    /// Sends a request, with a buffer that is transferred, and waits for the reply.
    ///
    /// # Errors
    /// The worker does not run, or the storage failed.
    pub async fn request(&self, what: What, buffer: Option<ArrayBuffer>) -> Answer {
        let gone = || StoreError::Unavailable("the storage worker does not run".to_owned());
        let worker = self.worker.as_ref().ok_or_else(gone)?;
        if !self.up.clone().await {
            return Err(gone());
        }
        let id = self.next_id.get();
        self.next_id.set(id.wrapping_add(1));
        let json = serde_json::to_string(&Request { id, what });
        let json = json.map_err(|error| StoreError::Failed(error.to_string()))?;
        let parts = Array::of1(&json.into());
        let transfer = Array::new();
        if let Some(buffer) = buffer {
            parts.push(&buffer);
            transfer.push(&buffer);
        }
        let (sender, answer) = oneshot::channel();
        self.waiting.borrow_mut().insert(id, sender);
        worker.post_message_with_transfer(&parts, &transfer).map_err(|error| store_error(&error))?;
        answer.await.unwrap_or_else(|_| Err(gone()))
    }
}

fn deliver(waiting: &Waiting, data: &JsValue) {
    let Some(parts) = data.dyn_ref::<Array>() else { return };
    let reply = parts.get(0).as_string().and_then(|json| serde_json::from_str::<Reply>(&json).ok());
    let Some(Reply { id, result }) = reply else { return log::error!("a reply of the storage cannot be read") };
    let buffer = parts.get(1).dyn_into::<ArrayBuffer>().ok();
    if let Some(sender) = waiting.borrow_mut().remove(&id) {
        // Fails if the load that asked was replaced.
        let _ = sender.send(result.map(|done| (done, buffer)));
    }
}
