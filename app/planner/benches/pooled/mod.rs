//! Rooms whose experts lie on many devices: what a host plans while answers go on.

use potluck_plan::{BlockShape, Bytes, Cuts, FeedForwardShape, KvCacheType, ModelId, ModelShape, PeerId, WireType};
use potluck_planner::{AccessLink, Device, Hedging, Layers, Link, Links, Room, Sharing};
use potluck_testkit::RoomFixture;

use crate::random::Random;

/// A room whose experts lie on many devices.
#[derive(Clone, Copy)]
pub struct Pool {
    pub blocks: usize,
    pub experts: u16,
    pub devices: usize,
    pub sharing: Sharing,
    /// Answers take different times.
    pub varies: bool,
    /// The host keeps everything but experts for itself.
    pub is_protected: bool,
    devices_are: DevicesAre,
}

/// What the devices of a room are like.
#[derive(Clone, Copy)]
enum DevicesAre {
    /// Far from each other.
    Far,
    /// Nearby, and the last one lends little. Each expert has two holders, and late ones are hedged.
    NearAndOneSmall,
}

/// Where answers came late, and the largest model that was measured.
pub const POOLS: &[(&str, Pool)] = &[
    ("4 blocks of 32 experts, 5 devices, late", small(Sharing::Experts, true)),
    ("48 blocks of 128, 9 devices, experts", large(Sharing::Experts, false)),
    ("48 blocks of 128, 9 devices, experts, late", large(Sharing::Experts, true)),
    ("48 blocks of 128, 9 devices, fastest", large(Sharing::Fastest, false)),
    ("48 blocks of 128, 9 devices, fastest, late", large(Sharing::Fastest, true)),
    ("48 blocks of 128, 9 devices, protected", protected(large(Sharing::Fastest, false))),
    ("48 blocks of 128, 9 devices, protected, late", protected(large(Sharing::Fastest, true))),
    ("48 blocks of 128, 9 devices, everyone, late", large(Sharing::Everyone, true)),
    (
        "48 blocks of 128, 10 devices, one small",
        Pool { devices: 10, devices_are: DevicesAre::NearAndOneSmall, ..large(Sharing::Experts, true) },
    ),
];

const fn small(sharing: Sharing, varies: bool) -> Pool {
    Pool { blocks: 4, experts: 32, devices: 5, sharing, varies, is_protected: false, devices_are: DevicesAre::Far }
}

const fn protected(pool: Pool) -> Pool {
    Pool { is_protected: true, ..pool }
}

const fn large(sharing: Sharing, varies: bool) -> Pool {
    Pool { blocks: 48, experts: 128, devices: 9, sharing, varies, is_protected: false, devices_are: DevicesAre::Far }
}

/// What devices and links of a room are like.
struct Measures {
    /// At least, and at most so much more.
    latency_millis: (f64, f64),
    bandwidth: f64,
    spread: f64,
    session_millis: f64,
    decode: f64,
}

impl Measures {
    const FAR: Self =
        Self { latency_millis: (0.5, 4.0), bandwidth: 20e3, spread: 0.5, session_millis: 1.0, decode: 1e8 };
    /// As eight peers of one machine were measured.
    const NEAR: Self =
        Self { latency_millis: (0.1, 0.1), bandwidth: 1e6, spread: 0.3, session_millis: 0.4, decode: 1e7 };
}

/// What a [`Room`] borrows.
pub struct Pooled {
    pool: Pool,
    pub fixture: RoomFixture,
}

/// Blocks of Qwen3-30B-A3B in `Q4_K_M`, with another number of experts.
fn shape(blocks: usize, count: u16) -> ModelShape {
    let block = BlockShape {
        token_mixer: Bytes(22_000_000),
        kv_cache_per_position: Bytes(4_096),
        kv_buffers: 2,
        state: Bytes::ZERO,
        feed_forward: FeedForwardShape::Experts {
            router: Bytes(1_000_000),
            expert: Bytes(2_750_000),
            count,
            used: 8,
            shared: Bytes::ZERO,
        },
    };
    ModelShape {
        model: ModelId([0; 32]),
        hidden: 2_048,
        vocabulary: 151_936,
        embedding: Bytes(175_000_000),
        lm_head: Bytes(255_000_000),
        tied_lm_head: false,
        cuts: Cuts::Anywhere,
        kv_cache: KvCacheType::F32,
        blocks: vec![block; blocks],
    }
}

impl Pooled {
    /// Devices that have room for 2.2 times all experts together, and each for everything else besides.
    pub fn new(pool: Pool, seed: u64) -> Self {
        let random = &mut Random(seed);
        let shape = shape(pool.blocks, pool.experts);
        let layers = Layers::from_shape(&shape, 4_096, WireType::F32);
        let experts = 2.75e6 * f64::from(pool.experts) * pool.blocks as f64;
        let others = 500e6 + 40e6 * pool.blocks as f64;
        let mut links = Links::default();
        let measures = match pool.devices_are {
            DevicesAre::Far => Measures::FAR,
            DevicesAre::NearAndOneSmall => Measures::NEAR,
        };
        let link = |random: &mut Random| {
            let (least, more) = measures.latency_millis;
            Link { latency_millis: least + more * random.unit(), bandwidth: measures.bandwidth }
        };
        let devices = (0..pool.devices).map(|index| {
            let peer = PeerId(std::array::from_fn(|_| (256.0 * random.unit()) as u8));
            links.set_access(peer, AccessLink { up: link(random), down: link(random) });
            if pool.varies {
                links.set_spread(peer, measures.spread * (0.2 + random.unit()));
            }
            let even = others + 2.2 * experts / pool.devices as f64 * (0.9 + 0.2 * random.unit());
            let budget = match pool.devices_are {
                DevicesAre::Far => even,
                DevicesAre::NearAndOneSmall if index + 1 == pool.devices => 300e6,
                DevicesAre::NearAndOneSmall => 5e9,
            };
            let budget = Bytes(budget as u64);
            let mut device = Device::declared(peer, budget, 0.0, measures.session_millis * (0.3 + random.unit()));
            (device.speed.decode, device.speed.prefill) = (measures.decode * (0.3 + random.unit()), 8e8);
            device
        });
        let mut devices: Vec<Device> = devices.collect();
        devices.iter_mut().skip(1).for_each(|device| device.experts_only = pool.is_protected);
        let (context, overhead) = (4_096, Bytes(50_000_000));
        Self { pool, fixture: RoomFixture { shape, layers, devices, links, context, overhead } }
    }

    pub fn room(&self) -> Room<'_> {
        let room = self.fixture.room(self.pool.sharing);
        let (replicas, hedging) = match self.pool.devices_are {
            DevicesAre::Far => (room.replicas, room.hedging),
            DevicesAre::NearAndOneSmall => (2, Hedging::Adaptive),
        };
        Room { coordinator: self.fixture.devices[0].peer, replicas, hedging, ..room }
    }
}
