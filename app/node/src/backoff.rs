//! Exponential back-off between attempts, for everything that tries again: the relay's connection, HTTP requests, the GPU.

/// Waits that double from attempt to attempt, up to a maximum.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Backoff {
    first_millis: f64,
    max_millis: f64,
}

impl Backoff {
    /// The first wait and the longest one, in milliseconds.
    pub const fn new(first_millis: f64, max_millis: f64) -> Self {
        Self { first_millis, max_millis }
    }

    /// Milliseconds to wait after `failures` failed attempts in a row, counted from 1.
    pub fn wait(self, failures: u32) -> f64 {
        // More doublings than this exceed every maximum.
        let doublings = failures.saturating_sub(1).min(16);
        (self.first_millis * f64::from(1u32 << doublings)).min(self.max_millis)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_the_maximum() {
        let backoff = Backoff::new(500.0, 8_000.0);
        let waits: Vec<f64> = (1..=7).map(|failures| backoff.wait(failures)).collect();
        assert_eq!(waits, [500.0, 1_000.0, 2_000.0, 4_000.0, 8_000.0, 8_000.0, 8_000.0]);
        assert_eq!(backoff.wait(u32::MAX), 8_000.0);
    }
}
