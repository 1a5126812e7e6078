//! The two plans of a room: the active one, and the inactive one that is prepared beside it.

mod load_watch;

use std::collections::{BTreeMap, BTreeSet};

use potluck_plan::{Millis, PeerId, Plan, PlanEpoch};
use potluck_planner::Planned;
use potluck_protocol::{Frame, LoadFault, PlanStatus, Prepare, Sharing};

use crate::event_context::EventContext;
use crate::limits;
use crate::members::Members;
use load_watch::LoadWatch;

/// Unanswered orders are sent again after this time; a device that has carried it out just answers again.
const RESEND_MILLIS: f64 = 5_000.0;

/// The plans, and the epochs that name them.
#[derive(Default)]
pub(crate) struct Plans {
    /// The newest epoch given out.
    pub epoch: PlanEpoch,
    pub(super) active: Option<Active>,
    pub(super) inactive: Option<Inactive>,
    /// The plan that was active last: what devices hold while none is.
    pub(super) last: Option<Plan>,
    /// A plan that did not fit beside the active one: it is prepared in its place, between answers.
    pub(super) unfit_beside: Option<Plan>,
    /// The host's model could not be opened.
    pub has_no_model: bool,
}

impl Plans {
    /// The plan whose results count.
    pub fn active(&self) -> Option<&Plan> {
        self.active.as_ref().map(|active| &active.planned.plan)
    }

    /// The active plan, once everyone in it has switched to it and tokens may be sent.
    pub fn up(&self) -> Option<&Plan> {
        self.running().map(|planned| &planned.plan)
    }

    /// The plan that tokens may be sent through, and what was predicted of it last.
    pub fn running(&self) -> Option<&Planned> {
        self.active.as_ref().filter(|active| active.is_up()).map(|active| &active.planned)
    }

    /// The newest plan: the one that is being prepared, else the active one.
    pub fn newest(&self) -> Option<&Planned> {
        let prepared = self.inactive.as_ref().map(|inactive| &inactive.planned);
        prepared.or(self.active.as_ref().map(|active| &active.planned))
    }

    /// The plan whose devices the answers need: the active one, else the one that is being prepared.
    pub fn needed(&self) -> Option<&Plan> {
        self.active().or(self.inactive.as_ref().map(|inactive| &inactive.planned.plan))
    }

    /// The plan to show: the active one, else the one that is being prepared.
    pub fn shown(&self) -> (PlanStatus, Option<&Planned>) {
        match (&self.active, &self.inactive) {
            (Some(active), _) if active.is_up() => (PlanStatus::Up, Some(&active.planned)),
            (Some(active), _) => (PlanStatus::Committing, Some(&active.planned)),
            (None, Some(inactive)) => (PlanStatus::Preparing, Some(&inactive.planned)),
            (None, None) if self.has_no_model => (PlanStatus::Failed, None),
            (None, None) => (PlanStatus::Waiting, None),
        }
    }

    /// The peer still has to load for the inactive plan.
    pub fn awaits(&self, peer: PeerId) -> bool {
        self.inactive.as_ref().is_some_and(|inactive| inactive.awaits(peer))
    }

    /// Drops the active plan, which cannot go on.
    pub fn drop_active(&mut self) {
        self.active = None;
    }

    /// Abandons the inactive plan.
    pub fn abandon(&mut self, cx: &mut EventContext) {
        if let Some(inactive) = self.inactive.take() {
            let plan = &inactive.planned.plan;
            plan.peers().into_iter().for_each(|peer| cx.out.send(peer, Frame::Abandon(plan.epoch)));
        }
    }

    /// A peer is gone. True if the active plan is gone with it.
    pub fn lose(&mut self, peer: PeerId, cx: &mut EventContext) -> bool {
        if self.inactive.as_ref().is_some_and(|inactive| inactive.planned.plan.peers().contains(&peer)) {
            self.abandon(cx);
        }
        self.active.take_if(|active| active.planned.plan.peers().contains(&peer)).is_some()
    }

