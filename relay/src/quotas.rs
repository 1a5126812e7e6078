//! What one address may use, and all of them together: connections, rooms, downloads, memory.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use crate::limits::Limits;

/// What is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resource {
    /// Connections of any kind, from the moment they are accepted.
    Connection,
    /// Connections to rooms, also those that have not entered yet.
    Member,
    /// Rooms, for whoever created them.
    Room,
    /// Downloads of weights.
    Download,
}

/// Who of two limits was reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exhausted {
    /// The address has its maximum.
    Address,
    /// The relay has its maximum.
    Relay,
}

#[derive(Debug, Default)]
struct Counts([AtomicUsize; 4]);

impl Counts {
    fn of(&self, resource: Resource) -> &AtomicUsize {
        &self.0[resource as usize]
    }
}

/// The quotas of the relay.
#[derive(Debug)]
pub struct Quotas {
    limits: Arc<Limits>,
    counts: Counts,
    memory: AtomicUsize,
    /// Addresses that use something.
    shares: Mutex<HashMap<IpAddr, Weak<Share>>>,
}

impl Quotas {
    /// Nothing is used yet.
    pub fn new(limits: Arc<Limits>) -> Arc<Self> {
        Arc::new(Self { limits, counts: Counts::default(), memory: AtomicUsize::new(0), shares: Mutex::default() })
    }

    fn shares(&self) -> MutexGuard<'_, HashMap<IpAddr, Weak<Share>>> {
        self.shares.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What an address uses.
    pub fn share(self: &Arc<Self>, address: IpAddr) -> Arc<Share> {
        let holder = holder(address);
        let mut shares = self.shares();
        if let Some(share) = shares.get(&holder).and_then(Weak::upgrade) {
            return share;
        }
        let share = Share { holder, quotas: self.clone(), counts: Counts::default(), memory: AtomicUsize::new(0) };
        let share = Arc::new(share);
        shares.insert(holder, Arc::downgrade(&share));
        share
    }

    /// How many are in use.
    pub fn used(&self, resource: Resource) -> usize {
        self.counts.of(resource).load(Ordering::Relaxed)
    }

    /// Bytes of messages, waiting or unfinished.
    pub fn memory(&self) -> usize {
        self.memory.load(Ordering::Relaxed)
    }

    /// The limits for an address and for the relay.
    fn limits(&self, resource: Resource) -> (usize, usize) {
        let limits = &self.limits;
        match resource {
            Resource::Connection => (limits.address_connections, limits.connections),
            Resource::Member => (limits.address_members, limits.total_members),
            Resource::Room => (limits.address_rooms, limits.rooms),
            Resource::Download => (limits.address_downloads, limits.downloads),
        }
    }
}

/// Who holds a quota: an IPv4 address, or the network of an IPv6 address, because a household gets a whole one.
fn holder(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(ip) => Ipv6Addr::from_bits(ip.to_bits() & !u128::from(u64::MAX)).into(),
        v4 => v4,
    }
}

/// What one address uses.
#[derive(Debug)]
pub struct Share {
    holder: IpAddr,
    quotas: Arc<Quotas>,
    counts: Counts,
    memory: AtomicUsize,
}

impl Share {
    /// Whom it counts for: the key of limits by address.
    pub fn holder(&self) -> IpAddr {
        self.holder
    }

    /// Takes one until the lease is dropped.
    ///
    /// # Errors
    /// A limit is reached.
    pub fn take(self: &Arc<Self>, resource: Resource) -> Result<Lease, Exhausted> {
        let (own_limit, total_limit) = self.quotas.limits(resource);
        // Dropped again below if a limit is exceeded.
        let lease = Lease { share: self.clone(), resource };
        let own = self.counts.of(resource).fetch_add(1, Ordering::Relaxed);
        let total = self.quotas.counts.of(resource).fetch_add(1, Ordering::Relaxed);
        match () {
            () if own >= own_limit => Err(Exhausted::Address),
            () if total >= total_limit => Err(Exhausted::Relay),
            () => Ok(lease),
        }
    }

    /// A charge of no bytes, to be grown.
    pub fn charge(self: &Arc<Self>) -> Charge {
        Charge { share: self.clone(), bytes: 0 }
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        let mut shares = self.quotas.shares();
        // Another one may have taken its place already.
        if shares.get(&self.holder).is_some_and(|share| share.strong_count() == 0) {
            shares.remove(&self.holder);
        }
    }
}

