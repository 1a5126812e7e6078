//! Everything to and from the other members, sealed. Each message passes here: from the relay or a tab of this browser to
//! the sessions, and what they open becomes an event of the peer that they have authenticated.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

use potluck_panel::Sealing;
use potluck_plan::{Millis, PeerId};
use potluck_protocol::{Frame, FrameError, Invite, UnixSeconds, decode, encode};
use potluck_swarm::{Event, RelayRoute};
use potluck_trust::{Action, Certificate, Closed, NodeIdentity, Proof, Route, Sessions};

use super::LineOptions;
use crate::control::split_route;
use crate::credit::RelaySender;
use crate::direct::{DirectLinks, Frames};
use crate::events::Inputs;
use crate::node::Input;
use crate::platform::{Clock, Platform, SocketMessage, SocketSender};

/// The sessions with the members, and the way to them while the relay is connected.
pub(super) struct SealedRoom {
    sessions: RefCell<Sessions>,
    /// The newest session of each peer.
    routes: RefCell<BTreeMap<PeerId, Route>>,
    connection: RefCell<Option<Connection>>,
    /// What goes on of the connection after this peer has left the room: the last messages to slow members.
    leaving: RefCell<Option<Rc<RelaySender>>>,
    direct_frames: Cell<u64>,
    sealing: Cell<Sealing>,
    inputs: Inputs,
    clock: Rc<dyn Clock>,
}

/// Exists while this peer is in the room.
struct Connection {
    relay: Rc<RelaySender>,
    links: DirectLinks,
}

/// What the relay says when it lets this peer in.
pub(super) struct Welcome<'a> {
    pub own: u32,
    pub owner: Option<u32>,
    pub members: &'a [u32],
    /// Bytes that may be on the way to one receiver.
    pub window: u64,
    /// The relay takes several messages in one.
    pub takes_parts: bool,
}

impl SealedRoom {
    pub fn new(platform: &Platform, options: &LineOptions, inputs: Inputs) -> Self {
        let identity = NodeIdentity::new(&options.keys, platform.random);
        let sessions = Sessions::new(identity, options.room.clone(), options.role.clone(), platform.random);
        Self {
            sessions: RefCell::new(sessions),
            routes: RefCell::default(),
            connection: RefCell::default(),
            leaving: RefCell::default(),
            direct_frames: Cell::new(0),
            sealing: Cell::default(),
            inputs,
            clock: platform.clock.clone(),
        }
    }

    /// The relay let this peer in; handshakes begin.
    pub fn connect(&self, socket: Rc<dyn SocketSender>, welcome: &Welcome<'_>, random: fn(&mut [u8])) {
        let relay = Rc::new(RelaySender::new(socket, welcome.window, welcome.takes_parts));
        let links = DirectLinks::new(relay.clone(), random);
        *self.connection.borrow_mut() = Some(Connection { relay, links });
        let members: Vec<Route> = welcome.members.iter().copied().map(Route).collect();
        let (own, owner) = (Route(welcome.own), welcome.owner.map(Route));
        self.sessions.borrow_mut().welcomed(own, owner, &members, self.clock.now());
        self.perform();
    }

    /// The connection is over, and every session with it. True if there was one.
    pub fn disconnect(&self) -> bool {
        self.end().inspect(|relay| relay.close()).is_some()
    }

    /// This peer leaves the room. True if the connection has to go on until slow members have taken their last messages.
    pub fn leave(&self) -> bool {
        let slow = self.end().filter(|relay| relay.finish());
        let goes_on = slow.is_some();
        *self.leaving.borrow_mut() = slow;
        goes_on
    }

    /// Nothing is wanted from the connection any more but that it ends.
    pub fn is_leaving(&self) -> bool {
        self.leaving.borrow().is_some()
    }

    /// Every session is over, and every direct link.
    fn end(&self) -> Option<Rc<RelaySender>> {
        self.sessions.borrow_mut().disconnected();
        self.routes.borrow_mut().clear();
        self.connection.borrow_mut().take().map(|connection| connection.relay)
    }

    pub fn joined(&self, route: u32, is_owner: bool) {
        self.sessions.borrow_mut().joined(Route(route), is_owner, self.clock.now());
        self.perform();
    }

    pub fn left(&self, route: u32) {
        if let Some(relay) = &*self.leaving.borrow() {
            return relay.left(route);
        }
        self.with_connection(|connection| {
            connection.relay.left(route);
            connection.links.left(route);
        });
        self.sessions.borrow_mut().left(Route(route));
        self.session_ended(Route(route));
    }

    /// The relay reports what a receiver took.
    pub fn taken(&self, route: u32, bytes: u64) {
        if let Some(relay) = &*self.leaving.borrow() {
            return relay.taken(route, bytes);
        }
        self.with_connection(|connection| connection.relay.taken(route, bytes));
    }

    pub fn send(&self, RelayRoute(to): RelayRoute, frame: &Frame) -> Result<(), FrameError> {
        let began = self.clock.now();
        let plain = encode(frame)?;
        let sealed = self.sessions.borrow_mut().seal(Route(to), &plain);
        self.count(plain.len(), began);
        if let Some(sealed) = sealed {
            self.with_connection(|connection| connection.links.send(to, sealed));
            self.end_slow_sessions();
        }
        Ok(())
    }

    /// What is sent until [`SealedRoom::release`] goes together.
    pub fn hold(&self) {
        self.with_connection(|connection| connection.relay.hold());
    }

