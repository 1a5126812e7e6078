//! What the browser reveals about this device, and the few effects the page has on it.

use potluck_panel::DeviceKind;
use wasm_bindgen_futures::JsFuture;

use super::window;
use crate::{
    state::Appearance,
    text::{guess_kind, guess_name},
};

/// The browser's user agent.
#[must_use]
pub fn user_agent() -> String {
    window().navigator().user_agent().unwrap_or_default()
}

/// Icon for this device.
#[must_use]
pub fn device_kind() -> DeviceKind {
    let touch_points = u32::try_from(window().navigator().max_touch_points()).unwrap_or(0);
    guess_kind(&user_agent(), touch_points)
}

/// Default name for this device.
#[must_use]
pub fn device_name() -> String {
    guess_name(&user_agent())
}

/// Copies text to the clipboard; `false` if the browser refuses.
pub async fn copy_text(text: &str) -> bool {
    JsFuture::from(window().navigator().clipboard().write_text(text)).await.is_ok()
}

/// Applies light or dark, or the system's choice.
pub fn set_appearance(appearance: Appearance) {
    if let Some(root) = window().document().and_then(|document| document.document_element()) {
        let _refused = root.set_attribute("data-appearance", appearance.attribute());
    }
}

/// Sets a property of the window, for tools; it is never removed.
pub fn show_result<T: serde::Serialize>(name: &str, value: Option<&T>) {
    let text = value.and_then(|value| serde_json::to_string(value).ok());
    let value = text.and_then(|text| js_sys::JSON::parse(&text).ok()).unwrap_or(wasm_bindgen::JsValue::UNDEFINED);
    // Setting a property of the window cannot fail.
    let _set = js_sys::Reflect::set(&window(), &name.into(), &value);
}

/// Sets the tab's title.
pub fn set_title(title: &str) {
    if let Some(document) = window().document() {
        document.set_title(title);
    }
}
