//! Standby plans: what goes on when a device is lost, loaded in advance (the paper's shadow assignments,
//! dynamic-partitioning.txt 4.4.1 and 5.2.5).
//!
//! Orders are made once for an active plan and the devices of the room. They stay when the room is looked at again, and when
//! somebody joins or leaves those that do not concern it stay too. While the model does not fit they name what each device will
//! most probably get ([`super::advance`]).

use std::collections::{BTreeMap, BTreeSet};

use potluck_plan::{Bytes, Millis, PeerId, Plan, PlanEpoch, WeightUnit};
use potluck_planner::{Device, Exposed, Planned, Room, Standby, preload, standby_keeping};
use potluck_protocol::{Frame, LoadFault, StandbyOrder};

use super::choosing::can_run;
use super::question::Question;
use super::states::Purpose;
use super::{Planning, Wishes};
use crate::event::OpenedModel;
use crate::members::Members;
use crate::outbox::Outbox;

/// The room must be the same for so long before orders are made: devices often come and go together, and a connection that
/// ended may be back.
const SETTLE_MILLIS: f64 = 2_000.0;
/// An order that is not answered for so long is given again.
const AGAIN_MILLIS: f64 = 5_000.0;
/// Who could not do what was ordered gets no other order for so long, unless the plan changes.
const REFUSED_MILLIS: f64 = 60_000.0;
/// What a device may hold at most, as a share of what it lends, shrinks so much when its engine has no room.
const SHRINK: f64 = 0.9;
/// Nothing heard of a device for so long: it is not counted on for the next token.
const SILENT_MILLIS: f64 = 2_500.0;

#[derive(Default)]
pub(crate) struct StandbyPlans {
    made_for: Option<Basis>,
    /// Another room than they were made for, and since when it is so.
    seen: Option<(Basis, Millis)>,
    covered: Vec<Covered>,
    exposed: Vec<Exposed>,
    orders: BTreeMap<PeerId, Order>,
    refusals: BTreeMap<PeerId, Refusal>,
    told: Millis,
}

/// What standby plans are made for.
#[derive(Clone, Debug, PartialEq)]
struct Basis {
    /// The active plan, if there is one.
    plan: Option<PlanEpoch>,
    /// What each device may hold.
    lent: Vec<(PeerId, Bytes)>,
}

/// A standby plan, and who has to hold more for it than for the active plan.
struct Covered {
    standby: Standby,
    helpers: BTreeSet<PeerId>,
}

struct Order {
    order: StandbyOrder,
    /// What the device lent when it was given.
    lent: Bytes,
    /// The device has not said yet that it holds everything.
    awaited: bool,
    /// Units of it that an order before it had brought.
    brought: BTreeSet<WeightUnit>,
}

/// A device that could not do what was ordered, as long as it lends this.
struct Refusal {
    lent: Bytes,
    share: f64,
    until: Option<Millis>,
}

/// What a device loads while more of them are awaited.
pub(super) struct Advance<'a> {
    pub order: &'a StandbyOrder,
    /// It has all of it.
    pub is_loaded: bool,
    /// What an order before this one had brought.
    pub brought: &'a BTreeSet<WeightUnit>,
}

/// For whose loss a device stands by.
pub(crate) struct StandsBy {
    pub lost: Vec<PeerId>,
    /// It holds what it needs for that.
    pub is_ready: bool,
}

impl StandbyPlans {
    /// The plan for the loss of this peer, if everyone in it holds what it needs.
    fn ready(&self, lost: PeerId) -> Option<&Plan> {
        let covered = self.covered.iter().find(|covered| covered.standby.lost == lost)?;
        covered.helpers.iter().all(|peer| self.holds(*peer)).then_some(&covered.standby.plan)
    }

    fn holds(&self, peer: PeerId) -> bool {
        self.orders.get(&peer).is_some_and(|order| !order.awaited)
    }

    /// Another plan counts: who stands by for it is still to be found.
    pub fn plan_changed(&mut self) {
        self.covered.clear();
        self.exposed.clear();
        (self.made_for, self.seen) = (None, None);
        self.refusals.values_mut().for_each(|refusal| refusal.until = None);
    }

    /// A peer is gone, or holds nothing in advance any more.
    pub fn forget(&mut self, peer: PeerId) {
        self.orders.remove(&peer);
        self.covered.retain(|covered| !covered.helpers.contains(&peer));
        (self.made_for, self.seen) = (None, None);
    }

    pub fn prepared(&mut self, peer: PeerId, epoch: PlanEpoch) {
        if let Some(order) = self.orders.get_mut(&peer).filter(|order| order.order.epoch == epoch) {
            order.awaited = false;
        }
    }

