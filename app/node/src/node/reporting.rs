//! What the page hears: notices and snapshots.

use potluck_panel::{self as panel, BannedReport, DoorsReport, InviteReport};
use potluck_protocol::Doors;
use potluck_swarm::Peer;

use super::Node;
use crate::room::Members;
use crate::status::{OwnState, snapshot};

impl Node {
    pub(super) fn notice(&self, level: panel::NoticeLevel, sentence: String) {
        self.notice_of(level, sentence, None);
    }

    /// A warning until a condition is over.
    pub(super) fn warn_while(&self, condition: panel::Condition, sentence: String) {
        self.notice_of(panel::NoticeLevel::Warning, sentence, Some(condition));
    }

    pub(super) fn notice_of(&self, level: panel::NoticeLevel, sentence: String, condition: Option<panel::Condition>) {
        let max_waiting = self.inputs.max_waiting();
        let details =
            format!("build {}, {}, at most {max_waiting} events waited", panel::BUILD, self.compute.device.adapter());
        self.page.send(panel::ToPage::Notice(panel::Notice { level, sentence, details, condition }));
    }

    /// Sends the page a snapshot if something changed and the last one is old enough.
    pub(super) fn send_snapshot(&mut self) {
        let Some(identity) = &self.identity else { return };
        if !self.page.take_changed(self.platform.clock.now()) {
            return;
        }
        let view = self.peer.as_ref().map(Peer::view);
        let in_room = view.as_ref().and_then(|view| view.room).map(|room| room.members.iter()).into_iter().flatten();
        let members = self.membership.members();
        let own = OwnState {
            peer: identity.peer,
            key: identity.device,
            members_keys: in_room.filter_map(|member| Some((member.peer, self.devices.of(member.peer)?))).collect(),
            words: members.map(Members::words).unwrap_or_default(),
            doors: view.as_ref().and_then(|view| self.doors_report(view.doors?)),
            line: self.membership.line_state(),
            room: self.membership.room(),
            device: self.compute.report(),
            checking: self.hosting.checking(),
            loaded: self.compute.weight_bytes().0,
            on_demand: self.compute.on_demand.report(),
            shadow: self.compute.shadows.report(),
            downloaded: self.models.traffic.bytes(),
            direct_frames: members.map_or(0, Members::direct_frames),
            paths: members.map(Members::paths).unwrap_or_default(),
            sealing: members.map(Members::sealing).unwrap_or_default(),
            why: self.peer.as_ref().and_then(Peer::why),
            measuring: self.contribution.is_measuring(),
        };
        self.page.send(panel::ToPage::Status(Box::new(snapshot(view.as_ref(), own))));
    }

    /// What the page shows of the doors.
    fn doors_report(&self, doors: &Doors) -> Option<DoorsReport> {
        let owner = self.hosting.owner()?;
        let room = self.membership.room()?;
        let invites = doors.invites.iter().rev().map(|issued| InviteReport {
            invite: issued.invite,
            link: format!("/r/{}#{}", room.id, owner.invite_key(issued.invite)),
            used: u16::try_from(issued.devices.len()).unwrap_or(u16::MAX),
            revoked: issued.revoked,
        });
        let banned =
            doors.banned.iter().map(|banned| BannedReport { device: banned.device, name: banned.name.clone() });
        Some(DoorsReport { invites: invites.collect(), banned: banned.collect(), log: doors.log.clone() })
    }
}
