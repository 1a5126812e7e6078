//! The line under a question: its versions, copy, edit, delete.

use leptos::{html, prelude::*};
use potluck_text::texts;

use super::version_steps::VersionSteps;
use crate::{
    browser,
    common::{CopyButton, Icon, Symbol},
    state::{TurnId, Versioned, store},
};

/// What can be done with a question.
#[component]
pub fn QuestionFoot(
    /// Where it is in the open conversation.
    at: usize,
    /// Its turn.
    turn: Memo<TurnId>,
    /// Its text.
    question: Memo<String>,
    /// The turn whose question is edited.
    editing: RwSignal<Option<TurnId>>,
    /// The editor was just closed.
    came_back: StoredValue<bool>,
) -> impl IntoView {
    let store = store();
    let edit = NodeRef::<html::Button>::new();
    let busy = Memo::new(move |_| store.answering().is_some());
    let may_edit = Memo::new(move |_| store.can_ask() && !busy.get());
    Effect::new(move |_| {
        if let Some(edit) = edit.get()
            && came_back.try_update_value(std::mem::take) == Some(true)
        {
            // Ignore the error: the button may be out of reach now.
            let _refused = edit.focus();
        }
    });
    let delete = move |_| {
        if browser::confirm(texts().turn.confirm_delete()) {
            store.delete_turn(at);
            // The last turn takes its button along.
            request_animation_frame(browser::focus_place);
        }
    };
    view! {
        <div class="question-foot">
            <VersionSteps at of=Versioned::Question />
            <CopyButton text=question label=texts().turn.copy() icon_only=true class="button button-icon button-small" />
            <Show when=move || !store.only_reads()>
                <button
                    node_ref=edit
                    type="button"
                    class="button button-icon button-small"
                    aria-label=texts().turn.edit()
                    title=texts().turn.edit()
                    disabled=move || !may_edit.get()
                    on:click=move |_| editing.set(Some(turn.get_untracked()))
                >
                    <Icon symbol=Symbol::Pencil />
                </button>
            </Show>
            <button
                type="button"
                class="button button-icon button-small"
                aria-label=texts().turn.delete()
                title=texts().turn.delete()
                disabled=move || busy.get()
                on:click=delete
            >
                <Icon symbol=Symbol::Bin />
            </button>
        </div>
    }
}
