//! Saves text as a file.

use wasm_bindgen::{JsCast, JsValue};
use web_sys::{Blob, BlobPropertyBag, HtmlAnchorElement, Url};

/// Downloads text as a file. Does nothing where the browser refuses.
pub fn save_text(name: &str, kind: &str, text: &str) {
    // Ignore the error: the browser has told the user.
    let _refused = try_save(name, kind, text);
}

fn try_save(name: &str, kind: &str, text: &str) -> Result<(), JsValue> {
    let document = super::window().document().ok_or(JsValue::NULL)?;
    let options = BlobPropertyBag::new();
    options.set_type(kind);
    let blob = Blob::new_with_str_sequence_and_options(&js_sys::Array::of1(&text.into()), &options)?;
    let address = Url::create_object_url_with_blob(&blob)?;
    let link: HtmlAnchorElement = document.create_element("a")?.unchecked_into();
    link.set_href(&address);
    link.set_download(name);
    link.click();
    // The download has begun and keeps the bytes.
    Url::revoke_object_url(&address)
}
