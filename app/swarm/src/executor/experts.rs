//! Experts on other peers: carries out what the dispatch decides, and answers the calls of other stages.

use potluck_plan::{
    BlockIndex, ConversationId, ExpertHolder, ExpertId, ExpertOutputs, Input, LmHeadTokens, Millis, Outcome, PeerId,
    Position, Task, Ticket,
};
use potluck_predict::{ForesightReport, ShadowWord};
use potluck_protocol::{
    ExpertCall, ExpertCancel, ExpertFailure, ExpertHint, ExpertPhase, ExpertResult, ExpertWaits, Forward, Frame,
    StageFaultKind,
};

use super::queue::Job;
use super::{Executor, Purpose, ReceivedCall};
use crate::Action;
use crate::event_context::EventContext;
use crate::experts::{CallShare, DispatchContext, DispatchStep, Gather, Hinted, RoutedBatch, RouterOutput};
use crate::limits;

/// What a dispatch decides by.
macro_rules! dispatch_context {
    ($executor:expr, $cx:expr) => {
        &mut DispatchContext { plan: &$executor.plan, members: &$cx.members, holders: &mut $cx.holders, now: $cx.now }
    };
}

impl Executor {
    /// A batch has passed a router. Its jobs wait together: one call a holder serves all of them. Nobody is asked for a batch
    /// that nobody waits for.
    pub(super) fn routed(&mut self, jobs: Vec<Job>, outcome: Outcome, cx: &mut EventContext) {
        let (Some(first), Outcome::Routed { residual, normed, routes }) = (jobs.first(), outcome) else { return };
        if jobs.iter().all(|job| job.dropped) {
            return;
        }
        let (stage, class) = (first.forward.stage, first.forward.class);
        let block = BlockIndex(self.routed_block(first));
        let tokens: usize = jobs.iter().map(|job| job.forward.count as usize).sum();
        let is_whole = routes.len() == tokens && [&residual, &normed].iter().all(|values| is_finite(values));
        let row = |job: &Job| {
            let Forward { conversation, base, count, .. } = job.forward;
            (0..count).map(move |index| (conversation, Position(base.0.saturating_add(index))))
        };
        // A token, alone or with drafts. A part of a log that is replayed says nothing about tokens to come.
        let is_newest = |job: &Job| {
            let lm_head = job.forward.lm_head.as_ref();
            job.forward.count == 1 || lm_head.is_some_and(|request| request.tokens == LmHeadTokens::All)
        };
        let rows: Vec<(ConversationId, Position)> =
            if jobs.iter().all(is_newest) { jobs.iter().flat_map(row).collect() } else { Vec::new() };
        let batch = RoutedBatch { block, class, rows: &rows, routes: &routes };
        let hinted = self.hints.routed(&self.plan, &cx.hints, batch, cx.now);
        let output = RouterOutput { residual, normed, routes };
        let gather = Gather::new(stage, block, class, output, self.width, cx.now).filter(|_| is_whole);
        let Some(gather) = gather else {
            let bad = StageFaultKind::BadResult(self.me);
            return self.fail_jobs(&jobs, bad, cx);
        };
        let (id, steps) = self.dispatch.begin(gather, dispatch_context!(self, cx));
        self.waiting.insert(id, jobs);
        self.carry_out(steps, cx);
        self.send_hints(hinted, cx);
        if let Some(wanted) = self.hints.take_wanted(&cx.hints) {
            cx.out.act(Action::Foresee(wanted));
        }
    }

    /// A shadow says what tokens of a conversation will use. It knows the conversation by the engine's id. Returns the room's id, if the
    /// conversation is one of this plan's.
    pub fn foreseen(
        &mut self,
        on_engine: ConversationId,
        word: &ShadowWord,
        cx: &mut EventContext,
    ) -> Option<ConversationId> {
        let conversation = self.kv_caches.conversation(on_engine)?;
        let hinted = self.hints.foreseen(&self.plan, &cx.hints, conversation, word);
        self.send_hints(hinted, cx);
        Some(conversation)
    }

    fn send_hints(&self, hinted: Hinted, cx: &mut EventContext) {
        let epoch = self.plan.epoch;
        for (holder, experts) in hinted {
            cx.out.send(holder, Frame::ExpertHint(ExpertHint { epoch, experts }));
        }
    }

    /// What came of the hints so far.
    pub fn hints(&self) -> Option<ForesightReport> {
        self.hints.report()
    }

