//! Who may come into a room, as its host keeps it. Not a frame: a guest proves its invite in its handshake.

use potluck_plan::DeviceId;
use serde::{Deserialize, Serialize};

use crate::LogEntry;

/// An invite's number, random, unique in its room.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct InviteId(pub u32);

/// Seconds since 1970 on somebody's clock, until 2106.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct UnixSeconds(pub u32);

/// What an invited device may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum InviteKind {
    /// Ask questions.
    Chat,
    /// Ask questions, and lend its GPU.
    Contribute,
}

/// The terms of an invite, which the host signs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Invite {
    /// Its number.
    pub id: InviteId,
    /// What it allows.
    pub kind: InviteKind,
    /// The host is asked before the device comes in.
    pub ask: bool,
    /// New devices may use it until then.
    pub expires: UnixSeconds,
    /// So many devices may use it.
    pub uses: u16,
}

impl Invite {
    /// Bytes of the terms.
    pub const LEN: usize = 11;
    const ASK: u8 = 0x80;

    /// The terms as they are signed: kind (1 chat, 2 contribute; plus 128 to be asked first), number, expiry and uses, all
    /// little-endian.
    #[must_use]
    pub fn to_bytes(self) -> [u8; Self::LEN] {
        let kind: u8 = match self.kind {
            InviteKind::Chat => 1,
            InviteKind::Contribute => 2,
        };
        let mut bytes = [0; Self::LEN];
        bytes[0] = kind | if self.ask { Self::ASK } else { 0 };
        bytes[1..5].copy_from_slice(&self.id.0.to_le_bytes());
        bytes[5..9].copy_from_slice(&self.expires.0.to_le_bytes());
        bytes[9..].copy_from_slice(&self.uses.to_le_bytes());
        bytes
    }

    /// Reads the terms; `None` for a kind that this version does not know.
    #[must_use]
    pub fn from_bytes(bytes: [u8; Self::LEN]) -> Option<Self> {
        let [kind, i0, i1, i2, i3, e0, e1, e2, e3, u0, u1] = bytes;
        Some(Self {
            id: InviteId(u32::from_le_bytes([i0, i1, i2, i3])),
            kind: match kind & !Self::ASK {
                1 => InviteKind::Chat,
                2 => InviteKind::Contribute,
                _ => return None,
            },
            ask: kind & Self::ASK != 0,
            expires: UnixSeconds(u32::from_le_bytes([e0, e1, e2, e3])),
            uses: u16::from_le_bytes([u0, u1]),
        })
    }
}

/// An invite that the host gave out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct IssuedInvite {
    /// Its terms.
    pub invite: Invite,
    /// The host took it back: no new device may use it.
    pub revoked: bool,
    /// The devices that came by it.
    pub devices: Vec<DeviceId>,
}

/// The numbers of revoked invites.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RevokedInvites {
    /// Nobody came by them but devices that are banned now: the relay gives their holders no seat.
    pub for_nobody: Vec<u32>,
    /// Devices came by them that may come back: the relay gives their holders visitors' seats, and the host knows who is who.
    pub for_returning: Vec<u32>,
}

/// The numbers of a room's earlier links, newest last.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EarlierLinks {
    /// Nobody may come back by these: the relay gives their holders no seat.
    pub for_nobody: Vec<u32>,
    /// A device may still have one of these as its newest and come back by it: the relay gives their holders visitors' seats.
    pub for_returning: Vec<u32>,
}

/// A device that came by the room's link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinkHolder {
    /// Its key.
    pub device: DeviceId,
    /// The number of the newest link that it has shown.
    pub link: u32,
}

/// A device that may not come in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BannedDevice {
    /// Its key.
    pub device: DeviceId,
    /// The name it had.
    pub name: String,
}

/// Everything that decides who may come in, besides the room's own secret. Kept as long as the room.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Doors {
    /// Generation of the group secret: a ban and a renewal raise it.
    pub generation: u32,
    /// The number of the room's link: a renewal raises it.
    #[serde(default)]
    pub link: u32,
    /// Devices that came by a link, the room's newest or an earlier one, and may come back by it.
    #[serde(default)]
    pub by_link: Vec<LinkHolder>,
    /// Devices that the host put out since the last renewal and did not let in itself since: the next one keeps none of them, not even
    /// those that are back.
    #[serde(default)]
    pub put_out: Vec<DeviceId>,
    /// Devices without an invite that the host let in.
    pub admitted: Vec<DeviceId>,
    /// Devices that may not come in.
    pub banned: Vec<BannedDevice>,
    /// Invites, oldest first.
    pub invites: Vec<IssuedInvite>,
    /// What happened, by its last time. Older versions kept none.
    #[serde(default)]
    pub log: Vec<LogEntry>,
}

