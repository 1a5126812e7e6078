//! An architecture as data: everything the engine needs to know of a model besides its bytes.

use serde::{Deserialize, Serialize};

/// A model, read from the metadata and tensor directory of its GGUF file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ModelSpec {
    /// `general.architecture`, checked to be one we run.
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
    /// The file has no `output.weight`: the LM head is the embedding table.
    pub tied_lm_head: bool,
    /// Blocks in order. Blocks are data: each may differ.
    pub blocks: Vec<BlockSpec>,
}

/// Architectures we run, named as `general.architecture` spells them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Architecture {
    /// `llama`, with or without experts (Mixtral).
    Llama,
    /// `qwen2`: biases on query, key and value.
    Qwen2,
    /// `qwen3`: norms on query and key heads.
    Qwen3,
    /// `qwen3moe`.
    Qwen3Moe,
}

impl Architecture {
    /// From the name in `general.architecture`.
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Llama, Self::Qwen2, Self::Qwen3, Self::Qwen3Moe].into_iter().find(|known| known.name() == name)
    }

    /// The name in `general.architecture`, also the prefix of the model's keys.
    pub fn name(self) -> &'static str {
        match self {
            Self::Llama => "llama",
            Self::Qwen2 => "qwen2",
            Self::Qwen3 => "qwen3",
            Self::Qwen3Moe => "qwen3moe",
        }
    }
}

/// One block: a token mixer and a feed-forward half.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BlockSpec {
    /// How positions exchange information.
    pub token_mixer: TokenMixerSpec,
    /// What happens to each position alone.
    pub feed_forward: FeedForwardSpec,
}

/// How positions of a conversation exchange information in a block.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum TokenMixerSpec {
    /// Grouped-query softmax attention over a KV cache.
    Attention(AttentionSpec),
}

/// Softmax attention.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AttentionSpec {
    /// Query heads.
    pub heads: u32,
    /// Key and value heads; divides `heads`.
    pub kv_heads: u32,
    /// Width of a key head (and a value head).
    pub head_dim: u32,
    /// RMSNorm on each query and key head before rotation.
    pub qk_norm: bool,
    /// Biases on query, key and value.
    pub qkv_bias: bool,
    /// Rotary position embedding.
    pub rope: RopeSpec,
}

/// Rotary position embedding.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RopeSpec {
    /// Rotated dimensions of a head.
    pub dims: u32,
    /// Base of the frequencies.
    pub base: f32,
    /// Which dimensions form a pair.
    pub pairs: RopePairs,
    /// Positions are divided by this (linear scaling), 1 for none.
    pub linear_scale: f32,
    /// The block has a tensor of frequency divisors (`rope_freqs.weight`, Llama 3).
    pub factors: bool,
}

/// Which dimensions of a head rotate together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum RopePairs {
    /// `(2i, 2i + 1)`: GGUF files of `llama`.
    Adjacent,
    /// `(i, i + dims / 2)`: `qwen2`, `qwen3`, `qwen3moe`.
    Halves,
}

/// The feed-forward half of a block; all are SwiGLU.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum FeedForwardSpec {
    /// One network.
    Dense {
        /// Width inside.
        intermediate: u32,
    },
    /// A softmax router and experts.
    Experts {
        /// How many experts.
        count: u32,
        /// How many a token uses (top-k).
        used: u32,
        /// Width inside an expert.
        intermediate: u32,
        /// Divide the chosen weights by their sum.
        normalize: bool,
    },
}

impl ModelSpec {
    /// The attention of a block.
    pub fn attention(&self, block: usize) -> &AttentionSpec {
        let TokenMixerSpec::Attention(attention) = &self.blocks[block].token_mixer;
        attention
    }
}
