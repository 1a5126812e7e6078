//! GLM 4.5 and its successors with experts.

use super::glm4::without_sections;
use super::{Description, Source};
use crate::{ModelError, QkNorm, RopePairs, Scoring, TensorRole};

pub(super) fn describe(source: &Source<'_>) -> Result<Description, ModelError> {
    without_sections(source)?;
    let mut model = source.standard(RopePairs::Halves)?;
    for (number, attention) in model.attentions() {
        if source.has_in(number, "attn_q_norm.weight") {
            attention.qk_norm = QkNorm::Head;
        }
    }
    let (scoring, scale) = (source.scoring(Scoring::Sigmoid)?, source.weights_scale()?);
    let normalize = source.keys.optional_bool("expert_weights_norm")?.unwrap_or(false);
    for (_, experts) in model.experts() {
        experts.router.scoring = scoring;
        experts.router.normalize = normalize;
        experts.router.scale = scale;
        experts.router.selection_bias = true;
        experts.shared = source.shared(experts.intermediate)?;
    }
    model.names.push((TensorRole::FeedForwardNorm, "post_attention_norm.weight"));
    Ok(model)
}
