//! One room: its members, and forwarding between them.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use axum::body::Bytes;
use axum::extract::ws::Message;
use potluck_relay_api::{BadFrame, Control, Departure, Eviction, PublicKey, ROUTE_BYTES, Refusal, Route, VERSION};

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

/// As what a connection enters, after its proof was checked.
#[derive(Clone, Debug)]
pub enum Role {
    /// The owner, with what it registers.
    Owner {
        /// Who signs with this key may enter.
        join_key: PublicKey,
        /// How the room is listed.
        listing: Listing,
    },
    /// Somebody with the link.
    Link,
    /// Somebody who found the room in the list.
    Visitor,
}

struct State {
    members: BTreeMap<Route, Arc<Outbox>>,
    owner: Option<Route>,
    next_route: u32,
    join_key: PublicKey,
    listing: Listing,
    /// Since when the room is empty; a new room is empty until its owner is in it.
    empty_since: Option<Instant>,
}

/// A room. No method waits, and the lock is never held across an await.
pub struct Room {
    id: RoomId,
    opened: Instant,
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
        join_key: PublicKey,
        lease: Lease,
        limits: Arc<Limits>,
        metrics: Arc<Metrics>,
        now: Instant,
    ) -> Self {
        let state = State {
            members: BTreeMap::new(),
            owner: None,
            next_route: first_route(),
            join_key,
            listing: Listing { title: String::new(), visible: false },
            empty_since: Some(now),
        };
        Self { id, opened: now, limits, metrics, state: Mutex::new(state), _lease: lease }
    }

    /// Its id.
    pub fn id(&self) -> &RoomId {
        &self.id
    }

    /// When it was created, or created again.
    pub fn opened(&self) -> Instant {
        self.opened
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

    /// Who signs with this key has the link.
    pub fn join_key(&self) -> PublicKey {
        self.state().join_key
    }

    /// Changes how the room is listed, if the owner asks for it.
    pub fn set_listing(&self, from: Route, listing: Listing) -> bool {
        let mut state = self.state();
        let is_owner = state.owner == Some(from);
        if is_owner {
            state.listing = listing;
        }
        is_owner
    }

    /// Whether the room has been empty for too long.
    pub fn is_expired(&self, now: Instant) -> bool {
        let since = self.state().empty_since;
        since.is_some_and(|since| now.saturating_duration_since(since) >= self.limits.room_idle)
    }

    /// Adds a member and notifies everyone. An owner takes the place of an earlier one.
    ///
    /// # Errors
    /// The room is full, or not open for this member.
    pub fn join(&self, role: &Role, share: Arc<Share>) -> Result<(Route, Arc<Outbox>), Refusal> {
        let mut state = self.state();
        let seats = match role {
            // Whoever came meanwhile, the owner finds a seat.
            Role::Owner { .. } => usize::MAX,
            Role::Link => self.limits.members,
            Role::Visitor if !state.listing.visible => return Err(Refusal::NotListed),
            Role::Visitor => self.limits.members.saturating_sub(self.limits.reserved_seats),
        };
        if state.members.len() >= seats {
            return Err(Refusal::RoomFull);
        }
        let route = Route(state.next_route);
        state.next_route += 1;
        if let Role::Owner { join_key, listing } = role {
            if let Some(earlier) = state.owner {
                self.evict(&mut state, earlier, Eviction::Replaced);
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
            limits: self.limits.for_members(),
        };
        let outbox = Arc::new(Outbox::new(route, &self.limits, share));
        state.members.insert(route, outbox.clone());
        state.empty_since = None;
        self.deliver(&mut state, &[route], &welcome);
        let owner = matches!(role, Role::Owner { .. });
        self.deliver(&mut state, &others, &Control::Join { route, owner });
        self.metrics.members_joined.inc();
        Ok((route, outbox))
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
        if !state.members.contains_key(&from) {
            return Forwarded::Queued;
        }
        let receiver = state.members.get(&to).filter(|_| to != from);
        match receiver.map(|receiver| receiver.push_frame(from, sender, bytes.into())) {
            None => Forwarded::Undeliverable(to),
            Some(Err(reason)) => Forwarded::Evict(reason),
            Some(Ok(())) => {
                self.metrics.frames_forwarded.inc();
                self.metrics.bytes_forwarded.add(length as u64);
                Forwarded::Queued
            }
        }
    }

    /// Sends a control message to one member.
    pub fn send_control(&self, route: Route, control: &Control) {
        let mut state = self.state();
        self.deliver(&mut state, &[route], control);
    }

    /// Notifies everyone that the relay stops, and closes the connections once their queues are sent.
    pub fn shut_down(&self) {
        let control = Control::Shutdown { message: "The relay is restarting: this page reconnects by itself.".into() };
        for outbox in self.state().members.values() {
            outbox.finish(Closing { control: Some(control.clone()), code: 1001 });
        }
    }

    /// Queues a control message for `receivers`. Evicts a receiver that does not read what it is told.
    fn deliver(&self, state: &mut State, receivers: &[Route], control: &Control) {
        let message: Message = control_text(control);
        let mut slow = Vec::new();
        for route in receivers {
            if let Some(outbox) = state.members.get(route)
                && outbox.push(message.clone()).is_err()
            {
                slow.push(*route);
            }
        }
        for route in slow {
            self.evict(state, route, Eviction::SlowReceiver);
        }
    }

    fn evict(&self, state: &mut State, route: Route, reason: Eviction) {
        if let Some(outbox) = state.members.get(&route) {
            outbox.abort(Closing::evicted(reason));
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
        for other in state.members.values() {
            other.forget(route);
        }
        let rest: Vec<Route> = state.members.keys().copied().collect();
        self.deliver(state, &rest, &Control::Leave { route, reason });
    }
}
