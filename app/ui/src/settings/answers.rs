//! Settings for generating answers.

use leptos::prelude::*;

use crate::state::{Settings, store};

/// Instructions and sampling.
#[component]
pub fn Answers() -> impl IntoView {
    let store = store();
    view! {
        <section class="settings-part" aria-label="Answers">
            <h3>"Answers"</h3>
            <label class="labelled">
                <span>"Instructions for every conversation"</span>
                <textarea
                    class="field"
                    rows="3"
                    placeholder="Be brief."
                    prop:value=move || store.settings.with(|settings| settings.instructions.clone())
                    on:change=move |event| store.set(|settings| settings.instructions = event_target_value(&event))
                ></textarea>
            </label>
            <Number label="Temperature" hint="0 always takes the likeliest word" step="0.1" read=|settings| settings.temperature.to_string() write=|settings, value| settings.temperature = value.clamp(0.0, 2.0) as f32 />
            <Number label="Maximum answer length, tokens" hint="Press Continue for more" step="1" read=|settings| settings.max_tokens.to_string() write=|settings, value| settings.max_tokens = value.clamp(1.0, 131_072.0) as u32 />
            <details class="fold">
                <summary>"More"</summary>
                <Number label="Top k" hint="Keep the k most likely tokens; 0 keeps all" step="1" read=|settings| settings.top_k.to_string() write=|settings, value| settings.top_k = value.clamp(0.0, 128.0) as u32 />
                <Number label="Top p" hint="Keep the most likely tokens up to this total probability" step="0.01" read=|settings| settings.top_p.to_string() write=|settings, value| settings.top_p = value.clamp(0.01, 1.0) as f32 />
                <Number label="Min p" hint="Drop tokens below this share of the top probability" step="0.01" read=|settings| settings.min_p.to_string() write=|settings, value| settings.min_p = value.clamp(0.0, 1.0) as f32 />
                <Number label="Repetition penalty" hint="1 turns it off" step="0.05" read=|settings| settings.repetition_penalty.to_string() write=|settings, value| settings.repetition_penalty = value.clamp(0.5, 2.0) as f32 />
                <SeedField />
                <button type="button" class="button" on:click=move |_| store.set(reset)>"Back to the usual values"</button>
            </details>
        </section>
    }
}

/// Resets sampling to its defaults and keeps everything else.
fn reset(settings: &mut Settings) {
    let usual = Settings::default();
    settings.temperature = usual.temperature;
    settings.max_tokens = usual.max_tokens;
    settings.top_k = usual.top_k;
    settings.top_p = usual.top_p;
    settings.min_p = usual.min_p;
    settings.repetition_penalty = usual.repetition_penalty;
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
fn SeedField() -> impl IntoView {
    let store = store();
    view! {
        <label class="labelled labelled-row">
            <span>"Seed"<small class="hint">"The same seed gives the same answer; empty takes a new one"</small></span>
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
