//! Names of rooms and the secret that proves who opened one.

use std::fmt;

use data_encoding::BASE32_NOPAD;
use ring::rand::{SecureRandom, SystemRandom};

/// Bytes of randomness in an owner's secret.
const SECRET_BYTES: usize = 16;
/// Bytes of hash in an id: 80 bits, 16 characters. Long enough that nobody finds a room by trying.
const ID_BYTES: usize = 10;
/// Separates this hash from any other use of the secret.
const CONTEXT: &str = "potluck 2026-11 room id from owner secret";

/// The name of a room in links: 4 to 64 of `a–z`, `0–9` and `-`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RoomId(String);

impl RoomId {
    /// Takes an id out of a path; `None` if it is not of the form.
    pub fn parse(text: &str) -> Option<Self> {
        let fits = (4..=64).contains(&text.len())
            && text.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-');
        fits.then(|| Self(text.to_owned()))
    }

    /// The room that an owner's secret opens. The id is a hash of the secret, so the relay can tell the owner also of a room
    /// that it has forgotten and that was made again.
    pub fn of_owner(secret: &str) -> Self {
        let hash = blake3::derive_key(CONTEXT, secret.as_bytes());
        Self(BASE32_NOPAD.encode(&hash[..ID_BYTES]).to_lowercase())
    }

    /// As it stands in a link.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for RoomId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// What `POST /rooms` gives to who opens a room, and nobody else.
pub struct OwnerSecret(String);

impl OwnerSecret {
    /// A new one; `None` if the system has no randomness to give.
    pub fn draw() -> Option<Self> {
        let mut bytes = [0; SECRET_BYTES];
        SystemRandom::new().fill(&mut bytes).ok()?;
        Some(Self(BASE32_NOPAD.encode(&bytes).to_lowercase()))
    }

    /// As it is sent to its owner, once.
    pub fn reveal(&self) -> &str {
        &self.0
    }

    /// The room it opens.
    pub fn room(&self) -> RoomId {
        RoomId::of_owner(&self.0)
    }
}

/// A random start for the routes of a room, below 2³⁰, so that they never run into the reserved ones.
pub fn first_route() -> u32 {
    let mut bytes = [0; 4];
    // Without randomness routes start at 1: still unique while the relay runs.
    let _ = SystemRandom::new().fill(&mut bytes);
    (u32::from_be_bytes(bytes) >> 2).max(1)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn the_secret_proves_its_room_and_no_other() {
        let secret = OwnerSecret::draw().unwrap();
        let id = secret.room();
        assert_eq!(id.as_str().len(), 16);
        assert_eq!(RoomId::of_owner(secret.reveal()), id);
        assert_ne!(OwnerSecret::draw().unwrap().room(), id);
        assert_eq!(RoomId::parse(id.as_str()), Some(id));
    }

    #[test]
    fn ids_have_a_form() {
        for bad in ["", "abc", "UPPER", "with space", "a/b/c", "ünï-code", &"x".repeat(65)] {
            assert_eq!(RoomId::parse(bad), None, "{bad:?}");
        }
        assert!(RoomId::parse("my-room-4").is_some());
    }
}
