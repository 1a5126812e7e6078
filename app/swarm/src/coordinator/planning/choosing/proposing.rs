//! What becomes of the best plan that was found: whether it is worth a change, and whether it is prepared beside the active
//! plan, in its place, or later.

use std::cmp::Ordering;
use std::collections::BTreeSet;

use potluck_panel::{Compared, DeferredReason, KeptReason, PlanDecision, ReplacedReason};
use potluck_plan::{Plan, WeightUnit};
use potluck_planner::{Planned, Room, Sharing, TAU};

use crate::coordinator::planning::choosing::{can_run, is_held};
use crate::coordinator::planning::observed::path_noise;
use crate::coordinator::planning::plans::{Inactive, Purpose};
use crate::coordinator::planning::{PlanRequest, Planning};
use crate::event::OpenedModel;
use crate::event_context::EventContext;
use crate::members::Members;
use crate::memory::resident_bytes;

/// What is said of a plan after a loss that it could spare.
pub(in crate::coordinator::planning) const BETTER_LATER: &str =
    "The room looks for a better plan once the current answers are finished.";

impl Planning {
    /// What becomes of the best plan: it is dropped, put off, or prepared beside the active one or in its place.
    pub(in crate::coordinator::planning) fn propose(
        &mut self,
        planned: Planned,
        room: &Room<'_>,
        request: PlanRequest<'_>,
        cx: &mut EventContext,
    ) {
        let found = Found { planned: &planned, room, request };
        let lets_end = self.choosing.policy.lets_answers_end(request.answering, cx.now);
        let compared = self.compare(found, &cx.members);
        let replaced = self.reason_to_replace(found, compared.as_ref());
        let kept = if let Some(reason) = self.keeps_active(found, compared.as_ref(), cx) {
            self.describe_active(room, None);
            self.plans.abandon(cx);
            Some(reason)
        } else if lets_end && self.has_wanted_active(found) {
            self.put_off(found, cx);
            Some(KeptReason::AnswersEndFirst)
        } else if self.keeps_inactive(found, &cx.members) {
            Some(KeptReason::AnotherIsPrepared)
        } else {
            self.makes_way(found, cx).err()
        };
        let active_ms = compared.as_ref().map(|compared| compared.millis.active_ms);
        match (kept, compared, self.plans.active().map(|plan| plan.epoch)) {
            (None, _, keep) => {
                let (epoch, new_ms) = (planned.plan.epoch, planned.prediction.token_millis);
                self.choosing.decisions.plan(PlanDecision::Replaced { epoch, new_ms, active_ms, reason: replaced }, cx);
                self.prepare(planned, keep, Purpose::Best, request, cx);
            }
            (Some(reason), Some(compared), Some(epoch)) => {
                self.choosing.decisions.plan(PlanDecision::Kept { epoch, compared: compared.millis, reason }, cx);
            }
            (Some(KeptReason::AnswersEndFirst), ..) => {
                self.choosing.decisions.plan(PlanDecision::Deferred { reason: DeferredReason::AnswersEndFirst }, cx);
            }
            // The plan that is prepared already goes on.
            (Some(_), ..) => {}
        }
    }

    /// Compares the plan found with the active one, if that one can still be predicted.
    fn compare(&self, found: Found<'_>, members: &Members) -> Option<Comparison> {
        let active = &self.plans.active.as_ref()?.planned.plan;
        let is_known = can_run(active, found.room) || is_held(active, found.room, found.request.model);
        is_known.then(|| found.compare(active, &self.noise(found, active, members)))
    }

    /// Why the plan found would take the active one's place.
    fn reason_to_replace(&self, found: Found<'_>, compared: Option<&Comparison>) -> ReplacedReason {
        match (&self.plans.active, compared) {
            (None, _) if self.plans.last.is_some() => ReplacedReason::PlanLost,
            (None, _) => ReplacedReason::First,
            (Some(active), _) if found.is_makeshift(&active.planned.plan) => ReplacedReason::FitsNow,
            (Some(active), _) if active.share != found.request.command.sharing => ReplacedReason::SharingChanged,
            (Some(active), Some(compared)) if can_run(&active.planned.plan, found.room) => compared.outcome.replaced(),
            (Some(_), _) => ReplacedReason::CannotGoOn,
        }
    }

    /// The active plan goes on, and nothing is prepared: the plan found is not worth the change, or has not been for long enough.
    /// The look counts in the hysteresis. Returns why the plan goes on.
    fn keeps_active(
        &mut self,
        found: Found<'_>,
        compared: Option<&Comparison>,
        cx: &EventContext,
    ) -> Option<KeptReason> {
        let active = self.plans.active.as_ref().filter(|active| found.lets_go_on(&active.planned.plan))?;
        let outcome = compared?.outcome;
        let timed = self.observed.calibrating.timed();
        let is_over = self.choosing.policy.hysteresis.is_over(found.room, timed, outcome.is_better(), cx.now);
        let goes_on = !is_over && active.share == found.request.command.sharing;
        goes_on.then(|| outcome.kept().unwrap_or_else(|| self.choosing.policy.hysteresis.waits(cx.now)))
    }

