//! Locates each weight unit's bytes in the GGUF file(s).

use std::collections::BTreeMap;

use potluck_gguf::TensorType;
use potluck_plan::{Bytes, WeightUnit};
use serde::{Deserialize, Serialize};

/// A tensor's role in its unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum TensorRole {
    /// `token_embd.weight`, in `Embedding` and in a tied `LmHead`.
    TokenEmbedding,
    /// `output_norm.weight`.
    OutputNorm,
    /// `output.weight`.
    Output,
    /// `blk.N.attn_norm.weight`.
    AttentionNorm,
    /// `blk.N.attn_q.weight`.
    Query,
    /// `blk.N.attn_k.weight`.
    Key,
    /// `blk.N.attn_v.weight`.
    Value,
    /// `blk.N.attn_output.weight`.
    AttentionOutput,
    /// `blk.N.attn_q.bias`.
    QueryBias,
    /// `blk.N.attn_k.bias`.
    KeyBias,
    /// `blk.N.attn_v.bias`.
    ValueBias,
    /// `blk.N.attn_q_norm.weight`.
    QueryNorm,
    /// `blk.N.attn_k_norm.weight`.
    KeyNorm,
    /// `rope_freqs.weight`, included in every token mixer.
    RopeFactors,
    /// `blk.N.ffn_norm.weight`.
    FeedForwardNorm,
    /// `blk.N.ffn_gate_inp.weight`.
    Router,
    /// `ffn_gate` of a dense network or of one expert.
    Gate,
    /// `ffn_up`, likewise.
    Up,
    /// `ffn_down`, likewise.
    Down,
    /// `rope_factors_long.weight`, included in every token mixer; [`TensorRole::RopeFactors`] are then the short ones.
    RopeFactorsLong,
    /// `blk.N.attn_output.bias`.
    AttentionOutputBias,
    /// `blk.N.attn_sinks.weight`: a score per query head.
    Sinks,
    /// `blk.N.post_attention_norm.weight`.
    AttentionPostNorm,
    /// `blk.N.post_ffw_norm.weight`.
    FeedForwardPostNorm,
    /// `blk.N.ffn_gate_inp.bias`.
    RouterBias,
    /// `blk.N.exp_probs_b.bias`.
    SelectionBias,
    /// `blk.N.ffn_gate_inp_shexp.weight`: the row that scores the shared expert.
    SharedRouter,
    /// Bias of an expert's gate.
    GateBias,
    /// Bias of an expert's up.
    UpBias,
    /// Bias of an expert's down.
    DownBias,
    /// `blk.N.attn_q_a.weight`: compresses queries.
    QueryDown,
    /// `blk.N.attn_q_a_norm.weight`.
    QueryDownNorm,
    /// The rows of `blk.N.attn_kv_a_mqa.weight` that compress keys and values.
    Latent,
    /// Its other rows: the rotated part of the keys.
    LatentRotated,
    /// `blk.N.attn_kv_a_norm.weight`.
    LatentNorm,
    /// `blk.N.attn_k_b.weight`: takes each head's queries to the compressed keys.
    KeyUp,
    /// `blk.N.attn_v_b.weight`: takes what each head attends to back to its values.
    ValueUp,
    /// `blk.N.ffn_gate_inp.scale`: gain of the router's own norm.
    RouterNorm,
    /// `blk.N.ffn_down_exps.scale`: a factor per expert.
    ExpertScales,
    /// `blk.N.post_ffw_norm_2.weight`: norm of the experts' sum, where they have one of their own.
    ExpertsPostNorm,
    /// `blk.N.layer_output_scale.weight`: one factor of the hidden vector.
    BlockScale,
    /// What a recurrence reads: the first matrix of its block.
    StateInput,
    /// The gate of a recurrence's output (`attn_gate` of a gated delta net).
    StateGate,
    /// `blk.N.ssm_beta.weight`: how much of a value each head of a delta net writes.
    StateBeta,
    /// `blk.N.ssm_alpha.weight`: how fast each head of a delta net forgets.
    StateAlpha,
    /// `blk.N.ssm_ba.weight`: both, by key head.
    StateBetaAlpha,
    /// The filter of each channel of a causal convolution, oldest position first.
    ConvTaps,
    /// Bias of a convolution.
    ConvBias,
    /// `blk.N.ssm_dt.bias`.
    TimeBias,
    /// `blk.N.ssm_a`: factor of a head's time steps, negative.
    DecayRate,
    /// `blk.N.ssm_d`: factor of a head's inputs.
    Skip,
    /// `blk.N.ssm_norm.weight`.
    StateNorm,
    /// The matrix from a recurrence to the hidden vector.
    StateOutput,
    /// `per_layer_token_embd.weight`: a token's inputs of all blocks, one after another.
    BlockEmbedding,
    /// `per_layer_model_proj.weight`: what the embedding adds to these inputs.
    BlockProjection,
    /// `per_layer_proj_norm.weight`: norm of what it adds, block by block.
    BlockProjectionNorm,
    /// `blk.N.inp_gate.weight`: what a block's input is multiplied by.
    InputGate,
    /// `blk.N.proj.weight`: from the gated input to the hidden vector.
    InputProjection,
    /// `blk.N.post_norm.weight`: its norm.
    InputPostNorm,
}

