//! Control messages between two members with a channel between them: on the channel, and through the relay.

use serde::{Deserialize, Serialize};

/// An unguessable number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Nonce(pub [u8; 16]);

/// A control message on the channel, as text. Binary messages are frames.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
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
    /// The sender has read the channel up to [`Self::ByRelay`].
    ReadAll,
    /// Answered by [`Self::Pong`] at once. The text is padding: a ping is about as long as a small frame.
    Ping(u32, String),
    /// Answer to the ping with this number.
    Pong(u32),
}

impl ChannelControl {
    /// The JSON text.
    pub fn write(&self) -> String {
        // Plain numbers and text always serialize.
        serde_json::to_string(self).unwrap_or_default()
    }

    /// Parses a text message; `None` if it is not a control message.
    pub fn read(text: &str) -> Option<Self> {
        serde_json::from_str(text).ok()
    }
}

/// A control message from one member to another through the relay. Only members that meet on a channel exchange these.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RelayControl {
    /// The sender sent this nonce in [`ChannelControl::Hello`], so the channel's other end belongs to the sender's
    /// route.
    Proof(Nonce),
    /// The next frames come on the channel.
    Directly,
    /// The next frames come through the relay.
    ByRelay,
    /// The channel has broken. The sender has received so many frames from it, and reads nothing more there.
    Broken(u64),
    /// The next frames, so many, are those that the other side did not receive before the channel broke.
    Resent(u64),
    /// Answered by [`Self::Pong`] at once.
    Ping(u32),
    /// Answer to the ping with this number.
    Pong(u32),
}

/// Bytes of padding in a ping.
pub const PING_PADDING: usize = 2048;

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
            Self::Broken(frames) => put(&mut bytes, 3, &frames.to_le_bytes()),
            Self::Resent(frames) => put(&mut bytes, 4, &frames.to_le_bytes()),
            Self::Ping(number) => {
                put(&mut bytes, 5, &number.to_le_bytes());
                bytes.resize(bytes.len() + PING_PADDING, 0);
            }
            Self::Pong(number) => put(&mut bytes, 6, &number.to_le_bytes()),
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
            (3, frames) => Some(Self::Broken(u64::from_le_bytes(frames.try_into().ok()?))),
            (4, frames) => Some(Self::Resent(u64::from_le_bytes(frames.try_into().ok()?))),
            (5, number) => Some(Self::Ping(u32::from_le_bytes(*number.first_chunk()?))),
            (6, number) => Some(Self::Pong(u32::from_le_bytes(number.try_into().ok()?))),
            _ => None,
        }
    }
}

fn put(bytes: &mut Vec<u8>, kind: u8, rest: &[u8]) {
    bytes.push(kind);
    bytes.extend_from_slice(rest);
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

impl From<Outgoing> for LinkOutput {
    fn from(outgoing: Outgoing) -> Self {
        Self { outgoing: vec![outgoing], ..Self::default() }
    }
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
            ChannelControl::ReadAll,
            ChannelControl::Ping(3, "0".repeat(PING_PADDING)),
            ChannelControl::Pong(3),
        ] {
            assert_eq!(ChannelControl::read(&control.write()), Some(control));
        }
        for control in [
            RelayControl::Proof(nonce),
            RelayControl::Directly,
            RelayControl::ByRelay,
            RelayControl::Broken(7),
            RelayControl::Resent(u64::MAX),
            RelayControl::Ping(3),
            RelayControl::Pong(u32::MAX),
        ] {
            assert_eq!(RelayControl::read(&control.write()), Some(control));
        }
    }

    #[test]
    fn frames_and_garbage_are_not_control_messages() {
        let frame = encode(&Frame::Bye).unwrap();
        let others: [&[u8]; 7] =
            [&frame, &[], &[0xff], &[0xff, 0xff], &[0xff, 0xff, 0, 1], &[0xff, 0xff, 1, 0], &[0xff, 0xff, 3, 0]];
        for other in others {
            assert_eq!(RelayControl::read(other), None, "{other:?}");
        }
        assert_eq!(ChannelControl::read("hello"), None);
    }
}
