//! The other members, as far as there are sealed sessions with them. Each message passes here: from the relay or a tab of this browser
//! to the sessions, and what they open becomes an event of the peer that they have authenticated.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

use potluck_panel::Sealing;
use potluck_plan::{Millis, PeerId};
use potluck_protocol::{EarlierLinks, Frame, FrameError, Invite, RevokedInvites, Signal, UnixSeconds, decode, encode};
use potluck_relay_api::{self as relay_api, Binary, Request};
use potluck_swarm::{Event as MemberEvent, RelayRoute};
use potluck_text::texts;
use potluck_trust::{Action, Certificate, Closed, NodeIdentity, Proof, RoomRole, Route, SessionWords, Sessions};

use super::event::Event;
use super::intake::{Intake, Verdict};
use super::options::LineOptions;
use crate::direct::{DirectLinks, Frames};
use crate::events::EventSink;
use crate::platform::{Clock, Platform, SocketSender};
use crate::relay::RelaySender;

/// A host tells the relay this often that it is there.
const RENEW_MILLIS: f64 = 1_000.0;

/// The sessions with the members, and the way to them while the relay is connected.
pub struct Members {
    sessions: RefCell<Sessions>,
    /// The newest session of each peer.
    newest: RefCell<BTreeMap<PeerId, Newest>>,
    connection: RefCell<Option<Connection>>,
    /// What goes on of the connection after this peer has left the room: the last messages to slow members.
    leaving: RefCell<Option<Rc<RelaySender>>>,
    direct_frames: Cell<u64>,
    /// This device may connect to others.
    connects: Cell<bool>,
    /// The host lets members connect.
    host_allows: Cell<bool>,
    sealing: Cell<Sealing>,
    intake: RefCell<Intake>,
    /// The room's id.
    room: String,
    /// The room is this peer's.
    is_owner: bool,
    /// When it last told the relay that it is there.
    renewing: Cell<Millis>,
    /// The revoked invites.
    revoked: RefCell<RevokedInvites>,
    /// The links that the room had before.
    earlier_links: RefCell<EarlierLinks>,
    /// Where the host is, by what it has proved.
    host: Cell<Option<Route>>,
    /// Why this peer cannot stay in the room.
    fault: RefCell<Option<String>>,
    /// That the host uses another version.
    said_version: Cell<bool>,
    events: EventSink<Event>,
    clock: Rc<dyn Clock>,
}

/// The newest session of a peer.
struct Newest {
    route: Route,
    words: SessionWords,
    with_host: bool,
}

/// The words that people may compare to rule out a man in the middle.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Words {
    /// Of each session, by its other end.
    pub sessions: Vec<(PeerId, String)>,
    /// Of the session with the host.
    pub host: Option<String>,
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

impl Members {
    pub(super) fn new(platform: &Platform, options: &LineOptions, events: EventSink<Event>) -> Self {
        let identity = NodeIdentity::new(&options.keys, platform.random);
        let sessions = Sessions::new(identity, options.room.clone(), options.role.clone(), platform.random);
        Self {
            sessions: RefCell::new(sessions),
            newest: RefCell::default(),
            connection: RefCell::default(),
            leaving: RefCell::default(),
            direct_frames: Cell::new(0),
            renewing: Cell::new(Millis(f64::MIN)),
            connects: Cell::new(options.connects),
            host_allows: Cell::new(false),
            sealing: Cell::default(),
            intake: RefCell::default(),
            room: options.room.clone(),
            is_owner: matches!(options.role, RoomRole::Owner { .. }),
            revoked: RefCell::new(options.revoked.clone()),
            earlier_links: RefCell::new(options.earlier_links.clone()),
            host: Cell::new(None),
            fault: RefCell::default(),
            said_version: Cell::new(false),
            events,
            clock: platform.clock.clone(),
        }
    }

