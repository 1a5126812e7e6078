//! Devices that freeze, fail or compute wrongly: others take their parts, and the answers go on.

use std::collections::BTreeSet;

use potluck_plan::{BlockIndex, ConversationId, ExpertHolder, Millis, PeerId, Plan, WireType};
use potluck_protocol::{StageFault, StageFaultKind};

use super::Coordinator;
use crate::Severity;
use crate::event_context::EventContext;
use crate::members::Member;

/// An answer whose experts nobody computes fails after so many new plans that have brought it no further.
const MAX_RECOVERIES_IN_VAIN: u32 = 3;

/// What is wrong with what a device sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wrong {
    /// The numbers.
    Numbers,
    /// Their format.
    WireType { asked: WireType, answered: WireType },
}

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
            let is_stale = fault.pass.is_some_and(|pass| !handover.awaits(fault.conversation, pass));
            match fault.kind {
                // Whatever it was for.
                StageFaultKind::DeviceLost => self.planning.plans.give_up_inactive(from, cx),
                // The replay has begun again in the meantime.
                _ if is_stale => return,
                StageFaultKind::Gap(position) => handover.rewind(fault.conversation, position.0 as usize),
                StageFaultKind::BadResult(peer) | StageFaultKind::OtherWireType { holder: peer, .. } => {
                    self.planning.plans.give_up_inactive(peer, cx);
                    self.distrust(peer, self.wrong(&fault), cx);
                }
                StageFaultKind::ExpertsUnreachable { block, ref failed } => {
                    self.suspend_holders(&fault, block, failed, Member::fail, cx);
                    self.planning.plans.abandon(cx);
                }
                StageFaultKind::Failed(_) => self.planning.plans.give_up_inactive(from, cx),
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
            // Found by a spot check, of whichever answer, or in a chunk that no honest stage sends.
            StageFaultKind::BadResult(peer) | StageFaultKind::OtherWireType { holder: peer, .. }
                if fault.pass.is_none() =>
            {
                self.blame(peer, self.wrong(&fault), fault.conversation, cx);
            }
            // Every chunk after a gap is reported on its own; those sent before the rewind are stale.
            _ if !self.answers.awaits(fault.conversation, fault.pass) => {}
            StageFaultKind::Gap(position) => {
                self.answers.rewind(fault.conversation, position.0 as usize);
                self.continue_answers(cx);
            }
            StageFaultKind::ExpertsUnreachable { block, ref failed } => {
                self.experts_unreachable(&fault, block, failed, cx);
            }
            StageFaultKind::BadResult(peer) | StageFaultKind::OtherWireType { holder: peer, .. } => {
                self.blame(peer, self.wrong(&fault), fault.conversation, cx);
            }
            StageFaultKind::Failed(sentence) => {
                let sentence = format!("{name} could not compute its part: {sentence}");
                self.answers.fail(fault.conversation, &sentence, cx);
                self.after_answer(cx);
            }
        }
    }

    /// Nobody computes the experts of a block. The answer goes on with a new plan. If it has come no further since the last one,
    /// that is without the devices that failed; in the end the answer fails.
    fn experts_unreachable(&mut self, fault: &StageFault, block: BlockIndex, failed: &[PeerId], cx: &mut EventContext) {
        let recoveries = self.answers.recoveries_in_vain(fault.conversation);
        if recoveries > 0 {
            self.suspend_holders(fault, block, failed, Member::fail_long, cx);
        }
        if recoveries >= MAX_RECOVERIES_IN_VAIN {
            let failed = self.failed_holders(fault, block, failed);
            let names: Vec<String> = failed.into_iter().take(3).map(|peer| cx.members.name(peer)).collect();
            let who = if names.is_empty() {
                "No device has computed".to_owned()
            } else {
                format!("{} could not compute", names.join(", "))
            };
            let sentence = format!("{who} the experts of block {}. Ask again.", block.0);
            self.answers.fail(fault.conversation, &sentence, cx);
            return self.after_answer(cx);
        }
        self.answers.recover_for_experts();
        let reason = format!("No device answers for the experts of block {}. The room makes a new plan.", block.0);
        self.planning.plans.drop_active();
        self.recover(None, &reason, cx);
    }

    /// Gives holders that could not compute their experts no work for a while, the host excepted.
    fn suspend_holders(
        &self,
        fault: &StageFault,
        block: BlockIndex,
        failed: &[PeerId],
        suspend: fn(&mut Member, Millis),
        cx: &mut EventContext,
    ) {
        let failed = self.failed_holders(fault, block, failed);
        for peer in failed.into_iter().filter(|peer| *peer != cx.members.me) {
            if let Some(member) = cx.members.known.get_mut(&peer) {
                suspend(member, cx.now);
            }
        }
    }

    /// Those that a stage names, as far as the plan has them hold experts of that block for it.
    fn failed_holders(&self, fault: &StageFault, block: BlockIndex, failed: &[PeerId]) -> BTreeSet<PeerId> {
        let stage = self.plan(fault.epoch).and_then(|plan| plan.stage(fault.stage));
        let Some(remote) = stage.and_then(|(_, stage)| stage.remote_experts(block)) else { return BTreeSet::new() };
        let holders = remote.holders.iter().flatten().filter_map(ExpertHolder::peer);
        holders.filter(|holder| failed.contains(holder)).collect()
    }

    /// What is wrong with what a stage complains of.
    fn wrong(&self, fault: &StageFault) -> Wrong {
        match (&fault.kind, self.plan(fault.epoch)) {
            (StageFaultKind::OtherWireType { answered, .. }, Some(plan)) => {
                Wrong::WireType { asked: plan.expert_wire, answered: *answered }
            }
            _ => Wrong::Numbers,
        }
    }

    /// A stage accuses the host's own device, which looked at its rows before it sent them and answers as it is asked, or somebody
    /// of having answered as asked.
    fn is_false(&self, from: PeerId, fault: &StageFault, me: PeerId) -> bool {
        if let StageFaultKind::OtherWireType { holder, answered } = fault.kind {
            let is_as_asked = self.plan(fault.epoch).is_some_and(|plan| plan.expert_wire == answered);
            return is_as_asked || (from != me && holder == me);
        }
        let before = |plan: &Plan| {
            let (index, _) = plan.stage(fault.stage)?;
            Some(plan.stages.get(index.checked_sub(1)?)?.peer)
        };
        let accuses_host = from != me && fault.kind == StageFaultKind::BadResult(me);
        accuses_host && self.plan(fault.epoch).and_then(before) == Some(me)
    }

    /// What a peer computed is unusable. Others take its part; if it is the host's own device, the answer ends.
    pub(super) fn blame(&mut self, peer: PeerId, wrong: Wrong, conversation: ConversationId, cx: &mut EventContext) {
        if self.planning.plans.active().is_none_or(|plan| !plan.peers().contains(&peer)) {
            return;
        }
        let sentence = self.distrust(peer, wrong, cx);
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
    pub(super) fn distrust(&self, peer: PeerId, wrong: Wrong, cx: &mut EventContext) -> String {
        let name = cx.members.name(peer);
        let sentence = match wrong {
            Wrong::Numbers => format!("{name} sent numbers that cannot be right."),
            Wrong::WireType { asked, answered } => format!("{name} sent numbers as {answered} when asked for {asked}."),
        };
        cx.members.distrust(peer, cx.now);
        cx.out.notice(Severity::Warning, format!("{sentence} It gets no work for a while."));
        sentence
    }
}

