//! What the GPU reports.

use potluck_plan::{Computed, ConversationId};
use potluck_predict::ShadowWord;

/// What the GPU reports.
pub enum Event {
    /// Work has ended.
    Computed(Computed),
    /// What a shadow expects of a conversation's next tokens.
    Foreseen(ConversationId, ShadowWord),
    /// The GPU is lost.
    DeviceLost,
    /// There will be no shadow: why.
    ShadowFailed(String),
}
