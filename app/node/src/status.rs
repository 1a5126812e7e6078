//! The snapshot for the page, from the room's picture and what only this device knows.

use potluck_panel as panel;
use potluck_plan::{ExpertHolder, PeerId, Plan, Stage};
use potluck_protocol as wire;
use potluck_swarm::{Membership, SwarmView};

use crate::convert;
use crate::room::LineState;

/// What only this device knows.
pub struct Own<'a> {
    /// This tab.
    pub peer: PeerId,
    /// The line to the relay.
    pub line: Option<&'a LineState>,
    /// The room's id and key.
    pub room: Option<&'a RoomName>,
    /// Its GPU.
    pub device: panel::DeviceReport,
    /// Weight bytes on its GPU.
    pub loaded: u64,
    /// Bytes it fetched.
    pub downloaded: u64,
    /// Frames that came straight from other tabs of this browser.
    pub direct_frames: u64,
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
}

impl RoomName {
    /// Path and fragment of the room's link.
    pub fn link(&self) -> String {
        let fragment = self.key.as_ref().map(|key| format!("#{key}")).unwrap_or_default();
        format!("/r/{}{fragment}", self.id)
    }
}

/// The whole snapshot.
pub fn snapshot(view: Option<&SwarmView<'_>>, own: Own<'_>) -> panel::Status {
    let picture = view.and_then(|view| view.room);
    let inside = view.is_some_and(|view| view.membership == Membership::Inside);
    let standing = view.map(|view| view.membership);
    panel::Status {
        build: panel::BUILD.to_owned(),
        peer: own.peer.to_string(),
        role: panel::Roles {
            coordinator: view.is_some_and(|view| view.coordinator),
            worker: inside && view.is_some_and(|view| view.contribution.is_some()),
            guest: inside,
        },
        connection: connection(own.line, standing),
        room: own.room.map(room),
        model: picture.and_then(|picture| picture.model.as_ref().map(|card| model(card, picture.context))),
        plan: picture.map(|picture| shown_plan(picture, own.measuring)),
        peers: picture.map(|picture| members(picture, own.peer)).unwrap_or_default(),
        device: own.device,
        loading: view.and_then(|view| view.loading.as_ref().map(convert::loading)),
        bytes_loaded: own.loaded,
        bytes_downloaded: own.downloaded,
        direct_frames: own.direct_frames,
        tokens_per_second: picture.map_or(0.0, |picture| picture.tokens_per_second),
        tokens: picture.map_or(0, |picture| picture.tokens),
        pending: view.map(|view| view.pending.iter().map(|id| panel::RequestId(id.0)).collect()).unwrap_or_default(),
    }
}

fn connection(line: Option<&LineState>, standing: Option<Membership>) -> panel::Connection {
    match line {
        None => panel::Connection::Idle,
        Some(LineState::Connecting) => panel::Connection::Connecting,
        Some(LineState::Connected) if standing == Some(Membership::Waiting) => panel::Connection::WaitingForHost,
        Some(LineState::Connected) => panel::Connection::Connected,
        Some(LineState::Reconnecting { attempt }) => panel::Connection::Reconnecting { attempt: *attempt },
        Some(LineState::Closed(reason)) => panel::Connection::Closed { reason: reason.clone() },
    }
}

fn room(name: &RoomName) -> panel::RoomReport {
    panel::RoomReport { id: name.id.clone(), key: name.key.clone(), link: name.link(), visible: name.visible }
}

fn model(card: &wire::ModelCard, context: u32) -> panel::ModelReport {
    panel::ModelReport {
        id: card.id.to_string(),
        name: card.name.clone(),
        source: convert::source_shown(&card.source),
        architecture: card.architecture.clone(),
        quantization: card.quantization.clone(),
        bytes: card.bytes.0,
        parameters: card.parameters,
        active_parameters: card.active_parameters,
        blocks: card.blocks.into(),
        experts: card.experts.into(),
        context,
        licence: card.licence.clone(),
    }
}

/// A room is not short of memory while its first device is only being measured.
fn shown_plan(picture: &wire::RoomView, measuring: bool) -> panel::PlanReport {
    let mut report = plan(picture);
    if measuring && report.waiting.is_some() && picture.members.iter().all(|member| member.lent.is_none()) {
        report.waiting = None;
        report.reason = "This device is measured: a moment.".to_owned();
    }
    report
}

