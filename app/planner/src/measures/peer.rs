//! A peer's speed and overhead: as timed before until enough was measured in use.

use super::Ring;
use crate::{Device, Speed};

/// How many speeds are kept.
pub const SPEEDS: usize = 15;
/// How many are needed before they count.
const MIN_SAMPLES: usize = 3;

/// The running medians of a peer's speeds and of its overhead, and what it was timed with.
#[derive(Clone, Debug, PartialEq)]
pub struct PeerMeasure {
    declared: Speed,
    session_millis: f64,
    sync_millis: f64,
    decode: Ring<SPEEDS>,
    prefill: Ring<SPEEDS>,
    /// Overhead in use as a multiple of the timed one: of pieces of work, and of readbacks.
    session: Ring<SPEEDS>,
    sync: Ring<SPEEDS>,
}

impl PeerMeasure {
    /// A device that was timed like this.
    pub fn new(device: &Device) -> Self {
        let Device { speed: declared, session_millis, sync_millis, .. } = *device;
        let (decode, prefill, session, sync) = Default::default();
        Self { declared, session_millis, sync_millis, decode, prefill, session, sync }
    }

    /// Records that decoding tokens of this cost, with so many further readbacks, took this many milliseconds of its engine.
    /// What takes longer than was timed is speed. What takes less shows that the device was timed under load, so that its
    /// overhead is less in the same proportion: otherwise a time below the overhead could not be predicted again.
    pub fn decoded(&mut self, cost: f64, readbacks: usize, millis: f64) {
        let overhead = self.session_millis + readbacks as f64 * self.sync_millis;
        let share = self.share_of_timed(cost, overhead, millis).min(1.0);
        self.in_use(cost, millis, overhead * share, share);
        if readbacks > 0 {
            self.sync.push(share);
        }
    }

    /// Records that a call for experts of this cost took this many milliseconds of its engine. Most of a call is overhead, so
    /// a slow one says nothing of the speed alone: overhead and speed are as much slower or faster than when they were timed.
    pub fn called(&mut self, cost: f64, millis: f64) {
        let share = self.share_of_timed(cost, self.session_millis, millis);
        self.in_use(cost, millis, self.session_millis * share, share);
    }

    /// What a piece of work took, as a multiple of what the times before say.
    fn share_of_timed(&self, cost: f64, overhead: f64, millis: f64) -> f64 {
        millis / (overhead + cost / self.declared.decode)
    }

    fn in_use(&mut self, cost: f64, millis: f64, overhead: f64, share: f64) {
        let layers = millis - overhead;
        if cost > 0.0 && layers > 0.0 && share.is_finite() {
            self.decode.push(cost / layers);
            self.session.push(share);
        }
    }

    /// Records that a prefill chunk of this cost (times its tokens) took this many milliseconds of its engine.
    pub fn prefilled(&mut self, cost: f64, millis: f64) {
        push(&mut self.prefill, cost, millis, self.session_millis);
    }

    /// Milliseconds per piece of work besides its layers.
    pub fn session_millis(&self) -> f64 {
        self.session_millis * usual(&self.session)
    }

    /// Milliseconds of each further readback.
    pub fn sync_millis(&self) -> f64 {
        self.sync_millis * usual(&self.sync)
    }

    /// Median absolute deviation of the decode speed, relative to its median; `None` before there are enough samples.
    pub fn spread(&self) -> Option<f64> {
        let median = self.decode.median().filter(|median| self.is_measured() && *median > 0.0)?;
        Some(self.decode.deviation()? / median)
    }

    /// The prefill speed, if it was measured often enough. Prompts measure it before any token measures the decode
    /// speed.
    pub fn prefill(&self) -> Option<f64> {
        self.prefill.median().filter(|_| self.prefill.len() >= MIN_SAMPLES)
    }

    /// The measured speed where there are enough samples, else the declared one. As long as only one of decode and
    /// prefill is measured, its ratio to the declaration also scales the other.
    pub fn speed(&self) -> Speed {
        let measured = |ring: &Ring<SPEEDS>| ring.median().filter(|_| ring.len() >= MIN_SAMPLES);
        let (decode, prefill) = (measured(&self.decode), self.prefill());
        let ratio = |measured: Option<f64>, declared: f64| measured.map_or(1.0, |measured| measured / declared);
        Speed {
            decode: decode.unwrap_or(self.declared.decode * ratio(prefill, self.declared.prefill)),
            prefill: prefill.unwrap_or(self.declared.prefill * ratio(decode, self.declared.decode)),
        }
    }

