//! A progress bar.

use leptos::prelude::*;

use crate::text::percent;

/// A bar that fills from 0 to `total`; without a total it only shows activity.
#[component]
pub fn Bar(
    /// What it measures, for screen readers.
    #[prop(into)]
    label: Signal<String>,
    /// How much.
    #[prop(into)]
    done: Signal<u64>,
    /// The total; 0 if unknown.
    #[prop(into)]
    total: Signal<u64>,
    /// A calmer style, for a share instead of progress.
    #[prop(optional)]
    meter: bool,
) -> impl IntoView {
    let share = move || percent(done.get(), total.get());
    let known = move || total.get() > 0;
    view! {
        <div
            class="bar"
            class:bar-meter=meter
            class:bar-busy=move || !meter && !known()
            role=if meter { "meter" } else { "progressbar" }
            aria-label=label
            aria-valuemin="0"
            aria-valuemax="100"
            aria-valuenow=move || (meter || known()).then(|| share().to_string())
        >
            <span style:width=move || format!("{}%", share())></span>
        </div>
    }
}
