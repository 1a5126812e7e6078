//! Standby plans: the plans that follow the loss of a device, loaded in advance (the paper's shadow assignments,
//! dynamic-partitioning.txt 4.4.1 and 5.2.5).
//!
//! Orders are made once for an active plan and the room's devices. They stay when the room is looked at again, and
//! those that are not concerned stay when somebody joins or leaves. While the model does not fit they name the part
//! that each device will most likely get ([`advance`]).

mod advance;

use std::collections::{BTreeMap, BTreeSet};

use potluck_panel::{PlanDecision, ReplacedReason, StandbyDecision};
use potluck_plan::{BlockIndex, Bytes, ExpertId, Millis, ModelShape, PeerId, Plan, PlanEpoch, WeightUnit};
use potluck_planner::{Device, Exposed, HostLoss, Planned, Room, Standby, StandbySearch, Standbys, Step, preload};
use potluck_protocol::{Frame, LoadFault, StandbyOrder};

use super::choosing::can_run;
use super::planner_input::PlannerInput;
use super::plans::Purpose;
#[cfg(feature = "testing")]
use super::slices::Progress;
use super::slices::{Slice, Sliced};
use super::{PlanRequest, Planning};
use crate::event_context::EventContext;
use crate::members::Members;

/// The room must be unchanged for this long before orders are made: devices often come and go together, and a
/// connection that ended may be back.
const SETTLE_MILLIS: f64 = 2_000.0;
/// Unanswered orders are sent again after this time.
const RESEND_MILLIS: f64 = 5_000.0;
/// A device that could not carry out an order gets no other one for this long, unless the plan changes.
const REFUSED_MILLIS: f64 = 60_000.0;
/// The share of its budget that a device may hold is multiplied by this when its engine runs out of memory.
const SHRINK: f64 = 0.9;
/// A device silent for this long is not relied on for the next token.
const SILENT_MILLIS: f64 = 2_500.0;

#[derive(Default)]
pub(crate) struct StandbyPlans {
    made_for: Option<Basis>,
    /// Another room than the orders were made for, and since when it is so.
    seen: Option<(Basis, Millis)>,
    /// What is in progress. Until it has ended, the standby plans before it count.
    search: Option<Sliced<Basis, Covering>>,
    covered: Vec<Covered>,
    exposed: Vec<Exposed>,
    orders: BTreeMap<PeerId, Order>,
    refusals: BTreeMap<PeerId, Refusal>,
    sent_at: Millis,
}

/// What standby plans are made for.
#[derive(Clone, Debug, PartialEq)]
struct Basis {
    /// The active plan, if there is one.
    plan: Option<PlanEpoch>,
    /// Memory budget of each device.
    budgets: Vec<(PeerId, Bytes)>,
    /// What the loss of this host means.
    host: HostLoss,
}

/// A search for the standby plans of this active plan. Where its experts lie changes without a new epoch.
struct Covering {
    active: Plan,
    search: StandbySearch,
}

impl Covering {
    fn step(self, room: &Room<'_>) -> Step<Self, Standbys> {
        match self.search.step(room, &self.active) {
            Step::GoesOn(search) => Step::GoesOn(Self { search, ..self }),
            Step::Ends(found) => Step::Ends(found),
        }
    }
}

/// A standby plan, and the devices that hold more for it than for the active plan.
struct Covered {
    standby: Standby,
    helpers: BTreeSet<PeerId>,
}

struct Order {
    order: StandbyOrder,
    /// The device's budget when the order was made.
    budget: Bytes,
    /// The device has not confirmed that it holds everything.
    awaited: bool,
    /// Units of it that an earlier order has loaded.
    already_loaded: BTreeSet<WeightUnit>,
}

/// A device that could not carry out an order. Valid for this budget.
struct Refusal {
    budget: Bytes,
    share: f64,
    until: Option<Millis>,
}

/// What a device loads in advance.
pub(super) struct Advance<'a> {
    pub order: &'a StandbyOrder,
    /// It has all of it.
    pub is_loaded: bool,
    /// Units of an earlier order.
    pub already_loaded: &'a BTreeSet<WeightUnit>,
}

