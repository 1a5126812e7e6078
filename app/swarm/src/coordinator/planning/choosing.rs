//! Chooses the plan: looks for the best one for the room's devices, decides whether it replaces the active one, says why, and has
//! it prepared.

mod decisions;
mod hysteresis;
mod in_place;
mod kv_cache_type;
mod proposing;
mod replan_policy;

pub(crate) use in_place::Usage;

use std::sync::Arc;

use potluck_panel::{DeferredReason, NoPlanReason, PlanDecision};
use potluck_plan::{Ends, KvCacheType, Millis, ModelShape, Plan, PlanEpoch, Stage};
use potluck_planner::experts::plan_joining;
use potluck_planner::{Planned, Room, ShortOf, Shortfall, keeps_up};
use potluck_protocol::{Frame, Prepare};

use decisions::Decisions;
use proposing::BETTER_LATER;
use replan_policy::ReplanPolicy;

use super::planner_input::PlannerInput;
use super::plans::{Active, Inactive, Purpose};
use super::{PlanRequest, Planning};
use crate::event::{HostCommand, OpenedModel};
use crate::event_context::EventContext;
use crate::memory::{pool_bytes, resident_bytes};

/// When a better plan is looked for, and what was decided.
#[derive(Default)]
pub(super) struct Choosing {
    pub policy: ReplanPolicy,
    pub decisions: Decisions,
}

/// A larger KV cache may make the tokens of a room on demand slower by this factor.
const SLOWER: f64 = 1.5;

/// A kind of plan.
#[derive(Clone, Copy)]
enum Kind {
    /// Every expert has its place.
    Full,
    /// Experts on demand.
    OnDemand,
}

impl Planning {
    /// True if it is time to look for a better plan: devices were timed, stages take much longer than predicted, or
    /// the last look is a while ago.
    pub fn is_due(
        &mut self,
        (model, command): (&OpenedModel, &HostCommand),
        answering: bool,
        cx: &EventContext,
    ) -> bool {
        let slower = self.update_prediction(model, command, cx);
        if slower {
            self.choosing.policy.hysteresis.drifted();
        }
        let due = self.choosing.policy.is_check_due(answering, cx.now) && self.plans.inactive.is_none();
        let known = self.choosing.policy.awaits_calibration && !self.observed.calibrating.is_waited_for(cx);
        slower || due || known
    }

    /// Why there can be no plan, whoever contributes: the model cannot use the KV cache type that was chosen.
    pub fn kv_cache_refusal(model: &Arc<OpenedModel>, preferred: Option<KvCacheType>) -> Option<String> {
        let choices = kv_cache_type::choices(model, preferred, None, false);
        choices.is_empty().then(|| kv_cache_type::refusal(model, preferred))
    }

    /// Looks for the best plan with the largest KV cache type that fits. Returns the model with that type.
    pub fn replan(&mut self, request: PlanRequest<'_>, cx: &mut EventContext) -> Option<Arc<OpenedModel>> {
        if self.plans.active().is_some_and(|plan| plan.peers().iter().any(|peer| !cx.members.is_here(*peer))) {
            // It will be back in a moment, or be given up: until then nothing is planned without it.
            self.choosing.policy.check_soon();
            self.choosing.decisions.plan(PlanDecision::Deferred { reason: DeferredReason::DeviceAway }, cx);
            return None;
        }
        self.choosing.policy.checked(cx.now);
        let epoch = self.plans.next_epoch(&cx.members);
        let not_timed = self.not_timed(request.command, &cx.members);
        self.observed.calibrating.ask(request.model, &not_timed, cx);
        if self.looks_later(request, epoch, cx) {
            return None;
        }
        // An answer that lost its plan does not wait.
        let urgent = request.answering && self.plans.active.is_none();
        self.choosing.policy.awaits_calibration = !urgent && self.observed.calibrating.is_waited_for(cx);
        if self.choosing.policy.awaits_calibration {
            "Measuring how fast each device runs this model.".clone_into(&mut self.reason);
            self.choosing.decisions.plan(PlanDecision::Deferred { reason: DeferredReason::Measuring }, cx);
            return None;
        }
        let mut shortfall = None;
        for (model, kind) in self.candidates(request, cx.now) {
            let input = PlannerInput::new(self, &model, request.command, &cx.members);
            let room = input.room(epoch);
            match self.find(kind, &room, &model) {
                Ok(planned) => {
                    self.shortfall = None;
                    self.propose(planned, &room, PlanRequest { model: &model, ..request }, cx);
                    self.decide_places(&room, cx);
                    return Some(model);
                }
                Err(Some(short)) => shortfall = Some((model, short)),
                Err(None) => {}
            }
        }
        self.plans.abandon(cx);
        match shortfall {
            None => {
                self.reason = kv_cache_type::refusal(request.model, request.command.kv_cache);
                self.decide_no_plan(NoPlanReason::KvCacheType, cx);
            }
            Some((model, mut short)) => {
                let fits = |model: &OpenedModel, command: &HostCommand| {
                    let input = PlannerInput::new(self, model, command, &cx.members);
                    potluck_planner::plan(&input.room(epoch)).is_ok()
                };
                if let Some(help) = kv_cache_type::what_would_fit(&model, request.command, fits) {
                    short.sentence = format!("{} {help}", short.sentence);
                }
                let input = PlannerInput::new(self, &model, request.command, &cx.members);
                let why_not = || potluck_planner::why_not_on_demand(&input.room(epoch));
                if let Some(sentence) = request.command.on_demand.then(why_not).flatten() {
                    short.sentence = format!("{} {sentence}", short.sentence);
                }
                let Shortfall { needed, contributed: offered, missing, of, .. } = short;
                let reason = match of {
                    ShortOf::Room => NoPlanReason::NotEnoughMemory { needed, offered, missing },
                    ShortOf::HostForEnds => NoPlanReason::HostTooSmallForEnds { needed, offered, missing },
                };
                self.shortfall = Some(short);
                self.decide_no_plan(reason, cx);
                self.decide_places(&input.room(epoch), cx);
            }
        }
        None
    }

