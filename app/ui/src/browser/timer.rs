//! The window and its clock.

use crate::state::Day;

/// The page's window.
///
/// # Panics
/// Outside of a browser window, where the page is never mounted.
#[must_use]
pub fn window() -> web_sys::Window {
    web_sys::window().expect("the page runs in a window")
}

/// The day of a moment (milliseconds since 1970) in this device's calendar.
#[must_use]
pub fn local_day(millis: f64) -> Day {
    let moment = js_sys::Date::new(&millis.into());
    let local = millis - moment.get_timezone_offset() * 60_000.0;
    // What is no number is a day that no clock tells.
    Day((local / 86_400_000.0).floor() as i64)
}

/// Milliseconds since 1970.
#[must_use]
pub fn now() -> f64 {
    js_sys::Date::now()
}