impl Doors {
    /// The room gets another link and another group secret, and invites let nobody new in. How devices came is forgotten, except for
    /// those `inside` that were not put out: somebody who had the earlier link may have come by it with any number of others.
    pub fn renew(&mut self, inside: &[DeviceId]) {
        let Self { admitted, by_link, invites, put_out, .. } = self;
        let stays = |device: &DeviceId| inside.contains(device) && !put_out.contains(device);
        admitted.retain(|device| stays(device));
        by_link.retain(|holder| stays(&holder.device));
        for issued in invites {
            issued.devices.retain(|device| stays(device));
            issued.revoked = true;
        }
        put_out.clear();
        self.link = self.link.wrapping_add(1);
        self.generation = self.generation.wrapping_add(1);
    }

    /// The earlier links that a relay knows, of which there are at most `count`.
    #[must_use]
    pub fn earlier_links(&self, count: u32) -> EarlierLinks {
        let is_banned = |device: &DeviceId| self.banned.iter().any(|banned| banned.device == *device);
        // What a device was given since, it may have lost or kept: its browser says so when it comes back.
        let oldest = self.by_link.iter().filter(|holder| !is_banned(&holder.device)).map(|holder| holder.link).min();
        let numbers = self.link.saturating_sub(count)..self.link;
        let (for_returning, for_nobody) = numbers.partition(|number| oldest.is_some_and(|oldest| oldest <= *number));
        EarlierLinks { for_nobody, for_returning }
    }

    /// The revoked invites, as the relay is told.
    #[must_use]
    pub fn revoked(&self) -> RevokedInvites {
        let is_banned = |device: &DeviceId| self.banned.iter().any(|banned| banned.device == *device);
        let revoked = self.invites.iter().filter(|issued| issued.revoked);
        let (nobody, some): (Vec<_>, Vec<_>) = revoked.partition(|issued| issued.devices.iter().all(is_banned));
        let numbers = |invites: Vec<&IssuedInvite>| invites.iter().map(|issued| issued.invite.id.0).collect();
        RevokedInvites { for_nobody: numbers(nobody), for_returning: numbers(some) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn earlier_links_let_back_in_whoever_may_have_no_newer_one() {
        let holder = |n: u8, link| LinkHolder { device: DeviceId([n; 32]), link };
        let mut doors = Doors { by_link: vec![holder(1, 0), holder(2, 0)], ..Doors::default() };
        assert_eq!(doors.earlier_links(16), EarlierLinks::default(), "it was never renewed");
        (0..3).for_each(|_| doors.renew(&[1, 2].map(|n| DeviceId([n; 32]))));
        assert_eq!((doors.link, doors.generation), (3, 3));
        assert_eq!(doors.earlier_links(16), EarlierLinks { for_nobody: vec![], for_returning: vec![0, 1, 2] });
        doors.by_link = vec![holder(1, 2), holder(2, 3)];
        assert_eq!(doors.earlier_links(16), EarlierLinks { for_nobody: vec![0, 1], for_returning: vec![2] });
        assert_eq!(doors.earlier_links(2).for_nobody, [1], "the oldest one is forgotten");
        doors.banned.push(BannedDevice { device: DeviceId([1; 32]), name: String::new() });
        assert_eq!(doors.earlier_links(16).for_nobody, [0, 1, 2]);
    }

    #[test]
    fn a_renewal_forgets_who_is_away_or_was_put_out_and_ends_every_invite() {
        let [stays, out, away] = [1, 2, 3].map(|n| DeviceId([n; 32]));
        let holder = |device| LinkHolder { device, link: 0 };
        let invite = Invite { id: InviteId(7), kind: InviteKind::Chat, ask: false, expires: UnixSeconds(9), uses: 9 };
        let issued = IssuedInvite { invite, revoked: false, devices: vec![away, stays, out] };
        let mut doors = Doors {
            admitted: vec![out, away, stays],
            by_link: vec![holder(stays), holder(out), holder(away)],
            invites: vec![issued],
            put_out: vec![out],
            ..Doors::default()
        };
        doors.renew(&[stays, out]);
        assert_eq!((doors.admitted.as_slice(), doors.by_link.as_slice()), (&[stays][..], &[holder(stays)][..]));
        assert_eq!((doors.invites[0].devices.as_slice(), doors.invites[0].revoked), (&[stays][..], true));
        assert!(doors.put_out.is_empty());
    }

    #[test]
    fn the_terms_of_an_invite_are_eleven_bytes() {
        let id = InviteId(0x0403_0201);
        let invite = Invite { id, kind: InviteKind::Chat, ask: true, expires: UnixSeconds(0x0807_0605), uses: 10 };
        assert_eq!(invite.to_bytes(), [0x81, 1, 2, 3, 4, 5, 6, 7, 8, 10, 0]);
        for kind in [InviteKind::Chat, InviteKind::Contribute] {
            for ask in [false, true] {
                let invite = Invite { kind, ask, ..invite };
                assert_eq!(Invite::from_bytes(invite.to_bytes()), Some(invite));
            }
        }
        assert_eq!(Invite::from_bytes([3; Invite::LEN]), None, "a kind of a later version");
    }
}
