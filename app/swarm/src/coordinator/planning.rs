//! From members to plans: `Down → Preparing → Committing → Up` (dynamic-partitioning.txt 4.4). The active plan goes
//! on while an inactive one is prepared beside it.

mod choosing;
mod observed;
mod planner_input;
mod plans;
mod replicas;
mod slices;
mod standbys;

pub(super) use choosing::Usage;
pub(super) use standbys::StandsBy;

use std::sync::Arc;

use potluck_plan::{PeerId, PlanEpoch};
use potluck_planner::{PlannerView, Shortfall};

use choosing::Choosing;
use observed::Observations;
use plans::{Plans, Purpose};
use replicas::Replicas;
use slices::SlicedSearches;
use standbys::StandbyPlans;

#[cfg(feature = "testing")]
pub use slices::Searches;

use crate::event::{HostCommand, OpenedModel};
use crate::event_context::EventContext;

/// Each part owns its state: `observed` what is known, `choosing` when a plan is looked for and why one was chosen, `plans` the two
/// plans and their epochs, `standbys` and `replicas` what is loaded besides, `slices` the searches that take long.
pub(super) struct Planning {
    /// What the planner sees of what was measured.
    view: PlannerView,
    pub plans: Plans,
    /// What is loaded in advance.
    pub standbys: StandbyPlans,
    replicas: Replicas,
    observed: Observations,
    choosing: Choosing,
    searches: SlicedSearches,
    pub shortfall: Option<Shortfall>,
    /// Why there is neither a plan nor a shortfall.
    pub reason: String,
}

/// What the host wants and how the room is used: everything planning needs besides the members.
#[derive(Clone, Copy)]
pub(super) struct PlanRequest<'a> {
    pub model: &'a Arc<OpenedModel>,
    pub command: &'a HostCommand,
    /// Tokens of answers pass the active plan now.
    pub answering: bool,
    pub usage: Usage,
}

impl Planning {
    pub fn new(epoch: PlanEpoch, view: PlannerView) -> Self {
        Self {
            view,
            plans: Plans { epoch, ..Plans::default() },
            standbys: StandbyPlans::default(),
            replicas: Replicas::default(),
            observed: Observations::default(),
            choosing: Choosing::default(),
            searches: SlicedSearches::default(),
            shortfall: None,
            reason: "Opening the model.".to_owned(),
        }
    }

    /// A contributing device is gone, or contributes no more.
    pub fn leaves(&mut self, peer: PeerId, cx: &EventContext) {
        self.observed.churn_history.leaves(peer, cx.now);
    }

    /// Experts of a plan that devices are told to load besides.
    pub fn ordered(&self, epoch: PlanEpoch) -> impl Iterator<Item = (PeerId, u32)> {
        self.replicas.ordered(epoch)
    }

    /// How often a device left lately.
    pub fn departures(&self, peer: PeerId) -> u32 {
        self.observed.churn_history.departures(peer)
    }

    pub fn prepared(&mut self, peer: PeerId, epoch: PlanEpoch) {
        self.standbys.prepared(peer, epoch);
        self.plans.prepared(peer, epoch);
    }

    /// Makes the inactive plan the active one, whether everyone is ready or not. With `running`, tokens pass it already;
    /// else they wait until everyone has switched. `tokens`: written in the room so far.
    pub fn commit(&mut self, running: bool, tokens: u64, cx: &mut EventContext) {
        let Some(purpose) = self.plans.commit(running, cx) else { return };
        self.choosing.policy.plan_changed(tokens);
        if purpose == Purpose::TakesOver {
            // It was the quickest to have, and there may be a better one.
            self.choosing.policy.check_soon();
        }
        self.standbys.plan_changed();
    }

    /// Notes the members' download rates, and sends orders again that were not answered: they or the answers may be lost.
    pub fn tick(&mut self, cx: &mut EventContext) {
        self.observed.tick(cx);
        self.plans.resend_orders(cx);
        self.decide_standbys(cx);
    }

    /// True once after the answer is over that a replan was put off for.
    pub fn take_put_off(&mut self) -> bool {
        std::mem::take(&mut self.choosing.policy.when_idle)
    }
}
