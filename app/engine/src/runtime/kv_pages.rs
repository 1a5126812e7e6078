//! Pages of the KV cache: which conversation owns them, and how many positions each block has cached. Also the slots of
//! recurrent states. No GPU here.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Bound;

use potluck_plan::{
    BatchToken, BlockIndex, ConversationId, KV_PAGE_TOKENS, KernelClass, STATE_CONVERSATIONS, StateHistory, StateMoves,
};

use crate::runtime::error::EngineError;

#[derive(Debug, Default)]
struct Conversation {
    /// Physical pages in order of position. All blocks use the same page numbers.
    pages: Vec<u32>,
    /// Positions cached per block.
    known: BTreeMap<BlockIndex, u32>,
    /// Which share of the recurrent states it has, if any.
    share: Option<u32>,
    /// The states of each recurrent block.
    states: BTreeMap<BlockIndex, StateHistory>,
}

/// How the rows of a conversation are computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rows {
    /// Together.
    Together,
    /// One after another, each by a run of the program.
    Stepwise,
}

/// The pool of pages and the conversations in it.
#[derive(Debug)]
pub struct KvPages {
    free: Vec<u32>,
    blocks: BTreeSet<BlockIndex>,
    /// Blocks with recurrent state.
    recurrent: BTreeSet<BlockIndex>,
    /// Shares of the recurrent states that no conversation has.
    shares: Vec<u32>,
    conversations: HashMap<ConversationId, Conversation>,
}

