//! Another answer to the same question, beside the one that is shown: for comparison, also while both are written.

use leptos::prelude::*;
use potluck_text::texts;

use super::answer_view::AnswerView;
use crate::{
    common::{CopyButton, Icon, Symbol},
    state::{TurnId, TurnKey, store},
};

/// The answer beside.
#[component]
pub fn Beside(
    /// The place in the open conversation.
    at: usize,
    /// The turn of this answer.
    key: TurnKey,
) -> impl IntoView {
    let store = store();
    let turn = Memo::new(move |_| store.chats.open.with(|open| TurnId(open.id.clone(), key)));
    let answer = Memo::new(move |_| store.chats.open.with(|open| open.beside(at, key).map(|turn| turn.answer.clone())));
    let text = Signal::derive(move || {
        answer.with(|answer| answer.as_ref().map(|answer| answer.text.clone()).unwrap_or_default())
    });
    let model = move || answer.with(|answer| answer.as_ref().map(|answer| answer.model.clone()).unwrap_or_default());
    let is_busy = Memo::new(move |_| store.answering().is_some());
    let foot = move || {
        view! {
            <div class="answer-foot">
                <button
                    type="button"
                    class="button button-small"
                    disabled=move || is_busy.get()
                    on:click=move |_| store.choose_beside(at, key)
                >
                    <Icon symbol=Symbol::Check />
                    <span>{texts().versions.use_this()}</span>
                </button>
                <CopyButton text class="button button-quiet button-small" />
                <button
                    type="button"
                    class="button button-icon button-small"
                    aria-label=texts().versions.close_beside()
                    title=texts().versions.close_beside()
                    on:click=move |_| store.screen.beside.set(None)
                >
                    <Icon symbol=Symbol::Close />
                </button>
                <span class="answer-small"><bdi class="answer-model">{model}</bdi></span>
            </div>
        }
    };
    view! {
        <section class="answer-beside" aria-label=texts().versions.beside()>
            <AnswerView turn answer unspoken=true foot />
        </section>
    }
}
