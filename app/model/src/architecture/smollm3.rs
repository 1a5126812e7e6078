//! SmolLM 3.

use super::{Description, Source};
use crate::{ModelError, RopePairs};

/// Every fourth block does not rotate.
const PERIOD: usize = 4;

pub(super) fn describe(source: &Source<'_>) -> Result<Description, ModelError> {
    let mut model = source.standard(RopePairs::Adjacent)?;
    for (_, attention) in model.attentions().filter(|(number, _)| (number + 1) % PERIOD == 0) {
        attention.rope = attention.rope.none();
    }
    Ok(model)
}
