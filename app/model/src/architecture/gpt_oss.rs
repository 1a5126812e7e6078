//! gpt-oss.

use super::{Description, Source};
use crate::{Activation, ModelError, RopePairs, TensorRole};

/// Every second block has a window.
const PERIOD: u32 = 2;

pub(super) fn describe(source: &Source<'_>) -> Result<Description, ModelError> {
    let mut model = source.standard(RopePairs::Halves)?;
    model.set_windows(source, PERIOD)?;
    for (number, attention) in model.attentions() {
        attention.sinks = true;
        attention.output_bias = source.has_in(number, "attn_output.bias");
    }
    let scale = source.weights_scale()?;
    for (_, experts) in model.experts() {
        experts.activation = Activation::ClampedSwiGlu;
        experts.biases = true;
        experts.router.bias = true;
        // A softmax over the scores of the chosen experts.
        experts.router.normalize = true;
        experts.router.scale = scale;
    }
    model.names.push((TensorRole::FeedForwardNorm, "post_attention_norm.weight"));
    Ok(model)
}
