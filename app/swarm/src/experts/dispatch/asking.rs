//! Whom to ask for experts, and with how many calls.

use std::collections::BTreeMap;

use potluck_plan::{ExpertHolder, Hedging, Plan, RemoteExperts, WireType};

use super::call::{Call, Delays};
use super::{Dispatch, DispatchContext, DispatchStep};
use crate::experts::gather::{Asked, Gather};
use crate::experts::hedging::Cause;
use crate::experts::holders::CallSize;

/// Bytes of a call with its answer. A chunk of 512 tokens with eight experts of Qwen3-30B-A3B has 38 MB, and a frame 16 MiB
/// at most; with several calls the first experts compute while later ones are on their way.
const MAX_CALL_BYTES: u64 = 4 << 20;

impl Dispatch {
    /// Asks the first holder of each pair that has not been asked yet. Returns the pairs for which there is none.
    pub(super) fn ask(
        &mut self,
        id: u64,
        pairs: &[usize],
        copy: u8,
        cx: &mut DispatchContext<'_>,
        steps: &mut Vec<DispatchStep>,
    ) -> Vec<usize> {
        let (mut shares, mut unasked) = (BTreeMap::<ExpertHolder, Vec<usize>>::new(), Vec::new());
        for pair in pairs {
            match self.choose(id, *pair, cx) {
                Some(holder) if copy > 0 && !self.can_copy(id, holder, cx) => {}
                Some(holder) => shares.entry(holder).or_default().push(*pair),
                None => unasked.push(*pair),
            }
        }
        // The own engine last: the calls are on their way meanwhile.
        let own = shares.remove(&ExpertHolder::Own).map(|pairs| (ExpertHolder::Own, pairs));
        for (holder, pairs) in shares.into_iter().chain(own) {
            let Some(gather) = self.gathers.get(&id) else { continue };
            let asks = asks(gather, &pairs, holder, cx.plan);
            for part in parts(gather, &pairs, asks, cx.plan.expert_wire) {
                self.call(id, holder, (part, asks), copy, cx, steps);
            }
        }
        unasked
    }

    pub(super) fn ask_missing(
        &mut self,
        id: u64,
        pairs: &[usize],
        cx: &mut DispatchContext<'_>,
        steps: &mut Vec<DispatchStep>,
    ) -> Vec<usize> {
        let Some(gather) = self.gathers.get(&id) else { return Vec::new() };
        let missing: Vec<usize> = pairs.iter().copied().filter(|pair| gather.is_missing(*pair)).collect();
        self.ask(id, &missing, 0, cx, steps)
    }

    /// Asks others too, as far as the budget of bytes allows.
    pub(super) fn hedge(
        &mut self,
        id: u64,
        pairs: &[usize],
        copy: u8,
        cause: Cause,
        cx: &mut DispatchContext<'_>,
        steps: &mut Vec<DispatchStep>,
    ) {
        let Some(gather) = self.gathers.get(&id).filter(|_| copy < Hedging::MAX_COPIES) else { return };
        let missing: Vec<usize> = pairs.iter().copied().filter(|pair| gather.is_missing(*pair)).collect();
        let can_be = |pair: &usize| self.choose(id, *pair, cx).is_some_and(|holder| self.can_copy(id, holder, cx));
        let can_be: Vec<usize> = missing.into_iter().filter(can_be).collect();
        // Copies of a block's experts mostly lie together, too.
        let first = can_be.first().and_then(|pair| self.choose(id, *pair, cx));
        let asks = first.map_or(Asked::Vectors, |holder| asks(gather, &can_be, holder, cx.plan));
        let bytes = gather.bytes(&can_be, asks, cx.plan.expert_wire);
        if bytes > 0 && self.budgets.of(gather.class).take(bytes, cause) {
            self.ask(id, &can_be, copy, cx, steps);
        }
    }

    /// A copy of a call is of use there. Where all holders are late, nothing is copied. What the stage would have to load first is
    /// no copy of anything: it is for experts that nobody else computes.
    fn can_copy(&self, id: u64, holder: ExpertHolder, cx: &DispatchContext<'_>) -> bool {
        let stage = self.gathers.get(&id).and_then(|gather| cx.plan.stage(gather.stage));
        let loads = holder == ExpertHolder::Own && stage.is_some_and(|(_, stage)| stage.pool.is_some());
        !loads && !is_late(holder, cx)
    }

