//! Experts on other peers: calls out, sums back, other holders where one does not answer.

use potluck_plan::{ExpertHolder, Input, Outcome, PeerId, RemoteExperts, Task, WireType};
use potluck_protocol::{ExpertCall, ExpertSum, Frame, StageFaultKind};

use super::{Executor, Purpose, Waiting, are_numbers, is_here};
use crate::event_context::EventContext;
use crate::gather::{HOLDER_TIMEOUT_MILLIS, Part};
use crate::limits;

impl Executor {
    pub(super) fn gather(&mut self, mut waiting: Waiting, cx: &mut EventContext) {
        let Some(remote) = self.remote(&waiting) else { return };
        if waiting.gather.split(&remote, cx.now, is_here(&cx.members)).is_err() {
            let block = waiting.gather.block;
            self.fail_job(&waiting.job, StageFaultKind::ExpertsUnreachable(block), cx);
            return;
        }
        let id = self.next_ticket;
        self.next_ticket += 1;
        let parts = (0..waiting.gather.parts.len()).collect();
        self.waiting.insert(id, waiting);
        self.ask(id, parts, cx);
    }

    fn remote(&self, waiting: &Waiting) -> Option<RemoteExperts> {
        let (_, stage) = self.plan.stage(waiting.job.forward.stage)?;
        stage.remote_experts(waiting.gather.block).cloned()
    }

    /// Sends the calls, then runs the stage's own share meanwhile.
    fn ask(&mut self, id: u64, parts: Vec<usize>, cx: &mut EventContext) {
        let Some(waiting) = self.waiting.get(&id) else { return };
        let (block, class) = (waiting.gather.block, waiting.gather.class);
        let (epoch, wire) = (self.plan.epoch, self.plan.wire);
        let mut own = Vec::new();
        for part in parts {
            let (routes, normed) = (waiting.gather.parts[part].routes.clone(), waiting.gather.normed.clone());
            match waiting.gather.parts[part].holder {
                ExpertHolder::Own => own.push(Task::Experts { block, class, normed, routes }),
                ExpertHolder::Peer(peer) => {
                    cx.out.send(
                        peer,
                        Frame::ExpertCall(ExpertCall { epoch, call: id, block, class, routes, wire, normed }),
                    );
                }
            }
        }
        for task in own {
            self.compute(task, Purpose::OwnExperts { gather: id }, cx);
        }
    }

    /// A stage elsewhere needs experts of ours.
    pub fn expert_call(&mut self, caller: PeerId, call: ExpertCall, cx: &mut EventContext) {
        let is_its = |purpose: &&Purpose| matches!(purpose, Purpose::Call { caller: known, .. } if *known == caller);
        let open = self.tickets.values().filter(is_its).count();
        let sentence = match limits::is_call(&call, self.width) {
            false => Some("the call's numbers cannot be right"),
            true if open >= limits::MAX_CALLS => Some("too many calls at once"),
            true => None,
        };
        let ExpertCall { call, block, class, routes, wire, normed, .. } = call;
        if let Some(sentence) = sentence {
            return self.answer_call(caller, call, wire, Outcome::Failed(sentence.to_owned()), cx);
        }
        self.compute(Task::Experts { block, class, normed, routes }, Purpose::Call { caller, call, wire }, cx);
    }

    /// Our experts' answer to a stage elsewhere.
    pub(super) fn answer_call(
        &self,
        caller: PeerId,
        call: u64,
        wire: WireType,
        outcome: Outcome,
        cx: &mut EventContext,
    ) {
        let (sum, failed) = match outcome {
            Outcome::Sum(sum) => (sum, None),
            Outcome::Failed(sentence) => (Vec::new(), Some(sentence)),
            _ => (Vec::new(), Some("the device's GPU stopped".to_owned())),
        };
        cx.out.send(caller, Frame::ExpertSum(ExpertSum { epoch: self.epoch(), call, failed, wire, sum }));
    }

    /// This holder was asked, and has not answered.
    pub fn awaits_sum(&self, call: u64, holder: PeerId) -> bool {
        let is_awaited = |part: &Part| part.holder == ExpertHolder::Peer(holder) && part.sum.is_none();
        self.waiting.get(&call).is_some_and(|waiting| waiting.gather.parts.iter().any(is_awaited))
    }

