//! A peer's speed: as declared until enough was measured.

use super::Ring;
use crate::{Device, Speed};

/// How many speeds are kept.
pub const SPEEDS: usize = 15;
/// How many are needed before they count.
const MIN_SAMPLES: usize = 3;

/// The running median of a peer's speeds, and its declared speed.
#[derive(Clone, Debug, PartialEq)]
pub struct PeerMeasure {
    declared: Speed,
    session_millis: f64,
    decode: Ring<SPEEDS>,
    prefill: Ring<SPEEDS>,
}

impl PeerMeasure {
    /// A peer that declares this speed and this overhead per piece of work.
    pub fn new(declared: Speed, session_millis: f64) -> Self {
        Self { declared, session_millis, decode: Ring::default(), prefill: Ring::default() }
    }

    /// Records that decoding tokens of this cost took this many milliseconds of its engine.
    pub fn decoded(&mut self, cost: f64, millis: f64) {
        push(&mut self.decode, cost, millis, self.session_millis);
    }

    /// Records that a prefill chunk of this cost (times its tokens) took this many milliseconds of its engine.
    pub fn prefilled(&mut self, cost: f64, millis: f64) {
        push(&mut self.prefill, cost, millis, self.session_millis);
    }

    /// Milliseconds per piece of work besides its layers.
    pub fn session_millis(&self) -> f64 {
        self.session_millis
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
        device.session_millis = self.session_millis;
    }
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
    use super::*;

    fn peer() -> PeerMeasure {
        PeerMeasure::new(Speed { decode: 1_000.0, prefill: 8_000.0 }, 2.0)
    }

    #[test]
    fn what_is_measured_wins_over_what_was_said() {
        let mut peer = peer();
        assert_eq!(peer.speed().decode, 1_000.0);
        for millis in [12.0, 12.0, 500.0, 12.0] {
            peer.decoded(1_000.0, millis);
        }
        assert_eq!(peer.speed().decode, 100.0, "1,000 in 10 ms besides the session, whatever one outlier took");
        assert_eq!(peer.speed().prefill, 800.0, "its prefill is as much slower, until that is measured");
        for _ in 0..3 {
            peer.prefilled(9_000.0, 5.0);
        }
        assert_eq!(peer.speed().prefill, 3_000.0);
    }

    #[test]
    fn one_measurement_alone_does_not_count() {
        let mut peer = peer();
        peer.decoded(1_000.0, 900.0);
        assert_eq!(peer.speed().decode, 1_000.0);
        assert!(!peer.is_measured());
    }

    #[test]
    fn a_time_below_the_overhead_gives_a_speed_that_can_be_counted_with() {
        let mut peer = peer();
        for _ in 0..3 {
            peer.decoded(1_000.0, 1.0);
        }
        assert_eq!(peer.speed().decode, 10_000.0);
    }
}
