//! Answers whose drawing stopped the page. Which answer is drawn is noted before, and the note is taken back after the
//! frame; one that is still there at the next start tells which answer to leave alone.

use std::{cell::Cell, collections::BTreeSet};

use leptos::prelude::{request_animation_frame, set_timeout};

use super::window;
use crate::state::TurnId;

/// In the tab's session storage: the answer that is drawn now.
const DRAWING: &str = "potluck.drawing";
/// In the browser's storage: the answers that are shown as plain text.
const PLAIN: &str = "potluck.plain";

thread_local! {
    static NOTED: Cell<bool> = const { Cell::new(false) };
}

fn session() -> Option<web_sys::Storage> {
    window().session_storage().ok().flatten()
}

/// This answer is drawn now, until the next frame has been shown.
pub fn begin_drawing(turn: &TurnId) {
    if let (Some(storage), Ok(text)) = (session(), serde_json::to_string(turn)) {
        // Without storage, an answer that stops the page does so each time.
        let _refused = storage.set_item(DRAWING, &text);
    }
    if !NOTED.replace(true) {
        // The frame is laid out and painted after its callbacks.
        request_animation_frame(|| set_timeout(end_drawing, std::time::Duration::ZERO));
    }
}

/// Nothing is drawn now, or the page goes away before the next frame.
pub fn end_drawing() {
    NOTED.set(false);
    if let Some(storage) = session() {
        let _refused = storage.remove_item(DRAWING);
    }
}

/// The answers that are shown as plain text.
#[must_use]
pub fn plain_answers() -> BTreeSet<TurnId> {
    let stored =
        |storage: Option<web_sys::Storage>, key| storage.and_then(|storage| storage.get_item(key).ok().flatten());
    let plain = stored(window().local_storage().ok().flatten(), PLAIN);
    let mut plain: BTreeSet<TurnId> = plain.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default();
    let stopped = stored(session(), DRAWING).and_then(|text| serde_json::from_str(&text).ok());
    if plain.len() < MOST_PLAIN && stopped.is_some_and(|turn| plain.insert(turn)) {
        keep_plain_answers(&plain);
    }
    end_drawing();
    plain
}

/// Limit on answers shown as plain text.
const MOST_PLAIN: usize = 1_000;

/// Stores which answers are shown as plain text.
pub fn keep_plain_answers(plain: &BTreeSet<TurnId>) {
    if let (Some(storage), Ok(text)) = (window().local_storage().ok().flatten(), serde_json::to_string(plain)) {
        let _refused = storage.set_item(PLAIN, &text);
    }
}

/// Nobody sees this tab.
#[must_use]
pub fn is_hidden() -> bool {
    window().document().is_some_and(|document| document.hidden())
}
