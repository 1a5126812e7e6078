//! The simulated relay: it forwards frames between connections and reports who came and went. Above it, what a driver
//! does: sealed sessions with the host, and with the other members once the host has let both in.

use std::collections::{BTreeMap, BTreeSet};

use potluck_protocol::{Frame, UnixSeconds};
use potluck_swarm::{Event, Proof, RelayRoute};

use super::network::{Lane, Passage};
use super::peer::{SimPeer, device, invite};
use super::world::{Scheduled, World};

/// The relay ends a connection that was silent for this long (its pings: 2 s apart, 4 may be missed).
const RELAY_TIMEOUT_MILLIS: f64 = 10_000.0;
/// A driver redials after this time.
const REDIAL_MILLIS: f64 = 1_000.0;
/// Size of a frame where its length does not matter.
const SHORT: usize = 100;
/// Bytes of a frame's route and seal.
const ENVELOPE: usize = 4 + 24;

/// A peer's connection to the relay, as the peer sees it.
pub(super) struct Line {
    pub route: RelayRoute,
    pub up: Lane,
    pub down: Lane,
    /// The other connections in the room.
    others: BTreeSet<RelayRoute>,
    /// Those among them with which a sealed session is up.
    pub sessions: BTreeSet<RelayRoute>,
}

/// The relay's side: who is connected.
#[derive(Default)]
pub(super) struct Relay {
    next_route: u32,
    members: BTreeMap<RelayRoute, usize>,
    /// Whose connection each route is or was: what they sent may still be on its way.
    behind: BTreeMap<RelayRoute, usize>,
}

/// What a peer sends to the relay.
pub(super) enum Uplink {
    /// To one connection.
    To(RelayRoute, Message),
    /// The end of the connection.
    End,
}

/// What a peer sends another one.
pub(super) enum Message {
    /// One of the three messages of a handshake.
    Handshake(u8),
    /// The group's secret, from the host.
    Secret,
    /// A sealed frame.
    Frame(Box<Frame>),
}

