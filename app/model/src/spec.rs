//! An architecture as data: all the engine needs to know about a model besides its weights.

mod attention;
mod feed_forward;
mod rope;

use potluck_plan::Cuts;
use serde::{Deserialize, Serialize};

use crate::{Architecture, RecurrentSpec};

pub use attention::{AttentionSpec, LatentSpec, QkNorm};
pub use feed_forward::{
    Activation, DenseSpec, ExpertsSpec, FeedForwardSpec, GroupsSpec, RouterSpec, Scoring, SharedSpec,
};
pub use rope::{RopeFactors, RopePairs, RopeSpec, Temperature, Yarn};

/// A model, read from the metadata and tensor directory of its GGUF file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ModelSpec {
    /// `general.architecture`, known to be supported.
    pub architecture: Architecture,
    /// `general.name`, or the file's name.
    pub name: String,
    /// Width of the hidden vector.
    pub hidden: u32,
    /// Rows of the embedding table.
    pub vocabulary: u32,
    /// Longest context the model was trained for.
    pub context: u32,
    /// RMSNorm epsilon.
    pub norm_epsilon: f32,
    /// The file has no `output.weight`, so the LM head uses the embedding table.
    pub tied_lm_head: bool,
    /// Factors outside and between the blocks.
    pub scales: Scales,
    /// Width of the vector that each block gets of each token besides the hidden one (per-layer embeddings, Gemma 3n and
    /// Gemma 4 E2B and E4B); `None` if blocks get none.
    pub block_inputs: Option<u32>,
    /// Blocks in order; each may differ.
    pub blocks: Vec<BlockSpec>,
}

/// Factors of a model, constant but for the last.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Scales {
    /// Of the embedding (Gemma: the root of the width).
    pub embedding: f32,
    /// Of what each half of a block adds to the hidden vector.
    pub residual: f32,
    /// Of the logits.
    pub logits: f32,
    /// Soft cap of the logits: `cap · tanh(logit / cap)`; 0 for none.
    pub logit_cap: f32,
    /// Each block ends with a learned factor of the hidden vector (Gemma 4).
    pub of_blocks: bool,
}

impl Default for Scales {
    /// No scaling at all.
    fn default() -> Self {
        Self { embedding: 1.0, residual: 1.0, logits: 1.0, logit_cap: 0.0, of_blocks: false }
    }
}

/// Where a half of a block normalizes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Norms {
    /// Its input.
    pub before: bool,
    /// Its output, before that is added to the hidden vector.
    pub after: bool,
}

impl Norms {
    /// Only the input.
    pub const BEFORE: Self = Self { before: true, after: false };
    /// Only the output.
    pub const AFTER: Self = Self { before: false, after: true };
    /// Both.
    pub const BOTH: Self = Self { before: true, after: true };
}

/// One block: a token mixer and a feed-forward half.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BlockSpec {
    /// Mixes information across positions.
    pub token_mixer: TokenMixerSpec,
    /// Processes each position independently.
    pub feed_forward: FeedForwardSpec,
}

/// How a block mixes information across the positions of a conversation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum TokenMixerSpec {
    /// Grouped-query softmax attention over a KV cache.
    Attention(AttentionSpec),
    /// A recurrence over a state of fixed size.
    Recurrent(RecurrentSpec),
}

impl ModelSpec {
    /// The attention of a block; one without heads if the block does not attend.
    pub fn attention(&self, block: usize) -> &AttentionSpec {
        match &self.blocks[block].token_mixer {
            TokenMixerSpec::Attention(attention) => attention,
            TokenMixerSpec::Recurrent(_) => &AttentionSpec::NONE,
        }
    }

    /// The block whose keys and values a block attends to: mostly itself.
    pub fn kv_owner(&self, block: usize) -> usize {
        self.attention(block).kv_of.map_or(block, usize::from)
    }

    /// Values of the inputs of all blocks together, 0 if blocks have none.
    pub fn all_block_inputs(&self) -> u32 {
        self.block_inputs.unwrap_or(0) * self.blocks.len() as u32
    }

    /// Where the model may be cut into stages. Blocks with inputs of their own need the token's id, and blocks without
    /// keys need those of another one; neither travels between stages.
    pub fn cuts(&self) -> Cuts {
        let shares = (0..self.blocks.len()).any(|block| self.attention(block).kv_of.is_some());
        if shares || self.block_inputs.is_some() { Cuts::Nowhere } else { Cuts::Anywhere }
    }

    /// The recurrence of a block, if it has one.
    pub fn recurrent(&self, block: usize) -> Option<&RecurrentSpec> {
        match &self.blocks.get(block)?.token_mixer {
            TokenMixerSpec::Attention(_) => None,
            TokenMixerSpec::Recurrent(recurrent) => Some(recurrent),
        }
    }

    /// The experts of a block; `None` for a dense block, or if there is no such block.
    pub fn experts(&self, block: usize) -> Option<&ExpertsSpec> {
        match &self.blocks.get(block)?.feed_forward {
            FeedForwardSpec::Experts(experts) => Some(experts),
            FeedForwardSpec::Dense(_) => None,
        }
    }
}
