//! Gathers that end without their outputs, and calls that can bring nothing new.

use potluck_plan::{ExpertHolder, PeerId};

use super::asking::holders;
use super::call::Call;
use super::{Dispatch, DispatchContext, DispatchStep};
use crate::experts::superseded::SupersededCall;

impl Dispatch {
    /// Nobody waits for these outputs any more.
    pub fn drop_gather(&mut self, id: u64, cx: &mut DispatchContext<'_>) -> Vec<DispatchStep> {
        let mut steps = Vec::new();
        self.gathers.remove(&id);
        self.cancel_needless(id, cx, &mut steps);
        steps
    }

    /// Gives up a gather if nobody is left for one of these pairs. Holders whose connection ended may come back in a
    /// moment. True if it was given up.
    pub(super) fn check_unasked(
        &mut self,
        id: u64,
        unasked: &[usize],
        wrong: Option<PeerId>,
        cx: &mut DispatchContext<'_>,
        steps: &mut Vec<DispatchStep>,
    ) -> bool {
        let Some(gather) = self.gathers.get(&id) else { return false };
        let may_come = |pair: &usize| {
            holders(gather, *pair, cx.plan).iter().any(|holder| match holder {
                holder if gather.has_refused(*pair, *holder) => false,
                ExpertHolder::Own => true,
                ExpertHolder::Peer(peer) => cx.members.get(*peer).is_some(),
            })
        };
        let is_lost = unasked.iter().any(|pair| !may_come(pair));
        if is_lost {
            self.lose(id, wrong, cx, steps);
        }
        is_lost
    }

    /// Gives up a gather that has waited for too long, because of those that were asked long ago.
    pub(super) fn give_up(&mut self, id: u64, cx: &mut DispatchContext<'_>, steps: &mut Vec<DispatchStep>) {
        let Some(gather) = self.gathers.get_mut(&id) else { return };
        if cx.now.0 - gather.began.0 < self.give_up_millis {
            return;
        }
        let is_silent = |call: &&Call| {
            call.gather == id
                && call.pairs.iter().any(|pair| gather.is_missing(*pair))
                && cx.now.0 - call.asked.0 >= self.give_up_millis / 2.0
        };
        let silent: Vec<PeerId> = self.calls.values().filter(is_silent).filter_map(|call| call.holder.peer()).collect();
        gather.unable.extend(silent);
        self.lose(id, None, cx, steps);
    }

    fn lose(&mut self, id: u64, wrong: Option<PeerId>, cx: &mut DispatchContext<'_>, steps: &mut Vec<DispatchStep>) {
        if let Some(gather) = self.gathers.remove(&id) {
            let failed = gather.unable.into_iter().filter(|peer| cx.members.is_here(*peer)).collect();
            steps.push(DispatchStep::Lost { gather: id, block: gather.block, wrong, failed });
            self.cancel_needless(id, cx, steps);
        }
    }

    /// Cancels the calls of a gather that can bring nothing new.
    pub(super) fn cancel_needless(&mut self, id: u64, cx: &mut DispatchContext<'_>, steps: &mut Vec<DispatchStep>) {
        let gather = self.gathers.get(&id);
        let is_needed =
            |call: &Call| gather.is_some_and(|gather| call.pairs.iter().any(|pair| gather.is_missing(*pair)));
        let of_gather = self.calls.iter().filter(|(_, call)| call.gather == id && !is_needed(call));
        let needless: Vec<u64> = of_gather.map(|(call, _)| *call).collect();
        for call in needless {
            let Some(Call { holder, size, asked, late, .. }) = self.calls.remove(&call) else { continue };
            match holder {
                ExpertHolder::Own => steps.push(DispatchStep::CancelOwn { call }),
                ExpertHolder::Peer(to) => {
                    let superseded = SupersededCall { holder: to, size, asked, late };
                    if !self.superseded.leave_open(call, superseded, cx.holders, cx.now) {
                        cx.holders.cancelled(to, size, cx.now.0 - asked.0);
                        steps.push(DispatchStep::Cancel { to, call });
                    }
                }
            }
        }
    }
}