/// The losses that a device stands by for.
pub(crate) struct StandsBy {
    pub lost: Vec<PeerId>,
    /// It holds what it needs for that.
    pub is_ready: bool,
}

impl StandbyPlans {
    /// The standby plan for the loss of this peer, if everyone in it holds what it needs.
    fn ready(&self, lost: PeerId) -> Option<&Plan> {
        let covered = self.covered.iter().find(|covered| covered.standby.lost == lost)?;
        covered.helpers.iter().all(|peer| self.holds(*peer)).then_some(&covered.standby.plan)
    }

    fn holds(&self, peer: PeerId) -> bool {
        self.orders.get(&peer).is_some_and(|order| !order.awaited)
    }

    /// Another plan is active: standby plans for it are still to be found.
    pub fn plan_changed(&mut self) {
        self.covered.clear();
        self.exposed.clear();
        self.look_again();
        self.refusals.values_mut().for_each(|refusal| refusal.until = None);
    }

    /// What was made or is being looked for counts no more.
    fn look_again(&mut self) {
        (self.made_for, self.seen, self.search) = (None, None, None);
    }

    /// A peer is gone, or no longer holds anything in advance.
    pub fn forget(&mut self, peer: PeerId) {
        self.orders.remove(&peer);
        self.covered.retain(|covered| !covered.helpers.contains(&peer));
        self.look_again();
    }

    pub fn prepared(&mut self, peer: PeerId, epoch: PlanEpoch) {
        if let Some(order) = self.orders.get_mut(&peer).filter(|order| order.order.epoch == epoch) {
            order.awaited = false;
        }
    }

    /// A peer could not carry out an order. True if there was such an order.
    pub fn failed(&mut self, peer: PeerId, epoch: PlanEpoch, fault: &LoadFault, now: Millis) -> bool {
        let Some(order) = self.orders.get(&peer).filter(|order| order.order.epoch == epoch) else { return false };
        let budget = order.budget;
        let known = self.refusals.remove(&peer).filter(|known| known.budget == budget);
        let mut refusal = known.unwrap_or(Refusal { budget, share: 1.0, until: None });
        match fault {
            LoadFault::NoRoom(_) => refusal.share *= SHRINK,
            LoadFault::Failed(_) => refusal.until = Some(Millis(now.0 + REFUSED_MILLIS)),
        }
        self.refusals.insert(peer, refusal);
        self.forget(peer);
        true
    }

    pub fn resend_orders(&mut self, cx: &mut EventContext) {
        if cx.now.0 - self.sent_at.0 >= RESEND_MILLIS {
            self.send_orders(cx);
        }
    }

    pub(super) fn send_orders(&mut self, cx: &mut EventContext) {
        for (peer, order) in self.orders.iter().filter(|(_, order)| order.awaited) {
            self.sent_at = cx.now;
            cx.out.send(*peer, Frame::StandBy(Box::new(order.order.clone())));
        }
    }

    /// Limits devices to what they may hold now. A device whose budget changed since its order needs another one.
    fn limit(&mut self, devices: &mut [Device], now: Millis) {
        for device in devices {
            let (peer, budget) = (device.peer, device.budget);
            if self.orders.get(&peer).is_some_and(|order| order.budget != budget) {
                self.forget(peer);
            }
            let Some(refusal) = self.refusals.get(&peer).filter(|refusal| refusal.budget == budget) else { continue };
            let is_refused = refusal.until.is_some_and(|until| now.0 < until.0);
            device.budget = if is_refused { Bytes::ZERO } else { Bytes((budget.0 as f64 * refusal.share) as u64) };
        }
    }

    /// The room differs from the one the orders were made for, and has for a while.
    fn is_due(&mut self, basis: &Basis, now: Millis) -> bool {
        if self.made_for.as_ref() == Some(basis) {
            (self.seen, self.search) = (None, None);
            return false;
        }
        match &self.seen {
            Some((seen, since)) if seen == basis => now.0 - since.0 >= SETTLE_MILLIS,
            _ => {
                (self.seen, self.search) = (Some((basis.clone(), now)), None);
                false
            }
        }
    }

