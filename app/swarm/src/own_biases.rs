//! Biases of answers whose LM head is on the host's own device. They name tokens, so they stay there: no frame carries them through the
//! stages of others.

use std::collections::BTreeMap;

use potluck_plan::{ConversationId, LogitBias};

/// What the host's device adds to the logits of which conversation.
#[derive(Debug, Default)]
pub(crate) struct OwnBiases(BTreeMap<ConversationId, LogitBias>);

impl OwnBiases {
    /// From the next chunk on, this is added to the conversation's logits.
    pub fn put(&mut self, conversation: ConversationId, bias: LogitBias) {
        if bias.is_empty() {
            self.0.remove(&conversation);
        } else {
            self.0.insert(conversation, bias);
        }
    }

    /// What is added to the conversation's logits; nothing of most.
    pub fn of(&self, conversation: ConversationId) -> LogitBias {
        self.0.get(&conversation).cloned().unwrap_or_default()
    }

    /// Only these conversations are being answered.
    pub fn retain(&mut self, is_answered: impl Fn(ConversationId) -> bool) {
        self.0.retain(|conversation, _| is_answered(*conversation));
    }
}
