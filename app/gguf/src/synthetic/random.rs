//! A fast random generator with identical output on every machine: integer arithmetic up to the final conversion.

/// xoshiro256++ (Blackman and Vigna), seeded through SplitMix64.
#[derive(Clone, Debug)]
pub struct Random {
    state: [u64; 4],
}

impl Random {
    /// An independent stream per seed and name, so tensors can be generated in any order.
    pub fn new(seed: u64, name: &str) -> Self {
        // FNV-1a of the name.
        let hash = name.bytes().fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
        });
        let mut state = seed ^ hash;
        Self {
            state: std::array::from_fn(|_| {
                state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
                let z = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
                let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
                z ^ (z >> 31)
            }),
        }
    }

    /// 64 random bits.
    #[inline]
    pub fn next_u64(&mut self) -> u64 {
        let s = &mut self.state;
        let result = s[0].wrapping_add(s[3]).rotate_left(23).wrapping_add(s[0]);
        let t = s[1] << 17;
        s[2] ^= s[0];
        s[3] ^= s[1];
        s[1] ^= s[2];
        s[0] ^= s[3];
        s[2] ^= t;
        s[3] = s[3].rotate_left(45);
        result
    }

    /// Approximately normal with mean 0 and standard deviation 1, within ±4.9: the sum of eight uniform numbers. Avoids
    /// logarithm and cosine, whose last bits differ between machines.
    #[inline]
    pub fn normal(&mut self) -> f32 {
        let sum: u32 = [self.next_u64(), self.next_u64()]
            .into_iter()
            .map(|bits| (bits & 0xffff) + (bits >> 16 & 0xffff) + (bits >> 32 & 0xffff) + (bits >> 48))
            .map(|sum| sum as u32)
            .sum();
        // The sum has mean 4 * 65535 and standard deviation 65536 * sqrt(8 / 12).
        (sum as f32 - 262_140.0) * (1.0 / 53_509.92)
    }

    /// Fills `bytes` with random bytes.
    pub fn fill(&mut self, bytes: &mut [u8]) {
        let mut words = bytes.chunks_exact_mut(8);
        for word in &mut words {
            word.copy_from_slice(&self.next_u64().to_le_bytes());
        }
        let rest = words.into_remainder();
        let last = self.next_u64().to_le_bytes();
        rest.copy_from_slice(&last[..rest.len()]);
    }
}
