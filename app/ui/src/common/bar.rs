//! A bar that fills.

use leptos::prelude::*;

use crate::text::percent;

/// A bar that fills from 0 to `total`; without a total it says that something goes on.
#[component]
pub fn Bar(
    /// What it measures, for those who do not see it.
    #[prop(into)]
    label: Signal<String>,
    /// How much.
    #[prop(into)]
    done: Signal<u64>,
    /// Of how much; 0 if that is not known.
    #[prop(into)]
    total: Signal<u64>,
    /// A calmer look: a share, not a progress.
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
