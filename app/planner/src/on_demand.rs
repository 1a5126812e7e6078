//! Experts on demand: what a room does that has too little memory for its model. One device holds everything that each
//! token needs and slots for some experts, and loads the others from its storage (od-moe.txt 3.1).

use potluck_plan::{BlockShape, Bytes, Plan, Stage, StageId};

use crate::cost::{millis, speed};
use crate::prediction::StageCost;
use crate::{Device, Planned, Room, placement};

/// Part of the memory left for experts that stays free: buffers are rounded up, and kernels need tables.
const SPARE: u64 = 64;
/// Nobody waits longer than this for a token: loading cannot keep up.
const SLOWEST_TOKEN_MILLIS: f64 = 10_000.0;

/// The plan for a room in which the model does not fit: one device loads experts on demand. `None` if the model has no
/// experts, or no device has room for a token's.
pub fn on_demand(room: &Room<'_>) -> Option<Planned> {
    let plans = room.devices.iter().filter_map(|device| on_device(room, device));
    let described = plans.map(|plan| Planned::describe(room, plan));
    let key = |planned: &Planned| (planned.prediction.token_millis, !planned.plan.has_stage(room.coordinator));
    described.min_by(|a, b| key(a).0.total_cmp(&key(b).0).then(key(a).1.cmp(&key(b).1)))
}

/// Loading is quick enough for somebody to wait for it.
pub fn keeps_up(planned: &Planned) -> bool {
    planned.prediction.token_millis <= SLOWEST_TOKEN_MILLIS
}

/// One sentence: what keeps this room from loading experts on demand. `None` if the model has no experts, or nothing does.
pub fn why_not_on_demand(room: &Room<'_>) -> Option<String> {
    let blocks = room.shape.all_blocks();
    let pool = room.shape.pool_bytes(blocks, room.shape.smallest_pool(blocks)?);
    let needed = pinned(room).saturating_add(pool);
    let largest = room.devices.iter().map(|device| device.budget).max().unwrap_or_default();
    let missing = needed.saturating_sub(largest);
    if missing > Bytes::ZERO {
        let sentence = format!("With {missing} more on one device its experts could be loaded on demand.");
        return Some(sentence);
    }
    let found = on_demand(room).filter(|planned| !keeps_up(planned))?;
    let seconds = (found.prediction.token_millis / 1e3).ceil();
    Some(format!("Loading experts on demand cannot keep up: a token would take {seconds} seconds."))
}

/// The whole model on one device, with as many slots for experts as fit.
fn on_device(room: &Room<'_>, device: &Device) -> Option<Plan> {
    let blocks = room.shape.all_blocks();
    if !room.shows(device, blocks) {
        return None;
    }
    let left = device.budget.saturating_sub(pinned(room));
    let pool = room.shape.largest_pool(blocks, left.saturating_sub(Bytes(left.0 / SPARE)))?;
    let stage = Stage { pool: Some(pool), ..Stage::new(StageId(0), device.peer, blocks) };
    Some(placement::plan(room, vec![stage]))
}

/// Bytes of everything but the experts.
fn pinned(room: &Room<'_>) -> Bytes {
    let all = room.layers.memory(room.layers.all()).saturating_add(room.overhead);
    all.saturating_sub(experts(room))
}

/// Bytes of all experts.
fn experts(room: &Room<'_>) -> Bytes {
    room.shape.blocks.iter().map(|block| Bytes(block.expert_bytes().0 * u64::from(block.expert_count()))).sum()
}

/// Weight bytes of a stage's experts that have no slot.
pub(crate) fn bytes_without_slot(room: &Room<'_>, stage: &Stage) -> Bytes {
    let Some(pool) = stage.pool else { return Bytes::ZERO };
    let all: Bytes =
        blocks(room, stage).map(|block| Bytes(block.expert_bytes().0 * u64::from(block.expert_count()))).sum();
    all.saturating_sub(room.shape.pool_bytes(stage.blocks, pool))
}

/// Milliseconds that a token waits for experts on demand: the time to load those without a slot, and a further submit and
/// readback for each block's router and experts.
pub(crate) fn loading_millis(room: &Room<'_>, device: &Device, stage: &Stage) -> f64 {
    if stage.pool.is_none() {
        return 0.0;
    }
    millis(missed_bytes(room, stage) / speed(device.storage) + readback_millis(room, device, stage))
}

/// The rate at which a stage loads experts, bytes per millisecond, if a token took so many milliseconds of engine time. `None` if
/// it loads none. Recall is taken as predicted, so that the rate predicts the next token whatever recall really is.
pub fn storage_rate(room: &Room<'_>, stage: &Stage, cost: &StageCost, engine_millis: f64) -> Option<f64> {
    let (device, bytes) = (room.device(stage.peer)?, missed_bytes(room, stage));
    let computing = cost.session_millis + cost.compute_millis + readback_millis(room, device, stage);
    (bytes > 0.0 && engine_millis > computing).then(|| speed(bytes / (engine_millis - computing)))
}

/// Bytes of experts that a token loads: (1 − recall) × those that it uses. Recall is taken as the share of experts that have
/// a slot, as if all were used alike: measured, it is higher.
fn missed_bytes(room: &Room<'_>, stage: &Stage) -> f64 {
    let Some(pool) = stage.pool else { return 0.0 };
    let experts: u32 = blocks(room, stage).map(|block| u32::from(block.expert_count())).sum();
    let recall = (f64::from(pool.slots) / f64::from(experts.max(1))).min(1.0);
    let used: f64 =
        blocks(room, stage).map(|block| block.active_weights().saturating_sub(block.without_experts()).0 as f64).sum();
    (1.0 - recall) * used
}

fn readback_millis(room: &Room<'_>, device: &Device, stage: &Stage) -> f64 {
    let routed = blocks(room, stage).filter(|block| block.expert_count() > 0).count() as f64;
    2.0 * routed * millis(device.sync_millis)
}

fn blocks<'a>(room: &'a Room<'_>, stage: &Stage) -> impl Iterator<Item = &'a BlockShape> {
    stage.blocks.iter().filter_map(|index| room.shape.blocks.get(usize::from(index.0)))
}
