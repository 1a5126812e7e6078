//! The sampler's arithmetic on integers. `sample.wgsl` computes the same in the same steps; change both together.

use super::Sampling;
use crate::random::mix;

/// Most fraction bits of logits in fixed point. Values reach ±2,048 with them, and have fewer if the best logit needs more.
const FRACTION: i32 = 20;
/// Fraction bits of distances in powers of two.
const DISTANCE_BITS: i32 = 24;
/// The largest weight is 2 to this: 128 of them fit a word.
const WEIGHT_BITS: u32 = 24;
/// `ln(2)` with 32 fraction bits.
const LN_2: u32 = 0xb172_17f8;
/// Terms of the exponential series: more change nothing.
const TERMS: u32 = 10;

/// A positive factor as `mantissa / 2^shift`, the mantissa's highest bit set.
#[derive(Clone, Copy)]
struct Factor {
    mantissa: u32,
    shift: u32,
}

impl Factor {
    fn of(value: f64) -> Self {
        // Beyond these nothing changes, and the shift stays between 1 and 61.
        let bits = value.clamp(2f64.powi(-30), 2f64.powi(30)).to_bits();
        let exponent = (bits >> 52) as i32 - 1023;
        let mantissa = (bits & ((1 << 52) - 1)) | 1 << 52;
        Self { mantissa: (mantissa >> 21) as u32, shift: (31 - exponent) as u32 }
    }

    /// `value` times the factor times two to `scale`, rounded down; the largest number if it does not fit.
    fn times(self, value: u32, scale: i32) -> u32 {
        let product = u64::from(value) * u64::from(self.mantissa);
        match self.shift as i32 - scale {
            shift if shift >= 64 => 0,
            shift if shift >= 0 => u32::try_from(product >> shift).unwrap_or(u32::MAX),
            _ if value == 0 => 0,
            _ => u32::MAX,
        }
    }
}

/// Sampling parameters as the kernel reads them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SamplingWords([u32; SamplingWords::LEN]);

// Which word holds what; `sample.wgsl` has the same names.
const SEED: usize = 0;
const KEEP: usize = 2;
const TOP_P: usize = 3;
const MIN_P: usize = 4;
const WINDOW: usize = 5;
const DIVIDE: usize = 6;
const MULTIPLY: usize = 8;
const TEMPERATURE: usize = 10;
const LOG2_E: usize = 12;

impl SamplingWords {
    /// Number of words.
    pub const LEN: usize = 16;

    /// The words of parameters.
    #[must_use]
    pub fn of(sampling: &Sampling) -> Self {
        let mut words = [0; Self::LEN];
        let mut put = |at: usize, factor: f64| {
            let Factor { mantissa, shift } = Factor::of(factor);
            words[at..at + 2].copy_from_slice(&[mantissa, shift]);
        };
        let penalty = f64::from(sampling.repetition_penalty);
        put(DIVIDE, 1.0 / penalty);
        put(MULTIPLY, penalty);
        put(TEMPERATURE, std::f64::consts::LOG2_E / f64::from(sampling.temperature));
        put(LOG2_E, std::f64::consts::LOG2_E);
        let seed = mix(sampling.seed);
        words[SEED..SEED + 2].copy_from_slice(&[seed as u32, (seed >> 32) as u32]);
        words[KEEP] = match sampling.top_k {
            _ if sampling.is_greedy() => 1,
            0 => u32::MAX,
            k => k,
        };
        let cuts = sampling.top_p < 1.0;
        // Casts saturate.
        words[TOP_P] = if cuts { ((f64::from(sampling.top_p) * 2f64.powi(32)) as u32).max(1) } else { 0 };
        let least = -f64::from(sampling.min_p.min(1.0)).log2();
        words[MIN_P] = if sampling.min_p > 0.0 { (least * 2f64.powi(DISTANCE_BITS)) as u32 } else { u32::MAX };
        words[WINDOW] = if sampling.penalizes() { sampling.penalty_window } else { 0 };
        Self(words)
    }

    /// The words.
    #[must_use]
    pub fn words(&self) -> &[u32; Self::LEN] {
        &self.0
    }

    /// Tokens that penalties look back at; 0 without penalties.
    pub(super) fn window(&self) -> u32 {
        self.0[WINDOW]
    }

    /// Best tokens to keep.
    pub(super) fn keep(&self) -> u32 {
        self.0[KEEP]
    }

    fn factor(&self, at: usize) -> Factor {
        Factor { mantissa: self.0[at], shift: self.0[at + 1] }
    }

    /// A logit in fixed point after the penalty.
    pub(super) fn penalized(&self, value: i32) -> i32 {
        let factor = self.factor(if value > 0 { DIVIDE } else { MULTIPLY });
        let size = factor.times(value.unsigned_abs(), 0).min(i32::MAX as u32) as i32;
        if value > 0 { size } else { -size }
    }

    /// Indices that top-p and min-p keep, of distances from the best logit in ascending order.
    pub(super) fn keep_likely(&self, distances: &[u32], fraction: i32) -> Vec<usize> {
        let powers: Vec<u32> = distances.iter().map(|at| self.powers(LOG2_E, *at, fraction)).collect();
        let weights = || powers.iter().map(|distance| weight(*distance));
        let total: u64 = weights().sum();
        let enough = (u128::from(self.0[TOP_P]) * u128::from(total)).div_ceil(1 << 32) as u64;
        let mut before = 0;
        let likely = weights().take_while(|weight| {
            let goes_on = self.0[TOP_P] == 0 || before < enough;
            before += weight;
            goes_on
        });
        let likely = likely.count();
        (0..likely).filter(|at| *at == 0 || powers[*at] <= self.0[MIN_P]).collect()
    }

