//! The host renews the room's link, door keys and group secret.
//!
//! First the driver keeps what is new, and nothing changes before. Then the room has it, and those who stay get it. So a host that
//! reloads in between is either before the renewal, with nobody knowing of it, or behind it: then each member comes back by the earlier
//! link, is known by its device, and gets the keys.

use potluck_plan::{DeviceId, PeerId};

use super::Peer;
use crate::mutation::{Mutation, has_mutation};
use crate::{Action, Severity};

const HAS_NEW_LINK: &str = "The room has a new link. Earlier links and invites let in nobody new.";
const NOT_RENEWED: &str = "The link was not renewed, because the new one could not be stored here. The link so far and all invites still work.";

impl Peer {
    /// The host renews the room's keys.
    pub(super) fn renew(&mut self) {
        if self.coordinator.is_none() {
            return;
        }
        let inside = self.inside();
        self.doorkeeper.renew(inside);
        if has_mutation(Mutation::GiveBeforeKept) {
            self.doors_kept(self.doorkeeper.doors().link.wrapping_add(1));
        }
    }

    /// The devices that are in the room.
    fn inside(&self) -> Vec<DeviceId> {
        let members = self.cx.members.known.iter().filter(|(_, member)| member.admitted);
        members.filter_map(|(peer, _)| self.cx.members.device(*peer)).collect()
    }

    /// The doors are kept. If their keys are renewed ones, those who stay get them.
    pub(super) fn doors_kept(&mut self, link: u32) {
        let inside = self.inside();
        if self.coordinator.is_none() || !self.doorkeeper.kept(link, &inside, self.cx.now) {
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
        self.turn_away_who_waits();
        self.refresh();
        self.cx.out.notice(Severity::Info, HAS_NEW_LINK);
    }

    /// The doors cannot be kept. If their keys were renewed ones, nobody gets them.
    pub(super) fn doors_lost(&mut self, link: u32) {
        if self.coordinator.is_some() && self.doorkeeper.lost(link) {
            self.cx.out.notice(Severity::Error, NOT_RENEWED);
        }
    }
}
