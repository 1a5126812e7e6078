//! The paper's hub and workers as a room for the planner, and what the planner predicts for it.

use std::collections::BTreeMap;

use potluck_plan::{
    Arithmetic, BlockIndex, BlockShape, Bytes, Cuts, ExpertHolder, ExpertId, FeedForwardShape, KvCacheType, ModelId,
    ModelShape, PeerId, Plan, PlanEpoch, RemoteExperts, Stage, StageId, WireType,
};
use potluck_planner::experts::{Candidate, holders};
use potluck_planner::{AccessLink, Device, Effort, Hedging, Layers, Link, Links, Room, Sharing, predict};

/// A hub, and workers with all experts.
#[derive(Clone, Copy, Debug)]
pub struct Pool {
    /// Blocks with experts.
    pub blocks: usize,
    /// Workers.
    pub workers: u8,
    /// Holders of each expert.
    pub replicas: usize,
    /// Milliseconds of the hub for a block.
    pub attention_millis: f64,
    /// Milliseconds of a worker for a call, readback included.
    pub expert_millis: f64,
    /// Milliseconds of a round trip between hub and worker.
    pub round_trip_millis: f64,
    /// Spread of answers: the standard deviation of their logarithm.
    pub sigma: f64,
}

/// Experts of a block of Qwen3-30B-A3B, and how many a token uses.
const EXPERTS: (u16, u16) = (128, 8);
/// Bytes of a token mixer. Only its time counts here.
const MIXER: f64 = 1e6;
/// A speed at which work takes no time.
const INSTANT: f64 = 1e12;

const HUB: PeerId = PeerId([0; 16]);

impl Pool {
    /// Milliseconds a token that the planner predicts.
    pub fn predicted(&self) -> f64 {
        let shape = self.shape();
        let layers = Layers::from_shape(&shape, 1, WireType::F32);
        let (devices, links) = (self.devices(), self.links());
        let room = Room {
            shape: &shape,
            layers: &layers,
            devices: &devices,
            links: &links,
            coordinator: HUB,
            sharing: Sharing::Fastest,
            ends: Default::default(),
            replicas: potluck_plan::Pooling::REPLICAS,
            context: 1,
            overhead: Bytes::ZERO,
            wire: WireType::F32,
            expert_wire: WireType::F32,
            arithmetic: Arithmetic::Exact,
            epoch: PlanEpoch(1),
            hedging: Hedging::default(),
            effort: Effort::default(),
        };
        predict(&room, &self.plan(&shape)).token_millis
    }

    fn shape(&self) -> ModelShape {
        let (count, used) = EXPERTS;
        // An expert of one byte: calls take what `expert_millis` says.
        let feed_forward =
            FeedForwardShape::Experts { router: Bytes::ZERO, expert: Bytes(1), count, used, shared: Bytes::ZERO };
        let (token_mixer, kv_cache_per_position, state) = (Bytes(MIXER as u64), Bytes::ZERO, Bytes::ZERO);
        let block = BlockShape { token_mixer, kv_cache_per_position, kv_buffers: 2, state, feed_forward };
        ModelShape {
            model: ModelId([0; 32]),
            hidden: 2048,
            vocabulary: 1,
            embedding: Bytes::ZERO,
            lm_head: Bytes::ZERO,
            tied_lm_head: false,
            cuts: Cuts::Anywhere,
            kv_cache: KvCacheType::F32,
            blocks: vec![block; self.blocks],
        }
    }

    fn workers(&self) -> impl Iterator<Item = PeerId> {
        (1..=self.workers).map(|id| PeerId([id; 16]))
    }

    fn devices(&self) -> Vec<Device> {
        let mut hub = Device::declared(HUB, Bytes(u64::MAX), 1.0, 0.0);
        hub.speed.decode = MIXER / self.attention_millis;
        let worker = |peer| {
            let mut worker = Device::declared(peer, Bytes(u64::MAX), 1.0, 0.0);
            (worker.speed.decode, worker.session_millis) = (INSTANT, self.expert_millis);
            worker
        };
        std::iter::once(hub).chain(self.workers().map(worker)).collect()
    }

    fn links(&self) -> Links {
        let mut links = Links::default();
        let one_way = Link { latency_millis: self.round_trip_millis / 2.0, bandwidth: f64::INFINITY };
        for peer in self.workers() {
            links.set_access(peer, AccessLink { up: one_way, down: one_way });
            links.set_spread(peer, self.sigma);
        }
        links
    }

    fn plan(&self, shape: &ModelShape) -> Plan {
        let candidates: Vec<Candidate> = self.workers().map(|peer| Candidate { peer, weight: 1.0 }).collect();
        let of_expert = |block: BlockIndex, expert: ExpertId| {
            let chosen = holders(block, expert, &candidates, self.replicas);
            chosen.into_iter().map(ExpertHolder::Peer).collect()
        };
        let remote = |block: BlockIndex| RemoteExperts {
            block,
            holders: shape.block_experts(block).into_iter().map(|expert| of_expert(block, expert)).collect(),
        };
        let mut stage = Stage::new(StageId(0), HUB, shape.all_blocks());
        stage.remote = shape.all_blocks().iter().map(remote).collect();
        Plan {
            epoch: PlanEpoch(1),
            model: shape.model,
            stages: vec![stage],
            pools: Vec::new(),
            wire: WireType::F32,
            expert_wire: WireType::F32,
            arithmetic: Arithmetic::Exact,
            context: 1,
            kv_cache: shape.kv_cache,
        }
    }

    /// How many distinct workers a token's experts of one block are on, on average.
    pub fn workers_asked(&self) -> f64 {
        let shape = self.shape();
        let plan = self.plan(&shape);
        let mut held: BTreeMap<PeerId, usize> = BTreeMap::new();
        for holders in &plan.stages[0].remote[0].holders {
            if let Some(ExpertHolder::Peer(peer)) = holders.first() {
                *held.entry(*peer).or_default() += 1;
            }
        }
        let (count, used) = EXPERTS;
        let missed = |held: usize| {
            (0..usize::from(used))
                .map(|drawn| (usize::from(count) - held - drawn) as f64 / (usize::from(count) - drawn) as f64)
                .product::<f64>()
        };
        held.values().map(|held| 1.0 - missed(*held)).sum()
    }
}
