//! An architecture as data: all the engine needs to know about a model besides its weights.

use potluck_plan::Cuts;
use serde::{Deserialize, Serialize};

use crate::{Architecture, RecurrentSpec};

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
    /// Plain attention: a norm before it, no biases, scores divided by the root of the head's width.
    pub fn new(heads: u32, kv_heads: u32, head_dim: u32, rope: RopeSpec) -> Self {
        Self {
            heads,
            kv_heads,
            head_dim,
            norms: Norms::BEFORE,
            qk_norm: QkNorm::None,
            value_norm: false,
            values_are_keys: false,
            qkv_bias: false,
            output_bias: false,
            rope,
            scale: 1.0 / (head_dim as f32).sqrt(),
            score_cap: 0.0,
            window: None,
            chunked: false,
            sinks: false,
            latent: None,
            output_gate: false,
            kv_of: None,
        }
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
    /// YaRN, which scales low frequencies by `linear_scale` and keeps high ones.
    pub yarn: Option<Yarn>,
    /// Tensors of frequency divisors.
    pub factors: RopeFactors,
    /// Factor of the rotated values (YaRN, LongRoPE).
    pub magnitude: f32,
    /// Growth of the queries with the position.
    pub temperature: Option<Temperature>,
}

impl RopeSpec {
    /// Unscaled rotation of the first `dims` values of a head.
    pub fn new(dims: u32, base: f32, pairs: RopePairs) -> Self {
        Self {
            dims,
            base,
            pairs,
            linear_scale: 1.0,
            yarn: None,
            factors: RopeFactors::None,
            magnitude: 1.0,
            temperature: None,
        }
    }

    /// No rotation.
    pub fn none(&self) -> Self {
        Self { dims: 0, yarn: None, factors: RopeFactors::None, magnitude: 1.0, ..self.clone() }
    }

    /// The rotation of each pair per position in radians, before any factors.
    pub fn frequencies(&self) -> Vec<f64> {
        let (base, dims) = (f64::from(self.base), f64::from(self.dims));
        let pairs = (0..self.dims / 2).map(f64::from);
        pairs
            .map(|pair| {
                let frequency = base.powf(-2.0 * pair / dims);
                let scaled = frequency / f64::from(self.linear_scale);
                match self.yarn {
                    None => scaled,
                    Some(yarn) => {
                        let kept = yarn.kept(pair, dims, base);
                        scaled * (1.0 - kept) + frequency * kept
                    }
                }
            })
            .collect()
    }
}

/// YaRN (Peng et al. 2023): which frequencies keep their training speed.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Yarn {
    /// Context the model was first trained for.
    pub original: u32,
    /// Pairs that turn more often than this over the original context keep their speed.
    pub fast: f32,
    /// Pairs that turn less often than this are scaled fully.
    pub slow: f32,
}

impl Yarn {
    /// How much of a pair's unscaled frequency remains, from 0 to 1 (section 3.2 of the paper, rounded as llama.cpp
    /// does).
    fn kept(self, pair: f64, dims: f64, base: f64) -> f64 {
        let pair_of = |turns: f32| {
            dims * (f64::from(self.original) / (f64::from(turns) * std::f64::consts::TAU)).ln() / (2.0 * base.ln())
        };
        let low = pair_of(self.fast).floor().max(0.0);
        let high = pair_of(self.slow).ceil().min(dims - 1.0);
        1.0 - ((pair - low) / (high - low).max(0.001)).clamp(0.0, 1.0)
    }
}

/// Where divisors of the rotary frequencies come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum RopeFactors {
    /// There are none.
    None,
    /// One tensor (`rope_freqs.weight`, Llama 3).
    Fixed,
    /// Two tensors (LongRoPE): `rope_factors_long.weight` if the context is longer than the original one, otherwise
    /// `rope_factors_short.weight`.
    ByContext {
        /// The context the model was first trained for.
        original: u32,
    },
}

/// Growth of the queries with the position: `1 + scale · ln(1 + floor((position + shift) / step))`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Temperature {
    /// The factor of the logarithm.
    pub scale: f32,
    /// Positions from one value to the next.
    pub step: u32,
    /// Added to the position: 1 if positions count from 1.
    pub shift: u32,
}

/// Which dimensions of a head rotate together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum RopePairs {
    /// `(2i, 2i + 1)`: GGUF files of `llama`.
    Adjacent,
    /// `(i, i + dims / 2)`: `qwen2`, `qwen3`, `qwen3moe`.
    Halves,
}