    fn carry_out(&mut self, steps: Vec<DispatchStep>, cx: &mut EventContext) {
        for step in steps {
            match step {
                DispatchStep::Call { to, call, block, class, share: CallShare { rows, normed, weights } } => {
                    let (epoch, wire) = (self.plan.epoch, self.plan.expert_wire);
                    let asked = ExpertCall { epoch, call, block, class, rows, weights, wire, normed };
                    cx.out.send(to, Frame::ExpertCall(asked));
                }
                DispatchStep::Own { call, block, class, share: CallShare { rows, mut normed, weights } } => {
                    potluck_protocol::round(&mut normed, self.plan.expert_wire);
                    let task = Task::Experts { block, class, normed, experts: rows, sum: sums_by(weights) };
                    self.compute(task, Purpose::OwnExperts(call), cx);
                }
                DispatchStep::Cancel { to, call } => {
                    let cancel = ExpertCancel { epoch: self.plan.epoch, call };
                    cx.out.send(to, Frame::ExpertCancel(cancel));
                }
                DispatchStep::CancelOwn { call } => {
                    self.cancel(|purpose| matches!(purpose, Purpose::OwnExperts(known) if *known == call), cx);
                }
                DispatchStep::Done { gather, outputs, helpers } => {
                    cx.out.notes.extend(self.dispatch.take_notes());
                    self.gathered(gather, outputs, &helpers);
                }
                DispatchStep::Wrong { gather, holder } => {
                    let waiting = self.waiting.get(&gather).and_then(|jobs| jobs.iter().find(|job| !job.dropped));
                    if let Some(forward) = waiting.map(|job| &job.forward) {
                        let (stage, conversation, pass) = (forward.stage, forward.conversation, forward.pass);
                        self.report(stage, conversation, Some(pass), StageFaultKind::BadResult(holder), cx);
                    }
                }
                DispatchStep::Convicted { stage, holder } => {
                    self.report(stage, ConversationId(0), None, StageFaultKind::BadResult(holder), cx);
                }
                DispatchStep::OtherWireType { stage, holder, answered } => {
                    let kind = StageFaultKind::OtherWireType { holder, answered };
                    self.report(stage, ConversationId(0), None, kind, cx);
                }
                DispatchStep::Lost { gather, block, wrong, failed } => {
                    let unreachable = StageFaultKind::ExpertsUnreachable { block, failed };
                    self.fail_waiting(gather, wrong.map_or(unreachable, StageFaultKind::BadResult), cx);
                }
            }
        }
    }

    /// All outputs of a batch's experts are there: its jobs go on with the next block, together.
    fn gathered(&mut self, gather: u64, outputs: ExpertOutputs, helpers: &[PeerId]) {
        let Some(jobs) = self.waiting.remove(&gather) else { return };
        let counts: Vec<usize> = jobs.iter().map(|job| job.forward.count as usize).collect();
        let next = outputs.block.0 + 1;
        let parts = super::piece::split_experts(outputs, &counts, self.width);
        for (mut job, part) in jobs.into_iter().zip(parts).rev().filter(|(job, _)| !job.dropped) {
            job.cursor = next;
            job.helpers.extend(helpers);
            self.queue(job.forward.stage).go_on(job, Input::Experts(part));
        }
    }

    fn fail_waiting(&mut self, gather: u64, kind: StageFaultKind, cx: &mut EventContext) {
        let jobs = self.waiting.remove(&gather).unwrap_or_default();
        self.fail_jobs(&jobs, kind, cx);
    }

    fn fail_jobs(&mut self, jobs: &[Job], kind: StageFaultKind, cx: &mut EventContext) {
        jobs.iter().filter(|job| !job.dropped).for_each(|job| self.fail_job(job, kind.clone(), cx));
    }

    /// Drops what nobody waits for any more.
    pub(super) fn drop_idle_gathers(&mut self, cx: &mut EventContext) {
        let is_idle = |jobs: &Vec<Job>| jobs.iter().all(|job| job.dropped);
        let idle: Vec<u64> = self.waiting.iter().filter(|(_, jobs)| is_idle(jobs)).map(|(id, _)| *id).collect();
        for id in idle {
            self.waiting.remove(&id);
            let steps = self.dispatch.drop_gather(id, dispatch_context!(self, cx));
            self.carry_out(steps, cx);
        }
    }

