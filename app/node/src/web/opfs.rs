//! The origin's private file system: `weights/<model id>/<blob>`.

use std::cell::RefCell;

use futures::channel::oneshot;
use futures::future::join_all;
use js_sys::Uint8Array;
use wasm_bindgen::{JsCast, JsValue};
use wasm_bindgen_futures::JsFuture;
use web_sys::{
    File, FileSystemDirectoryHandle, FileSystemFileHandle, FileSystemGetDirectoryOptions, FileSystemGetFileOptions,
    FileSystemReadWriteOptions, FileSystemRemoveOptions, FileSystemSyncAccessHandle,
};

use super::js::{self, error_name, error_text};
use crate::blob::{BlobKey, BlobName};
use crate::platform::{StoreError, Usage};
use potluck_plan::ModelId;

const FOLDER: &str = "weights";

/// An exception as a typed error.
pub fn store_error(error: &JsValue) -> StoreError {
    match error_name(error).as_str() {
        "QuotaExceededError" => StoreError::Full,
        "SecurityError" | "NotSupportedError" => StoreError::Unavailable(error_text(error)),
        _ => StoreError::Failed(error_text(error)),
    }
}

fn is_missing(error: &JsValue) -> bool {
    error_name(error) == "NotFoundError"
}

async fn weights() -> Result<FileSystemDirectoryHandle, JsValue> {
    // Without a secure context there is no storage at all.
    let storage = js::get(&js::worker().navigator(), "storage");
    let root = js::settle(js::call(&storage, "getDirectory", &[])?).await?;
    let root: FileSystemDirectoryHandle = root.unchecked_into();
    folder(&root, FOLDER, true).await
}

async fn folder(
    parent: &FileSystemDirectoryHandle,
    name: &str,
    create: bool,
) -> Result<FileSystemDirectoryHandle, JsValue> {
    let options = FileSystemGetDirectoryOptions::new();
    options.set_create(create);
    let handle = JsFuture::from(parent.get_directory_handle_with_options(name, &options)).await?;
    Ok(handle.unchecked_into())
}

thread_local! {
    /// The folder of the model whose blob was opened last: finding it takes three questions to the browser, and a model
    /// can have thousands of blobs.
    static LAST: RefCell<Option<(ModelId, FileSystemDirectoryHandle)>> = const { RefCell::new(None) };
}

async fn file(key: BlobKey, create: bool) -> Result<FileSystemFileHandle, JsValue> {
    let known = LAST.with_borrow(|last| last.as_ref().filter(|(model, _)| *model == key.model).map(|(_, f)| f.clone()));
    if let Some(folder) = known {
        match file_in(&folder, key.name, create).await {
            // The folder itself may be gone: somebody deleted the model.
            Err(error) if is_missing(&error) => LAST.with_borrow_mut(|last| *last = None),
            found => return found,
        }
    }
    let folder = folder(&weights().await?, &key.model.to_string(), create).await?;
    let found = file_in(&folder, key.name, create).await;
    LAST.with_borrow_mut(|last| *last = Some((key.model, folder)));
    found
}

async fn file_in(
    folder: &FileSystemDirectoryHandle,
    name: BlobName,
    create: bool,
) -> Result<FileSystemFileHandle, JsValue> {
    let options = FileSystemGetFileOptions::new();
    options.set_create(create);
    Ok(JsFuture::from(folder.get_file_handle_with_options(&name.to_string(), &options)).await?.unchecked_into())
}

/// The entries of a folder, by name.
async fn entries(folder: &FileSystemDirectoryHandle) -> Result<Vec<(String, JsValue)>, JsValue> {
    let iterator: JsValue = folder.entries().into();
    let mut found = Vec::new();
    loop {
        let step = js::settle(js::call(&iterator, "next", &[])?).await?;
        if js::get(&step, "done").is_truthy() {
            return Ok(found);
        }
        let pair: js_sys::Array = js::get(&step, "value").dyn_into()?;
        if let Some(name) = pair.get(0).as_string() {
            found.push((name, pair.get(1)));
        }
    }
}

async fn size(handle: JsValue) -> Result<u64, JsValue> {
    let handle: FileSystemFileHandle = handle.unchecked_into();
    let file: File = JsFuture::from(handle.get_file()).await?.unchecked_into();
    Ok(file.size() as u64)
}

