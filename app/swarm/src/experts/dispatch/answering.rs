//! What to do with answers and refusals.

use potluck_plan::{ExpertHolder, KernelClass, PeerId, StageId, WireType};
use potluck_protocol::ExpertFailure;

use super::call::Call;
use super::spot_checks::effort;
use super::{Dispatch, DispatchContext, DispatchStep};
use crate::experts::checks::Check;
use crate::experts::gather::Gather;
use crate::experts::superseded::SupersededCall;
use crate::experts::waits::Passed;

/// A holder's answer.
#[derive(Clone, Copy)]
struct Answer<'a> {
    outputs: &'a [f32],
    /// Milliseconds of its engine.
    engine: f64,
}

impl Dispatch {
    /// A holder answers; `engine`: the milliseconds its engine took. Answers that nobody waits for change nothing.
    pub fn answered(
        &mut self,
        call: u64,
        from: ExpertHolder,
        outputs: &[f32],
        engine: f64,
        cx: &mut DispatchContext<'_>,
    ) -> Vec<DispatchStep> {
        let mut steps = Vec::new();
        if let Some(check) = self.checks.take(call, from) {
            self.judge(check, outputs, cx, &mut steps);
        } else if let Some(SupersededCall { holder, size, asked, .. }) = self.superseded.take(call, from) {
            cx.holders.answered_late(holder, size, cx.now.0 - asked.0);
        } else if let Some(open) = self.take(call, from) {
            // No engine can have worked for longer than it was waited for.
            let engine = engine.max(0.0).min(cx.now.0 - open.asked.0);
            let answer = Answer { outputs, engine };
            if self.gathers.get(&open.gather).is_some_and(|gather| gather.are_outputs(&open.pairs, open.asks, outputs))
            {
                self.use_outputs(&open, answer, cx);
                self.check_some(call, &open, outputs, cx, &mut steps);
                self.cancel_needless(open.gather, cx, &mut steps);
                self.finish(open.gather, engine, cx, &mut steps);
            } else {
                self.refuse_outputs(&open, cx, &mut steps);
            }
        }
        steps
    }

    /// A holder answers in another number format than it was asked in: its numbers are not used, whatever they are.
    pub fn answered_otherwise(
        &mut self,
        call: u64,
        from: PeerId,
        answered: WireType,
        cx: &mut DispatchContext<'_>,
    ) -> Vec<DispatchStep> {
        let holder = ExpertHolder::Peer(from);
        // First the holder, then what becomes of the block.
        let named =
            self.stage_of(call, holder).map(|stage| DispatchStep::OtherWireType { stage, holder: from, answered });
        let further = self.failed(call, holder, ExpertFailure::Failed, cx);
        named.into_iter().chain(further).collect()
    }

    /// The stage that waits for this holder's answer, or has it checked; none if nobody does any more.
    fn stage_of(&self, call: u64, holder: ExpertHolder) -> Option<StageId> {
        let open = self.calls.get(&call).filter(|open| open.holder == holder);
        let waits = open.and_then(|open| self.gathers.get(&open.gather)).map(|gather| gather.stage);
        waits.or_else(|| self.checks.stage_of(call, holder))
    }

    /// Others are asked for what cannot be right.
    fn refuse_outputs(&mut self, open: &Call, cx: &mut DispatchContext<'_>, steps: &mut Vec<DispatchStep>) {
        let Some(gather) = self.gathers.get_mut(&open.gather) else { return };
        gather.refuse(&open.pairs, open.holder);
        let left = self.ask_missing(open.gather, &open.pairs, cx, steps);
        let wrong = match open.holder {
            ExpertHolder::Peer(peer) => peer,
            ExpertHolder::Own => cx.members.me,
        };
        if !self.check_unasked(open.gather, &left, Some(wrong), cx, steps) {
            steps.push(DispatchStep::Wrong { gather: open.gather, holder: wrong });
        }
    }

