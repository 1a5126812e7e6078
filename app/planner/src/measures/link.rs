//! One direction of a link, as measured.

use super::Ring;
use crate::Link;

/// So many idle latencies are kept.
pub const IDLE_LATENCIES: usize = 7;
/// Transfers below this say more about the latency than about the bandwidth.
const LARGE_BYTES: u64 = 64 * 1024;

/// Latency while idle, and bandwidth of large messages.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LinkMeasure {
    latency: Ring<IDLE_LATENCIES>,
    bandwidth: Ring<IDLE_LATENCIES>,
}

impl LinkMeasure {
    /// A message's way there and back while nothing else was under way: half of it is one way.
    pub fn round_trip(&mut self, millis: f64) {
        self.latency.push(millis / 2.0);
    }

    /// Bytes that took so long in this direction, the latency included. Small ones are not taken.
    pub fn transfer(&mut self, bytes: u64, millis: f64) {
        let on_the_way = millis - self.latency.median().unwrap_or(0.0);
        if bytes >= LARGE_BYTES && on_the_way > 0.0 {
            self.bandwidth.push(bytes as f64 / on_the_way);
        }
    }

    /// One way, milliseconds, if it was measured.
    pub fn latency_millis(&self) -> Option<f64> {
        self.latency.median()
    }

    /// The link for the cost model, if its latency was measured.
    pub fn link(&self) -> Option<Link> {
        let latency_millis = self.latency.median()?;
        Some(Link { latency_millis, bandwidth: self.bandwidth.median().unwrap_or(Link::BANDWIDTH) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn latency_and_bandwidth_are_told_apart() {
        let mut measure = LinkMeasure::default();
        assert_eq!(measure.link(), None, "nothing is known before the first round trip");
        measure.round_trip(20.0);
        assert_eq!(measure.link(), Some(Link { latency_millis: 10.0, bandwidth: Link::BANDWIDTH }));
        measure.transfer(1_000_000, 60.0);
        measure.transfer(100, 15.0);
        assert_eq!(measure.link(), Some(Link { latency_millis: 10.0, bandwidth: 20_000.0 }));
    }

    #[test]
    fn a_busy_moment_does_not_change_a_latency() {
        let mut measure = LinkMeasure::default();
        [8.0, 8.0, 8.0, 900.0, 8.0].into_iter().for_each(|millis| measure.round_trip(millis));
        assert_eq!(measure.latency_millis(), Some(4.0));
    }
}
