//! A plan and a device for tests, which change what matters to them.

use potluck_plan::{Arithmetic, KvCacheType, ModelId, Plan, PlanEpoch, Stage, WireType};
use potluck_protocol::{DeviceKind, Hello, Session};

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
