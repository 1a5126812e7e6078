//! One room: its members, and forwarding between them.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use axum::body::Bytes;
use axum::extract::ws::Message;
use potluck_relay_api::{
    BadFrame, Control, Departure, Eviction, MAX_EARLIER_LINKS, MAX_REVOKED, PublicKey, ROUTE_BYTES, Refusal, Route,
    Term, VERSION,
};

use super::control_text;
use super::id::{RoomId, first_route};
use super::outbox::{Closing, Outbox};
use crate::limits::Limits;
use crate::metrics::Metrics;
use crate::quotas::{Lease, Share};

/// Shorter frames are copied: a slice of the read buffer would keep all of it in memory.
const COPY_BELOW_BYTES: usize = 64 * 1024;

/// The outcome of forwarding a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Forwarded {
    /// It was queued for its receiver.
    Queued,
    /// Its route is not in the room.
    Undeliverable(Route),
    /// It was dropped.
    Bad(BadFrame),
    /// Its sender has to be evicted.
    Evict(Eviction),
}

/// What the owner may change about a room.
#[derive(Clone, Debug)]
pub struct Listing {
    /// What the owner calls it.
    pub title: String,
    /// Whether it is listed, and visitors may enter.
    pub visible: bool,
}

/// How a connection enters, after its proof was checked.
#[derive(Clone, Debug)]
pub enum EntryRole {
    /// The owner, with what it registers.
    Owner {
        /// Who signs with this key may enter.
        join_key: PublicKey,
        /// How the room is listed.
        listing: Listing,
        /// The term in which it hosts.
        term: Term,
    },
    /// Somebody with the link, or with an earlier one.
    Link {
        /// The join key of that link.
        key: PublicKey,
    },
    /// Somebody with an invite of this number.
    Invite {
        /// The invite's number.
        invite: u32,
        /// The invite has expired, so the connection enters as a visitor.
        expired: bool,
    },
    /// Somebody who found the room in the list.
    Visitor,
}

impl EntryRole {
    fn standing(&self) -> Standing {
        match self {
            Self::Owner { .. } => Standing::LetIn,
            Self::Link { .. } | Self::Invite { expired: false, .. } => Standing::HasKey,
            Self::Invite { expired: true, .. } | Self::Visitor => Standing::Visitor,
        }
    }

    fn invite(&self) -> Option<u32> {
        match self {
            Self::Invite { invite, .. } => Some(*invite),
            Self::Owner { .. } | Self::Link { .. } | Self::Visitor => None,
        }
    }

    fn link(&self) -> Option<PublicKey> {
        match self {
            Self::Link { key } => Some(*key),
            Self::Owner { .. } | Self::Invite { .. } | Self::Visitor => None,
        }
    }
}

/// What a member has shown so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Standing {
    /// Nothing: it may write only to the owner, and little.
    Visitor,
    /// A key of the room.
    HasKey,
    /// The owner let it in, or it is the owner.
    LetIn,
}

/// A member in its place.
struct Seat {
    outbox: Arc<Outbox>,
    /// Whom it counts for.
    holder: IpAddr,
    standing: Standing,
    /// The invite by which it came.
    invite: Option<u32>,
    /// The join key of the link by which it came.
    link: Option<PublicKey>,
    /// Members that it muted; no more than the room has.
    muted: BTreeSet<Route>,
}

struct State {
    members: BTreeMap<Route, Seat>,
    owner: Option<Route>,
    /// The latest in which somebody hosted.
    term: Term,
    /// When the owner sent a control message last.
    owner_heard: Instant,
    next_route: u32,
    join_key: PublicKey,
    /// Earlier links, by which only those come back whom the owner let in by them: it decides.
    for_returning: Vec<PublicKey>,
    /// Earlier links that let nobody in.
    for_nobody: Vec<PublicKey>,
    /// Invites that let nobody in.
    revoked: BTreeSet<u32>,
    /// Invites by which only those come back whom the owner let in by them: it decides.
    taken_back: BTreeSet<u32>,
    listing: Listing,
    /// Since when the room is empty; a new room is empty until its owner is in it.
    empty_since: Option<Instant>,
}

