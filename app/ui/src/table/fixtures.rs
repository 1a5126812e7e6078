//! Snapshots for the tests of the table.

use potluck_panel::{
    Bytes, DeviceKind, HolderView, HopView, LayerChecksView, MemberStatus, MemberView, PeerId, PlanEpoch, PlanReport,
    PlanStatus, Sharing, StageId, StageReport, Status,
};

/// The peer that tests call by this letter.
pub fn peer(name: &str) -> PeerId {
    PeerId([name.as_bytes()[0]; 16])
}

/// A working device. In tests the host is also this tab: see [`of_tab`].
pub fn member(name: &str, coordinator: bool) -> MemberView {
    MemberView {
        peer: peer(name),
        name: name.into(),
        kind: DeviceKind::Computer,
        adapter: String::new(),
        coordinator,
        lent: Some(Bytes(4)),
        used: Bytes(2),
        status: MemberStatus::Ready,
        spare: None,
        standby: None,
        loading: None,
        round_trip_ms: 0.0,
        hidden: false,
    }
}

/// The snapshot of the tab with this test name.
pub fn of_tab(name: &str) -> Status {
    Status { peer: Some(peer(name)), ..Status::default() }
}

/// A stage of six blocks.
pub fn stage(name: &str, measured_ms: f64) -> StageReport {
    StageReport {
        id: StageId(0),
        peer: peer(name),
        first_block: 0,
        end_block: 6,
        embeds: false,
        head: false,
        expert_holders: vec![],
        bytes: 1,
        kv_cache_bytes: 1,
        predicted_ms: 1.0,
        measured_ms,
    }
}

/// A device that holds no expert yet.
#[cfg_attr(not(test), expect(dead_code, reason = "only tests look at holders"))]
pub fn holder(name: &str) -> HolderView {
    HolderView {
        peer: peer(name),
        experts: 0,
        bytes: Bytes(0),
        answers: 0,
        open: 0,
        hedges: 0,
        hedges_won: 0,
        timeouts: 0,
        is_unhealthy: false,
        median_ms: 0.0,
        slow_ms: 0.0,
        ordered: 0,
        loading: None,
    }
}

/// A message with an expected time of one millisecond.
pub fn hop(from: &str, to: &str, measured_ms: f64) -> HopView {
    HopView { from: peer(from), to: peer(to), predicted_ms: 1.0, measured_ms }
}

/// An active plan with a stage on each of these peers.
pub fn plan_of(peers: &[&str]) -> PlanReport {
    PlanReport {
        epoch: PlanEpoch(1),
        state: PlanStatus::Up,
        stages: peers.iter().map(|name| stage(name, 0.0)).collect(),
        hops: vec![],
        cache: None,
        overhead: 0,
        network_hops: 2,
        token_ms: 0.0,
        measured_token_ms: 0.0,
        forecast: None,
        sharing: Sharing::Everyone,
        ends: Default::default(),
        waiting: None,
        reason: String::new(),
        help: vec![],
        experts: None,
        spreading: None,
        checks: LayerChecksView::default(),
    }
}
