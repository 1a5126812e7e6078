//! Devices that stand still, fail or compute wrongly: the others take their parts, and the answers go on.

use potluck_plan::{ConversationId, Millis, PeerId, Plan};
use potluck_protocol::{StageFault, StageFaultKind};

use super::Coordinator;
use crate::Severity;
use crate::members::Members;
use crate::outbox::Outbox;

impl Coordinator {
    /// Gives the parts of peers that stand still to others. A peer that loads may be silent for longer: it is busy.
    pub fn give_up_frozen(&mut self, members: &mut Members, now: Millis, out: &mut Outbox) {
        for peer in self.planning.active().map(Plan::peers).unwrap_or_default() {
            let loads =
                self.planning.awaits(peer) || members.get(peer).is_some_and(|member| member.status.loading.is_some());
            if !loads && members.freeze(peer) {
                let name = members.name(peer);
                self.lost(peer, &format!("{name} does not answer."), members, now, out);
            }
        }
    }

    /// A peer that stood still is heard again: it may be given work.
    pub fn thawed(&mut self, peer: PeerId, members: &mut Members, now: Millis, out: &mut Outbox) {
        self.back(peer, now, out);
        self.replan(members, now, out);
    }

    /// A stage cannot go on.
    pub fn fault(&mut self, from: PeerId, fault: StageFault, members: &mut Members, now: Millis, out: &mut Outbox) {
        if let Some(handover) = self.handover.as_mut().filter(|handover| handover.epoch == fault.epoch) {
            match fault.kind {
                StageFaultKind::Gap(position) => handover.rewind(fault.conversation, position.0 as usize),
                StageFaultKind::BadResult(peer) => {
                    self.planning.give_up_inactive(peer, members, now, out);
                    self.distrust(peer, members, now, out);
                }
                _ => self.planning.give_up_inactive(from, members, now, out),
            }
            self.after_answer(members, now, out);
            return;
        }
        if self.planning.active().is_none_or(|plan| plan.epoch != fault.epoch || !plan.peers().contains(&from)) {
            return;
        }
        let name = members.name(from);
        match fault.kind {
            // Several chunks behind one gap are told of one by one; what was sent again since tells of its own.
            StageFaultKind::Gap(_) if !self.answers.awaits(fault.conversation, fault.pass) => {}
            StageFaultKind::Gap(position) => {
                self.answers.rewind(fault.conversation, position.0 as usize);
                self.continue_answers(now, out);
            }
            StageFaultKind::ExpertsUnreachable(block) => {
                let reason = format!("Nobody answers for the experts of block {}. The room makes a new plan.", block.0);
                self.planning.drop_active();
                self.recover(None, &reason, members, now, out);
            }
            StageFaultKind::DeviceLost => {
                self.planning.lose(from, out);
                let reason = format!("{name} lost its GPU. What it held is loaded again and the answer goes on.");
                self.recover(Some(from), &reason, members, now, out);
            }
            StageFaultKind::BadResult(peer) => self.blame(peer, fault.conversation, members, now, out),
            StageFaultKind::Failed(sentence) => {
                let sentence = format!("{name} could not compute its part: {sentence}");
                self.answers.fail(fault.conversation, &sentence, now, out);
                self.after_answer(members, now, out);
            }
        }
    }

    /// What a peer computed cannot be used. The others take its part; where it is the host's own device, the answer ends.
    pub(super) fn blame(
        &mut self,
        peer: PeerId,
        conversation: ConversationId,
        members: &mut Members,
        now: Millis,
        out: &mut Outbox,
    ) {
        if self.planning.active().is_none_or(|plan| !plan.peers().contains(&peer)) {
            return;
        }
        let sentence = self.distrust(peer, members, now, out);
        if peer == out.me {
            self.answers.fail(conversation, &sentence, now, out);
        }
        if self.planning.lose(peer, out) {
            self.recover(Some(peer), &format!("{sentence} The answer goes on without it."), members, now, out);
        } else {
            self.after_answer(members, now, out);
        }
    }

    /// A peer whose results are wrong gets no work for a while, and the host is told. Returns the sentence.
    fn distrust(&self, peer: PeerId, members: &mut Members, now: Millis, out: &mut Outbox) -> String {
        let sentence = format!("{} sent numbers that cannot be right.", members.name(peer));
        if let Some(member) = members.known.get_mut(&peer) {
            member.distrust(now);
        }
        out.notice(Severity::Warning, format!("{sentence} It gets no work for a while."));
        sentence
    }
}
