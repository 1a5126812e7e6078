//! The snapshot for the page: the room as the coordinator reports it, and what only this device knows.

use std::collections::BTreeMap;

use potluck_panel as panel;
use potluck_plan::{DeviceId, ExpertHolder, PeerId, Plan, Stage};
use potluck_protocol as wire;
use potluck_swarm::{Membership, Severity, SwarmView};

use crate::room::{LineState, Words};

/// What only this device knows.
pub struct OwnState<'a> {
    /// This tab.
    pub peer: PeerId,
    /// The key of its device.
    pub key: DeviceId,
    /// Those of the members that it has met.
    pub members_keys: Vec<(PeerId, DeviceId)>,
    /// The words of its sessions.
    pub words: Words,
    /// Who may come in, on a host.
    pub doors: Option<panel::DoorsReport>,
    /// The connection to the relay.
    pub line: Option<&'a LineState>,
    /// The room's id and key.
    pub room: Option<&'a RoomName>,
    /// Its GPU.
    pub device: panel::DeviceReport,
    /// How far the hosted file is checked.
    pub checking: Option<wire::LoadReport>,
    /// Weight bytes on its GPU.
    pub loaded: u64,
    /// What its experts on demand cost.
    pub on_demand: Option<panel::OnDemandReport>,
    /// The shadow made from its model.
    pub shadow: Option<panel::ShadowReport>,
    /// Bytes it fetched.
    pub downloaded: u64,
    /// Frames that came straight from other tabs of this browser.
    pub direct_frames: u64,
    /// How messages reach members.
    pub paths: Vec<(PeerId, panel::PathReport)>,
    /// What sealing took.
    pub sealing: panel::Sealing,
    /// Why the room runs as it does, on a host.
    pub why: Option<panel::WhyPlan>,
    /// It will lend its GPU as soon as it is measured.
    pub measuring: bool,
}

/// How a room is found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RoomName {
    /// Its id on the relay.
    pub id: String,
    /// Key of its link.
    pub key: Option<String>,
    /// On everyone's door.
    pub visible: bool,
    /// It is entered by an invite to chat.
    pub chat_only: bool,
}

impl RoomName {
    /// Path and fragment of the room's link.
    pub fn link(&self) -> String {
        let fragment = self.key.as_ref().map(|key| format!("#{key}")).unwrap_or_default();
        format!("/r/{}{fragment}", self.id)
    }
}

/// The whole snapshot.
pub fn snapshot(view: Option<&SwarmView<'_>>, own: OwnState<'_>) -> panel::Status {
    let room = view.and_then(|view| view.room);
    let membership = view.map(|view| view.membership);
    let inside = membership == Some(Membership::Inside);
    panel::Status {
        build: panel::BUILD.to_owned(),
        peer: Some(own.peer),
        role: panel::Roles {
            coordinator: view.is_some_and(|view| view.coordinator),
            worker: inside && view.is_some_and(|view| view.contribution.is_some()),
            guest: inside,
        },
        connection: connection(own.line, membership),
        room: own.room.map(room_report),
        model: room.and_then(|room| room.model.clone()),
        context: room.map_or(0, |room| room.context),
        plan: room.map(|room| plan_report(room, own.measuring)),
        why: own.why,
        peers: room.map(|room| room.members.clone()).unwrap_or_default(),
        key: Some(own.key),
        members_keys: own.members_keys,
        words: own.words.sessions,
        host_words: own.words.host,
        doors: own.doors,
        device: own.device,
        loading: view.and_then(|view| view.loading),
        checking: own.checking,
        bytes_loaded: own.loaded,
        on_demand: own.on_demand,
        shadow: own.shadow,
        hints: view.and_then(|view| view.hints),
        drafts: view.and_then(|view| view.drafts),
        bytes_downloaded: own.downloaded,
        direct_frames: own.direct_frames,
        paths: own.paths,
        sealing: own.sealing,
        tokens_per_second: room.map_or(0.0, |room| room.tokens_per_second),
        tokens: room.map_or(0, |room| room.tokens),
        credits: room.map(|room| room.credits.clone()).unwrap_or_default(),
        deputy: room.and_then(|room| room.deputy),
        pending: view.map(|view| view.pending.clone()).unwrap_or_default(),
    }
}

