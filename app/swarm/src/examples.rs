//! A model, a plan, a device and a room for tests, which change what matters to them.

use potluck_plan::{
    Arithmetic, BlockShape, Bytes, Cuts, FeedForwardShape, KvCacheType, ModelId, ModelShape, Plan, PlanEpoch, Pooling,
    Stage, WireType,
};
use potluck_protocol::{DeviceKind, Doors, Hedging, Hello, ModelSource, Sharing, StartId, UnixSeconds};

use crate::{HostCommand, SpotChecks};

/// A model of so many blocks: 100 bytes a token mixer, 60 a dense feed-forward network or 5 a router and 20 an expert, of which a
/// token uses two, and 50 each end.
pub(crate) fn shape(blocks: usize, experts: u16) -> ModelShape {
    let feed_forward = match experts {
        0 => FeedForwardShape::Dense { bytes: Bytes(60) },
        count => FeedForwardShape::Experts { router: Bytes(5), expert: Bytes(20), count, used: 2, shared: Bytes::ZERO },
    };
    let block = BlockShape {
        token_mixer: Bytes(100),
        kv_cache_per_position: Bytes::ZERO,
        kv_buffers: 2,
        state: Bytes::ZERO,
        feed_forward,
    };
    ModelShape {
        model: ModelId([9; 32]),
        hidden: 2,
        vocabulary: 128,
        embedding: Bytes(50),
        lm_head: Bytes(50),
        tied_lm_head: false,
        cuts: Cuts::Anywhere,
        kv_cache: KvCacheType::F32,
        blocks: vec![block; blocks],
    }
}

/// The first plan of a room, with these stages.
pub(crate) fn plan(stages: Vec<Stage>) -> Plan {
    Plan {
        epoch: PlanEpoch(1),
        model: ModelId([0; 32]),
        stages,
        pools: Vec::new(),
        wire: WireType::F32,
        expert_wire: WireType::F32,
        arithmetic: Arithmetic::Exact,
        context: 64,
        kv_cache: KvCacheType::F32,
    }
}

/// What a native device says that has no name and lends nothing. Its GPU has a name.
pub(crate) fn hello() -> Hello {
    Hello {
        start: StartId(1),
        build: String::new(),
        kernel_class: 1,
        name: String::new(),
        kind: DeviceKind::Native,
        adapter: "one GPU".into(),
        contribution: None,
        epoch: PlanEpoch(0),
        hidden: false,
    }
}

/// A room of its own model, without anything special.
pub(crate) fn command() -> HostCommand {
    HostCommand {
        source: ModelSource::Relay { name: "model".into() },
        context: 1_024,
        kv_cache: None,
        arithmetic: Arithmetic::Exact,
        sharing: Sharing::Fastest,
        ends: Default::default(),
        last_epoch: PlanEpoch(0),
        in_advance: false,
        doors: Doors::default(),
        at: UnixSeconds(900),
        pooling: Pooling { replicas: 1, hedging: Hedging::Off, ..Pooling::default() },
        spot_checks: SpotChecks { share: 0.0, ..SpotChecks::default() },
        on_demand: false,
        protect: false,
        deputy: Default::default(),
        ownership: None,
    }
}