    /// Looks for one more standby plan of the active one. Once all are found, returns what each device has to hold for them in
    /// addition.
    fn cover(
        &mut self,
        (basis, input, epoch): (&Basis, PlannerInput, PlanEpoch),
        active: &Plan,
        shape: &ModelShape,
        now: Millis,
    ) -> Option<BTreeMap<PeerId, Vec<WeightUnit>>> {
        let known = self.search.take().and_then(|search| search.valid(basis, now));
        let search = known.filter(|search| search.search().active == *active).unwrap_or_else(|| {
            let made = self.covered.iter().map(|covered| covered.standby.clone()).collect();
            let begin = |room: &Room<'_>| Covering {
                active: active.clone(),
                search: StandbySearch::keeping(room, active, made, basis.host),
            };
            Sliced::new(basis.clone(), input, epoch, now, begin)
        });
        match search.step(now, Covering::step) {
            Step::GoesOn(search) => {
                self.search = Some(search);
                None
            }
            Step::Ends(found) => Some(self.covered_by(found, active, shape)),
        }
    }

    /// The standby plans of the active one are found. Returns what each device has to hold for them in addition.
    fn covered_by(&mut self, found: Standbys, active: &Plan, shape: &ModelShape) -> BTreeMap<PeerId, Vec<WeightUnit>> {
        self.covered.clear();
        self.exposed = found.exposed;
        let mut units: BTreeMap<PeerId, Vec<WeightUnit>> = BTreeMap::new();
        let mut known: BTreeMap<PeerId, BTreeSet<WeightUnit>> = BTreeMap::new();
        for standby in found.covered {
            let mut helpers = BTreeSet::new();
            for peer in standby.plan.peers() {
                let own: BTreeSet<WeightUnit> = active.units_for(peer, shape).into_iter().collect();
                let mut more = standby.plan.units_for(peer, shape);
                more.retain(|unit| !own.contains(unit));
                if !more.is_empty() {
                    helpers.insert(peer);
                    let known = known.entry(peer).or_default();
                    units.entry(peer).or_default().extend(more.into_iter().filter(|unit| known.insert(*unit)));
                }
            }
            self.covered.push(Covered { standby, helpers });
        }
        units
    }

    /// Adds missing orders and ends unnecessary ones. True if there is a new one.
    fn order(
        &mut self,
        mut units: BTreeMap<PeerId, Vec<WeightUnit>>,
        budgets: &BTreeMap<PeerId, Bytes>,
        order: impl Fn(Vec<WeightUnit>) -> StandbyOrder,
    ) -> bool {
        self.orders.retain(|_, order| order.awaited || !order.order.units.is_empty());
        // A device that is away for a moment keeps its order.
        let ended = self.orders.keys().filter(|peer| budgets.contains_key(*peer));
        ended.copied().collect::<Vec<_>>().into_iter().for_each(|peer| _ = units.entry(peer).or_default());
        let mut is_new = false;
        for (peer, units) in units {
            let known = self.orders.get(&peer).map(|order| order.order.units.iter().collect::<BTreeSet<_>>());
            let wanted: BTreeSet<&WeightUnit> = units.iter().collect();
            let Some(budget) = budgets.get(&peer).filter(|_| known.as_ref() != Some(&wanted)) else { continue };
            let before = self.orders.get(&peer).filter(|before| !before.awaited).map(|before| &before.order.units);
            let already_loaded = before.into_iter().flatten().filter(|unit| wanted.contains(unit)).copied().collect();
            self.orders.insert(peer, Order { order: order(units), budget: *budget, awaited: true, already_loaded });
            is_new = true;
        }
        is_new
    }

    /// Experts that a device is told to hold.
    pub(super) fn ordered_of(&self, peer: PeerId) -> impl Iterator<Item = (BlockIndex, ExpertId)> {
        let units = self.orders.get(&peer).into_iter().flat_map(|order| &order.order.units);
        units.filter_map(|unit| match unit {
            WeightUnit::Expert(block, expert) => Some((*block, *expert)),
            _ => None,
        })
    }

    /// What a device loads in advance.
    pub(super) fn advance(&self, peer: PeerId) -> Option<Advance<'_>> {
        let order = self.orders.get(&peer).filter(|order| order.order.in_advance && !order.order.units.is_empty())?;
        Some(Advance { order: &order.order, is_loaded: !order.awaited, already_loaded: &order.already_loaded })
    }

    /// A plan comes: nothing is loaded in advance any more. Devices with a part in the plan learn it from the plan,
    /// the others from an order with this epoch. True if there are others.
    pub(super) fn end_advance(&mut self, part: &BTreeSet<PeerId>, epoch: PlanEpoch) -> bool {
        self.orders.retain(|peer, order| !order.order.in_advance || !part.contains(peer));
        let others = self.orders.values_mut().filter(|order| order.order.in_advance && !order.order.units.is_empty());
        let mut is_any = false;
        for order in others {
            (order.order.epoch, order.awaited, is_any) = (epoch, true, true);
            order.order.units.clear();
        }
        self.look_again();
        is_any
    }

    /// The losses that a device stands by for.
    pub fn of(&self, peer: PeerId) -> Option<StandsBy> {
        let of_peer = self.covered.iter().filter(|covered| covered.helpers.contains(&peer));
        let lost: Vec<PeerId> = of_peer.map(|covered| covered.standby.lost).collect();
        (!lost.is_empty()).then(|| StandsBy { lost, is_ready: self.holds(peer) })
    }

    /// What there is in case a device leaves.
    pub fn decisions(&self) -> Vec<StandbyDecision> {
        let made =
            self.covered.iter().map(|Covered { standby: Standby { lost, .. }, helpers }| StandbyDecision::Made {
                lost: *lost,
                helpers: helpers.iter().copied().collect(),
                ready: self.ready(*lost).is_some(),
            });
        let exposed = self.exposed.iter();
        let not_made =
            exposed.map(|Exposed { lost, missing }| StandbyDecision::NotMade { lost: *lost, missing: *missing });
        made.chain(not_made).collect()
    }

    /// One sentence on what happens if a device leaves.
    pub fn sentence(&self, members: &Members) -> Option<String> {
        if let Some(Exposed { lost, missing }) = self.exposed.first() {
            let name = members.name(*lost);
            let more = match *missing > Bytes::ZERO {
                true => format!(" {missing} more memory would prevent that."),
                false => String::new(),
            };
            return Some(format!("If {name} leaves, other devices have to load its part first.{more}"));
        }
        let all_ready = self.covered.iter().all(|covered| self.ready(covered.standby.lost).is_some());
        match all_ready {
            _ if self.covered.is_empty() => None,
            true => Some("If any other device leaves, the rest already hold its part.".to_owned()),
            false => Some("Copies are being loaded in case a device leaves.".to_owned()),
        }
    }
}

