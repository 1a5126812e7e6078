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

/// Reads a response's or file's whole stream, which probably has `expected` bytes. `None`, with nothing read, if this browser
/// cannot read a stream into a given buffer.
///
/// # Errors
/// The stream broke.
pub async fn read(stream: &JsValue, expected: usize) -> Result<Option<Vec<u8>>, JsValue> {
    let options = Object::new();
    js::set(&options, "mode", &"byob".into());
    let Ok(reader) = js::call(stream, "getReader", &[&options]) else { return Ok(None) };
    let mut bytes = Vec::with_capacity(expected);
    let mut buffer = BUFFERS.with_borrow_mut(Vec::pop).unwrap_or_else(|| ArrayBuffer::new(BUFFER));
    loop {
        // The buffer is transferred with the call and comes back with the result.
        let step = js::await_promise(js::call(&reader, "read", &[&Uint8Array::new(&buffer)])?).await?;
        let Ok(filled) = js::get(&step, "value").dyn_into::<Uint8Array>() else { return Ok(Some(bytes)) };
        let at = bytes.len();
        bytes.resize(at + filled.length() as usize, 0);
        filled.copy_to(&mut bytes[at..]);
        buffer = filled.buffer();
        if js::get(&step, "done").is_truthy() {
            BUFFERS.with_borrow_mut(|kept| {
                if kept.len() < KEPT {
                    kept.push(buffer);
                }
            });
            return Ok(Some(bytes));
        }
    }
}
