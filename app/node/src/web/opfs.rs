//! The origin's private file system: `weights/<model id>/<file>`, where a file is a small blob, a pack of units or their
//! journal.

use std::cell::RefCell;

use futures::channel::oneshot;
use js_sys::Uint8Array;
use wasm_bindgen::{JsCast, JsValue};
use wasm_bindgen_futures::JsFuture;
use web_sys::{
    File, FileSystemDirectoryHandle, FileSystemFileHandle, FileSystemGetDirectoryOptions, FileSystemGetFileOptions,
    FileSystemReadWriteOptions, FileSystemRemoveOptions, FileSystemSyncAccessHandle,
};

use super::js::{self, error_name, error_text};
use super::time::WorkerClock;
use crate::blob::BlobKey;
use crate::pack::Extent;
use crate::platform::{Clock, StoreError, Usage};
use potluck_plan::ModelId;

const FOLDER: &str = "weights";
/// The exception that tells of another open file.
const LOCKED: &str = "NoModificationAllowedError";
/// How often a file that somebody else has open is tried again, and the milliseconds between two tries.
const TRIES: u32 = 20;
const TRY_PAUSE: f64 = 50.0;

/// An exception as a typed error.
pub fn store_error(error: &JsValue) -> StoreError {
    match error_name(error).as_str() {
        "QuotaExceededError" => StoreError::Full,
        "SecurityError" | "NotSupportedError" => StoreError::Unavailable(error_text(error)),
        LOCKED => StoreError::Busy,
        _ => StoreError::Failed(error_text(error)),
    }
}