    /// True once measured values count.
    pub fn is_measured(&self) -> bool {
        self.decode.len() >= MIN_SAMPLES
    }

    /// Sets speed and overhead of the planner's device.
    pub fn apply(&self, device: &mut Device) {
        device.speed = self.speed();
        device.session_millis = self.session_millis();
        device.sync_millis = self.sync_millis();
    }
}

/// The middle of these multiples, once there are enough.
fn usual(multiples: &Ring<SPEEDS>) -> f64 {
    multiples.median().filter(|_| multiples.len() >= MIN_SAMPLES).unwrap_or(1.0)
}

/// Subtracts the session overhead, but leaves at least a tenth of the time: a measured time below the overhead still
/// counts.
fn push(ring: &mut Ring<SPEEDS>, cost: f64, millis: f64, session_millis: f64) {
    let layers = (millis - session_millis).max(0.1 * millis);
    if cost > 0.0 && layers > 0.0 {
        ring.push(cost / layers);
    }
}

#[cfg(test)]
mod tests {
    use potluck_plan::{Bytes, PeerId};

    use super::*;

    /// Speed 1,000 a millisecond, 2 ms of overhead, 0.5 ms for a readback.
    fn device() -> Device {
        let mut device = Device::declared(PeerId([1; 16]), Bytes(1), 1e6, 0.5);
        device.session_millis = 2.0;
        device
    }

    fn peer() -> PeerMeasure {
        PeerMeasure::new(&device())
    }

    #[test]
    fn what_is_measured_wins_over_what_was_said() {
        let mut peer = peer();
        assert_eq!(peer.speed().decode, 1_000.0);
        for millis in [12.0, 12.0, 500.0, 12.0] {
            peer.decoded(1_000.0, 0, millis);
        }
        assert_eq!(peer.speed().decode, 100.0, "1,000 in 10 ms besides the session, whatever one outlier took");
        assert_eq!(peer.session_millis(), 2.0, "the session takes what it took");
        assert_eq!(peer.speed().prefill, 800.0, "its prefill is as much slower, until that is measured");
        for _ in 0..3 {
            peer.prefilled(9_000.0, 5.0);
        }
        assert_eq!(peer.speed().prefill, 3_000.0);
    }

    #[test]
    fn one_measurement_alone_does_not_count() {
        let mut peer = peer();
        peer.decoded(1_000.0, 1, 0.1);
        assert_eq!(peer.speed().decode, 1_000.0);
        assert_eq!((peer.session_millis(), peer.sync_millis()), (2.0, 0.5));
        assert!(!peer.is_measured());
    }

    /// Devices that share a GPU with others that were timed at the same time.
    #[test]
    fn a_device_that_was_timed_under_load_has_less_overhead_too() {
        let mut peer = peer();
        for _ in 0..3 {
            // 2 ms of overhead, two readbacks and 1 ms for the layers would be 4 ms.
            peer.decoded(1_000.0, 2, 1.0);
        }
        let mut device = device();
        peer.apply(&mut device);
        assert_eq!((device.session_millis, device.sync_millis), (0.5, 0.125), "all of it a quarter");
        assert_eq!(device.speed.decode, 4_000.0);
    }

    #[test]
    fn a_call_that_took_longer_does_not_make_a_slow_device() {
        let mut peer = peer();
        for _ in 0..3 {
            // Of the 2.1 ms that it should take, the expert has 0.1.
            peer.called(100.0, 4.2);
        }
        let mut device = device();
        peer.apply(&mut device);
        assert!((device.session_millis - 4.0).abs() < 1e-9, "{}", device.session_millis);
        assert!((device.speed.decode - 500.0).abs() < 1e-9, "half as fast, and no slower: {}", device.speed.decode);
        assert_eq!(device.sync_millis, 0.5, "calls of others need no further readback");
    }
}
