//! What to do as time passes: calls that are late or due, and holders that left.

use potluck_plan::{ExpertHolder, Millis, PeerId, Plan};

use super::asking::holders;
use super::call::{Call, CallState};
use super::{Dispatch, DispatchContext, DispatchStep};
use crate::experts::hedging::Cause;

impl Dispatch {
    /// Time has passed, or somebody came or left.
    pub fn check_timers(&mut self, cx: &mut DispatchContext<'_>) -> Vec<DispatchStep> {
        let mut steps = Vec::new();
        self.checks.forget_old(cx.now);
        let given_up = self.superseded.check_timers(cx.members, cx.holders, cx.now);
        steps.extend(given_up.into_iter().map(|(call, to)| DispatchStep::Cancel { to, call }));
        let ids: Vec<u64> = self.calls.keys().copied().collect();
        for id in ids {
            self.check_call(id, cx, &mut steps);
        }
        let ids: Vec<u64> = self.gathers.keys().copied().collect();
        for id in ids {
            let unasked = self.unasked(id);
            let left = self.ask(id, &unasked, 0, cx, &mut steps);
            self.check_unasked(id, &left, None, cx, &mut steps);
            self.give_up(id, cx, &mut steps);
        }
        steps
    }

    /// When [`Self::check_timers`] has something to do next; `None` if nothing is waited for.
    pub fn next_deadline(&self) -> Option<Millis> {
        let calls = self.calls.values().flat_map(|call| [call.hedge_at, call.late.at(), Some(call.due)]).flatten();
        let gathers = self.gathers.values().map(|gather| Millis(gather.began.0 + self.give_up_millis));
        let all = calls.chain(gathers).chain(self.superseded.next_deadline());
        all.filter(|at| at.0.is_finite()).min_by(|a, b| a.0.total_cmp(&b.0))
    }

    /// Whether one call is late, due, or to be hedged.
    fn check_call(&mut self, id: u64, cx: &mut DispatchContext<'_>, steps: &mut Vec<DispatchStep>) {
        let Some(ExpertHolder::Peer(peer)) = self.calls.get(&id).map(|call| call.holder) else { return };
        if !cx.members.is_here(peer) || !self.is_in_plan(id, cx.plan) {
            // Whatever is on its way is lost with the connection; or it has been struck off.
            self.calls.remove(&id);
            return;
        }
        self.check_hedge(id, cx, steps);
        self.check_late(id, peer, cx, steps);
        self.check_due(id, peer, cx, steps);
    }

    /// The plan still names the call's holder for all that it was asked for.
    fn is_in_plan(&self, id: u64, plan: &Plan) -> bool {
        let Some(call) = self.calls.get(&id) else { return false };
        let is_holder = |gather, pair: &usize| holders(gather, *pair, plan).contains(&call.holder);
        self.gathers.get(&call.gather).is_some_and(|gather| call.pairs.iter().all(|pair| is_holder(gather, pair)))
    }

    fn check_hedge(&mut self, id: u64, cx: &mut DispatchContext<'_>, steps: &mut Vec<DispatchStep>) {
        let Some(call) = self.calls.get_mut(&id) else { return };
        if call.hedge_at.take_if(|at| at.0 <= cx.now.0).is_some() {
            let (gather, pairs, copy) = (call.gather, call.pairs.clone(), call.copy + 1);
            self.hedge(gather, &pairs, copy, Cause::Hedge, cx, steps);
        }
    }

    /// A call that was not answered in time goes to others, or to the same holder again.
    fn check_due(&mut self, id: u64, peer: PeerId, cx: &mut DispatchContext<'_>, steps: &mut Vec<DispatchStep>) {
        let Some(call) = self.calls.get_mut(&id).filter(|call| call.due.0 <= cx.now.0) else { return };
        if call.state != CallState::Busy {
            cx.holders.timed_out(peer);
        }
        call.put_off(cx.now);
        let (gather, pairs) = (call.gather, call.pairs.clone());
        let left = self.ask_missing(gather, &pairs, cx, steps);
        if left.iter().any(|pair| !self.is_asked_besides(id, *pair)) {
            self.ask_again(id, cx.now, steps);
        }
    }

    /// A call that takes much longer than its holder's calls do goes to the next holder, too, and so do calls of the next blocks.
    fn check_late(&mut self, id: u64, peer: PeerId, cx: &mut DispatchContext<'_>, steps: &mut Vec<DispatchStep>) {
        let Some(call) = self.calls.get_mut(&id) else { return };
        if !call.late.expires(cx.now) {
            return;
        }
        cx.holders.is_late(peer, cx.now);
        let (gather, copy, pairs) = (call.gather, call.copy + 1, call.pairs.clone());
        let in_time = |call: &&Call| call.gather == gather && call.state == CallState::Asked && !call.late.is_expired();
        let others: Vec<&Call> = self.calls.values().filter(in_time).collect();
        let is_alone = |pair: &usize| !others.iter().any(|call| call.has(*pair));
        let alone: Vec<usize> = pairs.into_iter().filter(is_alone).collect();
        self.hedge(gather, &alone, copy, Cause::Late, cx, steps);
    }

    /// Somebody else has time left to answer for a pair of this call.
    fn is_asked_besides(&self, id: u64, pair: usize) -> bool {
        let Some(gather) = self.calls.get(&id).map(|call| call.gather) else { return false };
        let mut others = self.calls.iter().filter(|(other, call)| **other != id && call.gather == gather);
        others.any(|(_, call)| call.state == CallState::Asked && call.has(pair))
    }

    /// Nobody else can be asked: the same call once more, because a frame may be lost, or it was refused.
    fn ask_again(&mut self, id: u64, now: Millis, steps: &mut Vec<DispatchStep>) {
        let Some(call) = self.calls.get_mut(&id) else { return };
        let (ExpertHolder::Peer(to), Some(gather)) = (call.holder, self.gathers.get(&call.gather)) else { return };
        call.ask_again(now);
        let share = gather.share(&call.pairs, call.asks);
        steps.push(DispatchStep::Call { to, call: id, block: gather.block, class: gather.class, share });
    }
}
