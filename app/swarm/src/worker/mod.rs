//! The worker's side of plans: an active one that computes, and an inactive one that is loaded beside it. Nothing
//! that happens to the inactive plan disturbs the active one. Besides, the worker may stand by for the loss of
//! another device.

mod holding;
mod loading;
mod replaying;
mod room;
mod standby;

use std::collections::BTreeSet;

use potluck_plan::{
    Bytes, Computed, ConversationId, Millis, ModelId, Outcome, PeerId, Plan, PlanEpoch, Ticket, WeightUnit,
};
use potluck_predict::{ForesightReport, ShadowWord};
use potluck_protocol::{
    CalibrationRuns, Contribution, ExpertCall, ExpertCancel, ExpertHint, ExpertResult, Forward, Frame, LoadFault,
    LoadPhase, LoadReport, ModelCard, Prepare, RowRange, RowsRequest, StageFaultKind, WorkerStatus,
};

use holding::Held;
use replaying::Replaying;
use standby::Standby;

use crate::Action;
use crate::event_context::EventContext;
use crate::executor::{Executor, ExecutorSetup};
use crate::experts::{DispatchSettings, Holders};
use crate::mutation::{Mutation, has_mutation};

/// The upper half of a ticket counts the executors of this worker, so that a late result never finds another executor's
/// work: not even one of the same plan, which a device prepares again for other experts.
const EXECUTOR_SHIFT: u32 = 32;

#[derive(Default)]
pub(crate) struct Worker {
    pub contribution: Option<Contribution>,
    active: Option<Active>,
    inactive: Option<Inactive>,
    standby: Option<Standby>,
    pub newest_epoch: PlanEpoch,
    /// Plans prepared so far: each may have an executor.
    prepared: u32,
    pub loading: Option<LoadReport>,
    pub used: Bytes,
    /// The coordinator that waits for times, and the model.
    calibrates_for: Option<(PeerId, ModelId)>,
    /// The coordinator that waits for times after pauses, which follow later.
    pauses_for: Option<(PeerId, ModelId)>,
    /// What this device computes again, as the host.
    replaying: Replaying,
}

/// The plan that computes.
struct Active {
    prepare: Prepare,
    executor: Executor,
    /// Experts that it is told to load besides.
    held: Option<Held>,
}

/// The inactive plan.
struct Inactive {
    coordinator: PeerId,
    prepare: Prepare,
    loaded: bool,
    /// Its executor's first.
    first_ticket: u64,
    /// Present once it computes: the KV cache of running answers is rebuilt on it.
    executor: Option<Executor>,
}

impl Inactive {
    fn epoch(&self) -> PlanEpoch {
        self.prepare.plan.epoch
    }

    fn executor(&mut self, me: PeerId) -> &mut Executor {
        let (coordinator, prepare, first_ticket) = (self.coordinator, &self.prepare, self.first_ticket);
        self.executor.get_or_insert_with(|| {
            let (width, recurrent) = (prepare.shape.hidden as usize, prepare.shape.is_recurrent());
            let settings = DispatchSettings { hedging: prepare.hedging, spot_checks: prepare.spot_checks };
            let setup = ExecutorSetup { me, coordinator, width, recurrent, settings, first_ticket };
            Executor::new(setup, prepare.plan.clone())
        })
    }
}

impl Worker {
    pub fn status(&self, hidden: bool, holders: &Holders) -> Option<WorkerStatus> {
        self.contribution.as_ref()?;
        let prepared = self.inactive.as_ref().filter(|inactive| inactive.loaded).map(Inactive::epoch);
        let active = self.active.as_ref();
        Some(WorkerStatus {
            used: self.used,
            loading: self.loading,
            prepared: prepared.or(active.map(|active| active.executor.epoch())),
            decode_millis: active.map_or(0.0, |active| active.executor.decode_millis),
            hidden,
            round_trips: Vec::new(),
            holders: holders.reports(|peer| active.map_or(0, |active| active.executor.open_calls(peer))),
            expert_waits: active.map(|active| active.executor.waits()).unwrap_or_default(),
            expert_phases: active.map(|active| active.executor.phases()).unwrap_or_default(),
            holding: self.holding(),
        })
    }

