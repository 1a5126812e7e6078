//! Sizes of scratch and result buffers.

use std::collections::{BTreeMap, BTreeSet};

use potluck_model::{AttentionSpec, FeedForwardSpec, ModelSpec};
use potluck_plan::WeightUnit;
use potluck_plan::{Arithmetic, KV_PAGE_TOKENS, LogitBias};
use potluck_shaders::{MatrixTile, SEGMENT, Tile};

use crate::runtime::layout::{ALIGNMENT, Scratch, align};
use crate::runtime::sampled_tokens::SampledTokens;
use crate::runtime::settings::Settings;

/// Widths of the scratch buffers: the maximum over all blocks.
pub(crate) struct Widths {
    pub hidden: u64,
    pub query: u64,
    pub qkv: u64,
    pub gates: u64,
    /// What a recurrence projects, and what it mixes.
    pub recurrent: (u64, u64),
    pub heads: u64,
    pub dense: u64,
    pub expert: u64,
    pub shared: u64,
    pub used: u64,
    pub experts: u64,
    /// Some block's experts and shared network have norms of their own.
    pub apart: bool,
    /// Inputs of a block, and of all blocks.
    pub block_inputs: (u64, u64),
    /// Latent attention: widths of keys, of compressed queries, and of the parts of all heads; zeros without it.
    pub latent: [u64; 3],
}

impl Widths {
    pub fn of(spec: &ModelSpec) -> Widths {
        let hidden = u64::from(spec.hidden);
        let mut w = Widths {
            hidden,
            query: 0,
            qkv: 0,
            gates: 0,
            recurrent: (0, 0),
            heads: 0,
            dense: 0,
            expert: 0,
            shared: 0,
            used: 0,
            experts: 0,
            apart: false,
            block_inputs: (u64::from(spec.block_inputs.unwrap_or(0)), u64::from(spec.all_block_inputs())),
            latent: [0; 3],
        };
        for (index, block) in spec.blocks.iter().enumerate() {
            let a = spec.attention(index);
            let dim = u64::from(a.head_dim);
            w.query = w.query.max(u64::from(a.heads) * dim);
            w.heads = w.heads.max(u64::from(a.heads));
            if let Some(latent) = a.latent {
                let of_head = u64::from(latent.key.max(latent.value));
                let widths = [dim, u64::from(latent.query_rank.unwrap_or(0)), u64::from(a.heads) * of_head];
                w.latent.iter_mut().zip(widths).for_each(|(widest, width)| *widest = width.max(*widest));
            }
            w.qkv = w.qkv.max(u64::from(a.projected()));
            w.gates = w.gates.max(u64::from(a.query_rows()) - u64::from(a.heads) * dim);
            if let Some(r) = spec.recurrent(index) {
                let (projected, mixed) = (u64::from(r.projected()), u64::from(r.mixed()));
                w.recurrent = (w.recurrent.0.max(projected), w.recurrent.1.max(mixed));
            }
            match &block.feed_forward {
                FeedForwardSpec::Dense(dense) => w.dense = w.dense.max(u64::from(dense.intermediate)),
                FeedForwardSpec::Experts(experts) => {
                    w.expert = w.expert.max(u64::from(experts.intermediate));
                    w.apart |= experts.apart;
                    w.used = w.used.max(u64::from(experts.used));
                    w.experts = w.experts.max(u64::from(experts.count));
                    w.shared = w.shared.max(experts.shared.map_or(0, |shared| u64::from(shared.intermediate)));
                }
            }
        }
        w
    }
}

pub(crate) fn tokens_at_once(settings: &Settings) -> u64 {
    u64::from(settings.prefill_tokens).max(potluck_plan::Work::DECODE_TOKENS as u64)
}

/// Most batch tokens whose logits exist at a time.
pub(crate) fn lm_head_tokens(settings: &Settings) -> u32 {
    settings.lm_head_tokens.clamp(1, 16)
}

/// Number of pages for `context` positions.
pub(crate) fn pages(context: u32) -> u32 {
    context.div_ceil(KV_PAGE_TOKENS).max(1)
}

pub(crate) fn page_count(settings: &Settings) -> u32 {
    pages(settings.context)
}

/// Number of splits of the longest context.
pub(crate) fn split_count(settings: &Settings) -> u32 {
    potluck_shaders::split_count(page_count(settings) * KV_PAGE_TOKENS)
}

