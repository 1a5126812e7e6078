//! Where experts of the active plan lie: holders that leave are struck off, others load what is missing. The plan stays,
//! and nobody waits.

mod protection;

use std::collections::BTreeMap;

use potluck_plan::{BlockIndex, Bytes, ExpertHolder, ExpertId, Millis, PeerId, Plan, PlanEpoch, WeightUnit};
use potluck_planner::experts::{Holders, lenders_left, repair_together};
use potluck_protocol::{Frame, Hold, Holding, Prepare, Residency, ResidencyChange};

use super::planner_input::PlannerInput;
use super::{PlanRequest, Planning};
use crate::event_context::EventContext;
use crate::memory::resident_bytes;
use crate::residency;

/// How often missing replicas are looked for.
const LOOK_MILLIS: f64 = 1_000.0;
/// Unanswered orders are sent again after this time…
const RESEND_MILLIS: f64 = 5_000.0;
/// … and given up after this one: the device gets none for as long.
const GIVE_UP_MILLIS: f64 = 60_000.0;
/// Experts of one order: the first of them are of use before the last ones are loaded.
const MAX_ORDER: usize = 64;

/// Changes of the active plan's holders, and who loads what.
#[derive(Default)]
pub(super) struct Replicas {
    epoch: PlanEpoch,
    version: u32,
    changes: Vec<ResidencyChange>,
    orders: BTreeMap<PeerId, Order>,
    /// Devices that could not carry out an order, and until when they get none.
    refused: BTreeMap<PeerId, Millis>,
    /// Of the newest order.
    numbered: u32,
    looked: Option<Millis>,
}

/// What a device loads.
struct Order {
    version: u32,
    experts: Vec<(BlockIndex, ExpertId)>,
    /// For a device without a part in the plan: it learns the plan with it.
    prepare: Option<Box<Prepare>>,
    began: Millis,
    sent: Millis,
}

impl Replicas {
    /// No change of another plan counts.
    fn follow(&mut self, epoch: PlanEpoch) {
        if self.epoch != epoch {
            (self.epoch, self.version) = (epoch, 0);
            self.changes.clear();
            self.orders.clear();
        }
    }

    fn note(&mut self, change: ResidencyChange) {
        if let ResidencyChange::Drop(gone) = change {
            let is_its = |known: &ResidencyChange| match known {
                ResidencyChange::Add { peer, .. } | ResidencyChange::Drop(peer) => *peer == gone,
            };
            self.changes.retain(|known| !is_its(known));
        }
        self.changes.push(change);
    }

    fn frame(&self) -> Frame {
        let (epoch, version, changes) = (self.epoch, self.version, self.changes.clone());
        Frame::Residency(Residency { epoch, version, changes })
    }

    fn refuse(&mut self, peer: PeerId, now: Millis) {
        self.orders.remove(&peer);
        self.refused.insert(peer, Millis(now.0 + GIVE_UP_MILLIS));
    }

    /// Experts of a plan that each device is told to load.
    pub fn ordered(&self, epoch: PlanEpoch) -> impl Iterator<Item = (PeerId, u32)> {
        self.orders.iter().filter(move |_| self.epoch == epoch).map(|(peer, order)| (*peer, order.experts.len() as u32))
    }

    /// Experts that a device is told to load.
    pub fn ordered_of(&self, peer: PeerId) -> impl Iterator<Item = (BlockIndex, ExpertId)> {
        self.orders.get(&peer).into_iter().flat_map(|order| order.experts.iter().copied())
    }

    /// Somebody loads experts.
    pub fn is_busy(&self) -> bool {
        !self.orders.is_empty()
    }

    fn send(&mut self, cx: &mut EventContext) {
        for (peer, order) in &mut self.orders {
            if cx.now.0 - order.sent.0 < RESEND_MILLIS {
                continue;
            }
            order.sent = cx.now;
            let hold = || Hold { epoch: self.epoch, version: order.version, experts: order.experts.clone() };
            let frame = order.prepare.clone().map_or_else(|| Frame::Hold(hold()), Frame::Prepare);
            cx.out.send(*peer, frame);
        }
    }
}

