//! The origin private file system (OPFS): `weights/<model id>/<file>`, where a file is a small blob, a pack of units or their
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
/// The exception if another context has the file open.
const LOCKED: &str = "NoModificationAllowedError";
/// Attempts to open a file that another context has open, and the milliseconds between them.
const MAX_ATTEMPTS: u32 = 20;
const RETRY_MILLIS: f64 = 50.0;

/// Converts an exception to a typed error.
pub fn store_error(error: &JsValue) -> StoreError {
    match error_name(error).as_str() {
        "QuotaExceededError" => StoreError::Full,
        "SecurityError" | "NotSupportedError" => StoreError::Unavailable(error_text(error)),
        LOCKED => StoreError::Busy,
        _ => StoreError::Failed(error_text(error)),
    }
}

/// True if the exception says that there is no such file or folder.
pub fn is_missing(error: &JsValue) -> bool {
    error_name(error) == "NotFoundError"
}

async fn weights() -> Result<FileSystemDirectoryHandle, JsValue> {
    // Without a secure context there is no storage at all.
    let storage = js::get(&js::worker().navigator(), "storage");
    let root = js::await_promise(js::call(&storage, "getDirectory", &[])?).await?;
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
    /// The folder of the model whose blob was opened last: finding it takes three calls into the browser, and a model can
    /// have thousands of blobs.
    static LAST: RefCell<Option<(ModelId, FileSystemDirectoryHandle)>> = const { RefCell::new(None) };
}

