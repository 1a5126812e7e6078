//! Chooses how much memory to lend: a slider with sensible steps, and a field for an exact amount.

use leptos::prelude::*;
use potluck_text::texts;

use crate::text::{bytes, lend_step, lend_steps, read_bytes};

/// A slider and a field for bytes of GPU memory.
#[component]
pub fn LendSlider(
    /// The chosen bytes.
    value: RwSignal<u64>,
    /// What the amount is for.
    label: &'static str,
) -> impl IntoView {
    let steps = lend_steps();
    let last = steps.len() - 1;
    let slide = move |event| {
        let index = event_target_value(&event).parse::<usize>().unwrap_or(0).min(last);
        value.set(steps[index]);
    };
    let write = move |event| {
        if let Some(bytes) = read_bytes(&event_target_value(&event)) {
            value.set(bytes);
        }
        // Shows the effective amount after unreadable or rounded input.
        value.update(|_| {});
    };
    view! {
        <div class="lend">
            <label class="lend-label">
                <span>{label}</span>
                <input
                    class="field lend-field"
                    type="text"
                    inputmode="decimal"
                    aria-label=texts().button.exactly(label)
                    prop:value=move || bytes(value.get())
                    on:change=write
                />
            </label>
            <input
                class="slider"
                type="range"
                min="0"
                max=last.to_string()
                step="1"
                aria-label=label
                style=move || format!("--share: {:.1}%", 100.0 * lend_step(value.get()) as f64 / last.max(1) as f64)
                aria-valuetext=move || bytes(value.get())
                prop:value=move || lend_step(value.get()).to_string()
                on:input=slide
            />
        </div>
    }
}
