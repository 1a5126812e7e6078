//! Pages of the KV cache: which conversation owns them, and how many positions each block has cached. No GPU here.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use potluck_plan::KV_PAGE_TOKENS;
use potluck_plan::{BatchToken, BlockIndex, ConversationId};

use crate::runtime::error::EngineError;

#[derive(Debug, Default)]
struct Conversation {
    /// Physical pages in order of position. All blocks use the same page numbers.
    pages: Vec<u32>,
    /// Positions cached per block.
    known: BTreeMap<BlockIndex, u32>,
}

/// The pool of pages and the conversations in it.
#[derive(Debug)]
pub struct KvPages {
    free: Vec<u32>,
    blocks: BTreeSet<BlockIndex>,
    conversations: HashMap<ConversationId, Conversation>,
}

/// A batch in the format that the kernels read.
#[derive(Debug, PartialEq, Eq)]
pub struct PlacedBatch {
    /// Per batch row: position, row in the cache, index of its conversation's first entry in `table`, and 0.
    pub rows: Vec<[u32; 4]>,
    /// Page tables of the conversations, concatenated.
    pub table: Vec<u32>,
}

fn pages_for(positions: u32) -> usize {
    positions.div_ceil(KV_PAGE_TOKENS) as usize
}

impl KvPages {
    /// Creates a pool of `count` pages.
    pub fn new(count: u32) -> Self {
        Self { free: (0..count).rev().collect(), blocks: BTreeSet::new(), conversations: HashMap::new() }
    }

    /// Sets the blocks that have a KV cache here; dropped blocks lose theirs.
    pub fn set_blocks(&mut self, blocks: BTreeSet<BlockIndex>) {
        self.blocks = blocks;
        for conversation in self.conversations.values_mut() {
            conversation.known.retain(|block, _| self.blocks.contains(block));
        }
        let ids: Vec<ConversationId> = self.conversations.keys().copied().collect();
        ids.into_iter().for_each(|id| self.shrink(id));
    }

    /// Frees the pages of a conversation.
    pub fn forget(&mut self, id: ConversationId) {
        if let Some(conversation) = self.conversations.remove(&id) {
            self.free.extend(conversation.pages);
        }
    }

    /// True if no conversation has a KV cache.
    pub fn is_empty(&self) -> bool {
        self.conversations.is_empty()
    }

    /// Positions that every block has cached.
    pub fn known(&self, id: ConversationId) -> u32 {
        let Some(conversation) = self.conversations.get(&id) else { return 0 };
        self.blocks.iter().map(|block| conversation.known.get(block).copied().unwrap_or(0)).min().unwrap_or(0)
    }

    /// Makes room for a batch that runs through `blocks`, and overwrites what those blocks have cached from its first
    /// position on. On error nothing changes.
    pub fn place(&mut self, rows: &[BatchToken], blocks: &[BlockIndex]) -> Result<PlacedBatch, EngineError> {
        let spans = spans(rows)?;
        let mut needed = 0;
        for (&id, &(first, end)) in &spans {
            let conversation = self.conversations.get(&id);
            let known = blocks
                .iter()
                .map(|block| conversation.and_then(|c| c.known.get(block)).copied().unwrap_or(0))
                .min()
                .unwrap_or(0);
            if first > known {
                return Err(EngineError::Gap { conversation: id, known, wanted: first });
            }
            needed += pages_for(end).saturating_sub(conversation.map_or(0, |c| c.pages.len()));
        }
        if needed > self.free.len() {
            return Err(EngineError::OutOfKvCache { needed: needed as u32, free: self.free.len() as u32 });
        }
        let mut table = Vec::new();
        let mut starts = HashMap::new();
        for (&id, &(_, end)) in &spans {
            let conversation = self.conversations.entry(id).or_default();
            while conversation.pages.len() < pages_for(end) {
                conversation.pages.extend(self.free.pop());
            }
            conversation.known.extend(blocks.iter().map(|&block| (block, end)));
            starts.insert(id, table.len() as u32);
            table.extend_from_slice(&conversation.pages[..pages_for(end)]);
        }
        let rows = rows
            .iter()
            .map(|row| {
                let position = row.position.0;
                let start = starts[&row.conversation];
                let page = table[(start + position / KV_PAGE_TOKENS) as usize];
                [position, page * KV_PAGE_TOKENS + position % KV_PAGE_TOKENS, start, 0]
            })
            .collect();
        spans.keys().for_each(|&id| self.shrink(id));
        Ok(PlacedBatch { rows, table })
    }

