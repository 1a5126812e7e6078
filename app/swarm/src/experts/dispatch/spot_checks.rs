//! Has answers computed again by another holder, and judges what both say.

use std::hash::{DefaultHasher, Hash, Hasher};

use potluck_plan::{ExpertHolder, ExpertId, PeerId, Plan};
use potluck_protocol::Lineage;

use super::asking::holders;
use super::{Dispatch, DispatchContext, DispatchStep};
use crate::experts::checks::{Check, CheckEffort, CheckResult};
use crate::experts::gather::Gather;
use crate::mutation::{Mutation, has_mutation};

impl Dispatch {
    /// Has another holder with the same arithmetic compute an answer again, if one may: its lineage differs from those of all who
    /// have answered, so that nobody confirms itself. The host does it if it can; otherwise the host's secret chooses one.
    pub(super) fn check(&mut self, mut check: Check, cx: &DispatchContext<'_>, steps: &mut Vec<DispatchStep>) {
        let Some((first, _)) = check.answers.first() else { return };
        let Some((_, stage)) = cx.plan.stage(check.stage) else { return };
        let Some(remote) = stage.remote_experts(check.block) else { return };
        let of = |expert: ExpertId| remote.holders.get(usize::from(expert.0)).map_or(&[][..], Vec::as_slice);
        let has_all = |holder: &ExpertHolder| check.experts().all(|expert| of(expert).contains(holder));
        let lineages: Vec<_> = check.answers.iter().map(|(known, _)| lineage(*known, cx)).collect();
        let is_another = |holder: &ExpertHolder| {
            if has_mutation(Mutation::AnyChecker) {
                return check.answers.iter().all(|(known, _)| known != holder);
            }
            // Whoever came in an unknown way may be anybody.
            let another = |own| lineages.iter().all(|known| known.is_some_and(|known| known != own));
            lineage(*holder, cx).is_some_and(another)
        };
        let can_be = |holder: &ExpertHolder| {
            // What would have to be loaded first is not worth a check.
            let is_here = *holder != ExpertHolder::Own || stage.pool.is_none();
            // Nor has it sums.
            let loads = holder.peer().is_some_and(|peer| cx.plan.holder_pool(peer).is_some());
            let can_answer = is_here && !(loads && check.share.has_sums());
            is_another(holder) && can_answer && has_all(holder) && is_alike(*first, *holder, cx)
        };
        let Some(expert) = check.experts().next() else { return };
        let candidates: Vec<ExpertHolder> = of(expert).iter().copied().filter(can_be).collect();
        let call = self.id();
        let drawn = || candidates.get(draw((cx.members.checkers.secret, call), candidates.len())?);
        let Some(next) = candidates.iter().find(|holder| is_hosts(**holder, cx)).or_else(drawn).copied() else {
            return;
        };
        check.asked = next;
        let Check { block, class, share, .. } = check.clone();
        steps.push(match next {
            ExpertHolder::Own => DispatchStep::Own { call, block, class, share },
            ExpertHolder::Peer(to) => DispatchStep::Call { to, call, block, class, share },
        });
        self.checks.open(call, check);
    }

    pub(super) fn judge(
        &mut self,
        mut check: Check,
        outputs: &[f32],
        cx: &DispatchContext<'_>,
        steps: &mut Vec<DispatchStep>,
    ) {
        match check.answered(outputs, |holder| is_hosts(holder, cx)) {
            CheckResult::Differ => self.check(check, cx, steps),
            CheckResult::Wrong(ExpertHolder::Peer(holder)) => {
                steps.push(DispatchStep::Convicted { stage: check.stage, holder })
            }
            // The own GPU is tested otherwise.
            CheckResult::Wrong(ExpertHolder::Own) | CheckResult::Agree | CheckResult::Unknown => {}
        }
    }
}

/// Chooses one of this many.
fn draw(by: impl Hash, count: usize) -> Option<usize> {
    let mut hasher = DefaultHasher::new();
    by.hash(&mut hasher);
    (hasher.finish() as usize).checked_rem(count)
}

fn peer_of(holder: ExpertHolder, cx: &DispatchContext<'_>) -> PeerId {
    match holder {
        ExpertHolder::Own => cx.members.me,
        ExpertHolder::Peer(peer) => peer,
    }
}

fn lineage(holder: ExpertHolder, cx: &DispatchContext<'_>) -> Option<Lineage> {
    cx.members.checkers.lineage(peer_of(holder, cx))
}

/// The host's own device: its answer counts.
fn is_hosts(holder: ExpertHolder, cx: &DispatchContext<'_>) -> bool {
    lineage(holder, cx) == Some(Lineage::HOST)
}

/// What it takes another holder to compute these pairs again.
pub(super) fn effort(gather: &Gather, pairs: &[usize], plan: &Plan) -> CheckEffort {
    let loads = |holder: &ExpertHolder| holder.peer().is_some_and(|peer| plan.holder_pool(peer).is_some());
    if pairs.iter().any(|pair| holders(gather, *pair, plan).iter().any(loads)) {
        CheckEffort::Load
    } else {
        CheckEffort::Compute
    }
}

/// Both are here, and honest devices like them compute the same bits.
fn is_alike(a: ExpertHolder, b: ExpertHolder, cx: &DispatchContext<'_>) -> bool {
    let (a, b) = (peer_of(a, cx), peer_of(b, cx));
    [a, b].into_iter().all(|peer| cx.members.is_here(peer)) && cx.members.are_alike(a, b)
}