/// The blobs of a model and their lengths.
pub async fn list(model: ModelId) -> Result<Vec<(BlobName, u64)>, JsValue> {
    let folder = match folder(&weights().await?, &model.to_string(), false).await {
        Ok(folder) => folder,
        Err(error) if is_missing(&error) => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let known =
        entries(&folder).await?.into_iter().filter_map(|(name, handle)| Some((BlobName::parse(&name)?, handle)));
    let sizes = known.map(|(name, handle)| async move { Ok((name, size(handle).await?)) });
    join_all(sizes).await.into_iter().collect()
}

/// The length of a blob, 0 if it is not there.
pub async fn len(key: BlobKey) -> Result<u64, JsValue> {
    match file(key, false).await {
        Ok(handle) => size(handle.into()).await,
        Err(error) if is_missing(&error) => Ok(0),
        Err(error) => Err(error),
    }
}

/// The models with a folder.
pub async fn models() -> Result<Vec<ModelId>, JsValue> {
    let names = entries(&weights().await?).await?;
    Ok(names.iter().filter_map(|(name, _)| ModelId::from_hex(name)).collect())
}

/// Deletes a blob, if it is there.
pub async fn delete(key: BlobKey) -> Result<(), JsValue> {
    let removed = match folder(&weights().await?, &key.model.to_string(), false).await {
        Ok(folder) => JsFuture::from(folder.remove_entry(&key.name.to_string())).await,
        Err(error) => Err(error),
    };
    forgive_missing(removed)
}

/// Deletes a model's folder, if it is there.
pub async fn delete_model(model: ModelId) -> Result<(), JsValue> {
    let options = FileSystemRemoveOptions::new();
    options.set_recursive(true);
    let removed = weights().await?.remove_entry_with_options(&model.to_string(), &options);
    forgive_missing(JsFuture::from(removed).await)
}

fn forgive_missing(removed: Result<JsValue, JsValue>) -> Result<(), JsValue> {
    match removed {
        Err(error) if !is_missing(&error) => Err(error),
        _ => Ok(()),
    }
}

/// How full the origin's storage is.
pub async fn usage() -> Result<Usage, JsValue> {
    let storage = js::get(&js::worker().navigator(), "storage");
    let estimate = js::settle(js::call(&storage, "estimate", &[])?).await?;
    let persistent = js::settle(js::call(&storage, "persisted", &[])?).await?.is_truthy();
    let number = |name: &str| js::get(&estimate, name).as_f64().unwrap_or(0.0) as u64;
    Ok(Usage { used: number("usage"), quota: number("quota"), persistent })
}

/// An open file; closes when dropped, because an open one locks everyone else out.
pub struct OpenFile(FileSystemSyncAccessHandle);

impl Drop for OpenFile {
    fn drop(&mut self) {
        self.0.close();
    }
}

/// How to open a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Others may read as well. Browsers that do not know this open it for this context alone.
    Read,
    /// Alone; made if it is not there.
    Write,
}

/// Opens a blob for synchronous reading or writing; workers only. Whoever gives up waiting leaves no open file behind: it
/// would lock out the next writer.
pub async fn open(key: BlobKey, mode: Mode) -> Result<OpenFile, JsValue> {
    let (sender, opened) = oneshot::channel();
    wasm_bindgen_futures::spawn_local(async move {
        // A file that nobody waits for comes back in the error, and is closed.
        let _ = sender.send(open_to_the_end(key, mode).await);
    });
    opened.await.unwrap_or_else(|_| Err(JsValue::from_str("the file was never opened")))
}

async fn open_to_the_end(key: BlobKey, mode: Mode) -> Result<OpenFile, JsValue> {
    let handle = file(key, mode == Mode::Write).await?;
    let options = js_sys::Object::new();
    js::set(&options, "mode", &if mode == Mode::Read { "read-only" } else { "readwrite" }.into());
    let opened = js::settle(js::call(&handle, "createSyncAccessHandle", &[&options])?).await?;
    Ok(OpenFile(opened.unchecked_into()))
}

impl OpenFile {
    /// Its length.
    pub fn size(&self) -> Result<u64, JsValue> {
        Ok(self.0.get_size()? as u64)
    }

    /// Fills an array from `offset` on.
    pub fn fill(&self, offset: u64, into: &Uint8Array) -> Result<(), StoreError> {
        let options = FileSystemReadWriteOptions::new();
        options.set_at(offset as f64);
        let read = self.0.read_with_js_u8_array_and_options(into, &options).map_err(|error| store_error(&error))?;
        if read == f64::from(into.length()) { Ok(()) } else { Err(StoreError::ShortRead) }
    }

    /// Adds bytes to the end. The returned count is checked: full storages were seen to answer 4294967288 instead of an
    /// exception. What was written of a failed piece is cut off.
    pub fn append(&self, offset: u64, bytes: &Uint8Array) -> Result<(), StoreError> {
        let options = FileSystemReadWriteOptions::new();
        options.set_at(offset as f64);
        let wanted = f64::from(bytes.length());
        let written = self.0.write_with_js_u8_array_and_options(bytes, &options);
        let outcome = match written {
            Ok(written) if written == wanted => self.0.flush().map_err(|error| store_error(&error)),
            Ok(written) => {
                let written = if (0.0..=wanted).contains(&written) { written as u64 } else { 0 };
                Err(StoreError::ShortWrite { written, wanted: wanted as u64 })
            }
            Err(error) => Err(store_error(&error)),
        };
        if outcome.is_err()
            && let Err(error) = self.0.truncate_with_f64(offset as f64)
        {
            log::error!("a broken piece stays in the storage: {}", error_text(&error));
        }
        outcome
    }
}
