//! Notices: what happened, why, what to do.

use leptos::prelude::*;
use potluck_panel::{Connection, NoticeLevel};
use potluck_text::texts;

use super::{CopyButton, Icon, Symbol};
use crate::{
    state::{ShownNotice, store},
    table::failure,
};

/// The notices above the page; they cover nothing. A closed table, or one without a model, explains itself in its own place.
#[component]
pub fn NoticeStack() -> impl IntoView {
    let store = store();
    let explained = Memo::new(move |_| {
        store.room.status.with(|status| match &status.connection {
            Connection::Closed { reason } => Some(reason.clone()),
            // Its card stands where no conversation is.
            _ if store.chats.open.with(|open| !open.turns.is_empty()) => None,
            _ => failure(status).map(str::to_owned),
        })
    });
    let shown = move || {
        let is_new = |shown: &&ShownNotice| explained.get().as_ref() != Some(&shown.notice.sentence);
        store.screen.notices.get().shown().iter().filter(is_new).cloned().collect::<Vec<_>>()
    };
    view! {
        <div class="notices" role="status" aria-live="polite">
            <For each=shown key=|shown| shown.id let:shown>
                <Sentence shown />
            </For>
        </div>
    }
}

#[component]
fn Sentence(shown: ShownNotice) -> impl IntoView {
    let store = store();
    let ShownNotice { id, notice, .. } = shown;
    let (class, symbol) = match notice.level {
        NoticeLevel::Info => ("notice notice-info", Symbol::Info),
        NoticeLevel::Warning => ("notice notice-warning", Symbol::Warning),
        NoticeLevel::Error => ("notice notice-error", Symbol::Warning),
    };
    let details = (!notice.details.is_empty()).then(|| {
        let all = format!("{}\n{}", notice.sentence, notice.details);
        view! { <CopyButton text=all label=texts().button.copy_details() /> }
    });
    view! {
        <div class=class>
            <Icon symbol />
            <p>{notice.sentence}</p>
            {details}
            <button
                type="button"
                class="button button-icon"
                aria-label=texts().button.dismiss()
                on:click=move |_| store.screen.notices.update(|notices| notices.dismiss(id))
            >
                <Icon symbol=Symbol::Close />
            </button>
        </div>
    }
}