    /// Frees pages that no block needs any more.
    fn shrink(&mut self, id: ConversationId) {
        let Some(conversation) = self.conversations.get_mut(&id) else { return };
        let max = conversation.known.values().copied().max().unwrap_or(0);
        if conversation.pages.len() > pages_for(max) {
            self.free.extend(conversation.pages.drain(pages_for(max)..));
        }
    }
}

/// First position and one past the last position of each conversation. Positions must be consecutive.
fn spans(rows: &[BatchToken]) -> Result<BTreeMap<ConversationId, (u32, u32)>, EngineError> {
    let mut spans: BTreeMap<ConversationId, (u32, u32)> = BTreeMap::new();
    for row in rows {
        let position = row.position.0;
        match spans.get_mut(&row.conversation) {
            None => {
                let end = position.checked_add(1).ok_or(EngineError::OutOfKvCache { needed: u32::MAX, free: 0 })?;
                spans.insert(row.conversation, (position, end));
            }
            Some((_, end)) if *end == position && position < u32::MAX => *end += 1,
            Some((_, end)) => {
                return Err(EngineError::Gap { conversation: row.conversation, known: *end, wanted: position });
            }
        }
    }
    Ok(spans)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use super::*;
    use potluck_plan::Position;

    const A: ConversationId = ConversationId(1);
    const B: ConversationId = ConversationId(2);
    const BLOCKS: [BlockIndex; 2] = [BlockIndex(0), BlockIndex(1)];

    fn rows(conversation: ConversationId, positions: std::ops::Range<u32>) -> Vec<BatchToken> {
        positions.map(|p| BatchToken { conversation, position: Position(p) }).collect()
    }

    fn pool(count: u32) -> KvPages {
        let mut pages = KvPages::new(count);
        pages.set_blocks(BLOCKS.into());
        pages
    }

    #[test]
    fn conversations_grow_over_pages_that_need_not_be_neighbours() {
        let mut pages = pool(4);
        pages.place(&rows(A, 0..60), &BLOCKS).unwrap();
        pages.place(&rows(B, 0..1), &BLOCKS).unwrap();
        let placed = pages.place(&rows(A, 60..70), &BLOCKS).unwrap();
        assert_eq!(placed.table, [0, 2]);
        assert_eq!(placed.rows[3], [63, 63, 0, 0]);
        assert_eq!(placed.rows[4], [64, 2 * 64, 0, 0]);
        assert_eq!((pages.known(A), pages.known(B)), (70, 1));
    }

    #[test]
    fn an_earlier_position_truncates_and_gives_pages_back() {
        let mut pages = pool(2);
        pages.place(&rows(A, 0..128), &BLOCKS).unwrap();
        assert!(matches!(pages.place(&rows(B, 0..1), &BLOCKS), Err(EngineError::OutOfKvCache { needed: 1, free: 0 })));
        pages.place(&rows(A, 10..11), &BLOCKS).unwrap();
        assert_eq!(pages.known(A), 11);
        pages.place(&rows(B, 0..1), &BLOCKS).unwrap();
    }

    #[test]
    fn gaps_are_refused_and_change_nothing() {
        let mut pages = pool(2);
        pages.place(&rows(A, 0..3), &BLOCKS).unwrap();
        let error = pages.place(&rows(A, 4..5), &BLOCKS).unwrap_err();
        assert_eq!(error, EngineError::Gap { conversation: A, known: 3, wanted: 4 });
        let mut split = rows(A, 3..4);
        split.extend(rows(A, 5..6));
        assert!(matches!(pages.place(&split, &BLOCKS), Err(EngineError::Gap { wanted: 5, .. })));
        assert_eq!(pages.known(A), 3);
    }

    #[test]
    fn blocks_may_be_at_different_positions() {
        let mut pages = pool(2);
        pages.place(&rows(A, 0..5), &BLOCKS[..1]).unwrap();
        assert_eq!(pages.known(A), 0);
        pages.place(&rows(A, 0..5), &BLOCKS[1..]).unwrap();
        assert_eq!(pages.known(A), 5);
        pages.set_blocks(BLOCKS[..1].iter().copied().collect());
        pages.set_blocks(BLOCKS.into());
        assert_eq!(pages.known(A), 0, "a block that was away has to be recomputed");
    }

    #[test]
    fn forgetting_frees_everything() {
        let mut pages = pool(1);
        pages.place(&rows(A, 0..64), &BLOCKS).unwrap();
        pages.forget(A);
        pages.place(&rows(B, 0..64), &BLOCKS).unwrap();
        assert_eq!(pages.known(A), 0);
    }
}
