//! Sealed sessions with other peers: who is at the other end, and what it has proved. Nothing else binds a peer to an
//! address on the relay.

use std::collections::BTreeMap;

use potluck_plan::{DeviceId, PeerId};
use potluck_protocol::UnixSeconds;

use crate::{Proof, RelayRoute};

/// A session with an authenticated peer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Session {
    pub peer: PeerId,
    pub device: DeviceId,
    pub proof: Proof,
    /// When it was made.
    pub at: UnixSeconds,
    /// Our hello went out over it, and the peer was not given up since.
    pub greeted: bool,
    /// The host let the peer in, and the driver has told the relay.
    pub let_in: bool,
    /// The peer may meet the other members, and the driver knows.
    pub admitted: bool,
    /// The host turned the peer away: it is not heard again over this session.
    pub refused: bool,
}

impl Session {
    pub fn new(peer: PeerId, device: DeviceId, proof: Proof, at: UnixSeconds) -> Self {
        Self { peer, device, proof, at, greeted: false, let_in: false, admitted: false, refused: false }
    }
}

#[derive(Default)]
pub(crate) struct Sessions {
    open: BTreeMap<RelayRoute, Session>,
}

impl Sessions {
    pub fn open(&mut self, route: RelayRoute, session: Session) {
        self.open.insert(route, session);
    }

    pub fn close(&mut self, route: RelayRoute) -> Option<Session> {
        self.open.remove(&route)
    }

    /// The session that a frame of `peer` may come over.
    pub fn get_mut(&mut self, route: RelayRoute, peer: PeerId) -> Option<&mut Session> {
        self.open.get_mut(&route).filter(|session| session.peer == peer)
    }

    /// The peer's session and its address: there is at most one.
    pub fn of(&mut self, peer: PeerId) -> Option<(RelayRoute, &mut Session)> {
        self.open.iter_mut().find(|(_, session)| session.peer == peer).map(|(route, session)| (*route, session))
    }

    /// Only these peers stay: the others are judged by what they have proved when they say hello again.
    pub fn let_in_only(&mut self, stays: impl Fn(PeerId) -> bool) {
        for session in self.open.values_mut() {
            session.let_in &= stays(session.peer);
        }
    }

    pub fn routes(&self) -> Vec<RelayRoute> {
        self.open.keys().copied().collect()
    }
}