    /// The relay let this peer in; handshakes begin.
    pub(super) fn connect(&self, socket: Rc<dyn SocketSender>, welcome: &Welcome<'_>, platform: &Platform) {
        let relay = Rc::new(RelaySender::new(socket, welcome.window, welcome.takes_parts));
        let links = DirectLinks::new(relay.clone(), platform.random, welcome.own, platform.connections.clone());
        self.host_allows.set(false);
        *self.connection.borrow_mut() = Some(Connection { relay, links });
        self.allow_connections();
        self.tell_links();
        self.tell_revoked();
        let members: Vec<Route> = welcome.members.iter().copied().map(Route).collect();
        let (own, owner) = (Route(welcome.own), welcome.owner.map(Route));
        self.sessions.borrow_mut().welcomed(own, owner, &members, self.clock.now());
        members.iter().for_each(|route| self.met(*route));
        self.perform();
    }

    /// The connection is over, and every session with it. True if there was one.
    pub(super) fn disconnect(&self) -> bool {
        self.end().inspect(|relay| relay.close()).is_some()
    }

    /// This peer leaves the room. True if the connection has to go on until slow members have taken their last messages.
    pub(super) fn leave(&self) -> bool {
        let slow = self.end().filter(|relay| relay.finish());
        let goes_on = slow.is_some();
        *self.leaving.borrow_mut() = slow;
        goes_on
    }

    /// Nothing is wanted from the connection any more but that it ends.
    pub(super) fn is_leaving(&self) -> bool {
        self.leaving.borrow().is_some()
    }

    /// Every session is over, and every direct link.
    fn end(&self) -> Option<Rc<RelaySender>> {
        self.sessions.borrow_mut().disconnected();
        self.intake.borrow_mut().clear();
        self.newest.borrow_mut().clear();
        self.host.set(None);
        self.fault.take();
        self.connection.borrow_mut().take().map(|connection| connection.relay)
    }

    pub(super) fn joined(&self, route: u32, is_owner: bool) {
        self.sessions.borrow_mut().joined(Route(route), is_owner, self.clock.now());
        self.met(Route(route));
        self.perform();
    }

    /// Somebody is in the room. On the host it is a stranger until it is let in, whether it shakes hands or only sends.
    fn met(&self, route: Route) {
        if self.is_owner && self.sessions.borrow().knows(route) {
            self.intake.borrow_mut().stranger(route, self.clock.now());
        }
    }

    pub(super) fn left(&self, route: u32) {
        if let Some(relay) = &*self.leaving.borrow() {
            return relay.left(route);
        }
        self.with_connection(|connection| {
            connection.relay.left(route);
            connection.links.left(route);
        });
        self.sessions.borrow_mut().left(Route(route));
        self.intake.borrow_mut().left(Route(route));
        if self.host.get() == Some(Route(route)) {
            self.host.set(None);
        }
        self.session_ended(Route(route));
    }

    /// The relay reports what a receiver took.
    pub(super) fn taken(&self, route: u32, bytes: u64) {
        if let Some(relay) = &*self.leaving.borrow() {
            return relay.taken(route, bytes);
        }
        self.with_connection(|connection| connection.relay.taken(route, bytes));
    }

    /// Sends frames, sealed; those that pass the relay go together. Without a session a frame is lost, like frames in flight when a
    /// connection breaks. Returns why frames cannot be sent.
    pub fn send(&self, frames: impl IntoIterator<Item = (RelayRoute, Frame)>) -> Vec<FrameError> {
        let _together = self.with_connection(|connection| connection.relay.hold());
        frames.into_iter().filter_map(|(to, frame)| self.send_frame(to, &frame).err()).collect()
    }