    /// The stage's own experts have computed their share, or not.
    pub(super) fn own_experts(&mut self, call: u64, outcome: Outcome, cx: &mut EventContext) {
        let gather = self.dispatch.gather_of(call);
        if gather.is_none() && !matches!(outcome, Outcome::ExpertOutputs(_)) {
            // A spot check that the own engine could not compute.
            let failed = ExpertFailure::Failed;
            self.dispatch.failed(call, ExpertHolder::Own, failed, dispatch_context!(self, cx));
            return;
        }
        let kind = match outcome {
            Outcome::ExpertOutputs(mut outputs) => {
                potluck_protocol::round(&mut outputs, self.plan.expert_wire);
                let steps = self.dispatch.answered(call, ExpertHolder::Own, &outputs, 0.0, dispatch_context!(self, cx));
                return self.carry_out(steps, cx);
            }
            // Somebody else may have them.
            Outcome::Missing { .. } => {
                let steps =
                    self.dispatch.failed(call, ExpertHolder::Own, ExpertFailure::NotHere, dispatch_context!(self, cx));
                return self.carry_out(steps, cx);
            }
            Outcome::DeviceLost => StageFaultKind::DeviceLost,
            Outcome::Failed(sentence) => StageFaultKind::Failed(sentence),
            _ => StageFaultKind::Failed("the work was cancelled".to_owned()),
        };
        // The stage cannot go on without its own engine.
        if let Some(gather) = gather {
            self.fail_waiting(gather, kind, cx);
            let steps = self.dispatch.drop_gather(gather, dispatch_context!(self, cx));
            self.carry_out(steps, cx);
        }
    }

    /// This holder was asked, and its answer counts.
    pub fn awaits_result(&self, call: u64, holder: PeerId) -> bool {
        self.dispatch.awaits(call, holder)
    }

    /// Calls of a holder that it has not answered.
    pub fn open_calls(&self, holder: PeerId) -> u32 {
        self.dispatch.open(holder)
    }

    /// What decoded tokens have waited for others.
    pub fn waits(&self) -> ExpertWaits {
        self.dispatch.waits()
    }

    /// How long experts took, by the number of devices that were asked for them.
    pub fn phases(&self) -> Vec<ExpertPhase> {
        self.dispatch.phases()
    }

    /// A holder answers. Late and duplicate answers find nothing waiting.
    pub fn expert_result(&mut self, from: PeerId, result: ExpertResult, cx: &mut EventContext) {
        let (call, holder) = (result.call, ExpertHolder::Peer(from));
        let steps = match result.failed {
            None if result.wire != self.plan.expert_wire => {
                self.dispatch.answered_otherwise(call, from, result.wire, dispatch_context!(self, cx))
            }
            None => self.dispatch.answered(call, holder, &result.outputs, result.millis, dispatch_context!(self, cx)),
            Some(failure) => self.dispatch.failed(call, holder, failure, dispatch_context!(self, cx)),
        };
        self.carry_out(steps, cx);
    }

    /// Time has passed, or somebody came or left: asks others where somebody does not answer.
    pub fn check_timers(&mut self, cx: &mut EventContext) {
        let steps = self.dispatch.check_timers(dispatch_context!(self, cx));
        self.carry_out(steps, cx);
    }

    /// When [`Self::check_timers`] has something to do next.
    pub fn next_deadline(&self) -> Option<Millis> {
        self.dispatch.next_deadline()
    }

    /// A stage elsewhere needs experts of ours.
    pub fn expert_call(&mut self, caller: PeerId, call: ExpertCall, cx: &mut EventContext) {
        let is_its = |purpose: &&Purpose| matches!(purpose, Purpose::Call(known) if known.caller == caller);
        let open = |purpose: &&Purpose| matches!(purpose, Purpose::Call(known) if known.call == call.call);
        if self.tickets.values().filter(is_its).any(|purpose| open(&purpose)) {
            // Asked again: the answer is on its way.
            return;
        }
        let failure = match () {
            () if !limits::is_call(&call, self.width) => Some(ExpertFailure::BadCall),
            () if !self.holds_all(&call) => Some(ExpertFailure::NotHere),
            () if self.tickets.values().filter(is_its).count() >= limits::MAX_CALLS => Some(ExpertFailure::Busy),
            () => None,
        };
        let ExpertCall { call, block, class, rows, weights, wire, normed, .. } = call;
        let received = ReceivedCall { caller, call, wire };
        match failure {
            Some(failure) => self.answer_call(received, Err(failure), 0.0, cx),
            None => {
                let task = Task::Experts { block, class, normed, experts: rows, sum: sums_by(weights) };
                self.compute(task, Purpose::Call(received), cx);
            }
        }
    }