#[cfg(feature = "testing")]
impl StandbyPlans {
    /// The search in progress, and the plan that it is for.
    pub(super) fn progress(&self) -> Option<(Progress<'_>, &Plan)> {
        self.search.as_ref().map(|search| (search.progress(), &search.search().active))
    }

    pub(super) fn found(&self) -> Standbys {
        let covered = self.covered.iter().map(|covered| covered.standby.clone()).collect();
        Standbys { covered, exposed: self.exposed.clone() }
    }

    /// Nothing is left to be looked for.
    pub(super) fn are_made(&self) -> bool {
        self.made_for.is_some()
    }
}

impl Planning {
    /// Goes on to find standby plans, and makes their orders. Plans go first: nothing is ordered while one is prepared.
    pub(super) fn stand_by(&mut self, request: PlanRequest<'_>, cx: &mut EventContext) -> Slice {
        self.standbys.resend_orders(cx);
        // Experts that are missing now come before those that may be missing once.
        let is_busy = self.plans.inactive.is_some() || self.replicas.is_busy();
        if is_busy || self.plans.active.is_some() != self.plans.up().is_some() {
            return Slice::Nothing;
        }
        // After a loss that the plan can spare, this would make answers in progress wait for the search and for loading devices.
        if self.choosing.policy.lets_answers_end(request.answering, cx.now) {
            return Slice::Nothing;
        }
        // Slots take all memory of a device whose experts come on demand, so nothing stands by for it. The others load what
        // they will get once the model fits.
        let is_makeshift = self.plans.active.is_none() || self.is_on_demand();
        if is_makeshift && !self.may_load_in_advance(request, cx) {
            return Slice::Nothing;
        }
        let mut input = PlannerInput::new(self, request.model, request.command, &cx.members);
        let devices = input.devices();
        let budgets: BTreeMap<PeerId, Bytes> = devices.iter().map(|device| (device.peer, device.budget)).collect();
        self.standbys.limit(devices, cx.now);
        let may_hold = devices.iter().map(|device| (device.peer, device.budget)).collect();
        let host = if request.command.has_deputy() { HostLoss::IsSurvived } else { HostLoss::EndsRoom };
        let basis = Basis { plan: self.plans.active().map(|plan| plan.epoch), budgets: may_hold, host };
        if !self.standbys.is_due(&basis, cx.now) {
            return Slice::Nothing;
        }
        let epoch = self.plans.next_epoch(&cx.members);
        let active = self.plans.active.as_ref().map(|active| &active.planned.plan);
        let (units, in_advance) = match active.filter(|_| !is_makeshift) {
            Some(active) => {
                let units = self.standbys.cover((&basis, input, epoch), active, &request.model.shape, cx.now);
                let Some(units) = units else { return Slice::Taken };
                (units, false)
            }
            None => {
                let mut units = preload(&input.room(epoch));
                units.retain(|peer, _| active.is_none_or(|plan| !plan.peers().contains(peer)));
                (units, true)
            }
        };
        self.standbys.made_for = Some(basis);
        let context = request.command.context;
        let order = |units| StandbyOrder { in_advance, ..standby_order(epoch, request, context, units) };
        if self.standbys.order(units, &budgets, order) {
            self.plans.epoch = epoch;
            self.standbys.send_orders(cx);
        }
        Slice::Taken
    }

