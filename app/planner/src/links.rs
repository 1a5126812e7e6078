//! Latency and bandwidth between peers, by direction.

use std::collections::BTreeMap;

use potluck_plan::{Bytes, PeerId};

/// One direction of a network path.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Link {
    /// One-way latency while idle, milliseconds.
    pub latency_millis: f64,
    /// Bytes per millisecond.
    pub bandwidth: f64,
}

/// The path between a peer and the relay. A message between two peers takes the sender's `up` and the receiver's `down`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AccessLink {
    /// To the relay.
    pub up: Link,
    /// From the relay.
    pub down: Link,
}

impl Link {
    /// Assumed bandwidth where none was measured: 10 MB/s.
    pub const BANDWIDTH: f64 = 10e3;

    /// No time at all: within one peer.
    pub const NONE: Link = Link { latency_millis: 0.0, bandwidth: f64::INFINITY };

    /// A link of which only the latency is known.
    pub fn latency(latency_millis: f64) -> Self {
        Self { latency_millis, bandwidth: Self::BANDWIDTH }
    }

    /// Milliseconds of transfer, latency excluded.
    pub fn transfer_millis(&self, bytes: Bytes) -> f64 {
        let bandwidth = if self.bandwidth > 0.0 { self.bandwidth } else { Self::BANDWIDTH };
        bytes.0 as f64 / bandwidth
    }

    /// Milliseconds until the last byte has arrived.
    pub fn millis(&self, bytes: Bytes) -> f64 {
        latency(self) + self.transfer_millis(bytes)
    }
}

impl AccessLink {
    /// A symmetric access link of which only the one-way latency is known.
    pub fn latency(latency_millis: f64) -> Self {
        Self { up: Link::latency(latency_millis), down: Link::latency(latency_millis) }
    }
}

/// A latency that is not a number, or negative, counts as zero.
fn latency(link: &Link) -> f64 {
    if link.latency_millis.is_finite() { link.latency_millis.max(0.0) } else { 0.0 }
}

/// Answers that vary more than this are measuring errors: one in six takes more than seven times the median.
const MAX_SPREAD: f64 = 2.0;

/// The network between peers: their access links, and the relay between them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Links {
    access: BTreeMap<PeerId, AccessLink>,
    spreads: BTreeMap<PeerId, f64>,
    ways: BTreeMap<(PeerId, PeerId), f64>,
}

impl Links {
    /// Sets the access link of a peer.
    pub fn set_access(&mut self, peer: PeerId, access: AccessLink) {
        self.access.insert(peer, access);
    }

    /// Sets how much the times of a peer's answers vary: the standard deviation of their logarithm (a log-normal delay).
    /// Without it a peer's answers always take the same time.
    pub fn set_spread(&mut self, peer: PeerId, sigma: f64) {
        self.spreads.insert(peer, sigma);
    }

    /// See [`Self::set_spread`].
    pub(crate) fn spread(&self, peer: PeerId) -> f64 {
        self.spreads.get(&peer).copied().filter(|sigma| sigma.is_finite()).unwrap_or(0.0).clamp(0.0, MAX_SPREAD)
    }

    /// Sets how long a call for experts to a holder and its answer are on their way together, in use: measured where calls
    /// were made, instead of what both links take.
    pub fn set_way(&mut self, caller: PeerId, holder: PeerId, millis: f64) {
        self.ways.insert((caller, holder), millis);
    }

    /// Milliseconds that a call and its answer of these sizes are on their way.
    pub(crate) fn way(&self, caller: PeerId, holder: PeerId, out: Bytes, back: Bytes) -> f64 {
        let of_links = || self.millis(caller, holder, out) + self.millis(holder, caller, back);
        let measured = self.ways.get(&(caller, holder)).filter(|millis| millis.is_finite() && **millis >= 0.0);
        measured.copied().unwrap_or_else(of_links)
    }

    /// True if the time of any peer's answers varies.
    pub(crate) fn varies(&self) -> bool {
        self.spreads.keys().any(|peer| self.spread(*peer) > 0.0)
    }

    /// The same network, in which nothing varies.
    pub(crate) fn steady(&self) -> Self {
        Self { spreads: BTreeMap::new(), ..self.clone() }
    }

    /// Changes every link. What was measured over it is forgotten.
    pub fn change(&mut self, change: impl Fn(Link) -> Link) {
        self.ways.clear();
        for access in self.access.values_mut() {
            *access = AccessLink { up: change(access.up), down: change(access.down) };
        }
    }

    pub(crate) fn up(&self, peer: PeerId) -> Link {
        self.access.get(&peer).map_or(Link::NONE, |access| access.up)
    }

    pub(crate) fn down(&self, peer: PeerId) -> Link {
        self.access.get(&peer).map_or(Link::NONE, |access| access.down)
    }

    /// Milliseconds of latency and of transfer for a message; zero within one peer.
    pub(crate) fn parts(&self, from: PeerId, to: PeerId, bytes: Bytes) -> (f64, f64) {
        if from == to {
            return (0.0, 0.0);
        }
        let (up, down) = (self.up(from), self.down(to));
        (latency(&up) + latency(&down), up.transfer_millis(bytes) + down.transfer_millis(bytes))
    }

    /// Milliseconds that a message of this size takes from one peer to another.
    pub fn millis(&self, from: PeerId, to: PeerId, bytes: Bytes) -> f64 {
        let (latency, transfer) = self.parts(from, to, bytes);
        latency + transfer
    }
}