    /// This device has every expert of a call on its GPU.
    fn holds_all(&self, call: &ExpertCall) -> bool {
        let stage = self.plan.stages.iter().find(|stage| stage.blocks.contains(call.block));
        let Some(remote) = stage.and_then(|stage| stage.remote_experts(call.block)) else { return false };
        let is_mine = |holders: &Vec<ExpertHolder>| holders.contains(&ExpertHolder::Peer(self.me));
        call.rows.iter().flatten().all(|expert| remote.holders.get(usize::from(expert.0)).is_some_and(is_mine))
    }

    /// A stage elsewhere says what it will probably call. It counts only for experts of its own that lie in slots here.
    pub fn expert_hint(&mut self, caller: PeerId, hint: &ExpertHint, cx: &mut EventContext) {
        if self.plan.holder_pool(self.me).is_none() || hint.experts.len() > limits::MAX_HINTS {
            return;
        }
        let is_mine = |(block, expert): &(BlockIndex, ExpertId)| {
            let stage = self.plan.stages.iter().find(|stage| stage.peer == caller && stage.blocks.contains(*block));
            let holders = stage.and_then(|stage| stage.remote_experts(*block)?.holders.get(usize::from(expert.0)));
            holders.is_some_and(|holders| holders.contains(&ExpertHolder::Peer(self.me)))
        };
        let experts: Vec<(BlockIndex, ExpertId)> = hint.experts.iter().copied().filter(is_mine).collect();
        cx.out.act(Action::LoadAhead(experts));
    }

    /// A stage elsewhere got its answer from another holder.
    pub fn expert_cancel(&mut self, caller: PeerId, cancel: ExpertCancel, cx: &mut EventContext) {
        let is_meant = |purpose: &Purpose| matches!(purpose, Purpose::Call(known) if (known.caller, known.call) == (caller, cancel.call));
        self.cancel(is_meant, cx);
    }

    /// Drops the engine's work for this purpose. A result that comes nevertheless is nobody's.
    fn cancel(&mut self, is_meant: impl Fn(&Purpose) -> bool, cx: &mut EventContext) {
        let meant = self.tickets.iter().filter(|(_, purpose)| is_meant(purpose)).map(|(ticket, _)| *ticket);
        for ticket in meant.collect::<Vec<Ticket>>() {
            self.tickets.remove(&ticket);
            cx.out.act(Action::Cancel(ticket));
        }
    }

    /// The plan ends here: whoever waits for experts can ask somebody else at once.
    pub fn end_calls(&self, cx: &mut EventContext) {
        for purpose in self.tickets.values() {
            if let Purpose::Call(call) = purpose {
                self.answer_call(*call, Err(ExpertFailure::NoPlan), 0.0, cx);
            }
        }
    }

    /// Our experts' answer to a stage elsewhere.
    pub(super) fn call_computed(&self, call: ReceivedCall, outcome: Outcome, millis: f64, cx: &mut EventContext) {
        let answer = match outcome {
            Outcome::ExpertOutputs(outputs) => Ok(outputs),
            Outcome::DeviceLost => Err(ExpertFailure::DeviceLost),
            Outcome::Missing { .. } => Err(ExpertFailure::NotHere),
            // Its part changes.
            Outcome::Cancelled => Err(ExpertFailure::NoPlan),
            _ => Err(ExpertFailure::Failed),
        };
        self.answer_call(call, answer, millis, cx);
    }

    fn answer_call(
        &self,
        to: ReceivedCall,
        answer: Result<Vec<f32>, ExpertFailure>,
        millis: f64,
        cx: &mut EventContext,
    ) {
        let ReceivedCall { caller, call, wire } = to;
        let (outputs, failed) = answer.map_or_else(|failure| (Vec::new(), Some(failure)), |outputs| (outputs, None));
        let result = ExpertResult { epoch: self.epoch(), call, millis, failed, wire, outputs };
        cx.out.send(caller, Frame::ExpertResult(result));
    }
}

/// The answer to a call for a plan that does not run here.
pub(crate) fn no_plan(call: &ExpertCall) -> Frame {
    let (epoch, call, wire, failed) = (call.epoch, call.call, call.wire, Some(ExpertFailure::NoPlan));
    Frame::ExpertResult(ExpertResult { epoch, call, millis: 0.0, failed, wire, outputs: Vec::new() })
}

/// The weights of a call that asks for sums.
fn sums_by(weights: Vec<Vec<f32>>) -> Option<Vec<Vec<f32>>> {
    (!weights.is_empty()).then_some(weights)
}

fn is_finite(values: &[f32]) -> bool {
    values.iter().all(|value| value.is_finite())
}
