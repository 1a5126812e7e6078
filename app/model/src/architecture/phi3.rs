//! Phi 3 and 4. Its window limits the context, because no engine agrees with another on which blocks have it.

use super::{Description, Source};
use crate::{ModelError, RopePairs};

pub(super) fn describe(source: &Source<'_>) -> Result<Description, ModelError> {
    source.standard(RopePairs::Halves)
}
