//! The relay's text messages in a room (`relay/src/protocol.rs`), and the route in front of binary ones.

use serde::{Deserialize, Serialize};

/// The route of a broadcast: everyone else in the room.
pub const EVERYONE: u32 = u32::MAX;

/// A message from the relay. Unknown types are ignored.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(tag = "type", rename_all = "kebab-case")]
pub enum Control {
    /// This peer is in the room.
    Welcome {
        /// Its own route.
        route: u32,
        /// The routes of the other members.
        members: Vec<u32>,
    },
    /// A member joined.
    Join {
        /// Its route.
        route: u32,
    },
    /// A member left.
    Leave {
        /// Its route.
        route: u32,
    },
    /// A message of this peer went to a route that does not exist.
    Undeliverable {
        /// That route.
        route: u32,
    },
    /// The relay dropped a message of this peer.
    BadFrame {
        /// The reason, in one sentence.
        message: String,
    },
    /// This peer sends too fast; the relay stops reading for a while.
    Limited {
        /// For how long, in milliseconds.
        wait_ms: u64,
    },
    /// The relay refused this peer.
    Refused {
        /// The reason, in one word.
        reason: String,
        /// The reason, in one sentence.
        message: String,
    },
    /// The relay evicted this peer.
    Evicted {
        /// The reason, in one sentence.
        message: String,
    },
    /// The relay shuts down.
    Shutdown {
        /// The reason, in one sentence.
        message: String,
    },
    /// Any other message.
    #[serde(other)]
    Unknown,
}

/// A message to the relay.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "type", rename_all = "kebab-case")]
pub enum Request {
    /// How the room is listed. Repeated after the room was created again, because a new room starts hidden.
    Listing {
        /// The owner secret from `POST /rooms`.
        owner: String,
        /// Its title.
        title: String,
        /// Whether it is shown on others' start pages.
        visible: bool,
    },
}

impl Control {
    /// Parses a text message; `None` if it is not part of the relay's protocol.
    pub fn parse(text: &str) -> Option<Self> {
        serde_json::from_str(text).ok()
    }
}

/// Splits a binary message into the sender's route (u32, big-endian) and the frame.
pub fn split_route(message: &[u8]) -> Option<(u32, &[u8])> {
    message.split_first_chunk().map(|(route, frame)| (u32::from_be_bytes(*route), frame))
}

/// Prepends the receiver's route (u32, big-endian) to a frame.
pub fn with_route(route: u32, frame: &[u8]) -> Vec<u8> {
    let mut message = Vec::with_capacity(frame.len() + 4);
    message.extend_from_slice(&route.to_be_bytes());
    message.extend_from_slice(frame);
    message
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_messages_are_parsed_and_unknown_ones_ignored() {
        let welcome = r#"{"type":"welcome","version":1,"room":"k3v9","route":17,"members":[15,16],"limits":{}}"#;
        assert_eq!(Control::parse(welcome), Some(Control::Welcome { route: 17, members: vec![15, 16] }));
        let leave = r#"{"type":"leave","route":18,"reason":"closed"}"#;
        assert_eq!(Control::parse(leave), Some(Control::Leave { route: 18 }));
        assert_eq!(Control::parse(r#"{"type":"pong","nonce":5}"#), Some(Control::Unknown));
        assert_eq!(Control::parse("not json"), None);
        let refused = r#"{"type":"refused","reason":"room-full","message":"The room is full."}"#;
        let expected = Control::Refused { reason: "room-full".into(), message: "The room is full.".into() };
        assert_eq!(Control::parse(refused), Some(expected));
    }

    #[test]
    fn a_route_precedes_the_frame_and_short_messages_are_refused() {
        let message = with_route(0x0102_0304, b"frame");
        assert_eq!(&message[..4], [1, 2, 3, 4]);
        assert_eq!(split_route(&message), Some((0x0102_0304, b"frame".as_slice())));
        assert_eq!(split_route(b"abc"), None);
    }
}