impl State {
    /// What somebody has shown who enters.
    fn standing(&self, role: &EntryRole) -> Standing {
        match role.invite() {
            Some(invite) if self.taken_back.contains(&invite) => Standing::Visitor,
            _ if role.link().is_some_and(|key| key != self.join_key) => Standing::Visitor,
            _ => role.standing(),
        }
    }

    /// A link that was renewed, by which nobody comes back.
    fn is_over(&self, link: &PublicKey) -> bool {
        *link != self.join_key && !self.for_returning.contains(link)
    }
}

/// A room. No method waits, and the lock is never held across an await.
pub struct Room {
    id: RoomId,
    owner_key: PublicKey,
    opened: Instant,
    bytes: AtomicU64,
    limits: Arc<Limits>,
    metrics: Arc<Metrics>,
    state: Mutex<State>,
    /// Its place among the rooms.
    _lease: Lease,
}

impl Room {
    /// An empty room.
    pub fn new(
        id: RoomId,
        owner_key: PublicKey,
        lease: Lease,
        limits: Arc<Limits>,
        metrics: Arc<Metrics>,
        now: Instant,
    ) -> Self {
        let state = State {
            members: BTreeMap::new(),
            owner: None,
            term: Term::default(),
            owner_heard: now,
            next_route: first_route(),
            // The owner that creates the room registers its own.
            join_key: owner_key,
            for_returning: Vec::new(),
            for_nobody: Vec::new(),
            revoked: BTreeSet::new(),
            taken_back: BTreeSet::new(),
            listing: Listing { title: String::new(), visible: false },
            empty_since: Some(now),
        };
        Self {
            id,
            owner_key,
            opened: now,
            bytes: AtomicU64::new(0),
            limits,
            metrics,
            state: Mutex::new(state),
            _lease: lease,
        }
    }

    /// Its id.
    pub fn id(&self) -> &RoomId {
        &self.id
    }

    /// When it was created, or created again.
    pub fn opened(&self) -> Instant {
        self.opened
    }

    /// Bytes that its members sent each other, routes included.
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// How many members it has.
    pub fn members(&self) -> usize {
        self.state().members.len()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Every change below is complete in itself, so the state is valid even after a panic.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The title and the number of members, if the room is listed: while its owner is away nobody lets visitors in.
    pub fn listed(&self) -> Option<(String, usize)> {
        let state = self.state();
        (state.listing.visible && state.owner.is_some()).then(|| (state.listing.title.clone(), state.members.len()))
    }

    /// Who signs with this key owns the room.
    pub fn owner_key(&self) -> PublicKey {
        self.owner_key
    }

    /// Who signs with one of these keys has the link, or an earlier one.
    pub fn join_keys(&self) -> Vec<PublicKey> {
        let state = self.state();
        let earlier = state.for_returning.iter().chain(&state.for_nobody);
        std::iter::once(&state.join_key).chain(earlier).copied().collect()
    }

    /// The state, if the owner asks for a change.
    fn of_owner(&self, from: Route) -> Option<MutexGuard<'_, State>> {
        Some(self.state()).filter(|state| state.owner == Some(from))
    }

    /// Changes how the room is listed. False if it is not the owner who asks for it, as below.
    pub fn set_listing(&self, from: Route, listing: Listing) -> bool {
        self.of_owner(from).map(|mut state| state.listing = listing).is_some()
    }

    /// From now on these invites are revoked. Evicts members that came by one and were not let in.
    pub fn set_revoked(&self, from: Route, invites: &[u32]) -> bool {
        let Some(mut state) = self.of_owner(from).filter(|_| invites.len() <= MAX_REVOKED) else { return false };
        state.revoked = invites.iter().copied().collect();
        let is_out = |seat: &Seat| {
            seat.standing != Standing::LetIn && seat.invite.is_some_and(|invite| state.revoked.contains(&invite))
        };
        let out: Vec<Route> = state.members.iter().filter(|(_, seat)| is_out(seat)).map(|(route, _)| *route).collect();
        for route in out {
            self.put_out(&mut state, route, Eviction::InviteRevoked);
        }
        true
    }