/// A batch in the format that the kernels read.
#[derive(Debug, PartialEq, Eq)]
pub struct PlacedBatch {
    /// Per batch row: position, row in the cache, index of its conversation's first entry in `table`, and what it does to
    /// recurrent states (`runs.wgsl`).
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
        Self {
            free: (0..count).rev().collect(),
            blocks: BTreeSet::new(),
            recurrent: BTreeSet::new(),
            shares: (0..STATE_CONVERSATIONS).rev().collect(),
            conversations: HashMap::new(),
        }
    }

    /// Names the blocks of the model that have recurrent state.
    pub fn set_recurrent(&mut self, blocks: BTreeSet<BlockIndex>) {
        self.recurrent = blocks;
    }

    /// Sets the blocks that have a KV cache here; dropped blocks lose theirs.
    pub fn set_blocks(&mut self, blocks: BTreeSet<BlockIndex>) {
        self.blocks = blocks;
        for conversation in self.conversations.values_mut() {
            conversation.known.retain(|block, _| self.blocks.contains(block));
            conversation.states.retain(|block, _| self.blocks.contains(block));
        }
        let ids: Vec<ConversationId> = self.conversations.keys().copied().collect();
        ids.into_iter().for_each(|id| self.shrink(id));
    }

    /// Frees the pages of a conversation.
    pub fn forget(&mut self, id: ConversationId) {
        if let Some(conversation) = self.conversations.remove(&id) {
            self.free.extend(conversation.pages);
            self.shares.extend(conversation.share);
        }
    }

    /// True if no conversation has a KV cache.
    pub fn is_empty(&self) -> bool {
        self.conversations.is_empty()
    }

    /// A conversation's pages, in order of position.
    pub fn of(&self, id: ConversationId) -> &[u32] {
        self.conversations.get(&id).map_or(&[], |conversation| conversation.pages.as_slice())
    }

    /// Positions that every block has cached.
    pub fn known(&self, id: ConversationId) -> u32 {
        let Some(conversation) = self.conversations.get(&id) else { return 0 };
        self.blocks.iter().map(|block| conversation.known.get(block).copied().unwrap_or(0)).min().unwrap_or(0)
    }

    /// Makes room for a batch that runs through `blocks`, and overwrites what those blocks have cached from its first
    /// position on. Recurrent states go on from there. On error nothing changes, but what is timed may have lost its pages:
    /// conversations were promised all of them.
    pub fn place(
        &mut self,
        rows: &[BatchToken],
        blocks: &[BlockIndex],
        class: KernelClass,
        how: Rows,
    ) -> Result<PlacedBatch, EngineError> {
        match self.place_beside(rows, blocks, class, how) {
            Err(EngineError::OutOfKvCache { .. } | EngineError::OutOfStates)
                if self.conversations.contains_key(&ConversationId::TRIAL) =>
            {
                self.forget(ConversationId::TRIAL);
                self.place_beside(rows, blocks, class, how)
            }
            placed => placed,
        }
    }

    /// The same beside everything that has pages.
    fn place_beside(
        &mut self,
        rows: &[BatchToken],
        blocks: &[BlockIndex],
        class: KernelClass,
        how: Rows,
    ) -> Result<PlacedBatch, EngineError> {
        let spans = spans(rows)?;
        let states = self.states(rows, &spans, blocks, class)?;
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
        let words = self.keep_states(states, rows, how);
        let mut table = Vec::new();
        let mut starts = HashMap::new();
        for (&id, &(first, end)) in &spans {
            let conversation = self.conversations.entry(id).or_default();
            // Later blocks, which may be another stage's on this device, get these positions next.
            if let Some(last) = blocks.iter().max() {
                let behind = conversation.known.range_mut((Bound::Excluded(*last), Bound::Unbounded));
                behind.for_each(|(_, known)| *known = (*known).min(first));
            }
            while conversation.pages.len() < pages_for(end) {
                conversation.pages.extend(self.free.pop());
            }
            conversation.known.extend(blocks.iter().map(|&block| (block, end)));
            starts.insert(id, table.len() as u32);
            table.extend_from_slice(&conversation.pages[..pages_for(end)]);
        }
        let rows = rows
            .iter()
            .zip(words)
            .map(|(row, word)| {
                let position = row.position.0;
                let start = starts[&row.conversation];
                let page = table[(start + position / KV_PAGE_TOKENS) as usize];
                [position, page * KV_PAGE_TOKENS + position % KV_PAGE_TOKENS, start, word]
            })
            .collect();
        spans.keys().for_each(|&id| self.shrink(id));
        Ok(PlacedBatch { rows, table })
    }

    /// What the batch makes of the recurrent states of each conversation.
    fn states(
        &self,
        rows: &[BatchToken],
        spans: &BTreeMap<ConversationId, (u32, u32)>,
        blocks: &[BlockIndex],
        class: KernelClass,
    ) -> Result<BTreeMap<ConversationId, NewStates>, EngineError> {
        let recurrent: Vec<BlockIndex> =
            blocks.iter().copied().filter(|block| self.recurrent.contains(block)).collect();
        if recurrent.is_empty() {
            return Ok(BTreeMap::new());
        }
        let mut all = BTreeMap::new();
        let mut shares = self.shares.len();
        for (&id, &(first, end)) in spans {
            let of_conversation = rows.iter().skip_while(|row| row.conversation != id);
            if of_conversation.take_while(|row| row.conversation == id).count() as u32 != end - first {
                return Err(EngineError::Scattered(id));
            }
            let conversation = self.conversations.get(&id);
            if conversation.is_none_or(|conversation| conversation.share.is_none()) {
                shares = shares.checked_sub(1).ok_or(EngineError::OutOfStates)?;
            }
            let history = |block| conversation.and_then(|c| c.states.get(block)).cloned().unwrap_or_default();
            let mut histories: Vec<(BlockIndex, StateHistory)> =
                recurrent.iter().map(|block| (*block, history(block))).collect();
            let mut moves = None;
            for (_, history) in &mut histories {
                // A block that is elsewhere than the others cannot share their rows.
                let own = history.advance(first, end, class).filter(|own| moves.as_ref().is_none_or(|all| all == own));
                moves = Some(own.ok_or_else(|| self.no_state(id, &recurrent, first))?);
            }
            all.insert(id, NewStates { moves: moves.unwrap_or_default(), histories });
        }
        Ok(all)
    }

    /// Why work on a conversation cannot begin at a position: the last one where all blocks have a state.
    fn no_state(&self, id: ConversationId, recurrent: &[BlockIndex], wanted: u32) -> EngineError {
        let conversation = self.conversations.get(&id);
        let base = |block, at| conversation.and_then(|c| c.states.get(block)).map_or(0, |state| state.base(at));
        let mut known = recurrent.iter().map(|block| base(block, wanted)).min().unwrap_or(0);
        loop {
            let lower = recurrent.iter().map(|block| base(block, known)).min().unwrap_or(0);
            if lower == known {
                return EngineError::NoState { conversation: id, known, wanted };
            }
            known = lower;
        }
    }

    /// Records the new states; returns the word of each row (`runs.wgsl`).
    fn keep_states(&mut self, states: BTreeMap<ConversationId, NewStates>, rows: &[BatchToken], how: Rows) -> Vec<u32> {
        let mut words = vec![0; rows.len()];
        for (id, NewStates { moves, histories }) in states {
            let conversation = self.conversations.entry(id).or_default();
            if conversation.share.is_none() {
                conversation.share = self.shares.pop();
            }
            conversation.states.extend(histories);
            let first_slot = conversation.share.unwrap_or(0) * StateHistory::SLOTS;
            let of_conversation = rows.iter().enumerate().filter(|(_, row)| row.conversation == id);
            let own: Vec<(usize, u32)> = of_conversation.map(|(index, row)| (index, row.position.0)).collect();
            let slot = |slot: u8| first_slot + u32::from(slot);
            for (nth, (index, position)) in own.iter().enumerate() {
                let begins = nth == 0 || how == Rows::Stepwise;
                let from = match (nth, moves.from) {
                    (0, from) => from.map_or(0, |from| slot(from) + 1),
                    _ => slot(StateHistory::LIVE) + 1,
                };
                let count = if how == Rows::Stepwise { 1 } else { own.len() as u32 };
                let copy = moves.copies.iter().find(|(end, _)| *end == position + 1);
                let copy = copy.map_or(0, |(_, to)| slot(*to) + 1);
                let run = if begins { from << 14 | count << 21 } else { 0 };
                words[*index] = slot(StateHistory::LIVE) | copy << 7 | run;
            }
        }
        words
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

/// A conversation's recurrent states after a batch.
struct NewStates {
    moves: StateMoves,
    histories: Vec<(BlockIndex, StateHistory)>,
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

    impl KvPages {
        fn put(&mut self, rows: &[BatchToken], blocks: &[BlockIndex]) -> Result<PlacedBatch, EngineError> {
            self.place(rows, blocks, KernelClass::Prefill, Rows::Together)
        }
    }

    fn pool(count: u32) -> KvPages {
        let mut pages = KvPages::new(count);
        pages.set_blocks(BLOCKS.into());
        pages
    }

    #[test]
    fn conversations_grow_over_pages_that_need_not_be_neighbours() {
        let mut pages = pool(4);
        pages.put(&rows(A, 0..60), &BLOCKS).unwrap();
        pages.put(&rows(B, 0..1), &BLOCKS).unwrap();
        let placed = pages.put(&rows(A, 60..70), &BLOCKS).unwrap();
        assert_eq!(placed.table, [0, 2]);
        assert_eq!(placed.rows[3], [63, 63, 0, 0]);
        assert_eq!(placed.rows[4], [64, 2 * 64, 0, 0]);
        assert_eq!((pages.known(A), pages.known(B)), (70, 1));
    }

    #[test]
    fn an_earlier_position_truncates_and_gives_pages_back() {
        let mut pages = pool(2);
        pages.put(&rows(A, 0..128), &BLOCKS).unwrap();
        assert!(matches!(pages.put(&rows(B, 0..1), &BLOCKS), Err(EngineError::OutOfKvCache { needed: 1, free: 0 })));
        pages.put(&rows(A, 10..11), &BLOCKS).unwrap();
        assert_eq!(pages.known(A), 11);
        pages.put(&rows(B, 0..1), &BLOCKS).unwrap();
    }

    #[test]
    fn a_stage_that_goes_back_gives_up_the_pages_of_a_later_one_on_the_same_device() {
        let mut pages = pool(2);
        let [head, tail] = BLOCKS.map(|block| [block]);
        pages.put(&rows(A, 0..128), &head).unwrap();
        pages.put(&rows(A, 0..128), &tail).unwrap();
        pages.put(&rows(A, 10..11), &head).unwrap();
        // Another conversation begins before the later stage gets position 10 from the stage between.
        pages.put(&rows(B, 0..1), &head).unwrap();
        pages.put(&rows(A, 10..11), &tail).unwrap();
        assert_eq!(pages.known(A), 11);
        // Chunks on their way: the later stage is behind, and stays where it is.
        pages.put(&rows(A, 11..13), &head).unwrap();
        pages.put(&rows(A, 13..14), &head).unwrap();
        pages.put(&rows(A, 11..13), &tail).unwrap();
        assert_eq!(pages.known(A), 13);
    }

    #[test]
    fn a_conversation_gets_the_pages_of_what_is_timed() {
        let mut pages = pool(2);
        pages.put(&rows(A, 0..64), &BLOCKS).unwrap();
        pages.put(&rows(ConversationId::TRIAL, 0..1), &BLOCKS).unwrap();
        pages.put(&rows(A, 64..65), &BLOCKS).unwrap();
        assert_eq!(pages.known(A), 65);
        let timed = pages.put(&rows(ConversationId::TRIAL, 0..1), &BLOCKS);
        assert!(
            matches!(timed, Err(EngineError::OutOfKvCache { needed: 1, free: 0 })),
            "conversations keep theirs: {timed:?}"
        );
    }

    #[test]
    fn gaps_are_refused_and_change_nothing() {
        let mut pages = pool(2);
        pages.put(&rows(A, 0..3), &BLOCKS).unwrap();
        let error = pages.put(&rows(A, 4..5), &BLOCKS).unwrap_err();
        assert_eq!(error, EngineError::Gap { conversation: A, known: 3, wanted: 4 });
        let mut split = rows(A, 3..4);
        split.extend(rows(A, 5..6));
        assert!(matches!(pages.put(&split, &BLOCKS), Err(EngineError::Gap { wanted: 5, .. })));
        assert_eq!(pages.known(A), 3);
    }

    #[test]
    fn blocks_may_be_at_different_positions() {
        let mut pages = pool(2);
        pages.put(&rows(A, 0..5), &BLOCKS[..1]).unwrap();
        assert_eq!(pages.known(A), 0);
        pages.put(&rows(A, 0..5), &BLOCKS[1..]).unwrap();
        assert_eq!(pages.known(A), 5);
        pages.set_blocks(BLOCKS[..1].iter().copied().collect());
        pages.set_blocks(BLOCKS.into());
        assert_eq!(pages.known(A), 0, "a block that was away has to be recomputed");
    }

    #[test]
    fn forgetting_frees_everything() {
        let mut pages = pool(1);
        pages.put(&rows(A, 0..64), &BLOCKS).unwrap();
        pages.forget(A);
        pages.put(&rows(B, 0..64), &BLOCKS).unwrap();
        assert_eq!(pages.known(A), 0);
    }

    /// A pool whose second block is recurrent.
    fn hybrid() -> KvPages {
        let mut pages = pool(8);
        pages.set_recurrent(BLOCKS[1..].iter().copied().collect());
        pages
    }

    /// Slot to begin from (after the first), copied to (after the first), and rows of a row's run.
    fn run(word: u32) -> (u32, u32, u32) {
        (word >> 14 & 127, word >> 7 & 127, word >> 21)
    }

    #[test]
    fn a_recurrent_state_goes_on_or_begins_at_a_copy() {
        let mut pages = hybrid();
        let first = pages.put(&rows(A, 0..100), &BLOCKS).unwrap().rows;
        assert_eq!(run(first[0][3]), (0, 0, 100), "from nothing");
        let copied = run(first[63][3]).1;
        assert!(copied > 0 && first.iter().filter(|row| run(row[3]).1 > 0).count() == 1);
        let next = pages.put(&rows(A, 100..101), &BLOCKS).unwrap().rows;
        assert_eq!(run(next[0][3]), (1, 0, 1), "from the live state");
        let refused = pages.put(&rows(A, 99..100), &BLOCKS);
        assert_eq!(refused, Err(EngineError::NoState { conversation: A, known: 64, wanted: 99 }));
        let restored = pages.put(&rows(A, 64..99), &BLOCKS).unwrap().rows;
        assert_eq!(run(restored[0][3]).0, copied);
        assert!(pages.put(&rows(A, 7..8), &BLOCKS[..1]).is_ok(), "keys and values are cut anywhere");
    }

    #[test]
    fn a_state_is_not_there_for_more_conversations_than_it_has_room_for() {
        let mut pages = hybrid();
        let conversations = (0..STATE_CONVERSATIONS).map(ConversationId);
        conversations.for_each(|id| assert!(pages.put(&rows(id, 0..1), &BLOCKS).is_ok()));
        let one_more = ConversationId(99);
        assert_eq!(pages.put(&rows(one_more, 0..1), &BLOCKS), Err(EngineError::OutOfStates));
        pages.forget(ConversationId(2));
        let placed = pages.put(&rows(one_more, 0..1), &BLOCKS).unwrap();
        assert_eq!(placed.rows[0][3] & 127, 2 * StateHistory::SLOTS, "the slots of the one that left");
    }

    #[test]
    fn rows_of_a_run_lie_together_and_steps_are_runs() {
        let mut pages = hybrid();
        let mixed = [rows(A, 0..1), rows(B, 0..1), rows(A, 1..2)].concat();
        assert_eq!(pages.put(&mixed, &BLOCKS), Err(EngineError::Scattered(A)));
        let steps = pages.place(&rows(B, 0..3), &BLOCKS, KernelClass::Decode, Rows::Stepwise).unwrap().rows;
        assert_eq!(steps.iter().map(|row| run(row[3])).collect::<Vec<_>>(), [(0, 0, 1), (1, 0, 1), (1, 0, 1)]);
    }
}
