//! InternLM 2 and 2.5.

use super::{Description, Source};
use crate::{ModelError, RopePairs};

pub(super) fn describe(source: &Source<'_>) -> Result<Description, ModelError> {
    source.standard(RopePairs::Adjacent)
}
