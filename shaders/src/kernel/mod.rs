//! Kernel variants: a typed key for each, with its source, bindings and workgroup size.

use potluck_plan::KvCacheType;

use crate::{Format, KernelVariant, MatrixTile, PackedTile, Tile, TileKind};

mod all;
mod attention;
mod bindings;
mod definitions;
mod fallback;
mod fused;
mod job;
mod joined;
mod options;
mod source;
mod workgroup;

pub use attention::Extras;
pub use bindings::Access;
pub use job::Job;
pub use joined::joined_params;
pub use options::{Addition, ConvKind, Dots, Glu, Operand, Pairs, ScanRule, Strategy, VectorStrategy};

/// One variant of one template.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kernel {
    /// Embedding lookup: table, tokens, out.
    Embed(Format),
    /// RMSNorm: in, gain, out.
    Norm(Strategy),
    /// Matrix times `rows` vectors at a time: weights, in, out; then bias, or slots and chosen.
    MatVec {
        /// Format of the matrix.
        format: Format,
        /// How the work is divided.
        strategy: VectorStrategy,
        /// Vectors that share one read of the weights; 1 for experts.
        rows: u8,
        /// No operand, a bias, or an expert.
        operand: Operand,
    },
    /// Matrix times `rows` vectors at a time, fused with the steps before and after: weights, in, out; then gain and
    /// bias, or scores, or slots and chosen; then gates for a sum; then biases.
    Fused {
        /// Format of the matrix.
        format: Format,
        /// Vectors that share one read of the weights; 1 for experts.
        rows: u8,
        /// The fused steps.
        job: Job,
        /// How threads share the work. All variants give the same bits.
        variant: KernelVariant,
        /// How quantized vectors are multiplied, in a format with a [`crate::Packing`]. `None`: vectors are floats.
        dots: Option<Dots>,
    },
    /// Two [`Job::Normed`] products of one vector, whose matrices have two formats or lie in two buffers: weights, in, out,
    /// gain, second weights.
    /// The uniform is that of [`joined_params`].
    Joined {
        /// Format of the first matrices.
        first: Format,
        /// Format of the second matrices.
        second: Format,
        /// How threads share the work of both.
        variant: KernelVariant,
        /// As in [`Kernel::Fused`].
        dots: Option<Dots>,
    },
    /// Split decode attention: rows, pages, q, keys, values, out, parts.
    Split {
        /// Type of the KV cache.
        kv_type: KvCacheType,
        /// Quads (4 values) per head, at most [`Kernel::MAX_SPLIT_QUADS`].
        quads: u16,
        /// Query heads per workgroup, which share a key head: 1, 2 or 4.
        heads: u8,
        /// With sinks, they are the last binding.
        extras: Extras,
    },
    /// Merges the splits of a context: rows, parts, out.
    Merge {
        /// Quads (4 values) per head, at most [`Kernel::MAX_SPLIT_QUADS`].
        quads: u16,
    },
    /// Tiled matrix product: weights, in, out; then bias, or tiles and pairs.
    MatMul {
        /// Format of the matrix.
        format: Format,
        /// No operand, a bias, or an expert.
        operand: Operand,
        /// What one workgroup computes. All tiles give the same bits.
        tile: Tile,
    },
    /// Vectors in blocks of signed bytes: in, out.
    Quantize,
    /// Tiled product of quantized weights and vectors: weights, in, out; then bias, or tiles and pairs.
    Packed {
        /// Format of the matrix; it has a [`crate::Packing`].
        format: Format,
        /// No operand, a bias, or an expert.
        operand: Operand,
        /// What one workgroup computes. All tiles give the same bits.
        tile: PackedTile,
        /// How four products are summed. Both ways give the same bits.
        dots: Dots,
    },
    /// Vectors as scaled half floats: in, out.
    Halve,
    /// Tiled product by the device's matrix units: weights, in, out; then bias, or tiles and pairs.
    Matrix {
        /// Format of the matrix.
        format: Format,
        /// No operand, a bias, or an expert.
        operand: Operand,
        /// What one workgroup computes. All tiles give the same bits.
        tile: MatrixTile,
    },
    /// Groups (token, expert) pairs by expert: slots, chosen, tiles, pairs.
    Groups(Strategy),
    /// RoPE: rows, qkv, RoPE table, q, keys, values; then both gains; then factors; or one binding for all of these.
    Rope {
        /// Type of the KV cache.
        kv_type: KvCacheType,
        /// Which values rotate together.
        pairs: Pairs,
        /// Normalizes queries and keys first.
        qk_norm: bool,
        /// Divides the frequencies by given factors.
        factors: bool,
    },
    /// Attention: rows, pages, q, keys, values, out.
    Attention {
        /// Type of the KV cache.
        kv_type: KvCacheType,
        /// How the work is divided.
        strategy: Strategy,
        /// Quads (4 values) per head, at most [`Kernel::MAX_QUADS`].
        quads: u16,
        /// With sinks, they are the last binding.
        extras: Extras,
    },
    /// Flash attention for a prompt chunk: rows, pages, q, keys, values, out.
    FlashAttention {
        /// Type of the KV cache.
        kv_type: KvCacheType,
        /// Quads (4 values) per head, at most 64.
        quads: u16,
        /// With sinks, they are the last binding.
        extras: Extras,
    },
    /// RMSNorm in place of a part of each row: rows, gain.
    NormPart(Strategy),
    /// Adds an output to the hidden vectors: in, out; then gain or scores.
    Residual {
        /// How the work is divided.
        strategy: Strategy,
        /// What the output goes through.
        addition: Addition,
    },
    /// The end of a block whose experts have a network beside them: its output, theirs, hidden vectors, gains of both
    /// outputs and of their sum, factor.
    Beside,
    /// Activation: gate, up.
    Glu(Glu),
    /// Gates of the query heads: qkv, out.
    QueryGates,
    /// GELU of a gate, times the input of a block: inputs, gate.
    GateInput,
    /// Causal convolution with a state: rows, taps, state, in and out; then out if gated, or bias.
    Conv {
        /// Gated, or with SiLU.
        kind: ConvKind,
        /// Positions that it sees.
        taps: u8,
    },
    /// Recurrence of heads over rows: rows, in, time bias, decay, gain or skip, state, out.
    Scan {
        /// How the work is divided.
        strategy: Strategy,
        /// What a row does to the state.
        rule: ScanRule,
        /// Values per head, at most 256. A workgroup takes multiples of 4.
        width: u16,
        /// Values of state for each value of a head.
        state: u16,
    },
    /// Expert router: scores, chosen, gates.
    Router(Strategy),
    /// Expert router and RMSNorm of the hidden vectors at once: scores, chosen, gates, in, gain, out, factors of weights.
    Route,
    /// Expert router by any rule: scores, chosen, gates; then the bias of the choice.
    Choose {
        /// How the work is divided.
        strategy: Strategy,
        /// Probabilities are sigmoids instead of a softmax.
        sigmoid: bool,
        /// Probabilities have a bias for the choice.
        biased: bool,
    },
    /// Biases of the chosen experts: biases, vectors, slots, chosen.
    ExpertBias,
    /// Scale and soft cap: logits.
    ScaleLogits,
    /// Biases of a few logits of each row: biases, logits.
    BiasLogits,
    /// Which logits of each row may be chosen: masks, logits.
    MaskLogits,
    /// Log-sum-exp of each row: logits, sums.
    LogSumExp(Strategy),
    /// Factors of rows: factors, values; or of experts: then the chosen ones.
    ScaleBy {
        /// Each value has an expert, and each expert a factor.
        expert: bool,
    },
    /// Adds the weighted sum of expert outputs: chosen, gates, parts, out.
    Combine,
    /// Largest logit of each segment: logits, best.
    Segments(Strategy),
    /// Best candidates: logits, best, candidates, token (best token of the last row).
    Top(Strategy),
    /// Samples a token from candidates: candidates, rows, state (parameters and newest tokens), token.
    Sample,
    /// Memory bandwidth measurement: data, out.
    Stream,
    /// Measurement of the arithmetic rate, of `fma` or of `dot4I8Packed`: out.
    Peak {
        /// By `dot4I8Packed`.
        dots: bool,
    },
}

