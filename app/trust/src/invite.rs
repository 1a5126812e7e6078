//! Invites: links that the host signs. Each has a door key of its own, certified by the owner: it opens the relay's door and the
//! host's, but reveals neither the room's secret nor another invite's door key.

use ed25519_dalek::{Signer, SigningKey};
use potluck_relay_api::{Binary, DoorCertificate, door_message};
use zeroize::Zeroizing;

use crate::room_keys::{OwnerKey, Psk};

const DOOR_KEY_CONTEXT: &str = "potluck 2026-11 door key of an invite from owner key and terms";
const DOOR_CONTEXT: &str = "potluck 2026-11 handshake key of invites from door key";

pub use potluck_relay_api::TERMS_LEN;

/// What an invite allows: bytes that the owner signs. The relay reads only number and expiry.
pub type Terms = [u8; TERMS_LEN];

/// The seed of a key that opens the relay's door: an invite's own, or the room's join key, which is derived from the room's secret.
#[derive(Clone, PartialEq, Eq)]
pub struct DoorKey(Zeroizing<[u8; 32]>);

impl DoorKey {
    pub(crate) fn new(seed: Zeroizing<[u8; 32]>) -> Self {
        Self(seed)
    }

    fn signing(&self) -> SigningKey {
        SigningKey::from_bytes(&self.0)
    }

    /// The public key that the relay checks its holders with.
    pub(crate) fn public(&self) -> [u8; 32] {
        self.signing().verifying_key().to_bytes()
    }

    /// Signs the relay's challenge.
    pub fn sign(&self, message: &[u8]) -> [u8; 64] {
        self.signing().sign(message).to_bytes()
    }

    pub(crate) fn psk(&self) -> Psk {
        Zeroizing::new(blake3::derive_key(DOOR_CONTEXT, self.0.as_ref()))
    }
}

impl OwnerKey {
    /// The door key of the invite with these terms. It is derived from the owner's key, so the host stores none, and knowing it proves
    /// an invite with exactly these terms.
    pub(crate) fn door(&self, terms: &Terms) -> DoorKey {
        let mut material = Zeroizing::new([0; 32 + TERMS_LEN]);
        material[..32].copy_from_slice(self.signing().as_bytes());
        material[32..].copy_from_slice(terms);
        DoorKey::new(Zeroizing::new(blake3::derive_key(DOOR_KEY_CONTEXT, material.as_ref())))
    }

    /// An invite to its room. The same terms give the same invite.
    pub fn invite(&self, terms: Terms) -> InviteKey {
        let door = self.door(&terms);
        let signature = self.sign(&door_message(&Binary(terms), &Binary(door.public())));
        InviteKey { door, terms, signature }
    }
}

/// What the link of an invite holds.
#[derive(Clone, PartialEq, Eq)]
pub struct InviteKey {
    /// Opens the doors.
    pub door: DoorKey,
    /// What is behind them for its holder.
    pub terms: Terms,
    /// The owner's, of the terms with the public half of the door key.
    signature: [u8; 64],
}

impl InviteKey {
    const LEN: usize = 32 + TERMS_LEN + 64;

    /// What the relay is shown: nothing in it is secret.
    pub fn certificate(&self) -> DoorCertificate {
        let (terms, door) = (Binary(self.terms), Binary(self.door.public()));
        DoorCertificate { terms, door, signature: Binary(self.signature) }
    }

    /// As a link shows it: 143 characters of base64url.
    pub fn text(&self) -> String {
        let mut bytes = [0; Self::LEN];
        let (door, rest) = bytes.split_at_mut(32);
        let (terms, signature) = rest.split_at_mut(TERMS_LEN);
        door.copy_from_slice(self.door.0.as_ref());
        terms.copy_from_slice(&self.terms);
        signature.copy_from_slice(&self.signature);
        Binary(bytes).encode()
    }

    /// Reads what [`InviteKey::text`] wrote; `None` if it is damaged.
    pub fn parse(text: &str) -> Option<Self> {
        let Binary(bytes) = Binary::<{ Self::LEN }>::decode(text)?;
        let (door, rest) = bytes.split_first_chunk::<32>()?;
        let (terms, signature) = rest.split_first_chunk::<TERMS_LEN>()?;
        let door = DoorKey::new(Zeroizing::new(*door));
        Some(Self { door, terms: *terms, signature: signature.try_into().ok()? })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]

    use ed25519_dalek::{Signature, VerifyingKey};

    use super::*;

    const TERMS: Terms = [3; TERMS_LEN];

    fn owner() -> OwnerKey {
        OwnerKey::from_seed([7; 32])
    }

    fn is_certified(certificate: &DoorCertificate, owner: &OwnerKey) -> bool {
        let message = door_message(&certificate.terms, &certificate.door);
        let signature = Signature::from_bytes(&certificate.signature.0);
        VerifyingKey::from_bytes(&owner.public()).unwrap().verify_strict(&message, &signature).is_ok()
    }

    #[test]
    fn an_invite_reads_back_and_a_damaged_one_is_noticed() {
        let key = owner().invite(TERMS);
        let text = key.text();
        assert_eq!(text.len(), 143);
        assert!(InviteKey::parse(&text).unwrap() == key);
        for bad in ["", &text[1..], &text[..142], &text.replace(&text[..1], "!")] {
            assert!(InviteKey::parse(bad).is_none(), "{bad}");
        }
    }

    #[test]
    fn nobody_but_the_owner_can_certify_terms_or_key() {
        let certificate = owner().invite(TERMS).certificate();
        assert!(is_certified(&certificate, &owner()));
        assert!(!is_certified(&certificate, &OwnerKey::from_seed([8; 32])), "another room's owner");
        for bit in 0..TERMS_LEN * 8 {
            let mut wrong = certificate;
            wrong.terms.0[bit / 8] ^= 1 << (bit % 8);
            assert!(!is_certified(&wrong, &owner()), "bit {bit} of the terms flipped");
        }
        let door = owner().invite([4; TERMS_LEN]).certificate().door;
        assert!(!is_certified(&DoorCertificate { door, ..certificate }, &owner()), "another invite's key");
    }

    /// Before, all invites of a room shared one key, so none of them could be ended alone.
    #[test]
    fn each_invite_has_a_key_of_its_own_which_shows_neither_another_one_nor_the_owners() {
        let (one, two) = (owner().invite(TERMS), owner().invite([4; TERMS_LEN]));
        assert_ne!(one.door.public(), two.door.public());
        assert_ne!(one.door.psk(), two.door.psk());
        assert_ne!(one.door.public(), OwnerKey::from_seed([8; 32]).invite(TERMS).door.public());
        let bytes = Binary::<{ InviteKey::LEN }>::decode(&one.text()).unwrap().0;
        assert!(!bytes.windows(8).any(|part| part == [7; 8]));
        assert!(owner().invite(TERMS) == one, "the host can show the link again");
    }
}
