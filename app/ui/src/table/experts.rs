//! Experts that lie on several devices: who holds how many, how they answer, and what the round trips cost.

use leptos::prelude::*;
use potluck_panel::{ExpertsView, HolderView, Status};
use potluck_text::texts;

use super::token_path::name;
use crate::{
    state::store,
    text::{
        call_times, calls_line, holding_line, on_demand_line, replicas_line, residency_line, shadow_line, short_line,
        trips_line,
    },
};

/// The experts of the plan; nothing if all lie with their blocks.
#[component]
pub fn ExpertsCard() -> impl IntoView {
    let store = store();
    let experts = Memo::new(move |_| store.room.status.with(|status| status.plan.as_ref()?.experts.clone()));
    let summary = move || store.room.status.with(summary);
    let lines = move || experts.with(|experts| experts.as_ref().map(lines).unwrap_or_default());
    let rows = move || {
        let holders = experts.with(|experts| experts.as_ref().map(|experts| experts.holders.clone()));
        let row = |holder: HolderView| {
            let name = store.room.status.with_untracked(|status| name(status, holder.peer));
            view! { <HolderRow holder name /> }
        };
        holders.unwrap_or_default().into_iter().map(row).collect_view()
    };
    view! {
        <Show when=move || experts.with(Option::is_some)>
            <details class="card fold experts-card">
                <summary>{summary}</summary>
                {move || lines().into_iter().map(|line| view! { <p class="hint">{line}</p> }).collect_view()}
                <ul class="holders" aria-label=texts().experts.holders()>{rows}</ul>
            </details>
        </Show>
    }
}

/// What loading experts on demand costs this device; nothing if it holds all of its experts.
#[component]
pub fn OnDemandLine() -> impl IntoView {
    let store = store();
    let report = Memo::new(move |_| store.room.status.with(|status| status.on_demand));
    let shadow = Memo::new(move |_| store.room.status.with(shadow_line));
    move || {
        let line = report.get().map(|report| view! { <p class="hint on-demand">{on_demand_line(&report)}</p> });
        let shadow = shadow.get().map(|line| view! { <p class="hint on-demand">{line}</p> });
        view! {
            {line}
            {shadow}
        }
    }
}

/// "Experts on 3 other devices: 48 round trips per token, 3.1 ms of 9.4 ms".
fn summary(status: &Status) -> String {
    let Some(plan) = &status.plan else { return String::new() };
    let Some(experts) = &plan.experts else { return String::new() };
    let holders = experts.holders.iter().filter(|holder| holder.experts > 0).count();
    let devices = texts().experts.summary(holders);
    match trips_line(experts, plan.measured_token_ms) {
        Some(trips) => format!("{devices}: {trips}"),
        None => devices,
    }
}

fn lines(experts: &ExpertsView) -> Vec<String> {
    let checks = texts().experts.checks().to_owned();
    let in_use = texts().pooling.in_use(experts.wire, experts.hedging);
    [Some(replicas_line(experts)), short_line(experts), Some(in_use), Some(calls_line(experts)), Some(checks)]
        .into_iter()
        .flatten()
        .collect()
}

#[component]
fn HolderRow(holder: HolderView, name: String) -> impl IntoView {
    view! {
        <li class="holder">
            <strong class="holder-name">{name}</strong>
            {holder.is_unhealthy.then(|| view! { <span class="chip chip-slow">{texts().experts.late()}</span> })}
            <span class="hint">{holding_line(&holder)}</span>
            {call_times(&holder).map(|times| view! { <span class="hint">{times}</span> })}
            {residency_line(&holder).map(|line| view! { <span class="hint">{line}</span> })}
        </li>
    }
}

#[cfg(test)]
mod tests {
    use potluck_panel::PlanReport;

    use super::*;
    use crate::table::fixtures::{holder, of_tab, plan_of};

    #[test]
    fn the_summary_counts_devices_with_experts_and_what_they_cost() {
        let experts = |trips_ms| ExpertsView {
            trips: 48.0,
            trips_ms,
            holders: vec![HolderView { experts: 96, ..holder("a") }, HolderView { ordered: 64, ..holder("b") }],
            ..ExpertsView::default()
        };
        let of = |experts| Status {
            plan: Some(PlanReport { measured_token_ms: 9.4, experts: Some(experts), ..plan_of(&["h"]) }),
            ..of_tab("h")
        };
        assert_eq!(summary(&of(experts(0.0))), "Experts on 1 other device", "the second still loads, none was asked");
        let measured = "Experts on 1 other device: 48 round trips per token, 3.1 ms of 9.4 ms";
        assert_eq!(summary(&of(experts(3.1))), measured);
    }
}
