//! Llama 1 to 3, Mistral, Mixtral, and whatever else is stored as `llama`.

use super::{Description, Source};
use crate::{ModelError, RopePairs};

pub(super) fn describe(source: &Source<'_>) -> Result<Description, ModelError> {
    source.softmax_only()?;
    source.standard(RopePairs::Adjacent)
}
