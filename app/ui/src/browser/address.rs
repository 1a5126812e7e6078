//! The address bar.

use wasm_bindgen::{JsCast, JsValue};

use super::window;
use crate::route::Route;

/// The place that the address bar names, with the key of a link that was just opened. See [`Store::arrive`](crate::state::Store).
#[must_use]
pub fn current_route() -> Route {
    let location = window().location();
    Route::parse(&location.pathname().unwrap_or_default(), &location.hash().unwrap_or_default())
}

/// Goes to an address of this page, unless the address bar shows it; the back button returns.
pub fn go_unless_there(path: &str) {
    if window().location().pathname().unwrap_or_default() != path {
        go(path);
    }
}

/// Goes to an address of this page; the back button returns.
pub fn go(path: &str) {
    if let Ok(history) = window().history() {
        // A refused push leaves the address as it is; the page changes anyway.
        let _refused = history.push_state_with_url(&JsValue::NULL, "", Some(path));
    }
}

/// Changes the address without adding to the history.
pub fn replace(path: &str) {
    if let Ok(history) = window().history() {
        let _refused = history.replace_state_with_url(&JsValue::NULL, "", Some(path));
    }
}

/// Focuses the heading of the current place, unless something else has the focus.
pub fn focus_place() {
    let Some(document) = window().document() else { return };
    let is_free = document.active_element().is_none_or(|element| element.tag_name() == "BODY");
    let heading = document.query_selector("h1").ok().flatten().filter(|_| is_free);
    if let Some(heading) = heading.and_then(|heading| heading.dyn_into::<web_sys::HtmlElement>().ok()) {
        // Ignore the error: an element that cannot take the focus leaves it where it is.
        let _refused = heading.focus();
    }
}

/// `http://localhost:8787`.
#[must_use]
pub fn origin() -> String {
    window().location().origin().unwrap_or_default()
}
