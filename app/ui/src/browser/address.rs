//! The address bar.

use wasm_bindgen::{JsCast, JsValue};

use super::window;
use crate::route::Route;

/// The place that the address bar names, with the key of a link that was just opened. See [`Store::arrive`](crate::state::Store).
#[must_use]
pub fn current_route() -> Route {
    Route::parse(&current_path(), &window().location().hash().unwrap_or_default())
}

/// Goes to an address of this page, unless the address bar shows it; the back button returns.
pub fn go_unless_there(path: &str) {
    if current_path() != path {
        go(path);
    }
}

/// Goes to an address of this page; the back button returns.
pub fn go(path: &str) {
    if let Ok(history) = window().history() {
        // A refused push leaves the address as it is; the page changes anyway.
        let _refused = history.push_state_with_url(&JsValue::NULL, "", Some(&at(path)));
    }
}

/// Changes the address without adding to the history.
pub fn replace(path: &str) {
    if let Ok(history) = window().history() {
        let _refused = history.replace_state_with_url(&JsValue::NULL, "", Some(&at(path)));
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

/// Where the relay is: `http://localhost:8787`, or with a folder `https://school.example/potluck`. The relay writes into the page's base
/// element how far up that is; what the page does to its address later does not change it.
#[must_use]
pub fn home() -> String {
    let base = window().document().and_then(|document| document.base_uri().ok().flatten());
    let base = base.unwrap_or_else(|| window().location().origin().unwrap_or_default());
    base.trim_end_matches('/').to_owned()
}

/// The whole address of a path on the relay, such as `/bench`.
#[must_use]
pub fn at(path: &str) -> String {
    home() + path
}

/// The path on the relay that the address bar shows.
fn current_path() -> String {
    let location = window().location();
    let address = location.origin().unwrap_or_default() + &location.pathname().unwrap_or_default();
    address.strip_prefix(&home()).unwrap_or_default().to_owned()
}