fn plan(picture: &wire::RoomView) -> panel::PlanReport {
    let view = &picture.plan;
    let state = match view.status {
        wire::PlanStatus::Waiting => panel::PlanState::Waiting,
        wire::PlanStatus::Preparing => panel::PlanState::Preparing,
        wire::PlanStatus::Committing => panel::PlanState::Committing,
        wire::PlanStatus::Up => panel::PlanState::Up,
    };
    let stages =
        view.plan.iter().flat_map(|plan| plan.stages.iter().enumerate().map(|(i, at)| stage(view, plan, i, at)));
    panel::PlanReport {
        epoch: view.plan.as_ref().map_or(0, |plan| plan.epoch.0),
        state,
        stages: stages.collect(),
        hops: view.hops.iter().map(hop).collect(),
        cache: view.plan.as_ref().map(|plan| convert::state_shown(plan.kv_cache)),
        overhead: view.overhead.0,
        network_hops: view.plan.as_ref().map_or(0, |plan| plan.network_hops(picture.host)),
        token_ms: view.token_ms,
        measured_token_ms: view.measured_token_ms,
        forecast: view.forecast.as_ref().map(forecast),
        sharing: picture.sharing,
        waiting: view.shortfall.map(|(needed, lent)| panel::Waiting {
            needed: needed.0,
            lent: lent.0,
            sentence: view.reason.clone(),
        }),
        reason: view.reason.clone(),
        help: view.help.clone(),
    }
}

fn forecast(told: &wire::ForecastView) -> panel::ForecastReport {
    let wire::ForecastView { tokens, before_ms, measured_ms, forecast_ms, rest_tokens, rest_ms } = *told;
    panel::ForecastReport { tokens, before_ms, measured_ms, forecast_ms, rest_tokens, rest_ms }
}

fn hop(hop: &wire::HopView) -> panel::HopReport {
    panel::HopReport {
        from: hop.from.to_string(),
        to: hop.to.to_string(),
        predicted_ms: hop.predicted_ms,
        measured_ms: hop.measured_ms,
    }
}

fn stage(view: &wire::PlanView, plan: &Plan, index: usize, stage: &Stage) -> panel::StageReport {
    let mut experts: Vec<PeerId> = holders(stage).collect();
    experts.sort();
    experts.dedup();
    panel::StageReport {
        id: stage.id.0.into(),
        peer: stage.peer.to_string(),
        first_block: stage.blocks.start.into(),
        end_block: stage.blocks.end.into(),
        embeds: plan.embeds(stage.id),
        head: plan.has_lm_head(stage.id),
        expert_peers: experts.iter().map(ToString::to_string).collect(),
        bytes: view.stage_bytes.get(index).map_or(0, |bytes| bytes.0),
        kv_cache_bytes: view.kv_cache_bytes.get(index).map_or(0, |bytes| bytes.0),
        predicted_ms: view.predicted_ms.get(index).copied().unwrap_or(0.0),
        measured_ms: view.measured_ms.get(index).copied().unwrap_or(0.0),
    }
}

/// Peers other than the stage's own that hold its experts, once for each expert.
fn holders(stage: &Stage) -> impl Iterator<Item = PeerId> {
    stage.remote.iter().flat_map(|remote| &remote.holders).flatten().filter_map(|holder| match holder {
        ExpertHolder::Peer(peer) => Some(*peer),
        ExpertHolder::Own => None,
    })
}

fn members(picture: &wire::RoomView, me: PeerId) -> Vec<panel::Member> {
    let model = picture.model.as_ref();
    let member = |member: &wire::MemberView| panel::Member {
        peer: member.peer.to_string(),
        name: member.name.clone(),
        kind: convert::kind_shown(member.kind),
        role: panel::Roles {
            coordinator: member.coordinator,
            worker: member.lent.is_some(),
            guest: member.status != wire::MemberStatus::Asking,
        },
        is_self: member.peer == me,
        lent: member.lent.map_or(0, |bytes| bytes.0),
        used: member.used.0,
        holds: picture.plan.plan.as_ref().map(|plan| holds(plan, member.peer, model)).unwrap_or_default(),
        state: standing(member.status),
        spare: member.spare.clone(),
        standby: member.standby.clone(),
        loading: member.loading.as_ref().map(convert::loading),
        link: (member.peer != me && member.round_trip_ms > 0.0)
            .then_some(panel::MemberLink { direct: false, round_trip_ms: member.round_trip_ms }),
        hidden: member.hidden,
        adapter: member.adapter.clone(),
    };
    picture.members.iter().map(member).collect()
}

