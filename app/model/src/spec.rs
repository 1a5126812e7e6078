//! An architecture as data: all the engine needs to know about a model besides its weights.

use serde::{Deserialize, Serialize};

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
    /// Blocks in order; each may differ.
    pub blocks: Vec<BlockSpec>,
}

/// Supported architectures, spelled as in `general.architecture`.
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
    /// Looks up an architecture by its name in `general.architecture`.
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Llama, Self::Qwen2, Self::Qwen3, Self::Qwen3Moe].into_iter().find(|known| known.name() == name)
    }

    /// The name in `general.architecture`, which also prefixes the model's keys.
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
}

/// Softmax attention.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AttentionSpec {
    /// Query heads.
    pub heads: u32,
    /// Key and value heads; must divide `heads`.
    pub kv_heads: u32,
    /// Width of a key or value head.
    pub head_dim: u32,
    /// Apply RMSNorm to each query and key head before RoPE.
    pub qk_norm: bool,
    /// Query, key and value have biases.
    pub qkv_bias: bool,
    /// Rotary position embedding.
    pub rope: RopeSpec,
}

/// Rotary position embedding.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RopeSpec {
    /// Rotated dimensions per head.
    pub dims: u32,
    /// Base of the frequencies.
    pub base: f32,
    /// Which dimensions form a pair.
    pub pairs: RopePairs,
    /// Divisor of the positions (linear scaling), 1 for none.
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
        /// Inner width.
        intermediate: u32,
    },
    /// A softmax router with experts.
    Experts {
        /// Number of experts.
        count: u32,
        /// Experts per token (top-k).
        used: u32,
        /// Inner width of an expert.
        intermediate: u32,
        /// Divide the chosen experts' weights by their sum.
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
