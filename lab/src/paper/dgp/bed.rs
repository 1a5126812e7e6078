//! Rooms of given speeds, for the cost model alone: nothing here runs on devices.
//!
//! A plan is made without a measure and then timed with all of them, as in dynamic-partitioning.txt 7.4 and 7.5.

use potluck_plan::{
    Arithmetic, BlockRange, BlockShape, Bytes, Cuts, FeedForwardShape, KvCacheType, ModelId, ModelShape, PeerId, Plan,
    PlanEpoch, Stage, StageId, WireType,
};
use potluck_planner::{
    AccessLink, Device, Effort, Hedging, Layers, Link, Links, Prediction, Room, Sharing, Speed, plan, predict,
};

/// Coordinator of all rooms; it contributes nothing.
const SERVER: PeerId = PeerId([0; 16]);

/// A device of a test bed.
#[derive(Clone, Copy, Debug)]
pub struct Bench {
    /// Its name in tables.
    pub name: &'static str,
    /// Bytes a millisecond.
    pub speed: f64,
    /// Bytes of weights that it can hold.
    pub budget: u64,
    /// Milliseconds of a session besides its layers.
    pub session_millis: f64,
    /// One way, milliseconds.
    pub latency: f64,
    /// Bytes a millisecond, to and from the relay.
    pub bandwidth: (f64, f64),
}

/// What the planner must not know.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Without {
    /// It knows everything.
    Nothing,
    /// All devices count with the mean speed.
    Speed,
    /// Sessions take no time.
    Session,
    /// Messages take their transfer time only.
    Latency,
    /// Transfers take no time.
    Bandwidth,
}

/// A model and devices.
#[derive(Clone, Debug)]
pub struct TestBed {
    shape: ModelShape,
    layers: Layers,
    benches: Vec<Bench>,
}

/// A plan that was made without a measure.
#[derive(Clone, Debug)]
pub struct Found {
    /// What it was thought to take, milliseconds a token.
    pub thought: f64,
    /// What it takes.
    pub prediction: Prediction,
    /// Who has how many blocks.
    pub assignment: String,
}

impl TestBed {
    /// A bed.
    pub fn new(shape: ModelShape, benches: Vec<Bench>) -> Self {
        Self { layers: Layers::from_shape(&shape, 0, WireType::F32), shape, benches }
    }

