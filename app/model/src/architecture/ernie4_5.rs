//! ERNIE 4.5, dense and with experts.

use super::{Description, Source};
use crate::{FeedForwardSpec, ModelError, RopePairs, Scoring};

pub(super) fn describe(source: &Source<'_>) -> Result<Description, ModelError> {
    let mut model = source.standard(RopePairs::Adjacent)?;
    for (number, attention) in model.attentions() {
        attention.output_bias = source.has_in(number, "attn_output.bias");
    }
    Ok(model)
}

pub(super) fn describe_experts(source: &Source<'_>) -> Result<Description, ModelError> {
    let keys = &source.keys;
    let mut model = describe(source)?;
    let step = keys.optional_u32("interleave_moe_layer_step")?.unwrap_or(1);
    let leading = keys.optional_u32("leading_dense_block_count")?.unwrap_or(0);
    for (number, block) in (0..).zip(&model.spec.blocks) {
        let routed = matches!(block.feed_forward, FeedForwardSpec::Experts(_));
        let expected = step > 0 && number >= leading && (number + 1) % step == 0;
        if routed != expected {
            return Err(keys.bad("interleave_moe_layer_step", step, format!("block {number} contradicts it")));
        }
    }
    let scale = source.weights_scale()?;
    for (number, experts) in model.experts() {
        experts.router.scoring = Scoring::Softmax;
        experts.router.normalize = true;
        experts.router.scale = scale;
        experts.router.selection_bias = source.has_in(number, "exp_probs_b.bias");
        experts.shared = source.shared(0)?;
    }
    Ok(model)
}