    fn send_frame(&self, to: RelayRoute, frame: &Frame) -> Result<(), FrameError> {
        let began = self.clock.now();
        let plain = encode(frame)?;
        let sealed = self.sessions.borrow_mut().seal(Route(to.0), &plain);
        self.count(plain.len(), began);
        if let Some(sealed) = sealed {
            self.with_connection(|connection| {
                if is_work(frame) {
                    connection.links.works_with(to.0, sealed.len());
                }
                connection.links.send(to.0, sealed);
            });
            self.end_slow_sessions();
        }
        Ok(())
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
    pub(super) fn is_connected(&self) -> bool {
        self.connection.borrow().is_some()
    }

    /// On the host: lets a peer in. To the relay it is no longer a visitor.
    pub fn let_in(&self, peer: PeerId) {
        let route = self.newest.borrow().get(&peer).map(|newest| newest.route);
        if let Some(route) = route {
            self.intake.borrow_mut().let_in(route);
            self.ask(&Request::LetIn { route: relay_api::Route(route.0) });
        }
    }

    /// On the host: asks the relay to evict the peer at this address, once the last word to it has gone.
    pub fn put_out(&self, route: RelayRoute) {
        let request = Request::PutOut { route: relay_api::Route(route.0) };
        self.with_connection(|connection| connection.relay.ask_after(route.0, request, self.clock.now()));
    }

    /// On the host: tells the relay which invites are revoked, and the room's earlier links. It is not told of doors with another link than
    /// the one in use: renewed keys count only once they are stored, and the relay hears of them by [`Self::renew`].
    pub fn set_doors(&self, link: u32, revoked: RevokedInvites, earlier: EarlierLinks) {
        let are_news = self.earlier_links.replace(earlier) != *self.earlier_links.borrow();
        if !matches!(self.role(), RoomRole::Owner { link: in_use, .. } if in_use == link) {
            return;
        }
        self.revoke(revoked);
        if are_news {
            self.tell_links();
        }
    }

    /// Exactly these invites are revoked.
    fn revoke(&self, invites: RevokedInvites) {
        if self.revoked.replace(invites) != *self.revoked.borrow() {
            self.tell_revoked();
        }
    }

    fn tell_revoked(&self) {
        if self.is_owner {
            let RevokedInvites { for_nobody, for_returning } = self.revoked.borrow().clone();
            self.ask(&Request::TakenBack { invites: for_returning });
            self.ask(&Request::Revoked { invites: for_nobody });
        }
    }

    /// Tells the relay the keys of the room's links, if the link was ever renewed.
    fn tell_links(&self) {
        let RoomRole::Owner { key, secret, link, .. } = self.role() else { return };
        if link == 0 {
            return;
        }
        let join_key = |number: u32| Binary(key.link(&secret, number).join_public());
        // A renewed link that is not kept yet is nobody's, and the one that is in use is no earlier one.
        let keys = |numbers: &[u32]| numbers.iter().copied().filter(|number| *number < link).map(join_key).collect();
        let EarlierLinks { for_nobody, for_returning } = &*self.earlier_links.borrow();
        self.ask(&Request::Links {
            join_key: join_key(link),
            for_returning: keys(for_returning),
            for_nobody: keys(for_nobody),
        });
    }

    /// How this peer takes part: with the newest keys that it has.
    pub(super) fn role(&self) -> RoomRole {
        self.sessions.borrow().role().clone()
    }

    fn ask(&self, request: &Request) {
        self.with_connection(|connection| connection.relay.ask(request));
    }

    /// On the host: a peer may meet the other members.
    pub fn admit(&self, peer: PeerId) {
        let route = self.newest.borrow().get(&peer).map(|newest| newest.route);
        if let Some(route) = route {
            self.sessions.borrow_mut().admit(route);
            self.perform();
        }
    }

    /// The host's side: the group has another secret.
    pub fn regroup(&self, generation: u32) {
        self.sessions.borrow_mut().regroup(generation);
    }

    /// On the host: the room has the link with this number and the group secret of this generation.
    pub fn renew(&self, link: u32, generation: u32) {
        self.sessions.borrow_mut().renew(link, generation);
        self.tell_links();
    }

    /// On the host: a member that stays gets the renewed keys.
    pub fn give_renewed(&self, peer: PeerId) {
        let route = self.newest.borrow().get(&peer).map(|newest| newest.route);
        if let Some(route) = route {
            self.sessions.borrow_mut().give_renewed(route);
            self.perform();
        }
    }

    /// The words of the sessions that are up.
    pub fn words(&self) -> Words {
        let newest = self.newest.borrow();
        let with_host = newest.values().find(|newest| newest.with_host);
        Words {
            sessions: newest.iter().map(|(peer, newest)| (*peer, newest.words.to_string())).collect(),
            host: with_host.map(|newest| newest.words.to_string()),
        }
    }

    /// Repeats handshakes that were not answered. Called a few times a second.
    pub fn tick(&self) {
        if self.connection.borrow().is_some() {
            self.sessions.borrow_mut().tick(self.clock.now());
            self.perform();
            self.with_connection(|connection| connection.relay.tick(self.clock.now()));
            self.renew_lease();
            self.on_links(|links, now| links.tick(now));
        }
    }

    /// A host tells the relay that it is there. The relay's answer has the time at which it did so.
    fn renew_lease(&self) {
        let now = self.clock.now();
        if self.is_owner && now.0 - self.renewing.get().0 >= RENEW_MILLIS {
            self.renewing.set(now);
            self.ask(&Request::Ping { nonce: now.0.max(0.0) as u64 });
        }
    }

    /// The relay has heard what this host said at a time.
    pub(super) fn lease_renewed(&self, nonce: u64) {
        let asked = Millis(nonce as f64);
        if self.is_owner && asked.0 <= self.clock.now().0 {
            self.events.send(Event::Member(MemberEvent::LeaseRenewed { asked }));
        }
    }

    /// A binary message from the relay.
    pub(super) fn relayed(&self, message: &[u8]) {
        let Some((relay_api::Route(route), message)) = relay_api::Route::split(message) else { return };
        if !self.sessions.borrow().knows(Route(route)) {
            return;
        }
        let now = self.clock.now();
        match self.with_connection(|connection| connection.links.relayed(route, message, now)) {
            Some(Frames::One(message)) => self.received(route, message),
            Some(Frames::Many(messages)) => messages.iter().for_each(|message| self.received(route, message)),
            None => {}
        }
    }

    fn received(&self, route: u32, message: &[u8]) {
        let now = self.clock.now();
        let verdict = self.intake.borrow_mut().arrived(Route(route), message.len(), now);
        match verdict {
            Verdict::Take => {}
            Verdict::Drop => return,
            Verdict::EndFlood => return self.end_flood(Route(route)),
        }
        self.sessions.borrow_mut().received(Route(route), message, now);
        self.count(message.len(), now);
        self.perform();
    }

    /// Accepts nothing more from a route: the host has it evicted, and any other member mutes it. Without the host a member can do
    /// nothing in the room, so if it is the host, this peer leaves.
    fn end_flood(&self, route: Route) {
        log::warn!("route {} sends far more than this device takes", route.0);
        if self.host.get() == Some(route) {
            return *self.fault.borrow_mut() = Some(texts().node_relay.host_floods().to_owned());
        }
        let route = relay_api::Route(route.0);
        self.ask(&if self.is_owner { Request::PutOut { route } } else { Request::Mute { route } });
    }

    /// Why this peer can no longer be in the room, if anything happened.
    pub(super) fn take_fault(&self) -> Option<String> {
        self.fault.take()
    }

    fn count(&self, bytes: usize, began: Millis) {
        let Sealing { messages, bytes: before, ms } = self.sealing.get();
        let ms = ms + self.clock.now().0 - began.0;
        self.sealing.set(Sealing { messages: messages + 1, bytes: before + bytes as u64, ms });
    }

    /// What it took to seal messages and to open them.
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
                Action::Up(route, certificate, proof, words) => {
                    if certificate.is_owner {
                        self.host.set(Some(route));
                    }
                    let newest = Newest { route, words, with_host: certificate.is_owner };
                    self.newest.borrow_mut().insert(certificate.peer, newest);
                    self.with_connection(|connection| connection.links.met(route.0));
                    if self.is_owner && self.connects.get() {
                        self.say(route, Signal::Allowed(true));
                    }
                    let (route, proof) = (RelayRoute(route.0), proof_for_peer(proof));
                    let at = UnixSeconds(u32::try_from(self.clock.unix_seconds()).unwrap_or(u32::MAX));
                    let Certificate { peer, device, .. } = certificate;
                    self.member(MemberEvent::PeerConnected { route, peer, device, proof, at });
                }
                Action::Down(route, why) => {
                    log::warn!("the session with route {} ended: {why}", route.0);
                    self.session_ended(route);
                }
                Action::Rekeyed(route, words) => {
                    let mut newest = self.newest.borrow_mut();
                    newest
                        .values_mut()
                        .filter(|known| known.route == route)
                        .for_each(|known| known.words = words.clone());
                    self.events.send(Event::WordsChanged);
                }
                Action::LinkRenewed(link) => {
                    self.events.send(Event::LinkRenewed { room: self.room.clone(), key: link.text() });
                }
                Action::Failed(route, why) => log::warn!("no session with route {}: {why}", route.0),
                Action::Frame(route, from, bytes) => self.frame(route, from, &bytes),
                Action::OtherVersion(theirs) => {
                    if !self.said_version.replace(true) {
                        self.events.send(Event::BadFrame(FrameError::Version { theirs }, None));
                    }
                }
            }
        }
    }

    fn session_ended(&self, route: Route) {
        self.newest.borrow_mut().retain(|_, known| known.route != route);
        self.member(MemberEvent::RouteLeft(RelayRoute(route.0)));
    }

    fn member(&self, event: MemberEvent) {
        self.events.send(Event::Member(event));
    }

    fn frame(&self, route: Route, from: PeerId, bytes: &[u8]) {
        let place = self.intake.borrow_mut().queue(route, bytes.len());
        let ticket = match place {
            Ok(ticket) => ticket,
            Err(verdict) => {
                // A frame is lost, and the session with it; the two peers begin anew.
                self.sessions.borrow_mut().end(route, Closed::TooFast, self.clock.now());
                if verdict == Verdict::EndFlood {
                    self.end_flood(route);
                }
                return self.perform();
            }
        };
        match decode(bytes) {
            Ok(Frame::Signal(signal)) => self.signal(route, signal),
            Ok(frame) => {
                let event = MemberEvent::Frame { route: RelayRoute(route.0), from, frame };
                self.events.send(Event::Frame(event, ticket));
            }
            Err(error) => {
                log::warn!("a frame of {from:?} was dropped: {error}");
                self.events.send(Event::BadFrame(error, Some(ticket)));
            }
        }
    }

    /// `None` while disconnected.
    fn with_connection<T>(&self, work: impl FnOnce(&mut Connection) -> T) -> Option<T> {
        self.connection.borrow_mut().as_mut().map(work)
    }
}

/// Numbers and weights, of which a member that only chats gets none.
fn is_work(frame: &Frame) -> bool {
    matches!(
        frame,
        Frame::Forward(_)
            | Frame::ExpertCall(_)
            | Frame::ExpertResult(_)
            | Frame::LogitsResult(_)
            | Frame::Piece { .. }
    )
}

fn proof_for_peer(proof: Proof) -> potluck_swarm::Proof {
    match proof {
        Proof::Host => potluck_swarm::Proof::Host,
        Proof::Link(number) => potluck_swarm::Proof::Link(number),
        // A kind of invite that only a later version knows says nothing here: the host is asked.
        Proof::Invite(terms) => {
            Invite::from_bytes(terms).map_or(potluck_swarm::Proof::Visitor, potluck_swarm::Proof::Invite)
        }
        Proof::Group => potluck_swarm::Proof::Group,
        Proof::Visitor => potluck_swarm::Proof::Visitor,
    }
}

mod connections;
#[cfg(test)]
mod tests;
