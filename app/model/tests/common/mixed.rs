//! 10,000 lines of mixed text, the same as those of `e2e/golden/mixed_text.py`.

use potluck_plan::random::Random;
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

/// The first `count` lines.
pub fn lines(count: usize) -> Vec<String> {
    let source: Source = serde_json::from_str(include_str!("../golden/mixed.json")).unwrap();
    let chars = |block: &Vec<(u32, u32)>| -> Vec<char> {
        block.iter().flat_map(|&(first, last)| first..=last).map(|code| char::from_u32(code).unwrap()).collect()
    };
    let blocks: Vec<Vec<char>> = source.blocks.iter().map(chars).collect();
    let mut random = Random::new(source.seed);
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
