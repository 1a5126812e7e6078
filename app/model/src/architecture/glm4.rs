//! GLM 4 (0414).

use super::{Description, Source};
use crate::{ModelError, Norms, RopePairs};

pub(super) fn describe(source: &Source<'_>) -> Result<Description, ModelError> {
    without_sections(source)?;
    let mut model = source.standard(RopePairs::Adjacent)?;
    model.attentions().for_each(|(_, attention)| attention.norms = Norms::BOTH);
    model.dense().for_each(|dense| dense.norms = Norms::BOTH);
    Ok(model)
}

/// Refuses models that also see: their rotation has sections, which nobody has judged yet.
pub(super) fn without_sections(source: &Source<'_>) -> Result<(), ModelError> {
    let key = "rope.dimension_sections";
    let sections = if source.keys.has(key) { source.keys.metadata.u32s(&source.keys.key(key))? } else { Vec::new() };
    // llama.cpp: a model has sections if the first two are not zero.
    if sections.len() >= 2 && sections[..2].iter().all(|&section| section > 0) {
        return Err(source.keys.bad(key, format!("{sections:?}"), "only models without sections are supported"));
    }
    Ok(())
}
