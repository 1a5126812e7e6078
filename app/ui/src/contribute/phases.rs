//! Progress by phase.

use leptos::prelude::*;
use potluck_panel::Loading;

use crate::{
    common::Bar,
    text::{Phase, loading_line, phase_label},
};

/// The phases in their order, the one under way with its numbers.
#[component]
pub fn Phases(
    /// What the node tells.
    loading: Loading,
) -> impl IntoView {
    let now = Phase::named(&loading.phase);
    let steps = Phase::ALL.map(|phase| {
        let class = match now {
            Some(current) if phase < current => "phase phase-done",
            Some(current) if phase == current => "phase phase-now",
            _ => "phase",
        };
        let current = (now == Some(phase)).then_some("step");
        view! { <li class=class aria-current=current>{phase.name()}</li> }
    });
    let label = phase_label(&loading.phase);
    let (done, total) = (loading.done, loading.total);
    view! {
        <div class="phases">
            <ol class="phase-list">{steps.collect_view()}</ol>
            <Bar label done total />
            <p class="hint phase-line">{loading_line(&loading)}</p>
        </div>
    }
}