    /// The weight of a distance at this temperature.
    pub(super) fn weight(&self, distance: u32, fraction: i32) -> u64 {
        weight(self.powers(TEMPERATURE, distance, fraction))
    }

    /// A distance in powers of two, with [`DISTANCE_BITS`] fraction bits.
    fn powers(&self, factor: usize, distance: u32, fraction: i32) -> u32 {
        self.factor(factor).times(distance, DISTANCE_BITS - fraction)
    }

    /// A number below `total` for a position, from SplitMix64's hash of it and the seed.
    pub(super) fn draw(&self, position: u32, total: u64) -> u64 {
        let seed = u64::from(self.0[SEED]) | u64::from(self.0[SEED + 1]) << 32;
        ((u128::from(mix(seed ^ u64::from(position)) >> 32) * u128::from(total)) >> 32) as u64
    }
}

/// Fraction bits such that a best logit of this size fits with a bit to spare.
pub(super) fn fraction(best: f32) -> i32 {
    (29 - (exponent(best) - 127)).min(FRACTION)
}

/// The exponent as it is stored; that of the smallest and largest finite numbers for what lies beyond them.
fn exponent(value: f32) -> i32 {
    ((value.to_bits() >> 23 & 0xff) as i32).clamp(1, 254)
}

/// A number in fixed point, rounded towards zero; the largest or smallest if it does not fit.
pub(super) fn fixed(value: f32, fraction: i32) -> i32 {
    let bits = value.to_bits();
    let mantissa = match bits >> 23 & 0xff {
        0 => bits & 0x007f_ffff,
        0xff => 0x00ff_ffff,
        _ => bits & 0x007f_ffff | 0x0080_0000,
    };
    let shift = exponent(value) - 150 + fraction;
    let size = match shift {
        8.. => i32::MAX as u32,
        0.. => mantissa << shift,
        -23.. => mantissa >> -shift,
        _ => 0,
    };
    if value.is_sign_negative() { -(size as i32) } else { size as i32 }
}

/// Two to the negative `distance`, with [`WEIGHT_BITS`] fraction bits, rounded.
fn weight(distance: u32) -> u64 {
    let whole = distance >> DISTANCE_BITS;
    if whole > WEIGHT_BITS {
        return 0;
    }
    let high = |a: u32, b: u32| ((u64::from(a) * u64::from(b)) >> 32) as u32;
    let exponent = high(distance << (32 - DISTANCE_BITS), LN_2);
    // 1 - y (1 - y/2 (1 - y/3 (…))), with 31 fraction bits.
    let sum = (1..=TERMS).rev().fold(1 << 31, |sum, k| (1 << 31) - high(exponent, sum) / k);
    let shift = 31 - WEIGHT_BITS + whole;
    u64::from((sum + (1 << (shift - 1))) >> shift)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::{Random, scramble};

    #[test]
    fn weights_are_powers_of_two_to_the_last_bit() {
        let mut random = Random::new(5);
        for _ in 0..10_000 {
            let distance = (random.next_u64() >> 40) as u32 * 23 + (random.next_u64() % 7) as u32;
            let exact = 2f64.powf(-f64::from(distance) / 2f64.powi(24)) * 2f64.powi(24);
            let got = weight(distance) as f64;
            assert!((got - exact).abs() < 0.51, "2^-({distance} / 2^24) is {exact}, got {got}");
        }
        assert_eq!(weight(0), 1 << 24);
        assert_eq!(weight(u32::MAX), 0);
    }

    #[test]
    fn logits_of_every_size_have_a_fixed_point() {
        for best in [0.0f32, 1e-3, 17.25, 900.0, 5e4, 3e38, -0.5, -70.0] {
            let fraction = fraction(best);
            let exact = f64::from(best) * 2f64.powi(fraction);
            assert!((f64::from(fixed(best, fraction)) - exact).abs() <= 1.0, "{best} with {fraction} fraction bits");
            assert!(fixed(f32::NEG_INFINITY, fraction) <= 64 - (1 << 30), "far below {best}");
        }
        assert!(fixed(f32::INFINITY, fraction(f32::INFINITY)) > fixed(1e38, fraction(f32::INFINITY)));
    }

    #[test]
    fn a_factor_is_as_exact_as_a_word() {
        for factor in [0.3, 1.0, 1.25, std::f64::consts::LOG2_E, 1e6] {
            let got = f64::from(Factor::of(factor).times(1 << 10, 0));
            let exact = (factor * 1024.0).floor();
            assert!((got - exact).abs() <= 1.0, "1024 times {factor} is {exact}, got {got}");
        }
        assert_eq!(Factor::of(1e9).times(1 << 30, 0), u32::MAX, "too large");
        assert_eq!(Factor::of(1.0).times(0, 100), 0);
    }

    #[test]
    fn the_random_number_is_the_generators() {
        let words = SamplingWords::of(&Sampling { seed: 9, ..Sampling::default() });
        let hash = scramble((mix(9) ^ 77).wrapping_add(0x9e37_79b9_7f4a_7c15));
        assert_eq!(words.draw(77, 1 << 32), hash >> 32);
    }
}
