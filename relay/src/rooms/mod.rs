//! Rooms: opening, listing, joining, expiring. The relay never reads what members send to each other.

pub mod id;
mod outbox;
mod room;
mod socket;

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use potluck_relay_api::http::RoomEntry;
use potluck_relay_api::{Refusal, Route};

use crate::limits::Limits;
use crate::metrics::Metrics;
use crate::rate::KeyedBuckets;
use id::{OwnerSecret, RoomId};
use outbox::Outbox;
use room::Room;
pub use socket::{JoinRequest, serve as serve_socket};

/// Why a room could not be opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpenRoomError {
    /// Too many from this address; try again after this time.
    TooMany(Duration),
    /// The relay has its maximum of rooms.
    Full,
}

struct State {
    rooms: HashMap<RoomId, Arc<Room>>,
    open_limits: KeyedBuckets<IpAddr>,
    join_limits: KeyedBuckets<IpAddr>,
}

/// All rooms of the relay.
pub struct Rooms {
    limits: Arc<Limits>,
    metrics: Arc<Metrics>,
    state: Mutex<State>,
    queued: Arc<AtomicUsize>,
    closing: AtomicBool,
}

impl Rooms {
    /// Starts without rooms.
    pub fn new(limits: Arc<Limits>, metrics: Arc<Metrics>) -> Self {
        let state = State {
            rooms: HashMap::new(),
            open_limits: KeyedBuckets::new(limits.room_rate),
            join_limits: KeyedBuckets::new(limits.join_rate),
        };
        let state = Mutex::new(state);
        Self { limits, metrics, state, queued: Arc::default(), closing: AtomicBool::new(false) }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Every change below is complete in itself, so the state is valid even after a panic.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Opens a room for a client at `address` and returns its owner secret. The title is cut to the limit.
    ///
    /// # Errors
    /// Too many rooms from this address or in all.
    pub fn open(
        &self,
        address: IpAddr,
        title: &str,
        visible: bool,
        now: Instant,
    ) -> Result<OwnerSecret, OpenRoomError> {
        let mut state = self.state();
        state.open_limits.try_take(address, now).map_err(OpenRoomError::TooMany)?;
        if state.rooms.len() >= self.limits.rooms {
            return Err(OpenRoomError::Full);
        }
        let secret = OwnerSecret::generate().ok_or(OpenRoomError::Full)?;
        self.insert(&mut state, secret.room(), self.title(title), visible, now);
        Ok(secret)
    }

    fn insert(&self, state: &mut State, id: RoomId, title: String, visible: bool, now: Instant) -> Arc<Room> {
        let room = Arc::new(Room::new(id.clone(), title, visible, self.metrics.clone(), now));
        state.rooms.insert(id, room.clone());
        self.metrics.rooms_created.inc();
        room
    }

    fn title(&self, title: &str) -> String {
        title.trim().chars().filter(|c| !c.is_control()).take(self.limits.title_chars).collect()
    }

    /// The visible rooms with somebody in them, newest first.
    pub fn list(&self, now: Instant) -> Vec<RoomEntry> {
        let rooms: Vec<Arc<Room>> = self.state().rooms.values().cloned().collect();
        let mut entries: Vec<RoomEntry> = rooms
            .iter()
            .filter_map(|room| {
                let (title, members) = (room.public_title()?, room.members().try_into().unwrap_or(u32::MAX));
                let age_seconds = now.saturating_duration_since(room.opened()).as_secs();
                (members > 0).then(|| RoomEntry { id: room.id().to_string(), title, members, age_seconds })
            })
            .collect();
        entries.sort_by(|a, b| a.age_seconds.cmp(&b.age_seconds).then_with(|| a.id.cmp(&b.id)));
        entries
    }

    /// Adds a client at `address` to the room called `id`, creating it if `create` is set.
    fn join(
        &self,
        address: IpAddr,
        id: &str,
        create: bool,
        now: Instant,
    ) -> Result<(Arc<Room>, Route, Arc<Outbox>), Refusal> {
        if self.closing.load(Ordering::Acquire) {
            return Err(Refusal::ShuttingDown);
        }
        let mut state = self.state();
        state.join_limits.try_take(address, now).map_err(|_| Refusal::TooManyConnections)?;
        let id = RoomId::parse(id).ok_or(Refusal::BadRoomId)?;
        if state.rooms.values().map(|room| room.members()).sum::<usize>() >= self.limits.total_members {
            return Err(Refusal::RelayFull);
        }
        let room = match state.rooms.get(&id) {
            Some(room) => room.clone(),
            None if !create => return Err(Refusal::NoSuchRoom),
            None if state.rooms.len() >= self.limits.rooms => return Err(Refusal::RelayFull),
            None => self.insert(&mut state, id, String::new(), false, now),
        };
        let outbox = Arc::new(Outbox::new(&self.limits, self.queued.clone()));
        // The lock is still held, so the room cannot expire before it is joined.
        let route =
            room.join(outbox.clone(), self.limits.for_members(), self.limits.members).ok_or(Refusal::RoomFull)?;
        Ok((room, route, outbox))
    }

    /// Drops rooms that have been empty for too long.
    pub fn expire(&self, now: Instant) {
        let mut state = self.state();
        let before = state.rooms.len();
        state.rooms.retain(|_, room| {
            room.empty_since().is_none_or(|since| now.saturating_duration_since(since) < self.limits.room_idle)
        });
        self.metrics.rooms_expired.add((before - state.rooms.len()) as u64);
    }

    /// Refuses new members and notifies all members that the relay stops.
    pub fn shut_down(&self) {
        self.closing.store(true, Ordering::Release);
        for room in self.state().rooms.values() {
            room.shut_down();
        }
    }

    /// The numbers of rooms, of members, and of bytes waiting in their queues.
    pub fn counts(&self) -> (usize, usize, usize) {
        let state = self.state();
        let members = state.rooms.values().map(|room| room.members()).sum();
        (state.rooms.len(), members, self.queued.load(Ordering::Relaxed))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use std::net::Ipv4Addr;

    use potluck_relay_api::Departure;

    use super::*;
    use crate::limits::Rate;

    const HOME: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

    fn rooms(limits: Limits) -> Rooms {
        Rooms::new(Arc::new(limits), Arc::default())
    }

    #[test]
    fn only_an_empty_room_expires() {
        let rooms = rooms(Limits::default());
        let start = Instant::now();
        let id = rooms.open(HOME, "a", true, start).unwrap().room();
        let (room, route, _outbox) = rooms.join(HOME, id.as_str(), false, start).unwrap();
        let late = start + Duration::from_secs(3600);
        rooms.expire(late);
        assert_eq!(rooms.counts().0, 1);
        room.leave(route, Departure::Closed, late);
        rooms.expire(late + rooms.limits.room_idle - Duration::from_millis(1));
        assert_eq!(rooms.counts().0, 1);
        rooms.expire(late + rooms.limits.room_idle);
        assert_eq!(rooms.counts().0, 0);
        assert_eq!(rooms.metrics.rooms_expired.get(), 1);
    }

    #[test]
    fn opening_is_limited_by_rate_and_by_number() {
        let limits = Limits { rooms: 3, room_rate: Rate { per_second: 1.0, burst: 2.0 }, ..Limits::default() };
        let rooms = rooms(limits);
        let start = Instant::now();
        assert!(rooms.open(HOME, "a", false, start).is_ok());
        assert!(rooms.open(HOME, "b", false, start).is_ok());
        let refused = rooms.open(HOME, "c", false, start).err();
        assert_eq!(refused, Some(OpenRoomError::TooMany(Duration::from_secs(1))));
        let other = IpAddr::V4(Ipv4Addr::new(192, 168, 0, 9));
        assert!(rooms.open(other, "c", false, start).is_ok());
        assert_eq!(rooms.open(other, "d", false, start).err(), Some(OpenRoomError::Full));
    }

    #[test]
    fn titles_are_cut_and_cleaned() {
        let rooms = rooms(Limits { title_chars: 5, ..Limits::default() });
        let id = rooms.open(HOME, "  Ki\ntchen table ", true, Instant::now()).unwrap().room();
        let _inside = rooms.join(HOME, id.as_str(), false, Instant::now()).unwrap();
        assert_eq!(rooms.list(Instant::now())[0].title, "Kitch");
    }
}
