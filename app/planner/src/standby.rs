//! Standby plans: for each peer with work, who takes over when it leaves (the paper's shadow assignments,
//! dynamic-partitioning.txt 5.2.5). All other stages keep their blocks, so no weights have to be loaded after a loss.
//! The KV cache is rebuilt in all stages: the coordinator replays the conversation from its token log through the new
//! plan.

mod reserved;
mod search;

use std::collections::BTreeMap;

use potluck_plan::{BlockIndex, Bytes, ExpertHolder, ExpertId, PeerId, Plan, Stage, StageId, WeightUnit};

use crate::cost::predict;
use crate::initialization::units;
use crate::layers::LayerRange;
use crate::search::{Chain, Participation, Program, Search};
use crate::{Device, Prediction, Room, placement};

use reserved::{Reserved, layer_sizes};

pub use search::{HostLoss, StandbySearch, standby, standby_keeping};

/// Who takes over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum StandbyKind {
    /// Nothing has to be loaded: other holders have the experts already.
    Replica,
    /// Devices without work in the active plan.
    Spare,
    /// Devices with work, in memory that the active plan leaves free.
    Redundant,
}

/// A plan that survives the loss of one peer.
#[derive(Clone, Debug, PartialEq)]
pub struct Standby {
    /// The peer that was lost.
    pub lost: PeerId,
    /// The plan without it; the coordinator sets the epoch when it activates the plan.
    pub plan: Plan,
    /// Who takes over.
    pub kind: StandbyKind,
    /// Predicted time per token.
    pub prediction: Prediction,
    /// Units to preload, besides what the active plan and earlier standby plans need.
    pub preload: Vec<(PeerId, Vec<WeightUnit>)>,
}

/// A peer that no standby plan covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exposed {
    /// The peer.
    pub lost: PeerId,
    /// Bytes that the others would have to contribute in addition, at most.
    pub missing: Bytes,
}

/// Standby plans for the loss of each peer with work. The coordinator is among them only if the room survives its loss.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Standbys {
    /// Peers with a standby plan.
    pub covered: Vec<Standby>,
    /// Peers without one: a new plan has to be loaded first.
    pub exposed: Vec<Exposed>,
}

/// The plan without one peer, or the bytes that are missing for it.
fn without(room: &Room<'_>, plan: &Plan, lost: PeerId, reserved: &mut Reserved) -> Result<Standby, Bytes> {
    let mut takeover = Takeover {
        room,
        active: plan,
        lost,
        sizes: layer_sizes(room, plan),
        reserved,
        kind: StandbyKind::Replica,
        preload: BTreeMap::new(),
    };
    let mut stages = plan.stages.clone();
    takeover.replace_holders(&mut stages)?;
    while let Some(index) = stages.iter().position(|stage| stage.peer == lost) {
        takeover.replace_stage(&mut stages, index)?;
    }
    let Takeover { kind, preload, .. } = takeover;
    let plan = placement::plan(room, stages);
    let prediction = predict(room, &plan);
    Ok(Standby { lost, plan, kind, prediction, preload: preload.into_iter().collect() })
}

/// A standby plan in the making.
struct Takeover<'a> {
    room: &'a Room<'a>,
    active: &'a Plan,
    lost: PeerId,
    sizes: Vec<u64>,
    reserved: &'a mut Reserved,
    kind: StandbyKind,
    preload: BTreeMap<PeerId, Vec<WeightUnit>>,
}

