//! What devices report of a plan, and what follows: it is committed, replaced or recovered from.

use potluck_plan::{ModelId, PeerId, PlanEpoch};
use potluck_protocol::{CalibrationRuns, LoadFault};

use super::Coordinator;
use super::handover::Handover;
use super::planning::PlanRequest;
use crate::Severity;
use crate::event_context::EventContext;
use crate::kv_pages;
use crate::limits;

impl Coordinator {
    /// A device timed two ranges of the model, or could not.
    pub fn calibrated(
        &mut self,
        peer: PeerId,
        model: ModelId,
        answer: Result<CalibrationRuns, String>,
        cx: &mut EventContext,
    ) {
        let answer = answer.and_then(|runs| {
            if limits::are_runs(&runs) { Ok(runs) } else { Err("Its times cannot be right.".to_owned()) }
        });
        let is_hosted = self.model.as_ref().is_some_and(|hosted| hosted.card.id == model);
        if is_hosted && self.planning.calibrated(peer, answer) {
            self.replan(cx);
        }
    }

    pub fn prepared(&mut self, peer: PeerId, epoch: PlanEpoch, cx: &mut EventContext) {
        self.planning.prepared(peer, epoch);
        self.planning.newcomer_prepared(peer, epoch, cx);
        self.try_commit(cx);
    }

    pub fn prepare_failed(&mut self, peer: PeerId, epoch: PlanEpoch, fault: LoadFault, cx: &mut EventContext) {
        let sentence = format!("{} cannot take its part: {}", cx.members.name(peer), fault.sentence());
        if self.planning.newcomer_failed(peer, epoch, cx) {
            return;
        }
        if self.planning.plans.has_part(peer, epoch) && self.planning.lose(peer, cx) {
            let reason = format!("{sentence}. The answer goes on once it is loaded again.");
            self.recover(Some(peer), &reason, cx);
        }
        if self.planning.standbys.failed(peer, epoch, &fault, cx.now) {
            return;
        }
        if self.planning.plans.prepare_failed(peer, epoch, fault, cx) {
            if peer != cx.members.me {
                cx.out.notice(Severity::Warning, sentence);
            }
            self.replan(cx);
        }
    }

    pub fn committed(&mut self, peer: PeerId, epoch: PlanEpoch, cx: &mut EventContext) {
        self.planning.plans.committed(peer, epoch);
        self.planning.newcomer_committed(peer, epoch, cx);
        self.continue_answers(cx);
    }

    /// The active plan is gone. A plan that is ready beside it takes over with whatever KV cache was rebuilt there;
    /// else the standby plan for the loss of this peer; else a new one is made.
    pub(super) fn recover(&mut self, lost: Option<PeerId>, reason: &str, cx: &mut EventContext) {
        self.answers.send_recovering(reason, cx);
        let has_other = self.planning.plans.prepared_plan().is_some();
        if has_other {
            self.try_commit(cx);
        } else {
            self.answers.kv_cache_lost();
            self.keep_handover(None);
        }
        let usage = self.usage();
        let Some(model) = &self.model else { return };
        let request = PlanRequest { model, command: &self.command, answering: self.answers.is_answering(), usage };
        let taken_over = !has_other && lost.is_some_and(|peer| self.planning.take_over(peer, request, cx));
        if let Some(peer) = lost {
            self.planning.standbys.forget(peer);
        }
        if !taken_over {
            self.replan(cx);
        }
    }

    /// Commits the prepared plan, once running answers can go on there.
    pub(super) fn try_commit(&mut self, cx: &mut EventContext) {
        let epoch = self.planning.plans.prepared_plan().map(|plan| plan.epoch);
        self.keep_handover(epoch.filter(|_| self.answers.is_answering()));
        let Some(plan) = self.planning.plans.prepared_plan() else { return };
        if self.planning.plans.active().is_some() && self.answers.is_answering() {
            let handover = self.handover.get_or_insert_with(|| Handover::new(plan.epoch));
            if !handover.is_caught_up(&self.answers) {
                let total = kv_pages::pages(self.command.context as usize);
                handover.advance(plan, &mut self.answers, total, cx);
                return;
            }
        }
        let handover = self.handover.take();
        self.planning.commit(handover.is_some(), self.answers.tokens, cx);
        match handover {
            Some(handover) => handover.finish(&mut self.answers),
            None => self.answers.kv_cache_lost(),
        }
    }

    /// Drops a handover that leads to another plan than this one.
    fn keep_handover(&mut self, epoch: Option<PlanEpoch>) {
        if self.handover.take_if(|handover| Some(handover.epoch) != epoch).is_some() {
            self.answers.reserve_nothing();
        }
    }
}
