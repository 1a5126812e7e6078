//! Devices that freeze, fail or compute wrongly: others take their parts, and the answers go on.

use potluck_plan::{ConversationId, PeerId, Plan};
use potluck_protocol::{StageFault, StageFaultKind};

use super::Coordinator;
use crate::Severity;
use crate::event_context::EventContext;

impl Coordinator {
    /// Gives the parts of frozen peers to others. A peer that loads is busy and may be silent for longer.
    pub fn give_up_frozen(&mut self, cx: &mut EventContext) {
        for peer in self.planning.plans.active().map(Plan::peers).unwrap_or_default() {
            let loads = self.planning.plans.awaits(peer)
                || cx.members.get(peer).is_some_and(|member| member.status.loading.is_some());
            if !loads && cx.members.freeze(peer) {
                let name = cx.members.name(peer);
                self.lost(peer, &format!("{name} does not answer."), cx);
            }
        }
    }

    /// A frozen peer is heard again: it may be given work.
    pub fn thawed(&mut self, peer: PeerId, cx: &mut EventContext) {
        self.back(peer, cx);
        self.replan(cx);
    }

    /// A stage cannot go on.
    pub fn fault(&mut self, from: PeerId, mut fault: StageFault, cx: &mut EventContext) {
        if self.is_false(from, &fault, cx.members.me) {
            fault.kind = StageFaultKind::BadResult(from);
        }
        if let Some(handover) = self.handover.as_mut().filter(|handover| handover.epoch == fault.epoch) {
            match fault.kind {
                StageFaultKind::Gap(position) => handover.rewind(fault.conversation, position.0 as usize),
                StageFaultKind::BadResult(peer) => {
                    self.planning.plans.give_up_inactive(peer, cx);
                    self.distrust(peer, cx);
                }
                _ => self.planning.plans.give_up_inactive(from, cx),
            }
            self.after_answer(cx);
            return;
        }
        if self.planning.plans.active().is_none_or(|plan| plan.epoch != fault.epoch || !plan.peers().contains(&from)) {
            return;
        }
        let name = cx.members.name(from);
        match fault.kind {
            StageFaultKind::DeviceLost => {
                if self.planning.lose(from, cx) {
                    let reason = format!("{name} lost its GPU. What it held is loaded again and the answer goes on.");
                    self.recover(Some(from), &reason, cx);
                }
            }
            // Found by a spot check, of whichever answer.
            StageFaultKind::BadResult(peer) if fault.pass.is_none() => self.blame(peer, fault.conversation, cx),
            // Every chunk after a gap is reported on its own; those sent before the rewind are stale.
            _ if !self.answers.awaits(fault.conversation, fault.pass) => {}
            StageFaultKind::Gap(position) => {
                self.answers.rewind(fault.conversation, position.0 as usize);
                self.continue_answers(cx);
            }
            StageFaultKind::ExpertsUnreachable(block) => {
                let reason =
                    format!("No device answers for the experts of block {}. The room makes a new plan.", block.0);
                self.planning.plans.drop_active();
                self.recover(None, &reason, cx);
            }
            StageFaultKind::BadResult(peer) => self.blame(peer, fault.conversation, cx),
            StageFaultKind::Failed(sentence) => {
                let sentence = format!("{name} could not compute its part: {sentence}");
                self.answers.fail(fault.conversation, &sentence, cx);
                self.after_answer(cx);
            }
        }
    }

    /// A stage accuses the host's own device, which looked at its rows before it sent them.
    fn is_false(&self, from: PeerId, fault: &StageFault, me: PeerId) -> bool {
        let before = |plan: &Plan| {
            let (index, _) = plan.stage(fault.stage)?;
            Some(plan.stages.get(index.checked_sub(1)?)?.peer)
        };
        let accuses_host = from != me && fault.kind == StageFaultKind::BadResult(me);
        accuses_host && self.plan(fault.epoch).and_then(before) == Some(me)
    }

    /// What a peer computed is unusable. Others take its part; if it is the host's own device, the answer ends.
    pub(super) fn blame(&mut self, peer: PeerId, conversation: ConversationId, cx: &mut EventContext) {
        if self.planning.plans.active().is_none_or(|plan| !plan.peers().contains(&peer)) {
            return;
        }
        let sentence = self.distrust(peer, cx);
        if peer == cx.members.me {
            self.answers.fail(conversation, &sentence, cx);
        }
        if self.planning.lose(peer, cx) {
            self.recover(Some(peer), &format!("{sentence} The answer goes on without it."), cx);
        } else {
            self.after_answer(cx);
        }
    }

    /// Gives a peer with wrong results no work for a while, and notifies the host. Returns the sentence.
    fn distrust(&self, peer: PeerId, cx: &mut EventContext) -> String {
        let sentence = format!("{} sent numbers that cannot be right.", cx.members.name(peer));
        cx.members.distrust(peer, cx.now);
        cx.out.notice(Severity::Warning, format!("{sentence} It gets no work for a while."));
        sentence
    }
}
