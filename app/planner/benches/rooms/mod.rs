//! Rooms to search: every device distinct, memory so short that several are needed.

use potluck_plan::{BlockShape, Bytes, Cuts, FeedForwardShape, KvCacheType, ModelId, ModelShape, PeerId, WireType};
use potluck_planner::{AccessLink, Device, Layers, Link, Links, Room, Sharing, Speed, plan, standby, what_would_help};
use potluck_testkit::RoomFixture;

use crate::random::Random;

/// What is asked of a room.
#[derive(Clone, Copy)]
pub enum Question {
    /// The fastest plan.
    Fastest,
    /// Everyone takes part.
    Everyone,
    /// Standby plans for the fastest plan.
    Standby,
    /// What would help.
    Help,
}

/// A room to search.
pub struct Case {
    pub name: &'static str,
    pub blocks: usize,
    pub workers: usize,
    pub question: Question,
}

/// All rooms.
pub const CASES: &[Case] = &[
    Case { name: "8 workers", blocks: 36, workers: 8, question: Question::Fastest },
    Case { name: "12 workers", blocks: 36, workers: 12, question: Question::Fastest },
    Case { name: "20 workers", blocks: 60, workers: 20, question: Question::Fastest },
    Case { name: "20 workers, everyone", blocks: 60, workers: 20, question: Question::Everyone },
    Case { name: "20 workers, standby", blocks: 60, workers: 20, question: Question::Standby },
    Case { name: "20 workers, help", blocks: 60, workers: 20, question: Question::Help },
    Case { name: "200 workers", blocks: 60, workers: 200, question: Question::Fastest },
];

fn shape(blocks: usize, random: &mut Random) -> ModelShape {
    let mut block = || BlockShape {
        token_mixer: Bytes(30_000_000),
        kv_cache_per_position: Bytes(4_096),
        kv_buffers: 2,
        state: Bytes::ZERO,
        feed_forward: FeedForwardShape::Dense { bytes: Bytes(70_000_000 + (random.unit() * 20e6) as u64) },
    };
    ModelShape {
        model: ModelId([0; 32]),
        hidden: 4_096,
        vocabulary: 128_000,
        embedding: Bytes(400_000_000),
        lm_head: Bytes(400_000_000),
        tied_lm_head: false,
        cuts: Cuts::Anywhere,
        kv_cache: KvCacheType::F32,
        blocks: (0..blocks).map(|_| block()).collect(),
    }
}

/// Milliseconds a token of what was found (for [`Question::Standby`] and [`Question::Help`]: how much was found).
pub fn search(case: &Case) -> f64 {
    let random = &mut Random(case.workers as u64);
    let shape = shape(case.blocks, random);
    let layers = Layers::from_shape(&shape, 4_096, WireType::F32);
    let mut links = Links::default();
    let peer = |id: usize| PeerId([(id / 256) as u8, (id % 256) as u8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    let link = |random: &mut Random| Link {
        latency_millis: 1.0 + 20.0 * random.unit(),
        bandwidth: 500.0 + 20e3 * random.unit(),
    };
    let devices: Vec<Device> = (0..case.workers)
        .map(|id| {
            links.set_access(peer(id), AccessLink { up: link(random), down: link(random) });
            let budget = Bytes(800_000_000 + (random.unit() * 1.5e9) as u64);
            let mut device = Device::declared(peer(id), budget, 0.0, 0.5 + 3.0 * random.unit());
            device.speed = Speed { decode: 1e6 * (0.1 + random.unit()), prefill: 1e7 };
            device.download = 1e3 + 20e3 * random.unit();
            device
        })
        .collect();
    let sharing = if matches!(case.question, Question::Everyone) { Sharing::Everyone } else { Sharing::Fastest };
    let (context, overhead) = (4_096, Bytes(50_000_000));
    let fixture = RoomFixture { shape, layers, devices, links, context, overhead };
    let room = Room { coordinator: peer(0), ..fixture.room(sharing) };
    match (case.question, plan(&room)) {
        (_, Err(_)) => f64::NAN,
        (Question::Standby, Ok(planned)) => standby(&room, &planned.plan).covered.len() as f64,
        (Question::Help, Ok(_)) => what_would_help(&room).len() as f64,
        (_, Ok(planned)) => planned.prediction.token_millis,
    }
}
