//! Settings for generating answers.

use leptos::prelude::*;
use potluck_panel::ReasoningEffort;
use potluck_text::texts;

use crate::state::{Settings, store};

/// Instructions and sampling.
#[component]
pub fn Answers() -> impl IntoView {
    let store = store();
    view! {
        <section class="settings-part" aria-label=texts().sampling.heading()>
            <h3>{texts().sampling.heading()}</h3>
            <label class="labelled">
                <span>{texts().sampling.instructions()}</span>
                <textarea
                    class="field"
                    rows="3"
                    placeholder=texts().sampling.instructions_hint()
                    prop:value=move || store.settings.with(|settings| settings.instructions.clone())
                    on:change=move |event| store.set(|settings| settings.instructions = event_target_value(&event))
                ></textarea>
            </label>
            <ReasoningField />
            <Number label=texts().sampling.temperature() hint=texts().sampling.temperature_hint() step="0.1" read=|settings| settings.sampling.temperature.to_string() write=|settings, value| settings.sampling.temperature = value.clamp(0.0, 2.0) as f32 />
            <Number label=texts().sampling.length() hint=texts().sampling.length_hint() step="1" read=|settings| settings.max_tokens.to_string() write=|settings, value| settings.max_tokens = value.clamp(1.0, 131_072.0) as u32 />
            <details class="fold">
                <summary>{texts().sampling.more()}</summary>
                <Number label=texts().sampling.top_k() hint=texts().sampling.top_k_hint() step="1" read=|settings| settings.sampling.top_k.to_string() write=|settings, value| settings.sampling.top_k = value.clamp(0.0, 128.0) as u32 />
                <Number label=texts().sampling.top_p() hint=texts().sampling.top_p_hint() step="0.01" read=|settings| settings.sampling.top_p.to_string() write=|settings, value| settings.sampling.top_p = value.clamp(0.01, 1.0) as f32 />
                <Number label=texts().sampling.min_p() hint=texts().sampling.min_p_hint() step="0.01" read=|settings| settings.sampling.min_p.to_string() write=|settings, value| settings.sampling.min_p = value.clamp(0.0, 1.0) as f32 />
                <Number label=texts().sampling.repetition() hint=texts().sampling.repetition_hint() step="0.05" read=|settings| settings.sampling.repetition_penalty.to_string() write=|settings, value| settings.sampling.repetition_penalty = value.clamp(0.5, 2.0) as f32 />
                <SeedField />
                <button type="button" class="button" on:click=move |_| store.set(reset)>{texts().sampling.reset()}</button>
            </details>
        </section>
    }
}

/// Resets sampling to its defaults and keeps everything else.
fn reset(settings: &mut Settings) {
    let usual = Settings::default();
    settings.max_tokens = usual.max_tokens;
    settings.sampling = usual.sampling;
    settings.reasoning = usual.reasoning;
    settings.seed = usual.seed;
}

#[component]
fn Number(
    label: &'static str,
    hint: &'static str,
    step: &'static str,
    read: fn(&Settings) -> String,
    write: fn(&mut Settings, f64),
) -> impl IntoView {
    let store = store();
    let change = move |event| {
        if let Ok(value) = event_target_value(&event).parse::<f64>() {
            store.set(|settings| write(settings, value));
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
                prop:value=move || store.settings.with(read)
                on:change=change
            />
        </label>
    }
}

#[component]
fn ReasoningField() -> impl IntoView {
    let store = store();
    let chosen = move || store.settings.with(|settings| settings.reasoning);
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
        store.set(|settings| settings.reasoning = ReasoningEffort::named(&event_target_value(&event)));
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
fn SeedField() -> impl IntoView {
    let store = store();
    view! {
        <label class="labelled labelled-row">
            <span>{texts().sampling.seed()}<small class="hint">{texts().sampling.seed_hint()}</small></span>
            <input
                class="field field-number"
                type="text"
                inputmode="numeric"
                prop:value=move || store.settings.with(|settings| settings.seed.map(|seed| seed.to_string()).unwrap_or_default())
                on:change=move |event| {
                    let seed = event_target_value(&event).trim().parse().ok();
                    store.set(|settings| settings.seed = seed);
                }
            />
        </label>
    }
}
