//! What to do with answers and refusals.

use potluck_plan::{ExpertHolder, KernelClass, Millis};
use potluck_protocol::ExpertFailure;

use super::{Around, BUSY_MILLIS, Call, CallState, Dispatch, Step};
use crate::experts::checks::Check;
use crate::experts::owed::Owed;
use crate::experts::waits::Passed;

impl Dispatch {
    /// A holder answers; `engine`: the milliseconds its engine took. Answers that nobody waits for change nothing.
    pub fn answered(
        &mut self,
        call: u64,
        from: ExpertHolder,
        outputs: &[f32],
        engine: f64,
        around: &mut Around<'_>,
    ) -> Vec<Step> {
        let mut steps = Vec::new();
        if let Some(check) = self.checks.take(call, from) {
            self.judge(check, outputs, around, &mut steps);
            return steps;
        }
        if let Some(Owed { holder, size, asked, .. }) = self.owed.take(call, from) {
            around.holders.answered_late(holder, size, around.now.0 - asked.0);
            return steps;
        }
        let Some(Call { gather: id, pairs, size, asked, copy, .. }) = self.take(call, from) else { return steps };
        let Some(gather) = self.gathers.get_mut(&id) else { return steps };
        if !gather.are_outputs(&pairs, outputs) {
            gather.refuse(&pairs, from);
            let left = self.ask_missing(id, &pairs, around, &mut steps);
            let wrong = match from {
                ExpertHolder::Peer(peer) => peer,
                ExpertHolder::Own => around.members.me,
            };
            if !self.check_unasked(id, &left, Some(wrong), around, &mut steps) {
                steps.push(Step::Wrong { gather: id, holder: wrong });
            }
            return steps;
        }
        let was_first = gather.take(&pairs, outputs) > 0;
        match from {
            ExpertHolder::Own => gather.own_done = Some(around.now),
            ExpertHolder::Peer(peer) => {
                gather.helpers.extend(was_first.then_some(peer));
                around.holders.answered(peer, size, around.now.0 - asked.0, engine);
                around.holders.sent(peer, around.plan.expert_wire.bytes(outputs.len() as u64));
                if was_first && copy > 0 {
                    around.holders.hedge_won(peer);
                }
            }
        }
        let is_complete = gather.is_complete();
        if self.checks.wants(call, gather.secret()) {
            let (stage, block, class, share) = (gather.stage, gather.block, gather.class, gather.share(&pairs));
            let (began, answers) = (around.now, vec![(from, outputs.to_vec())]);
            self.check(Check { stage, block, class, share, began, answers, asked: from }, around, &mut steps);
        }
        self.cancel_needless(id, around, &mut steps);
        if is_complete && let Some(gather) = self.gathers.remove(&id) {
            if gather.class == KernelClass::Decode {
                let (waited, bytes) = (gather.waited(around.now), gather.bytes_a_token());
                self.waits.passed(gather.block, Passed { waited, engine, bytes });
                self.waits.gathered(gather.first_asked, around.now.0 - gather.began.0);
            }
            let helpers = gather.helpers.iter().copied().collect();
            steps.push(Step::Done { gather: id, outputs: gather.finish(), helpers });
        }
        steps
    }

    /// A holder cannot answer.
    pub fn failed(
        &mut self,
        call: u64,
        from: ExpertHolder,
        failure: ExpertFailure,
        around: &mut Around<'_>,
    ) -> Vec<Step> {
        let mut steps = Vec::new();
        if self.checks.take(call, from).is_some() {
            // Another answer will be checked.
            return steps;
        }
        if let Some(Owed { holder, .. }) = self.owed.take(call, from) {
            match failure {
                ExpertFailure::NoPlan => around.holders.absent(holder),
                _ => around.holders.heartbeat(holder),
            }
            return steps;
        }
        let Some(mut open) = self.take(call, from) else { return steps };
        let (id, pairs) = (open.gather, open.pairs.clone());
        if let (ExpertFailure::NoPlan, ExpertHolder::Peer(peer)) = (failure, from) {
            // The host will say so, too. Until then other blocks need not ask it first.
            around.holders.absent(peer);
        }
        if failure == ExpertFailure::Busy {
            // It stays open until somebody else answers, or it has less to do.
            (open.due, open.state) = (Millis(around.now.0 + BUSY_MILLIS), CallState::Busy);
            open.hedge_at = None;
            open.late.stop();
            self.calls.insert(call, open);
        } else if let Some(gather) = self.gathers.get_mut(&id) {
            gather.refuse(&pairs, from);
        }
        let left = self.ask_missing(id, &pairs, around, &mut steps);
        self.check_unasked(id, &left, None, around, &mut steps);
        steps
    }

    fn take(&mut self, call: u64, from: ExpertHolder) -> Option<Call> {
        self.calls.get(&call).filter(|call| call.holder == from)?;
        self.calls.remove(&call)
    }
}