/// One of something, until it is dropped.
#[derive(Debug)]
pub struct Lease {
    share: Arc<Share>,
    resource: Resource,
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.share.counts.of(self.resource).fetch_sub(1, Ordering::Relaxed);
        self.share.quotas.counts.of(self.resource).fetch_sub(1, Ordering::Relaxed);
    }
}

/// The relay's memory is full, and much of it is this address's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryFull;

/// Bytes of messages that an address caused, until it is dropped.
#[derive(Debug)]
pub struct Charge {
    share: Arc<Share>,
    bytes: usize,
}

impl Charge {
    /// Adds bytes.
    ///
    /// # Errors
    /// The relay's memory is full, and much of it is this address's. The bytes are counted all the same until the charge
    /// is dropped.
    pub fn grow(&mut self, bytes: usize) -> Result<(), MemoryFull> {
        let quotas = &self.share.quotas;
        self.bytes += bytes;
        let own = self.share.memory.fetch_add(bytes, Ordering::Relaxed) + bytes;
        let total = quotas.memory.fetch_add(bytes, Ordering::Relaxed) + bytes;
        let full = total > quotas.limits.memory_bytes && own > quotas.limits.fair_memory_bytes;
        if full { Err(MemoryFull) } else { Ok(()) }
    }

    /// Returns all bytes.
    pub fn clear(&mut self) {
        self.shrink(self.bytes);
    }

    /// Returns bytes, at most all.
    pub fn shrink(&mut self, bytes: usize) {
        let bytes = bytes.min(self.bytes);
        self.bytes -= bytes;
        self.share.memory.fetch_sub(bytes, Ordering::Relaxed);
        self.share.quotas.memory.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// The bytes counted.
    pub fn bytes(&self) -> usize {
        self.bytes
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.clear();
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use super::*;

    fn quotas() -> Arc<Quotas> {
        let limits =
            Limits { address_rooms: 2, rooms: 3, memory_bytes: 1000, fair_memory_bytes: 300, ..Limits::default() };
        Quotas::new(Arc::new(limits))
    }

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn an_address_and_the_relay_have_limits() {
        let quotas = quotas();
        let (one, two) = (quotas.share(ip("10.0.0.1")), quotas.share(ip("10.0.0.2")));
        let first = one.take(Resource::Room).unwrap();
        let _second = quotas.share(ip("10.0.0.1")).take(Resource::Room).unwrap();
        assert_eq!(one.take(Resource::Room).unwrap_err(), Exhausted::Address);
        let _third = two.take(Resource::Room).unwrap();
        assert_eq!(two.take(Resource::Room).unwrap_err(), Exhausted::Relay);
        assert_eq!(quotas.used(Resource::Room), 3, "a refusal counts nothing");
        drop(first);
        two.take(Resource::Room).unwrap();
        drop((one, two));
        assert_eq!(quotas.shares().len(), 2, "who has nothing any more is forgotten");
    }

    #[test]
    fn a_household_has_one_quota() {
        assert_eq!(holder(ip("::ffff:10.0.0.1")), ip("10.0.0.1"));
        assert_eq!(holder(ip("2001:db8:1:2:3::4")), ip("2001:db8:1:2::"));
        assert_ne!(holder(ip("10.0.0.1")), holder(ip("10.0.0.2")));
    }

    #[test]
    fn full_memory_stops_only_who_filled_it() {
        let quotas = quotas();
        let (greedy, modest) = (quotas.share(ip("10.0.0.1")), quotas.share(ip("10.0.0.2")));
        let mut flood = greedy.charge();
        assert_eq!(flood.grow(900), Ok(()));
        let mut small = modest.charge();
        assert_eq!(small.grow(200), Ok(()), "over the total, but below the fair share");
        assert_eq!(flood.grow(100), Err(MemoryFull));
        flood.shrink(400);
        assert_eq!((flood.bytes(), quotas.memory()), (600, 800), "part of it was returned");
        flood.shrink(1000);
        assert_eq!((flood.bytes(), quotas.memory()), (0, 200), "nobody returns what is another's");
        assert_eq!(flood.grow(900), Err(MemoryFull));
        drop(flood);
        assert_eq!(quotas.memory(), 200);
        assert_eq!(small.grow(500), Ok(()));
    }
}
