//! The unit of download, cache, residency and planning.

use serde::{Deserialize, Serialize};

use crate::{BlockIndex, ExpertId};

/// A part of a model that is downloaded, cached, loaded and planned as a whole. It maps to byte ranges of the GGUF file
/// (`potluck_model::units`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum WeightUnit {
    /// The token embedding table.
    Embedding,
    /// The final norm and the LM head (if tied, the embedding table once more).
    LmHead,
    /// Norms, attention (or recurrent) matrices of a block, and its rotary factors.
    TokenMixer(BlockIndex),
    /// The feed-forward norm and the router matrix of a block with experts.
    Router(BlockIndex),
    /// The feed-forward norm and network of a block without experts.
    Dense(BlockIndex),
    /// The shared expert of a block with experts, which every token passes (Qwen2-MoE, GLM 4.5). It lies where the router
    /// lies.
    SharedExpert(BlockIndex),
    /// One expert of a block: its slices of the stacked gate, up and down tensors.
    Expert(BlockIndex, ExpertId),
}

impl WeightUnit {
    /// The block the unit belongs to, if any.
    pub fn block(self) -> Option<BlockIndex> {
        match self {
            Self::Embedding | Self::LmHead => None,
            Self::TokenMixer(block)
            | Self::Router(block)
            | Self::Dense(block)
            | Self::SharedExpert(block)
            | Self::Expert(block, _) => Some(block),
        }
    }
}
