//! Open files of the origin private file system.

use futures::channel::oneshot;
use js_sys::Uint8Array;
use potluck_plan::ModelId;
use wasm_bindgen::{JsCast, JsValue};
use web_sys::{FileSystemReadWriteOptions, FileSystemSyncAccessHandle};

use super::js::{self, error_name, error_text};
use super::opfs::{LOCKED, file, store_error};
use super::time::WorkerClock;
use crate::pack::Extent;
use crate::platform::{Clock, StoreError};

/// Attempts to open a file that another context has open, and the milliseconds between them.
const MAX_ATTEMPTS: u32 = 20;
const RETRY_MILLIS: f64 = 50.0;

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
