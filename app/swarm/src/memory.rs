//! Memory that weight units take on a device.

use potluck_plan::{BlockRange, Bytes, ModelShape, PeerId, Plan, WeightUnit};

/// Bytes of a device's slots for experts on demand, of its own stages and for others.
pub(crate) fn pool_bytes(plan: &Plan, shape: &ModelShape, peer: PeerId) -> Bytes {
    shape.pooled_bytes(&plan.pool_for(peer, shape))
}

/// Bytes of weights and of the KV cache and states that belong to them, for `context` positions.
pub fn resident_bytes(shape: &ModelShape, units: &[WeightUnit], context: u32) -> Bytes {
    let both_ends = units.contains(&WeightUnit::Embedding) && units.contains(&WeightUnit::LmHead);
    let one_table = shape.tied_lm_head && both_ends;
    let bytes = |unit: &WeightUnit| match unit {
        WeightUnit::LmHead if one_table => Bytes::ZERO,
        WeightUnit::TokenMixer(block) => {
            let blocks = BlockRange { start: block.0, end: block.0.saturating_add(1) };
            shape.unit_bytes(*unit).saturating_add(shape.kv_cache_bytes(blocks, context))
        }
        unit => shape.unit_bytes(*unit),
    };
    units.iter().map(bytes).sum()
}
