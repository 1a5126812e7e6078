//! dots.llm1.

use super::{Description, Source};
use crate::{ModelError, QkNorm, RopePairs, Scoring};

pub(super) fn describe(source: &Source<'_>) -> Result<Description, ModelError> {
    let mut model = source.standard(RopePairs::Halves)?;
    model.attentions().for_each(|(_, attention)| attention.qk_norm = QkNorm::Head);
    let (scoring, scale) = (source.scoring(Scoring::Softmax)?, source.weights_scale()?);
    let normalize = source.keys.optional_bool("expert_weights_norm")?.unwrap_or(false);
    for (number, experts) in model.experts() {
        experts.router.scoring = scoring;
        experts.router.normalize = normalize;
        experts.router.scale = scale;
        experts.router.selection_bias = source.has_in(number, "exp_probs_b.bias");
        experts.shared = source.shared(experts.intermediate)?;
    }
    Ok(model)
}
