//! Merges pairs of symbols, best first.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use rustc_hash::FxHashMap;

/// Pairs of tokens that merge: lowest rank first, equal ranks from left to right.
#[derive(Clone, Debug, Default)]
pub(super) struct MergeTable {
    pairs: FxHashMap<u64, Merge>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Merge {
    rank: u32,
    id: u32,
}

/// Symbols to merge in place, and buffers that are reused for the next word.
#[derive(Debug, Default)]
pub(super) struct Scratch {
    pub(super) symbols: Vec<u32>,
    merges: Vec<Option<Merge>>,
    next: Vec<u32>,
    previous: Vec<u32>,
    /// Rank, left symbol, id of the merged token.
    heap: BinaryHeap<Reverse<(u32, u32, u32)>>,
}

/// Words up to this length are rescanned after each merge, which is faster than a heap.
const SHORT: usize = 32;
/// End of the linked list of symbols.
const NONE: u32 = u32::MAX;

impl MergeTable {
    pub(super) fn with_capacity(pairs: usize) -> Self {
        Self { pairs: FxHashMap::with_capacity_and_hasher(pairs, Default::default()) }
    }

    /// Adds a pair unless it exists already; the earlier rank is better and stays.
    pub(super) fn insert(&mut self, left: u32, right: u32, rank: u32, id: u32) {
        self.pairs.entry(key(left, right)).or_insert(Merge { rank, id });
    }

    fn get(&self, left: u32, right: u32) -> Option<Merge> {
        self.pairs.get(&key(left, right)).copied()
    }

    /// Merges `scratch.symbols` until no pair is left.
    pub(super) fn apply(&self, scratch: &mut Scratch) {
        match scratch.symbols.len() {
            0 | 1 => {}
            2..=SHORT => self.apply_short(scratch),
            _ => self.apply_long(scratch),
        }
    }

    fn apply_short(&self, scratch: &mut Scratch) {
        let Scratch { symbols, merges, .. } = scratch;
        merges.clear();
        merges.extend(symbols.windows(2).map(|pair| self.get(pair[0], pair[1])));
        let best = |merges: &[Option<Merge>]| {
            let found = merges.iter().enumerate().filter_map(|(at, merge)| Some((merge.as_ref()?.rank, at)));
            found.min()
        };
        while let Some((_, at)) = best(merges) {
            let Some(merge) = merges[at] else { break };
            symbols[at] = merge.id;
            symbols.remove(at + 1);
            merges.remove(at);
            if at > 0 {
                merges[at - 1] = self.get(symbols[at - 1], symbols[at]);
            }
            if at < merges.len() {
                merges[at] = self.get(symbols[at], symbols[at + 1]);
            }
        }
    }

    /// Uses a linked list of symbols and a heap of pairs; skips pairs that changed after they were queued.
    fn apply_long(&self, scratch: &mut Scratch) {
        let Scratch { symbols, next, previous, heap, .. } = scratch;
        let len = symbols.len() as u32;
        next.clear();
        next.extend((1..len).chain([NONE]));
        previous.clear();
        previous.extend([NONE].into_iter().chain(0..len - 1));
        heap.clear();
        let queue = |heap: &mut BinaryHeap<_>, symbols: &[u32], left: u32, right: u32| {
            if left != NONE
                && right != NONE
                && let Some(merge) = self.get(symbols[left as usize], symbols[right as usize])
            {
                heap.push(Reverse((merge.rank, left, merge.id)));
            }
        };
        for left in 0..len - 1 {
            queue(heap, symbols, left, left + 1);
        }
        while let Some(Reverse((rank, left, id))) = heap.pop() {
            let right = next[left as usize];
            if symbols[left as usize] == GONE || right == NONE {
                continue;
            }
            if self.get(symbols[left as usize], symbols[right as usize]) != Some(Merge { rank, id }) {
                continue;
            }
            symbols[left as usize] = id;
            symbols[right as usize] = GONE;
            let after = next[right as usize];
            next[left as usize] = after;
            if after != NONE {
                previous[after as usize] = left;
            }
            queue(heap, symbols, previous[left as usize], left);
            queue(heap, symbols, left, after);
        }
        symbols.retain(|&symbol| symbol != GONE);
    }
}

/// Marks a symbol that was merged into its left neighbour. Differs from every token id and from the mark of a character
/// without a token.
const GONE: u32 = u32::MAX - 1;

fn key(left: u32, right: u32) -> u64 {
    u64::from(left) << 32 | u64::from(right)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_short_and_the_long_way_agree(
            symbols in prop::collection::vec(0u32..6, 2..60),
            pairs in prop::collection::vec((0u32..12, 0u32..12), 0..40),
        ) {
            let mut table = MergeTable::default();
            for (rank, (left, right)) in pairs.iter().enumerate() {
                // Every rank occurs twice, because SentencePiece scores may be equal; each left and right has one id.
                table.insert(*left, *right, rank as u32 / 2, (left * 12 + right) % 12);
            }
            let mut short = Scratch { symbols: symbols.clone(), ..Scratch::default() };
            table.apply_short(&mut short);
            let mut long = Scratch { symbols, ..Scratch::default() };
            table.apply_long(&mut long);
            prop_assert_eq!(short.symbols, long.symbols);
        }
    }
}
