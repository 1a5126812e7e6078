//! What it costs to bring a plan up: downloads and sessions, weighed against time a token
//! (dynamic-partitioning.txt 5.2.2–5.2.4). All powers are of microseconds, as in the paper.

use potluck_plan::{Plan, WeightUnit};

use crate::cost::{speed, stage_layers};
use crate::layers::{layer_of, prefix};
use crate::{Device, Loading, Room};

/// σ: a session takes this long to start, milliseconds.
pub const SESSION_START_MILLIS: f64 = 1_000.0;
/// Exponent while a plan runs.
pub const GAMMA: f64 = 0.75;
/// Exponent while nothing runs.
pub const GAMMA_BLOCKING: f64 = 0.9;
/// α: share of the slowest download; the rest counts all of them, as on a shared line.
pub const ALPHA: f64 = 0.8;
/// τ: a new plan must be better than this share of the active one's time.
pub const TAU: f64 = 0.95;
/// Milliseconds after a switch at which loading counts half.
pub const DECAY_MIDDLE_MILLIS: f64 = 60_000.0;
/// Milliseconds of steepness of the decay.
pub const DECAY_SHARPNESS_MILLIS: f64 = DECAY_MIDDLE_MILLIS / 5.0;

/// ρ(t): how much loading still counts `since` milliseconds after the last switch.
pub fn decay(since_millis: f64) -> f64 {
    1.0 - 1.0 / (1.0 + (-(since_millis - DECAY_MIDDLE_MILLIS) / DECAY_SHARPNESS_MILLIS).exp())
}

/// The penalty in milliseconds for a device that loads for `load_millis` (σ included).
pub fn penalty_millis(load_millis: f64, loading: Loading) -> f64 {
    let micros = load_millis.max(0.0) * 1e3;
    let penalty = match loading {
        Loading::Ignored => 0.0,
        Loading::Blocking => micros.powf(GAMMA_BLOCKING),
        Loading::Background { since_millis } => micros.powf(GAMMA) * decay(since_millis),
    };
    penalty / 1e3
}

/// Penalties of several devices together: α of the largest and the rest of their sum.
pub fn together(penalties: &[f64]) -> f64 {
    let largest = penalties.iter().copied().fold(0.0, f64::max);
    ALPHA * largest + (1.0 - ALPHA) * penalties.iter().sum::<f64>()
}

/// True if a plan with this time a token and this penalty should replace one that takes `active_millis` a token.
pub fn is_accepted(token_millis: f64, penalty_millis: f64, active_millis: f64) -> bool {
    token_millis + penalty_millis < TAU * active_millis
}

/// Milliseconds each stage's device of a plan would load, σ included.
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

/// What loading a plan counts in all, for [`is_accepted`].
pub fn plan_penalty_millis(room: &Room<'_>, plan: &Plan) -> f64 {
    let penalties: Vec<f64> =
        load_millis(room, plan).into_iter().map(|millis| penalty_millis(millis, room.loading)).collect();
    together(&penalties)
}

/// Prefix sums over the layers of the milliseconds a device would download what it has neither on its GPU nor its disk.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loading_counts_half_after_a_minute_and_nothing_in_the_end() {
        assert!((decay(DECAY_MIDDLE_MILLIS) - 0.5).abs() < 1e-12);
        assert!(decay(0.0) > 0.99, "{}", decay(0.0));
        assert!(decay(300_000.0) < 1e-6, "{}", decay(300_000.0));
        // One sharpness after the middle: 1 / (1 + e).
        let expected = 1.0 / (1.0 + std::f64::consts::E);
        assert!((decay(72_000.0) - expected).abs() < 1e-12);
    }

    #[test]
    fn penalties_are_powers_of_microseconds() {
        // σ alone is a million microseconds: 10^6^0.75 = 10^4.5 and 10^6^0.9 = 10^5.4.
        let background = penalty_millis(1_000.0, Loading::Background { since_millis: DECAY_MIDDLE_MILLIS });
        assert!((background - 10f64.powf(4.5) / 2e3).abs() < 1e-9, "{background}");
        let blocking = penalty_millis(1_000.0, Loading::Blocking);
        assert!((blocking - 10f64.powf(5.4) / 1e3).abs() < 1e-9, "{blocking}");
        assert_eq!(penalty_millis(1_000.0, Loading::Ignored), 0.0);
    }

    #[test]
    fn the_slowest_download_counts_most() {
        assert!((together(&[10.0, 20.0]) - (0.8 * 20.0 + 0.2 * 30.0)).abs() < 1e-12);
        assert_eq!(together(&[]), 0.0);
    }

    #[test]
    fn a_plan_that_is_hardly_better_is_not_worth_a_switch() {
        assert!(!is_accepted(96.0, 0.0, 100.0));
        assert!(is_accepted(94.0, 0.0, 100.0));
        assert!(!is_accepted(80.0, 20.0, 100.0), "what it costs to load counts too");
    }
}
