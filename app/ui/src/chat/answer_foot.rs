//! The line under an answer: copy, its versions, regenerate, continue, compare; in small print the model, speed and time to first token.

use leptos::prelude::*;
use potluck_panel::Timings;
use potluck_text::texts;

use super::version_steps::VersionSteps;
use crate::{
    common::{CopyButton, Icon, Symbol},
    state::{Answer, Versioned, store},
    text::tokens_per_second,
};

/// "6.1 tok/s · first token after 420 ms · 128 tokens".
fn timing_text(timings: &Timings) -> String {
    let mut parts = Vec::new();
    // The time to first token covers the first token, so the rate counts only the others.
    if timings.answer_tokens > 1 && timings.decode_ms > 0.0 {
        let pace = f64::from(timings.answer_tokens - 1) * 1000.0 / timings.decode_ms;
        parts.push(tokens_per_second(pace));
    }
    if timings.first_token_ms > 0.0 {
        parts.push(texts().answer.first_token(timings.first_token_ms));
    }
    parts.push(texts().answer.tokens(timings.answer_tokens));
    parts.join(" · ")
}

/// What was expected, for those who point at the numbers.
fn expected_text(answer: &Answer) -> Option<String> {
    let expected = answer.timings.map(|timings| timings.expected_first_ms).filter(|millis| *millis > 0.0);
    expected.map(|millis| texts().answer.first_token_expected(millis))
}

/// Actions for a finished answer.
#[component]
pub fn AnswerFoot(
    /// Where the answer is in the open conversation.
    at: usize,
    /// The answer.
    #[prop(into)]
    answer: Signal<Option<Answer>>,
    /// It is the last answer; only that one can be regenerated.
    #[prop(into)]
    last: Signal<bool>,
) -> impl IntoView {
    let store = store();
    let text = Signal::derive(move || {
        answer.with(|answer| answer.as_ref().map(|answer| answer.text.clone()).unwrap_or_default())
    });
    let written = move || text.with(|text| !text.is_empty());
    let can_continue = move || {
        let goes_on = |answer: &Answer| answer.can_continue(store.room.context());
        last.get() && !store.only_reads() && answer.with(|answer| answer.as_ref().is_some_and(goes_on))
    };
    let ready = Memo::new(move |_| store.can_ask() && store.answering().is_none());
    let has_versions = move || store.chats.open.with(|open| open.versions(at, Versioned::Answer).count > 1);
    let can_compare = move || (has_versions() || last.get() && !store.only_reads()) && store.beside(at).is_none();
    let compare_label =
        move || if has_versions() { texts().versions.compare() } else { texts().versions.another_beside() };
    let numbers = move || {
        answer.with(|answer| {
            let answer = answer.as_ref()?;
            let timings = answer.timings.as_ref().filter(|timings| timings.answer_tokens > 0)?;
            Some(timing_text(timings))
        })
    };
    let expected = move || answer.with(|answer| answer.as_ref().and_then(expected_text));
    let model = Signal::derive(move || {
        let named = |answer: &Option<Answer>| answer.as_ref().map(|answer| answer.model.clone());
        answer.with(named).filter(|model| !model.is_empty())
    });
    view! {
        <div class="answer-foot">
            <Show when=written>
                <CopyButton text class="button button-quiet button-small" />
            </Show>
            <VersionSteps at of=Versioned::Answer />
            <Show when=move || last.get() && !store.only_reads()>
                <button
                    type="button"
                    class="button button-quiet button-small"
                    disabled=move || !ready.get()
                    on:click=move |_| store.regenerate()
                >
                    <Icon symbol=Symbol::Again />
                    <span>{texts().answer.regenerate()}</span>
                </button>
            </Show>
            <Show when=can_continue>
                <button
                    type="button"
                    class="button button-quiet button-small"
                    disabled=move || !ready.get()
                    on:click=move |_| store.go_on()
                >
                    <Icon symbol=Symbol::Onward />
                    <span>{texts().answer.go_on()}</span>
                </button>
            </Show>
            <Show when=can_compare>
                <button
                    type="button"
                    class="button button-icon button-small"
                    aria-label=compare_label
                    title=compare_label
                    disabled=move || !has_versions() && !ready.get()
                    on:click=move |_| store.compare(at)
                >
                    <Icon symbol=Symbol::Columns />
                </button>
            </Show>
            <span class="answer-small">
                <Show when=move || model.with(Option::is_some)>
                    <bdi class="answer-model">{model}</bdi>
                </Show>
                <span class="answer-numbers" title=expected>{numbers}</span>
            </span>
        </div>
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pace_leaves_out_the_first_token() {
        let timings = Timings { answer_tokens: 11, decode_ms: 2000.0, first_token_ms: 420.0, ..Timings::default() };
        assert_eq!(timing_text(&timings), "5 tok/s · first token after 420 ms · 11 tokens");
        let one = Timings { answer_tokens: 1, first_token_ms: 420.0, ..Timings::default() };
        assert!(!timing_text(&one).contains("tok/s"));
    }
}
