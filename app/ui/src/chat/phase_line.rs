//! What happens while one waits for an answer.

use leptos::prelude::*;

use crate::{state::AnswerState, text::count};

/// "Reading your prompt: 412 of 1,900 tokens."
fn words(state: &AnswerState) -> Option<String> {
    match state {
        AnswerState::Queued(0) => Some("Sending your question.".into()),
        AnswerState::Queued(1) => Some("You are next.".into()),
        AnswerState::Queued(position) => Some(format!("Others are asking too. You are number {position}.")),
        AnswerState::Reading { done, total } => {
            Some(format!("Reading your prompt: {} of {} tokens.", count(u64::from(*done)), count(u64::from(*total))))
        }
        AnswerState::Recovering(reason) => Some(format!("{reason} The answer continues in a moment.")),
        AnswerState::Stopped => Some("Stopped.".into()),
        AnswerState::Length => Some("The answer reached its length limit.".into()),
        AnswerState::Failed(why) => Some(why.clone()),
        AnswerState::Interrupted => Some("A reload interrupted this answer. The text so far is still here.".into()),
        AnswerState::Writing | AnswerState::Complete => None,
    }
}

/// One line below the answer.
#[component]
pub fn PhaseLine(
    /// How far the answer is.
    #[prop(into)]
    state: Signal<AnswerState>,
) -> impl IntoView {
    let line = Memo::new(move |_| state.with(words));
    let class = move || {
        state.with(|state| match state {
            AnswerState::Failed(_) => "phase-words phase-words-failed",
            AnswerState::Recovering(_) | AnswerState::Interrupted => "phase-words phase-words-slow",
            state if state.running() => "phase-words phase-words-running",
            _ => "phase-words",
        })
    };
    view! {
        <Show when=move || line.with(Option::is_some)>
            <p class=class role="status">{line}</p>
        </Show>
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_has_words_and_a_finished_answer_none() {
        assert_eq!(
            words(&AnswerState::Reading { done: 412, total: 1900 }).as_deref(),
            Some("Reading your prompt: 412 of 1,900 tokens.")
        );
        assert_eq!(words(&AnswerState::Queued(3)).as_deref(), Some("Others are asking too. You are number 3."));
        assert_eq!(words(&AnswerState::Complete), None);
    }
}