impl Planning {
    /// A device is gone. True if the active plan is gone with it: the device had a stage, or experts that nobody else has.
    pub fn lose(&mut self, peer: PeerId, cx: &mut EventContext) -> bool {
        self.replicas.orders.remove(&peer);
        let is_here = |other: PeerId| {
            let is_fit = cx.members.get(other).is_some_and(|member| !member.frozen && !member.distrusted);
            cx.members.is_here(other) && is_fit
        };
        let is_spared =
            self.plans.active().is_some_and(|plan| plan.peers().contains(&peer) && plan.can_spare(peer, is_here));
        if !is_spared {
            let inactive = self.plans.inactive.as_ref();
            let was_to_have_part = inactive.is_some_and(|inactive| inactive.planned.plan.peers().contains(&peer));
            let is_lost = self.plans.lose(peer, cx);
            if was_to_have_part && !is_lost {
                self.choosing.policy.spared(cx.now);
            }
            return is_lost;
        }
        self.choosing.policy.spared(cx.now);
        // Its experts lack a holder now.
        self.replicas.looked = None;
        self.plans.spare(peer, cx);
        self.move_experts(&[ResidencyChange::Drop(peer)], cx);
        false
    }

    /// Changes where experts of the active plan lie, and tells its stages.
    fn move_experts(&mut self, changes: &[ResidencyChange], cx: &mut EventContext) {
        let Some(active) = &mut self.plans.active else { return };
        self.replicas.follow(active.planned.plan.epoch);
        self.replicas.version += 1;
        for change in changes {
            residency::apply(&mut active.planned.plan, *change);
            self.replicas.note(*change);
        }
        let mut stages: Vec<PeerId> = active.planned.plan.stages.iter().map(|stage| stage.peer).collect();
        stages.sort();
        stages.dedup();
        stages.into_iter().for_each(|peer| cx.out.send(peer, self.replicas.frame()));
    }

    /// A device of the active plan was away: it may have missed changes.
    pub fn tell_residency(&mut self, peer: PeerId, cx: &mut EventContext) {
        let plan = self.plans.active().filter(|plan| plan.epoch == self.replicas.epoch && plan.has_stage(peer));
        if plan.is_some() && self.replicas.version > 0 {
            cx.out.send(peer, self.replicas.frame());
        }
    }

    /// A device holds what it was told to, or cannot.
    pub fn holding(&mut self, peer: PeerId, holding: &Holding, cx: &mut EventContext) {
        let is_meant = |order: &Order| order.version == holding.version && order.prepare.is_none();
        if holding.epoch != self.replicas.epoch || !self.replicas.orders.get(&peer).is_some_and(is_meant) {
            return;
        }
        match holding.failed {
            Some(_) => self.replicas.refuse(peer, cx.now),
            None => self.ordered_is_held(peer, cx),
        }
    }

    fn ordered_is_held(&mut self, peer: PeerId, cx: &mut EventContext) {
        let Some(order) = self.replicas.orders.remove(&peer) else { return };
        let add =
            |(block, expert): &(BlockIndex, ExpertId)| ResidencyChange::Add { block: *block, expert: *expert, peer };
        let changes: Vec<ResidencyChange> = order.experts.iter().map(add).collect();
        self.move_experts(&changes, cx);
        self.replicas.looked = None;
    }

    fn newcomer(&self, peer: PeerId, epoch: PlanEpoch) -> bool {
        let order = self.replicas.orders.get(&peer).filter(|_| epoch == self.replicas.epoch);
        order.is_some_and(|order| order.prepare.is_some())
    }

    /// A device without a part in the plan has loaded experts of it: it may switch to the plan, as the others did.
    pub fn newcomer_prepared(&self, peer: PeerId, epoch: PlanEpoch, cx: &mut EventContext) {
        if self.newcomer(peer, epoch) {
            cx.out.send(peer, Frame::Commit(epoch));
        }
    }

    /// … and has switched.
    pub fn newcomer_committed(&mut self, peer: PeerId, epoch: PlanEpoch, cx: &mut EventContext) {
        if self.newcomer(peer, epoch) {
            self.ordered_is_held(peer, cx);
        }
    }

    /// … or cannot.
    pub fn newcomer_failed(&mut self, peer: PeerId, epoch: PlanEpoch, cx: &EventContext) -> bool {
        let is_newcomer = self.newcomer(peer, epoch);
        if is_newcomer {
            self.replicas.refuse(peer, cx.now);
        }
        is_newcomer
    }

