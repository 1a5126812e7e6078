//! The KV cache that an executor has on this device's engine: where it lies, and how many pages it takes.

use std::collections::BTreeMap;

use potluck_plan::{ConversationId, StageId};

use crate::engine_kv_cache::EngineKvCache;
use crate::kv_pages::pages;

/// Conversations with KV cache.
pub(super) struct KvCaches {
    of: BTreeMap<ConversationId, KvCache>,
    /// Pages that each takes at least.
    least: usize,
    /// Chunks so far.
    writes: u64,
}

struct KvCache {
    /// What the engine calls the conversation.
    on_engine: ConversationId,
    /// Positions that the engine may have of it at each stage of this device: what a chunk gives up stays until it has left.
    held: BTreeMap<StageId, u32>,
    /// When its newest chunk arrived.
    written: u64,
}

impl KvCache {
    fn positions(&self) -> u32 {
        self.held.values().copied().max().unwrap_or(0)
    }
}

impl KvCaches {
    /// None yet. Each conversation will take so many pages at least.
    pub fn new(least: usize) -> Self {
        Self { of: BTreeMap::new(), least, writes: 0 }
    }

    /// A chunk of a conversation is to be computed at a stage, up to position `end`. Returns the conversation's id on the engine.
    pub fn write(
        &mut self,
        stage: StageId,
        conversation: ConversationId,
        end: u32,
        engine: &mut EngineKvCache,
    ) -> ConversationId {
        self.writes += 1;
        let new = || KvCache { on_engine: engine.fresh_id(), held: BTreeMap::new(), written: 0 };
        let cache = self.of.entry(conversation).or_insert_with(new);
        cache.written = self.writes;
        let held = cache.held.entry(stage).or_default();
        *held = end.max(*held);
        cache.on_engine
    }

    /// A chunk has left a stage, which now holds these positions at most.
    pub fn left(&mut self, stage: StageId, conversation: ConversationId, held: u32) {
        let cache = self.of.get_mut(&conversation);
        if let Some(known) = cache.and_then(|cache| cache.held.get_mut(&stage)) {
            *known = held;
        }
    }

    /// Gives up a conversation's KV cache. Returns what the engine has to forget.
    pub fn remove(&mut self, conversation: ConversationId) -> Option<ConversationId> {
        self.of.remove(&conversation).map(|cache| cache.on_engine)
    }

    /// The conversation that the engine calls so.
    pub fn conversation(&self, on_engine: ConversationId) -> Option<ConversationId> {
        self.of.iter().find(|(_, cache)| cache.on_engine == on_engine).map(|(conversation, _)| *conversation)
    }

    /// What the engine calls them.
    pub fn on_engine(&self) -> impl Iterator<Item = ConversationId> {
        self.of.values().map(|cache| cache.on_engine)
    }

    pub fn conversations(&self) -> impl Iterator<Item = ConversationId> {
        self.of.keys().copied()
    }

    /// Pages that they take.
    pub fn pages(&self) -> usize {
        self.of.values().map(|cache| self.pages_for(cache.positions())).sum()
    }

    /// Pages that they take once a conversation has got positions up to `end`.
    pub fn pages_with(&self, conversation: ConversationId, end: u32) -> usize {
        let others = self.of.iter().filter(|(known, _)| **known != conversation);
        let others: usize = others.map(|(_, cache)| self.pages_for(cache.positions())).sum();
        let own = self.of.get(&conversation).map_or(0, KvCache::positions);
        others + self.pages_for(own.max(end))
    }

    fn pages_for(&self, positions: u32) -> usize {
        pages(positions as usize).max(self.least)
    }

    /// The conversation that has waited longest for a chunk, this one excepted.
    pub fn oldest(&self, but: ConversationId) -> Option<ConversationId> {
        let others = self.of.iter().filter(|(known, _)| **known != but);
        others.min_by_key(|(_, cache)| cache.written).map(|(known, _)| *known)
    }
}
