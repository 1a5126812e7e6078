//! One room: its members, and forwarding between them.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use axum::body::Bytes;
use axum::extract::ws::Message;
use potluck_relay_api::{Control, Departure, EVERYONE, Eviction, MemberLimits, ROUTE_BYTES, Route, VERSION};

use super::id::{RoomId, first_route};
use super::outbox::{Closing, Outbox};
use crate::metrics::Metrics;

/// The outcome of forwarding a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Forwarded {
    /// It was queued for this many receivers.
    To(usize),
    /// Its route is not in the room.
    Undeliverable(Route),
    /// It is too short for a route.
    TooShort,
}

struct State {
    members: BTreeMap<Route, Arc<Outbox>>,
    next_route: u32,
    title: String,
    visible: bool,
    /// Since when the room is empty; a new room is empty until its host connects.
    empty_since: Option<Instant>,
}

/// A room. No method waits, and the lock is never held across an await.
pub struct Room {
    id: RoomId,
    opened: Instant,
    metrics: Arc<Metrics>,
    state: Mutex<State>,
}

impl Room {
    /// An empty room.
    pub fn new(id: RoomId, title: String, visible: bool, metrics: Arc<Metrics>, now: Instant) -> Self {
        let state =
            State { members: BTreeMap::new(), next_route: first_route(), title, visible, empty_since: Some(now) };
        Self { id, opened: now, metrics, state: Mutex::new(state) }
    }

    /// Its id.
    pub fn id(&self) -> &RoomId {
        &self.id
    }

    /// When it was created, or recreated.
    pub fn opened(&self) -> Instant {
        self.opened
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Every change below is complete in itself, so the state is valid even after a panic.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The number of members.
    pub fn members(&self) -> usize {
        self.state().members.len()
    }

    /// The title, if the room may be listed.
    pub fn public_title(&self) -> Option<String> {
        let state = self.state();
        state.visible.then(|| state.title.clone())
    }

    /// Changes how the room is listed.
    pub fn set_listing(&self, title: String, visible: bool) {
        let mut state = self.state();
        state.title = title;
        state.visible = visible;
    }

    /// Since when the room is empty; `None` while somebody is in it.
    pub fn empty_since(&self) -> Option<Instant> {
        self.state().empty_since
    }

    /// Adds a member and notifies everyone; `None` if there are `max_members` already.
    pub fn join(&self, outbox: Arc<Outbox>, limits: MemberLimits, max_members: usize) -> Option<Route> {
        let mut state = self.state();
        if state.members.len() >= max_members {
            return None;
        }
        let route = Route(state.next_route);
        state.next_route += 1;
        let welcome = Control::Welcome {
            version: VERSION,
            room: self.id.to_string(),
            route,
            members: state.members.keys().copied().collect(),
            limits,
        };
        let others: Vec<Route> = state.members.keys().copied().collect();
        state.members.insert(route, outbox);
        state.empty_since = None;
        self.deliver(&mut state, &[route], control_text(&welcome));
        self.deliver(&mut state, &others, control_text(&Control::Join { route }));
        self.metrics.members_joined.inc();
        Some(route)
    }

    /// Removes a member and notifies the others. Does nothing if it is not in the room.
    pub fn leave(&self, route: Route, reason: Departure, now: Instant) {
        let mut state = self.state();
        if state.members.remove(&route).is_some() {
            self.announce_leave(&mut state, route, reason);
        }
        if state.members.is_empty() {
            state.empty_since.get_or_insert(now);
        }
    }

    /// Forwards a frame from `from`, replacing the receiver's route by the sender's.
    pub fn forward(&self, from: Route, frame: Bytes) -> Forwarded {
        let Some(to) = Route::read(&frame) else { return Forwarded::TooShort };
        let mut state = self.state();
        let receivers: Vec<Route> = match to {
            EVERYONE => state.members.keys().copied().filter(|member| *member != from).collect(),
            one if one != from && state.members.contains_key(&one) => vec![one],
            _ => return Forwarded::Undeliverable(to),
        };
        self.metrics.frames_forwarded.add(receivers.len() as u64);
        self.metrics.bytes_forwarded.add((receivers.len() * frame.len()) as u64);
        // Copies nothing if this is the only reference, as it is when it comes from a socket.
        let mut bytes = Vec::from(frame);
        from.write(&mut bytes[..ROUTE_BYTES]);
        self.deliver(&mut state, &receivers, Message::Binary(bytes.into()));
        Forwarded::To(receivers.len())
    }

    /// Sends a control message to one member.
    pub fn send_control(&self, route: Route, control: &Control) {
        let mut state = self.state();
        self.deliver(&mut state, &[route], control_text(control));
    }

    /// Notifies everyone that the relay stops, and closes the connections once their queues are sent.
    pub fn shut_down(&self) {
        let control = Control::Shutdown { message: "The relay is restarting: this page reconnects by itself.".into() };
        for outbox in self.state().members.values() {
            outbox.finish(Closing { control: Some(control.clone()), code: 1001 });
        }
    }

    /// Queues a message for `receivers`. Evicts a receiver with a full queue and notifies the rest.
    fn deliver(&self, state: &mut State, receivers: &[Route], message: Message) {
        let mut slow = Vec::new();
        for route in receivers {
            if let Some(outbox) = state.members.get(route)
                && outbox.push(message.clone()).is_err()
            {
                slow.push(*route);
            }
        }
        for route in slow {
            if let Some(outbox) = state.members.remove(&route) {
                self.metrics.evicted_slow.inc();
                outbox.abort(eviction(Eviction::SlowReceiver));
                self.announce_leave(state, route, Departure::Evicted);
            }
        }
    }

    fn announce_leave(&self, state: &mut State, route: Route, reason: Departure) {
        let rest: Vec<Route> = state.members.keys().copied().collect();
        self.deliver(state, &rest, control_text(&Control::Leave { route, reason }));
    }
}

/// How the connection of an evicted member ends.
pub fn eviction(reason: Eviction) -> Closing {
    let control = Control::Evicted { reason, message: reason.sentence().into() };
    Closing { control: Some(control), code: reason.close_code() }
}

/// A control message as a WebSocket message.
pub fn control_text(control: &Control) -> Message {
    // The messages consist of numbers and strings, which can always be written as JSON.
    Message::Text(serde_json::to_string(control).unwrap_or_default().into())
}
