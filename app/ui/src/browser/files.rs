//! Reads files that somebody chose, dropped or pasted.

use wasm_bindgen_futures::JsFuture;

/// The bytes of a file; `None` if the browser cannot read it.
pub async fn file_bytes(file: &web_sys::File) -> Option<Vec<u8>> {
    let buffer = JsFuture::from(file.array_buffer()).await.ok()?;
    Some(js_sys::Uint8Array::new(&buffer).to_vec())
}

/// Decodes a text; `None` if the browser does not know the encoding, or the text is not in it.
#[must_use]
pub fn decode_text(bytes: &[u8], encoding: &str) -> Option<String> {
    let options = web_sys::TextDecoderOptions::new();
    options.set_fatal(true);
    let decoder = web_sys::TextDecoder::new_with_label_and_options(encoding, &options).ok()?;
    decoder.decode_with_u8_array(bytes).ok()
}

/// The files of a list.
#[must_use]
pub fn files_of(list: Option<web_sys::FileList>) -> Vec<web_sys::File> {
    list.map(|list| (0..list.length()).filter_map(|at| list.get(at)).collect()).unwrap_or_default()
}
