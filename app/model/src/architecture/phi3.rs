//! Phi 3 and 4. Its window limits the context, because no engine agrees with another on which blocks have it.

use super::{Description, Source};
use crate::{ModelError, RopePairs};

pub(super) fn describe(source: &Source<'_>) -> Result<Description, ModelError> {
    let keys = &source.keys;
    let model = source.standard(RopePairs::Halves)?;
    // Converters have lost the factors of models that were stretched. Without them and the factor of the scores answers go astray.
    let original = keys.nonzero_u32("rope.scaling.original_context_length")?;
    let stretched = original.is_some_and(|original| keys.u32("context_length").is_ok_and(|context| context > original));
    let scaled = source.tensors.has("rope_factors_short.weight") || keys.has("rope.scaling.factor");
    if stretched && !scaled {
        return Err(ModelError::MissingTensor("rope_factors_short.weight".to_owned()));
    }
    Ok(model)
}