    /// Prepares the standby plan for the loss of this peer, for which nothing has to be loaded. False if there is
    /// none.
    pub fn take_over(&mut self, lost: PeerId, request: PlanRequest<'_>, cx: &mut EventContext) -> bool {
        let Some(plan) = self.standbys.ready(lost).cloned() else { return false };
        let is_there = |peer: &PeerId| {
            cx.members.get(*peer).is_some_and(|member| {
                member.is_available() && (*peer == cx.members.me || member.silent < SILENT_MILLIS)
            })
        };
        if !plan.peers().iter().all(is_there) {
            return false;
        }
        let input = PlannerInput::new(self, request.model, request.command, &cx.members);
        let room = input.room(self.plans.next_epoch(&cx.members));
        if !can_run(&plan, &room) {
            return false;
        }
        self.plans.abandon(cx);
        let planned = Planned::describe(&room, Plan { epoch: room.epoch, ..plan });
        let (epoch, new_ms) = (room.epoch, planned.prediction.token_millis);
        let reason = ReplacedReason::TakesOver;
        self.choosing.decisions.plan(PlanDecision::Replaced { epoch, new_ms, active_ms: None, reason }, cx);
        self.prepare(planned, None, Purpose::TakesOver, request, cx);
        self.decide_places(&room, cx);
        true
    }
}

fn standby_order(epoch: PlanEpoch, request: PlanRequest<'_>, context: u32, units: Vec<WeightUnit>) -> StandbyOrder {
    let (model, arithmetic) = (request.model, request.command.arithmetic);
    let (shape, overhead, model) = (model.shape.clone(), model.overhead, model.card.clone());
    StandbyOrder {
        epoch,
        model,
        kv_cache: shape.kv_cache,
        arithmetic,
        shape,
        overhead,
        context,
        units,
        in_advance: false,
    }
}