impl Takeover<'_> {
    /// Devices that may take over: spares only, or all.
    fn helpers(&self, kind: StandbyKind) -> Vec<&Device> {
        let working = self.active.peers();
        let others = self.room.devices.iter().filter(|device| device.peer != self.lost);
        others.filter(|device| kind == StandbyKind::Redundant || !working.contains(&device.peer)).collect()
    }

    /// Stages of other peers continue with other holders of the experts.
    fn replace_holders(&mut self, stages: &mut [Stage]) -> Result<(), Bytes> {
        for stage in stages.iter_mut() {
            for remote in &mut stage.remote {
                for (expert, holders) in remote.holders.iter_mut().enumerate() {
                    holders.retain(|holder| *holder != ExpertHolder::Peer(self.lost));
                    if holders.is_empty() {
                        let expert = ExpertId(expert as u16);
                        holders.push(ExpertHolder::Peer(self.new_holder(remote.block, expert)?));
                    }
                }
            }
            stage.remote.retain(|remote| remote.holders.iter().any(|holders| *holders != [ExpertHolder::Own]));
        }
        Ok(())
    }

    fn new_holder(&mut self, block: BlockIndex, expert: ExpertId) -> Result<PeerId, Bytes> {
        let size = self.room.shape.blocks[usize::from(block.0)].expert_bytes().0;
        let mut max_left = 0;
        for kind in [StandbyKind::Spare, StandbyKind::Redundant] {
            let left = |device: &Device| self.reserved.left(self.room, &self.sizes, device);
            let helpers = self.helpers(kind);
            let holds = |device: &&&Device| self.reserved.has_expert(device.peer, block, expert);
            let holding = helpers.iter().find(holds).map(|device| device.peer);
            let roomiest = helpers.iter().max_by_key(|device| (left(device), device.peer));
            max_left = max_left.max(roomiest.map_or(0, |device| left(device)));
            let fitting = roomiest.filter(|device| left(device) >= size).map(|device| device.peer);
            if let Some(peer) = holding.or(fitting) {
                self.kind = self.kind.max(kind);
                if holding.is_none() {
                    self.reserved.add_expert(peer, block, expert);
                    self.preload.entry(peer).or_default().push(WeightUnit::Expert(block, expert));
                }
                return Ok(peer);
            }
        }
        Err(Bytes(size.saturating_sub(max_left).max(1)))
    }

    /// Partitions the lost stage over spares. If they have too little memory, its neighbours grow or others take a
    /// second stage.
    fn replace_stage(&mut self, stages: &mut Vec<Stage>, index: usize) -> Result<(), Bytes> {
        let stage = stages[index].clone();
        let (embeds, has_lm_head) = (index == 0, index + 1 == stages.len());
        let range = self.room.layers.range(stage.blocks, embeds, has_lm_head);
        let before = index.checked_sub(1).map(|before| stages[before].peer);
        let after = stages.get(index + 1).map(|stage| stage.peer);
        for kind in [StandbyKind::Spare, StandbyKind::Redundant] {
            let devices = self.helpers(kind);
            let ends = (before.unwrap_or(self.room.coordinator), after.unwrap_or(self.room.coordinator));
            let mut chain = Chain::between(self.room, &devices, range, ends);
            self.limit(&mut chain, &devices, range, (before, after));
            let worker = |peer: Option<PeerId>| chain.workers.iter().position(|worker| Some(worker.peer) == peer);
            let Some(partition) = best(self.room, &chain, worker(before), worker(after)) else { continue };
            let parts = placement::stages(self.room, &chain, &partition);
            self.kind = self.kind.max(kind);
            for part in &partition {
                let layers = LayerRange { start: range.start + part.start, end: range.start + part.end };
                self.take(chain.workers[part.worker].peer, layers, &stage);
            }
            splice(stages, index, &stage, parts);
            return Ok(());
        }
        let needed: u64 = self.sizes[range.start..range.end].iter().sum();
        let left = |device: &&Device| self.reserved.left(self.room, &self.sizes, device);
        let max_left = self.helpers(StandbyKind::Redundant).iter().map(left).max().unwrap_or(0);
        Err(Bytes(needed.saturating_sub(max_left).max(1)))
    }

    /// Workers have the memory that is left, layers that they hold already take none, and a neighbour starts no new
    /// session.
    fn limit(
        &self,
        chain: &mut Chain,
        devices: &[&Device],
        range: LayerRange,
        neighbours: (Option<PeerId>, Option<PeerId>),
    ) {
        for (worker, device) in chain.workers.iter_mut().zip(devices) {
            worker.capacity = self.reserved.left(self.room, &self.sizes, device);
            let mut sum = 0;
            for (index, layer) in (range.start..range.end).enumerate() {
                sum += if self.reserved.has(device.peer, layer) { 0 } else { self.sizes[layer] };
                worker.memory[index + 1] = sum;
            }
            if [neighbours.0, neighbours.1].contains(&Some(device.peer)) {
                worker.fixed = 0.0;
            }
        }
    }

    fn take(&mut self, peer: PeerId, layers: LayerRange, stage: &Stage) {
        let own = |unit: &WeightUnit| match unit {
            WeightUnit::Expert(block, expert) => stage.remote_experts(*block).is_none_or(|remote| {
                remote.holders.get(usize::from(expert.0)).is_some_and(|holders| holders.contains(&ExpertHolder::Own))
            }),
            _ => true,
        };
        let count = self.room.layers.count();
        let new = |unit: &WeightUnit| !self.reserved.has(peer, crate::layers::layer_of(*unit, count));
        let missing: Vec<WeightUnit> = units(self.room, layers).into_iter().filter(own).filter(new).collect();
        if !missing.is_empty() {
            self.preload.entry(peer).or_default().extend(missing);
        }
        self.reserved.add(peer, layers);
    }
}

