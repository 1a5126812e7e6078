//! A question with its answer.

use leptos::prelude::*;
use potluck_text::texts;

use super::{
    answer_foot::AnswerFoot, answer_view::AnswerView, attached_files::SentFiles, beside::Beside,
    question_editor::QuestionEditor, question_foot::QuestionFoot,
};
use crate::state::{Conversation, QuestionParts, Turn, TurnId, store};

/// The turn at one place of the open conversation, whichever version of it is shown.
#[component]
pub fn TurnView(
    /// Its index in the conversation.
    at: usize,
) -> impl IntoView {
    let store = store();
    let of_turn = move |conversation: &Conversation, read: fn(&Turn) -> String| {
        conversation.turns.get(at).map(read).unwrap_or_default()
    };
    let turn = Memo::new(move |_| {
        let key = |conversation: &Conversation| conversation.turns.get(at).map(|turn| turn.key).unwrap_or_default();
        store.chats.open.with(|conversation| TurnId(conversation.id.clone(), key(conversation)))
    });
    let question =
        Memo::new(move |_| store.chats.open.with(|conversation| of_turn(conversation, |turn| turn.question.clone())));
    let parts = Memo::new(move |_| question.with(|question| QuestionParts::of(question)));
    let text = Memo::new(move |_| parts.with(|parts| parts.text.clone()));
    let files = Memo::new(move |_| parts.with(|parts| parts.files.clone()));
    let answer = Memo::new(move |_| {
        store.chats.open.with(|conversation| conversation.turns.get(at).map(|turn| turn.answer.clone()))
    });
    let last = Memo::new(move |_| store.chats.open.with(|conversation| conversation.turns.len() == at + 1));
    // The version that is edited: the field closes when another one is shown.
    let editing = RwSignal::new(None::<TurnId>);
    let edits = Memo::new(move |_| editing.with(|editing| turn.with(|turn| editing.as_ref() == Some(turn))));
    // Whether the field was closed without a question: then the focus goes back to where it came from.
    let came_back = StoredValue::new(false);
    let beside = Memo::new(move |_| store.beside(at));
    let first_sent = Memo::new(move |_| store.chats.open.with(Conversation::first_sent));
    view! {
        <Show when=move || { at > 0 && first_sent.get() == at }>
            <p class="sent-from hint">
                {texts().turn.sent_from()} " "
                <button
                    type="button"
                    class="button button-quiet button-small"
                    disabled=move || store.answering().is_some()
                    on:click=move |_| store.send_from(0)
                >
                    {texts().turn.send_again()}
                </button>
            </p>
        </Show>
        <article class="turn" class:turn-left-out=move || { at < first_sent.get() }>
            <h3 class="visually-hidden">{texts().chat.asked()}</h3>
            <Show
                when=move || edits.get()
                fallback=move || view! {
                    <div class="asked">
                        <Show when=move || text.with(|text| !text.is_empty())>
                            <p class="question" dir="auto">{text}</p>
                        </Show>
                        <SentFiles files />
                        <QuestionFoot at turn question editing came_back />
                    </div>
                }
            >
                <QuestionEditor at question editing came_back />
            </Show>
            <h3 class="visually-hidden">{texts().chat.answered()}</h3>
            <div class:answer-pair=move || beside.get().is_some()>
                <AnswerView turn answer foot=move || view! { <AnswerFoot at answer last /> } />
                {move || beside.get().map(|key| view! { <Beside at key /> })}
            </div>
        </article>
    }
}