    /// What it holds stays for now.
    pub fn is_settled(&self) -> bool {
        self.inactive.is_none() && self.loading.is_none()
    }

    /// It is loading, or timing its GPU.
    pub fn is_busy(&self) -> bool {
        self.loading.is_some() || self.calibrates_for.is_some()
    }

    /// The coordinator asks for this device's times with a model.
    pub fn calibrate(&mut self, coordinator: PeerId, model: ModelCard, cx: &mut EventContext) {
        match self.contribution {
            Some(Contribution { budget, .. }) => {
                self.calibrates_for = Some((coordinator, model.id));
                cx.out.act(Action::Calibrate { model, budget });
            }
            None => {
                let sentence = "This device does not lend its GPU any more.".to_owned();
                cx.out.send(coordinator, Frame::Calibrated(model.id, Box::new(Err(sentence))));
            }
        }
    }

    /// The driver has the times, or failed to measure.
    pub fn calibrated(&mut self, model: ModelId, runs: Result<CalibrationRuns, String>, cx: &mut EventContext) {
        let asked = self.calibrates_for.take_if(|(_, asked)| *asked == model);
        let asked = asked.or_else(|| self.pauses_for.take_if(|(_, asked)| *asked == model));
        if let Some((coordinator, _)) = asked {
            // Timing pauses hardly uses the device, so it does not count as busy.
            self.pauses_for = asked.filter(|_| runs.as_ref().is_ok_and(|runs| runs.pauses_follow));
            cx.out.send(coordinator, Frame::Calibrated(model, Box::new(runs)));
        }
    }

    /// Weights held without a plan are freed if the budget shrinks.
    pub fn contribute(&mut self, contribution: Contribution, cx: &mut EventContext) {
        let idle = self.active.is_none() && self.inactive.is_none();
        if idle && self.contribution.as_ref().is_some_and(|before| contribution.budget < before.budget) {
            // The coordinator sends a new order to a device whose contribution changed.
            self.standby = None;
            self.used = Bytes::ZERO;
            cx.out.act(Action::Unload);
        }
        self.contribution = Some(contribution);
    }

    pub fn stop(&mut self, cx: &mut EventContext) {
        self.executors().for_each(|executor| executor.end_calls(cx));
        *self = Worker { newest_epoch: self.newest_epoch, prepared: self.prepared, ..Worker::default() };
        cx.out.act(Action::Unload);
    }

    pub fn prepare(&mut self, coordinator: PeerId, prepare: Prepare, cx: &mut EventContext) {
        let epoch = prepare.plan.epoch;
        if self.knows(&prepare, cx.members.me) {
            self.say_prepared(coordinator, epoch, cx);
            return;
        }
        // The commit of the plan that is to go on may have been lost.
        if let Some(kept) = prepare.keep {
            self.switch(kept, cx);
        }
        if let Err(fault) = self.check(&prepare, cx.members.me) {
            cx.out.send(coordinator, Frame::PrepareFailed(epoch, fault));
            return;
        }
        self.newest_epoch = self.newest_epoch.max(epoch);
        self.take_advance(epoch);
        self.stop_holding(LoadFault::Failed("a plan is being prepared".to_owned()), cx);
        self.drop_inactive(cx);
        if !self.keeps_active(&prepare) {
            self.drop_active(cx);
        }
        self.prepared += 1;
        let first_ticket = u64::from(self.prepared) << EXECUTOR_SHIFT;
        self.inactive = Some(Inactive { coordinator, prepare, loaded: false, first_ticket, executor: None });
        self.load(epoch, cx);
        self.loading = Some(LoadReport {
            phase: LoadPhase::Find,
            done: Bytes::ZERO,
            total: Bytes::ZERO,
            rate: 0.0,
            cached: Bytes::ZERO,
            waits: 0,
        });
        cx.out.act(Action::ViewChanged);
    }

