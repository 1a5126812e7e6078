//! Reads byte streams through reusable buffers. A whole reply as one `ArrayBuffer` would wait for the browser's garbage
//! collector, which lets a hundred megabytes of them accumulate: a load reads thousands.

use std::cell::RefCell;

use js_sys::{ArrayBuffer, Object, Uint8Array};
use wasm_bindgen::{JsCast, JsValue};

use super::js;

/// Bytes in a buffer: about what a browser has ready at a time.
const BUFFER: u32 = 256 << 10;
/// Buffers that are kept: the number of parallel reads.
const KEPT: usize = 8;

thread_local! {
    static BUFFERS: RefCell<Vec<ArrayBuffer>> = const { RefCell::new(Vec::new()) };
}

/// Reads a file's whole stream, which probably has `expected` bytes. `None`, with nothing read, if this browser cannot read a
/// stream into a given buffer.
///
/// # Errors
/// The stream broke.
pub async fn read(stream: &JsValue, expected: usize) -> Result<Option<Vec<u8>>, JsValue> {
    let Ok(mut reader) = Reader::of_bytes(stream) else { return Ok(None) };
    let mut bytes = Vec::with_capacity(expected);
    while reader.read(&mut bytes).await? {}
    Ok(Some(bytes))
}

/// Reads a stream step by step.
pub struct Reader {
    reader: JsValue,
    /// Where the next bytes go; `None` during a step, and if the browser brings buffers of its own.
    buffer: Option<ArrayBuffer>,
}

impl Reader {
    /// Reads through reusable buffers.
    ///
    /// # Errors
    /// The browser cannot do that with this stream.
    fn of_bytes(stream: &JsValue) -> Result<Self, JsValue> {
        let options = Object::new();
        js::set(&options, "mode", &"byob".into());
        let reader = js::call(stream, "getReader", &[&options])?;
        let buffer = BUFFERS.with_borrow_mut(Vec::pop).unwrap_or_else(|| ArrayBuffer::new(BUFFER));
        Ok(Self { reader, buffer: Some(buffer) })
    }

    /// Reads through reusable buffers, or through the browser's own where it must.
    ///
    /// # Errors
    /// Not a stream, or another reads it.
    pub fn of_any(stream: &JsValue) -> Result<Self, JsValue> {
        match Self::of_bytes(stream) {
            Ok(reader) => Ok(reader),
            Err(_) => Ok(Self { reader: js::call(stream, "getReader", &[])?, buffer: None }),
        }
    }

    /// Appends the bytes that arrive next. False if there are none any more.
    ///
    /// # Errors
    /// The stream broke.
    pub async fn read(&mut self, bytes: &mut Vec<u8>) -> Result<bool, JsValue> {
        self.read_most(bytes, BUFFER as usize).await
    }

    /// The same for at most so many bytes, unless the browser brings a buffer of its own.
    ///
    /// # Errors
    /// The stream broke.
    pub async fn read_most(&mut self, bytes: &mut Vec<u8>, most: usize) -> Result<bool, JsValue> {
        let most = u32::try_from(most).unwrap_or(BUFFER).clamp(1, BUFFER);
        // The buffer is transferred with the call and comes back with the result.
        let into = self.buffer.take().map(|buffer| Uint8Array::new_with_byte_offset_and_length(&buffer, 0, most));
        let arguments: Vec<&JsValue> = into.iter().map(AsRef::as_ref).collect();
        let step = js::await_promise(js::call(&self.reader, "read", &arguments)?).await?;
        let Ok(filled) = js::get(&step, "value").dyn_into::<Uint8Array>() else { return Ok(false) };
        let at = bytes.len();
        bytes.resize(at + filled.length() as usize, 0);
        filled.copy_to(&mut bytes[at..]);
        self.buffer = into.map(|_| filled.buffer());
        Ok(!js::get(&step, "done").is_truthy())
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        let Some(buffer) = self.buffer.take() else { return };
        BUFFERS.with_borrow_mut(|kept| {
            if kept.len() < KEPT {
                kept.push(buffer);
            }
        });
    }
}
