//! Pooled experts as everyone sees them: who holds how many, how holders answer, and what that costs.

use std::collections::BTreeMap;

use potluck_plan::{Bytes, ModelShape, PeerId, Plan, Pooling, WeightUnit};
use potluck_protocol::{ExpertPhase, ExpertsView, HolderReport, HolderView};

use crate::members::Members;

/// Experts of a plan that lie elsewhere. `pooling`: as the host wants them; `ordered`: experts that devices load besides.
pub(super) fn experts(
    plan: &Plan,
    shape: &ModelShape,
    members: &Members,
    pooling: Pooling,
    ordered: impl Iterator<Item = (PeerId, u32)>,
) -> Option<ExpertsView> {
    let counts: Vec<usize> = plan.pooled().map(|(.., holders)| holders.len()).collect();
    let fewest = *counts.iter().min()?;
    let callers = || members.known.iter().filter(|(peer, _)| plan.has_stage(**peer)).map(|(_, member)| &member.status);
    let reports: Vec<&HolderReport> = callers().flat_map(|status| &status.holders).collect();
    let mut holders = held(plan, shape);
    for (peer, experts) in ordered {
        holders.entry(peer).or_insert_with(|| empty(peer)).ordered = experts;
    }
    for holder in holders.values_mut() {
        let peer = holder.peer;
        reports.iter().filter(|report| report.peer == peer).for_each(|report| add(holder, report));
        let status = members.get(holder.peer).map(|member| &member.status);
        holder.loading = status.filter(|_| holder.ordered > 0).and_then(|status| status.holding.or(status.loading));
    }
    let holders: Vec<HolderView> = holders.into_values().collect();
    let sum = |of: fn(&HolderView) -> u32| holders.iter().fold(0u32, |sum, holder| sum.saturating_add(of(holder)));
    let seen: Vec<f64> = holders.iter().map(|holder| holder.median_ms).filter(|millis| *millis > 0.0).collect();
    Some(ExpertsView {
        pooled: counts.len() as u32,
        fewest_holders: fewest as u32,
        mean_holders: counts.iter().sum::<usize>() as f64 / counts.len() as f64,
        wanted_holders: pooling.replicas.into(),
        short: counts.iter().filter(|count| **count < usize::from(pooling.replicas)).count() as u32,
        hedging: pooling.hedging,
        // Not `pooling.wire`: some models cannot have it.
        wire: plan.expert_wire,
        open_calls: sum(|holder| holder.open),
        hedges: sum(|holder| holder.hedges),
        hedges_won: sum(|holder| holder.hedges_won),
        round_trip_ms: if seen.is_empty() { 0.0 } else { seen.iter().sum::<f64>() / seen.len() as f64 },
        trips: callers().map(|status| status.expert_waits.trips).sum(),
        trips_ms: callers().map(|status| status.expert_waits.millis).sum(),
        trips_engine_ms: callers().map(|status| status.expert_waits.engine_millis).sum(),
        own_ms: callers().map(|status| status.expert_waits.own_millis).sum(),
        token_bytes: callers().map(|status| status.expert_waits.bytes).sum(),
        phases: phases(callers().flat_map(|status| &status.expert_phases)),
        holders,
    })
}

/// What all stages have measured, by the number of devices that were asked.
fn phases<'a>(reported: impl Iterator<Item = &'a ExpertPhase>) -> Vec<ExpertPhase> {
    let mut sums: BTreeMap<u16, (u32, f64)> = BTreeMap::new();
    for ExpertPhase { asked, passes, millis } in reported {
        let (all, sum) = sums.entry(*asked).or_default();
        *all = all.saturating_add(*passes);
        *sum += f64::from(*passes) * millis;
    }
    let mean = |(asked, (passes, sum)): (u16, (u32, f64))| ExpertPhase {
        asked,
        passes,
        millis: sum / f64::from(passes.max(1)),
    };
    sums.into_iter().map(mean).collect()
}

/// The same without anything that changes with every token and heartbeat.
pub(super) fn without_measures(view: &ExpertsView) -> ExpertsView {
    let holder = |holder: &HolderView| HolderView {
        experts: holder.experts,
        bytes: holder.bytes,
        ordered: holder.ordered,
        is_unhealthy: holder.is_unhealthy,
        ..empty(holder.peer)
    };
    let ExpertsView { pooled, fewest_holders, mean_holders, wanted_holders, short, hedging, wire, .. } = *view;
    let holders = view.holders.iter().map(holder).collect();
    ExpertsView {
        pooled,
        fewest_holders,
        mean_holders,
        wanted_holders,
        short,
        hedging,
        wire,
        holders,
        ..ExpertsView::default()
    }
}

/// Who holds what.
fn held(plan: &Plan, shape: &ModelShape) -> BTreeMap<PeerId, HolderView> {
    // There are few of them and thousands of experts, so this is quicker than a map.
    let mut holders: Vec<HolderView> = Vec::new();
    for (block, expert, of_expert) in plan.pooled() {
        let bytes = shape.unit_bytes(WeightUnit::Expert(block, expert));
        for peer in of_expert.iter().filter_map(|holder| holder.peer()) {
            let known = holders.iter().position(|view| view.peer == peer);
            let at = known.unwrap_or_else(|| {
                holders.push(empty(peer));
                holders.len() - 1
            });
            holders[at].experts += 1;
            holders[at].bytes = holders[at].bytes.saturating_add(bytes);
        }
    }
    holders.into_iter().map(|view| (view.peer, view)).collect()
}

/// Adds what one stage has seen. Times are those of the stage that has seen most of them.
fn add(view: &mut HolderView, report: &HolderReport) {
    if report.answers > view.answers || view.median_ms == 0.0 {
        (view.median_ms, view.slow_ms) = (report.round_trip_millis, report.slow_millis);
    }
    view.answers = view.answers.saturating_add(report.answers);
    view.open = view.open.saturating_add(report.open);
    view.hedges = view.hedges.saturating_add(report.hedges);
    view.hedges_won = view.hedges_won.saturating_add(report.hedges_won);
    view.timeouts = view.timeouts.saturating_add(report.timeouts);
    view.is_unhealthy |= report.is_unhealthy;
}

fn empty(peer: PeerId) -> HolderView {
    HolderView {
        peer,
        experts: 0,
        bytes: Bytes::ZERO,
        answers: 0,
        open: 0,
        hedges: 0,
        hedges_won: 0,
        timeouts: 0,
        is_unhealthy: false,
        median_ms: 0.0,
        slow_ms: 0.0,
        ordered: 0,
        loading: None,
    }
}
