//! A token's path through the plan: the expected and measured time of each stage and hop, and the slowest step.

use leptos::prelude::*;
use potluck_panel::{ForecastView, HopView, PeerId, PlanReport, PlanStatus, StageReport, Status};
use potluck_text::texts;

use crate::{common::Bar, state::store, text::blocks};

/// One step of a token's path.
#[derive(Clone, Debug, PartialEq)]
pub struct PathStep {
    /// What it is.
    pub kind: StepKind,
    /// Milliseconds per token that the planner expects.
    pub expected: f64,
    /// Measured milliseconds per token, 0 before the first.
    pub measured: f64,
}

/// A stage, or a message between two devices.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StepKind {
    /// A peer computes blocks.
    Stage {
        /// Who.
        peer: PeerId,
        /// "blocks 0–5"; `None` if it only embeds or only computes the LM head.
        blocks: Option<String>,
    },
    /// A message.
    Hop {
        /// Who sends.
        from: PeerId,
        /// The receiver.
        to: PeerId,
    },
}

impl PathStep {
    /// The measured time, or the expected one before there is a measurement.
    #[must_use]
    pub fn millis(&self) -> f64 {
        if self.measured > 0.0 { self.measured } else { self.expected }
    }
}

/// The steps of a token's path in order; empty if one device does everything, or before the plan is active.
#[must_use]
pub fn path_steps(status: &Status) -> Vec<PathStep> {
    let ready = status.plan.as_ref().filter(|plan| plan.state == PlanStatus::Up && plan.stages.len() > 1);
    ready.map(of_plan).unwrap_or_default()
}

fn of_plan(plan: &PlanReport) -> Vec<PathStep> {
    let mut hops = plan.hops.iter().peekable();
    let mut steps = Vec::new();
    for stage in &plan.stages {
        // No message leads to a stage on the same device as the previous stage.
        if let Some(hop) = hops.next_if(|hop| hop.to == stage.peer) {
            steps.push(of_hop(hop));
        }
        steps.push(of_stage(stage));
    }
    steps.extend(hops.map(of_hop));
    steps
}

fn of_stage(stage: &StageReport) -> PathStep {
    let blocks = blocks(stage.first_block, stage.end_block);
    let kind = StepKind::Stage { peer: stage.peer, blocks };
    PathStep { kind, expected: stage.predicted_ms, measured: stage.measured_ms }
}

fn of_hop(hop: &HopView) -> PathStep {
    let kind = StepKind::Hop { from: hop.from, to: hop.to };
    PathStep { kind, expected: hop.predicted_ms, measured: hop.measured_ms }
}

/// Index of the slowest step.
#[must_use]
pub fn bottleneck(steps: &[PathStep]) -> Option<usize> {
    let slowest = steps.iter().enumerate().max_by(|a, b| a.1.millis().total_cmp(&b.1.millis()));
    slowest.filter(|(_, step)| step.millis() > 0.0).map(|(index, _)| index)
}

/// Where a token spends most of its time.
#[must_use]
pub fn slowest(status: &Status) -> Option<StepKind> {
    let steps = path_steps(status);
    bottleneck(&steps).map(|index| steps[index].kind.clone())
}

/// "45 ms measured, 41 ms expected".
pub(super) fn times(measured: f64, expected: f64) -> String {
    if measured > 0.0 { texts().path.times(measured, expected) } else { texts().path.time_expected(expected) }
}

/// The forecast made after the last answer's first tokens, and the actual time of the others.
fn forecast_text(forecast: &ForecastView) -> String {
    let expected = texts().path.forecast(forecast.tokens, forecast.measured_ms, forecast.forecast_ms);
    match forecast.rest_tokens {
        0 => format!("{expected}."),
        tokens => texts().path.measured(tokens, &expected, forecast.rest_ms),
    }
}

/// "You, blocks 0–5", "Phone to you".
fn title(kind: &StepKind, name: impl Fn(PeerId) -> String) -> String {
    match kind {
        StepKind::Stage { peer, blocks: Some(blocks) } => format!("{}: {blocks}", name(*peer)),
        StepKind::Stage { peer, blocks: None } => name(*peer),
        StepKind::Hop { from, to } => format!("{} → {}", name(*from), name(*to)),
    }
}

/// "You", or the name of a device.
pub(super) fn name(status: &Status, peer: PeerId) -> String {
    let member = status.peers.iter().find(|member| member.peer == peer);
    member.map_or_else(
        || texts().seat.unnamed().into(),
        |member| if status.is_self(member) { texts().seat.you().into() } else { member.name.clone() },
    )
}