    /// The active plan can go on, and is shared as the host wants.
    fn has_wanted_active(&self, found: Found<'_>) -> bool {
        self.plans.active.as_ref().is_some_and(|active| found.is_wanted(&active.planned.plan, active.share))
    }

    /// The plan found is looked for again once the answers in progress have ended.
    fn put_off(&mut self, found: Found<'_>, cx: &mut EventContext) {
        self.describe_active(found.room, Some(BETTER_LATER));
        self.choosing.policy.when_idle = true;
        // A plan that was being prepared before goes on, unless it cannot, or the host wants another one by now.
        let is_wanted = |inactive: &Inactive| found.is_wanted(&inactive.planned.plan, inactive.share);
        if !self.plans.inactive.as_ref().is_some_and(is_wanted) {
            self.plans.abandon(cx);
        }
    }

    /// The plan that is being prepared goes on: it takes over for a lost one, or the plan found is not worth beginning anew.
    fn keeps_inactive(&self, found: Found<'_>, members: &Members) -> bool {
        let inactive = self.plans.inactive.as_ref().filter(|inactive| found.lets_go_on(&inactive.planned.plan));
        let Some(inactive) = inactive else { return false };
        let plan = &inactive.planned.plan;
        let goes_on = || {
            !found.compare(plan, &self.noise(found, plan, members)).outcome.is_better()
                || self.is_nearly_there(found.room, plan, &found.planned.plan)
        };
        inactive.purpose == Purpose::TakesOver || inactive.share == found.request.command.sharing && goes_on()
    }

    /// Drops the active plan if the plan found does not fit beside it.
    ///
    /// # Errors
    /// Why the plan found has to wait instead.
    fn makes_way(&mut self, found: Found<'_>, cx: &EventContext) -> Result<(), KeptReason> {
        let Found { planned, room, request } = found;
        let unfit = self.plans.unfit_beside.as_ref().is_some_and(|unfit| same_placement(unfit, &planned.plan));
        let keep_active = !unfit && self.fits_beside(&planned.plan, request.model, &cx.members);
        let Some(active) = self.plans.active.as_ref().filter(|_| !keep_active) else { return Ok(()) };
        // A plan that can stay does so until a better one is worth the wait and nobody would have to wait.
        let old = &active.planned.plan;
        let can_stay =
            active.share == request.command.sharing && is_held(old, room, request.model) && !found.is_makeshift(old);
        let why_not = self.choosing.policy.in_place.refusal(room, planned, old, request.usage, cx.now);
        if can_stay && let Some(refusal) = why_not {
            self.describe_active(room, Some(&refusal.sentence()));
            return Err(refusal.reason);
        }
        if request.answering {
            self.choosing.policy.when_idle = true;
            return Err(KeptReason::AnswersEndFirst);
        }
        self.plans.drop_active();
        Ok(())
    }

    /// Describes the active plan again, with a sentence on what comes of a better one: newcomers may be spares, and measurements
    /// are newer.
    pub(in crate::coordinator::planning) fn describe_active(&mut self, room: &Room<'_>, better: Option<&str>) {
        let Some(active) = self.plans.active.as_mut() else { return };
        active.planned = Planned::describe(room, active.planned.plan.clone());
        if let Some(sentence) = better {
            active.planned.reason = format!("{} {sentence}", active.planned.reason);
        }
        self.choosing.policy.drift.expect(active.epoch(), &active.planned.prediction);
    }

    /// How far the predictions of the plan found and of another one may be off.
    fn noise(&self, found: Found<'_>, old: &Plan, members: &Members) -> Noise {
        let (new_peers, old_peers) = (found.planned.plan.peers(), old.peers());
        let exchanged = new_peers.symmetric_difference(&old_peers).copied();
        Noise {
            share: self.observed.measures.spread(new_peers.union(&old_peers).copied()),
            millis: exchanged.map(|peer| path_noise(members, peer)).sum(),
        }
    }

    /// Every peer has memory for the units of the active and the new plan together.
    fn fits_beside(&self, plan: &Plan, model: &OpenedModel, members: &Members) -> bool {
        let Some(active) = self.plans.active().filter(|active| active.kv_cache == plan.kv_cache) else { return false };
        if active.is_on_demand() || plan.is_on_demand() {
            // Slots take all the memory that is left, and lie elsewhere with another number of them.
            return false;
        }
        plan.peers().into_iter().all(|peer| {
            let contributed = members
                .get(peer)
                .and_then(|member| member.hello.contribution.as_ref())
                .map(|contribution| contribution.budget);
            let both: BTreeSet<WeightUnit> =
                [active, plan].into_iter().flat_map(|plan| plan.units_for(peer, &model.shape)).collect();
            let both: Vec<WeightUnit> = both.into_iter().collect();
            let needed = resident_bytes(&model.shape, &both, plan.context).saturating_add(model.overhead);
            contributed.is_some_and(|contributed| needed <= contributed)
        })
    }
}

