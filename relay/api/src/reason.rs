//! Why a member left, was refused or evicted, and what was wrong with a message.
//!
//! Each enum ends in `Unknown`: a reason that only a newer relay knows. Its sentence still arrives with the message.

use serde::{Deserialize, Serialize};

/// What somebody reads who comes by an earlier link of a room.
pub const LINK_RENEWED: &str = "This link was replaced. Ask the host for the new one.";

/// What the earlier host reads once another device has taken over.
const SUPERSEDED: &str = "Another device hosts this room now.";

/// What everybody reads whose room the operator ended.
const ENDED: &str = "Whoever runs the relay has ended this room.";

/// Why a member left.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Departure {
    /// It closed the connection, or the connection broke.
    Closed,
    /// The relay heard nothing from it for too long.
    Silent,
    /// The relay evicted it.
    Evicted,
    /// A reason of a newer relay.
    #[serde(other, skip_serializing)]
    Unknown,
}

/// What was wrong with a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum BadFrame {
    /// A binary message without a complete route.
    TooShort,
    /// A binary message to [`Route::RESERVED`](crate::Route::RESERVED): every message names one receiver.
    NoReceiver,
    /// A binary message over the limit.
    TooLong,
    /// A message of parts without any, with too many, or with one that is cut short or names no receiver.
    Parts,
    /// A visitor that the host has not let in yet wrote to a member other than the owner.
    NotLetIn,
    /// A text message that is no [`Request`](crate::Request), or one that the member may not make.
    NotControl,
    /// A reason of a newer relay.
    #[serde(other, skip_serializing)]
    Unknown,
}

/// Why a member could not join.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Refusal {
    /// There is no such room; only its owner can create it.
    NoSuchRoom,
    /// The id is not of the form that rooms have.
    BadRoomId,
    /// The first message was no entry, or its signature is wrong.
    BadProof,
    /// A visitor came to a room that is not listed.
    NotListed,
    /// The entry did not come in time.
    NoEntry,
    /// The host took the invite back.
    InviteRevoked,
    /// The host renewed the room's link; this is an earlier one.
    LinkRenewed,
    /// Another device has taken over from this owner and hosts the room now.
    Superseded,
    /// Somebody wants to take over from a host that is there.
    HostPresent,
    /// The room has its maximum of members.
    RoomFull,
    /// The room has its maximum of visitors who wait for the host.
    TooManyVisitors,
    /// The address has its maximum of the room's seats.
    TooManySeats,
    /// The relay has its maximum of rooms or members.
    RelayFull,
    /// Too many connections from this address.
    TooManyConnections,
    /// Too many rooms from this address.
    TooManyRooms,
    /// Only those who have the relay's token may open rooms.
    NeedsToken,
    /// Only those whom the proxy in front has signed in may open rooms.
    NeedsSignIn,
    /// The relay's operator ended this room.
    Ended,
    /// The relay is about to stop.
    ShuttingDown,
    /// A reason of a newer relay.
    #[serde(other, skip_serializing)]
    Unknown,
}

/// Why a member was removed from the room.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Eviction {
    /// It took nothing for too long while messages for it waited.
    SlowReceiver,
    /// It sent more to one receiver than the window allows.
    WindowExceeded,
    /// The relay's memory is full, and much of it holds messages from this address.
    RelayFull,
    /// The owner connected again. This connection must not come back by itself.
    Replaced,
    /// Another device has taken over and hosts the room now. It must not come back as the owner.
    Superseded,
    /// It sent a message far over the limit.
    FrameTooLong,
    /// The relay heard nothing from it for too long.
    Silent,
    /// The host evicted it. It may ask to come in again, but only if its user asks.
    PutOut,
    /// The host took back the invite by which it came.
    InviteRevoked,
    /// The host renewed the room's link while this member, who came by the earlier one, was not let in yet.
    LinkRenewed,
    /// The relay's operator ended the room.
    Ended,
    /// A reason of a newer relay.
    #[serde(other, skip_serializing)]
    Unknown,
}

impl Refusal {
    /// The WebSocket close code that goes with it (4000–4999 are free for applications, RFC 6455 section 7.4.2).
    pub fn close_code(self) -> u16 {
        match self {
            Self::NoSuchRoom => 4404,
            Self::BadRoomId => 4400,
            Self::BadProof
            | Self::NotListed
            | Self::InviteRevoked
            | Self::LinkRenewed
            | Self::NeedsToken
            | Self::NeedsSignIn
            | Self::Ended => 4403,
            Self::Superseded | Self::HostPresent => 4409,
            Self::NoEntry => 4408,
            Self::TooManyConnections | Self::TooManyRooms | Self::TooManyVisitors | Self::TooManySeats => 4429,
            Self::RoomFull | Self::RelayFull | Self::ShuttingDown | Self::Unknown => 4503,
        }
    }

