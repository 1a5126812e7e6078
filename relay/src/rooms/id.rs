//! Room ids, and what is random about a connection.

use std::fmt;

use potluck_relay_api::{Nonce, PublicKey, ROOM_ID_CHARS, room_id};
use ring::rand::{SecureRandom, SystemRandom};

/// The id of a room in links: the hash of its owner's key.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RoomId(String);

impl RoomId {
    /// Reads an id from a path; `None` if it is malformed.
    pub fn parse(text: &str) -> Option<Self> {
        let fits = text.len() == ROOM_ID_CHARS && text.bytes().all(|b| matches!(b, b'a'..=b'z' | b'2'..=b'7'));
        fits.then(|| Self(text.to_owned()))
    }

    /// The room of an owner.
    pub fn of_owner(key: &PublicKey) -> Self {
        Self(room_id(key))
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

/// A random start for the routes of a room, below 2³⁰ so that they never reach the reserved ones.
pub fn first_route() -> u32 {
    let mut bytes = [0; 4];
    // Without randomness, routes start at 1: still unique while the relay runs.
    let _ = SystemRandom::new().fill(&mut bytes);
    (u32::from_be_bytes(bytes) >> 2).max(1)
}

/// The nonce of a connection; `None` if the system has no randomness, and then nobody can prove anything.
pub fn nonce() -> Option<Nonce> {
    let mut nonce = potluck_relay_api::Binary([0; 32]);
    SystemRandom::new().fill(&mut nonce.0).ok()?;
    Some(nonce)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_has_the_form_of_a_hash() {
        let id = RoomId::of_owner(&potluck_relay_api::Binary([1; 32]));
        assert_eq!(RoomId::parse(id.as_str()), Some(id.clone()));
        let long = format!("{id}a");
        for bad in ["", "abcd", "UPPERUPPERUPPERUPPERUPPERU", &long, &id.as_str()[1..], "aaaaaaaaaaaaaaaaaaaaaaaaa1"] {
            assert_eq!(RoomId::parse(bad), None, "{bad:?}");
        }
    }
}
