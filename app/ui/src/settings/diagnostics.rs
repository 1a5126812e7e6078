//! Diagnostics for an issue: shown before they are copied.

use leptos::prelude::*;
use potluck_text::texts;

use crate::{
    browser,
    common::CopyButton,
    state::{diagnostics, store},
};

/// The text, folded until the user opens it, and a button that copies it.
#[component]
pub fn Diagnostics() -> impl IntoView {
    let store = store();
    let text = RwSignal::new(String::new());
    // As things are when it is opened: what is copied is what was read.
    let show = move |_| {
        let errors = store.screen.notices.with_untracked(|notices| notices.errors().to_vec());
        let now = store.room.status.with_untracked(|status| diagnostics(status, &errors, &browser::user_agent()));
        text.set(now);
    };
    view! {
        <details class="fold" on:toggle=show>
            <summary>{texts().settings.diagnostics()}</summary>
            <p class="hint">{texts().settings.diagnostics_hint()}</p>
            <pre class="diagnostics" role="region" tabindex="0" aria-label=texts().settings.diagnostics()>{move || text.get()}</pre>
            <CopyButton text label=texts().button.copy_diagnostics() />
        </details>
    }
}