    /// A peer does not hold what was ordered. True if there was such an order.
    pub fn failed(&mut self, peer: PeerId, epoch: PlanEpoch, fault: &LoadFault, now: Millis) -> bool {
        let Some(order) = self.orders.get(&peer).filter(|order| order.order.epoch == epoch) else { return false };
        let lent = order.lent;
        let known = self.refusals.remove(&peer).filter(|known| known.lent == lent);
        let mut refusal = known.unwrap_or(Refusal { lent, share: 1.0, until: None });
        match fault {
            LoadFault::NoRoom(_) => refusal.share *= SHRINK,
            LoadFault::Failed(_) => refusal.until = Some(Millis(now.0 + REFUSED_MILLIS)),
        }
        self.refusals.insert(peer, refusal);
        self.forget(peer);
        true
    }

    pub fn tell_again(&mut self, now: Millis, out: &mut Outbox) {
        if now.0 - self.told.0 >= AGAIN_MILLIS {
            self.tell(now, out);
        }
    }

    pub(super) fn tell(&mut self, now: Millis, out: &mut Outbox) {
        for (peer, order) in self.orders.iter().filter(|(_, order)| order.awaited) {
            self.told = now;
            out.send(*peer, Frame::StandBy(Box::new(order.order.clone())));
        }
    }

    /// What each device may hold now. Who lends something else than when it got its order has to get another.
    fn limit(&mut self, devices: &mut [Device], now: Millis) {
        for device in devices {
            let (peer, lent) = (device.peer, device.budget);
            if self.orders.get(&peer).is_some_and(|order| order.lent != lent) {
                self.forget(peer);
            }
            let Some(refusal) = self.refusals.get(&peer).filter(|refusal| refusal.lent == lent) else { continue };
            let is_refused = refusal.until.is_some_and(|until| now.0 < until.0);
            device.budget = if is_refused { Bytes::ZERO } else { Bytes((lent.0 as f64 * refusal.share) as u64) };
        }
    }

    /// The room is another one than the orders were made for, and has been for a while.
    fn is_due(&mut self, basis: &Basis, now: Millis) -> bool {
        if self.made_for.as_ref() == Some(basis) {
            self.seen = None;
            return false;
        }
        match &self.seen {
            Some((seen, since)) if seen == basis => now.0 - since.0 >= SETTLE_MILLIS,
            _ => {
                self.seen = Some((basis.clone(), now));
                false
            }
        }
    }

    /// Makes standby plans for the active one, and says what everyone has to hold for them besides.
    fn make(&mut self, room: &Room<'_>, active: &Plan) -> BTreeMap<PeerId, Vec<WeightUnit>> {
        let made = std::mem::take(&mut self.covered).into_iter().map(|covered| covered.standby).collect();
        let found = standby_keeping(room, active, made);
        self.exposed = found.exposed;
        let mut units: BTreeMap<PeerId, Vec<WeightUnit>> = BTreeMap::new();
        for standby in found.covered {
            let mut helpers = BTreeSet::new();
            for peer in standby.plan.peers() {
                let own = active.units_for(peer, room.shape);
                let more: Vec<WeightUnit> =
                    standby.plan.units_for(peer, room.shape).into_iter().filter(|unit| !own.contains(unit)).collect();
                if !more.is_empty() {
                    helpers.insert(peer);
                    let known = units.entry(peer).or_default();
                    known.extend(more.iter().filter(|unit| !known.contains(unit)).copied().collect::<Vec<_>>());
                }
            }
            self.covered.push(Covered { standby, helpers });
        }
        units
    }

    /// Orders what is not ordered yet, and ends what is not needed any more. True if there is something new.
    fn order(
        &mut self,
        mut units: BTreeMap<PeerId, Vec<WeightUnit>>,
        lent: &BTreeMap<PeerId, Bytes>,
        order: impl Fn(Vec<WeightUnit>) -> StandbyOrder,
    ) -> bool {
        self.orders.retain(|_, order| order.awaited || !order.order.units.is_empty());
        // A device that is away for a moment keeps what it has.
        let ended = self.orders.keys().filter(|peer| lent.contains_key(*peer));
        ended.copied().collect::<Vec<_>>().into_iter().for_each(|peer| _ = units.entry(peer).or_default());
        let mut is_new = false;
        for (peer, units) in units {
            let known = self.orders.get(&peer).map(|order| order.order.units.iter().collect::<BTreeSet<_>>());
            let Some(lent) = lent.get(&peer).filter(|_| known != Some(units.iter().collect())) else { continue };
            let before = self.orders.get(&peer).filter(|before| !before.awaited).map(|before| &before.order.units);
            let brought = before.into_iter().flatten().filter(|unit| units.contains(unit)).copied().collect();
            self.orders.insert(peer, Order { order: order(units), lent: *lent, awaited: true, brought });
            is_new = true;
        }
        is_new
    }

