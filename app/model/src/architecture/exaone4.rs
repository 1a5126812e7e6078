//! EXAONE 4.

use super::{Description, Source};
use crate::{ModelError, Norms, QkNorm, RopePairs};

/// One block in four sees the whole context, in the larger model.
const PERIOD: u32 = 4;
/// Blocks of the model with windows.
const LARGEST: usize = 64;
/// Its window, in files that name none.
const WINDOW: u32 = 4096;

pub(super) fn describe(source: &Source<'_>) -> Result<Description, ModelError> {
    let mut model = source.standard(RopePairs::Halves)?;
    if model.spec.blocks.len() == LARGEST {
        let pattern = source.keys.pattern("attention.sliding_window_pattern", LARGEST, PERIOD)?;
        let window = source.keys.nonzero_u32("attention.sliding_window")?.unwrap_or(WINDOW);
        model.spec.context = source.keys.size("context_length", u32::MAX)?;
        for (number, attention) in model.attentions() {
            attention.window = pattern[number].then_some(window);
            if !pattern[number] {
                attention.rope = attention.rope.none();
            }
        }
    }
    for (_, attention) in model.attentions() {
        attention.norms = Norms::AFTER;
        attention.qk_norm = QkNorm::Head;
    }
    model.dense().for_each(|dense| dense.norms = Norms::AFTER);
    Ok(model)
}
