//! MiniMax M2.

use super::{Description, Source};
use crate::{ModelError, QkNorm, RopePairs, Scoring};

pub(super) fn describe(source: &Source<'_>) -> Result<Description, ModelError> {
    let mut model = source.standard(RopePairs::Halves)?;
    model.attentions().for_each(|(_, attention)| attention.qk_norm = QkNorm::Row);
    let (scoring, scale) = (source.scoring(Scoring::Sigmoid)?, source.weights_scale()?);
    for (_, experts) in model.experts() {
        experts.router.scoring = scoring;
        experts.router.normalize = true;
        experts.router.scale = scale;
        experts.router.selection_bias = true;
    }
    Ok(model)
}
