//! The host renews the room's link, door keys and group secret.
//!
//! Devices that are inside at that moment stay, and all others need the new link. First the driver keeps what is new, and nothing
//! changes before. Then the room has it, and those who stay get it. So a host that reloads in between is either before the renewal, with
//! nobody knowing of it, or behind it: then each of those comes back by the earlier link, is known by its device, and gets the keys.

use potluck_plan::{DeviceId, PeerId};

use super::Peer;
use crate::doorkeeper::RENEWED;
use crate::mutation::{Mutation, has_mutation};
use crate::{Action, Severity};

const HAS_NEW_LINK: &str = "The room has a new link. Devices that are not here now need it.";
const NOT_RENEWED: &str = "The link was not replaced, because the new one could not be stored here. The link so far and all invites still work.";

impl Peer {
    /// The host renews the room's keys.
    pub(super) fn renew(&mut self) {
        if self.coordinator.is_none() {
            return;
        }
        let inside = self.inside();
        if let Err(sentence) = self.doorkeeper.renew(inside, self.cx.now) {
            return self.cx.out.notice(Severity::Warning, sentence);
        }
        if has_mutation(Mutation::GiveBeforeKept) {
            self.doors_kept(self.doorkeeper.doors().link.wrapping_add(1));
        }
    }

    /// The members that are in the room.
    fn members_inside(&self) -> Vec<PeerId> {
        let members = self.cx.members.known.iter().filter(|(_, member)| member.admitted);
        members.map(|(peer, _)| *peer).collect()
    }

    /// The devices that are in the room. So many may have come since that it was forgotten how one of these came.
    fn inside(&mut self) -> Vec<DeviceId> {
        let members = self.members_inside();
        for member in &members {
            if let Some((_, session)) = self.cx.out.sessions.of(*member).filter(|(_, session)| session.let_in) {
                self.doorkeeper.came_in(session.device, session.proof);
            }
        }
        let mut inside: Vec<DeviceId> = members.iter().filter_map(|member| self.cx.members.device(*member)).collect();
        if has_mutation(Mutation::KeepAway) {
            inside.extend(self.doorkeeper.doors().by_link.iter().map(|holder| holder.device));
        }
        inside
    }

    /// The doors are kept. If their keys are renewed ones, those who stay get them.
    pub(super) fn doors_kept(&mut self, link: u32) {
        if self.coordinator.is_none() {
            return;
        }
        let Some(stay) = self.doorkeeper.kept(link, self.cx.now) else { return };
        self.put_out_all_but(&stay);
        let generation = self.doorkeeper.doors().generation;
        self.cx.out.act(Action::Renewed { link, generation });
        for member in self.members_inside() {
            let stays = self.cx.out.sessions.of(member).is_some_and(|(_, session)| session.admitted);
            if stays && !has_mutation(Mutation::GiveNobody) {
                self.cx.out.act(Action::GiveRenewed(member));
            }
        }
        self.turn_away_who_waits();
        self.refresh();
        self.cx.out.notice(Severity::Info, HAS_NEW_LINK);
    }

    /// Puts out devices that the host removed before and that came back by themselves, and those that came since it renewed the keys.
    /// Sessions with peers that are no members do not let them back in.
    fn put_out_all_but(&mut self, stay: &[DeviceId]) {
        for peer in self.members_inside() {
            if self.cx.members.device(peer).is_some_and(|device| !stay.contains(&device)) {
                let name = self.cx.members.name(peer);
                self.give_up(peer);
                self.turn_away(peer, &name, RENEWED.to_owned());
            }
        }
        let inside = self.members_inside();
        self.cx.out.sessions.let_in_only(|peer| inside.contains(&peer));
    }

    /// The doors cannot be kept. If their keys were renewed ones, nobody gets them.
    pub(super) fn doors_lost(&mut self, link: u32) {
        if self.coordinator.is_some() && self.doorkeeper.lost(link) {
            self.cx.out.notice(Severity::Error, NOT_RENEWED);
        }
    }
}
