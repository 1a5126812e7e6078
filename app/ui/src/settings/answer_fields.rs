//! The fields for how answers are generated: in every conversation, or in the open one.

use leptos::prelude::*;
use potluck_panel::ReasoningEffort;
use potluck_text::texts;

use crate::state::{AnswerSettings, Store, store};

/// Whose answers the fields are about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AnswersOf {
    /// Those of every conversation without settings of its own.
    EveryConversation,
    /// Those of the open conversation.
    OpenConversation,
}

impl AnswersOf {
    fn read<T>(self, store: Store, read: impl FnOnce(&AnswerSettings) -> T) -> T {
        store.settings.with(|settings| match self {
            Self::EveryConversation => read(&settings.answers),
            Self::OpenConversation => store.chats.open.with(|open| read(open.answer_settings(&settings.answers))),
        })
    }

    fn change(self, store: Store, change: impl FnOnce(&mut AnswerSettings)) {
        match self {
            Self::EveryConversation => store.set(|settings| change(&mut settings.answers)),
            Self::OpenConversation => store.change_own_answers(change),
        }
    }

    fn instructions(self) -> &'static str {
        match self {
            Self::EveryConversation => texts().sampling.instructions(),
            Self::OpenConversation => texts().own_answers.instructions(),
        }
    }
}

/// Instructions and sampling.
#[component]
pub fn AnswerFields(
    /// Whose.
    of: AnswersOf,
) -> impl IntoView {
    let store = store();
    let instructions = Memo::new(move |_| of.read(store, |answers| answers.instructions.clone()));
    let reset = move |_| of.change(store, |answers| *answers = std::mem::take(answers).with_usual_sampling());
    view! {
        <label class="labelled">
            <span>{of.instructions()}</span>
            <textarea
                class="field"
                rows="3"
                dir="auto"
                placeholder=texts().sampling.instructions_hint()
                prop:value=instructions
                on:change=move |event| of.change(store, |answers| answers.instructions = event_target_value(&event))
            ></textarea>
        </label>
        <ReasoningField of />
        <TwiceField of />
        <Number of label=texts().sampling.temperature() hint=texts().sampling.temperature_hint() step="0.1" read=|answers| answers.sampling.temperature.to_string() write=|answers, value| answers.sampling.temperature = value.clamp(0.0, 2.0) as f32 />
        <Number of label=texts().sampling.length() hint=texts().sampling.length_hint() step="1" read=|answers| answers.max_tokens.to_string() write=|answers, value| answers.max_tokens = value.clamp(1.0, 131_072.0) as u32 />
        <details class="fold">
            <summary>{texts().sampling.more()}</summary>
            <Number of label=texts().sampling.top_k() hint=texts().sampling.top_k_hint() step="1" read=|answers| answers.sampling.top_k.to_string() write=|answers, value| answers.sampling.top_k = value.clamp(0.0, 128.0) as u32 />
            <Number of label=texts().sampling.top_p() hint=texts().sampling.top_p_hint() step="0.01" read=|answers| answers.sampling.top_p.to_string() write=|answers, value| answers.sampling.top_p = value.clamp(0.01, 1.0) as f32 />
            <Number of label=texts().sampling.min_p() hint=texts().sampling.min_p_hint() step="0.01" read=|answers| answers.sampling.min_p.to_string() write=|answers, value| answers.sampling.min_p = value.clamp(0.0, 1.0) as f32 />
            <Number of label=texts().sampling.repetition() hint=texts().sampling.repetition_hint() step="0.05" read=|answers| answers.sampling.repetition_penalty.to_string() write=|answers, value| answers.sampling.repetition_penalty = value.clamp(0.5, 2.0) as f32 />
            <SeedField of />
            <button type="button" class="button" on:click=reset>{texts().sampling.reset()}</button>
        </details>
    }
}

#[component]
fn Number(
    of: AnswersOf,
    label: &'static str,
    hint: &'static str,
    step: &'static str,
    read: fn(&AnswerSettings) -> String,
    write: fn(&mut AnswerSettings, f64),
) -> impl IntoView {
    let store = store();
    let change = move |event| {
        if let Ok(value) = event_target_value(&event).parse::<f64>() {
            of.change(store, |answers| write(answers, value));
        }
    };
    view! {
        <label class="labelled labelled-row">
            <span>{label}<small class="hint">{hint}</small></span>
            <input
                class="field field-number"
                type="number"
                min="0"
                step=step
                prop:value=move || of.read(store, read)
                on:change=change
            />
        </label>
    }
}

/// Whether each question gets two answers.
#[component]
fn TwiceField(of: AnswersOf) -> impl IntoView {
    let store = store();
    view! {
        <label class="check">
            <input
                type="checkbox"
                role="switch"
                class="switch"
                prop:checked=move || of.read(store, |answers| answers.twice)
                on:change=move |event| of.change(store, |answers| answers.twice = event_target_checked(&event))
            />
            <span>{texts().sampling.twice()}<small class="hint">{texts().sampling.twice_hint()}</small></span>
        </label>
    }
}

#[component]
fn ReasoningField(of: AnswersOf) -> impl IntoView {
    let store = store();
    let chosen = move || of.read(store, |answers| answers.reasoning);
    let option = move |(name, effort): (&'static str, ReasoningEffort)| {
        let label = match effort {
            ReasoningEffort::Off => texts().sampling.reasoning_off(),
            ReasoningEffort::Low => texts().sampling.reasoning_low(),
            ReasoningEffort::Medium => texts().sampling.reasoning_medium(),
            ReasoningEffort::High => texts().sampling.reasoning_high(),
        };
        view! { <option value=name prop:selected=move || chosen() == Some(effort)>{label}</option> }
    };
    let change = move |event| {
        of.change(store, |answers| answers.reasoning = ReasoningEffort::named(&event_target_value(&event)));
    };
    view! {
        <label class="labelled labelled-row">
            <span>{texts().sampling.reasoning()}<small class="hint">{texts().sampling.reasoning_hint()}</small></span>
            <select class="field" on:change=change>
                <option value="" prop:selected=move || chosen().is_none()>{texts().sampling.reasoning_usual()}</option>
                {ReasoningEffort::ALL.map(option)}
            </select>
        </label>
    }
}

#[component]
fn SeedField(of: AnswersOf) -> impl IntoView {
    let store = store();
    view! {
        <label class="labelled labelled-row">
            <span>{texts().sampling.seed()}<small class="hint">{texts().sampling.seed_hint()}</small></span>
            <input
                class="field field-number"
                type="text"
                inputmode="numeric"
                prop:value=move || of.read(store, |answers| answers.seed.map(|seed| seed.to_string()).unwrap_or_default())
                on:change=move |event| {
                    let seed = event_target_value(&event).trim().parse().ok();
                    of.change(store, |answers| answers.seed = seed);
                }
            />
        </label>
    }
}
