//! The questions that wait for the answer that is written. The next one is asked as soon as it has ended.

use leptos::prelude::*;
use potluck_text::texts;

use crate::{
    browser,
    state::{QuestionParts, store},
};

/// Above the field for a message.
#[component]
pub fn WaitingList() -> impl IntoView {
    let store = store();
    let open = Memo::new(move |_| store.chats.open.with(|open| open.id.clone()));
    let waiting = Memo::new(move |_| open.with(|open| store.session.with(|session| session.waiting.of(open))));
    let free = Memo::new(move |_| store.can_ask() && store.answering().is_none());
    // Another room's host gets nothing without a press.
    let is_meant = Memo::new(move |_| {
        let is_next = |open: &String| {
            store.session.with(|session| {
                session.place.as_ref().is_some_and(|place| session.waiting.is_next_for(&place.room, open))
            })
        };
        open.with(is_next)
    });
    Effect::new(move |_| {
        if free.get()
            && is_meant.get()
            && let Some(question) = store.take_waiting(0)
        {
            store.ask(&question);
        }
    });
    let take_back = move |at: usize| {
        if let Some(question) = store.take_waiting(at) {
            let written = store.chats.draft_to_keep().unwrap_or_else(|| store.chats.draft.get_untracked());
            store.give_draft(QuestionParts::joined([question.as_str(), &written]).whole());
            request_animation_frame(browser::focus_composer);
        }
    };
    let row = move |(at, question): (usize, String)| {
        view! {
            <li>
                <span dir="auto">{texts().composer.asked_next()} " " {QuestionParts::of(&question).summary()}</span>
                <button type="button" class="button button-quiet button-small" on:click=move |_| take_back(at)>
                    {texts().composer.take_back()}
                </button>
            </li>
        }
    };
    view! {
        <p class="visually-hidden" role="status">
            {move || waiting.with(|waiting| (!waiting.is_empty()).then(|| texts().composer.wait(waiting.len())))}
        </p>
        <Show when=move || waiting.with(|waiting| !waiting.is_empty())>
            <ul class="waiting-list" aria-label=texts().composer.waiting()>
                {move || waiting.get().into_iter().enumerate().map(row).collect_view()}
            </ul>
        </Show>
    }
}