/// What the relay sends a peer.
pub(super) enum Downlink {
    /// It is let in; these connections were there before.
    Welcome(Vec<RelayRoute>),
    Joined(RelayRoute),
    Left(RelayRoute),
    /// Another connection holds the owner's key.
    Replaced,
    /// From another connection.
    From(RelayRoute, Message),
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
        if peer.is_host
            && let Some(before) = self.owner()
        {
            self.down(before, SHORT, Downlink::Replaced);
            self.left(before);
        }
        self.relay.next_route += 1;
        let route = RelayRoute(self.relay.next_route);
        let members: Vec<RelayRoute> = self.relay.members.keys().copied().collect();
        self.relay.members.insert(route, index);
        self.relay.behind.insert(route, index);
        let (others, sessions) = (BTreeSet::new(), BTreeSet::new());
        self.peers[index].line = Some(Line { route, up: Lane::default(), down: Lane::default(), others, sessions });
        self.down(route, SHORT, Downlink::Welcome(members.clone()));
        for other in members {
            self.down(other, SHORT, Downlink::Joined(route));
        }
    }

    /// The connection of the room's owner.
    fn owner(&self) -> Option<RelayRoute> {
        self.relay.members.iter().find(|(_, index)| self.peers[**index].is_host).map(|(route, _)| *route)
    }

    /// The peer behind a connection; it may be gone.
    pub(super) fn behind(&self, route: RelayRoute) -> Option<usize> {
        self.relay.behind.get(&route).copied()
    }

    /// Sends a frame over a session; without a connection it is lost.
    pub(super) fn send(&mut self, index: usize, to: RelayRoute, frame: Frame) {
        if let Frame::Forward(forward) = &frame
            && !forward.tokens.is_empty()
            && !forward.hidden.is_empty()
        {
            self.violate(format!("device {index} told the stage after the first one the token ids"));
        }
        self.note_question(index, &frame);
        if let (Frame::ExpertCall(_), Some(called)) = (&frame, self.behind(to)) {
            self.peers[called].called = self.now;
        }
        self.overhear(index, to, &frame);
        self.message(index, to, Message::Frame(Box::new(frame)));
    }

    fn message(&mut self, index: usize, to: RelayRoute, message: Message) {
        let bytes = self.length(&message);
        self.up(index, bytes, Uplink::To(to, message));
    }

    /// The host's driver gives a peer that was let in the group's secret.
    pub(super) fn share_secret(&mut self, index: usize, with: usize) {
        if let Some(to) = self.peers[with].line.as_ref().map(|line| line.route) {
            self.message(index, to, Message::Secret);
        }
    }

    /// The group has another secret: sessions under the old one end, and only those who get the new one meet again.
    pub(super) fn regroup(&mut self) {
        for index in (0..self.peers.len()).filter(|index| !self.peers[*index].is_host).collect::<Vec<_>>() {
            self.peers[index].has_group_secret = false;
            let routes = self.peers[index].line.as_ref().map(|line| line.sessions.clone()).unwrap_or_default();
            let with_host = |route: &RelayRoute| self.behind(*route).is_some_and(|other| self.peers[other].is_host);
            for route in routes.into_iter().filter(|route| !with_host(route)).collect::<Vec<_>>() {
                if let Some(line) = &mut self.peers[index].line {
                    line.sessions.remove(&route);
                }
                self.event(index, Event::RouteLeft(route));
            }
        }
    }

    /// Begins the handshakes that are possible now: with the host always, with others if this peer has the group's
    /// secret. The host waits for the others to begin.
    fn shake_hands(&mut self, index: usize, with: &[RelayRoute]) {
        if self.peers[index].is_host {
            return;
        }
        let group = self.peers[index].has_group_secret;
        for to in with {
            let is_owner = self.behind(*to).is_some_and(|other| self.peers[other].is_host);
            let is_up = self.peers[index].line.as_ref().is_none_or(|line| line.sessions.contains(to));
            if (group || is_owner) && !is_up {
                self.message(index, *to, Message::Handshake(1));
            }
        }
    }

    /// A message of a handshake arrives. Whoever began has a session after the second one, the other after the third.
    fn handshake(&mut self, index: usize, from: RelayRoute, step: u8) {
        let Some(other) = self.behind(from) else { return };
        let (own, theirs) = (&self.peers[index], &self.peers[other]);
        let Some(line) = &own.line else { return };
        let may = own.is_host || theirs.is_host || own.has_group_secret;
        if !may || line.sessions.contains(&from) {
            return;
        }
        if step < 3 {
            self.message(index, from, Message::Handshake(step + 1));
        }
        if step > 1 {
            let (own, theirs) = (&self.peers[index], &self.peers[other]);
            let proof = match (own.is_host, theirs.is_host) {
                (_, true) => Proof::Host,
                (true, _) if theirs.device.invite.is_some() => {
                    theirs.device.invite.map_or(Proof::Link, |number| Proof::Invite(invite(number)))
                }
                (true, _) if theirs.device.invited => Proof::Link,
                (true, _) if !theirs.has_group_secret => Proof::Visitor,
                _ => Proof::Group,
            };
            let (peer, at) = (theirs.id, UnixSeconds((self.now / 1e3) as u32));
            if let Some(line) = &mut self.peers[index].line {
                line.sessions.insert(from);
            }
            self.event(index, Event::PeerConnected { route: from, peer, device: device(peer), proof, at });
        }
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

    /// Nothing comes from a peer any more, and nobody closes its connection: the relay gives it up in the end.
    pub(super) fn fall_silent(&mut self, index: usize) {
        if let Some(route) = self.peers[index].line.as_ref().map(|line| line.route) {
            self.schedule(self.now + RELAY_TIMEOUT_MILLIS, index, Scheduled::GivenUp(route));
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
            Uplink::To(to, message) => {
                let bytes = self.length(&message);
                self.down(to, bytes, Downlink::From(route, message));
            }
        }
    }

    fn left(&mut self, route: RelayRoute) {
        if self.relay.members.remove(&route).is_some() {
            for other in self.relay.members.keys().copied().collect::<Vec<_>>() {
                self.down(other, SHORT, Downlink::Left(route));
            }
        }
    }

    fn down(&mut self, route: RelayRoute, bytes: usize, what: Downlink) {
        let Some(index) = self.relay.members.get(&route).copied() else { return };
        let (now, link) = (self.now, self.peers[index].device.link);
        let Some(line) = self.peers[index].line.as_mut().filter(|line| line.route == route) else { return };
        match line.down.pass(now, bytes, link.down, &link, &mut self.random) {
            Passage::Arrives(at) => self.schedule(at, index, Scheduled::AtPeer(route, what)),
            Passage::Breaks(at) => self.schedule(at, index, Scheduled::GivenUp(route)),
        }
    }

    /// Something reaches a peer, or later if its link is cut.
    pub(super) fn at_peer(&mut self, index: usize, route: RelayRoute, what: Downlink) {
        let (now, until) = (self.now, self.peers[index].cut_until);
        let Some(line) = self.peers[index].line.as_mut().filter(|line| line.route == route) else { return };
        if now < until {
            let at = line.down.hold_until(until);
            self.schedule(at, index, Scheduled::AtPeer(route, what));
            return;
        }
        match what {
            Downlink::Welcome(others) => {
                line.others.extend(&others);
                self.event(index, Event::Connected);
                self.shake_hands(index, &others);
            }
            Downlink::Joined(other) => {
                line.others.insert(other);
                if self.behind(other).is_some_and(|other| self.peers[other].is_host) {
                    self.shake_hands(index, &[other]);
                }
            }
            Downlink::Left(other) => {
                line.others.remove(&other);
                line.sessions.remove(&other);
                self.event(index, Event::RouteLeft(other));
            }
            Downlink::Replaced => self.event(index, Event::Replaced),
            Downlink::From(from, Message::Handshake(step)) => self.handshake(index, from, step),
            Downlink::From(_, Message::Secret) => {
                let others: Vec<RelayRoute> = line.others.iter().copied().collect();
                if !std::mem::replace(&mut self.peers[index].has_group_secret, true) {
                    self.shake_hands(index, &others);
                }
            }
            Downlink::From(from, Message::Frame(frame)) => {
                // What nobody can unseal is dropped.
                if line.sessions.contains(&from)
                    && let Some(sender) = self.behind(from)
                {
                    let SimPeer { id: sender, is_host, .. } = self.peers[sender];
                    if is_host {
                        self.note_order(index, &frame);
                    }
                    self.event(index, Event::Frame { route: from, from: sender, frame: *frame });
                }
            }
        }
    }

    /// Bytes of a message on the wire, computed only where a link's timing depends on it.
    fn length(&self, message: &Message) -> usize {
        match message {
            Message::Frame(frame) if !self.peers.iter().all(|peer| peer.device.link.ignores_length()) => {
                potluck_protocol::encode(frame).map_or(SHORT, |bytes| bytes.len() + ENVELOPE)
            }
            _ => SHORT,
        }
    }
}
