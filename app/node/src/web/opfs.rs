//! The origin private file system (OPFS): `weights/<model id>/<file>`, where a file is a small blob, a pack of units or their
//! journal.

use std::cell::RefCell;

use wasm_bindgen::{JsCast, JsValue};
use wasm_bindgen_futures::JsFuture;
use web_sys::{
    File, FileSystemDirectoryHandle, FileSystemFileHandle, FileSystemGetDirectoryOptions, FileSystemGetFileOptions,
    FileSystemRemoveOptions,
};

use super::js::{self, error_name, error_text};
use crate::blob::BlobKey;
use crate::platform::{StoreError, Usage};
use potluck_plan::ModelId;

const FOLDER: &str = "weights";
/// The exception if another context has the file open.
pub(super) const LOCKED: &str = "NoModificationAllowedError";

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

pub(super) async fn file(model: ModelId, name: &str, create: bool) -> Result<FileSystemFileHandle, JsValue> {
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
