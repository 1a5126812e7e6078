//! The window and its clock.

/// The page's window.
///
/// # Panics
/// Outside of a browser window, where the page is never mounted.
#[must_use]
pub fn window() -> web_sys::Window {
    web_sys::window().expect("the page runs in a window")
}

/// Milliseconds since 1970.
#[must_use]
pub fn now() -> f64 {
    js_sys::Date::now()
}
