//! What to do with answers and refusals.

use potluck_plan::{ExpertHolder, KernelClass};
use potluck_protocol::ExpertFailure;

use super::call::Call;
use super::spot_checks::effort;
use super::{Around, Dispatch, Step};
use crate::experts::checks::Check;
use crate::experts::gather::Gather;
use crate::experts::owed::Owed;
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
        around: &mut Around<'_>,
    ) -> Vec<Step> {
        let mut steps = Vec::new();
        if let Some(check) = self.checks.take(call, from) {
            self.judge(check, outputs, around, &mut steps);
        } else if let Some(Owed { holder, size, asked, .. }) = self.owed.take(call, from) {
            around.holders.answered_late(holder, size, around.now.0 - asked.0);
        } else if let Some(open) = self.take(call, from) {
            // No engine can have worked for longer than it was waited for.
            let engine = engine.max(0.0).min(around.now.0 - open.asked.0);
            let answer = Answer { outputs, engine };
            if self.gathers.get(&open.gather).is_some_and(|gather| gather.are_outputs(&open.pairs, outputs)) {
                self.use_outputs(&open, answer, around);
                self.check_some(call, &open, outputs, around, &mut steps);
                self.cancel_needless(open.gather, around, &mut steps);
                self.finish(open.gather, engine, around, &mut steps);
            } else {
                self.refuse_outputs(&open, around, &mut steps);
            }
        }
        steps
    }

    /// Others are asked for what cannot be right.
    fn refuse_outputs(&mut self, open: &Call, around: &mut Around<'_>, steps: &mut Vec<Step>) {
        let Some(gather) = self.gathers.get_mut(&open.gather) else { return };
        gather.refuse(&open.pairs, open.holder);
        let left = self.ask_missing(open.gather, &open.pairs, around, steps);
        let wrong = match open.holder {
            ExpertHolder::Peer(peer) => peer,
            ExpertHolder::Own => around.members.me,
        };
        if !self.check_unasked(open.gather, &left, Some(wrong), around, steps) {
            steps.push(Step::Wrong { gather: open.gather, holder: wrong });
        }
    }

    /// Takes the vectors that are missing, and notes what the holder has done.
    fn use_outputs(&mut self, open: &Call, Answer { outputs, engine }: Answer<'_>, around: &mut Around<'_>) {
        let Some(gather) = self.gathers.get_mut(&open.gather) else { return };
        let was_first = gather.take(&open.pairs, outputs) > 0;
        match open.holder {
            ExpertHolder::Own => gather.own_done = Some(around.now),
            ExpertHolder::Peer(peer) => {
                gather.helpers.extend(was_first.then_some(peer));
                around.holders.answered(peer, open.size, around.now.0 - open.asked.0, engine);
                around.holders.sent(peer, around.plan.expert_wire.bytes(outputs.len() as u64));
                if was_first && open.copy > 0 {
                    around.holders.hedge_won(peer);
                }
            }
        }
    }

    /// Has a share of all answers computed again.
    fn check_some(&mut self, call: u64, open: &Call, outputs: &[f32], around: &Around<'_>, steps: &mut Vec<Step>) {
        let Some(gather) = self.gathers.get(&open.gather) else { return };
        if self.checks.wants(call, gather.secret(), effort(gather, &open.pairs, around.plan)) {
            let (stage, block, class, share) = (gather.stage, gather.block, gather.class, gather.share(&open.pairs));
            let (began, asked, answers) = (around.now, open.holder, vec![(open.holder, outputs.to_vec())]);
            self.check(Check { stage, block, class, share, began, answers, asked }, around, steps);
        }
    }

    /// Hands out the outputs once all are there. `engine`: the milliseconds that the last holder's engine took.
    fn finish(&mut self, id: u64, engine: f64, around: &Around<'_>, steps: &mut Vec<Step>) {
        if !self.gathers.get(&id).is_some_and(Gather::is_complete) {
            return;
        }
        let Some(gather) = self.gathers.remove(&id) else { return };
        if gather.class == KernelClass::Decode {
            let (waited, bytes) = (gather.waited(around.now), gather.bytes_a_token());
            self.waits.passed(gather.block, Passed { waited, engine, bytes });
            self.waits.gathered(gather.first_asked, around.now.0 - gather.began.0);
            self.waits.note(&gather, engine, around.now);
        }
        let helpers = gather.helpers.iter().copied().collect();
        steps.push(Step::Done { gather: id, outputs: gather.finish(), helpers });
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
                ExpertFailure::NotHere | ExpertFailure::Busy => around.holders.refused(holder),
                _ => {
                    around.holders.refused(holder);
                    around.holders.unable(holder);
                }
            }
            return steps;
        }
        let Some(mut open) = self.take(call, from) else { return steps };
        let (id, pairs) = (open.gather, open.pairs.clone());
        if failure == ExpertFailure::Busy {
            open.set_aside(around.now);
            self.calls.insert(call, open);
        } else if let Some(gather) = self.gathers.get_mut(&id) {
            gather.refuse(&pairs, from);
            match (failure, from) {
                // The host will say so, too. Until then other blocks need not ask it first.
                (ExpertFailure::NoPlan, ExpertHolder::Peer(peer)) => around.holders.absent(peer),
                (_, ExpertHolder::Peer(peer)) => {
                    gather.unable.insert(peer);
                    // It may have others.
                    if failure != ExpertFailure::NotHere {
                        around.holders.unable(peer);
                    }
                }
                (_, ExpertHolder::Own) => {}
            }
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
