//! The static memory plan: lays out every buffer before any is created. Pure.

use std::collections::{BTreeMap, BTreeSet};

use potluck_model::TensorRole;
use potluck_plan::{BlockIndex, Bytes, ExpertId, WeightUnit};

use crate::runtime::tensors::Shape;

/// Alignment of every tensor and slot in bytes.
pub(crate) const ALIGNMENT: u64 = 256;
/// Rounds a number of bytes up to the alignment.
pub(crate) fn align(bytes: u64) -> u64 {
    bytes.next_multiple_of(ALIGNMENT)
}

/// Bytes reserved for the uniform of one dispatch.
pub(crate) const PARAMS_STRIDE: u64 = 256;
/// Dispatches whose uniforms fit into the arena; longer work is split into several submits.
pub(crate) const PARAMS_COUNT: u64 = 4096;

/// What a buffer is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Purpose {
    /// Model weights.
    Weights,
    /// Keys, values and recurrent states.
    KvCache,
    /// Intermediate vectors.
    Scratch,
    /// Uniforms and small tables.
    Parameters,
    /// Buffers for uploads.
    Staging,
    /// Buffers for results.
    Readback,
}

/// A buffer of the plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlannedBuffer {
    /// What it holds.
    pub name: String,
    /// What it is for.
    pub purpose: Purpose,
    /// Its size.
    pub bytes: Bytes,
}

/// Identifies a buffer of weights or KV cache. A buffer whose key and size do not change keeps its content.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Key {
    /// Part of a unit's tensors.
    Unit(WeightUnit, u16),
    /// Part of the embedding table, which a tied LM head shares.
    Table(u16),
    /// Some slots of one expert matrix.
    Experts(SlotsOf, TensorRole, u16),
    /// Keys of a block.
    Keys(BlockIndex),
    /// Values of a block.
    Values(BlockIndex),
    /// Recurrent states of a block, by slot.
    State(BlockIndex),
    /// A scratch buffer.
    Scratch(Scratch),
}

/// Whose experts lie in some slots.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum SlotsOf {
    /// One block's; each has a slot of its own.
    Block(BlockIndex),
    /// Those of the pooled blocks of a slab class.
    Pool(u16),
}

/// Scratch vectors and small tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Scratch {
    Hidden,
    Normed,
    Qkv,
    /// Gates of the query heads.
    QueryGates,
    Query,
    Attended,
    /// Latent attention: keys before their rotation.
    LatentKeys,
    /// Compressed queries.
    LatentQueries,
    /// Parts of each head: its queries before they are taken to the compressed keys, later its values.
    HeadParts,
    /// Which head each (token, head) pair has, and where the matrices of heads begin.
    Heads,
    /// Partial attention results of the context's splits, to be merged.
    Splits,
    Gate,
    Up,
    Parts,
    /// Vectors quantized for a packed product, or halved for the matrix units.
    Packed,
    /// The sum of experts and shared network before its norm, where it has one.
    Sum,
    /// Each token's inputs of all blocks.
    BlockInputs,
    /// What the embedding adds to them.
    BlockProjected,
    Scores,
    Chosen,
    Gates,
    Tiles,
    Pairs,
    Logits,
    /// Biases of the logits of rows: how many each has, then those.
    Biases,
    /// Masks of the logits of rows: whether each has one, then those.
    Masks,
    Best,
    Candidates,
    /// The log-sum-exp of each row.
    LogSums,
    Rows,
    KvPages,
    Tokens,
    Tables,
    /// The token sampled for each slot, [`ALIGNMENT`] apart.
    SampledTokens,
    /// Per slot the parameters of the sampler and the newest tokens, [`SampledTokens::STRIDE`](crate::runtime::sampled_tokens::SampledTokens::STRIDE) apart.
    Sampling,
    /// Batch rows of the steps of a continuation.
    DecodeSteps,
}

impl Scratch {
    /// The scratch buffer that contains this vector. The next one or two kernels read each large vector of a block and
    /// nothing reads it afterwards, so two buffers alternate. No dispatch then binds two vectors of one buffer, which
    /// WebGPU would reject.
    pub fn home(self) -> Scratch {
        match self {
            Self::Qkv | Self::Attended | Self::Gate | Self::Parts | Self::Logits | Self::BlockProjected => Self::Qkv,
            Self::Query | Self::Up => Self::Query,
            own => own,
        }
    }
}

/// Rows `first_row..first_row + rows` of a tensor in a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Segment {
    pub key: Key,
    pub offset: u64,
    pub first_row: u32,
    pub rows: u32,
    pub bytes: u64,
}

/// Location of a tensor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub shape: Shape,
    pub segments: Vec<Segment>,
}

/// Location of one matrix of a block's experts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ExpertMatrix {
    pub shape: Shape,
    /// Bytes from one slot to the next.
    pub stride: u64,
    /// Offset of the matrix in its slot. Gate and up share slots so that one binding covers both.
    pub inside: u64,
    pub chunks: Vec<ExpertChunk>,
}

/// First slot, number of slots, and buffer.
pub(crate) type ExpertChunk = (u32, u32, Key);

/// The experts of a block that are held here, or its pool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ExpertPlaces {
    /// The slots of experts with a slot of their own; those of a pool change.
    pub slots: BTreeMap<ExpertId, u32>,
    pub gate: ExpertMatrix,
    pub up: ExpertMatrix,
    pub down: ExpertMatrix,
    /// Biases of gate, up and down, which share slots.
    pub biases: Option<[ExpertMatrix; 3]>,
    /// Byte offset of the slot table in `Scratch::Tables`.
    pub table: u64,
}

