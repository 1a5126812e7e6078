//! What the host decided, in its log and in its recording.

use potluck_swarm::{Peer, TraceLine};
use potluck_text::decision;

/// Logs what is decided.
#[derive(Default)]
pub(super) struct DecisionLog {
    /// Decisions that were logged.
    known: u64,
}

impl DecisionLog {
    /// Logs what was decided since the last time, a line each. True if there was anything.
    pub fn follow(&mut self, peer: &Peer) -> bool {
        let decided = peer.decided();
        if decided == self.known {
            return false;
        }
        if log::log_enabled!(log::Level::Debug) {
            let new = peer.decisions_after(self.known);
            new.into_iter().for_each(|new| log::debug!("{}", decision(new, |peer_id| peer.name_of(peer_id))));
        }
        self.known = decided;
        true
    }
}

/// The recording; decisions are in words, too.
pub(super) fn recording(peer: &Peer) -> Vec<TraceLine> {
    let mut lines = peer.trace();
    for line in &mut lines {
        if let Some(decided) = &line.decision {
            line.what = decision(decided, |peer_id| peer.name_of(peer_id));
        }
    }
    lines
}