    /// True for an order that was sent again because the answer to it may be lost. One of a known plan with more units is
    /// another: the experts of a device that was away lie elsewhere now, and it gets others.
    fn knows(&self, order: &Prepare, me: PeerId) -> bool {
        let inactive = self.inactive.iter().map(|inactive| (&inactive.prepare.plan, &inactive.prepare.shape));
        // The executor's plan: what is being loaded besides it is not there yet.
        let active = self.active.iter().map(|active| (active.executor.plan(), &active.prepare.shape));
        inactive.chain(active).filter(|(known, _)| known.epoch == order.plan.epoch).any(|(known, shape)| {
            let known: BTreeSet<WeightUnit> = known.units_for(me, shape).into_iter().collect();
            order.plan.units_for(me, shape).iter().all(|unit| known.contains(unit))
        })
    }

    fn say_prepared(&self, coordinator: PeerId, epoch: PlanEpoch, cx: &mut EventContext) {
        if self.inactive.as_ref().is_none_or(|inactive| inactive.epoch() != epoch || inactive.loaded) {
            cx.out.send(coordinator, Frame::Prepared(epoch));
        }
    }

    fn drop_active(&mut self, cx: &mut EventContext) {
        if let Some(active) = self.active.take() {
            active.executor.end(cx);
        }
    }

    fn drop_inactive(&mut self, cx: &mut EventContext) {
        if let Some(executor) = self.inactive.take().and_then(|inactive| inactive.executor) {
            executor.end(cx);
        }
    }

    pub fn commit(&mut self, coordinator: PeerId, epoch: PlanEpoch, cx: &mut EventContext) {
        self.newest_epoch = self.newest_epoch.max(epoch);
        self.drop_obsolete(epoch, cx);
        let trims = self.active.is_some();
        if self.switch(epoch, cx) {
            if trims || self.waits_to_stand_by() {
                // Frees what only the older plan needed.
                self.reconcile(epoch, cx);
            }
        } else if self.active.as_ref().is_some_and(|active| active.executor.epoch() < epoch) && self.inactive.is_none()
        {
            // A plan without us: we keep what we hold, as a spare.
            self.drop_active(cx);
            self.load_standby(cx);
        } else if self.inactive.is_none() {
            self.end_advance(epoch, cx);
        }
        let answer = if self.active.as_ref().is_some_and(|active| active.executor.epoch() == epoch) {
            Frame::Committed(epoch)
        } else {
            // A spare, from which no answer is expected, or a device that lost what it had prepared.
            Frame::PrepareFailed(epoch, LoadFault::Failed("it no longer holds its part".into()))
        };
        cx.out.send(coordinator, answer);
        cx.out.act(Action::ViewChanged);
    }

    /// An inactive plan is obsolete if there is a newer epoch: the frame that abandoned it was lost.
    fn drop_obsolete(&mut self, newer: PlanEpoch, cx: &mut EventContext) {
        if self.inactive.as_ref().is_some_and(|inactive| inactive.epoch() < newer) {
            self.drop_inactive(cx);
            self.loading = None;
        }
    }

    /// Switches to the inactive plan, if it is this one and loaded. True if so.
    fn switch(&mut self, epoch: PlanEpoch, cx: &mut EventContext) -> bool {
        let is_meant = |inactive: &mut Inactive| inactive.epoch() == epoch && inactive.loaded;
        let Some(mut inactive) = self.inactive.take_if(is_meant) else { return false };
        inactive.executor(cx.members.me);
        self.drop_active(cx);
        let Inactive { prepare, executor, .. } = inactive;
        self.active = executor.map(|executor| Active { prepare, executor, held: None });
        true
    }

    /// The inactive plan was abandoned.
    pub fn abandon(&mut self, epoch: PlanEpoch, cx: &mut EventContext) {
        if self.inactive.as_ref().is_some_and(|inactive| inactive.epoch() == epoch) {
            self.drop_inactive(cx);
            self.loading = None;
            self.reconcile(epoch, cx);
            cx.out.act(Action::ViewChanged);
        }
    }

