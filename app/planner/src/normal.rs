//! The normal distribution.

use std::sync::OnceLock;

/// Beyond so many standard deviations 1 − Φ is 0 or 1 in f64 (from 8.3 on).
pub(crate) const CERTAIN: f64 = 8.5;
/// Values of Φ that are kept for each standard deviation. The lines between them are off by less than 5e-7.
const PER_SIGMA: usize = 256;
/// Values of Φ that are kept, from −[`CERTAIN`] to [`CERTAIN`].
const VALUES: usize = (2.0 * CERTAIN) as usize * PER_SIGMA + 1;

/// Φ, to six digits: its values in a table, and lines in between. The integrals of a plan ask for it a million times.
pub(crate) struct Cdf(&'static [f64]);

impl Cdf {
    pub fn new() -> Self {
        static TABLE: OnceLock<Vec<f64>> = OnceLock::new();
        let value = |index: usize| cdf(index as f64 / PER_SIGMA as f64 - CERTAIN);
        Self(TABLE.get_or_init(|| (0..VALUES).map(value).collect()))
    }

    /// Φ(z).
    pub fn at(&self, z: f64) -> f64 {
        let place = (z + CERTAIN) * PER_SIGMA as f64;
        // The logarithm of a negative time is no number.
        if place.is_nan() || place < 0.0 {
            return 0.0;
        }
        let index = place as usize;
        match self.0.get(index..) {
            Some([low, high, ..]) => low + (place - index as f64) * (high - low),
            _ => 1.0,
        }
    }
}

/// Φ, to seven digits (Numerical Recipes, section 6.2).
fn cdf(z: f64) -> f64 {
    const COEFFICIENTS: [f64; 10] = [
        -1.265_512_23,
        1.000_023_68,
        0.374_091_96,
        0.096_784_18,
        -0.186_288_06,
        0.278_868_07,
        -1.135_203_98,
        1.488_515_87,
        -0.822_152_23,
        0.170_872_77,
    ];
    let x = z.abs() / std::f64::consts::SQRT_2;
    let t = 1.0 / (1.0 + 0.5 * x);
    let sum = COEFFICIENTS.iter().rev().fold(0.0, |sum, coefficient| sum * t + coefficient);
    let tail = t * (sum - x * x).exp() / 2.0;
    if z >= 0.0 { 1.0 - tail } else { tail }
}

/// The inverse of Φ within ±8, by bisection.
pub(crate) fn quantile(probability: f64) -> f64 {
    let (mut low, mut high) = (-8.0, 8.0);
    for _ in 0..60 {
        let middle = (low + high) / 2.0;
        if cdf(middle) < probability { low = middle } else { high = middle }
    }
    (low + high) / 2.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_as_good_as_the_formula_and_never_falls() {
        let table = Cdf::new();
        let mut before = 0.0;
        for step in -100_000..=100_000 {
            let z = f64::from(step) * 1e-4;
            let found = table.at(z);
            assert!((found - cdf(z)).abs() < 5e-7, "{found} instead of {} at {z}", cdf(z));
            assert!(found >= before, "it falls at {z}");
            before = found;
        }
        assert_eq!((table.at(-CERTAIN - 1.0), table.at(CERTAIN + 1.0)), (0.0, 1.0));
        assert_eq!((table.at(f64::NEG_INFINITY), table.at(f64::INFINITY)), (0.0, 1.0));
    }

    #[test]
    fn values_are_those_of_printed_tables() {
        for (z, expected) in [(0.0, 0.5), (1.0, 0.841_345), (1.96, 0.975_002), (-2.5, 0.006_210)] {
            let found = Cdf::new().at(z);
            assert!((found - expected).abs() < 1e-6, "{found} instead of {expected} at {z}");
        }
        for (probability, expected) in [(0.5, 0.0), (0.75, 0.674_490), (0.95, 1.644_854), (0.975, 1.959_964)] {
            let found = quantile(probability);
            assert!((found - expected).abs() < 1e-5, "{found} instead of {expected} at {probability}");
        }
    }
}
