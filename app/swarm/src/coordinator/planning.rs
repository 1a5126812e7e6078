//! From members to plans: `Down → Preparing → Committing → Up` (dynamic-partitioning.txt 4.4), with an active plan that
//! goes on while an inactive one is prepared beside it.

mod advance;
mod calibrating;
mod downloads;
mod forecasts;
mod habits;
mod help;
mod in_place;
mod measures;
mod patience;
mod question;
mod standbys;
mod state_type;
mod states;

pub(super) use in_place::Use;
pub(super) use standbys::StandsBy;
use states::Purpose;
pub(super) use states::{Active, Inactive};

use std::collections::BTreeSet;
use std::sync::Arc;

use potluck_plan::{Millis, ModelShape, PeerId, Plan, PlanEpoch, Stage, StageId, WeightUnit};
use potluck_planner::{HopCost, Planned, Prediction, Room, Sharing, Shortfall, TAU, forecast};
use potluck_protocol::{CalibrationRuns, ForecastView, Frame, HopView, LoadFault, PlanStanding, Prepare};

use calibrating::Calibrating;
use downloads::Downloads;
use forecasts::Forecasts;
use habits::Habits;
use help::Helpful;
use in_place::InPlace;
use measures::{Drift, Measures, way_noise};
use patience::Patience;
use question::Question;
use standbys::StandbyPlans;

use crate::coordinator::answering::{DecodePass, PrefillPass};
use crate::event::{HostCommand, OpenedModel};
use crate::members::Members;
use crate::memory::resident_bytes;
use crate::outbox::Outbox;

/// A better plan is looked for this often, whatever happens.
const CHECK_MILLIS: f64 = 10_000.0;
/// What the active plan is expected to take is said anew this often.
const PREDICT_MILLIS: f64 = 1_000.0;

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
    patience: Patience,
    habits: Habits,
    helpful: Helpful,
    predicted: Millis,
}