    fn room<T>(&self, without: Without, ask: impl FnOnce(&Room<'_>) -> T) -> T {
        let mean = self.benches.iter().map(|bench| bench.speed).sum::<f64>() / self.benches.len() as f64;
        let mut links = Links::default();
        let devices: Vec<Device> = self
            .benches
            .iter()
            .enumerate()
            .map(|(id, bench)| {
                let peer = PeerId([id as u8 + 1; 16]);
                let latency_millis = if without == Without::Latency { 0.0 } else { bench.latency };
                let (up, down) = if without == Without::Bandwidth { (1e12, 1e12) } else { bench.bandwidth };
                let way = |bandwidth| Link { latency_millis, bandwidth };
                links.set_access(peer, AccessLink { up: way(up), down: way(down) });
                let session = if without == Without::Session { 0.0 } else { bench.session_millis };
                let mut device = Device::declared(peer, Bytes(bench.budget), 0.0, session);
                let decode = if without == Without::Speed { mean } else { bench.speed };
                device.speed = Speed { decode, prefill: decode };
                device
            })
            .collect();
        ask(&Room {
            shape: &self.shape,
            layers: &self.layers,
            devices: &devices,
            links: &links,
            coordinator: SERVER,
            sharing: Sharing::Fastest,
            ends: Default::default(),
            replicas: potluck_plan::Pooling::REPLICAS,
            context: 0,
            overhead: Bytes::ZERO,
            wire: WireType::F32,
            expert_wire: WireType::F32,
            arithmetic: Arithmetic::Exact,
            epoch: PlanEpoch(1),
            hedging: Hedging::default(),
            effort: Effort::default(),
        })
    }

    /// The plan made without a measure; `None` if nothing fits.
    pub fn planned(&self, without: Without) -> Option<Found> {
        let planned = self.room(without, |room| plan(room).ok())?;
        let prediction = self.room(Without::Nothing, |room| predict(room, &planned.plan));
        Some(Found { thought: planned.prediction.token_millis, prediction, assignment: self.assignment(&planned.plan) })
    }

    /// What a given assignment takes: device and blocks, in the order of a token.
    pub fn given(&self, parts: &[(usize, BlockRange)]) -> Prediction {
        let plan = self.plan_of(parts);
        self.room(Without::Nothing, |room| predict(room, &plan))
    }

    /// Equal layers on all devices, in the best order that fits (7.4: the first part may be smaller).
    pub fn equal(&self) -> Option<Found> {
        let count = self.benches.len();
        let blocks = self.shape.blocks.len();
        let part = blocks.div_ceil(count);
        let mut best: Option<Found> = None;
        for order in orders(count) {
            let end = |index: usize| (blocks - part * (count - 1 - index)) as u16;
            let start = |index: usize| if index == 0 { 0 } else { end(index - 1) };
            let range = |(index, device): (usize, &usize)| (*device, BlockRange::new(start(index), end(index)));
            let parts: Vec<(usize, BlockRange)> = order.iter().enumerate().map(range).collect();
            let plan = self.plan_of(&parts);
            if !plan
                .stages
                .iter()
                .zip(&order)
                .all(|(stage, device)| self.fits(stage, blocks, self.benches[*device].budget))
            {
                continue;
            }
            let prediction = self.room(Without::Nothing, |room| predict(room, &plan));
            if best.as_ref().is_none_or(|best| prediction.token_millis < best.thought) {
                best = Some(Found { thought: prediction.token_millis, prediction, assignment: self.assignment(&plan) });
            }
        }
        best
    }

    fn plan_of(&self, parts: &[(usize, BlockRange)]) -> Plan {
        let stage = |(index, (device, range)): (usize, &(usize, BlockRange))| {
            Stage::new(StageId(index as u16), PeerId([*device as u8 + 1; 16]), *range)
        };
        Plan {
            epoch: PlanEpoch(1),
            model: self.shape.model,
            stages: parts.iter().enumerate().map(stage).collect(),
            pools: Vec::new(),
            wire: WireType::F32,
            expert_wire: WireType::F32,
            arithmetic: Arithmetic::Exact,
            context: 0,
            kv_cache: KvCacheType::F32,
        }
    }

    fn fits(&self, stage: &Stage, blocks: usize, budget: u64) -> bool {
        let inside = &self.shape.blocks[usize::from(stage.blocks.start)..usize::from(stage.blocks.end)];
        let ends = if stage.blocks.start == 0 { self.shape.embedding.0 } else { 0 }
            + if usize::from(stage.blocks.end) == blocks { self.shape.lm_head.0 } else { 0 };
        inside.iter().map(|block| block.weights().0).sum::<u64>() + ends <= budget
    }

    fn assignment(&self, plan: &Plan) -> String {
        let part =
            |stage: &Stage| format!("{} {}", self.benches[usize::from(stage.peer.0[0]) - 1].name, stage.blocks.len());
        plan.stages.iter().map(part).collect::<Vec<_>>().join(", ")
    }
}

fn orders(count: usize) -> Vec<Vec<usize>> {
    if count == 0 {
        return vec![Vec::new()];
    }
    let shorter = orders(count - 1);
    shorter
        .iter()
        .flat_map(|order| {
            (0..count).map(|at| {
                let mut longer = order.clone();
                longer.insert(at, count - 1);
                longer
            })
        })
        .collect()
}

/// A dense model of so many blocks, embedding and head included in neither.
pub struct Dense {
    /// Blocks.
    pub blocks: usize,
    /// Bytes of one.
    pub block: u64,
    /// Floats of a hidden vector.
    pub hidden: u32,
    /// Bytes of the embedding and of the head.
    pub ends: [u64; 2],
}

impl Dense {
    /// Its shape.
    pub fn shape(&self) -> ModelShape {
        let block = BlockShape {
            token_mixer: Bytes(self.block / 3),
            kv_cache_per_position: Bytes::ZERO,
            kv_buffers: 2,
            state: Bytes::ZERO,
            feed_forward: FeedForwardShape::Dense { bytes: Bytes(self.block - self.block / 3) },
        };
        ModelShape {
            model: ModelId([0; 32]),
            hidden: self.hidden,
            vocabulary: 151_936,
            embedding: Bytes(self.ends[0]),
            lm_head: Bytes(self.ends[1]),
            tied_lm_head: false,
            cuts: Cuts::Anywhere,
            kv_cache: KvCacheType::F32,
            blocks: vec![block; self.blocks],
        }
    }
}