    /// From now on those who enter by these invites are visitors, and so are those who did and were not let in.
    pub fn set_taken_back(&self, from: Route, invites: &[u32]) -> bool {
        let Some(mut state) = self.of_owner(from).filter(|_| invites.len() <= MAX_REVOKED) else { return false };
        let State { taken_back, members, .. } = &mut *state;
        *taken_back = invites.iter().copied().collect();
        for seat in members.values_mut() {
            if seat.standing == Standing::HasKey && seat.invite.is_some_and(|invite| taken_back.contains(&invite)) {
                seat.standing = Standing::Visitor;
            }
        }
        true
    }

    /// From now on the room's link has this join key, and these are the keys of earlier links. Evicts members that came by a link
    /// that is over and were not let in.
    pub fn set_links(
        &self,
        from: Route,
        join_key: PublicKey,
        for_returning: &[PublicKey],
        for_nobody: &[PublicKey],
    ) -> bool {
        let count = for_returning.len() + for_nobody.len();
        let Some(mut state) = self.of_owner(from).filter(|_| count <= MAX_EARLIER_LINKS) else { return false };
        (state.join_key, state.for_returning, state.for_nobody) =
            (join_key, for_returning.to_vec(), for_nobody.to_vec());
        let mut out = Vec::new();
        for (route, seat) in state.members.iter_mut().filter(|(_, seat)| seat.standing != Standing::LetIn) {
            match seat.link.filter(|link| *link != join_key) {
                Some(link) if for_returning.contains(&link) => seat.standing = Standing::Visitor,
                Some(_) => out.push(*route),
                None => {}
            }
        }
        for route in out {
            self.put_out(&mut state, route, Eviction::LinkRenewed);
        }
        true
    }

    /// The owner let a member in.
    pub fn let_in(&self, from: Route, route: Route) -> bool {
        let Some(mut state) = self.of_owner(from) else { return false };
        if let Some(seat) = state.members.get_mut(&route) {
            seat.standing = Standing::LetIn;
        }
        true
    }

    /// The owner evicts a member.
    pub fn expel(&self, from: Route, route: Route) -> bool {
        let Some(mut state) = self.of_owner(from).filter(|_| from != route) else { return false };
        self.put_out(&mut state, route, Eviction::PutOut);
        true
    }

    /// A member mutes another one; not the owner, without whom there is nothing for it in the room.
    pub fn mute(&self, from: Route, route: Route) {
        let mut state = self.state();
        if state.members.contains_key(&route)
            && state.owner != Some(route)
            && let Some(seat) = state.members.get_mut(&from)
        {
            seat.muted.insert(route);
        }
    }

    /// Whether a member is a visitor whom the owner has not let in.
    pub fn is_visitor(&self, route: Route) -> bool {
        self.state().members.get(&route).is_some_and(|seat| seat.standing == Standing::Visitor)
    }

    /// Whether the room has been empty for too long.
    pub fn is_expired(&self, now: Instant) -> bool {
        let since = self.state().empty_since;
        since.is_some_and(|since| now.saturating_duration_since(since) >= self.limits.room_idle)
    }

