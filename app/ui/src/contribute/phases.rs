//! Loading progress by phase.

use std::cmp::Ordering;

use leptos::prelude::*;
use potluck_panel::{LoadPhase, LoadReport};
use potluck_text::texts;

use crate::{common::Bar, text::loading_line};

/// All phases in order, with numbers for the current one.
#[component]
pub fn Phases(
    /// The node's report.
    loading: LoadReport,
) -> impl IntoView {
    let steps = LoadPhase::ALL.map(|phase| {
        let class = match phase.cmp(&loading.phase) {
            Ordering::Less => "phase phase-done",
            Ordering::Equal => "phase phase-now",
            Ordering::Greater => "phase",
        };
        let current = (phase == loading.phase).then_some("step");
        view! { <li class=class aria-current=current>{texts().step.of(phase)}</li> }
    });
    let label = texts().phase.of(loading.phase);
    let (done, total) = (loading.done.0, loading.total.0);
    view! {
        <div class="phases">
            <ol class="phase-list">{steps.collect_view()}</ol>
            <Bar label done total />
            <p class="hint phase-line">{loading_line(&loading)}</p>
        </div>
    }
}
