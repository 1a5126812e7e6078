//! What devices' memory is reserved for, with the active plan and the standby plans found so far.

use std::collections::{BTreeMap, BTreeSet};

use potluck_plan::{BlockIndex, ExpertHolder, ExpertId, PeerId, Plan};

use crate::cost::stage_layers;
use crate::layers::LayerRange;
use crate::{Device, Room};

/// What each device's memory is reserved for.
#[derive(Clone, Debug)]
pub(super) struct Reserved {
    /// Layers of which a device has token mixers, norms and its own experts.
    layers: BTreeMap<PeerId, BTreeSet<usize>>,
    /// Experts that it holds for stages elsewhere.
    experts: BTreeMap<PeerId, BTreeSet<(BlockIndex, ExpertId)>>,
}

impl Reserved {
    pub fn of(room: &Room<'_>, plan: &Plan) -> Self {
        let mut reserved = Self { layers: BTreeMap::new(), experts: BTreeMap::new() };
        reserved.add_plan(room, plan);
        reserved
    }

    pub fn add_plan(&mut self, room: &Room<'_>, plan: &Plan) {
        for stage in &plan.stages {
            self.add(stage.peer, stage_layers(room, plan, stage));
            for remote in &stage.remote {
                for (expert, holders) in remote.holders.iter().enumerate() {
                    for holder in holders {
                        if let ExpertHolder::Peer(peer) = holder {
                            self.add_expert(*peer, remote.block, ExpertId(expert as u16));
                        }
                    }
                }
            }
        }
    }

    pub fn add(&mut self, peer: PeerId, layers: LayerRange) {
        self.layers.entry(peer).or_default().extend(layers.start..layers.end);
    }

    pub fn add_expert(&mut self, peer: PeerId, block: BlockIndex, expert: ExpertId) {
        self.experts.entry(peer).or_default().insert((block, expert));
    }

    pub fn has(&self, peer: PeerId, layer: usize) -> bool {
        self.layers.get(&peer).is_some_and(|layers| layers.contains(&layer))
    }

    pub fn has_expert(&self, peer: PeerId, block: BlockIndex, expert: ExpertId) -> bool {
        self.experts.get(&peer).is_some_and(|experts| experts.contains(&(block, expert)))
    }

    /// Bytes that are free on a device.
    pub fn left(&self, room: &Room<'_>, sizes: &[u64], device: &Device) -> u64 {
        usable(room, device).saturating_sub(self.taken(room, sizes, device.peer))
    }

    /// Bytes reserved on a peer.
    pub fn taken(&self, room: &Room<'_>, sizes: &[u64], peer: PeerId) -> u64 {
        let layers = self.layers.get(&peer).into_iter().flatten().map(|layer| sizes[*layer]);
        let experts = self.experts.get(&peer).into_iter().flatten();
        let experts = experts.map(|(block, _)| room.shape.blocks[usize::from(block.0)].expert_bytes().0);
        let all: u64 = layers.chain(experts).sum();
        all.saturating_sub(room.layers.tied_of(|layer| self.has(peer, layer)).0)
    }
}

/// Bytes of a device for weights and KV cache.
pub(super) fn usable(room: &Room<'_>, device: &Device) -> u64 {
    device.budget.saturating_sub(room.overhead).0
}

/// Bytes of each layer on its stage's own device under a plan: without experts that live elsewhere.
pub(super) fn layer_sizes(room: &Room<'_>, plan: &Plan) -> Vec<u64> {
    let mut sizes: Vec<u64> = room.layers.iter().map(|layer| layer.memory.0).collect();
    for remote in plan.stages.iter().flat_map(|stage| &stage.remote) {
        let expert = room.shape.blocks[usize::from(remote.block.0)].expert_bytes().0;
        let away = remote.holders.iter().filter(|holders| !holders.contains(&ExpertHolder::Own)).count() as u64;
        let size = &mut sizes[usize::from(remote.block.0) + 1];
        *size = size.saturating_sub(expert * away);
    }
    sizes
}
