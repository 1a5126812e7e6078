//! The storage worker: writes to OPFS, lists and deletes. Requests and replies are `[JSON, buffer?]`.

use std::rc::Rc;

use futures::lock::Mutex;
use js_sys::{Array, ArrayBuffer, Uint8Array};
use potluck_plan::ModelId;
use serde::{Deserialize, Serialize};
use wasm_bindgen::prelude::Closure;
use wasm_bindgen::{JsCast, JsValue};
use web_sys::MessageEvent;

use super::open_file::{self, Mode};
use super::opfs::{self, store_error};
use super::packs::{Packs, close_when_idle, lock, tidy};
use super::{js, logging};
use crate::blob::{BlobKey, BlobName};
use crate::pack::Index;
use crate::platform::{StoreError, Usage};

/// The worker's first message: it listens.
pub(super) const UP: &str = "up";

/// A request to the storage worker.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Request {
    pub id: u32,
    pub what: What,
}

/// The kind of a request.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum What {
    /// The blobs of a model; the journal of its units is in the buffer.
    List(ModelId),
    /// The journal of a model's units after this many bytes of this generation.
    Journal(ModelId, Option<u32>, u64),
    /// The length of a blob that is not a unit.
    Len(BlobKey),
    /// Append this many bytes from the start of the buffer, which is returned.
    Append(BlobKey, u64, u32),
    /// Read bytes into a buffer.
    Read(BlobKey, u64, u64),
    /// Delete a blob.
    Delete(BlobKey),
    /// Delete a model.
    DeleteModel(ModelId),
    /// The models.
    Models,
    /// How much of the storage is used.
    Usage,
}

/// A reply of the storage worker.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Reply {
    pub id: u32,
    pub result: Result<Done, StoreError>,
}

/// The result of a request.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Done {
    List(Vec<(BlobName, u64)>),
    Len(u64),
    /// The journal from this offset on is in the buffer.
    Journal(u64),
    Models(Vec<ModelId>),
    Usage(Usage),
    /// The bytes are in the buffer.
    Bytes,
    Nothing,
}

/// Runs the storage worker.
pub fn run() {
    logging::start();
    let scope = js::worker();
    // Writes must stay in order: every request waits for the one before it.
    let turns: Rc<Mutex<Packs>> = Rc::default();
    let handler = Closure::<dyn FnMut(MessageEvent)>::new(move |event: MessageEvent| {
        let Ok(parts) = event.data().dyn_into::<Array>() else { return };
        let request = parts.get(0).as_string().and_then(|json| serde_json::from_str::<Request>(&json).ok());
        let Some(request) = request else { return log::error!("a request to the storage cannot be read") };
        let buffer = parts.get(1).dyn_into::<ArrayBuffer>().ok();
        let turns = turns.clone();
        wasm_bindgen_futures::spawn_local(async move {
            let mut packs = turns.lock().await;
            let mut answer = None;
            let result = perform(request.what, buffer, &mut packs, &mut answer).await;
            close_when_idle(&turns, &mut packs);
            reply(&Reply { id: request.id, result }, answer);
        });
    });
    scope.set_onmessage(Some(handler.as_ref().unchecked_ref()));
    // It lives as long as the worker.
    handler.forget();
    if let Err(error) = scope.post_message(&UP.into()) {
        log::error!("the storage worker cannot send: {}", js::error_text(&error));
    }
}

async fn perform(
    what: What,
    buffer: Option<ArrayBuffer>,
    packs: &mut Packs,
    answer: &mut Option<ArrayBuffer>,
) -> Result<Done, StoreError> {
    let failed = |error: JsValue| store_error(&error);
    Ok(match what {
        What::List(model) => {
            let (blobs, journal) = list(model, packs).await?;
            *answer = Some(Uint8Array::from(journal.as_slice()).buffer());
            Done::List(blobs)
        }
        What::Journal(model, generation, known) => {
            let (start, bytes) = packs.journal(model, generation, known).await?;
            *answer = Some(Uint8Array::from(bytes.as_slice()).buffer());
            Done::Journal(start)
        }
        What::Len(key) => Done::Len(opfs::len(key).await.map_err(failed)?),
        What::Models => Done::Models(opfs::models().await.map_err(failed)?),
        What::Usage => Done::Usage(opfs::usage().await.map_err(failed)?),
        What::Delete(BlobKey { model, name: BlobName::Unit(unit) }) => {
            packs.forget(model, unit).await?;
            Done::Nothing
        }
        What::Delete(key) => {
            opfs::delete(key.model, &key.name.to_string()).await.map_err(failed)?;
            Done::Nothing
        }
        What::DeleteModel(model) => {
            packs.close();
            opfs::delete_model(model).await.map_err(failed)?;
            Done::Nothing
        }
        What::Append(key, offset, len) => {
            let buffer = buffer.ok_or_else(|| StoreError::Failed("no bytes came".to_owned()))?;
            let bytes = Uint8Array::new_with_byte_offset_and_length(&buffer, 0, len.min(buffer.byte_length()));
            append(key, offset, &bytes, packs).await?;
            *answer = Some(buffer);
            Done::Nothing
        }
        What::Read(key, offset, len) => {
            let bytes = u32::try_from(len).map(Uint8Array::new_with_length);
            let bytes = bytes.map_err(|_| StoreError::Failed("too many bytes at once".to_owned()))?;
            match key.name {
                BlobName::Unit(unit) => packs.read(key.model, unit, offset, &bytes).await?,
                name => {
                    let file = open_file::open(key.model, name.to_string(), Mode::Read).await.map_err(failed)?;
                    file.fill(offset, &bytes)?;
                }
            }
            *answer = Some(bytes.buffer());
            Done::Bytes
        }
    })
}

async fn append(key: BlobKey, offset: u64, bytes: &Uint8Array, packs: &mut Packs) -> Result<(), StoreError> {
    if let BlobName::Unit(unit) = key.name {
        return packs.append(key.model, unit, offset, bytes).await;
    }
    let file =
        open_file::open(key.model, key.name.to_string(), Mode::Write).await.map_err(|error| store_error(&error))?;
    let len = file.size()?;
    if len != offset {
        return Err(StoreError::Failed(format!("a blob has {len} bytes, {offset} were expected")));
    }
    file.append(offset, bytes)
}

/// The small blobs of a model with their lengths, and its journal. Deletes packs that are not in the journal.
async fn list(model: ModelId, packs: &mut Packs) -> Result<(Vec<(BlobName, u64)>, Vec<u8>), StoreError> {
    let _lock = lock(model).await;
    let (_, journal) = packs.journal(model, None, 0).await?;
    let mut index = Index::default();
    index.read(&journal);
    let mut blobs = Vec::new();
    for entry in tidy(model, index.generation()).await? {
        if let Some(name) = BlobName::parse(&entry.name) {
            blobs.push((name, entry.size().await.map_err(|error| store_error(&error))?));
        }
    }
    Ok((blobs, journal))
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
        log::error!("the storage worker cannot reply: {}", js::error_text(&error));
    }
}
