//! The status of node and room: one snapshot, the source of the table and of `potluck.status()`.

mod device;
mod doors;
mod on_demand;
mod plan;

use potluck_plan::{DeviceId, PeerId};
use potluck_predict::ForesightReport;
use potluck_protocol::{CreditView, LoadReport, MemberView, ModelCard, RequestId};
use serde::{Deserialize, Serialize};

use crate::WhyPlan;

pub use self::device::{DeviceReport, SelfTest, SelfTestState};
pub use self::doors::{BannedReport, DoorsReport, InviteReport, InviteState};
pub use self::on_demand::{CallTimes, DraftCount, DraftReport, OnDemandReport, ShadowReport};
pub use self::plan::{ExpertHolding, PlanReport, StageReport, Waiting};

/// A whole snapshot, as one tab sees it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Status {
    /// The node's build.
    pub build: String,
    /// This tab's peer id; none before the node has told it.
    pub peer: Option<PeerId>,
    /// What this tab is in the room.
    pub role: Roles,
    /// The connection to the relay.
    pub connection: Connection,
    /// The room, once in one.
    pub room: Option<RoomReport>,
    /// The room's model.
    pub model: Option<ModelCard>,
    /// Positions of context in the room, all conversations together; 0 outside of one.
    pub context: u32,
    /// Where the model's parts live.
    pub plan: Option<PlanReport>,
    /// Why they live there; on the host only.
    pub why: Option<WhyPlan>,
    /// Everyone at the table, the host first, this tab included.
    pub peers: Vec<MemberView>,
    /// This device's key, once the node has told it.
    pub key: Option<DeviceId>,
    /// The keys of the members with which this device has a session or had one: they have proved them.
    pub members_keys: Vec<(PeerId, DeviceId)>,
    /// The three words of each session that is up: the device at its other end shows the same ones.
    pub words: Vec<(PeerId, String)>,
    /// Those of the session with the host, also before this device is let in.
    pub host_words: Option<String>,
    /// Who may come in; on the host only.
    pub doors: Option<DoorsReport>,
    /// What this device can do.
    pub device: DeviceReport,
    /// What this device is loading.
    pub loading: Option<LoadReport>,
    /// How far the hosted file is checked, before it is open.
    pub checking: Option<LoadReport>,
    /// Weight bytes on this device's GPU.
    pub bytes_loaded: u64,
    /// What loading experts on demand costs this device; none if it holds all of its experts.
    pub on_demand: Option<OnDemandReport>,
    /// The shadow that this device makes from the model that it hosts; none if there is none.
    pub shadow: Option<ShadowReport>,
    /// What came of this device's hints to holders that load on demand: who guesses, and how well; none if it sends none.
    pub hints: Option<ForesightReport>,
    /// Draft tokens of this host's answers; none elsewhere.
    pub drafts: Option<DraftReport>,
    /// Weight bytes this tab fetched over the network since it opened.
    pub bytes_downloaded: u64,
    /// Frames that came from other tabs of this browser or from other devices without the relay, on the room's present connection.
    pub direct_frames: u64,
    /// How messages reach the members with which this device has a session.
    pub paths: Vec<(PeerId, PathReport)>,
    /// What it took to seal messages and to open them, on the room's present connection.
    pub sealing: Sealing,
    /// Last measured tokens per second of the room, 0 before the first answer.
    pub tokens_per_second: f64,
    /// Tokens written in the room since it was opened, as of the last second.
    pub tokens: u64,
    /// What each device has computed for the room, those that left included.
    pub credits: Vec<CreditView>,
    /// Who hosts the room if its host is lost.
    pub deputy: Option<PeerId>,
    /// Prompts this tab waits for.
    pub pending: Vec<RequestId>,
}

/// How messages reach a member.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PathReport {
    /// Past the relay.
    pub direct: bool,
    /// Milliseconds there and back past the relay, once they were measured.
    pub direct_ms: Option<f64>,
    /// The same through the relay.
    pub relay_ms: Option<f64>,
}

/// What it took this device to seal messages and to open them, encoding included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Sealing {
    /// Messages to and from others.
    pub messages: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Milliseconds in all.
    pub ms: f64,
}

