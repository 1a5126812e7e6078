//! Askers whose connection ended. A phone in a lift comes back and wants its answer.

use std::collections::BTreeMap;

use potluck_plan::{Millis, PeerId};
use potluck_protocol::StartId;

/// Their questions and conversations are kept for this long.
const MAX_ABSENCE_MILLIS: f64 = 60_000.0;

#[derive(Default)]
pub(super) struct AwayAskers {
    left: BTreeMap<PeerId, (StartId, Millis)>,
}

impl AwayAskers {
    pub fn leave(&mut self, peer: PeerId, start: StartId, now: Millis) {
        self.left.insert(peer, (start, now));
    }

    /// A peer is here. True if it has started again since it left: nobody waits for that one's answers any
    /// more.
    pub fn is_another(&mut self, peer: PeerId, start: StartId) -> bool {
        self.left.remove(&peer).is_some_and(|(left, _)| left != start)
    }

    /// Removes and returns the peers that stayed away for too long.
    pub fn give_up(&mut self, now: Millis) -> Vec<PeerId> {
        let over = self.left.iter().filter(|(_, (_, since))| now.0 - since.0 > MAX_ABSENCE_MILLIS);
        let over: Vec<PeerId> = over.map(|(peer, _)| *peer).collect();
        self.left.retain(|peer, _| !over.contains(peer));
        over
    }
}