/// The memory plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Every buffer.
    pub buffers: Vec<PlannedBuffer>,
    /// Sum of all sizes.
    pub total: Bytes,
    pub(crate) sizes: BTreeMap<Key, u64>,
    pub(crate) places: BTreeMap<(WeightUnit, usize), Place>,
    pub(crate) experts: BTreeMap<BlockIndex, ExpertPlaces>,
    /// The slab class of each pooled block.
    pub(crate) classes: BTreeMap<BlockIndex, u16>,
    /// Slots of each slab class.
    pub(crate) pool_slots: Vec<u32>,
    pub(crate) rope_table: BTreeMap<BlockIndex, u64>,
    /// Bytes of a usual result; `readback_bytes` are those of the largest one.
    pub(crate) usual_readback_bytes: u64,
    pub(crate) readback_bytes: u64,
    pub(crate) logits_bytes: u64,
    pub(crate) pages: u32,
    /// Prompt tokens per chunk that scratch memory has room for.
    pub prefill_tokens: u32,
}

impl Layout {
    /// Total bytes of one purpose.
    pub fn bytes(&self, purpose: Purpose) -> Bytes {
        self.buffers.iter().filter(|buffer| buffer.purpose == purpose).map(|buffer| buffer.bytes).sum()
    }

    /// Bytes of weights.
    pub fn weights(&self) -> Bytes {
        self.bytes(Purpose::Weights)
    }

    /// Bytes of keys, values and recurrent states.
    pub fn kv_cache(&self) -> Bytes {
        self.bytes(Purpose::KvCache)
    }

    /// Everything but weights and KV cache.
    pub fn overhead(&self) -> Bytes {
        self.total.saturating_sub(self.weights()).saturating_sub(self.kv_cache())
    }
}

impl Key {
    /// A name for reports.
    pub fn name(self) -> String {
        match self {
            Self::Unit(unit, part) => format!("{unit:?} part {part}"),
            Self::Table(part) => format!("embedding table part {part}"),
            Self::Experts(SlotsOf::Block(block), role, part) => {
                format!("{role:?} of the experts of block {} part {part}", block.0)
            }
            Self::Experts(SlotsOf::Pool(class), role, part) => {
                format!("{role:?} of the pooled experts of class {class} part {part}")
            }
            Self::Keys(block) => format!("keys of block {}", block.0),
            Self::State(block) => format!("recurrent states of block {}", block.0),
            Self::Values(block) => format!("values of block {}", block.0),
            Self::Scratch(Scratch::Qkv) => "qkv, attended, gate, parts or logits".to_owned(),
            Self::Scratch(Scratch::Query) => "query or up".to_owned(),
            Self::Scratch(scratch) => format!("{scratch:?}").to_lowercase(),
        }
    }

    /// What the buffer is for.
    pub fn purpose(self) -> Purpose {
        match self {
            Self::Unit(..) | Self::Table(_) | Self::Experts(..) => Purpose::Weights,
            Self::Keys(_) | Self::Values(_) | Self::State(_) => Purpose::KvCache,
            Self::Scratch(
                Scratch::Rows
                | Scratch::KvPages
                | Scratch::Tokens
                | Scratch::Tables
                | Scratch::SampledTokens
                | Scratch::Sampling
                | Scratch::Heads
                | Scratch::DecodeSteps,
            ) => Purpose::Parameters,
            Self::Scratch(_) => Purpose::Scratch,
        }
    }
}

/// A block that gets more experts has at most so many buffers for each matrix: each costs a dispatch.
const MOST_CHUNKS: usize = 6;

impl ExpertPlaces {
    /// Whether the experts that are here may stay where they are if the block is to have `experts`, of `all` that it has in the
    /// model. Not if some are dropped. Not if the block becomes complete: in one buffer, its products and their sum take one
    /// dispatch.
    pub fn can_grow(&self, experts: &BTreeSet<ExpertId>, all: u32) -> bool {
        let stay = !self.slots.is_empty() && self.slots.keys().all(|expert| experts.contains(expert));
        let grows = experts.len() > self.slots.len();
        // Kernels want all biases in one buffer.
        let may = self.biases.is_none() && experts.len() < all as usize && self.down.chunks.len() < MOST_CHUNKS;
        stay && (!grows || may)
    }

    /// True if each of these experts has the same place in `after`.
    pub fn stay_in(&self, after: &Self) -> bool {
        let mut matrices = self.all().zip(after.all());
        self.slots.iter().all(|(expert, slot)| after.slots.get(expert) == Some(slot))
            && matrices.all(|((_, before), (_, after))| after.chunks.starts_with(&before.chunks))
    }

    /// Every matrix and bias with its role.
    pub fn all(&self) -> impl Iterator<Item = (TensorRole, &ExpertMatrix)> {
        use TensorRole::{Down, DownBias, Gate, GateBias, Up, UpBias};
        let biases = self.biases.iter().flat_map(|biases| [GateBias, UpBias, DownBias].into_iter().zip(biases));
        [(Gate, &self.gate), (Up, &self.up), (Down, &self.down)].into_iter().chain(biases)
    }
}

impl ExpertMatrix {
    /// Buffer and byte offset of a slot.
    pub fn slot(&self, slot: u32) -> (Key, u64) {
        let (first, _, key) =
            self.chunks.iter().rev().find(|(first, ..)| *first <= slot).copied().unwrap_or(self.chunks[0]);
        (key, u64::from(slot - first) * self.stride + self.inside)
    }

    /// Bytes of this matrix within a slot.
    pub fn bytes(&self) -> u64 {
        align(self.shape.bytes())
    }
}