    /// Takes the vectors that are missing, and notes what the holder has done.
    fn use_outputs(&mut self, open: &Call, Answer { outputs, engine }: Answer<'_>, cx: &mut DispatchContext<'_>) {
        let Some(gather) = self.gathers.get_mut(&open.gather) else { return };
        let was_first = gather.take(&open.pairs, open.asks, outputs) > 0;
        match open.holder {
            ExpertHolder::Own => gather.own_done = Some(cx.now),
            ExpertHolder::Peer(peer) => {
                gather.helpers.extend(was_first.then_some(peer));
                cx.holders.answered(peer, open.size, cx.now.0 - open.asked.0, engine);
                cx.holders.sent(peer, cx.plan.expert_wire.bytes(outputs.len() as u64));
                if was_first && open.copy > 0 {
                    cx.holders.hedge_won(peer);
                }
            }
        }
    }

    /// Has a share of all answers computed again.
    fn check_some(
        &mut self,
        call: u64,
        open: &Call,
        outputs: &[f32],
        cx: &DispatchContext<'_>,
        steps: &mut Vec<DispatchStep>,
    ) {
        let Some(gather) = self.gathers.get(&open.gather) else { return };
        if self.checks.wants((call, cx.members.checkers.secret), gather.secret(), effort(gather, &open.pairs, cx.plan))
        {
            let (stage, block, class) = (gather.stage, gather.block, gather.class);
            let share = gather.share(&open.pairs, open.asks);
            let (began, asked, answers) = (cx.now, open.holder, vec![(open.holder, outputs.to_vec())]);
            self.check(Check { stage, block, class, share, began, answers, asked }, cx, steps);
        }
    }

    /// Hands out the outputs once all are there. `engine`: the milliseconds that the last holder's engine took.
    fn finish(&mut self, id: u64, engine: f64, cx: &DispatchContext<'_>, steps: &mut Vec<DispatchStep>) {
        if !self.gathers.get(&id).is_some_and(Gather::is_complete) {
            return;
        }
        let Some(gather) = self.gathers.remove(&id) else { return };
        if gather.class == KernelClass::Decode {
            let (waited, bytes) = (gather.waited(cx.now), gather.bytes_a_token());
            self.waits.passed(gather.block, Passed { waited, engine, bytes });
            self.waits.gathered(gather.first_asked, cx.now.0 - gather.began.0);
            self.waits.note(&gather, engine, cx.now);
        }
        let helpers = gather.helpers.iter().copied().collect();
        steps.push(DispatchStep::Done { gather: id, outputs: gather.finish(), helpers });
    }

    /// A holder cannot answer.
    pub fn failed(
        &mut self,
        call: u64,
        from: ExpertHolder,
        failure: ExpertFailure,
        cx: &mut DispatchContext<'_>,
    ) -> Vec<DispatchStep> {
        let mut steps = Vec::new();
        if self.checks.take(call, from).is_some() {
            // Another answer will be checked.
            return steps;
        }
        if let Some(SupersededCall { holder, .. }) = self.superseded.take(call, from) {
            match failure {
                ExpertFailure::NoPlan => cx.holders.absent(holder),
                ExpertFailure::NotHere | ExpertFailure::Busy => cx.holders.refused(holder),
                _ => {
                    cx.holders.refused(holder);
                    cx.holders.unable(holder);
                }
            }
            return steps;
        }
        let Some(mut open) = self.take(call, from) else { return steps };
        let (id, pairs) = (open.gather, open.pairs.clone());
        if failure == ExpertFailure::Busy {
            open.set_aside(cx.now);
            self.calls.insert(call, open);
        } else if let Some(gather) = self.gathers.get_mut(&id) {
            gather.refuse(&pairs, from);
            match (failure, from) {
                // The host will say so, too. Until then other blocks need not ask it first.
                (ExpertFailure::NoPlan, ExpertHolder::Peer(peer)) => cx.holders.absent(peer),
                (_, ExpertHolder::Peer(peer)) => {
                    gather.unable.insert(peer);
                    // It may have others.
                    if failure != ExpertFailure::NotHere {
                        cx.holders.unable(peer);
                    }
                }
                (_, ExpertHolder::Own) => {}
            }
        }
        let left = self.ask_missing(id, &pairs, cx, &mut steps);
        self.check_unasked(id, &left, None, cx, &mut steps);
        steps
    }

    fn take(&mut self, call: u64, from: ExpertHolder) -> Option<Call> {
        self.calls.get(&call).filter(|call| call.holder == from)?;
        self.calls.remove(&call)
    }
}
