//! From partitions to plans.

use potluck_plan::{Bytes, ExpertHolder, PeerId, Plan, Stage, StageId};

use crate::Room;
use crate::cost::stage_layers;
use crate::layers::LayerRange;
use crate::on_demand::bytes_without_slot;
use crate::search::{Chain, Segment};

/// Stages of a chain's segments, in order, and of what follows the chain.
pub(crate) fn stages(room: &Room<'_>, chain: &Chain, segments: &[Segment]) -> Vec<Stage> {
    let stage = |(index, segment): (usize, &Segment)| {
        let layers = LayerRange { start: chain.range.start + segment.start, end: chain.range.start + segment.end };
        Stage::new(StageId(index as u16), chain.workers[segment.worker].peer, room.layers.blocks(layers))
    };
    let mut stages: Vec<Stage> = segments.iter().enumerate().map(stage).collect();
    if let (Some(tail), Some(first)) = (chain.tail, chain.first) {
        let (peer, blocks) = (chain.workers[first].peer, room.layers.blocks(tail));
        match stages.last_mut().filter(|last| last.peer == peer) {
            Some(last) => last.blocks.end = blocks.end,
            None => stages.push(Stage::new(StageId(stages.len() as u16), peer, blocks)),
        }
    }
    stages
}

pub(crate) fn plan(room: &Room<'_>, stages: Vec<Stage>) -> Plan {
    let (model, kv_cache) = (room.shape.model, room.shape.kv_cache);
    Plan {
        epoch: room.epoch,
        model,
        stages,
        pools: Vec::new(),
        wire: room.wire,
        expert_wire: room.expert_wire,
        arithmetic: room.arithmetic,
        context: room.context,
        kv_cache,
    }
}

/// Bytes of a stage's experts that live elsewhere only.
pub(crate) fn remote_bytes(room: &Room<'_>, stage: &Stage) -> Bytes {
    let away = stage.remote.iter().flat_map(|remote| {
        let size = room.shape.blocks[usize::from(remote.block.0)].expert_bytes();
        remote.holders.iter().filter(|holders| !holders.contains(&ExpertHolder::Own)).map(move |_| size)
    });
    away.sum()
}

/// Bytes of all stages of a peer with their KV cache, without experts that live elsewhere only.
pub(crate) fn memory_of_peer(room: &Room<'_>, plan: &Plan, peer: PeerId) -> Bytes {
    let stages = || plan.stages.iter().filter(|stage| stage.peer == peer);
    let bytes = |stage: &Stage| {
        let LayerRange { start, end } = stage_layers(room, plan, stage);
        // A tied LM head counts once for the peer, not for the stage.
        let layers = (start..end).map(|layer| room.layers.memory(LayerRange { start: layer, end: layer + 1 }));
        layers.sum::<Bytes>().saturating_sub(remote_bytes(room, stage))
    };
    let ranges = || stages().map(|stage| stage_layers(room, plan, stage));
    let has = |layer: usize| ranges().any(|range| (range.start..range.end).contains(&layer));
    stages().map(bytes).sum::<Bytes>().saturating_sub(room.layers.tied_of(has))
}

/// Weight bytes of a stage on its own device.
pub(crate) fn stage_weights(room: &Room<'_>, plan: &Plan, stage: &Stage) -> Bytes {
    let away = remote_bytes(room, stage).saturating_add(bytes_without_slot(room, stage));
    room.layers.weights(stage_layers(room, plan, stage)).saturating_sub(away)
}
