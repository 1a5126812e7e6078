//! The simulated relay: it forwards frames between connections and reports who came and went. Above it, what a driver
//! does: sealed sessions with the host, and with the other members once the host has let both in.

use std::collections::{BTreeMap, BTreeSet};

use potluck_plan::Millis;
use potluck_protocol::{EarlierLinks, Frame, Term, UnixSeconds};
use potluck_swarm::{Event, Proof, RelayRoute};

use super::network::{Lane, Passage};
use super::peer::{SimPeer, device, invite};
use super::world::{Scheduled, World};

/// The relay ends a connection that was silent for this long (its pings: 2 s apart, 4 may be missed).
const RELAY_TIMEOUT_MILLIS: f64 = 10_000.0;
/// Who hosts in a later term takes the seat of an owner that was not heard for so long.
const OWNER_SILENCE_MILLIS: f64 = 4_000.0;
/// A driver redials after this time.
const REDIAL_MILLIS: f64 = 1_000.0;
/// Size of a frame where its length does not matter.
const SHORT: usize = 100;
/// Bytes of a frame's route and seal.
const ENVELOPE: usize = 4 + 24;
/// Earlier links that a relay knows, and a host answers to.
pub(super) const EARLIER_LINKS: u32 = 16;
/// Sessions with members that have not got the renewed keys end after this time.
const GRACE_MILLIS: f64 = 5_000.0;
/// What somebody is told by whom the relay does not let in.
pub(super) const NO_SEAT: &str = "This link was replaced. Ask the host for the new one.";

/// A peer's connection to the relay, as the peer sees it.
pub(super) struct Line {
    pub route: RelayRoute,
    pub up: Lane,
    pub down: Lane,
    /// The other connections in the room.
    others: BTreeSet<RelayRoute>,
    /// Those among them with which a sealed session is up.
    pub sessions: BTreeSet<RelayRoute>,
    /// Those that have to shake hands under the renewed secret, and until when: then the session ends.
    ending: BTreeMap<RelayRoute, f64>,
    /// When handshakes were last begun anew: the next time is no sooner than they take.
    repeated: f64,
}

/// The relay's side: who is connected.
#[derive(Default)]
pub(super) struct Relay {
    next_route: u32,
    members: BTreeMap<RelayRoute, usize>,
    /// Whose connection each route is or was: what they sent may still be on its way.
    behind: BTreeMap<RelayRoute, usize>,
    /// The number of the room's link and of its earlier ones, as the owner has said last.
    links: Option<(u32, EarlierLinks)>,
    /// The latest term in which somebody hosted, and when that host was heard last.
    term: Term,
    heard: f64,
    owner: Option<RelayRoute>,
}

/// What a peer sends to the relay.
pub(super) enum Uplink {
    /// To one connection.
    To(RelayRoute, Message),
    /// The host says which links the room has and had.
    Links(u32, EarlierLinks),
    /// The host is there, and said so at this time.
    Renew(f64),
    /// The end of the connection.
    End,
}