/// All steps with their times, folded until the user opens them.
#[component]
pub fn TokenPath() -> impl IntoView {
    let store = store();
    let steps = Memo::new(move |_| store.room.status.with(path_steps));
    let sum = move || {
        store.room.status.with(|status| {
            let plan = status.plan.as_ref();
            plan.map(|plan| times(plan.measured_token_ms, plan.token_ms)).unwrap_or_default()
        })
    };
    let forecast = move || store.room.status.with(|status| status.plan.as_ref()?.forecast.as_ref().map(forecast_text));
    let rows = move || {
        let steps = steps.get();
        let slowest = bottleneck(&steps);
        let longest = slowest.map_or(0.0, |index| steps[index].millis());
        let row = |(index, step): (usize, &PathStep)| {
            let title = store.room.status.with(|status| title(&step.kind, |peer| name(status, peer)));
            // Each bar shows the step's share of the longest step, in microseconds.
            let (done, total) = ((step.millis() * 1e3) as u64, (longest * 1e3) as u64);
            let class = if matches!(step.kind, StepKind::Hop { .. }) { "path-step path-hop" } else { "path-step" };
            view! {
                <li class=class class:path-slow=slowest == Some(index)>
                    <span class="path-title">{title.clone()}</span>
                    {(slowest == Some(index)).then(|| view! { <span class="chip chip-slow">{texts().seat.slowest()}</span> })}
                    <span class="hint path-times">{times(step.measured, step.expected)}</span>
                    <Bar label=title done total meter=true />
                </li>
            }
        };
        steps.iter().enumerate().map(row).collect_view()
    };
    view! {
        <Show when=move || steps.with(|steps| !steps.is_empty())>
            <details class="card fold token-path">
                <summary>{move || texts().path.total(sum())}</summary>
                <ol class="path-steps" aria-label=texts().path.steps()>{rows}</ol>
                {move || forecast().map(|sentence| view! { <p class="hint">{sentence}</p> })}
            </details>
        </Show>
    }
}

/// What would help, below the plan's reason.
#[component]
pub fn Help() -> impl IntoView {
    let store = store();
    let help = Memo::new(move |_| {
        store.room.status.with(|status| status.plan.as_ref().map(|plan| plan.help.clone()).unwrap_or_default())
    });
    view! {
        <Show when=move || help.with(|help| !help.is_empty())>
            <section class="help hint" aria-label=texts().path.help()>
                <strong>{texts().path.help()}</strong>
                <ul>
                    {move || help.get().into_iter().map(|sentence| view! { <li>{sentence}</li> }).collect_view()}
                </ul>
            </section>
        </Show>
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::fixtures::{hop, member, of_tab, peer, plan_of, stage};

    fn room() -> Status {
        let stages = vec![stage("a", 12.0), stage("b", 30.0), stage("b", 1.0)];
        let hops = vec![hop("a", "b", 4.0), hop("b", "a", 5.0)];
        let plan = PlanReport { stages, hops, ..plan_of(&[]) };
        Status { plan: Some(plan), peers: vec![member("a", true), member("b", false)], ..of_tab("a") }
    }

    #[test]
    fn stages_and_messages_come_in_the_order_of_a_token() {
        let status = room();
        let steps = path_steps(&status);
        let titles: Vec<String> = steps.iter().map(|step| title(&step.kind, |peer| name(&status, peer))).collect();
        assert_eq!(titles, ["You: blocks 0–5", "You → b", "b: blocks 0–5", "b: blocks 0–5", "b → You"]);
        assert_eq!(bottleneck(&steps), Some(2));
        assert!(matches!(slowest(&status), Some(StepKind::Stage { peer: slow, .. }) if slow == peer("b")));
    }

    #[test]
    fn a_host_that_holds_nothing_sends_the_token_first() {
        let mut status = room();
        let plan = status.plan.as_mut().expect("the room has one");
        plan.stages = vec![stage("b", 3.0), stage("c", 3.0)];
        plan.hops = vec![hop("a", "b", 9.0), hop("b", "c", 2.0), hop("c", "a", 2.0)];
        let steps = path_steps(&status);
        assert_eq!(steps.len(), 5);
        assert!(matches!(&steps[0].kind, StepKind::Hop { from, to } if *from == peer("a") && *to == peer("b")));
        assert_eq!(bottleneck(&steps), Some(0), "the message takes longest");
    }

    #[test]
    fn what_is_not_measured_yet_counts_as_expected_and_one_device_has_no_path() {
        let mut status = room();
        let plan = status.plan.as_mut().expect("the room has one");
        plan.stages = vec![stage("a", 0.0), stage("b", 0.0)];
        plan.stages[0].predicted_ms = 7.0;
        plan.hops.iter_mut().for_each(|hop| hop.measured_ms = 0.0);
        assert_eq!(bottleneck(&path_steps(&status)), Some(0));
        let plan = status.plan.as_mut().expect("the room has one");
        plan.stages.truncate(1);
        assert!(path_steps(&status).is_empty());
        assert_eq!(slowest(&status), None);
    }

    #[test]
    fn times_show_what_was_measured_and_what_was_expected() {
        assert_eq!(times(45.2, 41.0), "45 ms measured, 41 ms expected");
        assert_eq!(times(0.0, 4.1), "4.1 ms expected");
        let (tokens, before_ms, measured_ms, forecast_ms) = (15, 40.0, 45.2, 48.0);
        let early = ForecastView { tokens, before_ms, measured_ms, forecast_ms, rest_tokens: 0, rest_ms: 0.0 };
        let text = "Last answer: the first 15 tokens took 45 ms each, and the rest were expected to take 48 ms each";
        assert_eq!(forecast_text(&early), format!("{text}."));
        let later = ForecastView { rest_tokens: 64, rest_ms: 47.1, ..early };
        assert_eq!(forecast_text(&later), format!("{text}. The other 64 tokens took 47 ms each."));
    }
}