/// Most tiles of `vectors` vectors in the grouped expert product.
pub(crate) fn tile_count(vectors: u32, pairs: u64, experts: u64) -> u64 {
    pairs / u64::from(vectors) + experts.min(pairs)
}

/// Bytes of a block's rotary table. A block that does not rotate has some too, because a binding is never empty.
pub(crate) fn rope_table_bytes(attention: &AttentionSpec) -> u64 {
    align((u64::from(attention.rope.dims) * 2).max(4))
}

/// Bytes of a quantized vector: its bytes, then two numbers for each 32 of them.
pub(crate) fn packed_row_bytes(cols: u64) -> u64 {
    (cols + cols.div_ceil(32) * 8).next_multiple_of(16)
}

/// Bytes of a vector of half floats: filled up to whole steps of the matrix units, then its exponent.
pub(crate) fn halved_row_bytes(cols: u64) -> u64 {
    cols.next_multiple_of(u64::from(MatrixTile::STEP)) * 2 + 16
}

/// Size of every scratch buffer in bytes.
pub(crate) fn scratch_sizes(
    spec: &ModelSpec,
    held: &BTreeSet<WeightUnit>,
    settings: &Settings,
) -> BTreeMap<Scratch, u64> {
    let w = Widths::of(spec);
    let rows = tokens_at_once(settings);
    let any = |test: fn(&WeightUnit) -> bool| held.iter().any(test);
    let mixes = any(|unit| matches!(unit, WeightUnit::TokenMixer(_)));
    let dense = any(|unit| matches!(unit, WeightUnit::Dense(_)));
    let routes = w.experts > 0 && any(|unit| matches!(unit, WeightUnit::Router(_) | WeightUnit::Expert(..)));
    let head = held.contains(&WeightUnit::LmHead);
    let pairs = if routes { rows * w.used } else { 0 };
    let alone = if dense { w.dense.max(w.block_inputs.0) } else { 0 }.max(if routes { w.shared } else { 0 });
    let inner = (pairs * w.expert).max(rows * alone);
    let mixed = if mixes { rows } else { 0 };
    let decode_rows = potluck_plan::Work::DECODE_TOKENS as u64;
    let logits = if head { u64::from(lm_head_tokens(settings)) } else { 0 };
    let vocabulary = u64::from(spec.vocabulary);
    let rope_table: u64 = spec.attention_blocks().map(rope_table_bytes).sum();
    let tables = rope_table + spec.blocks.len() as u64 * align(w.experts * 4);
    let row_bytes: fn(u64) -> u64 = match settings.arithmetic {
        Arithmetic::Exact => |_| 0,
        Arithmetic::Packed => packed_row_bytes,
        Arithmetic::Matrix => halved_row_bytes,
    };
    let widest = |n: u64, cols: u64| n * row_bytes(cols);
    let packed = widest(rows, w.hidden.max(alone))
        .max(widest(mixed, w.query.max(w.qkv).max(w.recurrent.1).max(w.latent[2])))
        .max(widest(pairs, w.expert));
    let needed = [
        (Scratch::Hidden, rows * w.hidden * 4),
        (Scratch::Normed, rows * w.hidden * 4),
        (Scratch::Qkv, mixed * w.qkv.max(w.recurrent.0) * 4),
        (Scratch::QueryGates, mixed * w.gates * 4),
        (Scratch::Query, mixed * w.query.max(w.recurrent.1) * 4),
        (Scratch::Attended, mixed * w.query * 4),
        (Scratch::LatentKeys, mixed * w.latent[0] * 4),
        (Scratch::LatentQueries, mixed * w.latent[1] * 4),
        (Scratch::HeadParts, mixed * w.latent[2] * 4),
        (Scratch::Heads, 2 * align(w.heads * 4) + mixed * w.heads * 4),
        // One vector per token, head and split, with its maximum and sum.
        (
            Scratch::Splits,
            if mixes { decode_rows * u64::from(split_count(settings)) * (w.query * 4 + w.heads * 16) } else { 0 },
        ),
        (Scratch::Gate, inner * 4),
        (Scratch::Up, inner * 4),
        (Scratch::Parts, pairs * w.hidden * 4),
        (Scratch::Packed, packed),
        (Scratch::BlockInputs, rows * w.block_inputs.1 * 4),
        (Scratch::BlockProjected, rows * w.block_inputs.1 * 4),
        (Scratch::Sum, if routes && w.apart { rows * w.hidden * 4 } else { 0 }),
        (Scratch::Scores, if routes { rows * w.experts * 4 } else { 0 }),
        (Scratch::Chosen, pairs * 4),
        (Scratch::Gates, pairs * 4),
        (Scratch::Tiles, tile_count(Tile::MIN_VECTORS, pairs, w.experts) * 16),
        (Scratch::Pairs, pairs * 4),
        (Scratch::Logits, logits * vocabulary * 4),
        (Scratch::Best, logits * vocabulary.div_ceil(u64::from(SEGMENT)) * 8),
        // A sampled token stands behind its candidates.
        (Scratch::Candidates, if head { (rows * u64::from(potluck_plan::LogitsRequest::MAX_TOP) + 1) * 8 } else { 0 }),
        (Scratch::Biases, if head { decode_rows * (1 + LogitBias::MAX_TOKENS as u64) * 8 } else { 0 }),
        (Scratch::Masks, if head { decode_rows * (1 + vocabulary.div_ceil(32)) * 4 } else { 0 }),
        (Scratch::LogSums, if head { rows * 4 } else { 0 }),
        (Scratch::Rows, rows * 16),
        (Scratch::KvPages, u64::from(page_count(settings)) * 4),
        (Scratch::Tokens, rows * 4),
        (Scratch::Tables, tables),
        (Scratch::SampledTokens, SampledTokens::SLOTS as u64 * ALIGNMENT),
        (Scratch::Sampling, SampledTokens::SLOTS as u64 * SampledTokens::STRIDE),
        (Scratch::DecodeSteps, u64::from(potluck_plan::Work::MAX_STEPS) * 16),
    ];
    let mut sizes = BTreeMap::new();
    let exists = |scratch: Scratch| match scratch {
        Scratch::Sum => w.apart,
        Scratch::BlockInputs => w.block_inputs.1 > 0,
        Scratch::LatentKeys | Scratch::LatentQueries | Scratch::HeadParts | Scratch::Heads => mixes && w.latent[0] > 0,
        _ => true,
    };
    for (scratch, bytes) in needed.into_iter().filter(|&(scratch, _)| exists(scratch)) {
        let size = sizes.entry(scratch.home()).or_default();
        *size = align(bytes.max(1)).max(*size);
    }
    sizes
}

