//! Experts on demand: what a room does that has too little memory for its model. One device holds everything that each
//! token needs. Slots for some of the experts are on it, on others, or on both, and the other experts are loaded from
//! storage (od-moe.txt 3.1).

mod holders;

use potluck_plan::{BlockShape, Bytes, ExpertHolder, Plan, Stage, StageId};

use crate::cost::{millis, speed};
use crate::prediction::StageCost;
use crate::trips::Misses;
use crate::{Device, Planned, Room, Sharing, placement};

/// Part of the memory left for experts that stays free: buffers are rounded up, and kernels need tables.
const SPARE: u64 = 64;
/// Nobody waits longer than this for a token: loading cannot keep up.
const SLOWEST_TOKEN_MILLIS: f64 = 10_000.0;

/// The plan for a room in which the model does not fit: one device loads experts on demand, or those that hold them for
/// it do. `None` if the model has no experts, or no device has room for a token's.
pub fn on_demand(room: &Room<'_>) -> Option<Planned> {
    let alone = room.whole_devices().filter_map(|device| on_device(room, device));
    let described = alone.chain(holders::plans(room)).map(|plan| Planned::describe(room, plan));
    let alone_last = |plan: &Plan| room.sharing != Sharing::Fastest && plan.pools.is_empty();
    let key = |planned: &Planned| (alone_last(&planned.plan), planned.prediction.token_millis);
    let is_elsewhere = |planned: &Planned| !planned.plan.has_stage(room.coordinator);
    described.min_by(|a, b| {
        let (first, second) = (key(a), key(b));
        let order = first.0.cmp(&second.0).then(first.1.total_cmp(&second.1));
        order.then(is_elsewhere(a).cmp(&is_elsewhere(b)))
    })
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
    let largest = room.whole_devices().map(|device| device.budget).max().unwrap_or_default();
    let missing = needed.saturating_sub(largest);
    let elsewhere = holders::missing(room);
    if missing > Bytes::ZERO && elsewhere.is_none_or(|bytes| bytes > Bytes::ZERO) {
        return Some(match elsewhere.filter(|bytes| *bytes < missing) {
            Some(bytes) => {
                format!("With {bytes} more on another device it could load experts on demand for the others.")
            }
            None => format!("With {missing} more on one device its experts could be loaded on demand."),
        });
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
pub(crate) fn pinned(room: &Room<'_>) -> Bytes {
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

/// The same of a holder whose calls of so many bytes of experts took so many milliseconds of its engine. `None` if it has
/// them all on its GPU, or if that leaves no time for loading.
pub fn holder_storage_rate(
    room: &Room<'_>,
    plan: &Plan,
    peer: potluck_plan::PeerId,
    bytes: f64,
    engine_millis: f64,
) -> Option<f64> {
    let (device, pool) = (room.device(peer)?, plan.holder_pool(peer)?);
    let loaded = missed(pool.slots, plan.experts_held(peer)) * bytes;
    let computing = millis(device.session_millis) + bytes / speed(device.speed.decode);
    (loaded > 0.0 && engine_millis > computing).then(|| speed(loaded / (engine_millis - computing)))
}

/// Bytes of experts that a token loads: (1 − recall) × those that it uses. Recall is taken as the share of experts that have
/// a slot, as if all were used alike: measured, it is higher.
fn missed_bytes(room: &Room<'_>, stage: &Stage) -> f64 {
    let Some(pool) = stage.pool else { return 0.0 };
    let used: f64 =
        alone(room, stage).map(|block| block.active_weights().saturating_sub(block.without_experts()).0 as f64).sum();
    missed(pool.slots, stage_experts(room, stage)) * used
}

/// The share of experts without a slot.
fn missed(slots: u32, experts: u32) -> f64 {
    1.0 - (f64::from(slots) / f64::from(experts.max(1))).min(1.0)
}

fn stage_experts(room: &Room<'_>, stage: &Stage) -> u32 {
    blocks(room, stage).map(|block| u32::from(block.expert_count())).sum()
}

/// What the holders of a stage's experts have to load first, as a share.
pub(crate) fn misses(room: &Room<'_>, plan: &Plan, stage: &Stage) -> Misses {
    let of = |peer, slots| (ExpertHolder::Peer(peer), missed(slots, plan.experts_held(peer)));
    let own = stage.pool.map(|pool| {
        let first = |remote: &potluck_plan::RemoteExperts| {
            remote.holders.iter().filter(|holders| holders.first() == Some(&ExpertHolder::Own)).count()
        };
        let elsewhere: usize = stage.remote.iter().map(|remote| remote.holders.len() - first(remote)).sum();
        (ExpertHolder::Own, missed(pool.slots, stage_experts(room, stage).saturating_sub(elsewhere as u32)))
    });
    plan.pools.iter().map(|pool| of(pool.peer, pool.slots)).chain(own).collect()
}

fn readback_millis(room: &Room<'_>, device: &Device, stage: &Stage) -> f64 {
    let routed = alone(room, stage).filter(|block| block.expert_count() > 0).count() as f64;
    2.0 * routed * millis(device.sync_millis)
}

/// The blocks whose experts are all the stage's own: what others hold is counted as round trips.
fn alone<'a>(room: &'a Room<'_>, stage: &'a Stage) -> impl Iterator<Item = &'a BlockShape> {
    let own = stage.blocks.iter().filter(|block| stage.remote_experts(*block).is_none());
    own.filter_map(|index| room.shape.blocks.get(usize::from(index.0)))
}

fn blocks<'a>(room: &'a Room<'_>, stage: &Stage) -> impl Iterator<Item = &'a BlockShape> {
    stage.blocks.iter().filter_map(|index| room.shape.blocks.get(usize::from(index.0)))
}
