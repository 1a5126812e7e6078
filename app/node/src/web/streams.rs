//! Reading a stream of bytes through buffers that are used again. A whole answer as one `ArrayBuffer` would be left to the
//! browser's collector, which lets a hundred megabytes of them lie around: a load reads thousands.

use std::cell::RefCell;

use js_sys::{ArrayBuffer, Object, Uint8Array};
use wasm_bindgen::{JsCast, JsValue};

use super::js;

/// Bytes of a buffer: about what a browser has ready at a time.
const BUFFER: u32 = 256 << 10;
/// Buffers that are kept: as many as there are reads at a time.
const KEPT: usize = 8;

thread_local! {
    static BUFFERS: RefCell<Vec<ArrayBuffer>> = const { RefCell::new(Vec::new()) };
}

/// All bytes of the stream that a response or a file has, `expected` of them most likely. None where this browser reads no
/// stream into a buffer that it is given; nothing was read then.
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
        // The buffer goes with the call and comes back with the answer.
        let step = js::settle(js::call(&reader, "read", &[&Uint8Array::new(&buffer)])?).await?;
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
