//! The forms that members of a room and the relay exchange over `WS /rooms/ID`.
//!
//! # Flow
//!
//! 1. A member opens the WebSocket. The relay answers with [`Control::Welcome`]: the member's route, the routes of those
//!    who are already there, the limits. Everyone else hears [`Control::Join`]. If the relay will not have the member it
//!    accepts the socket all the same, says [`Control::Refused`] and closes: a browser shows a page nothing of a failed
//!    handshake.
//! 2. **Binary messages** are frames between members. The first four bytes are a route, big-endian: towards the relay
//!    that of the receiver, or [`EVERYONE`]; from the relay that of the sender. The relay overwrites these four bytes and
//!    forwards the message at once. It never looks at the rest.
//! 3. **Text messages** are JSON between one member and the relay: [`Control`] from the relay, [`Request`] to it.
//! 4. When a member goes, for whatever reason, the others hear [`Control::Leave`]. Between two members order is kept:
//!    `join` comes before a member's first frame and `leave` after its last.
//! 5. Before the relay stops it says [`Control::Shutdown`]. Members come back with `?create=1`, which makes the room again
//!    under its old id.
//!
//! Routes are drawn upwards from a random start and never used twice, so that a frame for a member that has gone cannot
//! reach another one, not even across a restart of the relay. A member that reconnects is a new route; who it is, members
//! tell each other inside their frames.

use serde::{Deserialize, Serialize};

/// Version of these forms, sent in [`Control::Welcome`].
pub const VERSION: u32 = 1;

/// Bytes of the route at the start of every binary message.
pub const ROUTE_BYTES: usize = 4;

/// The route that means "every member but me".
pub const EVERYONE: Route = Route(u32::MAX);

/// A member's address inside one room. Zero and [`EVERYONE`] are never a member's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Route(pub u32);

impl Route {
    /// Reads the route at the start of a binary message; `None` if it is shorter than four bytes.
    pub fn read(message: &[u8]) -> Option<Self> {
        message.first_chunk().map(|bytes| Self(u32::from_be_bytes(*bytes)))
    }

    /// Writes the route over the first four bytes of a message. A shorter message is left as it is.
    pub fn write(self, message: &mut [u8]) {
        if let Some(head) = message.first_chunk_mut() {
            *head = self.0.to_be_bytes();
        }
    }
}

/// Text messages from the relay to a member. Members ignore types they do not know.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "kebab-case")]
pub enum Control {
    /// The first message: you are in.
    Welcome {
        /// [`VERSION`].
        version: u32,
        /// The room's id.
        room: String,
        /// Your own route.
        route: Route,
        /// The others, oldest first.
        members: Vec<Route>,
        /// What the relay will and will not carry.
        limits: StatedLimits,
    },
    /// A member came.
    Join {
        /// Its route.
        route: Route,
    },
    /// A member went.
    Leave {
        /// Its route.
        route: Route,
        /// Why.
        reason: Departure,
    },
    /// Your binary message named a route that is not in the room, or your own. It was dropped.
    Undeliverable {
        /// The route it named.
        route: Route,
    },
    /// Your message was dropped because of its form. The connection stays.
    BadFrame {
        /// What was wrong.
        reason: BadFrame,
        /// The same as a sentence.
        message: String,
    },
    /// You send faster than the limits allow: the relay reads nothing of yours for so long. Nothing is lost.
    Limited {
        /// Milliseconds until it reads on.
        wait_ms: u64,
    },
    /// The answer to [`Request::Ping`].
    Pong {
        /// The number of the ping.
        nonce: u64,
    },
    /// You are not in; the relay closes the connection.
    Refused {
        /// Why.
        reason: Refusal,
        /// The same as a sentence.
        message: String,
    },
    /// You were in and are not any more; the relay closes the connection.
    Evicted {
        /// Why.
        reason: Eviction,
        /// The same as a sentence.
        message: String,
    },
    /// The relay stops. Come back with `?create=1`.
    Shutdown {
        /// The same as a sentence.
        message: String,
    },
}

/// Text messages from a member to the relay.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "kebab-case")]
pub enum Request {
    /// Asks for a [`Control::Pong`]: a round trip to the relay, measured by a page, which cannot send WebSocket pings.
    Ping {
        /// Comes back in the answer.
        nonce: u64,
    },
    /// Changes how the room is listed. Only for who holds the secret that `POST /rooms` gave; also needed after the room
    /// was made again, because such a room starts unlisted.
    Listing {
        /// The room's owner secret.
        owner: String,
        /// The name to list it under.
        title: String,
        /// Whether `GET /rooms` shows it.
        visible: bool,
    },
}