    /// True if the search for another plan waits until the answers in progress have ended, after a loss that the active plan
    /// can spare: the plan could not be prepared before, and tokens would wait for the search.
    fn looks_later(&mut self, request: PlanRequest<'_>, epoch: PlanEpoch, cx: &mut EventContext) -> bool {
        if !self.choosing.policy.lets_answers_end(request.answering, cx.now) || self.plans.inactive.is_some() {
            return false;
        }
        let input = PlannerInput::new(self, request.model, request.command, &cx.members);
        let room = input.room(epoch);
        let is_wanted = |active: &Active| {
            let plan = &active.planned.plan;
            active.share == request.command.sharing && !plan.is_on_demand() && can_run(plan, &room)
        };
        if !self.plans.active.as_ref().is_some_and(is_wanted) {
            return false;
        }
        self.describe_active(&room, Some(BETTER_LATER));
        self.choosing.decisions.plan(PlanDecision::Deferred { reason: DeferredReason::AnswersEndFirst }, cx);
        self.decide_places(&room, cx);
        (self.choosing.policy.when_idle, self.choosing.policy.awaits_calibration) = (true, false);
        true
    }

    /// What may be planned with, in the order of preference: each KV cache type with all experts in memory, then experts on
    /// demand.
    fn candidates(&self, request: PlanRequest<'_>, now: Millis) -> Vec<(Arc<OpenedModel>, Kind)> {
        let choices = |running: Option<KvCacheType>| {
            let (quiet, preferred) = (request.usage.is_quiet(now), request.command.kv_cache);
            kv_cache_type::choices(request.model, preferred, running, !quiet)
        };
        let running = self.plans.active().map(|plan| plan.kv_cache);
        // What loads experts on demand was chosen for want of memory: any type is better.
        let held = running.filter(|_| !self.is_on_demand());
        let full = |model| (model, Kind::Full);
        let mut candidates: Vec<_> = choices(held).into_iter().map(full).collect();
        if request.command.on_demand {
            let others = if held.is_some() { choices(None) } else { Vec::new() };
            candidates.extend(others.into_iter().map(full));
            // Another type would cost every conversation: a larger one may come between answers, a smaller one for want of memory.
            let allowed = choices(running);
            let is_allowed =
                |model: &OpenedModel| allowed.iter().any(|other| other.shape.kv_cache == model.shape.kv_cache);
            let others = choices(None).into_iter().filter(|model| !is_allowed(model));
            candidates.extend(allowed.iter().cloned().chain(others).map(|model| (model, Kind::OnDemand)));
        }
        candidates
    }

