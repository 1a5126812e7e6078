//! 10,000 lines of mixed text, the same as those of `e2e/golden/mixed_text.py`.

use serde::Deserialize;

/// Lines there are.
pub const LINES: usize = 10_000;

#[derive(Deserialize)]
struct Source {
    seed: u64,
    fragments: Vec<String>,
    /// Characters as ranges.
    blocks: Vec<Vec<(u32, u32)>>,
}

/// SplitMix64.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ z >> 31) % limit as u64) as usize
    }
}

/// The first `count` lines.
pub fn lines(count: usize) -> Vec<String> {
    let source: Source = serde_json::from_str(include_str!("../golden/mixed.json")).unwrap();
    let chars = |block: &Vec<(u32, u32)>| -> Vec<char> {
        block.iter().flat_map(|&(first, last)| first..=last).map(|code| char::from_u32(code).unwrap()).collect()
    };
    let blocks: Vec<Vec<char>> = source.blocks.iter().map(chars).collect();
    let mut random = Random(source.seed);
    let line = |_| {
        let mut line = String::new();
        for _ in 0..1 + random.below(10) {
            if random.below(4) == 0 {
                let block = &blocks[random.below(blocks.len())];
                line.extend((0..1 + random.below(6)).map(|_| block[random.below(block.len())]));
            } else {
                line += &source.fragments[random.below(source.fragments.len())];
            }
        }
        line
    };
    (0..count).map(line).collect()
}
