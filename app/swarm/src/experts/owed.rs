//! Calls that others have answered by now, left open: if their holder answers, it is there.

use std::collections::BTreeMap;

use potluck_plan::{ExpertHolder, Millis, PeerId};

use super::holders::{Holders, Size};
use super::late::{AVOIDED_MILLIS, LateTimer};
use crate::members::Members;

/// A call whose answer nobody waits for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Owed {
    pub holder: PeerId,
    pub size: Size,
    pub asked: Millis,
    pub late: LateTimer,
}

/// At most one of each holder.
#[derive(Debug, Default)]
pub(super) struct OwedCalls {
    open: BTreeMap<u64, Owed>,
}

impl OwedCalls {
    /// Leaves a call open, if its holder is late or others overtake it all the time. True if so.
    pub fn leave_open(&mut self, call: u64, owed: Owed, holders: &Holders, now: Millis) -> bool {
        let shows_something = owed.late.at().is_some() || holders.is_overtaken(owed.holder, now);
        let is_first = !self.open.values().any(|known| known.holder == owed.holder);
        let is_wanted = shows_something && is_first && holders.has_to_show(owed.holder, now);
        if is_wanted {
            self.open.insert(call, owed);
        }
        is_wanted
    }

    /// The holder owes an answer to this call.
    pub fn is_owed(&self, call: u64, holder: PeerId) -> bool {
        self.open.get(&call).is_some_and(|owed| owed.holder == holder)
    }

    /// An answer has come.
    pub fn take(&mut self, call: u64, from: ExpertHolder) -> Option<Owed> {
        self.open.get(&call).filter(|owed| ExpertHolder::Peer(owed.holder) == from)?;
        self.open.remove(&call)
    }

    /// Time has passed, or somebody left. Returns the calls that are given up: their holders have had time enough. Nothing is
    /// kept of holders that left.
    pub fn look(&mut self, members: &Members, holders: &mut Holders, now: Millis) -> Vec<(u64, PeerId)> {
        self.open.retain(|_, owed| members.is_here(owed.holder));
        for owed in self.open.values_mut() {
            if owed.late.expires(now) {
                holders.is_late(owed.holder, now);
            }
        }
        let is_over = |owed: &Owed| match owed.late.at() {
            None => !holders.is_overtaken(owed.holder, now),
            // It was put off again and again, as this device itself was held up.
            Some(_) => owed.late.was_put_off(owed.asked) && now.0 - owed.asked.0 >= AVOIDED_MILLIS,
        };
        let over: Vec<(u64, Owed)> = self.open.extract_if(.., |_, owed| is_over(owed)).collect();
        for (_, Owed { holder, size, asked, .. }) in &over {
            holders.gave_no_answer(*holder, *size, now.0 - asked.0);
        }
        over.into_iter().map(|(call, owed)| (call, owed.holder)).collect()
    }

    /// When to look next.
    pub fn next_look(&self) -> impl Iterator<Item = Millis> {
        self.open.values().filter_map(|owed| owed.late.at())
    }
}
