//! Token buckets: the rate limits of senders and of addresses.

use std::collections::HashMap;
use std::hash::Hash;
use std::time::{Duration, Instant};

use crate::limits::Rate;

/// A token bucket. The caller passes the time, so tests need not wait.
#[derive(Clone, Debug)]
pub struct TokenBucket {
    rate: Rate,
    /// Negative while in debt.
    tokens: f64,
    refilled: Instant,
}

impl TokenBucket {
    /// A full bucket.
    pub fn new(rate: Rate, now: Instant) -> Self {
        Self { rate, tokens: rate.burst, refilled: now }
    }

    fn refill(&mut self, now: Instant) {
        let passed = now.saturating_duration_since(self.refilled).as_secs_f64();
        self.tokens = (self.tokens + passed * self.rate.per_second).min(self.rate.burst);
        self.refilled = now;
    }

    /// Takes tokens, going into debt if need be, and returns how long to pause until the debt is paid. For messages that
    /// have already arrived: their size is known only then.
    pub fn take(&mut self, tokens: f64, now: Instant) -> Duration {
        self.refill(now);
        self.tokens -= tokens;
        if self.tokens >= 0.0 { Duration::ZERO } else { Duration::from_secs_f64(-self.tokens / self.rate.per_second) }
    }

    /// Takes one token, or returns how long until there is one.
    ///
    /// # Errors
    /// The bucket is empty.
    pub fn try_take(&mut self, now: Instant) -> Result<(), Duration> {
        self.refill(now);
        if self.tokens >= 1.0 {
            self.tokens -= 1.0;
            Ok(())
        } else {
            Err(Duration::from_secs_f64((1.0 - self.tokens) / self.rate.per_second))
        }
    }

    fn is_full(&mut self, now: Instant) -> bool {
        self.refill(now);
        self.tokens >= self.rate.burst
    }
}

/// One bucket per key. Full buckets are dropped, so memory follows recent traffic; and there is a limit, for somebody with many addresses.
#[derive(Debug)]
pub struct KeyedBuckets<K> {
    rate: Rate,
    buckets: HashMap<K, TokenBucket>,
    /// Above this number of buckets, full ones are dropped. Twice as many as stayed the last time, so that each call pays a few steps.
    clean_up_above: usize,
}

/// Fewer buckets than this are kept, full or not.
const FEW: usize = 1024;
/// There are never more. If so many addresses use it at once, those that used it least are forgotten, and may begin anew.
const MOST: usize = 1 << 16;

impl<K: Hash + Eq> KeyedBuckets<K> {
    /// No buckets yet; each starts full.
    pub fn new(rate: Rate) -> Self {
        Self { rate, buckets: HashMap::new(), clean_up_above: FEW }
    }

    /// Takes one token from the bucket of `key`, or returns how long until there is one.
    ///
    /// # Errors
    /// The bucket is empty.
    pub fn try_take(&mut self, key: K, now: Instant) -> Result<(), Duration> {
        if self.buckets.len() > self.clean_up_above {
            self.clean_up(now);
        }
        self.buckets.entry(key).or_insert_with(|| TokenBucket::new(self.rate, now)).try_take(now)
    }

    fn clean_up(&mut self, now: Instant) {
        self.buckets.retain(|_, bucket| !bucket.is_full(now));
        let mut left: Vec<f64> = self.buckets.values().map(|bucket| bucket.tokens).collect();
        if left.len() > MOST / 2 {
            let (_, &mut most, _) = left.select_nth_unstable_by(MOST / 2, f64::total_cmp);
            let mut equal = MOST / 2 - self.buckets.values().filter(|bucket| bucket.tokens < most).count();
            self.buckets.retain(|_, bucket| {
                let ties = bucket.tokens == most && equal > 0;
                equal -= usize::from(ties);
                bucket.tokens < most || ties
            });
        }
        self.clean_up_above = (2 * self.buckets.len()).clamp(FEW, MOST - 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RATE: Rate = Rate { per_second: 10.0, burst: 2.0 };

    #[test]
    fn a_burst_passes_and_then_the_rate_holds() {
        let start = Instant::now();
        let mut bucket = TokenBucket::new(RATE, start);
        assert!(bucket.try_take(start).is_ok());
        assert!(bucket.try_take(start).is_ok());
        assert_eq!(bucket.try_take(start), Err(Duration::from_millis(100)));
        assert!(bucket.try_take(start + Duration::from_millis(101)).is_ok());
    }

    #[test]
    fn debt_is_paid_by_waiting() {
        let start = Instant::now();
        let mut bucket = TokenBucket::new(RATE, start);
        assert_eq!(bucket.take(2.0, start), Duration::ZERO);
        assert_eq!(bucket.take(5.0, start), Duration::from_millis(500));
        assert_eq!(bucket.take(1.0, start + Duration::from_secs(1)), Duration::ZERO);
    }

    #[test]
    fn keys_have_their_own_buckets_and_full_ones_are_dropped() {
        let start = Instant::now();
        let mut buckets = KeyedBuckets::new(RATE);
        for key in 0..=FEW {
            assert!(buckets.try_take(key, start).is_ok());
        }
        let later = start + Duration::from_secs(10);
        assert!(buckets.try_take(0, later).is_ok());
        assert_eq!(buckets.buckets.len(), 1);
    }

    /// Each address of many takes once, so that no bucket is ever full; looking through all of them each time took minutes.
    #[test]
    fn however_many_addresses_come_the_memory_has_a_limit_and_who_used_most_is_remembered() {
        let start = Instant::now();
        let mut buckets = KeyedBuckets::new(RATE);
        while buckets.try_take(0, start).is_ok() {}
        for key in 1..=3 * MOST {
            assert!(buckets.try_take(key, start).is_ok());
            assert!(buckets.buckets.len() <= MOST, "{key}");
        }
        assert!(buckets.try_take(0, start).is_err(), "it has nothing left");
    }
}