    /// The executor of a plan, committed or not.
    fn executor(&mut self, epoch: PlanEpoch, me: PeerId) -> Option<&mut Executor> {
        match &mut self.active {
            Some(active) if active.takes(epoch) => Some(&mut active.executor),
            _ => {
                let inactive = self.inactive.as_mut().filter(|inactive| inactive.epoch() == epoch && inactive.loaded);
                inactive.map(|inactive| inactive.executor(me))
            }
        }
    }

    /// The plan of this epoch, if it computes here or is ready to.
    pub fn plan(&self, epoch: PlanEpoch) -> Option<&Plan> {
        match &self.active {
            Some(active) if active.takes(epoch) => Some(&active.prepare.plan),
            _ => {
                let inactive = self.inactive.as_ref().filter(|inactive| inactive.epoch() == epoch && inactive.loaded);
                inactive.map(|inactive| &inactive.prepare.plan)
            }
        }
    }

    /// The plan that computes here, with all changes of where experts lie.
    pub fn running(&self) -> Option<&Plan> {
        self.active.as_ref().map(|active| active.executor.plan())
    }

    /// The plans that compute here, or are made ready to.
    pub fn plans(&self) -> impl Iterator<Item = &Plan> {
        let active = self.active.iter().map(|active| &active.prepare.plan);
        active.chain(self.inactive.iter().map(|inactive| &inactive.prepare.plan))
    }

    /// A stage here waits for this holder's answer.
    pub fn awaits_result(&self, epoch: PlanEpoch, call: u64, holder: PeerId) -> bool {
        let active = self.active.as_ref().map(|active| &active.executor);
        let inactive = self.inactive.as_ref().and_then(|inactive| inactive.executor.as_ref());
        let mut executors = active.into_iter().chain(inactive).filter(|executor| executor.epoch() == epoch);
        executors.any(|executor| executor.awaits_result(call, holder))
    }

    /// Tokens for a stage. What the host itself calls over is freed in both plans.
    pub fn forward(&mut self, from: PeerId, forward: Forward, cx: &mut EventContext) {
        let (epoch, me) = (forward.epoch, cx.members.me);
        let admitted = self.executor(epoch, me).and_then(|executor| {
            let forward = executor.admit(from, forward, cx)?;
            Some((executor.author(from, &forward), forward))
        });
        let Some((author, forward)) = admitted else { return };
        self.executors().for_each(|executor| executor.hear_live(author, &forward, cx));
        self.make_room(&forward, cx);
        if let Some(executor) = self.executor(epoch, me) {
            executor.accept(forward, cx);
        }
    }

    /// Submits to the engine what an event has brought.
    pub fn start(&mut self, cx: &mut EventContext) {
        if let Some(active) = &mut self.active {
            active.executor.start(cx);
        }
        let has_room = self.has_room_for_both(cx);
        let next = self.inactive.as_mut().and_then(|inactive| inactive.executor.as_mut());
        if let Some(next) = next.filter(|_| has_room) {
            next.start(cx);
        }
    }

    pub fn expert_call(&mut self, caller: PeerId, call: ExpertCall, cx: &mut EventContext) {
        if let Some(executor) = self.executor(call.epoch, cx.members.me) {
            executor.expert_call(caller, call, cx);
        }
    }

    pub fn expert_result(&mut self, from: PeerId, result: ExpertResult, cx: &mut EventContext) {
        if let Some(executor) = self.executor(result.epoch, cx.members.me) {
            executor.expert_result(from, result, cx);
        }
    }

    pub fn expert_cancel(&mut self, caller: PeerId, cancel: ExpertCancel, cx: &mut EventContext) {
        if let Some(executor) = self.executor(cancel.epoch, cx.members.me) {
            executor.expert_cancel(caller, cancel, cx);
        }
    }

