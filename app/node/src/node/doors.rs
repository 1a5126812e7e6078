//! The doors of the room that this node hosts: it signs invites, and shows them with their links.

use std::cell::RefCell;
use std::collections::BTreeMap;

use potluck_panel::{BannedReport, DoorsReport, InviteChoice, InviteReport};
use potluck_plan::PeerId;
use potluck_protocol::{Doors, Invite, InviteId, InviteKind, UnixSeconds};
use potluck_swarm::Event;
use potluck_trust::{DeviceId, InviteKey, OwnerKey, RoomSecret};

use super::Node;
use crate::platform::Platform;

/// What precedes an invite in the fragment of its link, for people and for the page before it asks the node.
const CHAT: &str = "chat";
const LEND: &str = "lend";

/// The keys of the room that this node hosts.
pub(super) struct RoomOwner {
    pub key: OwnerKey,
    pub secret: RoomSecret,
}

impl RoomOwner {
    /// The key that the link of an invite shows.
    fn invite_key(&self, invite: Invite) -> String {
        let kind = match invite.kind {
            InviteKind::Chat => CHAT,
            InviteKind::Contribute => LEND,
        };
        let key = InviteKey { door: self.secret.door(), invite: self.key.sign_invite(invite.to_bytes()) };
        format!("{kind}.{}", key.text())
    }
}

/// The invite in the key of a link, if the key is one of an invite; an inner `None` if it is damaged.
pub(super) fn invite_of(key: &str) -> Option<Option<InviteKey>> {
    let (_, invite) = key.split_once('.')?;
    Some(InviteKey::parse(invite))
}

/// The invite lets its holder chat only.
pub(super) fn is_for_chat(key: &InviteKey) -> bool {
    Invite::from_bytes(key.invite.terms).is_some_and(|invite| invite.kind == InviteKind::Chat)
}

/// Three words of each device that was met.
#[derive(Default)]
pub(super) struct Words {
    devices: BTreeMap<PeerId, DeviceId>,
    known: RefCell<BTreeMap<DeviceId, String>>,
}

/// Devices and words that are remembered. They are cheap to find out again.
const MAX_WORDS: usize = 4_096;

impl Words {
    /// A peer has proved which device it is of.
    pub fn met(&mut self, peer: PeerId, device: DeviceId) {
        if self.devices.len() >= MAX_WORDS {
            self.devices.clear();
        }
        self.devices.insert(peer, device);
    }

    pub fn of_device(&self, device: DeviceId) -> String {
        let mut known = self.known.borrow_mut();
        if known.len() >= MAX_WORDS {
            known.clear();
        }
        known.entry(device).or_insert_with(|| potluck_trust::words(device)).clone()
    }

    pub fn of_peer(&self, peer: PeerId) -> Option<String> {
        self.devices.get(&peer).map(|device| self.of_device(*device))
    }
}

impl Node {
    /// Gives out an invite of the room that this node hosts.
    pub(super) fn invite(&mut self, choice: InviteChoice) {
        let InviteChoice { kind, ask, hours, uses } = choice;
        let id = InviteId(u32::from_le_bytes(self.platform.random_bytes()));
        let expires = UnixSeconds(now(&self.platform).0.saturating_add(hours.saturating_mul(3_600)));
        self.event(Event::Invite(Invite { id, kind, ask, expires, uses }));
    }

    /// What the page shows of the doors.
    pub(super) fn doors_report(&self, doors: &Doors) -> Option<DoorsReport> {
        let owner = self.hosting.owner()?;
        let room = self.membership.room()?;
        let invites = doors.invites.iter().rev().map(|issued| InviteReport {
            invite: issued.invite,
            link: format!("/r/{}#{}", room.id, owner.invite_key(issued.invite)),
            used: u16::try_from(issued.devices.len()).unwrap_or(u16::MAX),
            revoked: issued.revoked,
        });
        let banned = doors.banned.iter().map(|banned| BannedReport {
            device: banned.device,
            name: banned.name.clone(),
            words: self.words.of_device(banned.device),
        });
        Some(DoorsReport { invites: invites.collect(), banned: banned.collect() })
    }
}

/// The time on this device's clock.
pub(super) fn now(platform: &Platform) -> UnixSeconds {
    UnixSeconds(u32::try_from(platform.clock.unix_seconds()).unwrap_or(u32::MAX))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]

    use super::*;

    #[test]
    fn the_link_of_an_invite_says_what_it_is_for_and_reads_back() {
        let owner = RoomOwner { key: OwnerKey::from_seed([7; 32]), secret: RoomSecret::from_bytes([9; 16]) };
        for (kind, word) in [(InviteKind::Chat, "chat."), (InviteKind::Contribute, "lend.")] {
            let invite = Invite { id: InviteId(1), kind, ask: true, expires: UnixSeconds(5), uses: 3 };
            let key = owner.invite_key(invite);
            assert!(key.starts_with(word), "{key}");
            let parsed = invite_of(&key).unwrap().unwrap();
            assert_eq!(Invite::from_bytes(parsed.invite.terms), Some(invite));
            assert_eq!(is_for_chat(&parsed), kind == InviteKind::Chat);
            assert!(invite_of(&key[..key.len() - 1]).unwrap().is_none(), "a damaged invite is noticed");
        }
        assert!(invite_of(&owner.secret.text()).is_none(), "the room's own link is no invite");
    }
}
