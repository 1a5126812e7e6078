//! The KV cache that an executor has on this device's engine.

use std::collections::BTreeMap;

use potluck_plan::ConversationId;

use crate::engine_kv_cache::EngineKvCache;

/// Conversations with KV cache, and what the engine calls them.
#[derive(Default)]
pub(super) struct KvCaches(BTreeMap<ConversationId, ConversationId>);

impl KvCaches {
    /// A chunk of a conversation is to be computed. Returns its id on the engine.
    pub fn write(&mut self, conversation: ConversationId, engine: &mut EngineKvCache) -> ConversationId {
        *self.0.entry(conversation).or_insert_with(|| engine.fresh_id())
    }

    /// Gives up a conversation's KV cache. Returns what the engine has to forget.
    pub fn remove(&mut self, conversation: ConversationId) -> Option<ConversationId> {
        self.0.remove(&conversation)
    }

    /// The conversation that the engine calls so.
    pub fn conversation(&self, on_engine: ConversationId) -> Option<ConversationId> {
        self.0.iter().find(|(_, id)| **id == on_engine).map(|(conversation, _)| *conversation)
    }

    /// What the engine calls them.
    pub fn on_engine(&self) -> impl Iterator<Item = ConversationId> {
        self.0.values().copied()
    }
}
