//! Small models and rooms.
#![allow(dead_code)]

use potluck_plan::{
    BlockShape, Bytes, FeedForwardShape, KvCacheType, ModelId, ModelShape, PeerId, PlanEpoch, WireType,
};
use potluck_planner::{AccessLink, Device, Effort, Layers, Links, Planned, Room, Sharing, Shortfall, plan};

/// Blocks of 40 + 60 bytes and one byte of state a position; both ends have 50 bytes.
pub fn dense(blocks: usize) -> ModelShape {
    let block = BlockShape {
        token_mixer: Bytes(40),
        kv_cache_per_position: Bytes(1),
        feed_forward: FeedForwardShape::Dense { bytes: Bytes(60) },
    };
    ModelShape {
        model: ModelId([1; 32]),
        hidden: 8,
        vocabulary: 8,
        embedding: Bytes(50),
        lm_head: Bytes(50),
        tied_lm_head: false,
        kv_cache: KvCacheType::F32,
        blocks: vec![block; blocks],
    }
}

/// Blocks of 40 + 10 bytes and four experts of 100, of which a token uses two.
pub fn moe(blocks: usize) -> ModelShape {
    let mut shape = dense(blocks);
    for block in &mut shape.blocks {
        block.feed_forward =
            FeedForwardShape::Experts { router: Bytes(10), expert: Bytes(100), count: 4, used: 2, shared: Bytes::ZERO };
    }
    shape
}

pub fn peer(id: u8) -> PeerId {
    PeerId([id; 16])
}

/// A device with 1 ms a synchronization; bandwidth in bytes a second.
pub fn device(id: u8, budget: u64, bandwidth: f64) -> Device {
    Device::declared(peer(id), Bytes(budget), bandwidth, 1.0)
}

/// Everyone but peer 0 is so many milliseconds away from it.
pub fn star(devices: &[Device], latency_millis: f64) -> Links {
    let mut links = Links::default();
    for device in devices.iter().filter(|device| device.peer != peer(0)) {
        links.set_access(device.peer, AccessLink::latency(latency_millis));
    }
    links
}

/// Everything a room borrows.
pub struct Setting {
    pub shape: ModelShape,
    pub layers: Layers,
    pub devices: Vec<Device>,
    pub links: Links,
}

impl Setting {
    /// Peer 0 is the coordinator, the others are 5 ms away.
    pub fn new(shape: ModelShape, devices: Vec<Device>) -> Self {
        let layers = Layers::from_shape(&shape, 10, WireType::F32);
        let links = star(&devices, 5.0);
        Self { shape, layers, devices, links }
    }

    pub fn room(&self, sharing: Sharing) -> Room<'_> {
        Room {
            shape: &self.shape,
            layers: &self.layers,
            devices: &self.devices,
            links: &self.links,
            coordinator: peer(0),
            sharing,
            context: 10,
            overhead: Bytes(20),
            wire: WireType::F32,
            epoch: PlanEpoch(1),
            effort: Effort::default(),
        }
    }

    pub fn plan(&self, sharing: Sharing) -> Result<Planned, Shortfall> {
        plan(&self.room(sharing))
    }
}
