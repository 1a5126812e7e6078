//! Calls that others have answered by now, left open: if their holder answers, it is there.

use std::collections::BTreeMap;

use potluck_plan::{ExpertHolder, Millis, PeerId};

use super::holders::{CallSize, Holders};
use super::late::{AVOIDED_MILLIS, LateTimer};
use crate::members::Members;

/// A call whose answer nobody waits for.
#[derive(Clone, Copy, Debug)]
pub(super) struct SupersededCall {
    pub holder: PeerId,
    pub size: CallSize,
    pub asked: Millis,
    pub late: LateTimer,
}

/// At most one of each holder.
#[derive(Debug, Default)]
pub(super) struct SupersededCalls {
    open: BTreeMap<u64, SupersededCall>,
}

impl SupersededCalls {
    /// Leaves a call open, if its holder is late or others overtake it all the time. True if so.
    pub fn leave_open(&mut self, id: u64, call: SupersededCall, holders: &Holders, now: Millis) -> bool {
        let shows_something = call.late.at().is_some() || holders.is_overtaken(call.holder, now);
        let is_first = !self.open.values().any(|known| known.holder == call.holder);
        let is_wanted = shows_something && is_first && holders.has_to_show(call.holder, now);
        if is_wanted {
            self.open.insert(id, call);
        }
        is_wanted
    }

    /// This call of the holder is open.
    pub fn awaits(&self, id: u64, holder: PeerId) -> bool {
        self.open.get(&id).is_some_and(|call| call.holder == holder)
    }

    /// An answer has come.
    pub fn take(&mut self, id: u64, from: ExpertHolder) -> Option<SupersededCall> {
        self.open.get(&id).filter(|call| ExpertHolder::Peer(call.holder) == from)?;
        self.open.remove(&id)
    }

    /// Time has passed, or somebody left. Returns the calls that are given up: their holders have had time enough. Nothing is
    /// kept of holders that left.
    pub fn check_timers(&mut self, members: &Members, holders: &mut Holders, now: Millis) -> Vec<(u64, PeerId)> {
        self.open.retain(|_, call| members.is_here(call.holder));
        for call in self.open.values_mut() {
            if call.late.expires(now) {
                holders.is_late(call.holder, now);
            }
        }
        let is_over = |call: &SupersededCall| match call.late.at() {
            None => !holders.is_overtaken(call.holder, now),
            // It was put off again and again, as this device itself was held up.
            Some(_) => call.late.was_put_off(call.asked) && now.0 - call.asked.0 >= AVOIDED_MILLIS,
        };
        let over: Vec<(u64, SupersededCall)> = self.open.extract_if(.., |_, call| is_over(call)).collect();
        for (_, SupersededCall { holder, size, asked, .. }) in &over {
            holders.gave_no_answer(*holder, *size, now.0 - asked.0);
        }
        over.into_iter().map(|(id, call)| (id, call.holder)).collect()
    }

    /// When [`Self::check_timers`] has something to do next.
    pub fn next_deadline(&self) -> impl Iterator<Item = Millis> {
        self.open.values().filter_map(|call| call.late.at())
    }
}
