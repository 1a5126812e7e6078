//! What each measure is worth, by the cost model alone (nothing here was run on devices):
//! `cargo run -p potluck-planner --example ablation`.
//!
//! A plan is made without a measure and then timed with all of them, as in dynamic-partitioning.txt 7.4 and 7.5.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use potluck_plan::{
    Arithmetic, BlockRange, BlockShape, Bytes, Cuts, FeedForwardShape, KvCacheType, ModelId, ModelShape, PeerId, Plan,
    PlanEpoch, Stage, StageId, WireType,
};
use potluck_planner::{AccessLink, Device, Effort, Hedging, Layers, Link, Links, Room, Sharing, Speed, plan, predict};

/// Coordinator of all rooms; it contributes nothing.
const SERVER: PeerId = PeerId([0; 16]);

/// A device of a test bed.
struct Bench {
    name: &'static str,
    /// Bytes a millisecond.
    speed: f64,
    budget: u64,
    session_millis: f64,
    /// One way, milliseconds.
    latency: f64,
    /// Bytes a millisecond, to and from the relay.
    bandwidth: (f64, f64),
}

/// What the planner may know.
#[derive(Clone, Copy, PartialEq)]
enum Without {
    Nothing,
    Speed,
    Session,
    Latency,
    Bandwidth,
}

struct TestBed {
    shape: ModelShape,
    layers: Layers,
    benches: Vec<Bench>,
}