/// The cheapest segments. A neighbour of the lost stage can only take the end next to its own blocks.
fn best(
    room: &Room<'_>,
    chain: &Chain,
    before: Option<usize>,
    after: Option<usize>,
) -> Option<Vec<crate::search::Segment>> {
    if chain.workers.is_empty() {
        return None;
    }
    let is_neighbour = |worker: &usize| Some(*worker) == before || Some(*worker) == after;
    let mut others: Vec<usize> = (0..chain.workers.len()).filter(|worker| !is_neighbour(worker)).collect();
    if before.is_none() && after.is_none() {
        return Search::new(room, chain, others, Participation::Any, room.effort.steps)
            .best(None)
            .map(|partition| partition.segments);
    }
    others.sort_by(|a, b| chain.workers[*a].cost[chain.layers].total_cmp(&chain.workers[*b].cost[chain.layers]));
    let mut program = Program::new(chain, None);
    let after = after.filter(|after| Some(*after) != before);
    let partitions = (0..others.len().max(1)).filter_map(|turn| {
        let (end, start) = others.split_at(turn.min(others.len()));
        let order: Vec<usize> = before.into_iter().chain(start.iter().chain(end).copied()).chain(after).collect();
        program.partition(&order, Participation::Any)
    });
    partitions.min_by(|a, b| a.millis.total_cmp(&b.millis)).map(|partition| partition.segments)
}

/// Replaces a stage by parts. A part on a neighbour's peer extends that neighbour.
fn splice(stages: &mut Vec<Stage>, index: usize, lost: &Stage, parts: Vec<Stage>) {
    let mut next = stages.iter().map(|stage| stage.id.0).max().unwrap_or(0) + 1;
    let parts = parts.into_iter().map(|mut part| {
        part.id = StageId(next);
        next += 1;
        part.remote = lost.remote.iter().filter(|remote| part.blocks.contains(remote.block)).cloned().collect();
        part
    });
    stages.splice(index..=index, parts.collect::<Vec<_>>());
    let mut merged: Vec<Stage> = Vec::with_capacity(stages.len());
    for stage in stages.drain(..) {
        match merged.last_mut().filter(|last| last.peer == stage.peer) {
            Some(last) => {
                // The stage that existed before keeps its id.
                last.id = last.id.min(stage.id);
                last.blocks.end = stage.blocks.end;
                last.remote.extend(stage.remote);
            }
            None => merged.push(stage),
        }
    }
    *stages = merged;
}
