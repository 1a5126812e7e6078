//! Calls that others have answered by now, left open: if their holder answers, it is there.

use std::collections::BTreeMap;

use potluck_plan::{ExpertHolder, Millis, PeerId};

use super::holders::{Holders, Size};
use crate::members::Members;

/// A call whose answer nobody waits for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Owed {
    pub holder: PeerId,
    pub size: Size,
    pub asked: Millis,
    /// It is late then; `None` once it is.
    pub late_at: Option<Millis>,
}

/// At most one of each holder.
#[derive(Debug, Default)]
pub(super) struct OwedCalls {
    open: BTreeMap<u64, Owed>,
}

impl OwedCalls {
    /// Leaves a call open, if its holder is late or others overtake it all the time. True if so.
    pub fn leave_open(&mut self, call: u64, owed: Owed, holders: &Holders, now: Millis) -> bool {
        let shows_something = owed.late_at.is_some() || holders.is_overtaken(owed.holder, now);
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

    /// Time has passed, or somebody left. Nothing is kept of holders that left, or that are avoided no more.
    pub fn look(&mut self, members: &Members, holders: &mut Holders, now: Millis) {
        self.open.retain(|_, owed| members.is_here(owed.holder));
        for owed in self.open.values_mut() {
            if owed.late_at.take_if(|at| at.0 <= now.0).is_some() {
                holders.is_late(owed.holder, now);
            }
        }
        self.open.retain(|_, owed| owed.late_at.is_some() || holders.is_overtaken(owed.holder, now));
    }

    /// When to look next.
    pub fn next_look(&self) -> impl Iterator<Item = Millis> {
        self.open.values().filter_map(|owed| owed.late_at)
    }
}
