//! What is done to the logits of answers whose LM head is on the host's own device. It names tokens, so it stays there: no frame carries it
//! through the stages of others.

use std::collections::BTreeMap;

use potluck_plan::{AllowedTokens, ConversationId, LogitBias};

/// What the host's device does to the logits of which conversation.
#[derive(Debug, Default)]
pub(crate) struct OwnBiases(BTreeMap<ConversationId, (LogitBias, Vec<AllowedTokens>)>);

impl OwnBiases {
    /// From the next chunk on, this is added to the conversation's logits, and only these tokens may be chosen in place of those that pass
    /// the LM head; none: all may.
    pub fn put(&mut self, conversation: ConversationId, bias: LogitBias, allowed: Vec<AllowedTokens>) {
        if bias.is_empty() && allowed.is_empty() {
            self.0.remove(&conversation);
        } else {
            self.0.insert(conversation, (bias, allowed));
        }
    }

    /// What is added to the conversation's logits, and which tokens may be chosen; nothing of most.
    pub fn of(&self, conversation: ConversationId) -> (LogitBias, Vec<AllowedTokens>) {
        self.0.get(&conversation).cloned().unwrap_or_default()
    }

    /// Only these conversations are being answered.
    pub fn retain(&mut self, is_answered: impl Fn(ConversationId) -> bool) {
        self.0.retain(|conversation, _| is_answered(*conversation));
    }
}
