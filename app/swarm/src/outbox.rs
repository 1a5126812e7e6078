//! Collects actions; frames to oneself never leave the peer.

use std::collections::{BTreeMap, VecDeque};

use potluck_plan::PeerId;
use potluck_protocol::Frame;

use crate::{Action, Destination, RelayRoute, Severity};

pub(crate) struct Outbox {
    me: PeerId,
    pub actions: Vec<Action>,
    own: VecDeque<Frame>,
    routes: BTreeMap<PeerId, RelayRoute>,
}

impl Outbox {
    pub fn new(me: PeerId) -> Self {
        Self { me, actions: Vec::new(), own: VecDeque::new(), routes: BTreeMap::new() }
    }

    /// To one peer, or to this one. A peer without a route is gone or not here yet; recovery repeats what it misses.
    pub fn send(&mut self, to: PeerId, frame: Frame) {
        if to == self.me {
            self.own.push_back(frame);
        } else if let Some(route) = self.routes.get(&to) {
            self.actions.push(Action::Send { to: Destination::Route(*route), frame });
        }
    }

    /// To everyone else on the relay's room, known or not.
    pub fn broadcast(&mut self, frame: Frame) {
        self.actions.push(Action::Send { to: Destination::Everyone, frame });
    }

    pub fn act(&mut self, action: Action) {
        self.actions.push(action);
    }

    pub fn notice(&mut self, severity: Severity, sentence: impl Into<String>) {
        self.act(Action::Notice { severity, sentence: sentence.into() });
    }

    pub fn next_own(&mut self) -> Option<Frame> {
        self.own.pop_front()
    }

    pub fn set_route(&mut self, peer: PeerId, route: Option<RelayRoute>) {
        match route {
            Some(route) => self.routes.insert(peer, route),
            None => self.routes.remove(&peer),
        };
    }

    pub fn peer_at(&self, route: RelayRoute) -> Option<PeerId> {
        self.routes.iter().find(|(_, known)| **known == route).map(|(peer, _)| *peer)
    }

    pub fn clear_routes(&mut self) {
        self.routes.clear();
    }
}