impl Status {
    /// The key of a member's device, if it has proved it to this one.
    #[must_use]
    pub fn key_of(&self, peer: PeerId) -> Option<DeviceId> {
        if self.peer == Some(peer) {
            return self.key;
        }
        self.members_keys.iter().find(|(known, _)| *known == peer).map(|(_, key)| *key)
    }

    /// How messages reach a member.
    #[must_use]
    pub fn path_to(&self, peer: PeerId) -> Option<PathReport> {
        self.paths.iter().find(|(known, _)| *known == peer).map(|(_, path)| *path)
    }

    /// The three words of the session with a member.
    #[must_use]
    pub fn words_of(&self, peer: PeerId) -> Option<&str> {
        self.words.iter().find(|(known, _)| *known == peer).map(|(_, words)| words.as_str())
    }

    /// What the device of a member has computed for the room; none if nothing was counted.
    #[must_use]
    pub fn credit_of(&self, peer: PeerId) -> Option<&CreditView> {
        self.credits.iter().find(|credit| credit.peers.contains(&peer))
    }

    /// A member is this tab.
    #[must_use]
    pub fn is_self(&self, member: &MemberView) -> bool {
        self.peer == Some(member.peer)
    }
}

/// What a tab is in the room; it can be all at once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Roles {
    /// It opened the room and holds the token log.
    pub coordinator: bool,
    /// It contributes its GPU.
    pub worker: bool,
    /// It is in the room.
    pub guest: bool,
}

/// The connection to the relay.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Connection {
    /// In no room.
    #[default]
    Idle,
    /// Dialling.
    Connecting,
    /// In the room.
    Connected,
    /// Lost; trying again.
    Reconnecting {
        /// Which try.
        attempt: u32,
        /// What was heard of the last one, no sentence: "connection refused".
        cause: String,
    },
    /// The relay answers this page's requests, but the browser opens no socket to it; trying again.
    SocketsRefused {
        /// Which try.
        attempt: u32,
    },
    /// Waiting for the host to let this tab in.
    WaitingForHost,
    /// It ended: one sentence why.
    Closed {
        /// Why, and what to do.
        reason: String,
    },
}

/// The room.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RoomReport {
    /// Its id on the relay.
    pub id: String,
    /// Key of the link's fragment.
    pub key: Option<String>,
    /// Path and fragment of its link, `/r/ID#KEY`.
    pub link: String,
    /// Listed on everyone's door.
    pub visible: bool,
    /// This tab came by an invite to chat: it cannot lend its GPU.
    pub chat_only: bool,
}

#[cfg(test)]
mod tests {
    use potluck_plan::Bytes;
    use potluck_protocol::{DeviceKind, LoadPhase, MemberStatus};

    use super::*;

    /// Tools read `potluck.status()`: ids are hexadecimal text, sums of bytes plain numbers, states names.
    #[test]
    fn the_snapshot_reads_well_as_json() {
        let host = PeerId([0xab; 16]);
        let member = MemberView {
            peer: host,
            name: "Laptop".into(),
            kind: DeviceKind::Computer,
            adapter: String::new(),
            coordinator: true,
            lent: Some(Bytes(7)),
            used: Bytes(3),
            status: MemberStatus::Ready,
            spare: None,
            standby: None,
            loading: Some(LoadReport::begin(LoadPhase::SelfTest)),
            round_trip_ms: 0.0,
            hidden: false,
        };
        let status = Status { peer: Some(host), peers: vec![member], ..Status::default() };
        let json = serde_json::to_value(&status).expect("a snapshot is plain data");
        let hex = "ab".repeat(16);
        assert_eq!(json["peer"], hex.as_str());
        let seen = &json["peers"][0];
        assert_eq!(seen["peer"], hex.as_str());
        assert_eq!((&seen["lent"], &seen["used"]), (&7.into(), &3.into()));
        assert_eq!((&seen["status"], &seen["loading"]["phase"]), (&"Ready".into(), &"self-test".into()));
        assert_eq!(serde_json::from_value::<Status>(json).expect("it reads again"), status);
    }
}
