//! A question with its answer.

use leptos::prelude::*;
use potluck_text::texts;

use super::answer_view::AnswerView;
use crate::state::{TurnId, store};

/// One turn of the open conversation.
#[component]
pub fn TurnView(
    /// The turn.
    turn: TurnId,
) -> impl IntoView {
    let store = store();
    let index = turn.1;
    let question = Memo::new(move |_| {
        store
            .chats
            .open
            .with(|conversation| conversation.turns.get(index).map(|turn| turn.question.clone()).unwrap_or_default())
    });
    let answer = Memo::new(move |_| {
        store.chats.open.with(|conversation| conversation.turns.get(index).map(|turn| turn.answer.clone()))
    });
    let last = Memo::new(move |_| store.chats.open.with(|conversation| conversation.turns.len() == index + 1));
    view! {
        <article class="turn">
            <h3 class="visually-hidden">{texts().chat.asked()}</h3>
            <p class="question" dir="auto">{question}</p>
            <h3 class="visually-hidden">{texts().chat.answered()}</h3>
            <AnswerView turn answer last />
        </article>
    }
}