    /// Whether a device should simply try again after a while. A page that is loaded anew can meet its own earlier connection, which
    /// still counts as a visitor.
    pub fn is_temporary(self) -> bool {
        matches!(
            self,
            Self::ShuttingDown | Self::TooManyConnections | Self::TooManyRooms | Self::TooManyVisitors | Self::NoEntry
        )
    }

    /// One sentence for the person who wanted to join.
    pub fn sentence(self) -> &'static str {
        match self {
            Self::NoSuchRoom => "This room does not exist any more: ask the host for a new link.",
            Self::BadRoomId => "This is not a room id: open the link exactly as the host sent it.",
            Self::Superseded => SUPERSEDED,
            Self::HostPresent => "The room's host is there: nobody else can host the room now.",
            Self::BadProof => "This link does not open the room: ask the host for a new one.",
            Self::NotListed => "This room is not public: ask the host for a link.",
            Self::NoEntry => "The connection was too slow to enter the room: try again.",
            Self::InviteRevoked => "The host took this invite back: ask for a new one.",
            Self::LinkRenewed => LINK_RENEWED,
            Self::TooManyVisitors => {
                "Many devices wait to be let in: try again in a minute, or ask the host for a link."
            }
            Self::TooManySeats => "Too many devices at your address are in this room: close it on one of them.",
            Self::RoomFull => "This room is full: wait until somebody leaves, or open another one.",
            Self::RelayFull => "The relay is full: try again in a few minutes.",
            Self::TooManyConnections => "Too many connections from your address: wait a few seconds and try again.",
            Self::TooManyRooms => "Too many new rooms from your address: wait a minute and try again.",
            Self::NeedsToken => {
                "Only people with this relay's token may open rooms here: enter it at the relay's address with /access behind it, or \
                 give it to potluck-node with --relay-token-file."
            }
            Self::NeedsSignIn => {
                "Only people who have signed in may open rooms here: open the relay's address again and sign in. If you have, tell \
                 whoever runs the relay that its proxy does not say so."
            }
            Self::Ended => ENDED,
            Self::ShuttingDown => "The relay is restarting: try again in a few seconds.",
            Self::Unknown => "The relay refused the connection.",
        }
    }
}

impl Eviction {
    /// The WebSocket close code that goes with it.
    pub fn close_code(self) -> u16 {
        match self {
            Self::SlowReceiver | Self::Silent | Self::Unknown => 4408,
            Self::FrameTooLong => 1009,
            Self::WindowExceeded => 4413,
            Self::RelayFull => 4503,
            Self::Replaced | Self::Superseded => 4409,
            Self::PutOut | Self::InviteRevoked | Self::LinkRenewed | Self::Ended => 4403,
        }
    }

    /// Whether the member must not reconnect by itself: two connections of one owner would replace each other forever, and an
    /// evicted member is not wanted.
    pub fn is_final(self) -> bool {
        matches!(
            self,
            Self::Replaced | Self::Superseded | Self::PutOut | Self::InviteRevoked | Self::LinkRenewed | Self::Ended
        )
    }

    /// One sentence for the person at the evicted device.
    pub fn sentence(self) -> &'static str {
        match self {
            Self::SlowReceiver => "This device received its data too slowly, so the relay closed the connection.",
            Self::FrameTooLong => "This device sent a message far over the limit, so the relay closed the connection.",
            Self::WindowExceeded => {
                "This device sent more than the receiver could take, so the relay closed the connection."
            }
            Self::RelayFull => "The relay's memory is full: try again in a few minutes.",
            Self::Replaced => "This room was opened again in another place, which takes over from here.",
            Self::Superseded => SUPERSEDED,
            Self::PutOut => "The host removed this device from the room.",
            Self::InviteRevoked => "The host took back the invite by which this device came.",
            Self::LinkRenewed => LINK_RENEWED,
            Self::Ended => ENDED,
            Self::Silent => "The relay heard nothing from this device for too long and closed the connection.",
            Self::Unknown => "The relay closed the connection.",
        }
    }
}

impl BadFrame {
    /// One sentence for the sender.
    pub fn sentence(self) -> &'static str {
        match self {
            Self::TooShort => {
                "A binary message starts with a route of four bytes; this one was shorter and was dropped."
            }
            Self::NoReceiver => "A binary message named no receiver and was dropped.",
            Self::TooLong => "A binary message was longer than the limit and was dropped.",
            Self::Parts => "A message of several parts was malformed and was dropped.",
            Self::NotLetIn => {
                "Until the host lets this device in, it may write to the host only; a message was dropped."
            }
            Self::NotControl => "A text message was not a request that this member may make and was dropped.",
            Self::Unknown => "A message was dropped.",
        }
    }
}