    /// A peer is gone that the active plan can spare.
    pub(super) fn spare(&mut self, peer: PeerId, cx: &mut EventContext) {
        if self.inactive.as_ref().is_some_and(|inactive| inactive.planned.plan.peers().contains(&peer)) {
            self.abandon(cx);
        }
        if let Some(active) = &mut self.active {
            active.is_committed(peer);
        }
    }

    /// The active plan gives the peer a part.
    pub fn has_part(&self, peer: PeerId, epoch: PlanEpoch) -> bool {
        self.active().is_some_and(|plan| plan.epoch == epoch && plan.peers().contains(&peer))
    }

    /// Devices whose experts come on demand, or will: their memory is full of slots.
    pub(super) fn on_demand(&self) -> BTreeSet<PeerId> {
        let inactive = self.inactive.as_ref().map(|inactive| &inactive.planned.plan);
        self.active().into_iter().chain(inactive).flat_map(Plan::loads_on_demand).collect()
    }

    /// Asks a peer that was away whether it still holds its part.
    pub fn ask(&self, peer: PeerId, cx: &mut EventContext) {
        if let Some(active) = self.active().filter(|active| active.peers().contains(&peer)) {
            cx.out.send(peer, Frame::Commit(active.epoch));
        }
    }

    /// A peer cannot get ready for the inactive plan. The active one goes on. True if the inactive plan is given up.
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

    /// A peer cannot compute its part of the inactive plan: the plan is given up, and the peer asked again later.
    pub fn give_up_inactive(&mut self, peer: PeerId, cx: &mut EventContext) {
        self.abandon(cx);
        if let Some(member) = cx.members.known.get_mut(&peer) {
            member.fail(cx.now);
        }
    }

    /// Gives up a plan if one of its peers makes no progress with loading; that peer is asked again later.
    pub fn give_up_stuck(&mut self, cx: &mut EventContext) -> Option<PeerId> {
        let stuck = self.inactive.as_mut()?.stuck(cx)?;
        self.give_up_inactive(stuck, cx);
        Some(stuck)
    }

    /// The inactive plan, once everyone is ready for it.
    pub fn prepared_plan(&self) -> Option<&Plan> {
        self.inactive.as_ref().filter(|inactive| inactive.is_ready()).map(|inactive| &inactive.planned.plan)
    }

    /// An epoch above every one that anybody has heard of.
    pub(crate) fn next_epoch(&self, members: &Members) -> PlanEpoch {
        let admitted = members.known.values().filter(|member| member.admitted);
        let newest = admitted.map(|member| limits::claimed_epoch(&member.hello)).max().unwrap_or_default();
        PlanEpoch(self.epoch.max(newest).0.saturating_add(1))
    }

    pub fn prepared(&mut self, peer: PeerId, epoch: PlanEpoch) {
        if let Some(inactive) = self.inactive.as_mut().filter(|inactive| inactive.epoch() == epoch) {
            inactive.is_prepared(peer);
        }
    }

    pub fn committed(&mut self, peer: PeerId, epoch: PlanEpoch) {
        if let Some(active) = self.active.as_mut().filter(|active| active.epoch() == epoch) {
            active.is_committed(peer);
        }
    }

    /// Makes the inactive plan the active one and tells every contributing device. Returns what it was prepared for.
    pub(super) fn commit(&mut self, running: bool, cx: &mut EventContext) -> Option<Purpose> {
        let inactive = self.inactive.take()?;
        let purpose = inactive.purpose;
        let active = inactive.into_active(running, cx.now);
        for (peer, member) in &cx.members.known {
            if member.admitted && member.hello.contribution.is_some() {
                cx.out.send(*peer, Frame::Commit(active.epoch()));
            }
        }
        self.last = Some(active.planned.plan.clone());
        self.active = Some(active);
        self.unfit_beside = None;
        Some(purpose)
    }

