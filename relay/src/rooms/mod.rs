//! Rooms: entering, listing, expiring. The relay never reads what members send to each other.

pub mod id;
mod outbox;
mod proof;
mod room;
mod socket;

use std::collections::{HashMap, HashSet};
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use axum::extract::ws::Message;
use potluck_relay_api::http::RoomEntry;
use potluck_relay_api::{Control, EntryProof, Nonce, Refusal, Route};
use serde::Serialize;
use tokio::sync::watch;

use crate::limits::Limits;
use crate::metrics::Metrics;
use crate::quotas::{Exhausted, Lease, Resource, Share};
use crate::rate::KeyedBuckets;
use id::RoomId;
use outbox::Outbox;
use proof::RoomKeys;
use room::{EntryRole, Listing, Room};
pub use socket::{Arrival, serve as serve_socket};

/// Most rooms that are kept closed: an operator ends few.
const MAX_ENDED: usize = 4_096;

/// A room as the operator sees it: no title, which may say much, and no address.
#[derive(Debug, Serialize)]
pub struct RoomReport {
    /// Its id.
    pub id: String,
    /// Members in it.
    pub members: usize,
    /// Since it was opened.
    pub age_seconds: u64,
    /// Bytes that its members sent each other.
    pub bytes: u64,
}

struct State {
    rooms: HashMap<RoomId, Arc<Room>>,
    /// Rooms that the operator ended.
    ended: HashSet<RoomId>,
    create_rates: KeyedBuckets<IpAddr>,
    join_rates: KeyedBuckets<IpAddr>,
}

/// How far the relay is from its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// It takes new rooms.
    Open,
    /// It is about to stop: rooms go on, and new ones find another relay.
    Draining,
    /// It stops.
    Closing,
}

/// All rooms of the relay.
pub struct Rooms {
    limits: Arc<Limits>,
    metrics: Arc<Metrics>,
    state: Mutex<State>,
    phase: watch::Sender<Phase>,
}

impl Rooms {
    /// Starts without rooms.
    pub fn new(limits: Arc<Limits>, metrics: Arc<Metrics>) -> Self {
        let state = State {
            rooms: HashMap::new(),
            ended: HashSet::new(),
            create_rates: KeyedBuckets::new(limits.room_rate),
            join_rates: KeyedBuckets::new(limits.join_rate),
        };
        Self { limits, metrics, state: Mutex::new(state), phase: watch::Sender::new(Phase::Open) }
    }