    /// A holder answers. Late and duplicate answers find nothing waiting.
    pub fn expert_sum(&mut self, from: PeerId, sum: ExpertSum, cx: &mut EventContext) {
        match sum.failed {
            None if self.is_bad(sum.call, &sum.sum) => {
                if let Some(waiting) = self.waiting.remove(&sum.call) {
                    self.fail_job(&waiting.job, StageFaultKind::BadResult(from), cx);
                }
            }
            None => self.part_done(sum.call, ExpertHolder::Peer(from), sum.sum, cx),
            Some(_) => self.reassign(sum.call, |part, _| part.holder == ExpertHolder::Peer(from), cx),
        }
    }

    /// True if a sum cannot be added to what waits for it.
    pub(super) fn is_bad(&self, id: u64, sum: &[f32]) -> bool {
        self.waiting.get(&id).is_some_and(|waiting| !are_numbers(sum, waiting.gather.normed.len()))
    }

    pub(super) fn part_done(&mut self, id: u64, holder: ExpertHolder, sum: Vec<f32>, cx: &mut EventContext) {
        let Some(waiting) = self.waiting.get_mut(&id) else { return };
        let part = waiting.gather.parts.iter_mut().find(|part| part.holder == holder && part.sum.is_none());
        let Some(part) = part else { return };
        part.sum = Some(sum);
        if !waiting.gather.is_complete() {
            return;
        }
        let Some(Waiting { mut job, gather }) = self.waiting.remove(&id) else { return };
        job.cursor = gather.block.0 + 1;
        match gather.combine() {
            Some(hidden) => self.queue(job.forward.stage).go_on(job, Input::Hidden(hidden)),
            None => self.fail_job(&job, StageFaultKind::Failed("the experts' sums do not fit".to_owned()), cx),
        }
    }

    pub(super) fn fail_gather(&mut self, id: u64, outcome: &Outcome, cx: &mut EventContext) {
        let Some(waiting) = self.waiting.remove(&id) else { return };
        let kind = match outcome {
            Outcome::DeviceLost => StageFaultKind::DeviceLost,
            Outcome::Failed(sentence) => StageFaultKind::Failed(sentence.clone()),
            Outcome::Sum(_) => StageFaultKind::BadResult(self.me),
            _ => StageFaultKind::Failed("the work was cancelled".to_owned()),
        };
        self.fail_job(&waiting.job, kind, cx);
    }

    /// Asks the next holder where one has failed, is gone or takes too long.
    pub fn tick(&mut self, cx: &mut EventContext) {
        let overdue = |part: &Part, cx: &EventContext| {
            !is_here(&cx.members)(part.holder) || cx.now.0 - part.asked.0 > HOLDER_TIMEOUT_MILLIS
        };
        let is_late =
            |waiting: &Waiting| waiting.gather.parts.iter().any(|part| part.sum.is_none() && overdue(part, cx));
        let late: Vec<u64> = self.waiting.iter().filter(|(_, waiting)| is_late(waiting)).map(|(id, _)| *id).collect();
        for id in late {
            self.reassign(id, overdue, cx);
        }
    }

    /// Gives the shares of all holders that are `lost` and have not answered to the next ones.
    fn reassign(&mut self, id: u64, lost: impl Fn(&Part, &EventContext) -> bool, cx: &mut EventContext) {
        let Some(remote) = self.waiting.get(&id).and_then(|waiting| self.remote(waiting)) else { return };
        while let Some(waiting) = self.waiting.get_mut(&id) {
            let lost = |part: &Part| part.sum.is_none() && lost(part, cx);
            let Some(part) = waiting.gather.parts.iter().position(lost) else { return };
            match waiting.gather.reassign(part, &remote, cx.now, is_here(&cx.members)) {
                Ok(parts) => self.ask(id, parts, cx),
                Err(_) => {
                    let block = waiting.gather.block;
                    if let Some(waiting) = self.waiting.remove(&id) {
                        self.fail_job(&waiting.job, StageFaultKind::ExpertsUnreachable(block), cx);
                    }
                }
            }
        }
    }
}
