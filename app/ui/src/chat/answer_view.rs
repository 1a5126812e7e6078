//! An answer: folded thinking, Markdown, the phase, the possible actions.

use leptos::prelude::*;

use super::{answer_foot::AnswerFoot, phase_line::PhaseLine, prose_view::Prose};
use crate::state::{Answer, AnswerState, TurnId, split_thinking, store};

/// One answer.
#[component]
pub fn AnswerView(
    /// The turn to which it belongs.
    turn: TurnId,
    /// The answer.
    #[prop(into)]
    answer: Signal<Option<Answer>>,
    /// It is the conversation's last answer.
    #[prop(into)]
    last: Signal<bool>,
) -> impl IntoView {
    let store = store();
    let turn = StoredValue::new(turn);
    let state = Memo::new(move |_| {
        answer.with(|answer| answer.as_ref().map_or(AnswerState::Complete, |answer| answer.state.clone()))
    });
    let full = Memo::new(move |_| {
        let context = store.room.context();
        answer.with(|answer| answer.as_ref().is_some_and(|answer| answer.fills_context(context)))
    });
    let running = Memo::new(move |_| state.with(AnswerState::running));
    let thinking = Memo::new(move |_| {
        answer.with(|answer| {
            let parts = split_thinking(&answer.as_ref()?.text);
            parts.thinking.map(|thinking| (thinking.to_owned(), parts.answering))
        })
    });
    let text = Memo::new(move |_| {
        answer.with(|answer| {
            let text = answer.as_ref().map(|answer| answer.text.as_str()).unwrap_or_default();
            split_thinking(text).answer.to_owned()
        })
    });
    let is_plain = Memo::new(move |_| turn.with_value(|turn| store.screen.plain.with(|plain| plain.contains(turn))));
    view! {
        <div class="answer" class:answer-running=running>
            <Show when=move || thinking.with(Option::is_some)>
                <details class="fold thinking">
                    <summary>
                        {move || if thinking.with(|thinking| thinking.as_ref().is_some_and(|thinking| thinking.1)) { "What it thought" } else { "Thinking" }}
                    </summary>
                    <p dir="auto">{move || thinking.get().map(|thinking| thinking.0)}</p>
                </details>
            </Show>
            <Show when=move || is_plain.get() fallback=move || view! { <Prose text running turn /> }>
                <PlainAnswer text turn />
            </Show>
            <PhaseLine state full />
            <Show when=move || !running.get()>
                <AnswerFoot answer last />
            </Show>
        </div>
    }
}

/// An answer whose drawing stopped the page.
#[component]
fn PlainAnswer(text: Memo<String>, turn: StoredValue<TurnId>) -> impl IntoView {
    let store = store();
    let draw = move |_| turn.with_value(|turn| store.draw_again(turn));
    view! {
        <div class="plain-answer">
            <p class="hint">
                "Drawing this answer stopped the page. It is shown as plain text. "
                <button type="button" class="button button-quiet button-small" on:click=draw>"Draw it again"</button>
            </p>
            <p class="as-written" dir="auto">{text}</p>
        </div>
    }
}
