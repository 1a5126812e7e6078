//! Softmax attention: plain, windowed, and latent.

use serde::{Deserialize, Serialize};

use super::{Norms, RopeFactors, RopePairs, RopeSpec};

/// Softmax attention.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AttentionSpec {
    /// Query heads.
    pub heads: u32,
    /// Key and value heads; must divide `heads`.
    pub kv_heads: u32,
    /// Width of a key or value head.
    pub head_dim: u32,
    /// Norms of the input and the output.
    pub norms: Norms,
    /// Norm of queries and keys before RoPE.
    pub qk_norm: QkNorm,
    /// RMSNorm of each value head, without a gain; only beside [`QkNorm::Head`].
    pub value_norm: bool,
    /// There is no matrix for values: they are the keys before norm and RoPE.
    pub values_are_keys: bool,
    /// Query, key and value have biases.
    pub qkv_bias: bool,
    /// The output projection has a bias.
    pub output_bias: bool,
    /// Rotary position embedding.
    pub rope: RopeSpec,
    /// Factor of the scores.
    pub scale: f32,
    /// Soft cap of the scores: `cap · tanh(score / cap)`; 0 for none.
    pub score_cap: f32,
    /// Positions that a query sees, its own included; `None` for all. The cache still holds every position.
    pub window: Option<u32>,
    /// Windows are chunks: a query sees no position before the last multiple of the window's length.
    pub chunked: bool,
    /// Each head has a learned score that takes part in the softmax without a value.
    pub sinks: bool,
    /// The block attends to the keys and values of an earlier block and has none of its own (Gemma 4 E2B and E4B).
    pub kv_of: Option<u16>,
    /// Each query head has a gate, as wide as the head, whose sigmoid multiplies the head's output (Qwen 3.5). The query
    /// matrix holds both, head by head.
    pub output_gate: bool,
    /// Multi-head latent attention: all heads share one compressed key, which is the value too. `head_dim` is then its
    /// width with its rotated part, which comes last.
    pub latent: Option<LatentSpec>,
}

/// Multi-head latent attention (DeepSeek-V2, section 2.1) in its absorbed form: queries are taken to the space of the
/// compressed keys, and what they attend to back to each head's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LatentSpec {
    /// Width of the compressed queries; `None` if queries are not compressed.
    pub query_rank: Option<u32>,
    /// Width of the compressed keys and values.
    pub rank: u32,
    /// Width of a head's query and key before compression, without the rotated part.
    pub key: u32,
    /// Width of a head's value.
    pub value: u32,
}

impl AttentionSpec {
    /// For a block that does not attend: no heads, a norm before, and nothing special.
    pub(super) const NONE: Self = Self {
        heads: 0,
        kv_heads: 0,
        head_dim: 32,
        norms: Norms::BEFORE,
        qk_norm: QkNorm::None,
        value_norm: false,
        values_are_keys: false,
        qkv_bias: false,
        output_bias: false,
        rope: RopeSpec {
            dims: 0,
            base: 1.0,
            pairs: RopePairs::Halves,
            linear_scale: 1.0,
            yarn: None,
            factors: RopeFactors::None,
            magnitude: 1.0,
            temperature: None,
        },
        scale: 1.0,
        score_cap: 0.0,
        window: None,
        chunked: false,
        sinks: false,
        output_gate: false,
        kv_of: None,
        latent: None,
    };

    /// Plain attention: a norm before it, no biases, scores divided by the root of the head's width.
    pub fn new(heads: u32, kv_heads: u32, head_dim: u32, rope: RopeSpec) -> Self {
        Self { heads, kv_heads, head_dim, rope, scale: 1.0 / (head_dim as f32).sqrt(), ..Self::NONE }
    }

    /// Vectors per position and key head in the block's own cache: a key and a value, one for both, or none.
    pub fn cached(&self) -> u32 {
        match (self.latent, self.kv_of) {
            (_, Some(_)) => 0,
            (Some(_), None) => 1,
            (None, None) => 2,
        }
    }

    /// Key heads that the block computes itself.
    pub fn own_kv_heads(&self) -> u32 {
        if self.kv_of.is_some() { 0 } else { self.kv_heads }
    }

    /// First rotated value of a head.
    pub fn rope_start(&self) -> u32 {
        if self.latent.is_some() { self.head_dim - self.rope.dims } else { 0 }
    }

    /// Rows of the query matrix.
    pub fn query_rows(&self) -> u32 {
        self.heads * self.head_dim * if self.output_gate { 2 } else { 1 }
    }

    /// Values of queries, gates, keys and values together.
    pub fn projected(&self) -> u32 {
        self.query_rows() + 2 * self.own_kv_heads() * self.head_dim
    }
}

/// RMSNorm of queries and keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum QkNorm {
    /// None.
    None,
    /// Each head by itself; all heads share a gain.
    Head,
    /// All heads of a position together.
    Row,
    /// Each head by itself, without a gain.
    Unit,
}