/// There is no such file or folder.
pub fn is_missing(error: &JsValue) -> bool {
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

async fn file(model: ModelId, name: &str, create: bool) -> Result<FileSystemFileHandle, JsValue> {
    let known = LAST.with_borrow(|last| last.as_ref().filter(|(last, _)| *last == model).map(|(_, f)| f.clone()));
    if let Some(folder) = known {
        match file_in(&folder, name, create).await {
            // The folder itself may be gone: somebody deleted the model.
            Err(error) if is_missing(&error) => LAST.with_borrow_mut(|last| *last = None),
            found => return found,
        }
    }
    let folder = folder(&weights().await?, &model.to_string(), create).await?;
    let found = file_in(&folder, name, create).await;
    LAST.with_borrow_mut(|last| *last = Some((model, folder)));
    found
}

async fn file_in(
    folder: &FileSystemDirectoryHandle,
    name: &str,
    create: bool,
) -> Result<FileSystemFileHandle, JsValue> {
    let options = FileSystemGetFileOptions::new();
    options.set_create(create);
    Ok(JsFuture::from(folder.get_file_handle_with_options(name, &options)).await?.unchecked_into())
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

/// A file of a model's folder.
pub struct Entry {
    /// Its name.
    pub name: String,
    handle: JsValue,
}

impl Entry {
    /// Its length.
    pub async fn size(&self) -> Result<u64, JsValue> {
        size(self.handle.clone()).await
    }
}

/// The files of a model.
pub async fn list(model: ModelId) -> Result<Vec<Entry>, JsValue> {
    match folder(&weights().await?, &model.to_string(), false).await {
        Ok(folder) => Ok(entries(&folder).await?.into_iter().map(|(name, handle)| Entry { name, handle }).collect()),
        Err(error) if is_missing(&error) => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}

/// The length of a blob, 0 if it is not there.
pub async fn len(key: BlobKey) -> Result<u64, JsValue> {
    match file(key.model, &key.name.to_string(), false).await {
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

/// Deletes a file, if it is there.
pub async fn delete(model: ModelId, name: &str) -> Result<(), JsValue> {
    let removed = match folder(&weights().await?, &model.to_string(), false).await {
        Ok(folder) => JsFuture::from(folder.remove_entry(name)).await,
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
    /// Others may read and write as well, and agree among themselves; made if it is not there and `create` is true. Browsers
    /// that do not know this open it for this context alone ([`OpenFile::is_shared`]).
    Shared {
        /// Make it.
        create: bool,
    },
}

impl Mode {
    fn name(self) -> &'static str {
        match self {
            Self::Read => "read-only",
            Self::Write => "readwrite",
            Self::Shared { .. } => SHARED,
        }
    }
}

const SHARED: &str = "readwrite-unsafe";

/// Opens a file of a model for synchronous reading or writing; workers only. Whoever gives up waiting leaves no open file
/// behind: it would lock out the next writer.
pub async fn open(model: ModelId, name: String, mode: Mode) -> Result<OpenFile, JsValue> {
    let (sender, opened) = oneshot::channel();
    wasm_bindgen_futures::spawn_local(async move {
        // A file that nobody waits for comes back in the error, and is closed.
        let _ = sender.send(open_patiently(model, &name, mode).await);
    });
    opened.await.unwrap_or_else(|_| Err(JsValue::from_str("the file was never opened")))
}

/// Where a browser opens files for one context alone, the others take turns.
async fn open_patiently(model: ModelId, name: &str, mode: Mode) -> Result<OpenFile, JsValue> {
    for _ in 1..TRIES {
        match open_now(model, name, mode).await {
            Err(error) if error_name(&error) == LOCKED => WorkerClock.sleep(TRY_PAUSE).await,
            opened => return opened,
        }
    }
    open_now(model, name, mode).await
}

async fn open_now(model: ModelId, name: &str, mode: Mode) -> Result<OpenFile, JsValue> {
    let handle = file(model, name, matches!(mode, Mode::Write | Mode::Shared { create: true })).await?;
    let options = js_sys::Object::new();
    js::set(&options, "mode", &mode.name().into());
    let opened = js::settle(js::call(&handle, "createSyncAccessHandle", &[&options])?).await?;
    Ok(OpenFile(opened.unchecked_into()))
}

impl OpenFile {
    /// Other contexts can open it at the same time, to read and to write.
    pub fn is_shared(&self) -> bool {
        js::get(&self.0, "mode").as_string().as_deref() == Some(SHARED)
    }

    /// Its length.
    pub fn size(&self) -> Result<u64, StoreError> {
        Ok(self.0.get_size().map_err(|error| store_error(&error))? as u64)
    }

    /// Fills an array from `offset` on.
    pub fn fill(&self, offset: u64, into: &Uint8Array) -> Result<(), StoreError> {
        let options = FileSystemReadWriteOptions::new();
        options.set_at(offset as f64);
        let read = self.0.read_with_js_u8_array_and_options(into, &options).map_err(|error| store_error(&error))?;
        if read == f64::from(into.length()) { Ok(()) } else { Err(StoreError::ShortRead) }
    }

    /// Fills an array with what lies in the extents, one after the other.
    pub fn gather(&self, extents: &[Extent], into: &Uint8Array) -> Result<(), StoreError> {
        let mut at = 0;
        for extent in extents {
            let end = at + extent.len as u32;
            self.fill(extent.offset, &into.subarray(at, end))?;
            at = end;
        }
        Ok(())
    }

    /// All bytes from `offset` on.
    pub fn rest(&self, offset: u64) -> Result<Vec<u8>, StoreError> {
        let len = self.size()?.saturating_sub(offset);
        let bytes = Uint8Array::new_with_length(u32::try_from(len).map_err(|_| StoreError::ShortRead)?);
        self.fill(offset, &bytes)?;
        Ok(bytes.to_vec())
    }

    /// Makes `bytes` the file's end, from `offset` on, and waits until they are on the disk. What was written of a failed piece
    /// is cut off.
    pub fn append(&self, offset: u64, bytes: &Uint8Array) -> Result<(), StoreError> {
        if self.size()? > offset {
            // Bytes that nobody counted.
            self.0.truncate_with_f64(offset as f64).map_err(|error| store_error(&error))?;
        }
        let outcome = self.write(offset, bytes);
        if outcome.is_err() {
            self.cut(offset);
        }
        outcome
    }

    /// Writes bytes over others, and waits until they are on the disk. The returned count is checked: full storages were seen
    /// to answer 4294967288 instead of an exception.
    pub fn write(&self, offset: u64, bytes: &Uint8Array) -> Result<(), StoreError> {
        let failed = |error: JsValue| store_error(&error);
        let options = FileSystemReadWriteOptions::new();
        options.set_at(offset as f64);
        let wanted = f64::from(bytes.length());
        let written = self.0.write_with_js_u8_array_and_options(bytes, &options);
        match written {
            Ok(written) if written == wanted => self.0.flush().map_err(failed),
            Ok(written) => {
                let written = if (0.0..=wanted).contains(&written) { written as u64 } else { 0 };
                Err(StoreError::ShortWrite { written, wanted: wanted as u64 })
            }
            Err(error) => Err(failed(error)),
        }
    }

    /// Takes what was appended from `offset` on away again.
    pub fn cut(&self, offset: u64) {
        if self.size().is_ok_and(|size| size <= offset) {
            return;
        }
        if let Err(error) = self.0.truncate_with_f64(offset as f64) {
            log::error!("a broken piece stays in the storage: {}", error_text(&error));
        }
    }
}