/// How the page shows a notice.
pub fn notice_level(severity: Severity) -> panel::NoticeLevel {
    match severity {
        Severity::Info => panel::NoticeLevel::Info,
        Severity::Warning => panel::NoticeLevel::Warning,
        Severity::Error => panel::NoticeLevel::Error,
    }
}

fn connection(line: Option<&LineState>, membership: Option<Membership>) -> panel::Connection {
    match line {
        None => panel::Connection::Idle,
        Some(LineState::Connecting) => panel::Connection::Connecting,
        Some(LineState::Connected) if membership == Some(Membership::Waiting) => panel::Connection::WaitingForHost,
        Some(LineState::Connected) => panel::Connection::Connected,
        Some(LineState::Reconnecting { attempt, cause }) => {
            panel::Connection::Reconnecting { attempt: *attempt, cause: cause.clone() }
        }
        Some(LineState::SocketsRefused { attempt }) => panel::Connection::SocketsRefused { attempt: *attempt },
        Some(LineState::Closed(reason)) => panel::Connection::Closed { reason: reason.clone() },
    }
}

fn room_report(name: &RoomName) -> panel::RoomReport {
    panel::RoomReport {
        id: name.id.clone(),
        key: name.key.clone(),
        link: name.link(),
        visible: name.visible,
        chat_only: name.chat_only,
    }
}

/// A room is not short of memory while its first device is still being measured.
fn plan_report(room: &wire::RoomView, measuring: bool) -> panel::PlanReport {
    let mut report = known_plan(room);
    if measuring && report.waiting.is_some() && room.members.iter().all(|member| member.lent.is_none()) {
        report.waiting = None;
        report.reason = "Measuring this device. This takes a moment.".to_owned();
    }
    report
}

/// The plan with each stage beside its own numbers.
fn known_plan(room: &wire::RoomView) -> panel::PlanReport {
    let view = &room.plan;
    let stages =
        view.plan.iter().flat_map(|plan| plan.stages.iter().enumerate().map(|(i, at)| stage(view, plan, i, at)));
    panel::PlanReport {
        epoch: view.plan.as_ref().map(|plan| plan.epoch).unwrap_or_default(),
        state: view.status,
        stages: stages.collect(),
        hops: view.hops.clone(),
        cache: view.plan.as_ref().map(|plan| plan.kv_cache),
        overhead: view.overhead.0,
        network_hops: view.plan.as_ref().map_or(0, |plan| plan.network_hops(room.host)),
        token_ms: view.token_ms,
        measured_token_ms: view.measured_token_ms,
        forecast: view.forecast,
        sharing: room.sharing,
        ends: room.ends,
        waiting: view.shortfall.map(|(needed, lent)| panel::Waiting {
            needed: needed.0,
            lent: lent.0,
            sentence: view.reason.clone(),
        }),
        reason: view.reason.clone(),
        help: view.help.clone(),
        experts: view.experts.clone(),
        spreading: view.spreading.clone(),
        checks: view.checks.clone(),
    }
}

fn stage(view: &wire::PlanView, plan: &Plan, index: usize, stage: &Stage) -> panel::StageReport {
    panel::StageReport {
        id: stage.id,
        peer: stage.peer,
        first_block: stage.blocks.start,
        end_block: stage.blocks.end,
        embeds: plan.embeds(stage.id),
        head: plan.has_lm_head(stage.id),
        expert_holders: expert_holders(stage),
        bytes: view.stage_bytes.get(index).map_or(0, |bytes| bytes.0),
        kv_cache_bytes: view.kv_cache_bytes.get(index).map_or(0, |bytes| bytes.0),
        predicted_ms: view.predicted_ms.get(index).copied().unwrap_or(0.0),
        measured_ms: view.measured_ms.get(index).copied().unwrap_or(0.0),
    }
}

