//! OLMoE.

use super::{Description, Source};
use crate::{ModelError, QkNorm, RopePairs};

pub(super) fn describe(source: &Source<'_>) -> Result<Description, ModelError> {
    source.softmax_only()?;
    let mut model = source.standard(RopePairs::Halves)?;
    model.attentions().for_each(|(_, attention)| attention.qk_norm = QkNorm::Row);
    model.experts().for_each(|(_, experts)| experts.router.normalize = false);
    Ok(model)
}
