//! Keyboard shortcuts.

use leptos::prelude::*;

use crate::{common::Dialog, state::DialogKind};

const KEYS: [(&str, &str); 4] = [
    ("Enter", "Send the message"),
    ("Shift + Enter", "Start a new line"),
    ("Escape", "Stop the answer, or close the dialog"),
    ("?", "Show this list"),
];

/// The list that `?` opens.
#[component]
pub fn Shortcuts() -> impl IntoView {
    view! {
        <Dialog kind=DialogKind::Shortcuts title="Keyboard">
            <dl class="keys">
                {KEYS.map(|(key, meaning)| view! { <dt><kbd>{key}</kbd></dt><dd>{meaning}</dd> }).collect_view()}
            </dl>
        </Dialog>
    }
}