async fn file(model: ModelId, name: &str, create: bool) -> Result<FileSystemFileHandle, JsValue> {
    let known = LAST.with_borrow(|last| last.as_ref().filter(|(last, _)| *last == model).map(|(_, f)| f.clone()));
    if let Some(folder) = known {
        match file_in(&folder, name, create).await {
            // The folder may be gone: another tab deleted the model.
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
        let step = js::await_promise(js::call(&iterator, "next", &[])?).await?;
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
    ///
    /// # Errors
    /// The browser's exception.
    pub async fn size(&self) -> Result<u64, JsValue> {
        size(self.handle.clone()).await
    }
}

/// The files of a model.
///
/// # Errors
/// The browser's exception.
pub async fn list(model: ModelId) -> Result<Vec<Entry>, JsValue> {
    match folder(&weights().await?, &model.to_string(), false).await {
        Ok(folder) => Ok(entries(&folder).await?.into_iter().map(|(name, handle)| Entry { name, handle }).collect()),
        Err(error) if is_missing(&error) => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}

/// The length of a blob; 0 if it does not exist.
///
/// # Errors
/// The browser's exception.
pub async fn len(key: BlobKey) -> Result<u64, JsValue> {
    match file(key.model, &key.name.to_string(), false).await {
        Ok(handle) => size(handle.into()).await,
        Err(error) if is_missing(&error) => Ok(0),
        Err(error) => Err(error),
    }
}

/// The models with a folder.
///
/// # Errors
/// The browser's exception.
pub async fn models() -> Result<Vec<ModelId>, JsValue> {
    let names = entries(&weights().await?).await?;
    Ok(names.iter().filter_map(|(name, _)| ModelId::from_hex(name)).collect())
}

/// Deletes a file, if it exists.
///
/// # Errors
/// The browser's exception.
pub async fn delete(model: ModelId, name: &str) -> Result<(), JsValue> {
    let removed = match folder(&weights().await?, &model.to_string(), false).await {
        Ok(folder) => JsFuture::from(folder.remove_entry(name)).await,
        Err(error) => Err(error),
    };
    forgive_missing(removed)
}

/// Deletes a model's folder, if it exists.
///
/// # Errors
/// The browser's exception.
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

/// How much of the origin's storage is used.
///
/// # Errors
/// The browser's exception.
pub async fn usage() -> Result<Usage, JsValue> {
    let storage = js::get(&js::worker().navigator(), "storage");
    let estimate = js::await_promise(js::call(&storage, "estimate", &[])?).await?;
    let persistent = js::await_promise(js::call(&storage, "persisted", &[])?).await?.is_truthy();
    let number = |name: &str| js::get(&estimate, name).as_f64().unwrap_or(0.0) as u64;
    Ok(Usage { used: number("usage"), quota: number("quota"), persistent })
}

/// An open file. Closed on drop, because an open file locks out everyone else.
pub struct OpenFile(FileSystemSyncAccessHandle);

impl Drop for OpenFile {
    fn drop(&mut self) {
        self.0.close();
    }
}

/// How to open a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Others may read too. Browsers that do not support this open it exclusively.
    Read,
    /// Exclusively; created if it does not exist.
    Write,
    /// Others may read and write too and coordinate among themselves. Created if it does not exist and `create` is true.
    /// Browsers that do not support this open it exclusively ([`OpenFile::is_shared`]).
    Shared {
        /// Create it if it does not exist.
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

/// Opens a file of a model for synchronous reading or writing; workers only. A caller that stops waiting leaves no open file
/// behind, which would lock out the next writer.
///
/// # Errors
/// The browser's exception.
pub async fn open(model: ModelId, name: String, mode: Mode) -> Result<OpenFile, JsValue> {
    let (sender, opened) = oneshot::channel();
    wasm_bindgen_futures::spawn_local(async move {
        // If nobody waits any more, the error contains the file, which is then closed.
        let _ = sender.send(open_patiently(model, &name, mode).await);
    });
    opened.await.unwrap_or_else(|_| Err(JsValue::from_str("the file was never opened")))
}

/// In browsers that open files exclusively, contexts take turns.
async fn open_patiently(model: ModelId, name: &str, mode: Mode) -> Result<OpenFile, JsValue> {
    for _ in 1..MAX_ATTEMPTS {
        match open_now(model, name, mode).await {
            Err(error) if error_name(&error) == LOCKED => WorkerClock.sleep(RETRY_MILLIS).await,
            opened => return opened,
        }
    }
    open_now(model, name, mode).await
}

async fn open_now(model: ModelId, name: &str, mode: Mode) -> Result<OpenFile, JsValue> {
    let handle = file(model, name, matches!(mode, Mode::Write | Mode::Shared { create: true })).await?;
    let options = js_sys::Object::new();
    js::set(&options, "mode", &mode.name().into());
    let opened = js::await_promise(js::call(&handle, "createSyncAccessHandle", &[&options])?).await?;
    Ok(OpenFile(opened.unchecked_into()))
}

impl OpenFile {
    /// True if other contexts can open it at the same time, to read and to write.
    pub fn is_shared(&self) -> bool {
        js::get(&self.0, "mode").as_string().as_deref() == Some(SHARED)
    }

    /// Its length.
    ///
    /// # Errors
    /// The storage failed.
    pub fn size(&self) -> Result<u64, StoreError> {
        Ok(self.0.get_size().map_err(|error| store_error(&error))? as u64)
    }

    /// Fills an array from `offset` on.
    ///
    /// # Errors
    /// The storage failed.
    pub fn fill(&self, offset: u64, into: &Uint8Array) -> Result<(), StoreError> {
        let options = FileSystemReadWriteOptions::new();
        options.set_at(offset as f64);
        let read = self.0.read_with_js_u8_array_and_options(into, &options).map_err(|error| store_error(&error))?;
        if read == f64::from(into.length()) { Ok(()) } else { Err(StoreError::ShortRead) }
    }

    /// Fills an array with the extents, one after the other.
    ///
    /// # Errors
    /// The storage failed.
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
    ///
    /// # Errors
    /// The storage failed.
    pub fn rest(&self, offset: u64) -> Result<Vec<u8>, StoreError> {
        let len = self.size()?.saturating_sub(offset);
        let bytes = Uint8Array::new_with_length(u32::try_from(len).map_err(|_| StoreError::ShortRead)?);
        self.fill(offset, &bytes)?;
        Ok(bytes.to_vec())
    }

    /// Makes `bytes` the end of the file, from `offset` on, and waits until they are on disk. After a failure the file ends at
    /// `offset`.
    ///
    /// # Errors
    /// The storage failed.
    pub fn append(&self, offset: u64, bytes: &Uint8Array) -> Result<(), StoreError> {
        if self.size()? > offset {
            // Bytes without a record.
            self.0.truncate_with_f64(offset as f64).map_err(|error| store_error(&error))?;
        }
        let outcome = self.write(offset, bytes);
        if outcome.is_err() {
            self.cut(offset);
        }
        outcome
    }

    /// Overwrites bytes and waits until they are on disk. The returned count is checked: full storages were observed to return
    /// 4294967288 instead of an exception.
    ///
    /// # Errors
    /// The storage failed.
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

    /// Removes what was appended from `offset` on.
    pub fn cut(&self, offset: u64) {
        if self.size().is_ok_and(|size| size <= offset) {
            return;
        }
        if let Err(error) = self.0.truncate_with_f64(offset as f64) {
            log::error!("an incomplete piece remains in the storage: {}", error_text(&error));
        }
    }
}