    pub fn release(&self) {
        self.with_connection(|connection| connection.relay.release());
    }

    /// Messages to some receivers were dropped, because too much waited for them.
    fn end_slow_sessions(&self) {
        let slow = self.with_connection(|connection| connection.relay.take_too_slow()).unwrap_or_default();
        if !slow.is_empty() {
            let now = self.clock.now();
            slow.into_iter().for_each(|route| self.sessions.borrow_mut().end(Route(route), Closed::TooSlow, now));
            self.perform();
        }
    }

    /// This peer is in the room.
    pub fn is_connected(&self) -> bool {
        self.connection.borrow().is_some()
    }

    pub fn admit(&self, peer: PeerId) {
        let route = self.routes.borrow().get(&peer).copied();
        if let Some(route) = route {
            self.sessions.borrow_mut().admit(route);
            self.perform();
        }
    }

    pub fn regroup(&self, generation: u32) {
        self.sessions.borrow_mut().regroup(generation);
    }

    pub fn tick(&self) {
        if self.connection.borrow().is_some() {
            self.sessions.borrow_mut().tick(self.clock.now());
            self.perform();
        }
    }

    pub fn direct_frames(&self) -> u64 {
        self.direct_frames.get()
    }

    /// A binary message from the relay.
    pub fn relayed(&self, message: &[u8]) {
        let Some((route, message)) = split_route(message) else { return };
        if !self.sessions.borrow().knows(Route(route)) {
            return;
        }
        match self.with_connection(|connection| connection.links.relayed(route, message)) {
            Some(Frames::One(message)) => self.received(route, message),
            Some(Frames::Many(messages)) => messages.iter().for_each(|message| self.received(route, message)),
            None => {}
        }
    }

    /// A channel to a tab of this browser that claims this route.
    pub fn channel_opened(&self, route: u32, channel: Rc<dyn SocketSender>) {
        self.with_connection(|connection| connection.links.opened(route, channel));
    }

    /// A message on such a channel.
    pub fn on_channel(&self, route: u32, message: SocketMessage) {
        let is_frame = matches!(message, SocketMessage::Binary(_));
        self.direct_frames.update(|frames| frames + u64::from(is_frame));
        let messages = self.with_connection(|connection| connection.links.on_channel(route, message));
        messages.iter().flatten().for_each(|message| self.received(route, message));
    }

    fn received(&self, route: u32, message: &[u8]) {
        let now = self.clock.now();
        self.sessions.borrow_mut().received(Route(route), message, now);
        self.count(message.len(), now);
        self.perform();
    }

    fn count(&self, bytes: usize, began: Millis) {
        let Sealing { messages, bytes: before, ms } = self.sealing.get();
        let ms = ms + self.clock.now().0 - began.0;
        self.sealing.set(Sealing { messages: messages + 1, bytes: before + bytes as u64, ms });
    }

    pub fn sealing(&self) -> Sealing {
        self.sealing.get()
    }

    fn perform(&self) {
        let actions = self.sessions.borrow_mut().take_actions();
        for action in actions {
            match action {
                Action::Send(Route(to), message) => {
                    self.with_connection(|connection| connection.links.send(to, message));
                }
                Action::Up(route, certificate, proof) => {
                    self.routes.borrow_mut().insert(certificate.peer, route);
                    let (route, proof) = (RelayRoute(route.0), proof_for_peer(proof));
                    let at = UnixSeconds(u32::try_from(self.clock.unix_seconds()).unwrap_or(u32::MAX));
                    let Certificate { peer, device, .. } = certificate;
                    self.inputs.event(Event::PeerConnected { route, peer, device, proof, at });
                }
                Action::Down(route, why) => {
                    log::warn!("the session with route {} ended: {why}", route.0);
                    self.session_ended(route);
                }
                Action::Failed(route, why) => log::warn!("no session with route {}: {why}", route.0),
                Action::Frame(route, from, bytes) => self.frame(route, from, &bytes),
                Action::OtherVersion(theirs) => self.inputs.send(Input::BadFrame(FrameError::Version { theirs })),
            }
        }
    }

    fn session_ended(&self, route: Route) {
        self.routes.borrow_mut().retain(|_, known| *known != route);
        self.inputs.event(Event::RouteLeft(RelayRoute(route.0)));
    }

    fn frame(&self, route: Route, from: PeerId, bytes: &[u8]) {
        match decode(bytes) {
            Ok(frame) => self.inputs.event(Event::Frame { route: RelayRoute(route.0), from, frame }),
            Err(error) => {
                log::warn!("a frame of {from:?} was dropped: {error}");
                self.inputs.send(Input::BadFrame(error));
            }
        }
    }

    /// `None` while disconnected.
    fn with_connection<T>(&self, work: impl FnOnce(&mut Connection) -> T) -> Option<T> {
        self.connection.borrow_mut().as_mut().map(work)
    }
}

fn proof_for_peer(proof: Proof) -> potluck_swarm::Proof {
    match proof {
        Proof::Host => potluck_swarm::Proof::Host,
        Proof::Link => potluck_swarm::Proof::Link,
        // A kind of invite that only a later version knows says nothing here: the host is asked.
        Proof::Invite(terms) => {
            Invite::from_bytes(terms).map_or(potluck_swarm::Proof::Visitor, potluck_swarm::Proof::Invite)
        }
        Proof::Group => potluck_swarm::Proof::Group,
        Proof::Visitor => potluck_swarm::Proof::Visitor,
    }
}