impl TestBed {
    fn new(shape: ModelShape, benches: Vec<Bench>) -> Self {
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
            replicas: potluck_planner::REPLICAS,
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

    /// The plan made without a measure: what it was thought to take, what it takes, and who has how many blocks.
    fn planned(&self, without: Without) -> (f64, f64, String) {
        let planned = self.room(without, |room| plan(room).unwrap());
        let truth = self.room(Without::Nothing, |room| predict(room, &planned.plan).token_millis);
        (planned.prediction.token_millis, truth, self.assignment(&planned.plan))
    }

    /// Equal layers on all devices, in the best order that fits (7.4: the first part may be smaller).
    fn equal(&self) -> Option<(f64, String)> {
        let count = self.benches.len();
        let blocks = self.shape.blocks.len();
        let part = blocks.div_ceil(count);
        let mut best: Option<(f64, String)> = None;
        for order in orders(count) {
            let end = |index: usize| (blocks - part * (count - 1 - index)) as u16;
            let start = |index: usize| if index == 0 { 0 } else { end(index - 1) };
            let stage = |(index, device): (usize, &usize)| {
                let range = BlockRange::new(start(index), end(index));
                Stage::new(StageId(index as u16), PeerId([*device as u8 + 1; 16]), range)
            };
            let stages: Vec<Stage> = order.iter().enumerate().map(stage).collect();
            if !stages.iter().zip(&order).all(|(stage, device)| self.fits(stage, blocks, self.benches[*device].budget))
            {
                continue;
            }
            let plan = Plan {
                epoch: PlanEpoch(1),
                model: self.shape.model,
                stages,
                pools: Vec::new(),
                wire: WireType::F32,
                expert_wire: WireType::F32,
                arithmetic: Arithmetic::Exact,
                context: 0,
                kv_cache: KvCacheType::F32,
            };
            let millis = self.room(Without::Nothing, |room| predict(room, &plan).token_millis);
            if best.as_ref().is_none_or(|(known, _)| millis < *known) {
                best = Some((millis, self.assignment(&plan)));
            }
        }
        best
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

fn dense(blocks: usize, block: u64, hidden: u32, embedding: u64, head: u64) -> ModelShape {
    let block = BlockShape {
        token_mixer: Bytes(block / 3),
        kv_cache_per_position: Bytes::ZERO,
        kv_buffers: 2,
        state: Bytes::ZERO,
        feed_forward: FeedForwardShape::Dense { bytes: Bytes(block - block / 3) },
    };
    ModelShape {
        model: ModelId([0; 32]),
        hidden,
        vocabulary: 151_936,
        embedding: Bytes(embedding),
        lm_head: Bytes(head),
        tied_lm_head: false,
        cuts: Cuts::Anywhere,
        kv_cache: KvCacheType::F32,
        blocks: vec![block; blocks],
    }
}

/// Speeds 1 : ½ : ¼ and budgets 2 : 1 : 1, a model of 36 blocks of 100 MB that just can be cut in equal parts.
fn one_half_quarter(latency: f64) -> TestBed {
    let bench = |name, share: f64, units: u64| Bench {
        name,
        speed: 40e6 * share,
        budget: units * 1_500_000_000,
        session_millis: 2.0,
        latency,
        bandwidth: (10e3, 10e3),
    };
    let benches = vec![bench("fast", 1.0, 2), bench("half", 0.5, 1), bench("quarter", 0.25, 1)];
    TestBed::new(dense(36, 100_000_000, 2_560, 100_000_000, 200_000_000), benches)
}

/// The paper's devices with Qwen3-4B (tables 7.2 and 7.3): speeds from tokens a second with Qwen3-0.6B, 3 GB a token.
fn paper(devices: usize, gigabytes: f64, slowed: bool) -> TestBed {
    let table = [
        ("Aidos", 59.22, 0.64, 117.49),
        ("Thor", 48.08, 1.87, 32.43),
        ("Pgx", 25.23, 1.58, 37.53),
        ("Agx", 18.94, 1.97, 31.86),
        ("Nano", 9.96, 2.52, 31.26),
    ];
    let bench = |(name, tokens, round_trip, megabytes): (&'static str, f64, f64, f64)| {
        let (added, bandwidth) = match (slowed, name) {
            (false, _) => (0.0, (megabytes * 1e3, megabytes * 1e3)),
            (true, "Aidos") => (105.0, (10e3, 50e3)),
            (true, "Pgx") => (5.0, (128.0, 128.0)),
            (true, _) => (5.0, (10e3, 50e3)),
        };
        Bench {
            name,
            speed: 3e9 * tokens / 1e3,
            budget: (gigabytes * 1e9) as u64,
            session_millis: 1.0,
            latency: (round_trip + added) / 2.0,
            bandwidth,
        }
    };
    let benches = table.into_iter().take(devices).map(bench).collect();
    // 16.1 GB in 36 blocks of 0.4 GB, an embedding of 1.5 GB and a head as large.
    TestBed::new(dense(36, 363_000_000, 2_560, 1_550_000_000, 1_550_000_000), benches)
}

fn compare(name: &str, bed: &TestBed) {
    let (_, dynamic, plan) = bed.planned(Without::Nothing);
    match bed.equal() {
        Some((equal, cut)) => {
            let gain = equal / dynamic;
            println!("| {name} | {:.2} | {:.2} | {gain:.2} | {cut} | {plan} |", 1e3 / equal, 1e3 / dynamic);
        }
        None => println!("| {name} | does not fit | {:.2} | | | {plan} |", 1e3 / dynamic),
    }
}

fn ablate(name: &str, bed: &TestBed) {
    let measures = [
        ("all measures", Without::Nothing),
        ("without speed", Without::Speed),
        ("without session overhead", Without::Session),
        ("without latency", Without::Latency),
        ("without bandwidth", Without::Bandwidth),
    ];
    for (measure, without) in measures {
        let (thought, truth, plan) = bed.planned(without);
        println!(
            "| {name} | {measure} | {thought:.1} | {truth:.1} | {:.1} | {:.2} | {plan} |",
            (thought - truth).abs(),
            1e3 / truth
        );
    }
}

fn main() {
    println!("Predicted, not run.\n");
    println!(
        "| room | equal tok/s | dynamic tok/s | gain | equal blocks | dynamic blocks |\n|---|---|---|---|---|---|"
    );
    for latency in [0.0, 5.0, 20.0, 50.0] {
        compare(&format!("1 : ½ : ¼, {latency} ms one way"), &one_half_quarter(latency));
    }
    compare("paper, 3 devices of 8 GB", &paper(3, 8.0, false));
    compare("paper, 5 devices of 4.6 GB", &paper(5, 4.6, false));
    println!("\n| room | planned | thought ms | takes ms | error ms | tok/s | blocks |\n|---|---|---|---|---|---|---|");
    ablate("1 : ½ : ¼, 20 ms", &one_half_quarter(20.0));
    ablate("paper, slowed network, 5 devices of 6.5 GB", &paper(5, 6.5, true));
    ablate("paper, its network, 5 devices of 6.5 GB", &paper(5, 6.5, false));
}
