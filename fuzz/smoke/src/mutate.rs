//! Mutations of valid inputs, blind: without the coverage that libFuzzer steers by.

use potluck_testkit::Random;

/// Numbers at which lengths and offsets go wrong.
const EDGES: [u64; 8] = [0, 1, 0x7f, 0xff, 0x7fff_ffff, 0xffff_ffff, i64::MAX as u64, u64::MAX];
/// Mutations of one input, at most.
const MAX_MUTATIONS: usize = 6;
/// Bytes that one mutation inserts or removes, at most.
const MAX_RUN: usize = 64;

/// Mutates `seed` a few times; `other` is another input of the same target to splice from.
#[must_use]
pub fn mutate(seed: &[u8], other: &[u8], random: &mut Random) -> Vec<u8> {
    let mut data = seed.to_vec();
    for _ in 0..=random.below(MAX_MUTATIONS) {
        let at = random.below(data.len());
        match random.below(8) {
            0 | 1 if !data.is_empty() => data[at] ^= 1 << random.below(8),
            2 if !data.is_empty() => data[at] = random.next_u64() as u8,
            3 => {
                let edge = EDGES[random.below(EDGES.len())].to_le_bytes();
                let width = [1, 2, 4, 8][random.below(4)].min(data.len() - at.min(data.len()));
                data[at..at + width].copy_from_slice(&edge[..width]);
            }
            4 => data.truncate(at),
            5 => drop(data.drain(at..(at + random.below(MAX_RUN)).min(data.len()))),
            6 => {
                let run = random.below(MAX_RUN);
                let bytes = random.bytes(run);
                data.splice(at..at, bytes);
            }
            _ => {
                let from = random.below(other.len());
                let run = &other[from..(from + random.below(MAX_RUN)).min(other.len())];
                let end = (at + run.len()).min(data.len());
                data.splice(at..end, run.iter().copied());
            }
        }
    }
    data
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_input_can_be_mutated_and_most_results_differ() {
        let mut random = Random::new(1);
        for seed in [&b""[..], b"x", b"a longer input of some bytes"] {
            let differ = (0..1_000).filter(|_| mutate(seed, b"other", &mut random) != seed).count();
            assert!(differ > 500, "{differ} of 1000 mutations of {seed:?} changed anything");
        }
    }
}
