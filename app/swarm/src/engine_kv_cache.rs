//! The KV cache of this device's engine. Two plans may compute on it at once, and a stage of either can name any conversation of the
//! room. So each plan's executor, and each layer that is computed again, has conversations on the engine whose ids nothing else has: what
//! a stage of one plan says never reads, writes or frees KV cache of another one.

use potluck_plan::ConversationId;

/// Shared by everything that computes on the engine.
#[derive(Debug, Default)]
pub(crate) struct EngineKvCache {
    /// The newest id given out.
    newest: u32,
    /// Pages that the host has set aside on its own device for what is computed again.
    pub for_checks: usize,
}

impl EngineKvCache {
    /// One that was not given out before; after four billion they come again. Never [`ConversationId::TRIAL`].
    pub fn fresh_id(&mut self) -> ConversationId {
        self.newest = self.newest % (ConversationId::TRIAL.0 - 1) + 1;
        ConversationId(self.newest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_id_of_timed_work_is_never_given_out() {
        let mut kv_cache = EngineKvCache { newest: ConversationId::TRIAL.0 - 2, for_checks: 0 };
        let given = [kv_cache.fresh_id(), kv_cache.fresh_id()];
        assert_eq!(given, [ConversationId(ConversationId::TRIAL.0 - 1), ConversationId(1)]);
    }
}
