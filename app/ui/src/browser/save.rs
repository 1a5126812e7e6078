//! Saves text as a file.

use wasm_bindgen::JsCast;

/// Downloads text as a file.
pub fn save_text(name: &str, kind: &str, text: &str) {
    let document = web_sys::window().and_then(|window| window.document());
    let link = document.and_then(|document| document.create_element("a").ok());
    let Some(link) = link.and_then(|link| link.dyn_into::<web_sys::HtmlAnchorElement>().ok()) else { return };
    let address = format!("data:{kind};charset=utf-8,{}", String::from(js_sys::encode_uri_component(text)));
    link.set_href(&address);
    link.set_download(name);
    link.click();
}
