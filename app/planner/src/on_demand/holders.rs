//! Experts on demand on several devices: one keeps what each token needs, others have slots for the experts that they hold
//! for it, and it has some itself if there is memory left: what nobody else computes comes through those.

use std::collections::BTreeSet;

use potluck_plan::{
    BlockIndex, Bytes, ExpertHolder, ExpertId, ExpertPool, HolderPool, Plan, RemoteExperts, Stage, StageId,
};

use super::{SPARE, pinned};
use crate::experts::lenders;
use crate::experts::placement::{self, Candidate, Lender};
use crate::{Device, Room, placement as plans};

/// A plan for each device that has memory for what each token needs, with slots on all others that have memory for a
/// token's experts.
pub(super) fn plans<'a>(room: &'a Room<'_>) -> impl Iterator<Item = Plan> + 'a {
    room.whole_devices().filter_map(|hub| on_hub(room, hub))
}

/// Bytes that a second device lacks for a token's experts of each block, if one device has memory for everything else.
/// `None` if none has, or if there is no second one.
pub(super) fn missing(room: &Room<'_>) -> Option<Bytes> {
    let blocks = expert_blocks(room);
    let pool = room.shape.smallest_pool_for(&blocks)?;
    let needed = slot_bytes(room, &blocks, pool);
    let hubs = room.whole_devices().filter(|device| can_be_hub(room, device));
    let lacking = hubs.flat_map(|hub| {
        let free = lenders(room, hub).into_iter().map(|lender| usable(lender.free));
        free.map(|free| needed.saturating_sub(free)).collect::<Vec<_>>()
    });
    lacking.min()
}

fn can_be_hub(room: &Room<'_>, device: &Device) -> bool {
    room.shows(device, room.shape.all_blocks()) && pinned(room) <= device.budget
}

fn on_hub(room: &Room<'_>, hub: &Device) -> Option<Plan> {
    if !can_be_hub(room, hub) {
        return None;
    }
    let (blocks, all) = (expert_blocks(room), room.shape.all_blocks());
    let has_room = |lender: &Lender| room.shape.largest_pool_for(&blocks, usable(lender.free)).is_some();
    let lenders: Vec<Lender> = lenders(room, hub).into_iter().filter(has_room).collect();
    if lenders.is_empty() {
        return None;
    }
    let left = usable(hub.budget.saturating_sub(pinned(room)));
    let own = room.shape.largest_pool(all, left);
    if own.is_none() && all.iter().any(|block| room.keeps_experts(block) && room.shape.expert_count(block) > 0) {
        return None;
    }
    // Each gets experts in proportion to its slots, so that all miss alike: a miss costs more than a trip.
    let candidate = |peer, slots: Bytes| Candidate { peer, weight: slots.0 as f64 };
    let mut candidates: Vec<Candidate> =
        lenders.iter().map(|lender| candidate(lender.peer, usable(lender.free))).collect();
    candidates.extend(own.map(|_| candidate(hub.peer, left)));
    let replicas = usize::from(room.replicas).max(1);
    let holders = |block: BlockIndex, expert: ExpertId| -> Vec<ExpertHolder> {
        let peers = placement::holders(block, expert, &candidates, replicas);
        let named =
            peers.into_iter().map(|peer| if peer == hub.peer { ExpertHolder::Own } else { ExpertHolder::Peer(peer) });
        let mut named: Vec<ExpertHolder> = named.collect();
        if own.is_some() && !named.contains(&ExpertHolder::Own) {
            named.push(ExpertHolder::Own);
        }
        named
    };
    let remote = |block: &BlockIndex| {
        let holders = room.shape.block_experts(*block).into_iter().map(|expert| holders(*block, expert)).collect();
        RemoteExperts { block: *block, holders }
    };
    let remote: Vec<RemoteExperts> = blocks.iter().map(remote).collect();
    let stage = Stage { pool: own, remote, ..Stage::new(StageId(0), hub.peer, all) };
    let mut plan = plans::plan(room, vec![stage]);
    for lender in lenders {
        let held = plan.held_for_others(lender.peer);
        if let Some(pool) = room.shape.largest_pool_for(&held, usable(lender.free)) {
            let least = room.shape.smallest_pool_for(&held).map_or(1, |least| least.slots);
            let slots = pool.slots.min(plan.experts_held(lender.peer).max(least));
            plan.pools.push(HolderPool { peer: lender.peer, slots });
        }
    }
    (!plan.pools.is_empty()).then_some(plan)
}

fn slot_bytes(room: &Room<'_>, blocks: &BTreeSet<BlockIndex>, pool: ExpertPool) -> Bytes {
    room.shape.pooled_bytes(&potluck_plan::PooledExperts { blocks: blocks.clone(), slots: pool.slots })
}

/// What is left for slots: buffers are rounded up, and kernels need tables.
fn usable(free: Bytes) -> Bytes {
    free.saturating_sub(Bytes(free.0 / SPARE))
}

/// Blocks whose experts others may hold.
fn expert_blocks(room: &Room<'_>) -> BTreeSet<BlockIndex> {
    let given = room.shape.all_blocks().iter().filter(|block| !room.keeps_experts(*block));
    given.filter(|block| room.shape.expert_count(*block) > 0).collect()
}
