//! The doors of the room that this node hosts: keys that sign invites, and the devices that came.

use std::collections::BTreeMap;

use potluck_plan::PeerId;
use potluck_protocol::{Invite, InviteKind};
use potluck_trust::{DeviceId, InviteKey, OwnerKey, RoomSecret};

/// What precedes an invite in the fragment of its link, for people and for the page before it asks the node.
const CHAT: &str = "chat";
const LEND: &str = "lend";

/// Earlier links of which the relay is told.
pub(super) const EARLIER_LINKS: u32 = potluck_relay_api::MAX_EARLIER_LINKS as u32;

/// The keys of the room that this node hosts.
pub(super) struct RoomOwner {
    pub key: OwnerKey,
    /// The secret of the room's first link.
    pub first: RoomSecret,
}

impl RoomOwner {
    /// The key of the room's link with this number.
    pub fn link_key(&self, number: u32) -> String {
        self.key.link(&self.first, number).text()
    }

    /// The key that the link of an invite shows.
    pub fn invite_key(&self, invite: Invite) -> String {
        let kind = match invite.kind {
            InviteKind::Chat => CHAT,
            InviteKind::Contribute => LEND,
        };
        format!("{kind}.{}", self.key.invite(invite.to_bytes()).text())
    }
}

/// The invite in the key of a link, if the key is one of an invite; an inner `None` if it is damaged.
pub(super) fn invite_of(key: &str) -> Option<Option<InviteKey>> {
    let (_, invite) = key.split_once('.')?;
    Some(InviteKey::parse(invite))
}

/// The invite lets its holder chat only.
pub(super) fn is_for_chat(key: &InviteKey) -> bool {
    Invite::from_bytes(key.terms).is_some_and(|invite| invite.kind == InviteKind::Chat)
}

/// The device of each peer that this node has met.
#[derive(Default)]
pub(super) struct Devices(BTreeMap<PeerId, DeviceId>);

/// Devices that are remembered. The next session tells them again.
const MAX_DEVICES: usize = 4_096;

impl Devices {
    /// A peer has proved which device it is of.
    pub fn met(&mut self, peer: PeerId, device: DeviceId) {
        if self.0.len() >= MAX_DEVICES {
            self.0.clear();
        }
        self.0.insert(peer, device);
    }

    pub fn of(&self, peer: PeerId) -> Option<DeviceId> {
        self.0.get(&peer).copied()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]

    use potluck_protocol::{InviteId, UnixSeconds};
    use potluck_trust::RoomSecret;

    use super::*;

    #[test]
    fn the_link_of_an_invite_says_what_it_is_for_and_reads_back() {
        let owner = RoomOwner { key: OwnerKey::from_seed([7; 32]), first: RoomSecret::from_bytes([9; 16]) };
        for (kind, word) in [(InviteKind::Chat, "chat."), (InviteKind::Contribute, "lend.")] {
            let invite = Invite { id: InviteId(1), kind, ask: true, expires: UnixSeconds(5), uses: 3 };
            let key = owner.invite_key(invite);
            assert!(key.starts_with(word), "{key}");
            let parsed = invite_of(&key).unwrap().unwrap();
            assert_eq!(Invite::from_bytes(parsed.terms), Some(invite));
            let certificate = parsed.certificate();
            assert_eq!((certificate.invite(), certificate.expires()), (1, 5), "what the relay reads of it");
            assert_eq!(is_for_chat(&parsed), kind == InviteKind::Chat);
            assert!(invite_of(&key[..key.len() - 1]).unwrap().is_none(), "a damaged invite is noticed");
        }
        assert!(invite_of(&RoomSecret::from_bytes([9; 16]).text()).is_none(), "the room's own link is no invite");
    }
}