/// What a peer sends another one.
pub(super) enum Message {
    /// One of the three messages of a handshake, which began under the group secret of this generation, if the initiator has one.
    Handshake(u8, Option<u32>),
    /// The group's secret of this generation, from the host, and the room's link for whoever came by it.
    Secret(u32, Option<u32>),
    /// The same where the host renewed them: sessions go on.
    Renewed(u32, Option<u32>),
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
    /// Another device hosts in a later term.
    Superseded,
    /// What the host said at this time was heard.
    Renewed(f64),
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
        if peer.is_host {
            let term = peer.term;
            let is_present =
                term > self.relay.term && self.owner().is_some() && self.now - self.relay.heard < OWNER_SILENCE_MILLIS;
            if term < self.relay.term || is_present {
                let refused = if is_present { Event::HostPresent } else { Event::Superseded };
                return self.schedule(self.now, index, Scheduled::Event(refused));
            }
            let peer = &self.peers[index];
            self.relay.links = Some((peer.link, peer.doors.earlier_links(EARLIER_LINKS)));
            let before = std::mem::replace(&mut self.relay.term, term);
            self.relay.heard = self.now;
            if let Some(owner) = self.owner() {
                let why = if before < term { Downlink::Superseded } else { Downlink::Replaced };
                self.down(owner, SHORT, why);
                self.left(owner);
            }
        } else if let Some((link, earlier)) = self.relay.links.as_ref().filter(|_| peer.by_link()) {
            let has = peer.link;
            if earlier.for_nobody.contains(&has) {
                self.peers[index].closed = Some(NO_SEAT.into());
                return;
            }
            if has != *link && !earlier.for_returning.contains(&has) {
                // Not a key of this room: its driver tries again.
                self.schedule(self.now + REDIAL_MILLIS, index, Scheduled::Dial);
                return;
            }
        }
        self.relay.next_route += 1;
        let route = RelayRoute(self.relay.next_route);
        let members: Vec<RelayRoute> = self.relay.members.keys().copied().collect();
        self.relay.members.insert(route, index);
        if self.peers[index].is_host {
            self.relay.owner = Some(route);
        }
        self.relay.behind.insert(route, index);
        let (others, sessions, ending) = Default::default();
        let (up, down) = Default::default();
        self.peers[index].line = Some(Line { route, up, down, others, sessions, ending, repeated: 0.0 });
        self.down(route, SHORT, Downlink::Welcome(members.clone()));
        for other in members {
            self.down(other, SHORT, Downlink::Joined(route));
        }
    }

    /// Who hosts the room, by the relay's word.
    pub(super) fn host_now(&self) -> Option<usize> {
        self.owner().and_then(|route| self.behind(route))
    }

    /// The connection of the room's owner.
    fn owner(&self) -> Option<RelayRoute> {
        self.relay.owner
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

    /// The host's driver gives a peer that was let in the keys. The sessions of `renewed` ones go on.
    pub(super) fn share_secret(&mut self, index: usize, with: usize, renewed: bool) {
        let (host, other) = (&self.peers[index], &self.peers[with]);
        let (Some(to), Some(group)) = (other.line.as_ref().map(|line| line.route), host.group) else { return };
        let link = other.by_link().then_some(host.link);
        let message = if renewed { Message::Renewed(group, link) } else { Message::Secret(group, link) };
        self.message(index, to, message);
    }

    /// The host's driver tells the relay which links the room has, if it was ever renewed.
    pub(super) fn tell_links(&mut self, index: usize) {
        let host = &self.peers[index];
        if host.link > 0 {
            let mut earlier = host.doors.earlier_links(EARLIER_LINKS);
            let link = host.link;
            earlier.for_returning.retain(|number| *number < link);
            earlier.for_nobody.retain(|number| *number < link);
            self.up(index, SHORT, Uplink::Links(link, earlier));
        }
    }

    /// The host gave a peer the renewed secret: its sessions with members go on under that, or end.
    fn rekey(&mut self, index: usize) {
        let Some(line) = &self.peers[index].line else { return };
        let (others, sessions): (Vec<RelayRoute>, _) = (line.others.iter().copied().collect(), line.sessions.clone());
        let is_owner = |route: &RelayRoute| self.behind(*route).is_some_and(|other| self.peers[other].is_host);
        let members: Vec<RelayRoute> = others.into_iter().filter(|route| !is_owner(route)).collect();
        let ends = self.now + GRACE_MILLIS;
        if let Some(line) = &mut self.peers[index].line {
            for route in members.iter().filter(|route| sessions.contains(route)) {
                line.ending.entry(*route).or_insert(ends);
            }
        }
        members
            .into_iter()
            .for_each(|route| self.message(index, route, Message::Handshake(1, self.peers[index].group)));
        self.schedule(ends, index, Scheduled::Overdue);
    }

    /// A peer that has renewed keys ends the sessions with members that did not follow, and shakes hands again.
    pub(super) fn end_overdue(&mut self, index: usize) {
        let (now, Some(line)) = (self.now, &self.peers[index].line) else { return };
        let own = line.route;
        let overdue: Vec<RelayRoute> =
            line.ending.iter().filter(|(_, ends)| **ends <= now).map(|(route, _)| *route).collect();
        self.begin_anew(index, own, overdue);
        self.repeat_handshakes(index);
    }

    /// The sessions with these members end, and both sides shake hands again.
    fn begin_anew(&mut self, index: usize, own: RelayRoute, routes: Vec<RelayRoute>) {
        for route in routes {
            let other = self.at(route);
            for (of, with) in [(Some(index), route), (other, own)] {
                let line = of.and_then(|of| self.peers[of].line.as_mut());
                let was_up = line.is_some_and(|line| {
                    line.ending.remove(&with);
                    line.sessions.remove(&with)
                });
                if let Some(of) = of.filter(|_| was_up) {
                    self.event(of, Event::RouteLeft(with));
                }
            }
            if let Some(line) = &mut self.peers[index].line {
                line.repeated = self.now;
            }
            self.shake_hands(index, &[route]);
        }
    }

    /// Handshakes that came to nothing, because one side had another secret by then, are begun again until both sides have a session.
    /// Of two members the one that came later does so.
    fn repeat_handshakes(&mut self, index: usize) {
        let Some(line) = &self.peers[index].line else { return };
        let (own, group) = (line.route, self.peers[index].group);
        let lacks = |route: &&RelayRoute| {
            let other = self.at(**route).map(|other| &self.peers[other]);
            other
                .filter(|other| **route < own && !other.is_host && group.is_some() && other.group == group)
                .is_some_and(|other| {
                    let has_own = other.line.as_ref().is_some_and(|line| line.sessions.contains(&own));
                    !has_own || !line.sessions.contains(*route)
                })
        };
        let lacking: Vec<RelayRoute> = line.others.iter().filter(lacks).copied().collect();
        if lacking.is_empty() {
            return;
        }
        let next = line.repeated + GRACE_MILLIS;
        if self.now < next {
            return self.schedule(next, index, Scheduled::Overdue);
        }
        self.schedule(self.now + GRACE_MILLIS, index, Scheduled::Overdue);
        self.begin_anew(index, own, lacking);
    }

    /// The peer that is connected at this route now.
    fn at(&self, route: RelayRoute) -> Option<usize> {
        let is_there = |other: &usize| self.peers[*other].line.as_ref().is_some_and(|line| line.route == route);
        self.behind(route).filter(is_there)
    }

    /// The group has another secret: sessions under the old one end, and only those who get the new one meet again.
    pub(super) fn regroup(&mut self) {
        for index in (0..self.peers.len()).filter(|index| !self.peers[*index].is_host).collect::<Vec<_>>() {
            self.peers[index].group = None;
            self.end_member_sessions(index);
        }
    }

    /// A peer's sessions with other members end.
    fn end_member_sessions(&mut self, index: usize) {
        let routes = self.peers[index].line.as_ref().map(|line| line.sessions.clone()).unwrap_or_default();
        let with_host = |route: &RelayRoute| self.behind(*route).is_some_and(|other| self.peers[other].is_host);
        for route in routes.into_iter().filter(|route| !with_host(route)).collect::<Vec<_>>() {
            if let Some(line) = &mut self.peers[index].line {
                line.sessions.remove(&route);
                line.ending.remove(&route);
            }
            self.event(index, Event::RouteLeft(route));
        }
    }

    /// Begins the handshakes that are possible now: with the host always, with others if this peer has the group's
    /// secret. The host waits for the others to begin.
    fn shake_hands(&mut self, index: usize, with: &[RelayRoute]) {
        if self.peers[index].is_host {
            return;
        }
        let group = self.peers[index].group;
        for to in with {
            let is_owner = self.behind(*to).is_some_and(|other| self.peers[other].is_host);
            let is_up = self.peers[index].line.as_ref().is_none_or(|line| line.sessions.contains(to));
            if (group.is_some() || is_owner) && !is_up {
                self.message(index, *to, Message::Handshake(1, group));
            }
        }
    }

    /// A message of a handshake arrives. Whoever began has a session after the second one, the other after the third.
    fn handshake(&mut self, index: usize, from: RelayRoute, step: u8, group: Option<u32>) {
        let Some(other) = self.behind(from) else { return };
        let (own, theirs) = (&self.peers[index], &self.peers[other]);
        let Some(line) = &own.line else { return };
        // What the host does not know it does not answer to.
        let known = |guest: &SimPeer, host: &SimPeer| !guest.by_link() || guest.link <= host.link;
        let may = match (own.is_host, theirs.is_host) {
            (true, _) => known(theirs, own),
            (_, true) => known(own, theirs),
            _ => group.is_some() && own.group == group,
        };
        if !may || line.sessions.contains(&from) && !line.ending.contains_key(&from) {
            return;
        }
        if step < 3 {
            self.message(index, from, Message::Handshake(step + 1, group));
        }
        if step > 1 {
            let (own, theirs) = (&self.peers[index], &self.peers[other]);
            let proof = match (own.is_host, theirs.is_host) {
                (_, true) => Proof::Host,
                (true, _) if theirs.device.invite.is_some() => {
                    theirs.device.invite.map_or(Proof::Link(0), |number| Proof::Invite(invite(number)))
                }
                (true, _) if theirs.device.invited => Proof::Link(theirs.link),
                (true, _) if theirs.group.is_none() => Proof::Visitor,
                _ => Proof::Group,
            };
            let (peer, at) = (theirs.id, UnixSeconds((self.now / 1e3) as u32));
            if let Some(line) = &mut self.peers[index].line {
                line.ending.remove(&from);
                if !line.sessions.insert(from) {
                    // The session goes on under another key.
                    return;
                }
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

    pub(super) fn up(&mut self, index: usize, bytes: usize, what: Uplink) {
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
            Uplink::Links(link, earlier) => self.relay.links = Some((link, earlier)),
            Uplink::Renew(asked) => {
                self.relay.heard = self.now;
                self.down(route, SHORT, Downlink::Renewed(asked));
            }
            Uplink::To(to, message) => {
                let bytes = self.length(&message);
                self.down(to, bytes, Downlink::From(route, message));
            }
        }
    }

    fn left(&mut self, route: RelayRoute) {
        if self.relay.members.remove(&route).is_some() {
            self.relay.owner.take_if(|owner| *owner == route);
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
                line.ending.remove(&other);
                self.event(index, Event::RouteLeft(other));
            }
            Downlink::Replaced => self.event(index, Event::Replaced),
            Downlink::Superseded => self.event(index, Event::Superseded),
            Downlink::Renewed(asked) => self.event(index, Event::LeaseRenewed { asked: Millis(asked) }),
            Downlink::From(from, Message::Handshake(step, group)) => self.handshake(index, from, step, group),
            Downlink::From(_, Message::Secret(group, link)) => {
                let others: Vec<RelayRoute> = line.others.iter().copied().collect();
                self.peers[index].link = link.unwrap_or(self.peers[index].link);
                let before = self.peers[index].group.replace(group);
                if before != Some(group) {
                    if before.is_some() {
                        self.end_member_sessions(index);
                    }
                    self.shake_hands(index, &others);
                    if self.peers[0].link > 0 {
                        self.schedule(self.now + GRACE_MILLIS, index, Scheduled::Overdue);
                    }
                }
            }
            Downlink::From(from, Message::Renewed(group, link)) if line.sessions.contains(&from) => {
                self.peers[index].link = link.unwrap_or(self.peers[index].link);
                self.peers[index].group = Some(group);
                self.rekey(index);
            }
            Downlink::From(_, Message::Renewed(..)) => {}
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