#[cfg(test)]
mod tests {
    use potluck_plan::{PlanEpoch, StageId};
    use potluck_planner::see_all;
    use potluck_protocol::PassId;

    use super::*;
    use crate::coordinator::handover::Handover;
    use crate::experts::Holders;
    use crate::members::Members;
    use crate::outbox::Outbox;
    use crate::{HintOptions, examples};

    const ME: PeerId = PeerId([1; 16]);
    const STAGE: PeerId = PeerId([2; 16]);
    const NEXT: PlanEpoch = PlanEpoch(2);

    /// What a stage of the next plan says, which is being prepared. True if the stage is given no work for a while.
    fn suspends(pass: Option<PassId>, kind: &StageFaultKind) -> bool {
        let (members, holders, hints) = (Members::new(ME), Holders::default(), HintOptions::default());
        let kv_cache = Default::default();
        let (biases, out) = (Default::default(), Outbox::new(ME));
        let mut cx = EventContext { now: Millis(0.0), members, holders, hints, kv_cache, biases, out };
        cx.members.enter(STAGE, &examples::hello());
        let mut coordinator = Coordinator::new(examples::command(), see_all, &mut cx);
        coordinator.handover = Some(Handover::new(NEXT));
        let (stage, conversation) = (StageId(0), ConversationId(1));
        let fault = StageFault { epoch: NEXT, stage, conversation, pass, kind: kind.clone() };
        coordinator.fault(STAGE, fault, &mut cx);
        cx.members.known[&STAGE].has_failed()
    }

    /// While logs are replayed on the next plan, the stage that finds out is not the one that failed.
    #[test]
    fn a_stage_is_not_suspended_for_what_holders_of_the_next_plan_cannot_do() {
        let faults = [
            (StageFaultKind::ExpertsUnreachable { block: BlockIndex(3), failed: Vec::new() }, false),
            (StageFaultKind::Failed("a kernel is missing".into()), true),
        ];
        for (kind, is_suspended) in faults {
            assert_eq!(suspends(None, &kind), is_suspended, "{kind:?}");
        }
    }

    #[test]
    fn an_answer_in_another_number_format_is_told_with_both_and_a_false_report_falls_back_on_its_stage() {
        let (members, holders, hints) = (Members::new(ME), Holders::default(), HintOptions::default());
        let kv_cache = Default::default();
        let (biases, out) = (Default::default(), Outbox::new(ME));
        let mut cx = EventContext { now: Millis(0.0), members, holders, hints, kv_cache, biases, out };
        cx.members.enter(STAGE, &examples::hello());
        let coordinator = Coordinator::new(examples::command(), see_all, &mut cx);
        let wrong = Wrong::WireType { asked: WireType::F16, answered: WireType::F32 };
        let sentence = coordinator.distrust(STAGE, wrong, &mut cx);
        assert!(sentence.ends_with("sent numbers as f32 when asked for f16."), "{sentence}");
        assert!(cx.members.known[&STAGE].has_failed(), "it gets no work for a while");
        let accuses = |holder| {
            let kind = StageFaultKind::OtherWireType { holder, answered: WireType::F32 };
            StageFault { epoch: NEXT, stage: StageId(0), conversation: ConversationId(0), pass: None, kind }
        };
        assert!(coordinator.is_false(STAGE, &accuses(ME), ME), "the host answers as it is asked");
        assert!(!coordinator.is_false(STAGE, &accuses(PeerId([3; 16])), ME));
    }

    #[test]
    fn a_chunk_that_no_replay_waits_for_suspends_nobody() {
        for (kind, is_suspended) in
            [(StageFaultKind::Failed("a gap".into()), false), (StageFaultKind::DeviceLost, true)]
        {
            assert_eq!(suspends(Some(PassId(1)), &kind), is_suspended, "{kind:?}");
        }
    }
}