    pub fn expert_hint(&mut self, caller: PeerId, hint: &ExpertHint, cx: &mut EventContext) {
        if let Some(executor) = self.executor(hint.epoch, cx.members.me) {
            executor.expert_hint(caller, hint, cx);
        }
    }

    /// The host asks for hashes of rows.
    pub fn commit_rows(&mut self, range: RowRange, cx: &mut EventContext) {
        if let Some(executor) = self.executor(range.epoch, cx.members.me) {
            executor.commit_rows(range, cx);
        }
    }

    /// The host wants to see rows.
    pub fn show_rows(&mut self, request: RowsRequest, cx: &mut EventContext) {
        if let Some(executor) = self.executor(request.range.epoch, cx.members.me) {
            executor.show_rows(request, cx);
        }
    }

    /// The host has given up the KV cache of conversations between answers.
    pub fn free(&mut self, conversations: &BTreeSet<ConversationId>, cx: &mut EventContext) {
        self.executors().for_each(|executor| executor.free(conversations, cx));
    }

    /// [`Executor::foreseen`] of the plan that has the conversation.
    pub fn foreseen(
        &mut self,
        on_engine: ConversationId,
        word: &ShadowWord,
        cx: &mut EventContext,
    ) -> Option<ConversationId> {
        self.executors().find_map(|executor| executor.foreseen(on_engine, word, cx))
    }

    /// What came of this device's hints; none before the first token of a plan with slots elsewhere.
    pub fn hints(&self) -> Option<ForesightReport> {
        self.active.as_ref()?.executor.hints()
    }

    /// A result of the engine. Returns what was computed again to check others.
    pub fn computed(&mut self, computed: Computed, cx: &mut EventContext) -> Option<(Ticket, Outcome)> {
        if computed.ticket >= Ticket::FIRST_CHECK {
            return Some((computed.ticket, computed.outcome));
        }
        if let Some(executor) = self.executors().find(|executor| executor.computes(computed.ticket)) {
            executor.computed(computed, cx);
        }
        None
    }

    fn executors(&mut self) -> impl Iterator<Item = &mut Executor> {
        let active = self.active.iter_mut().map(|active| &mut active.executor);
        active.chain(self.inactive.iter_mut().filter_map(|inactive| inactive.executor.as_mut()))
    }

    /// Everything on the GPU is gone. The coordinator makes a new plan.
    pub fn device_lost(&mut self, sentence: &str, cx: &mut EventContext) {
        if let Some(inactive) = self.inactive.take() {
            let fault = LoadFault::Failed(sentence.to_owned());
            cx.out.send(inactive.coordinator, Frame::PrepareFailed(inactive.epoch(), fault));
        }
        self.stop_standing_by(LoadFault::Failed(sentence.to_owned()), cx);
        if let Some(Active { prepare, executor, .. }) = &self.active {
            let stage = prepare.plan.stages.iter().find(|stage| stage.peer == cx.members.me).map(|stage| stage.id);
            if let Some(stage) = stage.or(prepare.plan.stages.first().map(|stage| stage.id)) {
                executor.report(stage, ConversationId(0), None, StageFaultKind::DeviceLost, cx);
            }
        }
        self.drop_active(cx);
        self.loading = None;
        self.used = Bytes::ZERO;
    }

    /// Time has passed, or somebody came or left: looks after calls that are not answered.
    pub fn check_timers(&mut self, cx: &mut EventContext) {
        self.executors().for_each(|executor| executor.check_timers(cx));
    }

    /// When [`Self::check_timers`] has something to do next.
    pub fn next_deadline(&mut self) -> Option<Millis> {
        self.executors().filter_map(|executor| executor.next_deadline()).min_by(|a, b| a.0.total_cmp(&b.0))
    }
}

impl Active {
    /// Frames of this epoch are for this plan; with a deliberate bug, those of older plans are, too.
    fn takes(&self, epoch: PlanEpoch) -> bool {
        let own = self.executor.epoch();
        epoch == own || (has_mutation(Mutation::StaleEpoch) && epoch < own)
    }
}

#[cfg(test)]
mod tests;
