//! Mistral 3 (Ministral and its relatives).

use super::standard::yarn_magnitude;
use super::{Description, Source};
use crate::{ModelError, RopePairs, Temperature};

pub(super) fn describe(source: &Source<'_>) -> Result<Description, ModelError> {
    source.softmax_only()?;
    let keys = &source.keys;
    let mut model = source.standard(RopePairs::Adjacent)?;
    let scale = keys.nonzero_f32("attention.temperature_scale")?;
    let log_multiplier = keys.nonzero_f32("rope.scaling.yarn_log_multiplier")?;
    for (number, attention) in model.attentions() {
        attention.output_bias = source.has_in(number, "attn_output.bias");
        if let (Some(mscale), true) = (log_multiplier, attention.rope.yarn.is_some()) {
            attention.rope.magnitude /= yarn_magnitude(attention.rope.linear_scale, mscale);
        }
        if let Some(scale) = scale {
            let step = keys.u32("rope.scaling.original_context_length")?;
            let step = keys.checked_size("rope.scaling.original_context_length", step, u32::MAX)?;
            attention.rope.temperature = Some(Temperature { scale, step, shift: 0 });
        }
    }
    Ok(model)
}