/// The limits a member is told, in the units of their names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StatedLimits {
    /// Longest binary message, route included.
    pub frame_bytes: usize,
    /// Bytes that may wait for one receiver before it is evicted.
    pub queue_bytes: usize,
    /// Messages a member may send a second.
    pub frames_per_second: u32,
    /// Bytes a member may send a second.
    pub bytes_per_second: u64,
    /// Seconds between two pings of the relay.
    pub ping_seconds: u64,
    /// Seconds without a byte after which a member counts as gone at the latest.
    pub silence_seconds: u64,
    /// Members a room takes.
    pub members: usize,
}

/// Why a member left.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Departure {
    /// It closed the connection, or the connection broke.
    Closed,
    /// Nothing was heard of it for too long.
    Silent,
    /// The relay put it out.
    Evicted,
}

/// What was wrong with a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum BadFrame {
    /// A binary message without a complete route.
    TooShort,
    /// A binary message over the limit.
    TooLong,
    /// A text message that is no [`Request`], or one that the member may not make.
    NotControl,
}

/// Why a member was not let in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Refusal {
    /// There is no such room, and `?create=1` was not given.
    NoSuchRoom,
    /// The id has other characters or another length than the relay's ids.
    BadRoomId,
    /// The room has as many members as it may.
    RoomFull,
    /// The relay has as many rooms or members as it may.
    RelayFull,
    /// Too many connections from this address in a short time.
    TooManyConnections,
    /// The relay is about to stop.
    ShuttingDown,
}

/// Why a member was put out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Eviction {
    /// It did not take what was sent to it.
    SlowReceiver,
    /// It sent a message far over the limit.
    FrameTooLong,
    /// Nothing was heard of it for too long.
    Silent,
}

impl Refusal {
    /// The WebSocket close code that goes with it (4000–4999 are free for applications).
    pub fn close_code(self) -> u16 {
        match self {
            Self::NoSuchRoom => 4404,
            Self::BadRoomId => 4400,
            Self::TooManyConnections => 4429,
            Self::RoomFull | Self::RelayFull | Self::ShuttingDown => 4503,
        }
    }

    /// One sentence for the person who wanted to come in.
    pub fn sentence(self) -> &'static str {
        match self {
            Self::NoSuchRoom => "This room does not exist any more: ask the host for a new link.",
            Self::BadRoomId => "This is not the id of a room: open the link exactly as the host sent it.",
            Self::RoomFull => "This room is full: wait until somebody leaves, or open another one.",
            Self::RelayFull => "The relay is full: try again in a few minutes.",
            Self::TooManyConnections => "Too many connections from your address: wait a few seconds and try again.",
            Self::ShuttingDown => "The relay is restarting: try again in a few seconds.",
        }
    }
}

impl Eviction {
    /// The WebSocket close code that goes with it.
    pub fn close_code(self) -> u16 {
        match self {
            Self::SlowReceiver | Self::Silent => 4408,
            Self::FrameTooLong => 1009,
        }
    }

    /// One sentence for the member that was put out.
    pub fn sentence(self) -> &'static str {
        match self {
            Self::SlowReceiver => "This device did not take its data fast enough, so the relay closed the connection.",
            Self::FrameTooLong => "This device sent a message far over the limit, so the relay closed the connection.",
            Self::Silent => "Nothing was heard of this device for too long, so the relay closed the connection.",
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
            Self::TooLong => "A binary message was longer than the limit and was dropped.",
            Self::NotControl => "A text message was not a request that this member may make and was dropped.",
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn control_keeps_its_json_form() {
        let leave = Control::Leave { route: Route(18), reason: Departure::Silent };
        assert_eq!(serde_json::to_string(&leave).unwrap(), r#"{"type":"leave","route":18,"reason":"silent"}"#);
        let bad = Control::BadFrame { reason: BadFrame::TooShort, message: "x".into() };
        assert_eq!(serde_json::to_string(&bad).unwrap(), r#"{"type":"bad-frame","reason":"too-short","message":"x"}"#);
        let refused = Control::Refused { reason: Refusal::NoSuchRoom, message: "x".into() };
        assert_eq!(
            serde_json::to_string(&refused).unwrap(),
            r#"{"type":"refused","reason":"no-such-room","message":"x"}"#
        );
    }

    #[test]
    fn requests_are_read_and_nothing_else() {
        let ping: Request = serde_json::from_str(r#"{"type":"ping","nonce":5}"#).unwrap();
        assert_eq!(ping, Request::Ping { nonce: 5 });
        assert!(serde_json::from_str::<Request>(r#"{"type":"welcome"}"#).is_err());
        assert!(serde_json::from_str::<Request>("hello").is_err());
    }

    #[test]
    fn a_route_is_four_bytes_big_endian() {
        let mut frame = [0, 0, 1, 2, 9];
        assert_eq!(Route::read(&frame), Some(Route(258)));
        EVERYONE.write(&mut frame);
        assert_eq!(frame, [255, 255, 255, 255, 9]);
        assert_eq!(Route::read(&frame[..3]), None);
        let mut short = [1, 2];
        EVERYONE.write(&mut short);
        assert_eq!(short, [1, 2]);
    }
}