impl Kernel {
    /// Name of every kernel's entry point.
    pub const ENTRY: &'static str = "main";
    /// Most groups of experts: one bit of a word each.
    pub const MAX_GROUPS: u32 = 32;

    /// The format of the weights the kernel reads, if any.
    pub fn format(self) -> Option<Format> {
        match self {
            Self::Embed(format)
            | Self::MatVec { format, .. }
            | Self::Fused { format, .. }
            | Self::Packed { format, .. }
            | Self::Matrix { format, .. }
            | Self::MatMul { format, .. } => Some(format),
            _ => None,
        }
    }

    /// The KV cache type the kernel reads or writes, if any.
    pub fn kv_type(self) -> Option<KvCacheType> {
        match self {
            Self::Split { kv_type, .. }
            | Self::Rope { kv_type, .. }
            | Self::Attention { kv_type, .. }
            | Self::FlashAttention { kv_type, .. } => Some(kv_type),
            _ => None,
        }
    }

    /// Whether the vectors of experts are listed by expert, in tiles.
    pub fn is_tiled(self) -> bool {
        matches!(self, Self::MatMul { .. } | Self::Packed { .. } | Self::Matrix { .. })
    }

    /// Whether the kernel needs half floats and matrix units, which no browser has.
    pub fn is_native(self) -> bool {
        matches!(self, Self::Halve | Self::Matrix { .. })
    }

    /// Whether threads exchange values within a subgroup, so the device must support subgroups.
    pub fn uses_subgroups(self) -> bool {
        match self {
            Self::MatVec { strategy, .. } => strategy == VectorStrategy::Broadcast,
            Self::MatMul { tile, .. } => matches!(tile.kind(), TileKind::Broadcast(_)),
            Self::Fused { variant, .. } | Self::Joined { variant, .. } => variant.shuffle > 1,
            _ => false,
        }
    }
}