/// The best plan that was found, and what for.
#[derive(Clone, Copy)]
struct Found<'a> {
    planned: &'a Planned,
    room: &'a Room<'a>,
    request: PlanRequest<'a>,
}

impl Found<'_> {
    /// It is worth the change from an old plan if more devices take part, or hold experts (where that is wanted), or if it is
    /// faster by more than a margin and by more than measurements vary.
    fn compare(self, old: &Plan, noise: &Noise) -> Comparison {
        let (new, room) = (self.planned, self.room);
        let taking_part = |plan: &Plan| match room.sharing {
            Sharing::Fastest => 0,
            Sharing::Everyone => plan.peers().len(),
            Sharing::Experts => plan.expert_holders().len(),
        };
        let (many, before) = (taking_part(&new.plan), taking_part(old));
        let old_millis = potluck_planner::predict(room, old).token_millis;
        let is_faster = || new.prediction.token_millis + noise.millis < (TAU - noise.share) * old_millis;
        let outcome = match many.cmp(&before) {
            Ordering::Greater => Outcome::MoreDevices { before, after: many },
            Ordering::Less => Outcome::FewerDevices { before, after: many },
            Ordering::Equal if same_placement(&new.plan, old) => Outcome::Same,
            Ordering::Equal if is_faster() => Outcome::Faster,
            Ordering::Equal => Outcome::GainTooSmall,
        };
        // Where times vary by more than a token takes, no plan is fast enough.
        let needed_ms = ((TAU - noise.share) * old_millis - noise.millis).max(0.0);
        let millis = Compared { active_ms: old_millis, best_ms: new.prediction.token_millis, needed_ms };
        Comparison { millis, outcome }
    }

    /// An old plan can go on, as far as it depends on its devices and on this plan.
    fn lets_go_on(self, old: &Plan) -> bool {
        can_run(old, self.room) && !self.is_makeshift(old)
    }

    /// An old plan can go on, and is shared as the host wants.
    fn is_wanted(self, old: &Plan, share: Sharing) -> bool {
        self.lets_go_on(old) && share == self.request.command.sharing
    }

    /// What loads experts on demand was chosen for want of memory: a plan that holds them all replaces it.
    fn is_makeshift(self, old: &Plan) -> bool {
        old.is_on_demand() && !self.planned.plan.is_on_demand()
    }
}

/// The plan found beside an old one.
struct Comparison {
    millis: Compared,
    outcome: Outcome,
}

/// How the plan found compares with an old one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    Same,
    Faster,
    GainTooSmall,
    MoreDevices { before: usize, after: usize },
    FewerDevices { before: usize, after: usize },
}

impl Outcome {
    /// It is worth a change.
    fn is_better(self) -> bool {
        matches!(self, Self::Faster | Self::MoreDevices { .. })
    }

    /// Why the old one goes on, if the plan found is not worth a change.
    fn kept(self) -> Option<KeptReason> {
        match self {
            Self::Same => Some(KeptReason::IsBest),
            Self::GainTooSmall => Some(KeptReason::GainTooSmall),
            Self::FewerDevices { before, after } => {
                Some(KeptReason::FewerDevices { active: before as u32, best: after as u32 })
            }
            Self::Faster | Self::MoreDevices { .. } => None,
        }
    }

    /// Why it takes the place of an old one that could go on.
    fn replaced(self) -> ReplacedReason {
        match self {
            Self::MoreDevices { before, after } => {
                ReplacedReason::MoreDevices { before: before as u32, after: after as u32 }
            }
            Self::Same | Self::Faster | Self::GainTooSmall | Self::FewerDevices { .. } => ReplacedReason::Faster,
        }
    }
}

/// How far the prediction of a plan may be off, compared with that of another one.
struct Noise {
    /// As a share of the total: stages.
    share: f64,
    /// In milliseconds: links of devices that are only in one of both.
    millis: f64,
}

/// The same parts on the same peers, whatever the epoch.
fn same_placement(a: &Plan, b: &Plan) -> bool {
    a.model == b.model
        && a.stages == b.stages
        && a.pools == b.pools
        && (a.wire, a.expert_wire) == (b.wire, b.expert_wire)
        && a.arithmetic == b.arithmetic
        && (a.context, a.kv_cache) == (b.context, b.kv_cache)
}
