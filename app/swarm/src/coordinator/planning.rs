//! From members to plans: `Down → Preparing → Committing → Up` (dynamic-partitioning.txt 4.4), with an active plan that
//! goes on while an inactive one is prepared beside it.

mod advance;
mod calibrating;
mod choosing;
mod churn_history;
mod downloads;
mod forecasts;
mod help;
mod hysteresis;
mod in_place;
mod kv_cache_type;
mod learning;
mod measures;
mod planner_input;
mod standbys;
mod states;

pub(super) use in_place::Usage;
pub(super) use standbys::StandsBy;
use states::Purpose;
pub(super) use states::{Active, Inactive};

use std::sync::Arc;

use potluck_plan::{Millis, PeerId, Plan, PlanEpoch};
use potluck_planner::{Planned, Shortfall};
use potluck_protocol::{Frame, LoadFault, PlanStatus};

use calibrating::Calibrating;
use churn_history::ChurnHistory;
use downloads::Downloads;
use forecasts::Forecasts;
use help::Helpful;
use hysteresis::Hysteresis;
use in_place::InPlace;
use measures::{Drift, Measures};
use standbys::StandbyPlans;

use crate::event::{HostCommand, OpenedModel};
use crate::event_context::EventContext;

pub(super) struct Planning {
    /// The newest epoch given out.
    pub epoch: PlanEpoch,
    active: Option<Active>,
    inactive: Option<Inactive>,
    /// The plan that ran last: what devices hold where none runs.
    last: Option<Plan>,
    /// What is loaded in advance.
    pub standbys: StandbyPlans,
    /// The active plan cannot stay, and its end waits for the end of an answer.
    replan_when_idle: bool,
    /// A plan that was found not to fit beside the active one: it is prepared in its place, between answers.
    unfit_beside: Option<Plan>,
    in_place: InPlace,
    downloads: Downloads,
    pub shortfall: Option<Shortfall>,
    /// Why there is neither plan nor shortfall.
    pub reason: String,
    checked: Millis,
    calibrating: Calibrating,
    /// A plan is put off until devices have said how quick they are.
    waits: bool,
    measures: Measures,
    forecasts: Forecasts,
    drift: Drift,
    hysteresis: Hysteresis,
    churn_history: ChurnHistory,
    helpful: Helpful,
    predicted: Millis,
}

/// What planning needs to know besides the members.
#[derive(Clone, Copy)]
pub(super) struct PlanRequest<'a> {
    pub model: &'a Arc<OpenedModel>,
    pub command: &'a HostCommand,
    /// Rows of answers pass the active plan now.
    pub answering: bool,
    pub usage: Usage,
}

impl Planning {
    pub fn new(epoch: PlanEpoch) -> Self {
        Self {
            epoch,
            active: None,
            inactive: None,
            last: None,
            standbys: StandbyPlans::default(),
            replan_when_idle: false,
            unfit_beside: None,
            in_place: InPlace::default(),
            downloads: Downloads::default(),
            shortfall: None,
            reason: "Opening the model.".to_owned(),
            checked: Millis(0.0),
            calibrating: Calibrating::default(),
            waits: false,
            measures: Measures::default(),
            forecasts: Forecasts::default(),
            drift: Drift::default(),
            hysteresis: Hysteresis::default(),
            churn_history: ChurnHistory::default(),
            helpful: Helpful::default(),
            predicted: Millis(0.0),
        }
    }

    /// The plan whose results count.
    pub fn active(&self) -> Option<&Plan> {
        self.active.as_ref().map(|active| &active.planned.plan)
    }

    /// The active plan, once everyone in it has switched to it: rows may be sent.
    pub fn up(&self) -> Option<&Plan> {
        self.active.as_ref().filter(|active| active.is_up()).map(|active| &active.planned.plan)
    }

    /// The plan whose devices answers need: the active one, else the one that is being prepared.
    pub fn needed(&self) -> Option<&Plan> {
        self.active().or(self.inactive.as_ref().map(|inactive| &inactive.planned.plan))
    }

    /// The plan to show: the active one, else what is being prepared.
    pub fn shown(&self) -> (PlanStatus, Option<&Planned>) {
        match (&self.active, &self.inactive) {
            (Some(active), _) if active.is_up() => (PlanStatus::Up, Some(&active.planned)),
            (Some(active), _) => (PlanStatus::Committing, Some(&active.planned)),
            (None, Some(inactive)) => (PlanStatus::Preparing, Some(&inactive.planned)),
            (None, None) => (PlanStatus::Waiting, None),
        }
    }

    /// The peer has to load for a plan that does not run yet.
    pub fn awaits(&self, peer: PeerId) -> bool {
        self.inactive.as_ref().is_some_and(|inactive| inactive.awaits(peer))
    }

    /// The active plan cannot go on.
    pub fn drop_active(&mut self) {
        self.active = None;
    }

    /// The inactive plan will not come.
    pub fn abandon(&mut self, cx: &mut EventContext) {
        if let Some(inactive) = self.inactive.take() {
            let plan = &inactive.planned.plan;
            plan.peers().into_iter().for_each(|peer| cx.out.send(peer, Frame::Abandon(plan.epoch)));
        }
    }

    /// A device that lent its GPU is gone, or lends it no more.
    pub fn leaves(&mut self, peer: PeerId, now: Millis) {
        self.churn_history.leaves(peer, now);
    }

