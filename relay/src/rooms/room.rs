//! One room: its members and what they are told about each other.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use axum::body::Bytes;
use axum::extract::ws::Message;

use super::id::{RoomId, first_route};
use super::outbox::{End, Outbox};
use crate::metrics::Metrics;
use crate::protocol::{Control, Departure, EVERYONE, Eviction, ROUTE_BYTES, Route, StatedLimits};

/// What became of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Forwarded {
    /// It is in the queues of this many receivers.
    To(usize),
    /// Its route is not in the room.
    Undeliverable(Route),
    /// It is too short to have a route.
    TooShort,
}

struct State {
    members: BTreeMap<Route, Arc<Outbox>>,
    next_route: u32,
    title: String,
    visible: bool,
    /// Since when nobody is in; a new room is empty until its host connects.
    empty_since: Option<Instant>,
}

/// A room. All its methods return at once; its lock is never held across a wait.
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

    /// When it was made, or made again.
    pub fn opened(&self) -> Instant {
        self.opened
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Every change below is complete in itself, so the state is good even after a panic of a holder.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many members are in.
    pub fn members(&self) -> usize {
        self.state().members.len()
    }

    /// The title, if the room may be listed.
    pub fn listed(&self) -> Option<String> {
        let state = self.state();
        state.visible.then(|| state.title.clone())
    }

    /// Changes how the room is listed.
    pub fn list(&self, title: String, visible: bool) {
        let mut state = self.state();
        state.title = title;
        state.visible = visible;
    }

    /// Since when nobody is in; `None` while there is somebody.
    pub fn empty_since(&self) -> Option<Instant> {
        self.state().empty_since
    }

    /// Lets a member in and tells everyone, or gives `None` if `most` are in already.
    pub fn join(&self, outbox: Arc<Outbox>, limits: StatedLimits, most: usize) -> Option<Route> {
        let mut state = self.state();
        if state.members.len() >= most {
            return None;
        }
        let route = Route(state.next_route);
        state.next_route += 1;
        let welcome = Control::Welcome {
            version: crate::protocol::VERSION,
            room: self.id.to_string(),
            route,
            members: state.members.keys().copied().collect(),
            limits,
        };
        let others: Vec<Route> = state.members.keys().copied().collect();
        state.members.insert(route, outbox);
        state.empty_since = None;
        self.deliver(&mut state, &[route], text(&welcome));
        self.deliver(&mut state, &others, text(&Control::Join { route }));
        self.metrics.members_joined.inc();
        Some(route)
    }

    /// Takes a member out and tells the others. Does nothing if it is out already.
    pub fn leave(&self, route: Route, reason: Departure, now: Instant) {
        let mut state = self.state();
        if state.members.remove(&route).is_some() {
            self.announce_leave(&mut state, route, reason);
        }
        if state.members.is_empty() {
            state.empty_since.get_or_insert(now);
        }
    }

    /// Forwards a frame of `from`, with the sender's route in place of the receiver's.
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
        // Free of a copy when the socket handed over the only reference.
        let mut bytes = Vec::from(frame);
        from.write(&mut bytes[..ROUTE_BYTES]);
        self.deliver(&mut state, &receivers, Message::Binary(bytes.into()));
        Forwarded::To(receivers.len())
    }

    /// Says something to one member.
    pub fn tell(&self, route: Route, control: &Control) {
        let mut state = self.state();
        self.deliver(&mut state, &[route], text(control));
    }

    /// Tells everyone that the relay stops and ends their connections after what is queued.
    pub fn shut_down(&self) {
        let control = Control::Shutdown { message: "The relay is restarting: this page reconnects by itself.".into() };
        for outbox in self.state().members.values() {
            outbox.finish(End { control: Some(control.clone()), code: 1001 });
        }
    }

    /// Puts a message into the queues of `receivers`. Who has no space for it is put out, which the rest hears.
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
                outbox.cut(evicted(Eviction::SlowReceiver));
                self.announce_leave(state, route, Departure::Evicted);
            }
        }
    }

    fn announce_leave(&self, state: &mut State, route: Route, reason: Departure) {
        let rest: Vec<Route> = state.members.keys().copied().collect();
        self.deliver(state, &rest, text(&Control::Leave { route, reason }));
    }
}

/// The end of a member that is put out.
pub fn evicted(reason: Eviction) -> End {
    let control = Control::Evicted { reason, message: reason.sentence().into() };
    End { control: Some(control), code: reason.close_code() }
}

/// A control message as it goes over the socket.
pub fn text(control: &Control) -> Message {
    // These forms hold numbers and strings only, which always can be written as JSON.
    Message::Text(serde_json::to_string(control).unwrap_or_default().into())
}
