//! Keys and the focus.

use wasm_bindgen::JsCast;
use web_sys::KeyboardEvent;

use super::window;

/// Code of every key that an input method has taken.
const TAKEN: u32 = 229;

/// The key belongs to an input method: it chooses a candidate, say, or closes the list of them. Safari sends the Enter that ended
/// a composition after its end, so the code counts, too.
#[must_use]
pub fn is_composing(event: &KeyboardEvent) -> bool {
    event.is_composing() || event.key_code() == TAKEN
}

/// Puts the focus into the field for the next message, if there is one.
pub fn focus_composer() {
    let field = window().document().and_then(|document| document.query_selector(".composer-field").ok().flatten());
    if let Some(field) = field.and_then(|field| field.dyn_into::<web_sys::HtmlElement>().ok()) {
        // Ignore the error: a field that cannot take the focus leaves it where it is.
        let _refused = field.focus();
    }
}
