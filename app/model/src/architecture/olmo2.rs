//! OLMo 2 and OLMo 3.

use super::{Description, Source};
use crate::{ModelError, Norms, QkNorm, RopePairs, RopeSpec};

/// One block in four sees the whole context, in files with a window.
const PERIOD: u32 = 4;

pub(super) fn describe(source: &Source<'_>) -> Result<Description, ModelError> {
    let mut model = source.standard(RopePairs::Halves)?;
    model.set_windows(source, PERIOD)?;
    for (_, attention) in model.attentions() {
        attention.norms = Norms::AFTER;
        attention.qk_norm = QkNorm::Row;
        if attention.window.is_some() {
            // Blocks with a window rotate without scaling.
            attention.rope = RopeSpec::new(attention.rope.dims, attention.rope.base, RopePairs::Halves);
        }
    }
    model.dense().for_each(|dense| dense.norms = Norms::AFTER);
    Ok(model)
}
