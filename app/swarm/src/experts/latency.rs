//! Quantiles of how long a holder took lately.

use std::collections::VecDeque;

/// Calls that are remembered. A second of decoding has a few hundred; 64 are enough for a 95th percentile and soon show
/// that a device has become slower.
const KEPT: usize = 64;

/// How long the latest calls took. A cancelled call took longer than it ran: without these, quantiles would follow the
/// quick answers alone, and every hedge would make the next one come earlier.
#[derive(Clone, Debug, Default)]
pub(crate) struct Latencies {
    samples: VecDeque<Sample>,
}

#[derive(Clone, Copy, Debug)]
struct Sample {
    value: f64,
    /// The call was cancelled: it would have taken longer.
    is_bound: bool,
}

impl Latencies {
    /// A call was answered after this time.
    pub fn answered(&mut self, value: f64) {
        self.push(Sample { value, is_bound: false });
    }

    /// A call was given up after this time, without an answer.
    pub fn cancelled(&mut self, value: f64) {
        self.push(Sample { value, is_bound: true });
    }

    fn push(&mut self, sample: Sample) {
        if self.samples.len() == KEPT {
            self.samples.pop_front();
        }
        self.samples.push_back(sample);
    }

    /// Calls that are remembered.
    pub fn len(&self) -> usize {
        self.samples.len()
    }

    /// The time within which this share of calls is answered (Kaplan and Meier's estimate); the longest one seen if so
    /// many were never answered. `None` before the first call.
    pub fn quantile(&self, share: f64) -> Option<f64> {
        let mut sorted: Vec<Sample> = self.samples.iter().copied().collect();
        sorted.sort_by(|a, b| a.value.total_cmp(&b.value));
        let mut unanswered = 1.0;
        for (index, sample) in sorted.iter().enumerate() {
            if !sample.is_bound {
                unanswered *= 1.0 - 1.0 / (sorted.len() - index) as f64;
            }
            // A twentieth of a sample less: sums of floats do not add up to the share exactly.
            if 1.0 - unanswered >= share - 0.05 / KEPT as f64 {
                return Some(sample.value);
            }
        }
        sorted.last().map(|sample| sample.value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_those_of_the_latest_calls() {
        let mut latencies = Latencies::default();
        assert_eq!(latencies.quantile(0.5), None);
        (0..100).for_each(|_| latencies.answered(1_000.0));
        (1..=KEPT).for_each(|value| latencies.answered(value as f64));
        let quantiles = [0.5, 0.75, 1.0].map(|share| latencies.quantile(share));
        assert_eq!(quantiles, [Some(32.0), Some(48.0), Some(64.0)]);
    }

    #[test]
    fn a_cancelled_call_counts_as_longer_than_it_ran() {
        let mut latencies = Latencies::default();
        // Every second call was cancelled after 10 ms, so half of all took longer than that.
        for _ in 0..KEPT / 2 {
            latencies.answered(8.0);
            latencies.cancelled(10.0);
        }
        assert_eq!(latencies.quantile(0.45), Some(8.0));
        assert_eq!(latencies.quantile(0.9), Some(10.0), "at least that");
        latencies.answered(50.0);
        assert_eq!(latencies.quantile(0.9), Some(50.0), "one call shows how long the others might have taken");
    }
}
