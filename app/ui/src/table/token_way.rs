//! A token's way through the plan: what each stage and each message takes, expected and measured, and where most of it goes.

use leptos::prelude::*;
use potluck_panel::{ForecastReport, HopReport, PlanReport, PlanState, StageReport, Status};

use crate::{common::Bar, state::store, text::duration_ms};

/// One part of a token's way.
#[derive(Clone, Debug, PartialEq)]
pub struct Leg {
    /// What it is.
    pub place: Place,
    /// Milliseconds a token, as the planner expects.
    pub expected: f64,
    /// Milliseconds a token as measured, 0 before the first.
    pub measured: f64,
}

/// A stage, or the message between two devices.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// A peer computes blocks.
    Stage {
        /// Who.
        peer: String,
        /// "blocks 0–5".
        blocks: String,
    },
    /// A message.
    Way {
        /// Who sends.
        from: String,
        /// Who receives.
        to: String,
    },
}

impl Leg {
    /// What it takes: as measured, before that as expected.
    #[must_use]
    pub fn millis(&self) -> f64 {
        if self.measured > 0.0 { self.measured } else { self.expected }
    }
}

/// The parts of a token's way in their order; nothing where one device does everything, or while nothing is ready.
#[must_use]
pub fn legs(status: &Status) -> Vec<Leg> {
    let ready = status.plan.as_ref().filter(|plan| plan.state == PlanState::Up && plan.stages.len() > 1);
    ready.map(of_plan).unwrap_or_default()
}

fn of_plan(plan: &PlanReport) -> Vec<Leg> {
    let mut ways = plan.hops.iter().peekable();
    let mut legs = Vec::new();
    for stage in &plan.stages {
        // A message that comes from the device itself is none.
        if let Some(way) = ways.next_if(|way| way.to == stage.peer) {
            legs.push(of_way(way));
        }
        legs.push(of_stage(stage));
    }
    legs.extend(ways.map(of_way));
    legs
}

fn of_stage(stage: &StageReport) -> Leg {
    let last = stage.end_block.saturating_sub(1).max(stage.first_block);
    let blocks = if last == stage.first_block {
        format!("block {last}")
    } else {
        format!("blocks {}–{last}", stage.first_block)
    };
    let place = Place::Stage { peer: stage.peer.clone(), blocks };
    Leg { place, expected: stage.predicted_ms, measured: stage.measured_ms }
}

fn of_way(hop: &HopReport) -> Leg {
    let place = Place::Way { from: hop.from.clone(), to: hop.to.clone() };
    Leg { place, expected: hop.predicted_ms, measured: hop.measured_ms }
}

/// Index of the part that takes longest.
#[must_use]
pub fn bottleneck(legs: &[Leg]) -> Option<usize> {
    let slowest = legs.iter().enumerate().max_by(|a, b| a.1.millis().total_cmp(&b.1.millis()));
    slowest.filter(|(_, leg)| leg.millis() > 0.0).map(|(index, _)| index)
}

/// Where most of a token's time goes.
#[must_use]
pub fn slowest(status: &Status) -> Option<Place> {
    let legs = legs(status);
    bottleneck(&legs).map(|index| legs[index].place.clone())
}

/// "45 ms measured, 41 ms expected".
pub(super) fn times(measured: f64, expected: f64) -> String {
    if measured > 0.0 {
        format!("{} measured, {} expected", duration_ms(measured), duration_ms(expected))
    } else {
        format!("{} expected", duration_ms(expected))
    }
}

/// What was said of the last answer's tokens after its first ones, and what came of it.
fn foretold(told: &ForecastReport) -> String {
    let expected = format!(
        "After {} tokens ({} each) {} were expected for each further token of the last answer",
        told.tokens,
        duration_ms(told.measured_ms),
        duration_ms(told.forecast_ms)
    );
    match told.rest_tokens {
        0 => format!("{expected}."),
        1 => format!("{expected}; one came, after {}.", duration_ms(told.rest_ms)),
        n => format!("{expected}; {n} came, {} each.", duration_ms(told.rest_ms)),
    }
}

/// "You, blocks 0–5", "Phone to you".
fn title(place: &Place, name: impl Fn(&str) -> String) -> String {
    match place {
        Place::Stage { peer, blocks } => format!("{}: {blocks}", name(peer)),
        Place::Way { from, to } => format!("{} → {}", name(from), name(to)),
    }
}

fn name(status: &Status, peer: &str) -> String {
    let member = status.peers.iter().find(|member| member.peer == peer);
    member.map_or_else(|| "A device".into(), |member| if member.is_self { "You".into() } else { member.name.clone() })
}

