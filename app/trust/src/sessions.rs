//! All handshakes and sealed channels of one connection to a room.
//!
//! Guests begin the handshake with the host. Of two guests the one that came later begins, once both know the group
//! secret. So it is always clear who begins, and nobody has to break a tie.
//!
//! The relay says which routes exist and which one is the owner's. That is only a hint: what counts is what a handshake
//! proves.

mod budgets;
mod handshaking;
mod renewing;

use std::collections::BTreeMap;

use potluck_plan::{Millis, PeerId};
use potluck_relay_api::MAX_EARLIER_LINKS;
use thiserror::Error;

use self::budgets::Budgets;
use crate::channel::{OpenError, SealedChannel};
use crate::handshake::{Answered, Begun, HandshakeError};
use crate::identity::{Certificate, NodeIdentity, Random};
use crate::invite::{InviteKey, Terms};
use crate::room_keys::{GroupSecret, LinkTag, OwnerKey, RoomSecret};
use crate::wire::Kind;
use crate::words::SessionWords;

/// More connections than any relay's room has. A relay that invents more is not believed.
const MAX_ROUTES: usize = 1_024;

/// A connection's address in the room, given by the relay.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Route(pub u32);

/// How this peer takes part in a room.
#[derive(Clone)]
pub enum RoomRole {
    /// It opened the room.
    Owner {
        /// The room's key.
        key: OwnerKey,
        /// The secret of its first link.
        secret: RoomSecret,
        /// How often its link was renewed.
        link: u32,
        /// Generation of the group secret.
        generation: u32,
        /// The room is in the public list: visitors may ask to come in.
        visible: bool,
    },
    /// It has the link.
    Guest(RoomSecret),
    /// It has an invite.
    Invited(InviteKey),
    /// It found the room in the public list; the host is asked.
    Visitor,
}

/// What a peer has proven in its handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Proof {
    /// It owns the room.
    Host,
    /// It knows the secret of the room's link with this number; only the newest one is for newcomers. Seen by the host only.
    Link(u32),
    /// It has an invite with these terms from the owner. Only the host sees this.
    Invite(Terms),
    /// It knows the group secret: the host has admitted it.
    Group,
    /// Nothing but its identity. Seen by the host only.
    Visitor,
}

