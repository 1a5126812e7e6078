//! GLM 4 (0414).

use super::{Description, Source};
use crate::{ModelError, Norms, RopePairs};

pub(super) fn describe(source: &Source<'_>) -> Result<Description, ModelError> {
    let mut model = source.standard(rope_pairs(source, RopePairs::Adjacent)?)?;
    model.attentions().for_each(|(_, attention)| attention.norms = Norms::BOTH);
    model.dense().for_each(|dense| dense.norms = Norms::BOTH);
    Ok(model)
}

/// Models that also see have sections in their rotation and pair the halves of a head.
pub(super) fn rope_pairs(source: &Source<'_>, usual: RopePairs) -> Result<RopePairs, ModelError> {
    let key = "rope.dimension_sections";
    let sections = if source.keys.has(key) { source.keys.metadata.u32s(&source.keys.key(key))? } else { Vec::new() };
    // llama.cpp: a model has sections if the first two are not zero.
    let sees = sections.len() >= 2 && sections[..2].iter().all(|&section| section > 0);
    Ok(if sees { RopePairs::Halves } else { usual })
}