/// All parts with their times, folded until somebody wants to see them.
#[component]
pub fn TokenWay() -> impl IntoView {
    let store = store();
    let legs = Memo::new(move |_| store.status.with(legs));
    let sum = move || {
        store.status.with(|status| {
            let plan = status.plan.as_ref();
            plan.map(|plan| times(plan.measured_token_ms, plan.token_ms)).unwrap_or_default()
        })
    };
    let told = move || store.status.with(|status| status.plan.as_ref()?.forecast.as_ref().map(foretold));
    let rows = move || {
        let legs = legs.get();
        let slowest = bottleneck(&legs);
        let longest = slowest.map_or(0.0, |index| legs[index].millis());
        let row = |(index, leg): (usize, &Leg)| {
            let title = store.status.with(|status| title(&leg.place, |peer| name(status, peer)));
            // Bars show shares of the longest part, in microseconds.
            let (done, total) = ((leg.millis() * 1e3) as u64, (longest * 1e3) as u64);
            let class = if matches!(leg.place, Place::Way { .. }) { "leg leg-way" } else { "leg" };
            view! {
                <li class=class class:leg-slow=slowest == Some(index)>
                    <span class="leg-title">{title.clone()}</span>
                    {(slowest == Some(index)).then(|| view! { <span class="chip chip-slow">"bottleneck"</span> })}
                    <span class="hint leg-times">{times(leg.measured, leg.expected)}</span>
                    <Bar label=title done total meter=true />
                </li>
            }
        };
        legs.iter().enumerate().map(row).collect_view()
    };
    view! {
        <Show when=move || legs.with(|legs| !legs.is_empty())>
            <details class="card fold token-way">
                <summary>{move || format!("A token's way: {}", sum())}</summary>
                <ol class="legs" aria-label="A token's way">{rows}</ol>
                {move || told().map(|sentence| view! { <p class="hint">{sentence}</p> })}
            </details>
        </Show>
    }
}

/// What would help, under the plan's reason.
#[component]
pub fn Help() -> impl IntoView {
    let store = store();
    let help = Memo::new(move |_| {
        store.status.with(|status| status.plan.as_ref().map(|plan| plan.help.clone()).unwrap_or_default())
    });
    view! {
        <Show when=move || help.with(|help| !help.is_empty())>
            <section class="help hint" aria-label="What would help">
                <strong>"What would help"</strong>
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
    use crate::table::fixtures::{hop, member, plan_of, stage};

    fn room() -> Status {
        let stages = vec![stage("a", 12.0), stage("b", 30.0), stage("b", 1.0)];
        let hops = vec![hop("a", "b", 4.0), hop("b", "a", 5.0)];
        let plan = PlanReport { stages, hops, ..plan_of(&[]) };
        Status { plan: Some(plan), peers: vec![member("a", true), member("b", false)], ..Status::default() }
    }

    #[test]
    fn stages_and_messages_come_in_the_order_of_a_token() {
        let status = room();
        let legs = legs(&status);
        let titles: Vec<String> = legs.iter().map(|leg| title(&leg.place, |peer| name(&status, peer))).collect();
        assert_eq!(titles, ["You: blocks 0–5", "You → b", "b: blocks 0–5", "b: blocks 0–5", "b → You"]);
        assert_eq!(bottleneck(&legs), Some(2));
        assert!(matches!(slowest(&status), Some(Place::Stage { peer, .. }) if peer == "b"));
    }

    #[test]
    fn a_host_that_holds_nothing_sends_the_token_first() {
        let mut status = room();
        let plan = status.plan.as_mut().expect("the room has one");
        plan.stages = vec![stage("b", 3.0), stage("c", 3.0)];
        plan.hops = vec![hop("a", "b", 9.0), hop("b", "c", 2.0), hop("c", "a", 2.0)];
        let legs = legs(&status);
        assert_eq!(legs.len(), 5);
        assert!(matches!(&legs[0].place, Place::Way { from, to } if from == "a" && to == "b"));
        assert_eq!(bottleneck(&legs), Some(0), "the message takes longest");
    }

    #[test]
    fn what_is_not_measured_yet_counts_as_expected_and_one_device_has_no_way() {
        let mut status = room();
        let plan = status.plan.as_mut().expect("the room has one");
        plan.stages = vec![stage("a", 0.0), stage("b", 0.0)];
        plan.stages[0].predicted_ms = 7.0;
        plan.hops.iter_mut().for_each(|hop| hop.measured_ms = 0.0);
        assert_eq!(bottleneck(&legs(&status)), Some(0));
        let plan = status.plan.as_mut().expect("the room has one");
        plan.stages.truncate(1);
        assert!(legs(&status).is_empty());
        assert_eq!(slowest(&status), None);
    }

    #[test]
    fn times_say_what_was_measured_and_what_was_expected() {
        assert_eq!(times(45.2, 41.0), "45 ms measured, 41 ms expected");
        assert_eq!(times(0.0, 4.1), "4.1 ms expected");
        let (tokens, before_ms, measured_ms, forecast_ms) = (15, 40.0, 45.2, 48.0);
        let told = ForecastReport { tokens, before_ms, measured_ms, forecast_ms, rest_tokens: 0, rest_ms: 0.0 };
        let said = "After 15 tokens (45 ms each) 48 ms were expected for each further token of the last answer";
        assert_eq!(foretold(&told), format!("{said}."));
        let told = ForecastReport { rest_tokens: 64, rest_ms: 47.1, ..told };
        assert_eq!(foretold(&told), format!("{said}; 64 came, 47 ms each."));
    }
}
