//! Seeded random numbers (SplitMix64) and the mixing function of the simulated model.

pub(crate) use potluck_plan::random::scramble as mix;
use potluck_plan::random::step;

/// A seeded generator.
#[derive(Clone, Debug)]
pub(crate) struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        step(&mut self.0)
    }

    /// Uniform in `0.0..1.0`.
    pub fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Uniform in `0..bound`.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound.max(1)
    }
}