fn standing(standing: wire::MemberStatus) -> panel::MemberState {
    match standing {
        wire::MemberStatus::Asking => panel::MemberState::Asking,
        wire::MemberStatus::Guest => panel::MemberState::Guest,
        wire::MemberStatus::Loading => panel::MemberState::Loading,
        wire::MemberStatus::Ready => panel::MemberState::Ready,
        wire::MemberStatus::Spare => panel::MemberState::Spare,
        wire::MemberStatus::Failed => panel::MemberState::Failed,
        wire::MemberStatus::Silent => panel::MemberState::Silent,
    }
}

/// What a peer holds in a plan, in words: "blocks 0–11", "embedding", "experts 5 of 128".
fn holds(plan: &Plan, peer: PeerId, model: Option<&wire::ModelCard>) -> Vec<String> {
    let mut words = Vec::new();
    for stage in plan.stages.iter().filter(|stage| stage.peer == peer) {
        if plan.embeds(stage.id) {
            words.push("embedding".to_owned());
        }
        match stage.blocks.len() {
            0 => {}
            1 => words.push(format!("block {}", stage.blocks.start)),
            _ => words.push(format!("blocks {}–{}", stage.blocks.start, stage.blocks.end - 1)),
        }
        if plan.has_lm_head(stage.id) {
            words.push("head".to_owned());
        }
    }
    let experts = plan.stages.iter().flat_map(holders).filter(|holder| *holder == peer).count();
    if experts > 0 {
        let all = model.map_or(0, |card| usize::from(card.experts) * usize::from(card.blocks));
        words.push(format!("experts {experts} of {all}"));
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;
    use potluck_plan::{
        BlockIndex, BlockRange, Bytes, KvCacheType, ModelId, PlanEpoch, RemoteExperts, StageId, WireType,
    };

    #[test]
    fn what_a_peer_holds_reads_like_a_sentence() {
        let (host, helper) = (PeerId([1; 16]), PeerId([2; 16]));
        let mut stage = Stage::new(StageId(0), host, BlockRange::new(0, 12));
        let held = vec![
            vec![ExpertHolder::Peer(helper)],
            vec![ExpertHolder::Own],
            vec![ExpertHolder::Own, ExpertHolder::Peer(helper)],
        ];
        stage.remote = vec![RemoteExperts { block: BlockIndex(3), holders: held }];
        let stages = vec![stage, Stage::new(StageId(1), helper, BlockRange::new(12, 13))];
        let plan = Plan {
            epoch: PlanEpoch(1),
            model: ModelId([0; 32]),
            stages,
            wire: WireType::F32,
            context: 64,
            kv_cache: KvCacheType::F32,
        };
        assert_eq!(holds(&plan, host, None), ["embedding", "blocks 0–11"]);
        assert_eq!(holds(&plan, helper, None), ["block 12", "head", "experts 2 of 0"]);
    }

    #[test]
    fn a_room_is_not_short_of_memory_while_its_first_device_is_measured() {
        let mut picture = wire::RoomView {
            host: PeerId([1; 16]),
            model: None,
            context: 64,
            sharing: wire::Sharing::Fastest,
            plan: wire::PlanView { shortfall: Some((Bytes(80), Bytes(0))), ..wire::PlanView::default() },
            members: Vec::new(),
            tokens_per_second: 0.0,
            tokens: 0,
        };
        let waiting = |picture: &wire::RoomView, measuring| shown_plan(picture, measuring).waiting;
        assert!(waiting(&picture, true).is_none());
        assert_eq!(waiting(&picture, false).map(|waiting| waiting.needed), Some(80));
        picture.members.push(wire::MemberView {
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
        assert!(waiting(&picture, true).is_some(), "somebody lends: what is missing is known");
    }

    #[test]
    fn a_waiting_guest_is_told_so_and_a_lost_line_comes_first() {
        let connected = LineState::Connected;
        assert_eq!(connection(Some(&connected), Some(Membership::Waiting)), panel::Connection::WaitingForHost);
        assert_eq!(connection(Some(&connected), Some(Membership::Inside)), panel::Connection::Connected);
        let lost = LineState::Reconnecting { attempt: 2 };
        let expected = panel::Connection::Reconnecting { attempt: 2 };
        assert_eq!(connection(Some(&lost), Some(Membership::Waiting)), expected);
        assert_eq!(connection(None, None), panel::Connection::Idle);
    }
}