/// The feed-forward half of a block.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum FeedForwardSpec {
    /// One network.
    Dense(DenseSpec),
    /// A router with experts.
    Experts(ExpertsSpec),
}

/// What a network does between its products.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Activation {
    /// `silu(gate) · up`.
    SwiGlu,
    /// `gelu(gate) · up`, with the tanh approximation.
    GeGlu,
    /// SwiGLU of gpt-oss: gate at most 7, up within ±7, `gate · sigmoid(1.702 · gate) · (up + 1)`.
    ClampedSwiGlu,
}

/// One network for all tokens.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DenseSpec {
    /// Inner width.
    pub intermediate: u32,
    /// Activation.
    pub activation: Activation,
    /// Norms of the input and the output.
    pub norms: Norms,
}

impl DenseSpec {
    /// SwiGLU with a norm before it.
    pub fn new(intermediate: u32) -> Self {
        Self { intermediate, activation: Activation::SwiGlu, norms: Norms::BEFORE }
    }
}

/// Experts, their router and what runs beside them. A norm comes before them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ExpertsSpec {
    /// Number of experts.
    pub count: u32,
    /// Experts per token (top-k).
    pub used: u32,
    /// Inner width of an expert.
    pub intermediate: u32,
    /// Activation of experts and the shared expert.
    pub activation: Activation,
    /// The experts' matrices have biases.
    pub biases: bool,
    /// How experts are chosen and weighted.
    pub router: RouterSpec,
    /// A network beside the experts that every token passes.
    pub shared: Option<SharedSpec>,
    /// The weight of the one expert per token multiplies its input instead of its output (Llama 4).
    pub weigh_input: bool,
    /// Experts and shared network each have norms of their own before and after them, and their sum has another one
    /// (Gemma 4).
    pub apart: bool,
}

impl ExpertsSpec {
    /// SwiGLU experts behind a softmax router.
    pub fn new(count: u32, used: u32, intermediate: u32, normalize: bool) -> Self {
        let router = RouterSpec { normalize, ..RouterSpec::default() };
        let activation = Activation::SwiGlu;
        let (biases, shared, weigh_input, apart) = (false, None, false, false);
        Self { count, used, intermediate, activation, biases, router, shared, weigh_input, apart }
    }
}

/// How a router chooses experts and weighs their outputs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RouterSpec {
    /// What makes probabilities of the scores.
    pub scoring: Scoring,
    /// Divide the chosen experts' probabilities by their sum. With a softmax, that is a softmax of the chosen.
    pub normalize: bool,
    /// Factor of the weights.
    pub scale: f32,
    /// The scores have a bias.
    pub bias: bool,
    /// Probabilities have a bias that counts for the choice only (DeepSeek-V3).
    pub selection_bias: bool,
    /// Groups of experts of which only the best take part.
    pub groups: Option<GroupsSpec>,
    /// The scores' input has a norm of its own and is divided by the root of its width (Gemma 4).
    pub own_norm: bool,
    /// Each expert has a learned factor of its weight.
    pub expert_scales: bool,
}

impl Default for RouterSpec {
    fn default() -> Self {
        Self {
            scoring: Scoring::Softmax,
            normalize: true,
            scale: 1.0,
            bias: false,
            selection_bias: false,
            groups: None,
            own_norm: false,
            expert_scales: false,
        }
    }
}

/// Groups of as many experts each (DeepSeek-V3, section 2.1.2). The sum of its two best experts decides whether a group
/// takes part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GroupsSpec {
    /// Number of groups.
    pub count: u32,
    /// Groups that take part.
    pub used: u32,
}

/// What makes probabilities of a router's scores.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Scoring {
    /// Softmax over all experts.
    Softmax,
    /// Each score's sigmoid.
    Sigmoid,
}

/// A network beside the experts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SharedSpec {
    /// Inner width.
    pub intermediate: u32,
    /// Its output is multiplied by the sigmoid of a score of its own (Qwen 2).
    pub gated: bool,
}

impl ModelSpec {
    /// The attention of a block; one without heads if the block does not attend.
    pub fn attention(&self, block: usize) -> &AttentionSpec {
        const NONE: &AttentionSpec = &AttentionSpec {
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
        match &self.blocks[block].token_mixer {
            TokenMixerSpec::Attention(attention) => attention,
            TokenMixerSpec::Recurrent(_) => NONE,
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
