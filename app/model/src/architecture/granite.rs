//! Granite 3 and 4 without state spaces, dense and with experts.

use super::{Description, Source};
use crate::{ModelError, RopePairs};

pub(super) fn describe(source: &Source<'_>) -> Result<Description, ModelError> {
    let keys = &source.keys;
    let mut model = source.standard(RopePairs::Adjacent)?;
    let scale = |key| keys.nonzero_f32(key);
    let scales = &mut model.spec.scales;
    scales.embedding = scale("embedding_scale")?.unwrap_or(1.0);
    scales.residual = scale("residual_scale")?.unwrap_or(1.0);
    scales.logits = 1.0 / scale("logit_scale")?.unwrap_or(1.0);
    let attention_scale = scale("attention.scale")?;
    let rotates = keys.optional_bool("rope.scaling.finetuned")?.unwrap_or(true);
    for (number, attention) in model.attentions() {
        attention.output_bias = source.has_in(number, "attn_output.bias");
        attention.scale = attention_scale.unwrap_or(attention.scale);
        if !rotates {
            attention.rope = attention.rope.none();
        }
    }
    let weights_scale = source.weights_scale()?;
    for (_, experts) in model.experts() {
        experts.router.normalize = true;
        experts.router.scale = weights_scale;
        experts.shared = source.shared(0)?;
    }
    Ok(model)
}

/// Granite 4 with state spaces, `granitehybrid`.
pub(super) fn describe_hybrid(source: &Source<'_>) -> Result<Description, ModelError> {
    let mut model = describe(source)?;
    let mixer = source.state_space()?;
    let attends = source.attends(model.spec.blocks.len())?;
    model.set_recurrent(&mixer, |block| !attends[block]);
    Ok(model)
}
