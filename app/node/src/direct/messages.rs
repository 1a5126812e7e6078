//! Control messages between two tabs: on the channel between them, and through the relay.

use serde::{Deserialize, Serialize};

/// An unguessable number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Nonce(pub [u8; 16]);

/// A control message on the channel, as text. Binary messages are frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ChannelControl {
    /// The first message: the same nonce as in [`RelayControl::Proof`].
    Hello(Nonce),
    /// The sender reads the channel and has verified the receiver.
    Ready,
    /// The next frames come through the relay.
    ByRelay,
    /// Total bytes of frames that the sender has consumed from the channel.
    Taken(u64),
}

impl ChannelControl {
    /// The JSON text.
    pub fn write(self) -> String {
        // Plain numbers always serialize.
        serde_json::to_string(&self).unwrap_or_default()
    }

    /// Parses a text message; `None` if it is not a control message.
    pub fn read(text: &str) -> Option<Self> {
        serde_json::from_str(text).ok()
    }
}

/// A control message from one member to another through the relay. Only tabs of one browser and one build exchange
/// these, so other peers need not understand them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RelayControl {
    /// The sender sent this nonce in [`ChannelControl::Hello`], so the channel's other end belongs to the sender's
    /// route.
    Proof(Nonce),
    /// The next frames come on the channel.
    Directly,
    /// The next frames come through the relay.
    ByRelay,
}

/// Takes the place of a frame's protocol version; no version has this value.
const NO_VERSION: [u8; 2] = [0xff; 2];

impl RelayControl {
    /// The bytes on the wire, without the route.
    pub fn write(self) -> Vec<u8> {
        let mut bytes = NO_VERSION.to_vec();
        match self {
            Self::Proof(Nonce(nonce)) => {
                bytes.push(0);
                bytes.extend_from_slice(&nonce);
            }
            Self::Directly => bytes.push(1),
            Self::ByRelay => bytes.push(2),
        }
        bytes
    }

    /// Parses a message; `None` if it is a frame or a message unknown to this build.
    pub fn read(message: &[u8]) -> Option<Self> {
        let (kind, rest) = message.strip_prefix(&NO_VERSION)?.split_first()?;
        match (kind, rest) {
            (0, nonce) => Some(Self::Proof(Nonce(nonce.try_into().ok()?))),
            (1, []) => Some(Self::Directly),
            (2, []) => Some(Self::ByRelay),
            _ => None,
        }
    }
}

/// A message to the member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outgoing {
    /// A frame on the channel.
    Direct(Vec<u8>),
    /// A frame through the relay.
    Relayed(Vec<u8>),
    /// A control message on the channel.
    ChannelControl(ChannelControl),
    /// A control message through the relay.
    RelayControl(RelayControl),
}

/// The result of an arriving message.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LinkOutput {
    /// Frames to read now, in order.
    pub frames: Vec<Vec<u8>>,
    /// Messages to send.
    pub outgoing: Vec<Outgoing>,
}

/// The other side violated the protocol; close its channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProtocolViolation;

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use potluck_protocol::{Frame, encode};

    use super::*;

    #[test]
    fn control_messages_round_trip() {
        let nonce = Nonce([7; 16]);
        for control in [
            ChannelControl::Hello(nonce),
            ChannelControl::Ready,
            ChannelControl::ByRelay,
            ChannelControl::Taken(u64::MAX),
        ] {
            assert_eq!(ChannelControl::read(&control.write()), Some(control));
        }
        for control in [RelayControl::Proof(nonce), RelayControl::Directly, RelayControl::ByRelay] {
            assert_eq!(RelayControl::read(&control.write()), Some(control));
        }
    }

    #[test]
    fn frames_and_garbage_are_not_control_messages() {
        let frame = encode(&Frame::Bye).unwrap();
        for other in [frame.as_slice(), &[], &[0xff], &[0xff, 0xff], &[0xff, 0xff, 0, 1], &[0xff, 0xff, 1, 0]] {
            assert_eq!(RelayControl::read(other), None, "{other:?}");
        }
        assert_eq!(ChannelControl::read("hello"), None);
    }
}
