//! The line that joins the stages in order, and the light that travels along it once per token.

use leptos::{prelude::*, svg};
use wasm_bindgen::JsCast;

use super::{geometry::token_path, svg::Seating};
use crate::{browser, state::store};

/// Minimum and maximum duration of the light's run, seconds.
const RUN: (f64, f64) = (0.12, 1.2);

/// The stages' line with its light.
#[component]
pub fn StageLine(
    /// The seats.
    #[prop(into)]
    seating: Signal<Seating>,
) -> impl IntoView {
    let store = store();
    let path =
        Memo::new(move |_| store.room.status.with(|status| token_path(&seating.with(|seating| seating.stops(status)))));
    let motion = NodeRef::<svg::AnimateMotion>::new();
    let run = RwSignal::new(RUN.1);
    let last = StoredValue::new(0.0_f64);
    // The light takes as long as a token: the time since the previous one.
    Effect::new(move |_| {
        if store.room.tokens.get() == 0 {
            return;
        }
        let now = browser::now();
        let since = (now - last.get_value()) / 1000.0;
        last.set_value(now);
        run.set(since.clamp(RUN.0, RUN.1));
        let light = motion.get_untracked().and_then(|motion| motion.dyn_into::<web_sys::SvgAnimationElement>().ok());
        if let Some(light) = light {
            // Ignore the error: it throws only for an element outside a document.
            let _begun = light.begin_element();
        }
    });
    view! {
        <Show when=move || path.with(|path| !path.is_empty())>
            <path class="stage-line" d=move || path.get() />
            <circle class="stage-light" r="6">
                <animateMotion
                    node_ref=motion
                    id="stage-run"
                    begin="indefinite"
                    dur=move || format!("{:.2}s", run.get())
                    path=move || path.get()
                />
                <set attributeName="opacity" to="1" begin="stage-run.begin" dur=move || format!("{:.2}s", run.get()) />
            </circle>
        </Show>
    }
}
