//! The lights of devices that compute experts for others: each pulses when a token sends the light around the table.

use std::collections::{BTreeMap, BTreeSet};

use leptos::prelude::*;
use potluck_panel::{PeerId, Status};

use super::svg::Seating;
use crate::state::store;

/// Calls that holders have answered, and who did lately.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Calls {
    answers: BTreeMap<PeerId, u32>,
    working: BTreeSet<PeerId>,
}

impl Calls {
    /// A snapshot counts the calls anew, but not every snapshot brings new counts.
    fn since(before: Option<&Self>, status: &Status) -> Self {
        let experts = status.plan.as_ref().and_then(|plan| plan.experts.as_ref());
        let holders = experts.map(|experts| experts.holders.as_slice()).unwrap_or_default();
        let answers: BTreeMap<PeerId, u32> = holders.iter().map(|holder| (holder.peer, holder.answers)).collect();
        match before {
            Some(before) if before.answers == answers => before.clone(),
            Some(before) => {
                let more = |(peer, count): &(&PeerId, &u32)| before.answers.get(peer).is_none_or(|known| known < count);
                let working = answers.iter().filter(more).map(|(peer, _)| *peer).collect();
                Self { answers, working }
            }
            None => Self { answers, working: BTreeSet::new() },
        }
    }
}

/// A light on the plate of each device that answered calls since the last report.
#[component]
pub fn HolderLights(
    /// The seats.
    #[prop(into)]
    seating: Signal<Seating>,
) -> impl IntoView {
    let store = store();
    let calls = Memo::new(move |before: Option<&Calls>| store.room.status.with(|status| Calls::since(before, status)));
    let plates = Memo::new(move |_| {
        let working = calls.with(|calls| calls.working.clone());
        seating.with(|seating| working.into_iter().filter_map(|peer| seating.plate_of(peer)).collect::<Vec<_>>())
    });
    move || {
        let light = |plate: super::geometry::Point| {
            view! {
                <circle class="expert-light" cx=plate.x cy=plate.y r="6">
                    <animate attributeName="opacity" attr:values="0;1;0" begin="stage-run.begin" dur="0.3s" />
                </circle>
            }
        };
        plates.get().into_iter().map(light).collect_view()
    }
}

#[cfg(test)]
mod tests {
    use potluck_panel::{ExpertsView, HolderView, PlanReport};

    use super::*;
    use crate::table::fixtures::{holder, of_tab, peer, plan_of};

    fn status(answers: &[(&str, u32)]) -> Status {
        let holder = |(name, answers): &(&str, u32)| HolderView { answers: *answers, ..holder(name) };
        let experts = ExpertsView { holders: answers.iter().map(holder).collect(), ..ExpertsView::default() };
        Status { plan: Some(PlanReport { experts: Some(experts), ..plan_of(&["h"]) }), ..of_tab("h") }
    }

    #[test]
    fn the_lights_are_those_of_devices_that_answered_since_the_last_report() {
        let first = Calls::since(None, &status(&[("a", 10), ("b", 5)]));
        assert!(first.working.is_empty(), "it is not known when they answered");
        let later = Calls::since(Some(&first), &status(&[("a", 14), ("b", 5)]));
        assert_eq!(later.working, [peer("a")].into());
        let same = Calls::since(Some(&later), &status(&[("a", 14), ("b", 5)]));
        assert_eq!(same.working, later.working, "nothing was reported since");
        let gone = Calls::since(Some(&later), &status(&[("b", 6), ("c", 1)]));
        assert_eq!(gone.working, [peer("b"), peer("c")].into());
    }
}
