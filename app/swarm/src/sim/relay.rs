//! The simulated relay: it forwards frames between connections and reports who came and went.

use std::collections::BTreeMap;

use potluck_plan::PeerId;
use potluck_protocol::Frame;

use super::network::{Lane, Passage};
use super::world::{Scheduled, World};
use crate::{Destination, Event, RelayRoute};

/// The relay ends a connection that was silent for this long (its pings: 2 s apart, 4 may be missed).
const RELAY_TIMEOUT_MILLIS: f64 = 10_000.0;
/// A driver redials after this time.
const REDIAL_MILLIS: f64 = 1_000.0;
/// Size of a frame where its length does not matter.
const SHORT: usize = 100;

/// A peer's connection to the relay, as the peer sees it.
pub(super) struct Line {
    pub route: RelayRoute,
    pub up: Lane,
    pub down: Lane,
}

/// The relay's side: who is connected.
#[derive(Default)]
pub(super) struct Relay {
    next_route: u32,
    members: BTreeMap<RelayRoute, usize>,
}

/// What a peer sends to the relay.
pub(super) enum Uplink {
    Frame {
        to: Destination,
        from: PeerId,
        frame: Frame,
    },
    /// The end of the connection.
    End,
}

impl World {
    /// A peer's connection request reaches the relay: it gets a route and hears who is in.
    pub(super) fn dialled(&mut self, index: usize) {
        let peer = &self.peers[index];
        if peer.line.is_some() || !peer.present {
            return;
        }
        if self.now < peer.cut_until {
            let again = peer.cut_until + REDIAL_MILLIS;
            self.schedule(again, index, Scheduled::Dial);
            return;
        }
        self.relay.next_route += 1;
        let route = RelayRoute(self.relay.next_route);
        let members: Vec<RelayRoute> = self.relay.members.keys().copied().collect();
        self.relay.members.insert(route, index);
        self.peers[index].line = Some(Line { route, up: Lane::default(), down: Lane::default() });
        self.down(route, SHORT, Event::Connected { members: members.clone() });
        for other in members {
            self.down(other, SHORT, Event::RouteJoined(route));
        }
    }

    /// Sends a frame to the relay; without a connection it is lost.
    pub(super) fn send(&mut self, index: usize, to: Destination, frame: Frame) {
        let from = self.peers[index].id;
        let bytes = self.length(from, &frame);
        self.up(index, bytes, Uplink::Frame { to, from, frame });
    }

    /// The peer closes its connection after everything it has sent.
    pub(super) fn hang_up(&mut self, index: usize) {
        self.up(index, SHORT, Uplink::End);
        self.peers[index].line = None;
    }

    /// The connection is gone at once, with everything in flight; the relay notices and tells the others.
    pub(super) fn drop_line(&mut self, index: usize) {
        if let Some(line) = self.peers[index].line.take() {
            self.left(line.route);
        }
    }

    /// Cuts a peer's link for a while. The relay gives the connection up if that takes too long.
    pub(super) fn cut(&mut self, index: usize, millis: f64) {
        let peer = &mut self.peers[index];
        peer.cut_until = peer.cut_until.max(self.now + millis);
        if let Some(line) = &peer.line
            && millis > RELAY_TIMEOUT_MILLIS
        {
            let route = line.route;
            self.schedule(self.now + RELAY_TIMEOUT_MILLIS, index, Scheduled::GivenUp(route));
        }
    }

    /// The relay gives up a connection; the peer learns it when its link works again.
    pub(super) fn given_up(&mut self, route: RelayRoute, index: usize) {
        self.left(route);
        if self.peers[index].line.take_if(|line| line.route == route).is_some() {
            let back = self.peers[index].cut_until.max(self.now);
            self.schedule(back, index, Scheduled::Event(Event::Disconnected));
            self.schedule(back + REDIAL_MILLIS, index, Scheduled::Dial);
        }
    }

    fn up(&mut self, index: usize, bytes: usize, what: Uplink) {
        let (now, link) = (self.now, self.peers[index].device.link);
        let Some(line) = &mut self.peers[index].line else { return };
        let route = line.route;
        match line.up.pass(now, bytes, link.up, &link, &mut self.random) {
            Passage::Arrives(at) => self.schedule(at, index, Scheduled::AtRelay(route, what)),
            Passage::Breaks(at) => self.schedule(at, index, Scheduled::GivenUp(route)),
        }
    }

    /// Something reaches the relay.
    pub(super) fn at_relay(&mut self, index: usize, route: RelayRoute, what: Uplink) {
        if !self.relay.members.contains_key(&route) {
            return;
        }
        if self.now < self.peers[index].cut_until {
            let until = self.peers[index].cut_until;
            self.schedule(until, index, Scheduled::AtRelay(route, what));
            return;
        }
        match what {
            Uplink::End => self.left(route),
            Uplink::Frame { to, from, frame } => {
                let receivers: Vec<RelayRoute> = match to {
                    Destination::Everyone => self.relay.members.keys().copied().filter(|to| *to != route).collect(),
                    Destination::Route(to) => vec![to],
                };
                let bytes = self.length(from, &frame);
                for receiver in receivers {
                    self.down(receiver, bytes, Event::Frame { route, from, frame: frame.clone() });
                }
            }
        }
    }

    fn left(&mut self, route: RelayRoute) {
        if self.relay.members.remove(&route).is_some() {
            for other in self.relay.members.keys().copied().collect::<Vec<_>>() {
                self.down(other, SHORT, Event::RouteLeft(route));
            }
        }
    }

    fn down(&mut self, route: RelayRoute, bytes: usize, event: Event) {
        let Some(index) = self.relay.members.get(&route).copied() else { return };
        let (now, link) = (self.now, self.peers[index].device.link);
        let Some(line) = self.peers[index].line.as_mut().filter(|line| line.route == route) else { return };
        match line.down.pass(now, bytes, link.down, &link, &mut self.random) {
            Passage::Arrives(at) => self.schedule(at, index, Scheduled::AtPeer(route, event)),
            Passage::Breaks(at) => self.schedule(at, index, Scheduled::GivenUp(route)),
        }
    }

    /// Something reaches a peer, or later if its link is cut.
    pub(super) fn at_peer(&mut self, index: usize, route: RelayRoute, event: Event) {
        let (now, until) = (self.now, self.peers[index].cut_until);
        let Some(line) = self.peers[index].line.as_mut().filter(|line| line.route == route) else { return };
        if now < until {
            let at = line.down.hold_until(until);
            self.schedule(at, index, Scheduled::AtPeer(route, event));
        } else {
            self.event(index, event);
        }
    }

    /// Bytes of a frame on the wire, computed only where a link's timing depends on it.
    fn length(&self, from: PeerId, frame: &Frame) -> usize {
        if self.peers.iter().all(|peer| peer.device.link.ignores_length()) {
            return SHORT;
        }
        potluck_protocol::encode(from, frame).map_or(SHORT, |bytes| bytes.len() + 4)
    }
}
