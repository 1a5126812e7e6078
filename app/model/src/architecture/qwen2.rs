//! Qwen 2 and 2.5.

use super::{Description, Source};
use crate::{ModelError, RopePairs};

pub(super) fn describe(source: &Source<'_>) -> Result<Description, ModelError> {
    source.softmax_only()?;
    let mut model = source.standard(RopePairs::Halves)?;
    model.attentions().for_each(|(_, attention)| attention.qkv_bias = true);
    Ok(model)
}
