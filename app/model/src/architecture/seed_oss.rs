//! Seed-OSS.

use super::{Description, Source};
use crate::{ModelError, RopePairs, TensorRole};

pub(super) fn describe(source: &Source<'_>) -> Result<Description, ModelError> {
    let mut model = source.standard(RopePairs::Halves)?;
    model.names.push((TensorRole::FeedForwardNorm, "post_attention_norm.weight"));
    Ok(model)
}
