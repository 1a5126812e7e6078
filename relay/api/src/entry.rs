//! How a connection proves that it may enter a room.
//!
//! A room belongs to an Ed25519 key, and its id is a hash of that key: only the key's owner can create the room or, after a
//! restart of the relay, create it again. The owner registers a **join key**, derived from the secret in the link: who has
//! the link signs with it. Each invite has a **door key** of its own, which the owner certifies ([`DoorCertificate`]): so one
//! invite can end without the others. Every signature covers the [`Nonce`] of its connection and the relay's name, so it is
//! worth nothing in another connection, or at another relay.

use data_encoding::BASE32_NOPAD;
use serde::{Deserialize, Serialize};

use crate::{Binary, Nonce, PublicKey, Signature};

/// The key derivation context of room ids.
const ROOM_ID_CONTEXT: &str = "potluck 2026-11 room id from owner key";
/// The key derivation context of nonces at a relay.
const NONCE_CONTEXT: &str = "potluck 2026-11 entry nonce at relay";
/// Bytes of hash in a room id: no second key for the same id can be found.
const ROOM_ID_BYTES: usize = 16;
/// Characters of a room id, `a–z` and `2–7`.
pub const ROOM_ID_CHARS: usize = 26;
/// What the signed bytes of an entry begin with.
const SIGNED_PREFIX: &[u8] = b"potluck relay entry v2\0";
/// What the signed bytes of a door certificate begin with.
const DOOR_PREFIX: &[u8] = b"potluck owner certifies door key v1\0";

/// Bytes of an invite's terms.
pub const TERMS_LEN: usize = 11;
/// The terms of an invite. The relay reads its number (bytes 1 to 4) and its expiry (bytes 5 to 8), both little-endian; the rest is
/// for the host.
pub type Terms = Binary<TERMS_LEN>;

/// The owner's statement that a key belongs to an invite. It is not secret: only the holder of the key can use it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DoorCertificate {
    /// The invite's terms.
    pub terms: Terms,
    /// The public half of its door key.
    pub door: PublicKey,
    /// By the owner key, over [`door_message`].
    pub signature: Signature,
}

impl DoorCertificate {
    /// The invite's number.
    pub fn invite(&self) -> u32 {
        let [_, number @ .., _, _, _, _, _, _] = self.terms.0;
        u32::from_le_bytes(number)
    }

    /// The invite is good until then, in seconds since 1970.
    pub fn expires(&self) -> u32 {
        let [_, _, _, _, _, expires @ .., _, _] = self.terms.0;
        u32::from_le_bytes(expires)
    }
}

/// The bytes that an owner signs to certify a door key. The owner key names the room, so the room need not be signed.
pub fn door_message(terms: &Terms, door: &PublicKey) -> Vec<u8> {
    [DOOR_PREFIX, &terms.0, &door.0].concat()
}

/// The id of the room that belongs to an owner key.
pub fn room_id(owner: &PublicKey) -> String {
    let hash = blake3::derive_key(ROOM_ID_CONTEXT, &owner.0);
    BASE32_NOPAD.encode(&hash[..ROOM_ID_BYTES]).to_lowercase()
}

/// Why a connection may enter.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "as", rename_all = "kebab-case")]
pub enum EntryProof {
    /// It owns the room. This creates the room if the relay does not know it, and otherwise changes its join key and its
    /// listing. An earlier connection of the owner is evicted. Refused if the room has had an owner of a later term.
    Owner {
        /// The owner key; [`room_id`] of it is the room's id.
        key: PublicKey,
        /// Who signs with this key has the link.
        join_key: PublicKey,
        /// What the owner calls the room.
        title: String,
        /// Whether `GET /rooms` lists the room, and visitors may enter.
        visible: bool,
        /// The term in which it hosts.
        #[serde(default, skip_serializing_if = "Term::is_first")]
        term: Term,
        /// By the owner key, over [`entry_message`].
        signature: Signature,
    },
    /// It has the room's link, or an earlier one: whoever the host let in by it enters as a visitor, even if the room is not listed.
    Link {
        /// The join key of that link.
        key: PublicKey,
        /// By this key, over [`entry_message`].
        signature: Signature,
    },
    /// It has an invite. Once the invite has expired, it enters as a visitor, even if the room is not listed: the host may have let
    /// its device in before.
    Invite {
        /// Of the invite's door key.
        certificate: DoorCertificate,
        /// By the door key, over [`entry_message`].
        signature: Signature,
    },
    /// It found the room in the list. Only while the room is visible.
    Visitor,
}

/// How often the room has got another host. Who takes over from a host raises it by one, so the relay knows who came later, and an
/// earlier host that returns does not put out the present one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Term(pub u32);

impl Term {
    /// The room still has its first host.
    #[must_use]
    pub fn is_first(&self) -> bool {
        self.0 == 0
    }

    /// The term of whoever takes over.
    #[must_use]
    pub fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }
}

/// What an entry's signature covers beside the room and the nonce.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SignedEntry<'a> {
    /// [`EntryProof::Owner`].
    Owner {
        /// The room's join key.
        join_key: &'a PublicKey,
        /// The room's title.
        title: &'a str,
        /// Whether the room is listed.
        visible: bool,
        /// The term in which it hosts.
        term: Term,
    },
    /// [`EntryProof::Link`].
    Link,
    /// [`EntryProof::Invite`].
    Invite,
}