/// Batch tokens whose results fit into a result buffer. Prefill chunks that pass several devices are no longer than
/// this. Longer work is cut unless its result is small.
const RESULT_ROWS: u64 = Settings::MIN_PREFILL_TOKENS as u64;

/// Bytes of results.
pub(crate) struct ReadbackSizes {
    /// Routed tokens and candidates.
    pub usual: u64,
    /// Any but logits: also the outputs of experts, a vector for each (token, expert) pair.
    pub most: u64,
    /// Logits of the tokens that are read at a time; 0 without an LM head.
    pub logits: u64,
}

/// What results of these units take.
pub(crate) fn readback_sizes(spec: &ModelSpec, held: &BTreeSet<WeightUnit>, settings: &Settings) -> ReadbackSizes {
    let w = Widths::of(spec);
    let rows = tokens_at_once(settings).min(RESULT_ROWS);
    let routed = rows * (2 * w.hidden * 4 + 2 * w.used * 4);
    let has_experts = held.iter().any(|unit| matches!(unit, WeightUnit::Expert(..)));
    let outputs = if has_experts { rows * w.used * w.hidden * 4 } else { 0 };
    let head = held.contains(&WeightUnit::LmHead);
    let of_row = u64::from(potluck_plan::LogitsRequest::MAX_TOP) * 8 + 4;
    let candidates = if head { rows * of_row } else { 0 };
    let read = settings.logits_read.clamp(1, lm_head_tokens(settings));
    let logits = if head { u64::from(read) * u64::from(spec.vocabulary) * 4 } else { 0 };
    let usual = align(routed.max(candidates));
    ReadbackSizes { usual, most: usual.max(align(outputs)), logits: if head { align(logits) } else { 0 } }
}

pub(crate) trait AttentionBlocks {
    fn attention_blocks(&self) -> impl Iterator<Item = &AttentionSpec>;
}

impl AttentionBlocks for ModelSpec {
    fn attention_blocks(&self) -> impl Iterator<Item = &AttentionSpec> {
        (0..self.blocks.len()).map(|index| self.attention(index))
    }
}
