//! The status line while an answer is pending.

use leptos::prelude::*;
use potluck_text::{sentences, texts};

use crate::state::AnswerState;

/// "Reading your prompt: 412 of 1,900 tokens."
fn answer_text(state: &AnswerState, full: bool) -> Option<String> {
    let texts = &texts().answer;
    match state {
        AnswerState::Queued(0) => Some(texts.sending().into()),
        AnswerState::Queued(1) => Some(texts.next().into()),
        AnswerState::Queued(position) => Some(texts.queued(position)),
        AnswerState::Reading { done, total } => Some(texts.reading(done, total)),
        AnswerState::Recovering(reason) => Some(sentences(&[reason, texts.continues()])),
        AnswerState::Stopped => Some(texts.stopped().into()),
        AnswerState::Length if full => Some(texts.context_full().into()),
        AnswerState::Length => Some(texts.length().into()),
        AnswerState::Failed(why) => Some(why.clone()),
        AnswerState::Interrupted => Some(texts.interrupted().into()),
        AnswerState::Writing | AnswerState::Complete => None,
    }
}

/// A line below the answer.
#[component]
pub fn PhaseLine(
    /// The answer's progress.
    #[prop(into)]
    state: Signal<AnswerState>,
    /// The answer fills its conversation's context.
    #[prop(into)]
    full: Signal<bool>,
) -> impl IntoView {
    let line = Memo::new(move |_| state.with(|state| answer_text(state, full.get())));
    let class = move || {
        state.with(|state| match state {
            AnswerState::Failed(_) => "phase-words phase-words-failed",
            AnswerState::Recovering(_) | AnswerState::Interrupted => "phase-words phase-words-slow",
            state if state.running() => "phase-words phase-words-running",
            _ => "phase-words",
        })
    };
    // Its numbers change many times a second: nobody wants to hear them all.
    let role = move || state.with(|state| (!matches!(state, AnswerState::Reading { .. })).then_some("status"));
    view! {
        <Show when=move || line.with(Option::is_some)>
            <p class=class role=role>{line}</p>
        </Show>
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_has_a_text_and_a_finished_answer_none() {
        assert_eq!(
            answer_text(&AnswerState::Reading { done: 412, total: 1900 }, false).as_deref(),
            Some("Reading your prompt: 412 of 1,900 tokens.")
        );
        assert_eq!(
            answer_text(&AnswerState::Queued(3), false).as_deref(),
            Some("Others are asking too. You are number 3.")
        );
        assert_eq!(answer_text(&AnswerState::Complete, true), None);
    }

    #[test]
    fn a_full_context_is_told_from_a_limit_on_the_answer() {
        let line = |full| answer_text(&AnswerState::Length, full).unwrap_or_default();
        assert_eq!(line(false), "The answer reached its length limit.");
        assert_eq!(
            line(true),
            "This conversation is as long as this room allows: its context is full. Start a new conversation."
        );
    }
}
