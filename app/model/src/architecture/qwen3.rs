//! Qwen 3, dense and with experts, and the text part of Qwen 3 VL: the sections of its rotation (time, height, width)
//! differ only for images, which lie in a file of their own.

use super::{Description, Source};
use crate::{ModelError, QkNorm, RopePairs};

pub(super) fn describe(source: &Source<'_>) -> Result<Description, ModelError> {
    source.softmax_only()?;
    let mut model = source.standard(RopePairs::Halves)?;
    model.attentions().for_each(|(_, attention)| attention.qk_norm = QkNorm::Head);
    Ok(model)
}