    /// What a device loads while more of them are awaited, if it does.
    pub(super) fn advance(&self, peer: PeerId) -> Option<Advance<'_>> {
        let order = self.orders.get(&peer).filter(|order| order.order.in_advance && !order.order.units.is_empty())?;
        Some(Advance { order: &order.order, is_loaded: !order.awaited, brought: &order.brought })
    }

    /// A plan comes: nothing is loaded in advance any more. Who is part of the plan is told by it, and the others by an order
    /// with this epoch. True if there are such others.
    pub(super) fn end_advance(&mut self, part: &BTreeSet<PeerId>, epoch: PlanEpoch) -> bool {
        self.orders.retain(|peer, order| !order.order.in_advance || !part.contains(peer));
        let others = self.orders.values_mut().filter(|order| order.order.in_advance && !order.order.units.is_empty());
        let mut is_any = false;
        for order in others {
            (order.order.epoch, order.awaited, is_any) = (epoch, true, true);
            order.order.units.clear();
        }
        (self.made_for, self.seen) = (None, None);
        is_any
    }

    /// For whom a device stands by.
    pub fn of(&self, peer: PeerId) -> Option<StandsBy> {
        let of_peer = self.covered.iter().filter(|covered| covered.helpers.contains(&peer));
        let lost: Vec<PeerId> = of_peer.map(|covered| covered.standby.lost).collect();
        (!lost.is_empty()).then(|| StandsBy { lost, is_ready: self.holds(peer) })
    }

    /// What happens if a device leaves, in one sentence.
    pub fn sentence(&self, members: &Members) -> Option<String> {
        if let Some(Exposed { lost, missing }) = self.exposed.first() {
            let name = members.name(*lost);
            let more = match *missing > Bytes::ZERO {
                true => format!("; {missing} more would prevent that"),
                false => String::new(),
            };
            return Some(format!("If {name} leaves, its part has to be loaded anew{more}."));
        }
        let all_ready = self.covered.iter().all(|covered| self.ready(covered.standby.lost).is_some());
        match all_ready {
            _ if self.covered.is_empty() => None,
            true => Some("Any other device may leave: the rest hold its part already.".to_owned()),
            false => Some("A standby for the loss of a device is being loaded.".to_owned()),
        }
    }
}

impl Planning {
    /// Looks whether devices should stand by for others, and orders it. Plans go first: nothing is ordered while one is
    /// prepared.
    pub fn stand_by(&mut self, wishes: Wishes<'_>, members: &Members, out: &mut Outbox) {
        self.standbys.tell_again(wishes.now, out);
        if self.inactive.is_some() || self.active.is_some() != self.up().is_some() {
            return;
        }
        if self.active.is_none() && !self.may_load_in_advance(wishes, members, out) {
            return;
        }
        let mut question = Question::new(self, wishes.model, wishes.command, members);
        let devices = question.devices();
        let lent: BTreeMap<PeerId, Bytes> = devices.iter().map(|device| (device.peer, device.budget)).collect();
        self.standbys.limit(devices, wishes.now);
        let may_hold = devices.iter().map(|device| (device.peer, device.budget)).collect();
        let basis = Basis { plan: self.active().map(|plan| plan.epoch), lent: may_hold };
        if !self.standbys.is_due(&basis, wishes.now) {
            return;
        }
        let epoch = self.next_epoch(members);
        let room = question.room(epoch);
        let active = self.active.as_ref().map(|active| &active.planned.plan);
        let (units, in_advance) = match active {
            Some(active) => (self.standbys.make(&room, active), false),
            None => (preload(&room), true),
        };
        self.standbys.made_for = Some(basis);
        let context = wishes.command.context;
        let order = |units| StandbyOrder { in_advance, ..standby_order(epoch, wishes.model, context, units) };
        if self.standbys.order(units, &lent, order) {
            self.epoch = epoch;
            self.standbys.tell(wishes.now, out);
        }
    }

    /// The plan that stands by for the loss of this peer is prepared in the place of the lost one: nothing has to be loaded
    /// for it. False: there is none.
    pub fn take_over(&mut self, lost: PeerId, wishes: Wishes<'_>, members: &Members, out: &mut Outbox) -> bool {
        let Some(plan) = self.standbys.ready(lost).cloned() else { return false };
        let is_there = |peer: &PeerId| {
            members
                .get(*peer)
                .is_some_and(|member| member.lends() && (*peer == members.me || member.silent < SILENT_MILLIS))
        };
        if !plan.peers().iter().all(is_there) {
            return false;
        }
        let question = Question::new(self, wishes.model, wishes.command, members);
        let room = question.room(self.next_epoch(members));
        if !can_run(&plan, &room) {
            return false;
        }
        self.abandon(out);
        let planned = Planned::describe(&room, Plan { epoch: room.epoch, ..plan });
        self.prepare(planned, None, Purpose::TakesOver, wishes, members, out);
        true
    }
}

fn standby_order(epoch: PlanEpoch, model: &OpenedModel, context: u32, units: Vec<WeightUnit>) -> StandbyOrder {
    let (shape, overhead, model) = (model.shape.clone(), model.overhead, model.card.clone());
    StandbyOrder { epoch, model, kv_cache: shape.kv_cache, shape, overhead, context, units, in_advance: false }
}
