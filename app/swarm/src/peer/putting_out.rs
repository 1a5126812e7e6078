//! The host puts members out: for now, or for good.

use potluck_plan::{DeviceId, PeerId};

use super::Peer;
use crate::{Action, Severity};

const REMOVED: &str = "The host removed this device from the room.";
const BANNED: &str = "The host removed this device from the room and does not let it in again.";

impl Peer {
    /// Puts a member out. It may come back.
    pub(super) fn remove(&mut self, peer: PeerId) {
        if self.coordinator.is_some() && peer != self.identity.peer {
            self.put_out(peer, REMOVED);
            self.refresh();
        }
    }

    /// Puts a member's device out for good, with all its tabs. The others get another group secret, so that it reaches none
    /// of them.
    pub(super) fn ban(&mut self, peer: PeerId) {
        let Some(device) = self.cx.members.device(peer).filter(|_| self.coordinator.is_some()) else { return };
        if device == self.identity.device {
            let sentence = "This is another tab of your own browser. Remove it, or close it.";
            return self.cx.out.notice(Severity::Warning, sentence);
        }
        let generation = self.doorkeeper.ban(device, self.cx.members.name(peer));
        for tab in self.tabs_of(device) {
            self.put_out(tab, BANNED);
        }
        self.cx.out.act(Action::Regroup(generation));
        for member in self.cx.members.known.keys() {
            if self.cx.out.sessions.of(*member).is_some_and(|(_, session)| session.admitted) {
                self.cx.out.act(Action::Admitted(*member));
            }
        }
        self.refresh();
    }

    fn tabs_of(&self, device: DeviceId) -> Vec<PeerId> {
        let known = self.cx.members.known.keys().copied();
        known.filter(|peer| self.cx.members.device(*peer) == Some(device)).collect()
    }

    fn put_out(&mut self, peer: PeerId, sentence: &str) {
        self.give_up(peer);
        self.turn_away(peer, sentence.into());
    }

    fn refresh(&mut self) {
        if let Some(coordinator) = &mut self.coordinator {
            coordinator.refresh(true, &mut self.cx);
        }
    }
}
