//! Random numbers from a seed, the same on every machine: SplitMix64 (Steele, Lea and Flood, 2014). Not for secrets.

const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// SplitMix64's finalizer: every bit of the number changes half of the bits.
#[must_use]
pub fn scramble(number: u64) -> u64 {
    let z = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// A hash of a number: the first one of the stream with this seed.
#[must_use]
pub fn mix(number: u64) -> u64 {
    scramble(number.wrapping_add(STEP))
}

/// The next 64 bits of a stream whose state is kept elsewhere.
pub fn step(state: &mut u64) -> u64 {
    *state = state.wrapping_add(STEP);
    scramble(*state)
}

/// The stream of a seed.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// Its start.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// 64 random bits.
    pub fn next_u64(&mut self) -> u64 {
        step(&mut self.0)
    }

    /// A number below `end`; 0 if `end` is 0.
    pub fn below(&mut self, end: usize) -> usize {
        (self.next_u64() % (end as u64).max(1)) as usize
    }

    /// A number in `0.0..1.0`, with all 53 bits that an `f64` holds.
    pub fn unit(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// True with probability `p`.
    pub fn chance(&mut self, p: f64) -> bool {
        self.unit() < p
    }

    /// Random bytes.
    pub fn bytes(&mut self, len: usize) -> Vec<u8> {
        (0..len).map(|_| self.next_u64() as u8).collect()
    }

    /// Fisher–Yates.
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for end in (1..items.len()).rev() {
            items.swap(end, self.below(end + 1));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stream_is_that_of_the_published_generator() {
        let mut random = Random::new(1_234_567);
        let first: Vec<u64> = (0..3).map(|_| random.next_u64()).collect();
        assert_eq!(first, [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423]);
        assert_eq!(mix(1_234_567), first[0]);
    }

    #[test]
    fn numbers_stay_in_their_range() {
        let mut random = Random::new(1);
        for _ in 0..1_000 {
            assert!(random.below(3) < 3, "below the end");
            assert!((0.0..1.0).contains(&random.unit()), "from 0 up to 1");
        }
        assert_eq!(random.below(0), 0, "an empty range must not panic");
    }
}