/// What planning needs to know besides the members.
#[derive(Clone, Copy)]
pub(super) struct Wishes<'a> {
    pub model: &'a Arc<OpenedModel>,
    pub command: &'a HostCommand,
    /// Rows of answers pass the active plan now.
    pub answering: bool,
    pub used: Use,
    pub now: Millis,
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
            patience: Patience::default(),
            habits: Habits::default(),
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
    pub fn shown(&self) -> (PlanStanding, Option<&Planned>) {
        match (&self.active, &self.inactive) {
            (Some(active), _) if active.is_up() => (PlanStanding::Up, Some(&active.planned)),
            (Some(active), _) => (PlanStanding::Committing, Some(&active.planned)),
            (None, Some(inactive)) => (PlanStanding::Preparing, Some(&inactive.planned)),
            (None, None) => (PlanStanding::Waiting, None),
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
    pub fn abandon(&mut self, out: &mut Outbox) {
        if let Some(inactive) = self.inactive.take() {
            let plan = &inactive.planned.plan;
            plan.peers().into_iter().for_each(|peer| out.send(peer, Frame::Abandon(plan.epoch)));
        }
    }

    /// A device that lent its GPU is gone, or lends it no more.
    pub fn leaves(&mut self, peer: PeerId, now: Millis) {
        self.habits.leaves(peer, now);
    }

    /// How often a device left lately.
    pub fn departures(&self, peer: PeerId) -> u32 {
        self.habits.departures(peer)
    }

    /// A peer is gone. True if the active plan is gone with it.
    pub fn lose(&mut self, peer: PeerId, out: &mut Outbox) -> bool {
        if self.inactive.as_ref().is_some_and(|inactive| inactive.planned.plan.peers().contains(&peer)) {
            self.abandon(out);
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
    pub fn ask(&self, peer: PeerId, out: &mut Outbox) {
        if let Some(active) = self.active().filter(|active| active.peers().contains(&peer)) {
            out.send(peer, Frame::Commit(active.epoch));
        }
    }

    /// A peer cannot get ready for the inactive plan. The active one goes on. True if the plan is given up for it.
    pub fn prepare_failed(
        &mut self,
        peer: PeerId,
        epoch: PlanEpoch,
        fault: LoadFault,
        members: &mut Members,
        now: Millis,
        out: &mut Outbox,
    ) -> bool {
        let is_meant =
            |inactive: &mut Inactive| inactive.epoch() == epoch && inactive.planned.plan.peers().contains(&peer);
        let Some(inactive) = self.inactive.take_if(is_meant) else { return false };
        let plan = &inactive.planned.plan;
        plan.peers().into_iter().for_each(|peer| out.send(peer, Frame::Abandon(plan.epoch)));
        match (fault, members.known.get_mut(&peer)) {
            (LoadFault::NoRoom(_), _) if inactive.keeps_active() => self.unfit_beside = Some(inactive.planned.plan),
            (LoadFault::NoRoom(_), Some(member)) => member.overflow(now),
            (LoadFault::Failed(_), Some(member)) => member.fail(now),
            (_, None) => {}
        }
        true
    }

    /// A peer cannot compute its part of the inactive plan: it is given up, and the peer asked again later.
    pub fn give_up_inactive(&mut self, peer: PeerId, members: &mut Members, now: Millis, out: &mut Outbox) {
        self.abandon(out);
        if let Some(member) = members.known.get_mut(&peer) {
            member.fail(now);
        }
    }

    /// Gives up a plan one of whose peers gets no further with loading; that peer is asked again later, and begins anew.
    pub fn give_up_stuck(&mut self, members: &mut Members, now: Millis, out: &mut Outbox) -> Option<PeerId> {
        let stuck = self.inactive.as_mut()?.stuck(members, now)?;
        self.give_up_inactive(stuck, members, now, out);
        Some(stuck)
    }

    /// The inactive plan, once everyone is ready for it.
    pub fn prepared_plan(&self) -> Option<&Plan> {
        self.inactive.as_ref().filter(|inactive| inactive.is_ready()).map(|inactive| &inactive.planned.plan)
    }

    /// The inactive plan, ready or not, is the active one from now on. Rows wait until everyone has switched, unless
    /// rows passed it already.
    pub fn commit(&mut self, running: bool, tokens: u64, members: &Members, now: Millis, out: &mut Outbox) {
        let Some(inactive) = self.inactive.take() else { return };
        if inactive.purpose == Purpose::TakesOver {
            // It was the quickest to have, and there may be a better one.
            self.checked = Millis(f64::MIN);
        }
        let active = inactive.into_active(running, now);
        for (peer, member) in &members.known {
            if member.admitted && member.hello.contribution.is_some() {
                out.send(*peer, Frame::Commit(active.epoch()));
            }
        }
        self.last = Some(active.planned.plan.clone());
        self.active = Some(active);
        self.patience.over();
        self.in_place.plan_changed(tokens);
        self.unfit_beside = None;
        self.standbys.plan_changed();
    }

    /// Time goes by: what members say of their downloads is noted. Orders whose answers are missing are given again: they or
    /// the answers may be lost.
    pub fn tick(&mut self, members: &Members, now: Millis, out: &mut Outbox) {
        self.habits.tick(now);
        self.downloads.listen(members);
        if let Some(inactive) = &mut self.inactive {
            inactive.tell_again(now, out);
        }
        if let Some(active) = &mut self.active {
            active.tell_again(now, out);
        }
    }

    /// True once the answer is over and a plan was put off for it.
    pub fn take_put_off(&mut self) -> bool {
        std::mem::take(&mut self.replan_when_idle)
    }

    /// A device's times. True if they are worth planning anew.
    pub fn calibrated(&mut self, peer: PeerId, answer: Result<CalibrationRuns, String>) -> bool {
        let first = !self.calibrating.has_answered(peer);
        let counts = self.calibrating.answered(peer, answer);
        if counts && first {
            self.measures.timed_anew(peer);
        }
        counts
    }

    /// A decoded row passed the active plan.
    pub fn learn(
        &mut self,
        model: &OpenedModel,
        command: &HostCommand,
        members: &Members,
        pass: &DecodePass,
        now: Millis,
    ) {
        let Some(active) = self.active.as_ref().filter(|active| active.is_up()) else { return };
        let (before, plan) = (self.expected(&active.planned).token_millis, active.planned.plan.clone());
        let question = Question::new(self, model, command, members);
        self.measures.learn(&question.room(plan.epoch), &plan, pass, now);
        if self.forecasts.passed(plan.epoch, pass, before) {
            let question = Question::new(self, model, command, members);
            let steady = potluck_planner::predict(&question.room(plan.epoch), &plan);
            self.forecasts.foretell(expected(&self.measures, &steady, &plan).token_millis);
        }
    }

    /// A prompt's chunk passed the active plan.
    pub fn learn_prefill(&mut self, model: &OpenedModel, command: &HostCommand, members: &Members, pass: &PrefillPass) {
        let Some(active) = self.active.as_ref().filter(|active| active.is_up()) else { return };
        let plan = active.planned.plan.clone();
        let question = Question::new(self, model, command, members);
        self.measures.learn_prefill(&question.room(plan.epoch), &plan, pass);
    }

    /// Milliseconds until the first token, if nothing else is answered: so many tokens to read, in chunks of so many rows, so
    /// many of them on their way at once.
    pub fn first_token_millis(
        &self,
        model: &OpenedModel,
        command: &HostCommand,
        members: &Members,
        plan: &Plan,
        (tokens, chunk, window): (u32, u32, usize),
    ) -> f64 {
        let question = Question::new(self, model, command, members);
        potluck_planner::first_token_millis(&question.room(plan.epoch), plan, tokens, chunk, window)
    }

    /// What tokens of a plan are expected to take: as the planner says, and once some have passed as they and the planner say.
    pub fn expected(&self, planned: &Planned) -> Prediction {
        expected(&self.measures, &planned.prediction, &planned.plan)
    }

    /// What the newest answer's tokens were foretold to take, for a plan that runs.
    pub fn foretold(&self, planned: &Planned) -> Option<ForecastView> {
        self.forecasts.view(planned.plan.epoch)
    }

    /// A device that runs everything alone is timed too, once it is up and has nothing to do: nobody waits for that.
    pub fn time_alone(&mut self, model: &OpenedModel, members: &Members, now: Millis, out: &mut Outbox) {
        if self.up().is_some() && self.inactive.is_none() && !self.waits {
            self.calibrating.ask_all(model, members, now, out);
        }
    }

    /// Milliseconds of a stage's engine for a decoded row, if the active plan measured it.
    pub fn measured_millis(&self, epoch: PlanEpoch, stage: StageId) -> Option<f64> {
        self.measures.stage_millis(epoch, stage)
    }

    /// Messages of a token under a plan with what is expected of them, and what tokens measured on it.
    pub fn hops(&self, planned: &Planned, expected: &Prediction) -> Vec<HopView> {
        let hops = &expected.hops;
        let measured = self.measures.hop_millis_of(planned.plan.epoch, hops);
        let hop = |(hop, measured_ms): (&HopCost, f64)| HopView {
            from: hop.from,
            to: hop.to,
            predicted_ms: hop.millis(),
            measured_ms,
        };
        hops.iter().zip(measured).map(hop).collect()
    }

    /// What would help, a sentence each.
    pub fn help(&self) -> &[String] {
        self.helpful.sentences()
    }

    /// Says anew what the active plan is expected to take, from the newest measures. True if that is far from what it was
    /// chosen for.
    fn predict_anew(&mut self, model: &OpenedModel, command: &HostCommand, members: &Members, now: Millis) -> bool {
        if now.0 - self.predicted.0 < PREDICT_MILLIS {
            return false;
        }
        self.predicted = now;
        let question = Question::new(self, model, command, members);
        let Some(active) = self.active.as_mut().filter(|active| active.is_up()) else { return false };
        let (epoch, plan) = (active.epoch(), &active.planned.plan);
        active.planned.prediction = potluck_planner::predict(&question.room(epoch), plan);
        self.drift.is_far(epoch, &active.planned.prediction, now)
    }

    /// True if it is time to look for a better plan: devices have said how quick they are, some stages take much longer
    /// than planned, or just now and then.
    pub fn is_due(&mut self, model: &OpenedModel, command: &HostCommand, members: &Members, now: Millis) -> bool {
        let slower = self.predict_anew(model, command, members, now);
        if slower {
            self.patience.drifted();
        }
        let due = now.0 - self.checked.0 >= CHECK_MILLIS && self.inactive.is_none();
        let known = self.waits && !self.calibrating.is_waited_for(members, now);
        slower || due || known
    }

    /// Looks for the best plan, with the largest type of keys and values that fits. Returns the model with that type.
    pub fn replan(&mut self, wishes: Wishes<'_>, members: &Members, out: &mut Outbox) -> Option<Arc<OpenedModel>> {
        if self.active().is_some_and(|plan| plan.peers().iter().any(|peer| !members.is_here(*peer))) {
            // It is back in a moment, or given up: until then nothing is planned without it.
            self.checked = Millis(f64::MIN);
            return None;
        }
        self.checked = wishes.now;
        let epoch = self.next_epoch(members);
        self.calibrating.ask(wishes.model, members, wishes.now, out);
        // An answer whose plan is lost does not wait.
        let urgent = wishes.answering && self.active.is_none();
        self.waits = !urgent && self.calibrating.is_waited_for(members, wishes.now);
        if self.waits {
            "Measuring how quick each device is with this model.".clone_into(&mut self.reason);
            return None;
        }
        let running = self.active().map(|plan| plan.state);
        let quiet = wishes.used.is_quiet(wishes.now);
        let mut shortfall = None;
        for model in state_type::choices(wishes.model, wishes.command.state, running, !quiet) {
            let question = Question::new(self, &model, wishes.command, members);
            let room = question.room(epoch);
            let found = match self.active {
                Some(_) => potluck_planner::plan(&room),
                // Everybody waits: what is there already counts.
                None => potluck_planner::plan_keeping(&room),
            };
            match found {
                Err(short) => shortfall = Some((model, short)),
                Ok(planned) => {
                    self.shortfall = None;
                    self.propose(planned, &room, Wishes { model: &model, ..wishes }, members, out);
                    return Some(model);
                }
            }
        }
        self.abandon(out);
        match shortfall {
            None => self.reason = state_type::refusal(wishes.model, wishes.command.state),
            Some((model, mut short)) => {
                let fits = |model: &OpenedModel, command: &HostCommand| {
                    let question = Question::new(self, model, command, members);
                    potluck_planner::plan(&question.room(epoch)).is_ok()
                };
                if let Some(help) = state_type::what_would_fit(&model, wishes.command, fits) {
                    short.sentence = format!("{} {help}", short.sentence);
                }
                self.shortfall = Some(short);
            }
        }
        None
    }

    /// Above every epoch that anybody has heard of.
    fn next_epoch(&self, members: &Members) -> PlanEpoch {
        let newest = members.known.values().map(|member| member.hello.epoch).max().unwrap_or_default();
        PlanEpoch(self.epoch.max(newest).0 + 1)
    }

    fn propose(&mut self, planned: Planned, room: &Room<'_>, wishes: Wishes<'_>, members: &Members, out: &mut Outbox) {
        let share = wishes.command.share;
        let measures = &self.measures;
        let is_better = |planned: &Planned, old: &Plan| {
            let (new_peers, old_peers) = (planned.plan.peers(), old.peers());
            let exchanged = new_peers.symmetric_difference(&old_peers).copied();
            let noise = Noise {
                share: measures.spread(new_peers.union(&old_peers).copied()),
                millis: exchanged.map(|peer| way_noise(members, peer)).sum(),
            };
            is_better(planned, old, room, noise)
        };
        let active = self.active.as_mut().filter(|active| can_run(&active.planned.plan, room));
        let timed = self.calibrating.timed();
        let patience = &mut self.patience;
        let kept = active.filter(|active| {
            let is_better = is_better(&planned, &active.planned.plan);
            !patience.is_over(room, timed, is_better, wishes.now) && active.share == share
        });
        if let Some(active) = kept {
            // Who came since may be a spare, and measures are newer.
            active.planned = Planned::describe(room, active.planned.plan.clone());
            self.drift.expect(active.epoch(), &active.planned.prediction);
            self.abandon(out);
            return;
        }
        let inactive = self.inactive.as_ref().filter(|inactive| can_run(&inactive.planned.plan, room));
        let stays = |inactive: &Inactive| {
            let plan = &inactive.planned.plan;
            let goes_on = || !is_better(&planned, plan) || self.is_nearly_there(room, plan, &planned.plan);
            inactive.purpose == Purpose::TakesOver || inactive.share == share && goes_on()
        };
        if inactive.is_some_and(stays) {
            return;
        }
        let unfit = self.unfit_beside.as_ref().is_some_and(|unfit| same_placement(unfit, &planned.plan));
        let keep_active = !unfit && self.fits_beside(&planned.plan, wishes.model, members);
        if let Some(active) = self.active.as_mut().filter(|_| !keep_active) {
            // One that can stay does so until another one is worth a wait, and nobody is there to wait.
            let old = active.planned.plan.clone();
            let can_stay = active.share == share && is_held(&old, room, wishes.model);
            let why_not = self.in_place.refusal(room, &planned, &old, wishes.used, wishes.now);
            if can_stay && let Some(sentence) = why_not {
                active.planned = Planned::describe(room, old);
                active.planned.reason = format!("{} {sentence}", active.planned.reason);
                self.drift.expect(active.epoch(), &active.planned.prediction);
                return;
            }
            if wishes.answering {
                self.replan_when_idle = true;
                return;
            }
            self.active = None;
        }
        self.prepare(planned, self.active().map(|plan| plan.epoch), Purpose::Best, wishes, members, out);
    }

    /// Has everyone prepare a plan, while the plan `keep` goes on.
    fn prepare(
        &mut self,
        planned: Planned,
        keep: Option<PlanEpoch>,
        purpose: Purpose,
        wishes: Wishes<'_>,
        members: &Members,
        out: &mut Outbox,
    ) {
        self.epoch = planned.plan.epoch;
        self.end_advance(&planned.plan, members, wishes, out);
        let order = Prepare {
            plan: planned.plan.clone(),
            model: wishes.model.card.clone(),
            shape: wishes.model.shape.clone(),
            overhead: wishes.model.overhead,
            keep,
        };
        if let Some(replaced) = self.inactive.take() {
            let (old, peers) = (replaced.epoch(), planned.plan.peers());
            let idle = replaced.planned.plan.peers().into_iter().filter(|peer| !peers.contains(peer));
            idle.for_each(|peer| out.send(peer, Frame::Abandon(old)));
        }
        let mut inactive = Inactive::new(planned, wishes.command.share, order, purpose);
        inactive.tell(wishes.now, out);
        self.inactive = Some(inactive);
    }

    /// Every peer has room for the units of the active and the new plan together.
    fn fits_beside(&self, plan: &Plan, model: &OpenedModel, members: &Members) -> bool {
        let Some(active) = self.active().filter(|active| active.state == plan.state) else { return false };
        plan.peers().into_iter().all(|peer| {
            let lent = members.get(peer).and_then(|member| member.hello.contribution.as_ref()).map(|lent| lent.budget);
            let both: BTreeSet<WeightUnit> =
                [active, plan].into_iter().flat_map(|plan| plan.units_for(peer, &model.shape)).collect();
            let both: Vec<WeightUnit> = both.into_iter().collect();
            let needed = resident_bytes(&model.shape, &both, plan.context).saturating_add(model.overhead);
            lent.is_some_and(|lent| needed <= lent)
        })
    }
}

fn expected(measures: &Measures, steady: &Prediction, plan: &Plan) -> Prediction {
    match measures.seen(plan) {
        Some(seen) => forecast(steady, &seen),
        None => steady.clone(),
    }
}

/// All devices of a plan still lend enough for their parts, and it is of the type and length that the room plans with.
fn can_run(plan: &Plan, room: &Room<'_>) -> bool {
    let is_seen = |stage: &Stage| room.device(stage.peer).is_some_and(|device| room.shows(device, stage.blocks));
    (plan.context, plan.state) == (room.context, room.shape.state)
        && fits(plan, room, room.shape)
        && plan.stages.iter().all(is_seen)
}

/// All devices of a plan that runs still lend enough for it, whatever type the room plans with now.
fn is_held(plan: &Plan, room: &Room<'_>, model: &OpenedModel) -> bool {
    let shape = model.shapes.iter().find(|shape| shape.state == plan.state);
    plan.context == room.context && shape.is_some_and(|shape| fits(plan, room, shape))
}

fn fits(plan: &Plan, room: &Room<'_>, shape: &ModelShape) -> bool {
    plan.peers().into_iter().all(|peer| {
        let units = plan.units_for(peer, shape);
        let needed = resident_bytes(shape, &units, plan.context).saturating_add(room.overhead);
        room.device(peer).is_some_and(|device| device.budget >= needed)
    })
}

/// How far the prediction of a plan may be wrong, compared with that of another one.
struct Noise {
    /// Of what it takes in all: stages.
    share: f64,
    /// Milliseconds: lines of devices that are only in one of both.
    millis: f64,
}

/// A plan is worth the change: everyone takes part in more of it, or it is quicker by more than a little, and by more than
/// the measurements vary.
fn is_better(new: &Planned, old: &Plan, room: &Room<'_>, noise: Noise) -> bool {
    let (many, before) = (new.plan.peers().len(), old.peers().len());
    if room.sharing == Sharing::Everyone && many != before {
        return many > before;
    }
    let old_millis = potluck_planner::predict(room, old).token_millis;
    !same_placement(&new.plan, old) && new.prediction.token_millis + noise.millis < (TAU - noise.share) * old_millis
}

/// The same parts on the same peers, whatever the epoch.
fn same_placement(a: &Plan, b: &Plan) -> bool {
    a.model == b.model && a.stages == b.stages && a.wire == b.wire && (a.context, a.state) == (b.context, b.state)
}
