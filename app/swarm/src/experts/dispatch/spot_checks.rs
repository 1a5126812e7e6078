//! Has answers computed again by another holder, and judges what both say.

use potluck_plan::{ExpertHolder, ExpertId, Plan};

use super::asking::holders;
use super::{Around, Dispatch, Step};
use crate::experts::checks::{Check, Effort, Verdict};
use crate::experts::gather::Gather;

impl Dispatch {
    /// Has the next holder of the same arithmetic compute an answer again, if there is one.
    pub(super) fn check(&mut self, mut check: Check, around: &Around<'_>, steps: &mut Vec<Step>) {
        let Some((first, _)) = check.answers.first() else { return };
        let Some((_, stage)) = around.plan.stage(check.stage) else { return };
        let Some(remote) = stage.remote_experts(check.block) else { return };
        let of = |expert: ExpertId| remote.holders.get(usize::from(expert.0)).map_or(&[][..], Vec::as_slice);
        let has_all = |holder: &ExpertHolder| check.experts().all(|expert| of(expert).contains(holder));
        let can_be = |holder: &&ExpertHolder| {
            let is_new = check.answers.iter().all(|(known, _)| known != *holder);
            // What would have to be loaded first is not worth a check.
            let is_here = **holder != ExpertHolder::Own || stage.pool.is_none();
            is_new && is_here && has_all(holder) && is_alike(*first, **holder, around)
        };
        let Some(next) = check.experts().next().and_then(|expert| of(expert).iter().find(can_be)).copied() else {
            return;
        };
        check.asked = next;
        let call = self.id();
        let Check { block, class, share, .. } = check.clone();
        steps.push(match next {
            ExpertHolder::Own => Step::Own { call, block, class, share },
            ExpertHolder::Peer(to) => Step::Call { to, call, block, class, share },
        });
        self.checks.open(call, check);
    }

    pub(super) fn judge(&mut self, mut check: Check, outputs: &[f32], around: &Around<'_>, steps: &mut Vec<Step>) {
        match check.answered(outputs) {
            Verdict::Differ => self.check(check, around, steps),
            Verdict::Wrong(ExpertHolder::Peer(holder)) => steps.push(Step::Convicted { stage: check.stage, holder }),
            // The own GPU is tested otherwise.
            Verdict::Wrong(ExpertHolder::Own) | Verdict::Agree | Verdict::Unknown => {}
        }
    }
}

/// What it takes another holder to compute these pairs again.
pub(super) fn effort(gather: &Gather, pairs: &[usize], plan: &Plan) -> Effort {
    let loads = |holder: &ExpertHolder| holder.peer().is_some_and(|peer| plan.holder_pool(peer).is_some());
    match pairs.iter().any(|pair| holders(gather, *pair, plan).iter().any(loads)) {
        true => Effort::Load,
        false => Effort::Compute,
    }
}

/// Both are here, and honest devices like them compute the same bits: with the same kernels, on the same kind of GPU.
fn is_alike(a: ExpertHolder, b: ExpertHolder, around: &Around<'_>) -> bool {
    let hello = |holder: ExpertHolder| {
        let peer = match holder {
            ExpertHolder::Own => around.members.me,
            ExpertHolder::Peer(peer) => peer,
        };
        around.members.get(peer).filter(|_| around.members.is_here(peer)).map(|member| &member.hello)
    };
    let arithmetic = |holder| hello(holder).map(|hello| (&hello.build, hello.kernel_class, &hello.adapter));
    arithmetic(a).is_some_and(|known| arithmetic(b) == Some(known))
}
