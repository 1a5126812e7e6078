//! The time until a plan can run: downloads and session starts (dynamic-partitioning.txt 5.2.2).
//!
//! The paper also adds penalties for loading to the objective (5.2.3, 5.2.4). Here standby plans and preloading do that
//! work instead: a plan is chosen by its token time alone, except for ties and [`crate::plan_keeping`].

use potluck_plan::{Plan, WeightUnit};

use crate::cost::{speed, stage_layers};
use crate::layers::{layer_of, prefix};
use crate::{Device, Room};

/// σ: the start of a session, milliseconds.
pub const SESSION_START_MILLIS: f64 = 1_000.0;
/// τ: a new plan must take less than this share of the active plan's token time.
pub const TAU: f64 = 0.95;

/// Milliseconds that the device of each stage needs to load its part of a plan, σ included.
pub fn load_millis(room: &Room<'_>, plan: &Plan) -> Vec<f64> {
    let stages = plan.stages.iter().map(|stage| {
        let layers = stage_layers(room, plan, stage);
        room.device(stage.peer).map_or(0.0, |device| {
            let sums = missing_millis(room, device);
            SESSION_START_MILLIS + sums[layers.end] - sums[layers.start]
        })
    });
    stages.collect()
}

/// Prefix sums over the layers: milliseconds to download what the device has neither on its GPU nor in its storage.
pub(crate) fn missing_millis(room: &Room<'_>, device: &Device) -> Vec<f64> {
    let count = room.layers.count();
    let mut here = vec![0u64; count];
    for unit in &device.cached {
        if let Some(bytes) = here.get_mut(layer_of(*unit, count)) {
            *bytes += room.shape.unit_bytes(*unit).0;
        }
    }
    let layers: Vec<(usize, u64)> = room.layers.iter().map(|layer| layer.weights.0).enumerate().collect();
    let rate = speed(device.download);
    prefix(
        &layers,
        |(index, weights)| {
            let held = index.checked_sub(1).is_some_and(|block| {
                device.holds.contains(&potluck_plan::BlockIndex(block as u16)) && *index + 1 < count
            });
            if held { 0.0 } else { weights.saturating_sub(here[*index]) as f64 / rate }
        },
        |a, b| a + b,
    )
}

/// All units of a range of layers on one device, experts included.
pub(crate) fn units(room: &Room<'_>, layers: crate::layers::LayerRange) -> Vec<WeightUnit> {
    let mut units = Vec::new();
    if layers.start == 0 {
        units.push(WeightUnit::Embedding);
    }
    for block in room.layers.blocks(layers).iter() {
        units.extend(room.shape.block_units(block));
        units.extend(room.shape.block_experts(block).into_iter().map(|expert| WeightUnit::Expert(block, expert)));
    }
    if layers.end == room.layers.count() {
        units.push(WeightUnit::LmHead);
    }
    units
}