    fn call(
        &mut self,
        id: u64,
        holder: ExpertHolder,
        (pairs, asks): (Vec<usize>, Asked),
        copy: u8,
        cx: &mut DispatchContext<'_>,
        steps: &mut Vec<DispatchStep>,
    ) {
        let call = self.id();
        let Some(gather) = self.gathers.get_mut(&id) else { return };
        let (block, class, share) = (gather.block, gather.class, gather.share(&pairs, asks));
        let size = CallSize { class, bytes: gather.bytes(&pairs, asks, cx.plan.expert_wire), pairs: pairs.len() };
        let delays = match holder {
            ExpertHolder::Own => {
                steps.push(DispatchStep::Own { call, block, class, share });
                Delays::OWN
            }
            ExpertHolder::Peer(to) => {
                gather.asks_others = true;
                gather.asked_bytes += size.bytes;
                match copy {
                    0 => self.budgets.of(class).first(size.bytes),
                    _ => cx.holders.hedged(to),
                }
                steps.push(DispatchStep::Call { to, call, block, class, share });
                Delays::of(to, size, self.hedging, cx.holders)
            }
        };
        let new = Call::new(id, holder, (pairs, asks), size, copy, delays, cx.now);
        self.calls.insert(call, new);
    }

    /// The first holder of a pair that is here and was not asked; one that is late with other calls only if there is no other,
    /// and one that does not answer lately last. A stage that would have to load the expert does so only in its turn.
    fn choose(&self, id: u64, pair: usize, cx: &DispatchContext<'_>) -> Option<ExpertHolder> {
        let gather = self.gathers.get(&id)?;
        let holders = holders(gather, pair, cx.plan);
        let is_asked = |holder: ExpertHolder| {
            let mut open = self.calls.values().filter(|call| call.gather == id && call.holder == holder);
            open.any(|call| call.has(pair))
        };
        let is_here = |holder: &ExpertHolder| match holder {
            ExpertHolder::Own => true,
            ExpertHolder::Peer(peer) => cx.members.is_here(*peer),
        };
        let doubt = |holder: &ExpertHolder| match holder {
            ExpertHolder::Peer(peer) if !cx.holders.is_healthy(*peer) => 2,
            holder if is_late(*holder, cx) => 1,
            ExpertHolder::Own if cx.plan.is_on_demand() && holders.first() != Some(&ExpertHolder::Own) => 1,
            ExpertHolder::Peer(_) | ExpertHolder::Own => 0,
        };
        let can_be =
            |holder: &ExpertHolder| is_here(holder) && !gather.has_refused(pair, *holder) && !is_asked(*holder);
        // The first one of those that are doubted least.
        holders.iter().copied().filter(can_be).min_by_key(doubt)
    }

    /// Pairs without a vector that nobody is asked for.
    pub(super) fn unasked(&self, id: u64) -> Vec<usize> {
        let missing = self.gathers.get(&id).map(Gather::missing).unwrap_or_default();
        let open: Vec<&Call> = self.calls.values().filter(|call| call.gather == id).collect();
        let is_asked = |pair: &usize| open.iter().any(|call| call.has(*pair));
        missing.into_iter().filter(|pair| !is_asked(pair)).collect()
    }
}

/// What a holder of all experts of these tokens answers with: the sum has the bits that the stage would get from the vectors. Where numbers
/// are rounded on the wire, it has others than the vectors' sum, so there the plan decides it for the whole block: all its experts have one set of holders.
fn asks(gather: &Gather, pairs: &[usize], holder: ExpertHolder, plan: &Plan) -> Asked {
    let Some((_, stage)) = plan.stage(gather.stage) else { return Asked::Vectors };
    let loads = |holder: &ExpertHolder| match holder {
        ExpertHolder::Own => stage.pool.is_some(),
        ExpertHolder::Peer(peer) => plan.holder_pool(*peer).is_some(),
    };
    let has_sums =
        |remote: &RemoteExperts| remote.have_same_holders() && !remote.holders.first().into_iter().flatten().any(loads);
    let has_one_set = || stage.remote_experts(gather.block).is_some_and(has_sums);
    let is_exact = plan.expert_wire == WireType::F32 || has_one_set();
    let saves = gather.are_several_a_token(pairs) && gather.are_whole_tokens(pairs);
    if saves && !loads(&holder) && is_exact { Asked::Sums } else { Asked::Vectors }
}

/// Pairs in as many calls as their bytes take.
fn parts(gather: &Gather, pairs: &[usize], asks: Asked, wire: WireType) -> Vec<Vec<usize>> {
    let calls = gather.bytes(pairs, asks, wire).div_ceil(MAX_CALL_BYTES).max(1) as usize;
    let most = pairs.len().div_ceil(calls).max(1);
    match asks {
        Asked::Vectors => pairs.chunks(most).map(<[usize]>::to_vec).collect(),
        Asked::Sums => gather.split(pairs, most),
    }
}

/// A holder is late with other calls.
fn is_late(holder: ExpertHolder, cx: &DispatchContext<'_>) -> bool {
    matches!(holder, ExpertHolder::Peer(peer) if cx.holders.is_overtaken(peer, cx.now))
}

/// The holders of a pair's expert, in order of preference.
pub(super) fn holders<'a>(gather: &Gather, pair: usize, plan: &'a Plan) -> &'a [ExpertHolder] {
    let remote = plan.stage(gather.stage).and_then(|(_, stage)| stage.remote_experts(gather.block));
    let holders = remote.and_then(|remote| remote.holders.get(usize::from(gather.expert(pair).0)));
    holders.map_or(&[], Vec::as_slice)
}
