//! Sentences on the screen: what happened, why, what to do.

use leptos::prelude::*;
use potluck_panel::NoticeLevel;

use super::{CopyButton, Icon, Symbol};
use crate::state::{Shown, store};

/// The notices, over the page so that nothing moves.
#[component]
pub fn NoticeStack() -> impl IntoView {
    let store = store();
    view! {
        <div class="notices" role="status" aria-live="polite">
            <For each=move || store.notices.get().shown().to_vec() key=|shown| shown.id let:shown>
                <Sentence shown />
            </For>
        </div>
    }
}

#[component]
fn Sentence(shown: Shown) -> impl IntoView {
    let store = store();
    let Shown { id, notice } = shown;
    let (class, symbol) = match notice.level {
        NoticeLevel::Info => ("notice notice-info", Symbol::Info),
        NoticeLevel::Warning => ("notice notice-warning", Symbol::Warning),
        NoticeLevel::Error => ("notice notice-error", Symbol::Warning),
    };
    let details = (!notice.details.is_empty()).then(|| {
        let all = format!("{}\n{}", notice.sentence, notice.details);
        view! { <CopyButton text=all label="Copy details" /> }
    });
    view! {
        <div class=class>
            <Icon symbol />
            <p>{notice.sentence}</p>
            {details}
            <button
                type="button"
                class="button button-icon"
                aria-label="Dismiss"
                on:click=move |_| store.notices.update(|notices| notices.dismiss(id))
            >
                <Icon symbol=Symbol::Close />
            </button>
        </div>
    }
}