/// The nonce of a connection to the relay that answers as `host` (`name` or `name:port`): what entries sign. So nothing that
/// was signed for one relay lets another one enter a third.
pub fn nonce_at(host: &str, nonce: &Nonce) -> Nonce {
    let host = host.to_ascii_lowercase();
    // Browsers leave out the usual port, other clients may not.
    let host = host.strip_suffix(":443").or_else(|| host.strip_suffix(":80")).unwrap_or(&host);
    let mut hasher = blake3::Hasher::new_derive_key(NONCE_CONTEXT);
    hasher.update(&nonce.0).update(host.as_bytes());
    Binary(*hasher.finalize().as_bytes())
}

/// The bytes that are signed to enter `room` over a connection with this nonce, which is one of [`nonce_at`].
pub fn entry_message(room: &str, nonce: &Nonce, entry: SignedEntry<'_>) -> Vec<u8> {
    let kind: &[u8] = match entry {
        // As relays without terms know it.
        SignedEntry::Owner { term, .. } if term.is_first() => b"owner",
        SignedEntry::Owner { .. } => b"owner in term",
        SignedEntry::Link => b"link",
        SignedEntry::Invite => b"invite",
    };
    let mut message = [SIGNED_PREFIX, room.as_bytes(), b"\0", kind, b"\0", &nonce.0].concat();
    if let SignedEntry::Owner { join_key, title, visible, term } = entry {
        if !term.is_first() {
            message.extend_from_slice(&term.0.to_le_bytes());
        }
        message.extend_from_slice(&join_key.0);
        message.push(visible.into());
        message.extend_from_slice(title.as_bytes());
    }
    message
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use super::*;

    #[test]
    fn a_room_id_is_26_characters_and_differs_by_key() {
        let id = room_id(&Binary([7; 32]));
        assert_eq!(id, "s6znbtiyh7zmyusli2pdeiywa4");
        assert_eq!(id.len(), ROOM_ID_CHARS);
        assert_ne!(room_id(&Binary([8; 32])), id);
    }

    #[test]
    fn the_signed_bytes_are_these() {
        let nonce = Binary([b'n'; 32]);
        let n = "n".repeat(32);
        let link = entry_message("abcd", &nonce, SignedEntry::Link);
        assert_eq!(link, format!("potluck relay entry v2\0abcd\0link\0{n}").as_bytes());
        let invite = entry_message("abcd", &nonce, SignedEntry::Invite);
        assert_eq!(invite, format!("potluck relay entry v2\0abcd\0invite\0{n}").as_bytes());
        let join_key = Binary([b'j'; 32]);
        let owner = |term| SignedEntry::Owner { join_key: &join_key, title: "Küche", visible: true, term: Term(term) };
        let j = "j".repeat(32);
        assert_eq!(
            entry_message("abcd", &nonce, owner(0)),
            format!("potluck relay entry v2\0abcd\0owner\0{n}{j}\u{1}Küche").as_bytes()
        );
        assert_eq!(
            entry_message("abcd", &nonce, owner(5)),
            format!("potluck relay entry v2\0abcd\0owner in term\0{n}\u{5}\0\0\0{j}\u{1}Küche").as_bytes()
        );
    }

    #[test]
    fn a_certificate_covers_the_terms_and_the_key_and_tells_number_and_expiry() {
        let (terms, door) = (Binary([0x81, 1, 2, 3, 4, 5, 6, 7, 8, 10, 0]), Binary([b'd'; 32]));
        let signed = [b"potluck owner certifies door key v1\0".as_slice(), &terms.0, &door.0].concat();
        assert_eq!(door_message(&terms, &door), signed);
        let certificate = DoorCertificate { terms, door, signature: Binary([0; 64]) };
        assert_eq!((certificate.invite(), certificate.expires()), (0x0403_0201, 0x0807_0605));
    }

    #[test]
    fn a_nonce_is_worth_something_at_one_relay() {
        let nonce = Binary([1; 32]);
        let at = |host: &str| nonce_at(host, &nonce);
        assert_eq!(at("Potluck.example:443"), at("potluck.example"));
        assert_eq!(at("[::1]:80"), at("[::1]"));
        for other in ["evil.example", "potluck.example:8443", "potluck.example:4430", "sub.potluck.example"] {
            assert_ne!(at("potluck.example"), at(other), "{other}");
        }
        assert_ne!(at("potluck.example"), nonce_at("potluck.example", &Binary([2; 32])));
    }

    #[test]
    fn proofs_keep_their_json() {
        let proof = EntryProof::Owner {
            key: Binary([0; 32]),
            join_key: Binary([255; 32]),
            title: "Kitchen".into(),
            visible: false,
            term: Term(0),
            signature: Binary([0; 64]),
        };
        let (zeros, ones, long) = ("A".repeat(43), format!("{}8", "_".repeat(42)), "A".repeat(86));
        let json = format!(
            r#"{{"as":"owner","key":"{zeros}","join_key":"{ones}","title":"Kitchen","visible":false,"signature":"{long}"}}"#
        );
        assert_eq!(serde_json::to_string(&proof).unwrap(), json);
        assert_eq!(serde_json::from_str::<EntryProof>(&json).unwrap(), proof);
        let later = json.replace(r#""visible":false"#, r#""visible":false,"term":3"#);
        let EntryProof::Owner { term, .. } = serde_json::from_str(&later).unwrap() else { panic!("not an owner") };
        assert_eq!(term, Term(3));
        assert_eq!(serde_json::from_str::<EntryProof>(r#"{"as":"visitor"}"#).unwrap(), EntryProof::Visitor);
        assert!(serde_json::from_str::<EntryProof>(r#"{"as":"link","key":"AAAA","signature":"AAAA"}"#).is_err());
        assert!(serde_json::from_str::<EntryProof>(r#"{"as":"king"}"#).is_err());
    }
}
