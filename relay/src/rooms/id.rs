//! Room ids, and the secret that proves who opened a room.

use std::fmt;

use data_encoding::BASE32_NOPAD;
use ring::rand::{SecureRandom, SystemRandom};

/// Bytes of randomness in an owner's secret.
const SECRET_BYTES: usize = 16;
/// Bytes of hash in an id: 80 bits, 16 characters. Too many to find a room by guessing.
const ID_BYTES: usize = 10;
/// The key derivation context: it separates this hash from any other use of the secret.
const CONTEXT: &str = "potluck 2026-11 room id from owner secret";

/// The id of a room in links: 4 to 64 characters of `a–z`, `0–9` and `-`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RoomId(String);

impl RoomId {
    /// Reads an id from a path; `None` if it is malformed.
    pub fn parse(text: &str) -> Option<Self> {
        let fits = (4..=64).contains(&text.len())
            && text.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-');
        fits.then(|| Self(text.to_owned()))
    }

    /// The room that belongs to an owner secret. The id is a hash of the secret, so the relay recognizes the owner even of
    /// a room that it forgot and that was recreated.
    pub fn of_owner(secret: &str) -> Self {
        let hash = blake3::derive_key(CONTEXT, secret.as_bytes());
        Self(BASE32_NOPAD.encode(&hash[..ID_BYTES]).to_lowercase())
    }

    /// As it appears in a link.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for RoomId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// What `POST /rooms` returns to whoever opens a room, and to nobody else.
pub struct OwnerSecret(String);

impl OwnerSecret {
    /// A new secret; `None` if the system has no randomness.
    pub fn generate() -> Option<Self> {
        let mut bytes = [0; SECRET_BYTES];
        SystemRandom::new().fill(&mut bytes).ok()?;
        Some(Self(BASE32_NOPAD.encode(&bytes).to_lowercase()))
    }

    /// As it is sent to its owner.
    pub fn reveal(&self) -> &str {
        &self.0
    }

    /// The room that belongs to it.
    pub fn room(&self) -> RoomId {
        RoomId::of_owner(&self.0)
    }
}

/// A random start for the routes of a room, below 2³⁰ so that they never reach the reserved ones.
pub fn first_route() -> u32 {
    let mut bytes = [0; 4];
    // Without randomness, routes start at 1: still unique while the relay runs.
    let _ = SystemRandom::new().fill(&mut bytes);
    (u32::from_be_bytes(bytes) >> 2).max(1)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use super::*;

    #[test]
    fn the_secret_proves_its_room_and_no_other() {
        let secret = OwnerSecret::generate().unwrap();
        let id = secret.room();
        assert_eq!(id.as_str().len(), 16);
        assert_eq!(RoomId::of_owner(secret.reveal()), id);
        assert_ne!(OwnerSecret::generate().unwrap().room(), id);
        assert_eq!(RoomId::parse(id.as_str()), Some(id));
    }

    #[test]
    fn a_malformed_id_is_refused() {
        for bad in ["", "abc", "UPPER", "with space", "a/b/c", "ünï-code", &"x".repeat(65)] {
            assert_eq!(RoomId::parse(bad), None, "{bad:?}");
        }
        assert!(RoomId::parse("my-room-4").is_some());
    }
}