    /// Sends orders again that were not answered for a while.
    pub(super) fn resend_orders(&mut self, cx: &mut EventContext) {
        if let Some(inactive) = &mut self.inactive {
            inactive.resend_orders(cx);
        }
        if let Some(active) = &mut self.active {
            active.resend_orders(cx);
        }
    }
}

/// The active plan.
pub(crate) struct Active {
    pub planned: Planned,
    /// The sharing it was made for.
    pub share: Sharing,
    /// Devices that there were when it was made.
    pub known: BTreeSet<PeerId>,
    /// Peers that have not confirmed the switch.
    awaited: BTreeSet<PeerId>,
    sent_at: Millis,
}

/// Why a plan is prepared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// It is the best plan for the present devices.
    Best,
    /// It is the standby plan for one that is lost: everyone holds its part already.
    TakesOver,
}

/// The inactive plan.
pub(crate) struct Inactive {
    pub planned: Planned,
    pub share: Sharing,
    pub purpose: Purpose,
    order: Prepare,
    /// Peers that are still loading.
    awaited: BTreeSet<PeerId>,
    /// Their loads.
    watched: BTreeMap<PeerId, LoadWatch>,
    sent_at: Millis,
}

impl Inactive {
    pub fn new(planned: Planned, share: Sharing, order: Prepare, purpose: Purpose) -> Self {
        let awaited = planned.plan.peers();
        Self { planned, share, purpose, order, awaited, watched: BTreeMap::new(), sent_at: Millis(0.0) }
    }

    pub fn epoch(&self) -> PlanEpoch {
        self.planned.plan.epoch
    }

    /// The active plan stays loaded meanwhile.
    pub fn keeps_active(&self) -> bool {
        self.order.keep.is_some()
    }

    pub fn awaits(&self, peer: PeerId) -> bool {
        self.awaited.contains(&peer)
    }

    pub fn is_prepared(&mut self, peer: PeerId) {
        self.awaited.remove(&peer);
    }

    pub fn is_ready(&self) -> bool {
        self.awaited.is_empty()
    }

    /// A peer whose load will not end.
    pub fn stuck(&mut self, cx: &EventContext) -> Option<PeerId> {
        self.awaited.iter().copied().find(|peer| {
            let report = cx.members.get(*peer).and_then(|member| member.status.loading);
            self.watched.entry(*peer).or_insert_with(|| LoadWatch::new(cx.now)).is_stuck(report, cx.now)
        })
    }

    pub fn send_orders(&mut self, cx: &mut EventContext) {
        self.sent_at = cx.now;
        for peer in &self.awaited {
            cx.out.send(*peer, Frame::Prepare(Box::new(self.order.clone())));
        }
    }

    pub fn resend_orders(&mut self, cx: &mut EventContext) {
        if !self.awaited.is_empty() && cx.now.0 - self.sent_at.0 >= RESEND_MILLIS {
            self.send_orders(cx);
        }
    }

    /// Makes it the active plan. `running`: tokens pass it already, so nobody is waited for.
    pub fn into_active(self, running: bool, now: Millis) -> Active {
        let awaited = if running { BTreeSet::new() } else { self.planned.plan.peers() };
        let spares = self.planned.spares.iter().map(|spare| spare.peer);
        let known = self.planned.plan.peers().into_iter().chain(spares).collect();
        Active { planned: self.planned, share: self.share, known, awaited, sent_at: now }
    }
}

impl Active {
    pub fn epoch(&self) -> PlanEpoch {
        self.planned.plan.epoch
    }

    pub fn is_committed(&mut self, peer: PeerId) {
        self.awaited.remove(&peer);
    }

    /// Everyone has switched.
    pub fn is_up(&self) -> bool {
        self.awaited.is_empty()
    }

    pub fn resend_orders(&mut self, cx: &mut EventContext) {
        if !self.awaited.is_empty() && cx.now.0 - self.sent_at.0 >= RESEND_MILLIS {
            self.sent_at = cx.now;
            self.awaited.iter().for_each(|peer| cx.out.send(*peer, Frame::Commit(self.epoch())));
        }
    }
}
