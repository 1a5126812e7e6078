//! The host renews the room's link, door keys and group secret.
//!
//! First the driver keeps what is new, then those who stay get it. So a host that reloads in between is either before the renewal,
//! with nobody knowing of it, or behind it: then each member comes back by the earlier link, is known by its device, and gets the keys.

use potluck_plan::{DeviceId, PeerId};
use potluck_protocol::LogEvent;

use super::Peer;
use crate::mutation::{Mutation, has_mutation};
use crate::{Action, Severity};

const RENEWED: &str = "The room has a new link. Earlier links and invites let in nobody new.";

impl Peer {
    /// The host renews the room's keys.
    pub(super) fn renew(&mut self) {
        if self.coordinator.is_none() {
            return;
        }
        let members = self.cx.members.known.iter().filter(|(_, member)| member.admitted);
        let inside: Vec<DeviceId> = members.filter_map(|(peer, _)| self.cx.members.device(*peer)).collect();
        self.doorkeeper.renew(&inside);
        self.doorkeeper.note(self.cx.now, None, "", LogEvent::LinkRenewed);
        self.turn_away_who_waits();
        self.refresh();
        if has_mutation(Mutation::GiveBeforeKept) {
            self.doors_kept(self.doorkeeper.doors().link);
        }
    }

    /// The doors are kept. If they were renewed, those who stay get the keys.
    pub(super) fn doors_kept(&mut self, link: u32) {
        if self.coordinator.is_none() || !self.doorkeeper.kept(link) {
            return;
        }
        let generation = self.doorkeeper.doors().generation;
        self.cx.out.act(Action::Renewed { link, generation });
        let members: Vec<PeerId> = self.cx.members.known.keys().copied().collect();
        for member in members {
            let stays = self.cx.out.sessions.of(member).is_some_and(|(_, session)| session.admitted);
            if stays && !has_mutation(Mutation::GiveNobody) {
                self.cx.out.act(Action::GiveRenewed(member));
            }
        }
        self.cx.out.notice(Severity::Info, RENEWED);
    }
}
