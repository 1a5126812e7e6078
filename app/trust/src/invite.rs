//! Invites: links that the host signs. They open the relay's door and the host's, but do not show the room's secret.

use ed25519_dalek::{Signature, Signer, SigningKey, VerifyingKey};
use potluck_relay_api::Binary;
use zeroize::Zeroizing;

use crate::room_keys::{OwnerKey, Psk};

const INVITE_CONTEXT: &[u8] = b"potluck v10 owner signs invite\0";
const DOOR_CONTEXT: &str = "potluck 2026-11 handshake key of invites from door key";

/// Bytes of an invite's terms.
pub const TERMS_LEN: usize = 11;

/// What an invite allows: bytes that the owner signs and that mean nothing here.
pub type Terms = [u8; TERMS_LEN];

/// The seed of a room's join key, which follows from the room's secret and does not lead back to it. It proves to the relay
/// and to the host that its holder has some link of the room.
#[derive(Clone, PartialEq, Eq)]
pub struct DoorKey(Zeroizing<[u8; 32]>);

impl DoorKey {
    pub(crate) fn new(seed: Zeroizing<[u8; 32]>) -> Self {
        Self(seed)
    }

    fn signing(&self) -> SigningKey {
        SigningKey::from_bytes(&self.0)
    }

    /// The public key that the relay checks link holders with.
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

/// Terms with the owner's signature: what a guest shows the host in its handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SignedInvite {
    /// What it allows.
    pub terms: Terms,
    signature: [u8; 64],
}

impl SignedInvite {
    /// Bytes of a signed invite.
    pub(crate) const LEN: usize = TERMS_LEN + 64;

    pub(crate) fn bytes(&self) -> Vec<u8> {
        [&self.terms[..], &self.signature].concat()
    }

    pub(crate) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (terms, signature) = bytes.split_first_chunk::<TERMS_LEN>()?;
        Some(Self { terms: *terms, signature: signature.try_into().ok()? })
    }

    /// The owner signed it.
    pub(crate) fn is_signed_by(&self, owner: &[u8; 32]) -> bool {
        let signature = Signature::from_bytes(&self.signature);
        VerifyingKey::from_bytes(owner).is_ok_and(|key| key.verify_strict(&signed(&self.terms), &signature).is_ok())
    }
}

impl OwnerKey {
    /// Signs an invite to its room. The same terms give the same invite.
    pub fn sign_invite(&self, terms: Terms) -> SignedInvite {
        SignedInvite { terms, signature: self.sign(&signed(&terms)) }
    }
}

/// The key names the room, so the room need not be signed.
fn signed(terms: &Terms) -> Vec<u8> {
    [INVITE_CONTEXT, terms].concat()
}

/// What the link of an invite holds.
#[derive(Clone, PartialEq, Eq)]
pub struct InviteKey {
    /// Opens the doors.
    pub door: DoorKey,
    /// What is behind them for its holder.
    pub invite: SignedInvite,
}

impl InviteKey {
    const LEN: usize = 32 + SignedInvite::LEN;

    /// As a link shows it: 143 characters of base64url.
    pub fn text(&self) -> String {
        let mut bytes = [0; Self::LEN];
        bytes[..32].copy_from_slice(self.door.0.as_ref());
        bytes[32..].copy_from_slice(&self.invite.bytes());
        Binary(bytes).encode()
    }

    /// Reads what [`InviteKey::text`] wrote; `None` if it is damaged.
    pub fn parse(text: &str) -> Option<Self> {
        let Binary(bytes) = Binary::<{ Self::LEN }>::decode(text)?;
        let (door, invite) = bytes.split_first_chunk::<32>()?;
        Some(Self { door: DoorKey::new(Zeroizing::new(*door)), invite: SignedInvite::from_bytes(invite)? })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]

    use super::*;
    use crate::RoomSecret;

    fn key() -> InviteKey {
        let door = RoomSecret::from_bytes([9; 16]).door();
        InviteKey { door, invite: OwnerKey::from_seed([7; 32]).sign_invite([3; TERMS_LEN]) }
    }

    #[test]
    fn an_invite_reads_back_and_a_damaged_one_is_noticed() {
        let text = key().text();
        assert_eq!(text.len(), 143);
        assert!(InviteKey::parse(&text).unwrap() == key());
        for bad in ["", &text[1..], &text[..142], &text.replace(&text[..1], "!")] {
            assert!(InviteKey::parse(bad).is_none(), "{bad}");
        }
    }

    #[test]
    fn nobody_but_the_owner_can_change_the_terms() {
        let owner = OwnerKey::from_seed([7; 32]);
        let signed = key().invite.bytes();
        for bit in 0..signed.len() * 8 {
            let mut wrong = signed.clone();
            wrong[bit / 8] ^= 1 << (bit % 8);
            let wrong = SignedInvite::from_bytes(&wrong).unwrap();
            assert!(!wrong.is_signed_by(&owner.public()), "bit {bit} flipped");
        }
        assert!(key().invite.is_signed_by(&owner.public()));
        assert!(!key().invite.is_signed_by(&OwnerKey::from_seed([8; 32]).public()), "another room's owner");
    }

    #[test]
    fn an_invite_shows_neither_the_rooms_secret_nor_the_key_of_its_link() {
        let secret = RoomSecret::from_bytes([9; 16]);
        let text = key().text();
        let bytes = Binary::<{ InviteKey::LEN }>::decode(&text).unwrap().0;
        assert!(!bytes.windows(8).any(|part| part == [9; 8]));
        assert_ne!(secret.psk(), secret.door().psk());
        assert_eq!(secret.door().public(), secret.join_public(), "the relay needs to know one key only");
    }
}
