//! The bytes around handshakes and sealed messages.
//!
//! ```text
//! offset  bytes  field
//! 0       2      version   u16 little-endian: VERSION
//! 2       1      kind      Kind
//! 3       …      by kind: handshake messages of Noise (the first begins with its lane, and with which
//!                invite or link it is about),
//!                or the counter (u64 little-endian) and the ciphertext with its 16-byte tag
//! ```

use crate::invite::{TERMS_LEN, Terms};
use crate::room_keys::{LinkTag, TAG_LEN};

/// Version of frames and of everything around them; a peer of another version is asked to reload.
pub const VERSION: u16 = 14;

/// Bytes that sealing adds to a message.
pub const OVERHEAD: usize = HEADER + COUNTER + TAG;

pub(crate) const HEADER: usize = 3;
pub(crate) const COUNTER: usize = 8;
pub(crate) const TAG: usize = 16;

/// What a message is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Kind {
    /// First message of a handshake, from its initiator.
    Hello = 1,
    /// Second message, from the responder.
    Reply = 2,
    /// Third message.
    Finish = 3,
    /// A sealed frame.
    Frame = 4,
    /// A sealed group secret, from the host.
    GroupSecret = 5,
    /// "Shake hands with me again." Not sealed: it is a hint that costs one handshake, and no more than one at a time.
    Again = 6,
    /// A sealed group secret, from the host that renews the room's keys: unlike with [`Kind::GroupSecret`], sessions go on under it.
    Renewed = 7,
    /// The sealed secret of the room's newest link, from the host to whoever came by an earlier one.
    Link = 8,
    /// Sealed, the first message under a session's renewed key: how many messages its sender had sealed under the key before (u64
    /// little-endian).
    Switched = 9,
}

impl Kind {
    pub fn header(self) -> [u8; HEADER] {
        let [low, high] = VERSION.to_le_bytes();
        [low, high, self as u8]
    }

    /// The kind of a message and what follows its header.
    ///
    /// # Errors
    /// The version, if it is another one; `None` if the message is malformed.
    pub fn split(message: &[u8]) -> Result<(Self, &[u8]), Option<u16>> {
        let (version, rest) = message.split_first_chunk::<2>().ok_or(None)?;
        let version = u16::from_le_bytes(*version);
        if version != VERSION {
            return Err(Some(version));
        }
        let (kind, rest) = rest.split_first().ok_or(None)?;
        let kinds = [
            Self::Hello,
            Self::Reply,
            Self::Finish,
            Self::Frame,
            Self::GroupSecret,
            Self::Again,
            Self::Renewed,
            Self::Link,
            Self::Switched,
        ];
        let kind = kinds.into_iter().find(|known| *known as u8 == *kind).ok_or(None)?;
        Ok((kind, rest))
    }
}

/// How the two sides of a handshake know each other: which pre-shared key they use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Lane {
    /// The secret of the room's link, or of an earlier one: a guest with it, towards the host.
    Link = 1,
    /// The group secret: between admitted members.
    Group = 2,
    /// No secret: a visitor of a listed room, towards the host.
    Visitor = 3,
    /// An invite's door key: a guest with it, towards the host.
    Invite = 4,
}

impl Lane {
    pub const COUNT: usize = 4;

    /// Its place among all lanes.
    pub fn index(self) -> usize {
        usize::from(self as u8) - 1
    }

    pub fn of(byte: u8) -> Option<Self> {
        [Self::Link, Self::Group, Self::Visitor, Self::Invite].into_iter().find(|lane| *lane as u8 == byte)
    }
}

/// What a handshake's initiator says of its pre-shared key beside the lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shown {
    /// The lane says it all.
    Nothing,
    /// The link that it has.
    Link(LinkTag),
    /// The terms of its invite.
    Invite(Terms),
}

impl Shown {
    pub fn bytes(&self) -> &[u8] {
        match self {
            Self::Nothing => &[],
            Self::Link(tag) => tag,
            Self::Invite(terms) => terms,
        }
    }

    /// Reads it from the beginning of what follows the lane.
    pub fn split(lane: Lane, rest: &[u8]) -> Option<(Self, &[u8])> {
        match lane {
            Lane::Link => rest.split_first_chunk::<TAG_LEN>().map(|(tag, rest)| (Self::Link(*tag), rest)),
            Lane::Invite => rest.split_first_chunk::<TERMS_LEN>().map(|(terms, rest)| (Self::Invite(*terms), rest)),
            Lane::Group | Lane::Visitor => Some((Self::Nothing, rest)),
        }
    }
}