    /// The best plan of a kind, or what is missing for one that holds all experts.
    fn find(&self, kind: Kind, room: &Room<'_>, model: &OpenedModel) -> Result<Planned, Option<Shortfall>> {
        let active = self.plans.active.as_ref().filter(|active| !active.planned.plan.is_on_demand());
        let found = match (kind, active) {
            (Kind::Full, Some(active)) if active.share == room.sharing => {
                plan_joining(room, &active.planned.plan, &active.known)
            }
            (Kind::Full, Some(_)) => potluck_planner::plan(room),
            // Everybody waits, or for each token, so what is already loaded counts.
            (Kind::Full, _) => potluck_planner::plan_keeping(room),
            (Kind::OnDemand, _) => {
                // What runs or is being loaded goes on, however slow storage turned out to be, but not with a larger KV cache.
                let is_it = |plan: &Plan| plan.is_on_demand() && plan.kv_cache <= room.shape.kv_cache;
                let goes_on = self.plans.needed().is_some_and(is_it);
                // Nobody wants exact keys and values at any price. A plan for which a device lends too little by now is no choice.
                let active = self.plans.active.as_ref().filter(|active| is_held(&active.planned.plan, room, model));
                let most = active.map_or(f64::INFINITY, |active| SLOWER * active.planned.prediction.token_millis);
                let may_run =
                    |planned: &Planned| goes_on || (keeps_up(planned) && planned.prediction.token_millis <= most);
                return potluck_planner::on_demand(room).filter(may_run).ok_or(None);
            }
        };
        found.map_err(Some)
    }

    /// Has everyone prepare a plan, while the plan `keep` stays active.
    pub(super) fn prepare(
        &mut self,
        planned: Planned,
        keep: Option<PlanEpoch>,
        purpose: Purpose,
        request: PlanRequest<'_>,
        cx: &mut EventContext,
    ) {
        self.plans.epoch = planned.plan.epoch;
        self.end_advance(&planned.plan, cx);
        let order = order(planned.plan.clone(), keep, request);
        if let Some(replaced) = self.plans.inactive.take() {
            let (old, peers) = (replaced.epoch(), planned.plan.peers());
            let idle = replaced.planned.plan.peers().into_iter().filter(|peer| !peers.contains(peer));
            idle.for_each(|peer| cx.out.send(peer, Frame::Abandon(old)));
        }
        let mut inactive = Inactive::new(planned, request.command.sharing, order, purpose);
        inactive.send_orders(cx);
        self.plans.inactive = Some(inactive);
    }
}

/// The order to prepare a plan.
pub(super) fn order(plan: Plan, keep: Option<PlanEpoch>, request: PlanRequest<'_>) -> Prepare {
    let (model, shape, overhead) = (request.model.card.clone(), request.model.shape.clone(), request.model.overhead);
    let (hedging, spot_checks) = (request.command.pooling.hedging, request.command.spot_checks.share);
    Prepare { plan, model, shape, overhead, keep, hedging, spot_checks }
}

/// All devices of a plan still contribute enough for their parts, and its context and KV cache type are those the
/// room plans with.
pub(super) fn can_run(plan: &Plan, room: &Room<'_>) -> bool {
    let is_seen = |stage: &Stage| room.device(stage.peer).is_some_and(|device| room.shows(device, stage.blocks));
    (plan.context, plan.kv_cache, plan.arithmetic) == (room.context, room.shape.kv_cache, room.arithmetic)
        && fits(plan, room, room.shape)
        && plan.stages.iter().all(is_seen)
}

/// All devices of a running plan still contribute enough for it, whatever KV cache type the room plans with now.
pub(super) fn is_held(plan: &Plan, room: &Room<'_>, model: &OpenedModel) -> bool {
    let shape = model.shapes.iter().find(|shape| shape.kv_cache == plan.kv_cache);
    (plan.context, plan.arithmetic) == (room.context, room.arithmetic)
        && shape.is_some_and(|shape| fits(plan, room, shape))
}

/// All devices of a plan contribute enough for their parts of a model of this shape, whose ends are where they may be.
fn fits(plan: &Plan, room: &Room<'_>, shape: &ModelShape) -> bool {
    let ends_may = room.ends == Ends::Anywhere || plan.has_ends_on(room.coordinator);
    ends_may
        && plan.peers().into_iter().all(|peer| {
            let units = plan.units_for(peer, shape);
            let weights = resident_bytes(shape, &units, plan.context).saturating_add(pool_bytes(plan, shape, peer));
            let needed = weights.saturating_add(room.overhead);
            room.device(peer).is_some_and(|device| device.budget >= needed)
        })
}
