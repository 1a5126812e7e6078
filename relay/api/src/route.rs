//! The address in front of every binary message.

use serde::{Deserialize, Serialize};

/// Bytes of the route at the start of every binary message.
pub const ROUTE_BYTES: usize = 4;

/// A member's address inside one room, big-endian on the wire. No member has zero, [`Route::RESERVED`] or
/// [`Route::PARTS`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Route(pub u32);

impl Route {
    /// No member has this route, and no message may name it: it meant everyone in version 1.
    pub const RESERVED: Self = Self(u32::MAX);

    /// In front of a message that carries several, each with its own route.
    pub const PARTS: Self = Self(u32::MAX - 1);

    /// Reads the route at the start of a binary message; `None` if it is shorter than four bytes.
    pub fn read(message: &[u8]) -> Option<Self> {
        Self::split(message).map(|(route, _)| route)
    }

    /// Splits a binary message into its route and the frame behind it; `None` if it is shorter than four bytes.
    pub fn split(message: &[u8]) -> Option<(Self, &[u8])> {
        message.split_first_chunk().map(|(route, frame)| (Self(u32::from_be_bytes(*route)), frame))
    }

    /// Writes the route over the first four bytes of a message. A shorter message stays as it is.
    pub fn write(self, message: &mut [u8]) {
        if let Some(start) = message.first_chunk_mut() {
            *start = self.0.to_be_bytes();
        }
    }

    /// A binary message: this route, then the frame.
    pub fn prepend(self, frame: &[u8]) -> Vec<u8> {
        let mut message = Vec::with_capacity(ROUTE_BYTES + frame.len());
        message.extend_from_slice(&self.0.to_be_bytes());
        message.extend_from_slice(frame);
        message
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_route_is_four_bytes_big_endian() {
        let mut message = [0, 0, 1, 2, 9];
        assert_eq!(Route::read(&message), Some(Route(258)));
        Route(u32::MAX).write(&mut message);
        assert_eq!(message, [255, 255, 255, 255, 9]);
    }

    #[test]
    fn split_undoes_prepend() {
        let message = Route(0x0102_0304).prepend(b"frame");
        assert_eq!(&message[..4], [1, 2, 3, 4]);
        assert_eq!(Route::split(&message), Some((Route(0x0102_0304), b"frame".as_slice())));
    }

    #[test]
    fn a_message_without_a_complete_route_has_none() {
        let mut short = [1, 2, 3];
        assert_eq!(Route::read(&short), None);
        Route(7).write(&mut short);
        assert_eq!(short, [1, 2, 3], "and is not written to");
    }
}
