//! Gemma 2.

use super::{Description, Source};
use crate::{Activation, ModelError, Norms, RopePairs};

/// Window of files that name none, and its period in blocks.
const WINDOW: u32 = 4096;
const PERIOD: u32 = 2;
/// Caps of files that name none.
const CAPS: (f32, f32) = (50.0, 30.0);
/// Blocks of the 27B model, which divides its scores by the root of the width per head.
const LARGEST: usize = 46;

pub(super) fn describe(source: &Source<'_>) -> Result<Description, ModelError> {
    let keys = &source.keys;
    let mut model = source.standard(RopePairs::Halves)?;
    model.set_windows(source, PERIOD)?;
    if source.windows(1, PERIOD)?.is_none() {
        model.attentions().filter(|(number, _)| number % 2 == 0).for_each(|(_, a)| a.window = Some(WINDOW));
    }
    let score_cap = keys.nonzero_f32("attn_logit_softcapping")?.unwrap_or(CAPS.0);
    model.attentions().for_each(|(_, attention)| attention.score_cap = score_cap);
    model.spec.scales.logit_cap = keys.nonzero_f32("final_logit_softcapping")?.unwrap_or(CAPS.1);
    gemma(&mut model, LARGEST);
    Ok(model)
}

/// What all Gemmas share: scaled embeddings, norms before and after each half, GeGLU.
pub(super) fn gemma(model: &mut Description, largest: usize) {
    let (hidden, blocks) = (model.spec.hidden, model.spec.blocks.len());
    model.spec.scales.embedding = (hidden as f32).sqrt();
    for (_, attention) in model.attentions() {
        attention.norms = Norms::BOTH;
        if blocks == largest {
            attention.scale = 1.0 / ((hidden / attention.heads) as f32).sqrt();
        }
    }
    for dense in model.dense() {
        dense.norms = Norms::BOTH;
        dense.activation = Activation::GeGlu;
    }
}
