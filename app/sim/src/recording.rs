//! What a peer of a simulated room was told, to put another peer into the same state.

use potluck_plan::Millis;
use potluck_swarm::{Event, Identity, Peer};

use super::world::World;

/// Everything that a peer was told, in order. It does not restart meanwhile.
pub struct Recording {
    identity: Identity,
    events: Vec<(Event, Millis)>,
}

impl World {
    /// Keeps what a peer is told from now on; call this before it enters.
    pub fn record(&mut self, index: usize) {
        self.peers[index].recorded = Some(Vec::new());
    }

    /// What a recorded peer has been told so far.
    pub fn recording(&mut self, index: usize) -> Recording {
        let peer = &mut self.peers[index];
        Recording { identity: peer.identity(), events: peer.recorded.take().unwrap_or_default() }
    }
}

impl Recording {
    /// What was told, and when.
    pub fn events(&self) -> &[(Event, Millis)] {
        &self.events
    }

    /// A peer that was told the first `count` events. What it wants done is dropped.
    pub fn replay(&self, count: usize) -> Peer {
        let mut peer = Peer::new(self.identity.clone());
        for (event, at) in self.events.iter().take(count) {
            peer.on(event.clone(), *at);
        }
        peer
    }
}

#[cfg(test)]
mod tests {
    use potluck_protocol::Sharing;
    use potluck_swarm::Membership;

    use super::*;
    use crate::{SimDevice, SimModel};

    #[test]
    fn a_replayed_peer_is_where_the_recorded_one_is() {
        let model = SimModel::dense(6);
        let mut world = World::new(1, model, Sharing::Everyone, SimDevice::with_budget(620));
        let worker = world.add(SimDevice::with_budget(620), 5.0);
        [0, worker].into_iter().for_each(|index| world.record(index));
        world.run(3_000.0, |_| false);
        for index in [0, worker] {
            let recording = world.recording(index);
            let replayed = recording.replay(usize::MAX);
            let (seen, expected) = (replayed.view(), world.view(index));
            assert_eq!(seen.membership, Membership::Inside, "peer {index}");
            assert!(seen.room.is_some_and(|room| room.plan.plan.is_some()), "peer {index} has a plan");
            assert_eq!(seen.room, expected.room, "peer {index}");
        }
    }
}
