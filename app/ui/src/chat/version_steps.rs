//! "‹ 2/3 ›": steps through the versions of a question, or of an answer.

use leptos::prelude::*;
use potluck_text::texts;

use crate::{
    common::{Icon, Symbol},
    state::{Versioned, Versions, store},
};

/// Nothing while there is one version.
#[component]
pub fn VersionSteps(
    /// The place in the open conversation.
    at: usize,
    /// What has versions there.
    of: Versioned,
) -> impl IntoView {
    let store = store();
    let versions = Memo::new(move |_| store.chats.open.with(|conversation| conversation.versions(at, of)));
    let several = Memo::new(move |_| versions.get().count > 1);
    let busy = Memo::new(move |_| store.answering().is_some());
    let before = move || versions.get().shown.checked_sub(1).filter(|_| !busy.get());
    let after = move || {
        let Versions { shown, count } = versions.get();
        Some(shown + 1).filter(|next| *next < count && !busy.get())
    };
    let show = move |version: Option<usize>| {
        if let Some(version) = version {
            store.choose_version(at, of, version);
        }
    };
    let texts = &texts().versions;
    let (name, former, next) = match of {
        Versioned::Question => (texts.questions(), texts.former_question(), texts.next_question()),
        Versioned::Answer => (texts.answers(), texts.former_answer(), texts.next_answer()),
    };
    let place = move || texts.place(versions.get().shown + 1, versions.get().count);
    let said = move || texts.said(versions.get().shown + 1, versions.get().count);
    // At an end, a button stays one, so that the focus stays where it is.
    let unavailable = |is_end: bool| is_end.then_some("true");
    view! {
        <Show when=move || several.get()>
            <span class="versions" role="group" aria-label=name>
                <button
                    type="button"
                    class="button button-icon button-small"
                    aria-label=former
                    aria-disabled=move || unavailable(before().is_none())
                    on:click=move |_| show(untrack(before))
                >
                    <Icon symbol=Symbol::Before />
                </button>
                <span role="status">
                    <span aria-hidden="true">{place}</span>
                    <span class="visually-hidden">{said}</span>
                </span>
                <button
                    type="button"
                    class="button button-icon button-small"
                    aria-label=next
                    aria-disabled=move || unavailable(after().is_none())
                    on:click=move |_| show(untrack(after))
                >
                    <Icon symbol=Symbol::After />
                </button>
            </span>
        </Show>
    }
}