/// Why a session ended or did not come up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Closed {
    /// A sealed message did not open.
    #[error(transparent)]
    Channel(#[from] OpenError),
    /// The handshake failed.
    #[error(transparent)]
    Handshake(#[from] HandshakeError),
    /// The relay called somebody the owner who is not, or the other way round.
    #[error("the relay named the wrong connection as the host's")]
    NotTheOwner,
    /// The other side uses this peer's own identity, as a copied profile does.
    #[error("another connection uses this device's own identity")]
    OwnIdentity,
    /// The other side shook hands again.
    #[error("the other side began anew")]
    Renewed,
    /// The host gave out another group secret: whoever has only the old one is out.
    #[error("the group has another secret now")]
    Regrouped,
    /// The other side takes too little of what it gets.
    #[error("the other side takes its messages too slowly")]
    TooSlow,
    /// The other side sends more than this one can handle.
    #[error("the other side sends more than this device can handle")]
    TooFast,
}

/// What the driver does.
#[derive(Debug, PartialEq, Eq)]
pub enum Action {
    /// Send these bytes to a route.
    Send(Route, Vec<u8>),
    /// A session is up. People may compare its words.
    Up(Route, Certificate, Proof, SessionWords),
    /// A session that was up is over.
    Down(Route, Closed),
    /// A session goes on under another key, with the same peer and nothing lost. It has new words.
    Rekeyed(Route, SessionWords),
    /// The host has renewed the room's link, and this is the new one.
    LinkRenewed(RoomSecret),
    /// A handshake failed; a session that is up stays so.
    Failed(Route, Closed),
    /// A frame of an authenticated peer.
    Frame(Route, PeerId, Vec<u8>),
    /// A message of another version arrived.
    OtherVersion(u16),
}

#[derive(Default)]
struct Link {
    session: Option<Session>,
    pending: Option<Pending>,
    /// When the last handshake began on this side, and how many did since the last one succeeded.
    began: Option<Millis>,
    attempts: u32,
    /// When this side last read the other side's first message, and whether it has ever answered one.
    looked: Option<Millis>,
    was_answered: bool,
    /// When this side last asked for one.
    asked: Option<Millis>,
    /// It is to ask again, because that was too soon after the last time.
    asks: bool,
    /// The other side asked for one, too soon after the last.
    wanted: bool,
}

struct Session {
    channel: SealedChannel,
    other: Certificate,
    /// The number of the link that the other side came by. Known to the host.
    link: Option<u32>,
    /// The group has a renewed secret since: the session ends then, unless it goes on under that secret.
    ends: Option<Millis>,
    /// The session's key before it was renewed, until the other side's first message under the new one.
    before: Option<SealedChannel>,
}

impl RoomRole {
    /// The link that newcomers need, as far as this peer knows it.
    pub fn link(&self) -> Option<RoomSecret> {
        match self {
            Self::Owner { key, secret, link, .. } => Some(key.link(secret, *link)),
            Self::Guest(secret) => Some(secret.clone()),
            Self::Invited(_) | Self::Visitor => None,
        }
    }

    /// The tags of the links that this peer answers to, newest first, with their numbers; none on a guest.
    fn tags(&self) -> Vec<(LinkTag, u32)> {
        let Self::Owner { key, secret, link, .. } = self else { return Vec::new() };
        let first = link.saturating_sub(MAX_EARLIER_LINKS as u32);
        (first..=*link).rev().map(|number| (key.link(secret, number).tag(), number)).collect()
    }
}

enum Pending {
    Begun(Begun),
    Answered(Answered),
}

/// The sessions of one connection to a room.
///
/// ```
/// use potluck_plan::Millis;
/// use potluck_trust::{Action, IdentityKeys, NodeIdentity, OwnerKey, Proof, RoomRole, RoomSecret, Route, Sessions};
///
/// fn random(bytes: &mut [u8]) {
///     // Use the system's random numbers instead; these repeat themselves, as tests want.
///     use std::sync::atomic::{AtomicU8, Ordering};
///     static NEXT: AtomicU8 = AtomicU8::new(1);
///     bytes.iter_mut().for_each(|byte| *byte = NEXT.fetch_add(7, Ordering::Relaxed));
/// }
///
/// let (key, secret, now) = (OwnerKey::generate(random), RoomSecret::generate(random), Millis(0.0));
/// let room = key.room();
/// let identity = || NodeIdentity::new(&IdentityKeys::generate(random), random);
/// let owner = RoomRole::Owner { key, secret: secret.clone(), link: 0, generation: 0, visible: false };
/// let mut host = Sessions::new(identity(), room.clone(), owner, random);
/// let mut guest = Sessions::new(identity(), room, RoomRole::Guest(secret), random);
///
/// // The relay has let both in, at routes 1 and 2. Its messages carry the handshake.
/// host.welcomed(Route(1), Some(Route(1)), &[Route(2)], now);
/// guest.welcomed(Route(2), Some(Route(1)), &[Route(1)], now);
/// let mut proofs = Vec::new();
/// for _ in 0..4 {
///     for action in guest.take_actions() {
///         if let Action::Send(_, message) = action {
///             host.received(Route(2), &message, now);
///         }
///     }
///     for action in host.take_actions() {
///         match action {
///             Action::Send(_, message) => guest.received(Route(1), &message, now),
///             Action::Up(_, _, proof, _) => proofs.push(proof),
///             other => panic!("{other:?}"),
///         }
///     }
/// }
/// assert_eq!(proofs, [Proof::Link(0)], "the host knows how the guest came in");
///
/// let sealed = guest.seal(Route(1), b"a frame").unwrap();
/// host.received(Route(2), &sealed, now);
/// assert!(matches!(&host.take_actions()[..], [Action::Frame(Route(2), _, frame)] if frame == b"a frame"));
/// ```
pub struct Sessions {
    identity: NodeIdentity,
    random: Random,
    room: String,
    role: RoomRole,
    /// [`RoomRole::tags`]: computed when the link changes, because anybody can send any number of tags.
    tags: Vec<(LinkTag, u32)>,
    group: Option<GroupSecret>,
    own: Option<Route>,
    owner: Option<Route>,
    links: BTreeMap<Route, Link>,
    /// The budgets for answering handshakes, over all connections.
    budgets: Budgets,
    actions: Vec<Action>,
}

impl Sessions {
    /// For a room that is not connected yet.
    pub fn new(identity: NodeIdentity, room: String, role: RoomRole, random: Random) -> Self {
        let group = match &role {
            RoomRole::Owner { key, generation, .. } => Some(key.group_secret(*generation)),
            RoomRole::Guest(_) | RoomRole::Invited(_) | RoomRole::Visitor => None,
        };
        let (tags, links, budgets, actions) = (role.tags(), BTreeMap::new(), Budgets::default(), Vec::new());
        Self { identity, random, room, role, tags, group, own: None, owner: None, links, budgets, actions }
    }

    /// The number of the link with this tag; `None` if it is none of the newest, or on a guest.
    fn number_tagged(&self, tag: &LinkTag) -> Option<u32> {
        self.tags.iter().find(|(known, _)| known == tag).map(|(_, number)| *number)
    }

    /// How this peer takes part now.
    pub fn role(&self) -> &RoomRole {
        &self.role
    }

    /// The actions since the last call, in order.
    pub fn take_actions(&mut self) -> Vec<Action> {
        std::mem::take(&mut self.actions)
    }

    /// The relay let this peer in. What was known of an earlier connection is forgotten, except the group secret.
    pub fn welcomed(&mut self, own: Route, owner: Option<Route>, members: &[Route], now: Millis) {
        self.disconnected();
        self.own = Some(own);
        self.owner = owner;
        for route in members.iter().filter(|route| **route != own).take(MAX_ROUTES) {
            self.links.insert(*route, Link::default());
        }
        self.begin_where_due(now);
    }

    /// The connection to the relay ended, and every session with it.
    pub fn disconnected(&mut self) {
        self.links.clear();
        (self.own, self.owner) = (None, None);
    }

    /// A connection joined.
    pub fn joined(&mut self, route: Route, is_owner: bool, now: Millis) {
        if self.own == Some(route) || self.links.len() >= MAX_ROUTES {
            return;
        }
        if is_owner {
            self.owner = Some(route);
        }
        let before = self.links.insert(route, Link::default());
        if before.is_some_and(|link| link.session.is_some()) {
            self.actions.push(Action::Down(route, Closed::Renewed));
        }
        self.begin_where_due(now);
    }

    /// A connection ended.
    pub fn left(&mut self, route: Route) {
        self.links.remove(&route);
        if self.owner == Some(route) {
            self.owner = None;
        }
    }

    /// Whether the relay has said that this route exists.
    pub fn knows(&self, route: Route) -> bool {
        self.links.contains_key(&route)
    }

    /// Ends a session from this side, and shakes hands again.
    pub fn end(&mut self, route: Route, why: Closed, now: Millis) {
        let ended = self.links.get_mut(&route).and_then(|link| link.session.take());
        if ended.is_some() {
            self.actions.push(Action::Down(route, why));
            self.shake_again(route, now);
        }
    }

    /// Begins handshakes whose time has come.
    pub fn tick(&mut self, now: Millis) {
        self.end_overdue(now);
        self.begin_where_due(now);
        self.ask_where_due(now);
    }

    /// The host's side: gives an admitted peer the group secret, and the room's link if it came by an earlier one.
    pub fn admit(&mut self, route: Route) {
        self.give_keys(route, Kind::GroupSecret);
    }

    /// The host's side: from now on those who are admitted get the group secret of another generation. Those who have it
    /// already get it by [`Sessions::admit`].
    pub fn regroup(&mut self, to: u32) {
        if let RoomRole::Owner { key, generation, .. } = &mut self.role {
            *generation = to;
            self.group = Some(key.group_secret(to));
        }
    }

    /// Seals a frame. `None` without a session: the frame is lost, like one in flight when a connection breaks.
    pub fn seal(&mut self, route: Route, frame: &[u8]) -> Option<Vec<u8>> {
        self.links.get_mut(&route)?.session.as_mut()?.channel.seal(Kind::Frame, frame)
    }

    /// The routes with a session.
    pub fn up(&self) -> impl Iterator<Item = Route> + '_ {
        self.links.iter().filter(|(_, link)| link.session.is_some()).map(|(route, _)| *route)
    }

    /// A binary message arrived.
    pub fn received(&mut self, route: Route, message: &[u8], now: Millis) {
        if !self.links.contains_key(&route) {
            return;
        }
        match Kind::split(message) {
            Ok((Kind::Hello, rest)) => self.hello(route, rest, now),
            Ok((Kind::Reply, rest)) => self.reply(route, rest),
            Ok((Kind::Finish, rest)) => self.finish(route, rest),
            Ok((kind @ (Kind::Frame | Kind::GroupSecret | Kind::Renewed | Kind::Link | Kind::Switched), rest)) => {
                self.sealed(route, kind, rest, now);
            }
            Ok((Kind::Again, _)) => self.begin_as_asked(route, now),
            Err(Some(version)) => self.other_version(route, version, now),
            Err(None) => {}
        }
    }

    /// Only the host's version matters to others: anybody could send any number. The host answers in its own version, so
    /// that the guest is told.
    fn other_version(&mut self, route: Route, version: u16, now: Millis) {
        match self.role {
            RoomRole::Owner { .. } => self.ask_again(route, now),
            _ if self.owner == Some(route) => self.actions.push(Action::OtherVersion(version)),
            _ => {}
        }
    }

    fn sealed(&mut self, route: Route, kind: Kind, rest: &[u8], now: Millis) {
        let Some(link) = self.links.get_mut(&route) else { return };
        let Some(session) = &mut link.session else { return self.shake_again(route, now) };
        match (session.open(kind, rest), kind) {
            (Ok(plain), Kind::Frame) => self.actions.push(Action::Frame(route, session.other.peer, plain)),
            (Ok(secret), Kind::GroupSecret) if session.other.is_owner => {
                self.admitted(GroupSecret::from_bytes(&secret), now);
            }
            (Ok(secret), Kind::Renewed) if session.other.is_owner => {
                self.renewed(GroupSecret::from_bytes(&secret), now);
            }
            (Ok(secret), Kind::Link) if session.other.is_owner => self.link_renewed(&secret),
            (Ok(_), _) => {}
            (Err(error), _) => {
                link.session = None;
                self.actions.push(Action::Down(route, error.into()));
                self.shake_again(route, now);
            }
        }
    }

    fn shake_again(&mut self, route: Route, now: Millis) {
        if self.begins(route) { self.begin(route, now) } else { self.ask_again(route, now) }
    }

    /// This peer was here before, and the relay dropped its messages to others until it was let in again.
    fn meet(&mut self, now: Millis) {
        let unmet = |(route, link): (&Route, &Link)| link.session.is_none().then_some(*route);
        let mut unmet: Vec<Route> = self.links.iter().filter_map(unmet).collect();
        unmet.retain(|route| Some(*route) != self.owner);
        for route in unmet {
            if self.begins(route) {
                self.begin_as_asked(route, now);
            } else {
                self.ask_again(route, now);
            }
        }
    }

    /// The host admitted this peer: from now on it can shake hands with the other members. Sessions under an older secret
    /// end: the other side may be one that the host has put out.
    fn admitted(&mut self, group: Option<GroupSecret>, now: Millis) {
        if group.is_none() {
            return;
        }
        if group == self.group {
            return self.meet(now);
        }
        self.group = group;
        let others: Vec<Route> = self.links.keys().copied().filter(|route| Some(*route) != self.owner).collect();
        for route in others {
            let link = self.links.get_mut(&route);
            let ended = link.and_then(|link| {
                link.pending = None;
                link.session.take()
            });
            if ended.is_some() {
                self.actions.push(Action::Down(route, Closed::Regrouped));
            }
            self.shake_again(route, now);
        }
    }
}

#[cfg(test)]
mod tests;