    /// How often a device left lately.
    pub fn departures(&self, peer: PeerId) -> u32 {
        self.churn_history.departures(peer)
    }

    /// A peer is gone. True if the active plan is gone with it.
    pub fn lose(&mut self, peer: PeerId, cx: &mut EventContext) -> bool {
        if self.inactive.as_ref().is_some_and(|inactive| inactive.planned.plan.peers().contains(&peer)) {
            self.abandon(cx);
        }
        self.active.take_if(|active| active.planned.plan.peers().contains(&peer)).is_some()
    }

    pub fn prepared(&mut self, peer: PeerId, epoch: PlanEpoch) {
        self.standbys.prepared(peer, epoch);
        if let Some(inactive) = self.inactive.as_mut().filter(|inactive| inactive.epoch() == epoch) {
            inactive.is_prepared(peer);
        }
    }

    pub fn committed(&mut self, peer: PeerId, epoch: PlanEpoch) {
        if let Some(active) = self.active.as_mut().filter(|active| active.epoch() == epoch) {
            active.is_committed(peer);
        }
    }

    /// A peer does not hold its part of the active plan any more. True if the plan is gone for it.
    pub fn commit_failed(&mut self, peer: PeerId, epoch: PlanEpoch) -> bool {
        let is_meant = |active: &mut Active| active.epoch() == epoch && active.planned.plan.peers().contains(&peer);
        self.active.take_if(is_meant).is_some()
    }

    /// A peer was away: it is asked whether it still holds its part.
    pub fn ask(&self, peer: PeerId, cx: &mut EventContext) {
        if let Some(active) = self.active().filter(|active| active.peers().contains(&peer)) {
            cx.out.send(peer, Frame::Commit(active.epoch));
        }
    }

    /// A peer cannot get ready for the inactive plan. The active one goes on. True if the plan is given up for it.
    pub fn prepare_failed(&mut self, peer: PeerId, epoch: PlanEpoch, fault: LoadFault, cx: &mut EventContext) -> bool {
        let is_meant =
            |inactive: &mut Inactive| inactive.epoch() == epoch && inactive.planned.plan.peers().contains(&peer);
        let Some(inactive) = self.inactive.take_if(is_meant) else { return false };
        let plan = &inactive.planned.plan;
        plan.peers().into_iter().for_each(|peer| cx.out.send(peer, Frame::Abandon(plan.epoch)));
        match (fault, cx.members.known.get_mut(&peer)) {
            (LoadFault::NoRoom(_), _) if inactive.keeps_active() => self.unfit_beside = Some(inactive.planned.plan),
            (LoadFault::NoRoom(_), Some(member)) => member.overflow(cx.now),
            (LoadFault::Failed(_), Some(member)) => member.fail(cx.now),
            (_, None) => {}
        }
        true
    }

    /// A peer cannot compute its part of the inactive plan: it is given up, and the peer asked again later.
    pub fn give_up_inactive(&mut self, peer: PeerId, cx: &mut EventContext) {
        self.abandon(cx);
        if let Some(member) = cx.members.known.get_mut(&peer) {
            member.fail(cx.now);
        }
    }

    /// Gives up a plan one of whose peers gets no further with loading; that peer is asked again later, and begins anew.
    pub fn give_up_stuck(&mut self, cx: &mut EventContext) -> Option<PeerId> {
        let stuck = self.inactive.as_mut()?.stuck(cx)?;
        self.give_up_inactive(stuck, cx);
        Some(stuck)
    }

    /// The inactive plan, once everyone is ready for it.
    pub fn prepared_plan(&self) -> Option<&Plan> {
        self.inactive.as_ref().filter(|inactive| inactive.is_ready()).map(|inactive| &inactive.planned.plan)
    }

    /// The inactive plan, ready or not, is the active one from now on. Rows wait until everyone has switched, unless
    /// rows passed it already.
    pub fn commit(&mut self, running: bool, tokens: u64, cx: &mut EventContext) {
        let Some(inactive) = self.inactive.take() else { return };
        if inactive.purpose == Purpose::TakesOver {
            // It was the quickest to have, and there may be a better one.
            self.checked = Millis(f64::MIN);
        }
        let active = inactive.into_active(running, cx.now);
        for (peer, member) in &cx.members.known {
            if member.admitted && member.hello.contribution.is_some() {
                cx.out.send(*peer, Frame::Commit(active.epoch()));
            }
        }
        self.last = Some(active.planned.plan.clone());
        self.active = Some(active);
        self.hysteresis.over();
        self.in_place.plan_changed(tokens);
        self.unfit_beside = None;
        self.standbys.plan_changed();
    }

    /// Time goes by: what members say of their downloads is noted. Orders whose answers are missing are given again: they or
    /// the answers may be lost.
    pub fn tick(&mut self, cx: &mut EventContext) {
        self.churn_history.tick(cx.now);
        self.downloads.listen(&cx.members);
        if let Some(inactive) = &mut self.inactive {
            inactive.resend_orders(cx);
        }
        if let Some(active) = &mut self.active {
            active.resend_orders(cx);
        }
    }

    /// True once the answer is over and a plan was put off for it.
    pub fn take_put_off(&mut self) -> bool {
        std::mem::take(&mut self.replan_when_idle)
    }
}
