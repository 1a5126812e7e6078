//! Rooms: opening, listing, joining, expiring. What members say to each other is none of the relay's business.

pub mod id;
mod outbox;
mod room;
mod socket;

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde::Serialize;

use crate::limits::Limits;
use crate::metrics::Metrics;
use crate::protocol::{Refusal, Route};
use crate::rate::Buckets;
use id::{OwnerSecret, RoomId};
use outbox::Outbox;
use room::Room;
pub use socket::{Arrival, serve as serve_socket};

/// A line of `GET /rooms`.
#[derive(Clone, Debug, Serialize)]
pub struct RoomLine {
    /// The id, for the link.
    pub id: String,
    /// What its host called it.
    pub title: String,
    /// How many are in.
    pub members: usize,
    /// Seconds since it was opened.
    pub age_seconds: u64,
}

/// Why a room was not opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotOpened {
    /// Too many from this address; try again after so long.
    TooMany(Duration),
    /// There are as many rooms as there may be.
    Full,
}

struct Table {
    rooms: HashMap<RoomId, Arc<Room>>,
    openings: Buckets<IpAddr>,
    arrivals: Buckets<IpAddr>,
}

/// All rooms of the relay.
pub struct Rooms {
    limits: Arc<Limits>,
    metrics: Arc<Metrics>,
    table: Mutex<Table>,
    queued: Arc<AtomicUsize>,
    closing: AtomicBool,
}

impl Rooms {
    /// No rooms yet.
    pub fn new(limits: Arc<Limits>, metrics: Arc<Metrics>) -> Self {
        let table = Table {
            rooms: HashMap::new(),
            openings: Buckets::new(limits.room_rate),
            arrivals: Buckets::new(limits.join_rate),
        };
        let table = Mutex::new(table);
        Self { limits, metrics, table, queued: Arc::default(), closing: AtomicBool::new(false) }
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        // Every change below is complete in itself, so the table is good even after a panic of a holder.
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Opens a room for somebody at `address` and gives the secret that proves it. The title is cut to the limit.
    pub fn open(&self, address: IpAddr, title: &str, visible: bool, now: Instant) -> Result<OwnerSecret, NotOpened> {
        let mut table = self.table();
        table.openings.try_take(address, now).map_err(NotOpened::TooMany)?;
        if table.rooms.len() >= self.limits.rooms {
            return Err(NotOpened::Full);
        }
        let secret = OwnerSecret::draw().ok_or(NotOpened::Full)?;
        self.insert(&mut table, secret.room(), self.title(title), visible, now);
        Ok(secret)
    }

    fn insert(&self, table: &mut Table, id: RoomId, title: String, visible: bool, now: Instant) -> Arc<Room> {
        let room = Arc::new(Room::new(id.clone(), title, visible, self.metrics.clone(), now));
        table.rooms.insert(id, room.clone());
        self.metrics.rooms_created.inc();
        room
    }

    fn title(&self, title: &str) -> String {
        title.trim().chars().filter(|c| !c.is_control()).take(self.limits.title_chars).collect()
    }

    /// The rooms that their hosts left visible and where somebody is, newest first.
    pub fn list(&self, now: Instant) -> Vec<RoomLine> {
        let rooms: Vec<Arc<Room>> = self.table().rooms.values().cloned().collect();
        let mut lines: Vec<RoomLine> = rooms
            .iter()
            .filter_map(|room| {
                let (title, members) = (room.listed()?, room.members());
                let age_seconds = now.saturating_duration_since(room.opened()).as_secs();
                (members > 0).then(|| RoomLine { id: room.id().to_string(), title, members, age_seconds })
            })
            .collect();
        lines.sort_by(|a, b| a.age_seconds.cmp(&b.age_seconds).then_with(|| a.id.cmp(&b.id)));
        lines
    }

    /// Lets somebody at `address` into the room called `id`, making it if `create` is set.
    fn enter(
        &self,
        address: IpAddr,
        id: &str,
        create: bool,
        now: Instant,
    ) -> Result<(Arc<Room>, Route, Arc<Outbox>), Refusal> {
        if self.closing.load(Ordering::Acquire) {
            return Err(Refusal::ShuttingDown);
        }
        let mut table = self.table();
        table.arrivals.try_take(address, now).map_err(|_| Refusal::TooManyConnections)?;
        let id = RoomId::parse(id).ok_or(Refusal::BadRoomId)?;
        if table.rooms.values().map(|room| room.members()).sum::<usize>() >= self.limits.total_members {
            return Err(Refusal::RelayFull);
        }
        let room = match table.rooms.get(&id) {
            Some(room) => room.clone(),
            None if !create => return Err(Refusal::NoSuchRoom),
            None if table.rooms.len() >= self.limits.rooms => return Err(Refusal::RelayFull),
            None => self.insert(&mut table, id, String::new(), false, now),
        };
        let outbox = Arc::new(Outbox::new(&self.limits, self.queued.clone()));
        // Joining under the table's lock: the room cannot expire between being found and being entered.
        let route = room.join(outbox.clone(), self.limits.stated(), self.limits.members).ok_or(Refusal::RoomFull)?;
        Ok((room, route, outbox))
    }

    /// Drops rooms that have been empty for too long.
    pub fn expire(&self, now: Instant) {
        let mut table = self.table();
        let before = table.rooms.len();
        table.rooms.retain(|_, room| {
            room.empty_since().is_none_or(|since| now.saturating_duration_since(since) < self.limits.room_idle)
        });
        self.metrics.rooms_expired.add((before - table.rooms.len()) as u64);
    }

    /// Lets nobody in any more and tells every member that the relay stops.
    pub fn shut_down(&self) {
        self.closing.store(true, Ordering::Release);
        for room in self.table().rooms.values() {
            room.shut_down();
        }
    }

    /// Rooms, members and bytes waiting in their queues.
    pub fn counts(&self) -> (usize, usize, usize) {
        let table = self.table();
        let members = table.rooms.values().map(|room| room.members()).sum();
        (table.rooms.len(), members, self.queued.load(Ordering::Relaxed))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::net::Ipv4Addr;

    use super::*;
    use crate::limits::Rate;
    use crate::protocol::Departure;

    const HOME: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

    fn rooms(limits: Limits) -> Rooms {
        Rooms::new(Arc::new(limits), Arc::default())
    }

    #[test]
    fn an_empty_room_expires_and_an_inhabited_one_does_not() {
        let rooms = rooms(Limits::default());
        let start = Instant::now();
        let id = rooms.open(HOME, "a", true, start).unwrap().room();
        let (room, route, _outbox) = rooms.enter(HOME, id.as_str(), false, start).unwrap();
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
        assert_eq!(refused, Some(NotOpened::TooMany(Duration::from_secs(1))));
        let other = IpAddr::V4(Ipv4Addr::new(192, 168, 0, 9));
        assert!(rooms.open(other, "c", false, start).is_ok());
        assert_eq!(rooms.open(other, "d", false, start).err(), Some(NotOpened::Full));
    }

    #[test]
    fn titles_are_cut_and_cleaned() {
        let rooms = rooms(Limits { title_chars: 5, ..Limits::default() });
        let id = rooms.open(HOME, "  Ki\ntchen table ", true, Instant::now()).unwrap().room();
        let _inside = rooms.enter(HOME, id.as_str(), false, Instant::now()).unwrap();
        assert_eq!(rooms.list(Instant::now())[0].title, "Kitch");
    }
}
