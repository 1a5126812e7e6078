//! Text messages of the relay in a room (`relay/src/protocol.rs`).

use serde::{Deserialize, Serialize};

/// The route that means everyone else in the room.
pub const EVERYONE: u32 = u32::MAX;

/// From the relay. Types we do not know are ignored.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(tag = "type", rename_all = "kebab-case")]
pub enum Control {
    /// We are in.
    Welcome {
        /// As whom.
        route: u32,
        /// Who else is.
        members: Vec<u32>,
    },
    /// Somebody came.
    Join {
        /// Its route.
        route: u32,
    },
    /// Somebody went.
    Leave {
        /// Its route.
        route: u32,
    },
    /// A message of ours was for nobody.
    Undeliverable {
        /// The route it named.
        route: u32,
    },
    /// A message of ours was dropped.
    BadFrame {
        /// One sentence.
        message: String,
    },
    /// We send too fast; the relay waits with reading.
    Limited {
        /// How long.
        wait_ms: u64,
    },
    /// We are not in.
    Refused {
        /// Why, in one word.
        reason: String,
        /// Why, in one sentence.
        message: String,
    },
    /// We were in.
    Evicted {
        /// Why, in one sentence.
        message: String,
    },
    /// The relay stops.
    Shutdown {
        /// One sentence.
        message: String,
    },
    /// Anything else.
    #[serde(other)]
    Unknown,
}

/// To the relay.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "type", rename_all = "kebab-case")]
pub enum Request {
    /// How the room is listed; also right after it was made again, because such a room starts hidden.
    Listing {
        /// The secret of `POST /rooms`.
        owner: String,
        /// Its name.
        title: String,
        /// Whether others see it on their door.
        visible: bool,
    },
}

impl Control {
    /// Reads a text message; `None` if it is not of the relay's protocol.
    pub fn parse(text: &str) -> Option<Self> {
        serde_json::from_str(text).ok()
    }
}

/// Splits a binary message into the sender's route and the frame.
pub fn split_route(message: &[u8]) -> Option<(u32, &[u8])> {
    message.split_first_chunk().map(|(route, frame)| (u32::from_be_bytes(*route), frame))
}

/// Puts the receiver's route before a frame.
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
    fn the_relays_words_are_understood_and_new_ones_ignored() {
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
    fn a_route_goes_before_the_frame_and_a_short_message_is_nobodys() {
        let message = with_route(0x0102_0304, b"frame");
        assert_eq!(&message[..4], [1, 2, 3, 4]);
        assert_eq!(split_route(&message), Some((0x0102_0304, b"frame".as_slice())));
        assert_eq!(split_route(b"abc"), None);
    }
}
