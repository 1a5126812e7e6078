//! Answers whose drawing stopped the page. Which answer is drawn is noted before, and the note is taken back after the
//! frame; one that is still there at the next start tells which answer to leave alone.

use std::{cell::Cell, collections::BTreeSet, time::Duration};

use leptos::prelude::{request_animation_frame, set_timeout};
use serde::de::DeserializeOwned;
use web_sys::Storage;

use super::window;
use crate::state::TurnId;

/// In the tab's session storage: the answer that is drawn now.
const DRAWING: &str = "potluck.drawing";
/// In the browser's storage: the answers that are shown as plain text.
const PLAIN: &str = "potluck.plain";
/// Limit on them.
const MOST_PLAIN: usize = 1_000;

thread_local! {
    /// An answer is read and drawn at this moment. If that never ends, it has stopped the program, and its note stays.
    static INSIDE: Cell<bool> = const { Cell::new(false) };
    /// The note is taken back after the next frame.
    static DUE: Cell<bool> = const { Cell::new(false) };
}

/// Draws an answer, noted until the next frame has been shown.
pub fn note_drawing(turn: &TurnId, draw: impl FnOnce()) {
    if let (Some(storage), Ok(text)) = (session(), serde_json::to_string(turn)) {
        // Without storage, an answer that stops the page does so each time.
        let _refused = storage.set_item(DRAWING, &text);
    }
    INSIDE.set(true);
    draw();
    INSIDE.set(false);
    if is_hidden() {
        // No frame comes, and nothing is laid out that could stop the page.
        end_drawing();
    } else if !DUE.replace(true) {
        // The frame is laid out and painted after its callbacks.
        request_animation_frame(|| set_timeout(end_drawing, Duration::ZERO));
    }
}

/// Takes the note back, because the frame was shown or will not be. Not if drawing has stopped the program.
pub fn end_drawing() {
    if INSIDE.get() {
        return;
    }
    DUE.set(false);
    if let Some(storage) = session() {
        let _refused = storage.remove_item(DRAWING);
    }
}

/// The answers that are shown as plain text, with the one that stopped the page before.
#[must_use]
pub fn plain_answers() -> BTreeSet<TurnId> {
    let mut plain = kept();
    if plain.len() < MOST_PLAIN && read(session(), DRAWING).is_some_and(|turn| plain.insert(turn)) {
        keep(&plain);
    }
    end_drawing();
    plain
}

/// This answer is drawn again. Other tabs may have marked others meanwhile.
pub fn forget_plain_answer(turn: &TurnId) {
    let mut plain = kept();
    if plain.remove(turn) {
        keep(&plain);
    }
}

/// Nobody sees this tab.
#[must_use]
pub fn is_hidden() -> bool {
    window().document().is_some_and(|document| document.hidden())
}

fn kept() -> BTreeSet<TurnId> {
    read(lasting(), PLAIN).unwrap_or_default()
}

fn keep(plain: &BTreeSet<TurnId>) {
    if let (Some(storage), Ok(text)) = (lasting(), serde_json::to_string(plain)) {
        let _refused = storage.set_item(PLAIN, &text);
    }
}

fn session() -> Option<Storage> {
    window().session_storage().ok().flatten()
}

fn lasting() -> Option<Storage> {
    window().local_storage().ok().flatten()
}

fn read<T: DeserializeOwned>(storage: Option<Storage>, key: &str) -> Option<T> {
    storage.and_then(|storage| storage.get_item(key).ok().flatten()).and_then(|text| serde_json::from_str(&text).ok())
}
