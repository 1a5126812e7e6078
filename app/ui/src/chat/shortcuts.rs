//! Keyboard shortcuts.

use leptos::prelude::*;
use potluck_text::texts;

use crate::{common::Dialog, state::DialogKind};

fn keys() -> [(&'static str, &'static str); 4] {
    [
        ("Enter", texts().keys.send()),
        ("Shift + Enter", texts().keys.line()),
        ("Escape", texts().keys.stop()),
        ("?", texts().keys.list()),
    ]
}

/// The list that `?` opens.
#[component]
pub fn Shortcuts() -> impl IntoView {
    view! {
        <Dialog kind=DialogKind::Shortcuts title=texts().keys.title()>
            <dl class="keys">
                {keys().map(|(key, meaning)| view! { <dt><kbd>{key}</kbd></dt><dd>{meaning}</dd> }).collect_view()}
            </dl>
        </Dialog>
    }
}
