//! The storage worker: writes to OPFS, lists and deletes. Requests and answers are `[JSON, buffer?]`.

use std::rc::Rc;

use js_sys::{Array, ArrayBuffer, Uint8Array};
use potluck_plan::ModelId;
use serde::{Deserialize, Serialize};
use wasm_bindgen::prelude::Closure;
use wasm_bindgen::{JsCast, JsValue};
use web_sys::MessageEvent;

use super::opfs::{self, Mode, store_error};
use super::{js, logging};
use crate::blob::{BlobKey, BlobName};
use crate::platform::{StoreError, Usage};

/// What the worker says when it can hear.
pub(super) const UP: &str = "up";

/// To the storage worker.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Request {
    pub id: u32,
    pub what: What,
}

/// What to do.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum What {
    /// The blobs of a model.
    List(ModelId),
    /// The length of a blob.
    Len(BlobKey),
    /// Add the buffer's bytes.
    Append(BlobKey, u64),
    /// Read bytes into a buffer.
    Read(BlobKey, u64, u64),
    /// Delete a blob.
    Delete(BlobKey),
    /// Delete a model.
    DeleteModel(ModelId),
    /// The models.
    Models,
    /// How full it is.
    Usage,
}

/// From the storage worker.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Reply {
    pub id: u32,
    pub result: Result<Done, StoreError>,
}

/// What was done.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Done {
    List(Vec<(BlobName, u64)>),
    Len(u64),
    Models(Vec<ModelId>),
    Usage(Usage),
    /// The bytes are in the buffer beside.
    Bytes,
    Nothing,
}

/// The storage worker's program.
pub fn run() {
    logging::start();
    let scope = js::worker();
    // Writes must not overtake each other: every request waits for the one before it.
    let turns = Rc::new(futures::lock::Mutex::new(()));
    let handler = Closure::<dyn FnMut(MessageEvent)>::new(move |event: MessageEvent| {
        let Ok(parts) = event.data().dyn_into::<Array>() else { return };
        let request = parts.get(0).as_string().and_then(|json| serde_json::from_str::<Request>(&json).ok());
        let Some(request) = request else { return log::error!("a request to the storage cannot be read") };
        let buffer = parts.get(1).dyn_into::<ArrayBuffer>().ok();
        let turns = turns.clone();
        wasm_bindgen_futures::spawn_local(async move {
            let _turn = turns.lock().await;
            let mut answer = None;
            let result = perform(request.what, buffer, &mut answer).await;
            reply(&Reply { id: request.id, result }, answer);
        });
    });
    scope.set_onmessage(Some(handler.as_ref().unchecked_ref()));
    // It lives as long as the worker.
    handler.forget();
    if let Err(error) = scope.post_message(&UP.into()) {
        log::error!("the storage worker cannot speak: {}", js::error_text(&error));
    }
}

async fn perform(
    what: What,
    buffer: Option<ArrayBuffer>,
    answer: &mut Option<ArrayBuffer>,
) -> Result<Done, StoreError> {
    let failed = |error: JsValue| store_error(&error);
    Ok(match what {
        What::List(model) => Done::List(opfs::list(model).await.map_err(failed)?),
        What::Len(key) => Done::Len(opfs::len(key).await.map_err(failed)?),
        What::Models => Done::Models(opfs::models().await.map_err(failed)?),
        What::Usage => Done::Usage(opfs::usage().await.map_err(failed)?),
        What::Delete(key) => {
            opfs::delete(key).await.map_err(failed)?;
            Done::Nothing
        }
        What::DeleteModel(model) => {
            opfs::delete_model(model).await.map_err(failed)?;
            Done::Nothing
        }
        What::Append(key, offset) => {
            let buffer = buffer.ok_or_else(|| StoreError::Failed("no bytes came".to_owned()))?;
            let bytes = Uint8Array::new(&buffer);
            let file = opfs::open(key, Mode::Write).await.map_err(failed)?;
            let len = file.size().map_err(failed)?;
            if len != offset {
                return Err(StoreError::Failed(format!("a blob has {len} bytes, {offset} were expected")));
            }
            file.append(offset, &bytes)?;
            Done::Nothing
        }
        What::Read(key, offset, len) => {
            let bytes = u32::try_from(len).map(Uint8Array::new_with_length);
            let bytes = bytes.map_err(|_| StoreError::Failed("too many bytes at once".to_owned()))?;
            opfs::open(key, Mode::Read).await.map_err(failed)?.fill(offset, &bytes)?;
            *answer = Some(bytes.buffer());
            Done::Bytes
        }
    })
}

fn reply(reply: &Reply, buffer: Option<ArrayBuffer>) {
    let json = match serde_json::to_string(reply) {
        Ok(json) => json,
        Err(error) => return log::error!("an answer of the storage cannot be written: {error}"),
    };
    let parts = Array::of1(&json.into());
    let transfer = Array::new();
    if let Some(buffer) = buffer {
        parts.push(&buffer);
        transfer.push(&buffer);
    }
    if let Err(error) = js::worker().post_message_with_transfer(&parts, &transfer) {
        log::error!("the storage worker cannot answer: {}", js::error_text(&error));
    }
}
