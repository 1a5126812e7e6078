//! DeepSeek V2 and V3, and models of their shape: Kimi K2, GLM 4.7 Flash, Moonlight.

use super::standard::MAX_WIDTH;
use super::{Description, Source};
use crate::{AttentionSpec, LatentSpec, ModelError, RopePairs, Scoring, TensorRole};

/// GLM 4.7 Flash does not name its router's function, and is known by its vocabulary.
const SIGMOID_VOCABULARY: u32 = 154_880;

pub(super) fn describe(source: &Source<'_>) -> Result<Description, ModelError> {
    let keys = &source.keys;
    let missing = |operation| ModelError::MissingOperation { architecture: keys.architecture.name().into(), operation };
    if source.has_in(0, "attn_kv_b.weight") {
        return Err(missing(
            "latent attention in its older form (attn_kv_b; files made since April 2025 have attn_k_b)",
        ));
    }
    if keys.nonzero_f32("attention.temperature_scale")?.is_some() {
        return Err(missing("latent attention with queries that grow with the position"));
    }
    let mut model = source.standard(RopePairs::Adjacent)?;
    for (_, attention) in model.attentions() {
        *attention = latent(source, attention)?;
    }
    if keys.nonzero_u32("attention.q_lora_rank")?.is_some() {
        model.names.push((TensorRole::Query, "attn_q_b.weight"));
    }
    let vocabulary = model.spec.vocabulary;
    let usual = if vocabulary == SIGMOID_VOCABULARY { Scoring::Sigmoid } else { Scoring::Softmax };
    let (scoring, scale) = (source.scoring(usual)?, source.weights_scale()?);
    let normalize = keys.optional_bool("expert_weights_norm")?.unwrap_or(false);
    for (number, experts) in model.experts() {
        experts.router.scoring = scoring;
        experts.router.normalize = normalize;
        experts.router.scale = scale;
        experts.router.selection_bias = source.has_in(number, "exp_probs_b.bias");
        experts.shared = source.shared(experts.intermediate)?;
    }
    Ok(model)
}

/// Attention with the file's ranks and widths.
fn latent(source: &Source<'_>, standard: &AttentionSpec) -> Result<AttentionSpec, ModelError> {
    let keys = &source.keys;
    let mut rope = standard.rope.clone();
    let rank = keys.size("attention.kv_lora_rank", MAX_WIDTH)?;
    let query_rank = match keys.nonzero_u32("attention.q_lora_rank")? {
        Some(rank) => Some(keys.checked_size("attention.q_lora_rank", rank, MAX_WIDTH)?),
        None => None,
    };
    let whole = keys.size("attention.key_length_mla", MAX_WIDTH)?;
    let value = keys.size("attention.value_length_mla", MAX_WIDTH)?;
    let key = whole
        .checked_sub(rope.dims)
        .filter(|&key| key > 0)
        .ok_or_else(|| keys.bad("attention.key_length_mla", whole, format!("{} values of it rotate", rope.dims)))?;
    let widest = (rank + rope.dims).max(whole).max(value);
    if u64::from(widest) * u64::from(standard.heads) > u64::from(u32::MAX) / 4 {
        return Err(keys.bad("attention.head_count", standard.heads, "heads of this width are too many"));
    }
    // Rotated vectors keep their length, and scores grow instead (`mscale_all_dim`); files hold a tenth of it.
    let growth = match keys.nonzero_f32("rope.scaling.yarn_log_multiplier")? {
        Some(multiplier) if rope.yarn.is_some() => {
            rope.magnitude = 1.0;
            1.0 + multiplier * rope.linear_scale.max(1.0).ln()
        }
        _ => rope.magnitude,
    };
    let latent = LatentSpec { query_rank, rank, key, value };
    let mut attention = AttentionSpec::new(standard.heads, 1, rank + rope.dims, rope);
    attention.scale = growth * growth / (whole as f32).sqrt();
    attention.latent = Some(latent);
    Ok(attention)
}
