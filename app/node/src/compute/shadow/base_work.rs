//! What a shadow hears of its base.

use potluck_plan::{BatchToken, ConversationId};

/// What its base computes.
pub(super) enum BaseWork {
    Prompt(Vec<BatchToken>, Vec<u32>),
    Pass(Pass),
}

impl BaseWork {
    pub fn conversation(&self) -> Option<ConversationId> {
        match self {
            Self::Prompt(batch, _) => batch.last().map(|row| row.conversation),
            Self::Pass(pass) => Some(pass.row.conversation),
        }
    }
}

/// A token of an answer, and drafts that pass together with it.
pub(super) struct Pass {
    pub row: BatchToken,
    pub token: u32,
    pub drafts: Vec<(BatchToken, u32)>,
    /// Somebody wants to know what comes next.
    pub wanted: bool,
}

impl Pass {
    /// The passes of a batch, one for each conversation.
    pub fn all(batch: &[BatchToken], tokens: &[u32], wanted: bool) -> Vec<Self> {
        let mut passes: Vec<Self> = Vec::new();
        for (row, token) in batch.iter().zip(tokens).map(|(row, token)| (*row, *token)) {
            match passes.iter_mut().find(|pass| pass.row.conversation == row.conversation) {
                Some(pass) => pass.drafts.push((row, token)),
                None => passes.push(Self { row, token, drafts: Vec::new(), wanted }),
            }
        }
        passes
    }
}