    /// Adds a member and notifies everyone. An owner takes the place of an earlier one of its term. In a later term it does so only if the
    /// earlier one sends no control messages any more; in an earlier term it does not.
    ///
    /// # Errors
    /// The room is full, or not open for this member.
    pub fn join(&self, role: &EntryRole, share: Arc<Share>) -> Result<(Route, Arc<Outbox>), Refusal> {
        let mut state = self.state();
        self.check_seats(&state, role, share.holder())?;
        let standing = state.standing(role);
        let route = Route(state.next_route);
        state.next_route += 1;
        if let EntryRole::Owner { join_key, listing, term } = role {
            state.owner_heard = Instant::now();
            let before = std::mem::replace(&mut state.term, *term);
            if let Some(earlier) = state.owner {
                let why = if before < *term { Eviction::Superseded } else { Eviction::Replaced };
                self.evict(&mut state, earlier, why);
            }
            state.owner = Some(route);
            state.join_key = *join_key;
            state.listing = listing.clone();
        }
        let others: Vec<Route> = state.members.keys().copied().collect();
        let welcome = Control::Welcome {
            version: VERSION,
            room: self.id.to_string(),
            route,
            owner: state.owner,
            members: others.clone(),
            limits: match standing {
                Standing::Visitor => self.limits.for_visitors(),
                Standing::HasKey | Standing::LetIn => self.limits.for_members(),
            },
        };
        let holder = share.holder();
        let outbox = Arc::new(Outbox::new(route, &self.limits, share));
        let (invite, link, muted) = (role.invite(), role.link(), BTreeSet::new());
        state.members.insert(route, Seat { outbox: outbox.clone(), holder, standing, invite, link, muted });
        state.empty_since = None;
        self.deliver(&mut state, &[route], &welcome);
        let owner = matches!(role, EntryRole::Owner { .. });
        self.deliver(&mut state, &others, &Control::Join { route, owner });
        self.metrics.members_joined.inc();
        Ok((route, outbox))
    }

    fn has_present_owner(&self, state: &State) -> bool {
        state.owner.is_some() && state.owner_heard.elapsed() < self.limits.owner_silence
    }

    /// A member sent a control message.
    pub fn heard(&self, route: Route) {
        if let Some(mut state) = self.of_owner(route) {
            state.owner_heard = Instant::now();
        }
    }

    /// Whether there is a seat for somebody from this address. There is always one for the owner.
    fn check_seats(&self, state: &State, role: &EntryRole, holder: IpAddr) -> Result<(), Refusal> {
        let limits = &self.limits;
        let seats = match role {
            EntryRole::Owner { term, .. } if *term < state.term => return Err(Refusal::Superseded),
            EntryRole::Owner { term, .. } if *term > state.term && self.has_present_owner(state) => {
                return Err(Refusal::HostPresent);
            }
            EntryRole::Owner { .. } => return Ok(()),
            EntryRole::Visitor if !state.listing.visible => return Err(Refusal::NotListed),
            EntryRole::Invite { invite, .. } if state.revoked.contains(invite) => return Err(Refusal::InviteRevoked),
            EntryRole::Link { key } if state.is_over(key) => return Err(Refusal::LinkRenewed),
            _ if state.standing(role) == Standing::Visitor => limits.members.saturating_sub(limits.reserved_seats),
            _ => limits.members,
        };
        if state.members.len() >= seats {
            return Err(Refusal::RoomFull);
        }
        let of_address = || state.members.iter().filter(|(route, _)| state.owner != Some(**route));
        let of_address = || of_address().map(|(_, seat)| seat).filter(|seat| seat.holder == holder);
        if of_address().count() >= limits.address_seats {
            return Err(Refusal::TooManySeats);
        }
        let is_visitor = |seat: &&Seat| seat.standing == Standing::Visitor;
        let is_crowded = || {
            let of_address = of_address().filter(is_visitor).count();
            of_address >= limits.address_visitors
                || state.members.values().filter(is_visitor).count() >= limits.visitors
        };
        if state.standing(role) == Standing::Visitor && is_crowded() {
            return Err(Refusal::TooManyVisitors);
        }
        Ok(())
    }

    /// Removes a member and notifies the others. Does nothing if it is not in the room.
    pub fn leave(&self, route: Route, reason: Departure, now: Instant) {
        let mut state = self.state();
        self.remove(&mut state, route, reason);
        if state.members.is_empty() {
            state.empty_since.get_or_insert(now);
        }
    }

