//! Gemma 3.

use super::gemma2::gemma;
use super::{Description, Source};
use crate::{ModelError, QkNorm, RopePairs, RopeSpec};

/// One block in six sees the whole context.
const PERIOD: u32 = 6;
/// Base of the rotation in blocks with a window, in files that name none.
const WINDOW_BASE: f32 = 10_000.0;
/// Blocks of the 27B model.
const LARGEST: usize = 62;

pub(super) fn describe(source: &Source<'_>) -> Result<Description, ModelError> {
    let keys = &source.keys;
    let mut model = source.standard(RopePairs::Halves)?;
    model.set_windows(source, PERIOD)?;
    let base = keys.nonzero_f32_of("rope.freq_base_swa", "rope.local.freq_base")?.unwrap_or(WINDOW_BASE);
    let base = keys.positive("rope.freq_base_swa", base)?;
    for (_, attention) in model.attentions() {
        attention.qk_norm = QkNorm::Head;
        if attention.window.is_some() {
            attention.rope = RopeSpec::new(attention.rope.dims, base, RopePairs::Halves);
        }
    }
    model.spec.scales.logit_cap = keys.nonzero_f32("final_logit_softcapping")?.unwrap_or(0.0);
    gemma(&mut model, LARGEST);
    Ok(model)
}
