//! Who computes what, if a desktop, a laptop and a phone share a model of 5 GB: `cargo run -p potluck-planner --example plan`.

use potluck_plan::{
    Arithmetic, BlockShape, Bytes, Cuts, FeedForwardShape, KvCacheType, ModelId, ModelShape, PeerId, PlanEpoch,
    Pooling, WireType,
};
use potluck_planner::{AccessLink, Device, Effort, Hedging, Layers, Links, Room, Sharing, plan};

const NAMES: [&str; 3] = ["desktop", "laptop", "phone"];
const CONTEXT: u32 = 4096;

/// An 8B model in four bits: sizes are all that a planner knows of it.
fn model() -> ModelShape {
    let block = BlockShape {
        token_mixer: Bytes(25_000_000),
        kv_cache_per_position: Bytes(8192),
        kv_buffers: 2,
        state: Bytes::ZERO,
        feed_forward: FeedForwardShape::Dense { bytes: Bytes(92_000_000) },
    };
    ModelShape {
        model: ModelId([0; 32]),
        hidden: 4096,
        vocabulary: 151_936,
        embedding: Bytes(350_000_000),
        lm_head: Bytes(510_000_000),
        tied_lm_head: false,
        kv_cache: KvCacheType::F32,
        cuts: Cuts::Anywhere,
        blocks: vec![block; 36],
    }
}

fn main() {
    let (shape, peer) = (model(), |id| PeerId([id; 16]));
    // Lent memory, memory bandwidth in bytes a second, and milliseconds of a readback.
    let devices = [
        Device::declared(peer(0), Bytes(4_000_000_000), 250e9, 1.0),
        Device::declared(peer(1), Bytes(3_000_000_000), 90e9, 1.5),
        Device::declared(peer(2), Bytes(1_500_000_000), 40e9, 3.0),
    ];
    let mut links = Links::default();
    links.set_access(peer(1), AccessLink::latency(2.0));
    links.set_access(peer(2), AccessLink::latency(6.0));
    let layers = Layers::from_shape(&shape, CONTEXT, WireType::F32);
    for sharing in [Sharing::Fastest, Sharing::Everyone] {
        let room = Room {
            shape: &shape,
            layers: &layers,
            devices: &devices,
            links: &links,
            coordinator: peer(0),
            sharing,
            ends: Default::default(),
            replicas: Pooling::REPLICAS,
            hedging: Hedging::default(),
            context: CONTEXT,
            overhead: Bytes(200_000_000),
            wire: WireType::F32,
            expert_wire: WireType::F32,
            arithmetic: Arithmetic::Exact,
            epoch: PlanEpoch(1),
            effort: Effort::default(),
        };
        let name = |peer: PeerId| NAMES[usize::from(peer.0[0])];
        match plan(&room) {
            Err(shortfall) => println!("{sharing:?}: {}", shortfall.sentence),
            Ok(planned) => {
                println!("{sharing:?}: {:.1} ms a token. {}", planned.prediction.token_millis, planned.reason);
                for (stage, bytes) in planned.plan.stages.iter().zip(&planned.stage_bytes) {
                    println!("  {} has blocks {}..{}: {bytes}", name(stage.peer), stage.blocks.start, stage.blocks.end);
                }
                for spare in &planned.spares {
                    println!("  {}", spare.reason.sentence(name(spare.peer)));
                }
            }
        }
    }
}
