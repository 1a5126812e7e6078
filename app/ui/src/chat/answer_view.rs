//! An answer: folded thinking, Markdown, the phase, the possible actions.

use leptos::prelude::*;

use super::{answer_foot::AnswerFoot, markdown::parse, markdown_view::BlockView, phase_line::PhaseLine};
use crate::state::{Answer, AnswerState, split_thinking, store};

/// One answer.
#[component]
pub fn AnswerView(
    /// The answer.
    #[prop(into)]
    answer: Signal<Option<Answer>>,
    /// It is the conversation's last answer.
    #[prop(into)]
    last: Signal<bool>,
) -> impl IntoView {
    let store = store();
    let state = Memo::new(move |_| {
        answer.with(|answer| answer.as_ref().map_or(AnswerState::Complete, |answer| answer.state.clone()))
    });
    let full = Memo::new(move |_| {
        let context = store.room.context();
        answer.with(|answer| answer.as_ref().is_some_and(|answer| answer.fills_context(context)))
    });
    let running = move || state.with(AnswerState::running);
    let thinking = Memo::new(move |_| {
        answer.with(|answer| {
            let parts = split_thinking(&answer.as_ref()?.text);
            parts.thinking.map(|thinking| (thinking.to_owned(), parts.answering))
        })
    });
    let blocks = Memo::new(move |_| {
        answer.with(|answer| {
            let text = answer.as_ref().map(|answer| answer.text.as_str()).unwrap_or_default();
            let blocks = parse(split_thinking(text).answer);
            blocks.into_iter().enumerate().map(|(index, block)| (index, block.fingerprint(), block)).collect::<Vec<_>>()
        })
    });
    view! {
        <div class="answer" class:answer-running=running>
            <Show when=move || thinking.with(Option::is_some)>
                <details class="fold thinking">
                    <summary>
                        {move || if thinking.with(|thinking| thinking.as_ref().is_some_and(|thinking| thinking.1)) { "What it thought" } else { "Thinking" }}
                    </summary>
                    <p>{move || thinking.get().map(|thinking| thinking.0)}</p>
                </details>
            </Show>
            <div class="prose" aria-live="polite" aria-busy=move || running().to_string()>
                <For each=move || blocks.get() key=|(index, fingerprint, _)| (*index, *fingerprint) let((_, _, block))>
                    <BlockView block />
                </For>
            </div>
            <PhaseLine state full />
            <Show when=move || !running()>
                <AnswerFoot answer last />
            </Show>
        </div>
    }
}
