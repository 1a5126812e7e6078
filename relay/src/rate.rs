//! Token buckets.

use std::collections::HashMap;
use std::hash::Hash;
use std::time::{Duration, Instant};

use crate::limits::Rate;

/// A token bucket. Time comes from outside, so that its rules can be tested without waiting.
#[derive(Clone, Debug)]
pub struct Bucket {
    rate: Rate,
    level: f64,
    at: Instant,
}

impl Bucket {
    /// A full bucket.
    pub fn new(rate: Rate, now: Instant) -> Self {
        Self { rate, level: rate.burst, at: now }
    }

    fn refill(&mut self, now: Instant) {
        let passed = now.saturating_duration_since(self.at).as_secs_f64();
        self.level = (self.level + passed * self.rate.per_second).min(self.rate.burst);
        self.at = now;
    }

    /// Takes `units`, if need be on credit, and says how long to pause before taking more.
    pub fn take(&mut self, units: f64, now: Instant) -> Duration {
        self.refill(now);
        self.level -= units;
        if self.level >= 0.0 { Duration::ZERO } else { Duration::from_secs_f64(-self.level / self.rate.per_second) }
    }

    /// Takes one unit, or says how long until there is one.
    pub fn try_take(&mut self, now: Instant) -> Result<(), Duration> {
        self.refill(now);
        if self.level >= 1.0 {
            self.level -= 1.0;
            Ok(())
        } else {
            Err(Duration::from_secs_f64((1.0 - self.level) / self.rate.per_second))
        }
    }

    fn is_full(&mut self, now: Instant) -> bool {
        self.refill(now);
        self.level >= self.rate.burst
    }
}

/// One bucket for each key. Full buckets are forgotten, so it stays as small as what is going on.
#[derive(Debug)]
pub struct Buckets<K> {
    rate: Rate,
    buckets: HashMap<K, Bucket>,
}

/// Buckets that may exist before full ones are looked for.
const TIDY_ABOVE: usize = 1024;

impl<K: Hash + Eq> Buckets<K> {
    /// No bucket yet; each starts full.
    pub fn new(rate: Rate) -> Self {
        Self { rate, buckets: HashMap::new() }
    }

    /// Takes one unit from the bucket of `key`, or says how long until there is one.
    pub fn try_take(&mut self, key: K, now: Instant) -> Result<(), Duration> {
        if self.buckets.len() > TIDY_ABOVE {
            self.buckets.retain(|_, bucket| !bucket.is_full(now));
        }
        self.buckets.entry(key).or_insert_with(|| Bucket::new(self.rate, now)).try_take(now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RATE: Rate = Rate { per_second: 10.0, burst: 2.0 };

    #[test]
    fn a_burst_passes_and_then_the_rate_holds() {
        let start = Instant::now();
        let mut bucket = Bucket::new(RATE, start);
        assert!(bucket.try_take(start).is_ok());
        assert!(bucket.try_take(start).is_ok());
        assert_eq!(bucket.try_take(start), Err(Duration::from_millis(100)));
        assert!(bucket.try_take(start + Duration::from_millis(101)).is_ok());
    }

    #[test]
    fn credit_is_paid_back_by_waiting() {
        let start = Instant::now();
        let mut bucket = Bucket::new(RATE, start);
        assert_eq!(bucket.take(2.0, start), Duration::ZERO);
        assert_eq!(bucket.take(5.0, start), Duration::from_millis(500));
        assert_eq!(bucket.take(1.0, start + Duration::from_secs(1)), Duration::ZERO);
    }

    #[test]
    fn keys_do_not_share_and_full_buckets_are_forgotten() {
        let start = Instant::now();
        let mut buckets = Buckets::new(RATE);
        for key in 0..=TIDY_ABOVE {
            assert!(buckets.try_take(key, start).is_ok());
        }
        let later = start + Duration::from_secs(10);
        assert!(buckets.try_take(0, later).is_ok());
        assert_eq!(buckets.buckets.len(), 1);
    }
}
