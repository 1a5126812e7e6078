//! Where the bytes of each weight unit lie in the GGUF file(s).

use std::collections::BTreeMap;

use potluck_gguf::TensorType;
use potluck_plan::{Bytes, WeightUnit};
use serde::{Deserialize, Serialize};

/// What a tensor is for, inside its unit.
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
    /// `rope_freqs.weight`, repeated in each token mixer.
    RopeFactors,
    /// `blk.N.ffn_norm.weight`.
    FeedForwardNorm,
    /// `blk.N.ffn_gate_inp.weight`.
    Router,
    /// `ffn_gate`, of a dense network or one expert.
    Gate,
    /// `ffn_up`, likewise.
    Up,
    /// `ffn_down`, likewise.
    Down,
}

/// A run of bytes of one of the model's files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct FileRange {
    /// Index of the split file, 0 for a single file.
    pub file: u16,
    /// First byte.
    pub offset: u64,
    /// Number of bytes.
    pub len: u64,
}

/// One matrix (or vector, then `rows` is 1) of a unit. Row-major: `cols` values of a row lie together.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnitTensor {
    /// What it is for.
    pub role: TensorRole,
    /// How its values are stored.
    pub kind: TensorType,
    /// Values in a row (GGUF `ne[0]`), the input width of a matrix.
    pub cols: u32,
    /// Rows (GGUF `ne[1]`), the output width of a matrix.
    pub rows: u32,
    /// Where its bytes lie.
    pub range: FileRange,
}

/// All units of a model and their tensors.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnitMap {
    units: BTreeMap<WeightUnit, Vec<UnitTensor>>,
}

impl UnitMap {
    /// Adds a unit's tensors. Their order is the order of the unit's bytes in a cache.
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

    /// Bytes of a unit: its tensors end to end, which is also its layout in a cache.
    pub fn bytes(&self, unit: WeightUnit) -> Bytes {
        Bytes(self.tensors(unit).iter().map(|tensor| tensor.range.len).sum())
    }
}
