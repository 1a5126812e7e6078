//! Gemma 4.

use std::collections::BTreeMap;

use super::gemma2::gemma;
use super::standard::MAX_WIDTH;
use super::{Description, Source};
use crate::{Activation, AttentionSpec, ModelError, QkNorm, RopePairs, RopeSpec};

/// One block in six sees the whole context, in files that do not say which.
const PERIOD: u32 = 6;
/// Base of the rotation in blocks with a window, in files that name none.
const WINDOW_BASE: f32 = 10_000.0;

pub(super) fn describe(source: &Source<'_>) -> Result<Description, ModelError> {
    let keys = &source.keys;
    let mut model = source.standard(RopePairs::Halves)?;
    model.set_windows(source, PERIOD)?;
    // Its norms take the place of a scale.
    gemma(&mut model, usize::MAX);
    model.spec.scales.of_blocks = source.has_in(0, "layer_output_scale.weight");
    model.spec.scales.logit_cap = keys.nonzero_f32("final_logit_softcapping")?.unwrap_or(0.0);
    for (number, attention) in model.attentions() {
        if attention.window.is_some() {
            *attention = with_window(source, attention)?;
        }
        attention.scale = 1.0;
        attention.qk_norm = QkNorm::Head;
        attention.value_norm = true;
        attention.values_are_keys =
            !source.has_in(number, "attn_v.weight") && !source.has_in(number, "attn_qkv.weight");
    }
    let widths = source.optional_sizes("feed_forward_length", model.spec.blocks.len() as u32)?;
    for (number, experts) in model.experts() {
        experts.activation = Activation::GeGlu;
        experts.apart = true;
        experts.router.normalize = true;
        experts.router.own_norm = true;
        experts.router.expert_scales = source.has_in(number, "ffn_down_exps.scale");
        let intermediate =
            widths.get(number).copied().map_or_else(|| keys.size("feed_forward_length", MAX_WIDTH), Ok)?;
        experts.shared = Some(crate::SharedSpec { intermediate, gated: false });
    }
    share_keys(source, &mut model)?;
    block_inputs(source, &mut model)?;
    Ok(model)
}

/// The last blocks attend to the keys and values of the last block before them that sees as much (E2B and E4B).
fn share_keys(source: &Source<'_>, model: &mut Description) -> Result<(), ModelError> {
    let key = "attention.shared_kv_layers";
    let Some(shared) = source.keys.nonzero_u32(key)? else { return Ok(()) };
    let blocks = model.spec.blocks.len();
    let bad = |expected: String| source.keys.bad(key, shared, expected);
    let first = blocks.checked_sub(shared as usize).filter(|first| *first > 0);
    let first = first.ok_or_else(|| bad(format!("the model has {blocks} blocks")))?;
    let owners: Vec<AttentionSpec> = (0..first).map(|block| model.spec.attention(block).clone()).collect();
    let last: BTreeMap<Option<u32>, usize> =
        owners.iter().enumerate().map(|(number, owner)| (owner.window, number)).collect();
    for (number, attention) in model.attentions().skip(first) {
        let owner = last.get(&attention.window).copied();
        let fits = |owner: &usize| {
            (owners[*owner].kv_heads, owners[*owner].head_dim) == (attention.kv_heads, attention.head_dim)
        };
        let owner = owner.filter(fits).ok_or_else(|| bad(format!("block {number} has no block before it like it")))?;
        attention.kv_of = Some(owner as u16);
        attention.values_are_keys = false;
    }
    // Some files have the matrices that nothing uses.
    let unused = (first..blocks).flat_map(|block| ["attn_k", "attn_v"].map(|name| format!("blk.{block}.{name}")));
    model.left_out.extend(unused);
    Ok(())
}

/// Each block gets a vector of each token (E2B and E4B).
fn block_inputs(source: &Source<'_>, model: &mut Description) -> Result<(), ModelError> {
    let (keys, key) = (&source.keys, "embedding_length_per_layer_input");
    let Some(width) = keys.nonzero_u32(key)? else { return Ok(()) };
    if model.experts().next().is_some() {
        let architecture = keys.architecture.name().to_owned();
        let operation = "embeddings per block of a model with experts";
        return Err(ModelError::MissingOperation { architecture, operation });
    }
    let blocks = model.spec.blocks.len() as u32;
    model.spec.block_inputs = Some(keys.checked_size(key, width, MAX_WIDTH / blocks.max(1))?);
    Ok(())
}

/// Blocks with a window have heads and a rotation of their own.
fn with_window(source: &Source<'_>, full: &AttentionSpec) -> Result<AttentionSpec, ModelError> {
    let keys = &source.keys;
    let head_dim = match keys.nonzero_u32("attention.key_length_swa")? {
        Some(length) => keys.checked_size("attention.key_length_swa", length, MAX_WIDTH / full.heads.max(1))?,
        None => full.head_dim,
    };
    if let Some(length) = keys.nonzero_u32("attention.value_length_swa")?.filter(|&length| length != head_dim) {
        return Err(keys.bad("attention.value_length_swa", length, format!("keys have {head_dim} values")));
    }
    let dims = keys.nonzero_u32("rope.dimension_count_swa")?.unwrap_or(head_dim);
    if dims % 2 != 0 || dims > head_dim {
        return Err(keys.bad("rope.dimension_count_swa", dims, format!("it must be even and at most {head_dim}")));
    }
    let base = keys.nonzero_f32("rope.freq_base_swa")?.unwrap_or(WINDOW_BASE);
    let base = keys.positive("rope.freq_base_swa", base)?;
    Ok(AttentionSpec { head_dim, rope: RopeSpec::new(dims, base, RopePairs::Halves), ..full.clone() })
}
