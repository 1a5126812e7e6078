//! Collects actions; frames to oneself never leave the peer.

use std::collections::{BTreeMap, VecDeque};

use potluck_panel::{Condition, Decision};
use potluck_plan::PeerId;
use potluck_protocol::Frame;

use crate::sessions::Sessions;
use crate::trace::ExpertWait;
use crate::{Action, RelayRoute, Severity};

pub(crate) struct Outbox {
    me: PeerId,
    pub actions: Vec<Action>,
    /// What only the recording tells.
    pub notes: Vec<ExpertWait>,
    /// What was decided, for the recording.
    pub decisions: Vec<Decision>,
    own: VecDeque<Frame>,
    /// The sealed sessions that frames may go over.
    pub sessions: Sessions,
    /// Where members are reached: those that said hello and were not given up since.
    routes: BTreeMap<PeerId, RelayRoute>,
}

impl Outbox {
    pub fn new(me: PeerId) -> Self {
        let (own, sessions, routes) = (VecDeque::new(), Sessions::default(), BTreeMap::new());
        Self { me, actions: Vec::new(), notes: Vec::new(), decisions: Vec::new(), own, sessions, routes }
    }

    /// To one peer, or to this one. A peer without a route is gone or not here yet; recovery repeats what it misses.
    pub fn send(&mut self, to: PeerId, frame: Frame) {
        if to == self.me {
            self.own.push_back(frame);
        } else if let Some(route) = self.routes.get(&to) {
            self.actions.push(Action::Send { to: *route, frame });
        }
    }

    /// Over every session, to members and to those who are not let in yet.
    pub fn broadcast(&mut self, frame: &Frame) {
        for to in self.sessions.routes() {
            self.actions.push(Action::Send { to, frame: frame.clone() });
        }
    }

    pub fn act(&mut self, action: Action) {
        self.actions.push(action);
    }

    pub fn notice(&mut self, severity: Severity, sentence: impl Into<String>) {
        self.act(Action::Notice { severity, sentence: sentence.into(), condition: None });
    }

    /// A warning until a condition is over.
    pub fn warn_while(&mut self, condition: Condition, sentence: impl Into<String>) {
        let (severity, sentence, condition) = (Severity::Warning, sentence.into(), Some(condition));
        self.act(Action::Notice { severity, sentence, condition });
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

    pub fn route_of(&self, peer: PeerId) -> Option<RelayRoute> {
        self.routes.get(&peer).copied()
    }

    /// This peer's own connection is gone, and every session with it.
    pub fn clear(&mut self) {
        self.routes.clear();
        self.sessions = Sessions::default();
    }
}
