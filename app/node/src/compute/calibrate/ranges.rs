//! Which blocks of a model are timed.

use potluck_model::UnitMap;
use potluck_plan::{BlockIndex, BlockRange, WeightUnit};

/// Blocks of the short range and of the long one: the first pair that fits is used.
const LENGTHS: [(u16, u16); 3] = [(2, 6), (1, 3), (1, 2)];

/// The two ranges of blocks to time, and whether the LM head is timed too.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ranges {
    pub short: BlockRange,
    pub long: BlockRange,
    pub lm_head: bool,
}

/// All units of a block.
pub fn units_of(units: &UnitMap, block: BlockIndex) -> Vec<WeightUnit> {
    units.units().filter(|unit| unit.block() == Some(block)).collect()
}

/// The longest run of blocks for which `has` is true.
pub fn longest_run(blocks: u16, has: impl Fn(BlockIndex) -> bool) -> BlockRange {
    let (mut best, mut start) = (BlockRange::default(), 0);
    for block in 0..blocks {
        if !has(BlockIndex(block)) {
            start = block + 1;
        } else if block + 1 - start > best.end - best.start {
            best = BlockRange::new(start, block + 1);
        }
    }
    best
}

/// Two ranges from the middle of `blocks`: the first and last blocks of a model sometimes have other types.
pub fn ranges(blocks: BlockRange, lm_head: bool, fits: impl Fn(BlockRange) -> bool) -> Option<Ranges> {
    let count = blocks.end - blocks.start;
    LENGTHS.iter().find_map(|(short, long)| {
        let start = blocks.start + count.checked_sub(*long)? / 2;
        let long = BlockRange::new(start, start + long);
        fits(long).then_some(Ranges { short: BlockRange::new(start, start + short), long, lm_head })
    })
}

/// The longest ranges of at most `max` bytes that leave room for the LM head in `free` bytes, if they have more than two
/// blocks; otherwise ranges without the LM head.
pub fn ranges_with_lm_head(
    all: BlockRange,
    bytes: impl Fn(BlockRange) -> u64,
    lm_head: u64,
    max: u64,
    free: u64,
) -> Option<Ranges> {
    let fits = |range: BlockRange| bytes(range) <= max;
    let with = ranges(all, true, |range| fits(range) && bytes(range) + lm_head <= free);
    let without = ranges(all, false, fits)?;
    let blocks = |ranges: &Ranges| ranges.long.end - ranges.long.start;
    with.filter(|with| blocks(with) > 2 || blocks(with) == blocks(&without)).or(Some(without))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use super::*;

    #[test]
    fn the_middle_of_the_model_is_timed_as_far_as_it_fits() {
        let of =
            |count: u16, most: u16| ranges(BlockRange::new(0, count), true, |range| range.end - range.start <= most);
        let wide = of(28, 28).unwrap();
        assert_eq!((wide.short, wide.long), (BlockRange::new(11, 13), BlockRange::new(11, 17)));
        let narrow = of(28, 4).unwrap();
        assert_eq!((narrow.short, narrow.long), (BlockRange::new(12, 13), BlockRange::new(12, 15)));
        assert_eq!(of(2, 2).map(|ranges| ranges.long), Some(BlockRange::new(0, 2)));
        assert_eq!(of(28, 1), None, "two ranges need two blocks");
        assert_eq!(of(1, 9), None);
    }

    #[test]
    fn fewer_blocks_are_timed_if_the_lm_head_then_fits_too() {
        let of = |free| {
            let found = ranges_with_lm_head(
                BlockRange::new(0, 28),
                |range| 10 * u64::from(range.end - range.start),
                25,
                75,
                free,
            );
            found.map(|found| (found.long.end - found.long.start, found.lm_head))
        };
        assert_eq!(of(85), Some((6, true)));
        assert_eq!(of(75), Some((3, true)), "the LM head's cost is worth more than three blocks");
        assert_eq!(of(50), Some((6, false)), "two blocks tell too little");
    }

    #[test]
    fn of_a_stage_the_longest_run_of_loaded_blocks_is_timed() {
        let has = |block: BlockIndex| [1, 4, 5, 6, 9].contains(&block.0);
        assert_eq!(longest_run(10, has), BlockRange::new(4, 7));
        assert_eq!(longest_run(10, |_| false), BlockRange::default());
    }
}
