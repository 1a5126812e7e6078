//! Llama 4.

use super::{Description, Source};
use crate::{ModelError, QkNorm, RopePairs, Scoring, SharedSpec, Temperature};

/// Every fourth block sees the whole context and does not rotate; the others see chunks. No file says so.
const PERIOD: usize = 4;
const CHUNK: u32 = 8192;
/// Growth of the queries in blocks that do not rotate.
const TEMPERATURE: Temperature = Temperature { scale: 0.1, step: CHUNK, shift: 1 };
/// Experts of Maverick, whose queries and keys have no norm.
const MAVERICK: u32 = 128;

pub(super) fn describe(source: &Source<'_>) -> Result<Description, ModelError> {
    let keys = &source.keys;
    let mut model = source.standard(RopePairs::Adjacent)?;
    model.spec.context = keys.size("context_length", u32::MAX)?;
    let normalizes = model.experts().all(|(_, experts)| experts.count != MAVERICK);
    // Files of a fine-tune without chunks say so with a window of zero.
    let chunks = keys.optional_u32("attention.sliding_window")? != Some(0);
    for (number, attention) in model.attentions().filter(|_| chunks) {
        if (number + 1) % PERIOD == 0 {
            attention.rope = attention.rope.none();
            attention.rope.temperature = Some(TEMPERATURE);
        } else {
            attention.window = Some(CHUNK);
            attention.chunked = true;
        }
    }
    for (_, attention) in model.attentions().filter(|(_, attention)| normalizes && attention.rope.dims > 0) {
        // llama.cpp normalizes after the rotation, which does not change lengths.
        attention.qk_norm = QkNorm::Unit;
    }
    for (_, experts) in model.experts() {
        if experts.used != 1 {
            return Err(keys.bad("expert_used_count", experts.used, "only one expert per token is supported"));
        }
        experts.router.scoring = Scoring::Sigmoid;
        experts.router.normalize = false;
        experts.weigh_input = true;
        experts.shared = Some(SharedSpec { intermediate: experts.intermediate, gated: false });
    }
    Ok(model)
}
