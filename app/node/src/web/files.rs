//! A file that the user selected.

use futures::future::LocalBoxFuture;
use js_sys::Uint8Array;
use wasm_bindgen_futures::JsFuture;
use web_sys::File;

use super::js::{self, error_text};
use super::streams;
use crate::platform::LocalFile;

/// A file from the file picker.
pub struct PickedFile(pub File);

impl LocalFile for PickedFile {
    fn name(&self) -> String {
        self.0.name()
    }

    fn len(&self) -> u64 {
        self.0.size() as u64
    }

    fn modified(&self) -> Option<u64> {
        Some(self.0.last_modified() as u64)
    }

    fn read(&self, offset: u64, len: u64) -> LocalBoxFuture<'static, Result<Vec<u8>, String>> {
        let slice = self.0.slice_with_f64_and_f64(offset as f64, (offset + len) as f64);
        let name = self.0.name();
        Box::pin(async move {
            let changed =
                |error| format!("\"{name}\" cannot be read any more ({}); choose it again.", error_text(&error));
            let slice = slice.map_err(changed)?;
            let stream = js::call(&slice, "stream", &[]).map_err(changed)?;
            let bytes = match streams::read(&stream, len as usize).await.map_err(changed)? {
                Some(bytes) => bytes,
                None => {
                    let buffer = JsFuture::from(slice.array_buffer()).await.map_err(changed)?;
                    Uint8Array::new(&buffer).to_vec()
                }
            };
            if bytes.len() as u64 == len {
                Ok(bytes)
            } else {
                Err(format!("\"{name}\" is shorter than it was; choose it again."))
            }
        })
    }
}