    /// Has experts with too few holders loaded by more devices, while the plan goes on.
    pub fn replicate(&mut self, request: PlanRequest<'_>, cx: &mut EventContext) {
        let Some(plan) = self.plans.up().filter(|_| self.plans.inactive.is_none()) else { return };
        self.replicas.follow(plan.epoch);
        self.replicas.send(cx);
        if self.replicas.looked.is_some_and(|looked| cx.now.0 - looked.0 < LOOK_MILLIS) {
            return;
        }
        self.replicas.looked = Some(cx.now);
        let plan = plan.clone();
        let is_old = |order: &Order| cx.now.0 - order.began.0 >= GIVE_UP_MILLIS;
        let old = self.replicas.orders.iter().filter(|(_, order)| is_old(order)).map(|(peer, _)| *peer);
        old.collect::<Vec<_>>().into_iter().for_each(|peer| self.replicas.refuse(peer, cx.now));
        self.replicas.refused.retain(|_, until| cx.now.0 < until.0);
        for (peer, experts) in self.missing_replicas(&plan, request, cx) {
            self.replicas.numbered += 1;
            let prepare = (!plan.peers().contains(&peer)).then(|| {
                let mut plan = plan.clone();
                experts.iter().for_each(|(block, expert)| plan.add_holder(*block, *expert, peer));
                Box::new(super::choosing::order(plan, None, request))
            });
            let (version, began, sent) = (self.replicas.numbered, cx.now, Millis(f64::MIN));
            self.replicas.orders.insert(peer, Order { version, experts, prepare, began, sent });
        }
        self.replicas.send(cx);
    }

    /// What each device should load, as the planner places experts: those with the fewest holders first, and copies together.
    fn missing_replicas(
        &self,
        plan: &Plan,
        request: PlanRequest<'_>,
        cx: &EventContext,
    ) -> BTreeMap<PeerId, Vec<(BlockIndex, ExpertId)>> {
        let wanted = usize::from(request.command.pooling.replicas);
        let mut orders: BTreeMap<PeerId, Vec<(BlockIndex, ExpertId)>> = BTreeMap::new();
        if plan.pooled().all(|(.., holders)| holders.len() >= wanted) {
            return orders;
        }
        let shape = &request.model.shape;
        let owner = |block| plan.stages.iter().find(|stage| stage.blocks.contains(block)).map(|stage| stage.peer);
        let peers = |block, holders: &[ExpertHolder]| {
            let peer = |holder: &ExpertHolder| match holder {
                ExpertHolder::Peer(peer) => Some(*peer),
                ExpertHolder::Own => owner(block),
            };
            holders.iter().filter_map(peer).collect()
        };
        let mut live: Holders =
            plan.pooled().map(|(block, expert, holders)| ((block, expert), peers(block, holders))).collect();
        let is_fit =
            |peer: PeerId| cx.members.get(peer).is_some_and(|member| !member.is_silent() || peer == cx.members.me);
        // What is being loaded counts, and what comes after it lies beside it.
        for (peer, order) in self.replicas.orders.iter().filter(|(peer, _)| is_fit(**peer)) {
            for key in &order.experts {
                live.get_mut(key)
                    .into_iter()
                    .filter(|holders| !holders.contains(peer))
                    .for_each(|holders| holders.push(*peer));
            }
        }
        let mut input = PlannerInput::new(self, request.model, request.command, &cx.members);
        let may_load = |peer: PeerId| {
            // Their memory is full of slots.
            let has_slots = plan.loads_on_demand().any(|other| other == peer);
            is_fit(peer) && !has_slots && !self.replicas.refused.contains_key(&peer)
        };
        let mut free: BTreeMap<PeerId, Bytes> = BTreeMap::new();
        for device in input.devices().iter().filter(|device| may_load(device.peer)) {
            let mut units: Vec<WeightUnit> = plan.units_for(device.peer, shape);
            units
                .extend(self.replicas.ordered_of(device.peer).map(|(block, expert)| WeightUnit::Expert(block, expert)));
            let held = resident_bytes(shape, &units, plan.context).saturating_add(request.model.overhead);
            free.insert(device.peer, device.budget.saturating_sub(held));
        }
        let lenders = lenders_left(&input.room(plan.epoch), plan, &free);
        for (block, expert, peer) in repair_together(shape, &live, &lenders, |_, _| wanted) {
            let order = orders.entry(peer).or_default();
            if order.len() < MAX_ORDER {
                order.push((block, expert));
            }
        }
        // The rest of what such a device gets follows once it has loaded this.
        orders.retain(|peer, _| !self.replicas.orders.contains_key(peer));
        orders
    }
}