impl TensorRole {
    /// True for tensors that are added or multiplied elementwise, which the kernels read as 32-bit floats.
    pub fn is_vector(self) -> bool {
        use TensorRole::*;
        let of_latent = matches!(self, QueryDown | Latent | LatentRotated | KeyUp | ValueUp);
        !of_latent
            && !matches!(
                self,
                TokenEmbedding
                    | Output
                    | Query
                    | Key
                    | Value
                    | AttentionOutput
                    | Router
                    | Gate
                    | Up
                    | Down
                    | SharedRouter
                    | StateInput
                    | StateGate
                    | StateBeta
                    | StateAlpha
                    | StateBetaAlpha
                    | StateOutput
                    | BlockEmbedding
                    | BlockProjection
                    | InputGate
                    | InputProjection
            )
    }

    /// True for vectors that files store with more than one dimension.
    pub(crate) fn is_folded(self) -> bool {
        use TensorRole::*;
        matches!(self, ConvTaps | DecayRate | Skip | StateNorm)
    }
}

/// A range of bytes in one of the model's files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct FileRange {
    /// Index of the split file, 0 for a single file.
    pub file: u16,
    /// First byte.
    pub offset: u64,
    /// Number of bytes.
    pub len: u64,
}

/// A matrix of a unit, or a vector with `rows` = 1. Row-major: the `cols` values of a row are contiguous.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnitTensor {
    /// Its role in the unit.
    pub role: TensorRole,
    /// Its storage type.
    pub kind: TensorType,
    /// Row length (GGUF `ne[0]`), the input width of a matrix.
    pub cols: u32,
    /// Number of rows (GGUF `ne[1]`), the output width of a matrix.
    pub rows: u32,
    /// Location of its bytes.
    pub range: FileRange,
}

/// All units of a model and their tensors.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnitMap {
    units: BTreeMap<WeightUnit, Vec<UnitTensor>>,
}

impl UnitMap {
    /// Adds a unit's tensors. Their order is the byte order of the unit in the weight cache.
    pub fn insert(&mut self, unit: WeightUnit, tensors: Vec<UnitTensor>) {
        self.units.insert(unit, tensors);
    }

    /// The tensors of a unit; empty if the model has no such unit.
    pub fn tensors(&self, unit: WeightUnit) -> &[UnitTensor] {
        self.units.get(&unit).map_or(&[], Vec::as_slice)
    }

    /// All units, in order.
    pub fn units(&self) -> impl Iterator<Item = WeightUnit> {
        self.units.keys().copied()
    }

    /// Size of a unit: its tensors are concatenated, also in the weight cache.
    pub fn bytes(&self, unit: WeightUnit) -> Bytes {
        Bytes(self.tensors(unit).iter().map(|tensor| tensor.range.len).sum())
    }
}
