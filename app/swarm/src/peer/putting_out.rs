//! The host puts members out: for now, or for good.

use potluck_plan::{DeviceId, PeerId};
use potluck_protocol::{Invite, InviteId, LogEvent};

use super::Peer;
use crate::doorkeeper::EntryDecision;
use crate::{Action, Proof, Severity};

const REMOVED: &str = "The host removed this device from the room.";
const BANNED: &str = "The host removed this device from the room and does not let it in again.";

impl Peer {
    /// Puts a member out. It may come back.
    pub(super) fn remove(&mut self, peer: PeerId) {
        if self.coordinator.is_some() && peer != self.identity.peer {
            self.log_event(peer, LogEvent::Removed);
            // With all its tabs: each could come back while another one is inside.
            if let Some(device) = self.cx.members.device(peer).filter(|device| *device != self.identity.device) {
                self.doorkeeper.put_out(device);
            }
            self.put_out(peer, REMOVED);
            self.refresh();
        }
    }

    /// Puts a member's device out for good, with all its tabs. The others get another group secret, so that it reaches none
    /// of them. The invites by which it came end, so that it gets no seat at the relay either; other invites go on.
    pub(super) fn ban(&mut self, peer: PeerId) {
        let Some(device) = self.cx.members.device(peer).filter(|_| self.coordinator.is_some()) else { return };
        if device == self.identity.device {
            let sentence = "This is your own device. Remove it, or end Potluck there.";
            return self.cx.out.notice(Severity::Warning, sentence);
        }
        self.log_event(peer, LogEvent::Banned);
        let generation = self.doorkeeper.ban(device, self.cx.members.name(peer));
        for tab in self.tabs_of(device) {
            if let Some((_, session)) = self.cx.out.sessions.of(tab)
                && let Proof::Invite(invite) = session.proof
            {
                self.doorkeeper.revoke(invite.id);
            }
            self.put_out(tab, BANNED);
        }
        self.cx.out.act(Action::Regroup(generation));
        for member in self.cx.members.known.keys() {
            if self.cx.out.sessions.of(*member).is_some_and(|(_, session)| session.admitted) {
                self.cx.out.act(Action::Admitted(*member));
            }
        }
        self.turn_away_who_waits();
        self.refresh();
    }

    /// The host gives out an invite, unless it has given out too many.
    pub(super) fn invite(&mut self, invite: Invite) {
        if let Err(sentence) = self.doorkeeper.issue(invite, self.cx.now) {
            self.cx.out.notice(Severity::Warning, sentence);
        }
    }

    /// The host takes an invite back: nobody new comes in by it, nor who waits at the door by it.
    pub(super) fn revoke(&mut self, id: InviteId) {
        self.doorkeeper.revoke(id);
        self.turn_away_who_waits();
        self.refresh();
    }

    /// Turns away those that wait for the host's word and may no longer come in.
    pub(super) fn turn_away_who_waits(&mut self) {
        let known = self.cx.members.known.iter();
        let waiting: Vec<PeerId> = known.filter(|(_, member)| !member.admitted).map(|(peer, _)| *peer).collect();
        for peer in waiting {
            if let EntryDecision::TurnedAway(sentence) = self.entry(peer) {
                let name = self.cx.members.name(peer);
                self.turn_away(peer, &name, sentence.to_owned());
            }
        }
    }

    /// A device may come in again.
    pub(super) fn unban(&mut self, device: DeviceId) {
        let banned = self.doorkeeper.doors().banned.iter().find(|banned| banned.device == device);
        if let Some(name) = banned.map(|banned| banned.name.clone()) {
            self.doorkeeper.note(self.cx.now, Some(device), &name, LogEvent::Forgiven);
        }
        self.doorkeeper.unban(device);
    }

    /// Records in the host's log what happened to a peer's device.
    pub(super) fn log_event(&mut self, peer: PeerId, event: LogEvent) {
        let name = self.cx.members.name(peer);
        self.log_as(peer, &name, event);
    }

    /// The same for a peer that is no member yet, under the name that it gives itself.
    pub(super) fn log_as(&mut self, peer: PeerId, name: &str, event: LogEvent) {
        if self.coordinator.is_none() || peer == self.identity.peer {
            return;
        }
        let of_session = self.cx.out.sessions.of(peer).map(|(_, session)| session.device);
        let device = of_session.or_else(|| self.cx.members.device(peer));
        self.doorkeeper.note(self.cx.now, device, name, event);
    }

    /// Records who sent numbers that cannot be right.
    pub(super) fn log_wrong_numbers(&mut self) {
        for (peer, name) in std::mem::take(&mut self.cx.members.wrongs) {
            self.log_as(peer, &name, LogEvent::WrongNumbers);
        }
    }

    fn tabs_of(&self, device: DeviceId) -> Vec<PeerId> {
        let known = self.cx.members.known.keys().copied();
        known.filter(|peer| self.cx.members.device(*peer) == Some(device)).collect()
    }

    fn put_out(&mut self, peer: PeerId, sentence: &str) {
        self.give_up(peer);
        self.dismiss(peer, sentence.into());
    }

    pub(super) fn refresh(&mut self) {
        if let Some(coordinator) = &mut self.coordinator {
            coordinator.refresh(true, &mut self.cx);
        }
    }
}
