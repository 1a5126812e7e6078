//! One direction of a link, as measured.

use super::Ring;
use crate::Link;

/// How many idle latencies are kept.
pub const IDLE_LATENCIES: usize = 7;
/// Shorter transfers measure the latency rather than the bandwidth, unless they take long.
const LARGE_BYTES: u64 = 64 * 1024;
/// From this time on a transfer measures the bandwidth, whatever its size, milliseconds.
const LONG_MILLIS: f64 = 50.0;

/// Latency while idle, and bandwidth of large transfers.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LinkMeasure {
    latency: Ring<IDLE_LATENCIES>,
    bandwidth: Ring<IDLE_LATENCIES>,
    /// The shortest latency while other messages were in flight.
    busy: Option<f64>,
}

impl LinkMeasure {
    /// Records a round trip while nothing else was in flight; half of it is one way.
    pub fn round_trip(&mut self, millis: f64) {
        self.latency.push(millis / 2.0);
    }

    /// Records a round trip while something else was in flight: an upper bound, used until an idle one is known.
    pub fn busy_round_trip(&mut self, millis: f64) {
        if millis.is_finite() && millis >= 0.0 {
            self.busy = Some(self.busy.unwrap_or(f64::INFINITY).min(millis / 2.0));
        }
    }

    /// Records a transfer in this direction, latency included. Small and quick ones are ignored; true if this one
    /// counts.
    pub fn transfer(&mut self, bytes: u64, millis: f64) -> bool {
        let on_the_way = millis - self.latency_millis().unwrap_or(0.0);
        let counts = bytes >= LARGE_BYTES && on_the_way > 0.0 || on_the_way >= LONG_MILLIS;
        if counts {
            self.bandwidth.push(bytes as f64 / on_the_way);
        }
        counts
    }

    /// How many large transfers are kept.
    pub fn transfers(&self) -> usize {
        self.bandwidth.len()
    }

    /// Bytes per millisecond, if large transfers were measured.
    pub fn bandwidth(&self) -> Option<f64> {
        self.bandwidth.median()
    }

    /// One-way latency in milliseconds, if it was measured.
    pub fn latency_millis(&self) -> Option<f64> {
        self.latency.median().or(self.busy)
    }

    /// Standard error of the median latency, milliseconds: the median absolute deviation over the square root of the
    /// number of samples.
    pub fn noise_millis(&self) -> Option<f64> {
        Some(self.latency.deviation()? / (self.latency.len() as f64).sqrt())
    }

    /// The link for the cost model, if its latency was measured.
    pub fn link(&self) -> Option<Link> {
        let latency_millis = self.latency_millis()?;
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
        assert!(measure.transfer(1_000_000, 60.0));
        assert!(!measure.transfer(100, 15.0), "quick and small");
        assert_eq!(measure.link(), Some(Link { latency_millis: 10.0, bandwidth: 20_000.0 }));
    }

    #[test]
    fn what_was_measured_beside_work_counts_until_something_better_is_known() {
        let mut measure = LinkMeasure::default();
        [90.0, 30.0, f64::NAN, 50.0].into_iter().for_each(|millis| measure.busy_round_trip(millis));
        assert_eq!(measure.latency_millis(), Some(15.0));
        measure.round_trip(20.0);
        measure.busy_round_trip(2.0);
        assert_eq!(measure.latency_millis(), Some(10.0));
    }

    #[test]
    fn a_line_that_jitters_is_less_certain() {
        let mut measure = LinkMeasure::default();
        assert_eq!(measure.noise_millis(), None);
        [20.0, 24.0, 16.0, 28.0].into_iter().for_each(|millis| measure.round_trip(millis));
        assert_eq!(measure.noise_millis(), Some(1.0), "2 ms from the middle, of four");
    }

    #[test]
    fn a_slow_line_is_known_by_little() {
        let mut measure = LinkMeasure::default();
        measure.round_trip(20.0);
        assert!(measure.transfer(2_000, 110.0));
        assert_eq!(measure.bandwidth(), Some(20.0));
    }

    #[test]
    fn a_busy_moment_does_not_change_a_latency() {
        let mut measure = LinkMeasure::default();
        [8.0, 8.0, 8.0, 900.0, 8.0].into_iter().for_each(|millis| measure.round_trip(millis));
        assert_eq!(measure.latency_millis(), Some(4.0));
    }
}
