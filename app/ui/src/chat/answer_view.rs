//! An answer: folded reasoning, Markdown, called functions, the phase, the possible actions.

use leptos::prelude::*;
use potluck_text::texts;

use super::{phase_line::PhaseLine, prose_view::Prose};
use crate::state::{Answer, AnswerState, TurnId, store};

/// One answer, with what follows it while none of it is written.
#[component]
pub fn AnswerView(
    /// The turn to which it belongs.
    #[prop(into)]
    turn: Signal<TurnId>,
    /// The answer.
    #[prop(into)]
    answer: Signal<Option<Answer>>,
    /// Screen readers do not read it while it is written: they read the one beside it.
    #[prop(optional)]
    unspoken: bool,
    /// What can be done with it.
    #[prop(into)]
    foot: ViewFn,
) -> impl IntoView {
    let store = store();
    let state = Memo::new(move |_| {
        answer.with(|answer| answer.as_ref().map_or(AnswerState::Complete, |answer| answer.state.clone()))
    });
    let full = Memo::new(move |_| {
        let context = store.room.context();
        answer.with(|answer| answer.as_ref().is_some_and(|answer| answer.fills_context(context)))
    });
    let doubtful = Memo::new(move |_| answer.with(|answer| answer.as_ref().is_some_and(|answer| answer.doubtful)));
    let running = Memo::new(move |_| state.with(AnswerState::running));
    let of_answer = move |read: fn(&Answer) -> String| {
        Memo::new(move |_| answer.with(|answer| answer.as_ref().map(read).unwrap_or_default()))
    };
    let reasoning = of_answer(|answer| answer.reasoning.clone());
    let text = of_answer(|answer| answer.text.clone());
    let calls = of_answer(|answer| answer.tool_calls.clone());
    let thinks = Memo::new(move |_| answer.with(|answer| answer.as_ref().is_some_and(Answer::thinks)));
    let thought = Memo::new(move |_| answer.with(|answer| answer.as_ref().and_then(|answer| answer.thought.took())));
    let thought_line = move || match (thinks.get(), thought.get()) {
        (true, _) => texts().answer.thinking().to_owned(),
        (false, Some(millis)) => texts().answer.thought_for(millis),
        (false, None) => texts().answer.thought().to_owned(),
    };
    let is_plain = Memo::new(move |_| turn.with(|turn| store.screen.plain.with(|plain| plain.contains(turn))));
    view! {
        <div class="answer" class:answer-running=running>
            <Show when=move || reasoning.with(|reasoning| !reasoning.is_empty())>
                <details class="fold thinking">
                    <summary>{thought_line}</summary>
                    <p dir="auto">{reasoning}</p>
                </details>
            </Show>
            <Show when=move || is_plain.get() fallback=move || view! { <Prose text running turn unspoken /> }>
                <PlainAnswer text turn />
            </Show>
            <Show when=move || calls.with(|calls| !calls.is_empty())>
                <details class="fold tool-calls">
                    <summary>{texts().answer.called()}</summary>
                    <p class="as-written" dir="auto">{calls}</p>
                </details>
            </Show>
            <PhaseLine state full />
            <Show when=move || doubtful.get()>
                <p class="phase-words phase-words-failed" role="status">{texts().answer.doubtful()}</p>
            </Show>
            <Show when=move || !running.get()>
                {foot.run()}
            </Show>
        </div>
    }
}

/// An answer whose drawing stopped the page.
#[component]
fn PlainAnswer(text: Memo<String>, turn: Signal<TurnId>) -> impl IntoView {
    let store = store();
    let draw = move |_| turn.with_untracked(|turn| store.draw_again(turn));
    view! {
        <div class="plain-answer">
            <p class="hint">
                {texts().answer.as_plain()} " "
                <button type="button" class="button button-quiet button-small" on:click=draw>{texts().answer.draw_again()}</button>
            </p>
            <p class="as-written" dir="auto">{text}</p>
        </div>
    }
}
