//! Snapshots for the tests of the table.

use potluck_panel::{DeviceKind, HopReport, Member, MemberState, PlanReport, PlanState, Roles, Sharing, StageReport};

/// A device that works.
pub fn member(peer: &str, is_self: bool) -> Member {
    Member {
        peer: peer.into(),
        name: peer.into(),
        kind: DeviceKind::Computer,
        role: Roles { coordinator: is_self, worker: true, guest: true },
        is_self,
        lent: 4,
        used: 2,
        holds: vec!["blocks 0–5".into()],
        state: MemberState::Ready,
        spare: None,
        standby: None,
        loading: None,
        link: None,
        hidden: false,
        adapter: String::new(),
    }
}

/// A stage of six blocks.
pub fn stage(peer: &str, measured_ms: f64) -> StageReport {
    StageReport {
        id: 0,
        peer: peer.into(),
        first_block: 0,
        end_block: 6,
        embeds: false,
        head: false,
        expert_peers: vec![],
        bytes: 1,
        kv_cache_bytes: 1,
        predicted_ms: 1.0,
        measured_ms,
    }
}

/// A message that was expected to take a millisecond.
pub fn hop(from: &str, to: &str, measured_ms: f64) -> HopReport {
    HopReport { from: from.into(), to: to.into(), predicted_ms: 1.0, measured_ms }
}

/// A plan that is up, with a stage on each of these.
pub fn plan_of(peers: &[&str]) -> PlanReport {
    PlanReport {
        epoch: 1,
        state: PlanState::Up,
        stages: peers.iter().map(|peer| stage(peer, 0.0)).collect(),
        hops: vec![],
        cache: None,
        overhead: 0,
        network_hops: 2,
        token_ms: 0.0,
        measured_token_ms: 0.0,
        forecast: None,
        sharing: Sharing::Everyone,
        waiting: None,
        reason: String::new(),
        help: vec![],
    }
}