    /// Forwards a frame from `from`, whose queue is `sender`, replacing the receiver's route by the sender's.
    pub fn forward(&self, from: Route, sender: &Arc<Outbox>, frame: Bytes) -> Forwarded {
        let to = match Route::read(&frame) {
            None => return Forwarded::Bad(BadFrame::TooShort),
            Some(Route::RESERVED | Route::PARTS) => return Forwarded::Bad(BadFrame::NoReceiver),
            Some(to) => to,
        };
        let length = frame.len();
        let mut bytes = if length < COPY_BELOW_BYTES { frame.to_vec() } else { Vec::from(frame) };
        from.write(&mut bytes[..ROUTE_BYTES]);
        let state = self.state();
        // A member that was evicted a moment ago may still be sending.
        let Some(seat) = state.members.get(&from) else { return Forwarded::Queued };
        if seat.standing == Standing::Visitor && state.owner != Some(to) {
            return Forwarded::Bad(BadFrame::NotLetIn);
        }
        let receiver = state.members.get(&to).filter(|receiver| to != from && !receiver.muted.contains(&from));
        match receiver.map(|receiver| receiver.outbox.push_frame(from, sender, bytes.into())) {
            None => Forwarded::Undeliverable(to),
            Some(Err(reason)) => Forwarded::Evict(reason),
            Some(Ok(())) => {
                self.metrics.frames_forwarded.inc();
                self.metrics.bytes_forwarded.add(length as u64);
                self.bytes.fetch_add(length as u64, Ordering::Relaxed);
                Forwarded::Queued
            }
        }
    }

    /// Sends a control message to one member.
    pub fn send_control(&self, route: Route, control: &Control) {
        let mut state = self.state();
        self.deliver(&mut state, &[route], control);
    }

    /// Tells everyone to connect again, and closes the connections once their queues are sent.
    pub fn close(&self, why: &str) {
        let control = Control::Shutdown { message: why.into() };
        for seat in self.state().members.values() {
            seat.outbox.finish(Closing { control: Some(control.clone()), code: 1001 });
        }
    }

    /// Puts everyone out, because the operator ends the room.
    pub fn end(&self) {
        let mut state = self.state();
        let everyone: Vec<Route> = state.members.keys().copied().collect();
        for route in everyone {
            self.put_out(&mut state, route, Eviction::Ended);
        }
    }

    /// Queues a control message for `receivers`. Evicts a receiver that does not read what it is told.
    fn deliver(&self, state: &mut State, receivers: &[Route], control: &Control) {
        let message: Message = control_text(control);
        let mut slow = Vec::new();
        for route in receivers {
            if let Some(seat) = state.members.get(route)
                && seat.outbox.push(message.clone()).is_err()
            {
                slow.push(*route);
            }
        }
        for route in slow {
            self.evict(state, route, Eviction::SlowReceiver);
        }
    }

    fn evict(&self, state: &mut State, route: Route, reason: Eviction) {
        if let Some(seat) = state.members.get(&route) {
            seat.outbox.abort(Closing::evicted(reason));
            self.metrics.evicted(reason);
        }
        self.remove(state, route, Departure::Evicted);
    }

    /// The owner's wish, not a fault: messages that wait for the member, for example the owner's, are still sent.
    fn put_out(&self, state: &mut State, route: Route, reason: Eviction) {
        if let Some(seat) = state.members.get(&route) {
            seat.outbox.finish(Closing::evicted(reason));
            self.metrics.evicted(reason);
        }
        self.remove(state, route, Departure::Evicted);
    }

    fn remove(&self, state: &mut State, route: Route, reason: Departure) {
        if state.members.remove(&route).is_none() {
            return;
        }
        if state.owner == Some(route) {
            state.owner = None;
        }
        for other in state.members.values_mut() {
            other.outbox.forget(route);
            other.muted.remove(&route);
        }
        let rest: Vec<Route> = state.members.keys().copied().collect();
        self.deliver(state, &rest, &Control::Leave { route, reason });
    }
}