/// Peers other than the stage's own that hold its experts, in the order of their ids.
fn expert_holders(stage: &Stage) -> Vec<panel::ExpertHolding> {
    let mut held: BTreeMap<PeerId, u32> = BTreeMap::new();
    for holder in stage.remote.iter().flat_map(|remote| &remote.holders).flatten() {
        if let ExpertHolder::Peer(peer) = holder {
            *held.entry(*peer).or_default() += 1;
        }
    }
    held.into_iter().map(|(peer, experts)| panel::ExpertHolding { peer, experts }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use potluck_plan::{BlockIndex, BlockRange, Bytes, RemoteExperts, StageId};

    #[test]
    fn experts_elsewhere_are_counted_by_peer() {
        let (host, helper) = (PeerId([1; 16]), PeerId([2; 16]));
        let mut stage = Stage::new(StageId(0), host, BlockRange::new(0, 12));
        let holders = vec![
            vec![ExpertHolder::Peer(helper)],
            vec![ExpertHolder::Own],
            vec![ExpertHolder::Own, ExpertHolder::Peer(helper)],
        ];
        stage.remote = vec![RemoteExperts { block: BlockIndex(3), holders }];
        assert_eq!(expert_holders(&stage), [panel::ExpertHolding { peer: helper, experts: 2 }]);
    }

    #[test]
    fn a_room_is_not_short_of_memory_while_its_first_device_is_being_measured() {
        let mut room = wire::RoomView {
            host: PeerId([1; 16]),
            model: None,
            context: 64,
            sharing: wire::Sharing::Fastest,
            ends: Default::default(),
            plan: wire::PlanView { shortfall: Some((Bytes(80), Bytes(0))), ..wire::PlanView::default() },
            members: Vec::new(),
            tokens_per_second: 0.0,
            tokens: 0,
            credits: Vec::new(),
            deputy: None,
        };
        let waiting = |room: &wire::RoomView, measuring| plan_report(room, measuring).waiting;
        assert!(waiting(&room, true).is_none());
        assert_eq!(waiting(&room, false).map(|waiting| waiting.needed), Some(80));
        room.members.push(wire::MemberView {
            peer: PeerId([2; 16]),
            name: "Phone".into(),
            kind: wire::DeviceKind::Phone,
            adapter: String::new(),
            coordinator: false,
            lent: Some(Bytes(10)),
            used: Bytes(0),
            status: wire::MemberStatus::Spare,
            spare: None,
            standby: None,
            loading: None,
            round_trip_ms: 0.0,
            hidden: false,
        });
        assert!(waiting(&room, true).is_some(), "once somebody lends, the shortfall is known");
    }

    #[test]
    fn a_waiting_guest_sees_that_and_a_lost_connection_comes_first() {
        let connected = LineState::Connected;
        assert_eq!(connection(Some(&connected), Some(Membership::Waiting)), panel::Connection::WaitingForHost);
        assert_eq!(connection(Some(&connected), Some(Membership::Inside)), panel::Connection::Connected);
        let lost = LineState::Reconnecting { attempt: 2, cause: "no answer in time".into() };
        let expected = panel::Connection::Reconnecting { attempt: 2, cause: "no answer in time".into() };
        assert_eq!(connection(Some(&lost), Some(Membership::Waiting)), expected);
        let refused = LineState::SocketsRefused { attempt: 2 };
        let expected = panel::Connection::SocketsRefused { attempt: 2 };
        assert_eq!(connection(Some(&refused), Some(Membership::Waiting)), expected);
        assert_eq!(connection(None, None), panel::Connection::Idle);
    }
}
