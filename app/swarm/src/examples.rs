//! A plan, a device and a room for tests, which change what matters to them.

use potluck_plan::{Arithmetic, KvCacheType, ModelId, Plan, PlanEpoch, Stage, WireType};
use potluck_protocol::{DeviceKind, Doors, Hedging, Hello, ModelSource, Session, Sharing};

use crate::{HostCommand, Pooling};

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

/// What a native device without a name says that lends nothing.
pub(crate) fn hello() -> Hello {
    Hello {
        session: Session(1),
        build: String::new(),
        kernel_class: 1,
        name: String::new(),
        kind: DeviceKind::Native,
        adapter: String::new(),
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
        last_epoch: PlanEpoch(0),
        in_advance: false,
        hidden: Vec::new(),
        doors: Doors::default(),
        pooling: Pooling { replicas: 1, hedging: Hedging::Off, spot_checks: 0.0, ..Pooling::default() },
        on_demand: false,
        protect: false,
    }
}