    /// How far the relay is from its end.
    pub fn phase(&self) -> Phase {
        *self.phase.borrow()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Every change below is complete in itself, so the state is valid even after a panic.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How a room is listed. The title is cleaned and cut to the limit.
    fn listing(&self, title: &str, visible: bool) -> Listing {
        let title = title.trim().chars().filter(|c| !c.is_control()).take(self.limits.title_chars).collect();
        Listing { title, visible }
    }

    /// The visible rooms with their owner in them, newest first.
    pub fn list(&self, now: Instant) -> Vec<RoomEntry> {
        let rooms: Vec<Arc<Room>> = self.state().rooms.values().cloned().collect();
        let mut entries: Vec<RoomEntry> = rooms
            .iter()
            .filter_map(|room| {
                let (title, members) = room.listed()?;
                let members = members.try_into().unwrap_or(u32::MAX);
                let age_seconds = now.saturating_duration_since(room.opened()).as_secs();
                Some(RoomEntry { id: room.id().to_string(), title, members, age_seconds })
            })
            .collect();
        entries.sort_by(|a, b| a.age_seconds.cmp(&b.age_seconds).then_with(|| a.id.cmp(&b.id)));
        entries
    }

    /// Whether a connection may try to enter: its room's id and its place among the members.
    fn arrive(&self, arrival: &Arrival, now: Instant) -> Result<(RoomId, Lease), Refusal> {
        if self.phase() == Phase::Closing {
            return Err(Refusal::ShuttingDown);
        }
        let holder = arrival.share.holder();
        self.state().join_rates.try_take(holder, now).map_err(|_| Refusal::TooManyConnections)?;
        let id = RoomId::parse(&arrival.room).ok_or(Refusal::BadRoomId)?;
        let lease = arrival.share.take(Resource::Member).map_err(|exhausted| match exhausted {
            Exhausted::Address => Refusal::TooManyConnections,
            Exhausted::Relay => Refusal::RelayFull,
        })?;
        Ok((id, lease))
    }

    /// Adds a member to the room `id` if its proof holds for the connection with this nonce. An owner creates the room if
    /// need be, and if `creation` lets it.
    fn join(
        &self,
        id: &RoomId,
        nonce: &Nonce,
        proof: &EntryProof,
        share: &Arc<Share>,
        creation: Result<(), Refusal>,
        now: Instant,
    ) -> Result<(Arc<Room>, Route, Arc<Outbox>), Refusal> {
        let known = self.state().rooms.get(id).cloned();
        if known.is_none() && !matches!(proof, EntryProof::Owner { .. }) {
            return Err(Refusal::NoSuchRoom);
        }
        // Without the lock: a signature takes much longer to check than everything else.
        let keys = known.as_ref().map(|room| RoomKeys { owner: room.owner_key(), links: room.join_keys() });
        if !proof::holds(id, nonce, proof, keys.as_ref()) {
            return Err(Refusal::BadProof);
        }
        let role = match proof {
            EntryProof::Owner { join_key, title, visible, term, .. } => {
                EntryRole::Owner { join_key: *join_key, listing: self.listing(title, *visible), term: *term }
            }
            EntryProof::Link { key, .. } => EntryRole::Link { key: *key },
            EntryProof::Invite { certificate, .. } => EntryRole::Invite {
                invite: certificate.invite(),
                expired: is_past(certificate.expires(), self.limits.invite_grace),
            },
            EntryProof::Visitor => EntryRole::Visitor,
        };
        // The lock is held while joining, so that the room cannot expire and a shutdown sees every member.
        let mut state = self.state();
        let phase = self.phase();
        if phase == Phase::Closing {
            return Err(Refusal::ShuttingDown);
        }
        if state.ended.contains(id) {
            return Err(Refusal::Ended);
        }
        let room = match (state.rooms.get(id), proof) {
            (Some(room), _) => room.clone(),
            // It would be closed in a moment. The owner tries again, and a proxy then leads it to another relay.
            (None, EntryProof::Owner { .. }) if phase == Phase::Draining => return Err(Refusal::ShuttingDown),
            (None, EntryProof::Owner { key, .. }) => {
                creation?;
                state.create_rates.try_take(share.holder(), now).map_err(|_| Refusal::TooManyRooms)?;
                let lease = share.take(Resource::Room).map_err(|exhausted| match exhausted {
                    Exhausted::Address => Refusal::TooManyRooms,
                    Exhausted::Relay => Refusal::RelayFull,
                })?;
                let (limits, metrics) = (self.limits.clone(), self.metrics.clone());
                let room = Arc::new(Room::new(id.clone(), *key, lease, limits, metrics, now));
                state.rooms.insert(id.clone(), room.clone());
                self.metrics.rooms_created.inc();
                room
            }
            (None, _) => return Err(Refusal::NoSuchRoom),
        };
        let (route, outbox) = room.join(&role, share.clone())?;
        Ok((room, route, outbox))
    }

    /// Drops rooms that have been empty for too long.
    pub fn expire(&self, now: Instant) {
        let mut state = self.state();
        let before = state.rooms.len();
        state.rooms.retain(|_, room| !room.is_expired(now));
        self.metrics.rooms_expired.add((before - state.rooms.len()) as u64);
    }

    /// What the operator may know of all rooms, those with most bytes first.
    pub fn report(&self, now: Instant) -> Vec<RoomReport> {
        let rooms: Vec<Arc<Room>> = self.state().rooms.values().cloned().collect();
        let report = |room: &Arc<Room>| RoomReport {
            id: room.id().to_string(),
            members: room.members(),
            age_seconds: now.saturating_duration_since(room.opened()).as_secs(),
            bytes: room.bytes(),
        };
        let mut rooms: Vec<RoomReport> = rooms.iter().map(report).collect();
        rooms.sort_by(|a, b| b.bytes.cmp(&a.bytes).then_with(|| a.id.cmp(&b.id)));
        rooms
    }

    /// Ends a room for good: its id stays closed until the relay starts again. False if it is not there.
    pub fn end(&self, id: &RoomId) -> bool {
        let mut state = self.state();
        let Some(room) = state.rooms.remove(id) else { return false };
        if state.ended.len() < MAX_ENDED {
            state.ended.insert(id.clone());
        }
        room.end();
        true
    }

    /// Refuses new rooms from now on.
    pub fn drain(&self) {
        self.phase.send_if_modified(|phase| {
            let is_open = *phase == Phase::Open;
            if is_open {
                *phase = Phase::Draining;
            }
            is_open
        });
    }

    /// Refuses new members and notifies all members that the relay stops.
    pub fn shut_down(&self) {
        let state = self.state();
        self.phase.send_replace(Phase::Closing);
        for room in state.rooms.values() {
            room.close("The relay is restarting: this page reconnects by itself.");
        }
    }

    /// Asks all members to connect again: their rooms may have another home now.
    pub fn send_home(&self) {
        let rooms: Vec<Arc<Room>> = self.state().rooms.values().cloned().collect();
        rooms.iter().for_each(|room| room.close("Another relay is back: this page looks for its room there."));
    }

    /// Resolves once the relay stops.
    async fn closed(&self) {
        // The sender lives as long as these rooms.
        let _ = self.phase.subscribe().wait_for(|phase| *phase == Phase::Closing).await;
    }

    /// The number of rooms.
    pub fn count(&self) -> usize {
        self.state().rooms.len()
    }
}

/// Whether a time in seconds since 1970 is over by more than `grace`.
fn is_past(seconds: u32, grace: Duration) -> bool {
    let end = Duration::from_secs(seconds.into()) + grace;
    // A clock before 1970 knows no time.
    SystemTime::now().duration_since(UNIX_EPOCH).is_ok_and(|now| now > end)
}

/// A control message as a WebSocket message.
fn control_text(control: &Control) -> Message {
    // The messages consist of numbers and strings, which can always be written as JSON.
    Message::Text(serde_json::to_string(control).unwrap_or_default().into())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use std::net::Ipv4Addr;

    use potluck_relay_api::{Binary, Departure, SignedEntry, Term, entry_message};
    use ring::signature::{Ed25519KeyPair, KeyPair};

    use super::*;
    use crate::limits::Rate;
    use crate::quotas::Quotas;

    const NONCE: Nonce = Binary([0; 32]);

    struct Relay {
        rooms: Rooms,
        quotas: Arc<Quotas>,
    }

    fn relay(limits: Limits) -> Relay {
        let limits = Arc::new(limits);
        Relay { rooms: Rooms::new(limits.clone(), Arc::default()), quotas: Quotas::new(limits) }
    }

    impl Relay {
        /// The owner with this key enters from an address; the room, if it may.
        fn own(&self, key: u8, last: u8, title: &str, now: Instant) -> Result<(Arc<Room>, Route), Refusal> {
            let pair = Ed25519KeyPair::from_seed_unchecked(&[key; 32]).unwrap();
            let key = Binary(pair.public_key().as_ref().try_into().unwrap());
            let (id, join_key) = (RoomId::of_owner(&key), Binary([3; 32]));
            let term = Term::default();
            let entry = SignedEntry::Owner { join_key: &join_key, title, visible: true, term };
            let signature = pair.sign(&entry_message(id.as_str(), &NONCE, entry));
            let signature = Binary(signature.as_ref().try_into().unwrap());
            let proof = EntryProof::Owner { key, join_key, title: title.into(), visible: true, term, signature };
            let share = self.quotas.share(IpAddr::V4(Ipv4Addr::new(10, 0, 0, last)));
            let (room, route, _outbox) = self.rooms.join(&id, &NONCE, &proof, &share, Ok(()), now)?;
            Ok((room, route))
        }
    }

    #[test]
    fn only_an_empty_room_expires() {
        let relay = relay(Limits::default());
        let start = Instant::now();
        let (room, route) = relay.own(1, 1, "a", start).unwrap();
        let late = start + Duration::from_secs(3600);
        relay.rooms.expire(late);
        assert_eq!(relay.rooms.count(), 1);
        room.leave(route, Departure::Closed, late);
        relay.rooms.expire(late + relay.rooms.limits.room_idle - Duration::from_millis(1));
        assert_eq!(relay.rooms.count(), 1);
        relay.rooms.expire(late + relay.rooms.limits.room_idle);
        assert_eq!(relay.rooms.count(), 0);
        assert_eq!(relay.rooms.metrics.rooms_expired.get(), 1);
        drop(room);
        assert_eq!(relay.quotas.used(Resource::Room), 0);
    }

    #[test]
    fn creating_is_limited_by_rate_by_address_and_by_number() {
        let limits = Limits { rooms: 4, address_rooms: 2, ..Limits::default() };
        let relay = relay(Limits { room_rate: Rate { per_second: 1.0, burst: 1.0 }, ..limits });
        let start = Instant::now();
        let later = |seconds| start + Duration::from_secs(seconds);
        let create = |key, last, now| relay.own(key, last, "a", now).map(|_| ());
        assert_eq!(create(1, 1, start), Ok(()));
        assert_eq!(create(2, 1, start), Err(Refusal::TooManyRooms), "too fast");
        assert_eq!(create(1, 1, start), Ok(()), "a room that is there costs nothing");
        assert_eq!(create(2, 1, later(1)), Ok(()));
        assert_eq!(create(3, 1, later(9)), Err(Refusal::TooManyRooms), "too many");
        assert_eq!(create(3, 2, later(9)), Ok(()));
        assert_eq!(create(4, 2, later(10)), Ok(()));
        assert_eq!(create(5, 3, later(10)), Err(Refusal::RelayFull));
    }

    #[test]
    fn titles_are_cut_and_cleaned() {
        let relay = relay(Limits { title_chars: 5, ..Limits::default() });
        relay.own(1, 1, "  Ki\ntchen table ", Instant::now()).unwrap();
        assert_eq!(relay.rooms.list(Instant::now())[0].title, "Kitch");
    }
}
