//! What the device keeps of conversations: pages of keys and values, recurrent states, and the tokens chosen last.

use std::collections::BTreeSet;

use potluck_plan::{BatchToken, BlockIndex, ConversationId, KernelClass};

use crate::runtime::error::EngineError;
use crate::runtime::kv_pages::{KvPages, PlacedBatch, Rows};
use crate::runtime::sampled_tokens::SampledTokens;

/// A conversation that is forgotten has neither pages nor a token.
#[derive(Debug)]
pub struct Conversations {
    pages: KvPages,
    sampled_tokens: SampledTokens,
}

impl Conversations {
    /// Room for so many pages.
    pub fn new(pages: u32) -> Self {
        Self { pages: KvPages::new(pages), sampled_tokens: SampledTokens::default() }
    }

    /// Sets the blocks that keep keys and values or a state, and those of the model that are recurrent.
    pub fn set_blocks(&mut self, blocks: BTreeSet<BlockIndex>, recurrent: BTreeSet<BlockIndex>) {
        self.pages.set_recurrent(recurrent);
        self.pages.set_blocks(blocks);
    }

    /// Makes room for a batch, see [`KvPages::place`].
    pub fn place(
        &mut self,
        rows: &[BatchToken],
        blocks: &[BlockIndex],
        class: KernelClass,
        how: Rows,
    ) -> Result<PlacedBatch, EngineError> {
        self.pages.place(rows, blocks, class, how)
    }

    /// The tokens chosen last.
    pub fn sampled_tokens(&mut self) -> &mut SampledTokens {
        &mut self.sampled_tokens
    }

    /// Frees all that is kept of a conversation.
    pub fn forget(&mut self, conversation: ConversationId) {
        self.pages.forget(conversation);
        self.sampled_tokens.forget(conversation);
    }

    /// True if nothing is kept of any conversation.
    pub fn is_empty(&self) -> bool {
        self.pages.is_empty()
    }

    /// A conversation's pages, in order of position.
    pub fn pages_of(&self, conversation: ConversationId) -> &[u32] {
        self.pages.of(conversation)
    }

    /// Positions that every held block has of a conversation.
    pub fn known(&self, conversation: ConversationId) -> u32 {
        self.pages.known(conversation)
    }
}
