//! The keys of a room: the owner's, and what is derived from the secret in its link.

use ed25519_dalek::{Signer, SigningKey};
use potluck_relay_api::Binary;
use zeroize::Zeroizing;

use crate::Random;
use crate::invite::DoorKey;

const JOIN_CONTEXT: &str = "potluck 2026-11 join key from room secret";
const LINK_CONTEXT: &str = "potluck 2026-11 handshake key from room secret";
const RENEWED_CONTEXT: &str = "potluck 2026-11 renewed room secret from owner key and number";
const TAG_CONTEXT: &str = "potluck 2026-11 tag of a link from room secret";
const GROUP_CONTEXT: &str = "potluck 2026-11 group secret from owner key";
const VISITOR_CONTEXT: &str = "potluck 2026-11 handshake key of visitors from room id";

/// A pre-shared key of a handshake.
pub(crate) type Psk = Zeroizing<[u8; 32]>;

/// The key of a room's owner. Its public half names the room, so a link pins its host.
#[derive(Clone)]
pub struct OwnerKey(Box<SigningKey>);

impl OwnerKey {
    /// The key for a new room.
    pub fn generate(random: Random) -> Self {
        let mut seed = Zeroizing::new([0; 32]);
        random(seed.as_mut());
        Self::from_seed(*seed)
    }

    /// The key that [`OwnerKey::seed`] was kept of.
    pub fn from_seed(seed: [u8; 32]) -> Self {
        Self(Box::new(SigningKey::from_bytes(&seed)))
    }

    /// What to keep, so that this device can open the room again.
    pub fn seed(&self) -> [u8; 32] {
        self.0.to_bytes()
    }

    /// The public key.
    pub fn public(&self) -> [u8; 32] {
        self.0.verifying_key().to_bytes()
    }

    /// The id of its room.
    pub fn room(&self) -> String {
        potluck_relay_api::room_id(&Binary(self.public()))
    }

    /// Signs the relay's challenge.
    pub fn sign(&self, message: &[u8]) -> [u8; 64] {
        self.0.sign(message).to_bytes()
    }

    pub(crate) fn signing(&self) -> &SigningKey {
        &self.0
    }

    /// The secret of the room's link after it was renewed `number` times; `first` is the one that the room was opened with. Renewed
    /// ones are derived, so the host keeps only their number, and whoever has one learns nothing of the others.
    pub fn link(&self, first: &RoomSecret, number: u32) -> RoomSecret {
        if number == 0 {
            return first.clone();
        }
        #[cfg(test)]
        DERIVED.set(DERIVED.get() + 1);
        let hash = Zeroizing::new(blake3::derive_key(RENEWED_CONTEXT, self.numbered(number).as_ref()));
        let mut secret = Zeroizing::new([0; RoomSecret::LEN]);
        secret.copy_from_slice(&hash[..RoomSecret::LEN]);
        RoomSecret(secret)
    }

    fn numbered(&self, number: u32) -> Zeroizing<[u8; 36]> {
        let mut material = Zeroizing::new([0; 36]);
        material[..32].copy_from_slice(self.0.as_bytes());
        material[32..].copy_from_slice(&number.to_le_bytes());
        material
    }

    /// The secret of everyone whom the host has admitted. The same after a reload of the host; another in each generation.
    pub fn group_secret(&self, generation: u32) -> GroupSecret {
        GroupSecret(Zeroizing::new(blake3::derive_key(GROUP_CONTEXT, self.numbered(generation).as_ref())))
    }
}

#[cfg(test)]
thread_local! {
    /// How many secrets of renewed links this thread has derived.
    pub(crate) static DERIVED: std::cell::Cell<u32> = const { std::cell::Cell::new(0) };
}

/// Bytes of a [`LinkTag`].
pub(crate) const TAG_LEN: usize = 8;
/// Which of a room's links somebody has.
pub(crate) type LinkTag = [u8; TAG_LEN];

/// The secret in a room's link. It is only used, and sent to nobody but, once it is renewed, to members who had the earlier one.
#[derive(Clone, PartialEq, Eq)]
pub struct RoomSecret(Zeroizing<[u8; RoomSecret::LEN]>);

impl std::fmt::Debug for RoomSecret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("RoomSecret(…)")
    }
}

impl RoomSecret {
    /// Bytes of a secret.
    pub const LEN: usize = 16;

    /// A new secret.
    pub fn generate(random: Random) -> Self {
        let mut bytes = Zeroizing::new([0; Self::LEN]);
        random(bytes.as_mut());
        Self(bytes)
    }

    /// The secret with these bytes.
    pub fn from_bytes(bytes: [u8; Self::LEN]) -> Self {
        Self(Zeroizing::new(bytes))
    }

    /// What to keep or to give to the room's deputy.
    pub fn to_bytes(&self) -> [u8; Self::LEN] {
        *self.0
    }

    /// Reads the secret of a link; `None` if it is damaged.
    pub fn parse(text: &str) -> Option<Self> {
        Binary::decode(text).map(|Binary(bytes)| Self::from_bytes(bytes))
    }

    /// The secret as a link shows it: 22 characters of base64url.
    pub fn text(&self) -> String {
        Binary(*self.0).encode()
    }

    fn join_key(&self) -> DoorKey {
        DoorKey::new(Zeroizing::new(blake3::derive_key(JOIN_CONTEXT, self.0.as_ref())))
    }

    /// The public key that the relay checks link holders with.
    pub fn join_public(&self) -> [u8; 32] {
        self.join_key().public()
    }

    /// Signs the relay's challenge: proof of knowing the secret.
    pub fn sign(&self, message: &[u8]) -> [u8; 64] {
        self.join_key().sign(message)
    }

    pub(crate) fn psk(&self) -> Psk {
        Zeroizing::new(blake3::derive_key(LINK_CONTEXT, self.0.as_ref()))
    }

    pub(crate) fn bytes(&self) -> &[u8; Self::LEN] {
        &self.0
    }

    /// Names the link without showing its secret.
    pub(crate) fn tag(&self) -> LinkTag {
        let hash = blake3::derive_key(TAG_CONTEXT, self.0.as_ref());
        let mut tag = [0; TAG_LEN];
        tag.copy_from_slice(&hash[..TAG_LEN]);
        tag
    }
}

/// The secret that the host gives to those whom it admits: only they can shake hands with each other.
#[derive(Clone, PartialEq, Eq)]
pub struct GroupSecret(Zeroizing<[u8; 32]>);

impl GroupSecret {
    pub(crate) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        Some(Self(Zeroizing::new(bytes.try_into().ok()?)))
    }

    pub(crate) fn psk(&self) -> &Psk {
        &self.0
    }
}

/// Visitors of a listed room know no secret: their handshake with the host proves who is who, and nothing else.
pub(crate) fn visitor_psk(room: &str) -> Psk {
    Zeroizing::new(blake3::derive_key(VISITOR_CONTEXT, room.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_of_a_secret_are_its_own_and_do_not_show_it() {
        let (one, two) = (RoomSecret::from_bytes([1; 16]), RoomSecret::from_bytes([2; 16]));
        assert_ne!(one.join_public(), two.join_public());
        assert_ne!(one.psk(), two.psk());
        assert!(!one.join_public().windows(4).any(|bytes| bytes == [1; 4]), "the join key shows the secret");
    }

    #[test]
    fn derived_keys_keep_their_values() {
        // Rooms and links of today must open tomorrow.
        let (owner, secret) = (OwnerKey::from_seed([7; 32]), RoomSecret::from_bytes([9; 16]));
        let hex = |bytes: &[u8]| bytes.iter().take(8).map(|byte| format!("{byte:02x}")).collect::<String>();
        assert_eq!(owner.room(), "vdehbxlhujthptaoyaaug57jna");
        assert_eq!(secret.text(), "CQkJCQkJCQkJCQkJCQkJCQ");
        assert_eq!(hex(&secret.join_public()), "c367ff3d2cd4b0ef");
        assert_eq!(hex(secret.psk().as_ref()), "33fd09e901779f9d");
        assert_eq!(owner.link(&secret, 1).text(), "fFwO4uek6dtBz7bONQv81w");
        assert_eq!(hex(owner.group_secret(0).psk().as_ref()), "2d6b2944d596eeb5");
        assert_eq!(hex(visitor_psk("room").as_ref()), "6d6a12287e3eed04");
    }

    #[test]
    fn a_link_shows_the_secret_and_a_damaged_link_is_noticed() {
        let secret = RoomSecret::from_bytes([0xfb; 16]);
        assert_eq!(secret.text().len(), 22);
        assert!(RoomSecret::parse(&secret.text()).is_some_and(|again| again == secret));
        for bad in ["", "abc", &secret.text()[..21], "0123456789abcdef0123456789abcdef"] {
            assert!(RoomSecret::parse(bad).is_none(), "{bad}");
        }
    }

    #[test]
    fn a_renewed_link_survives_a_reload_and_shows_no_other_one() {
        let (owner, first) = (OwnerKey::from_seed([7; 32]), RoomSecret::from_bytes([9; 16]));
        assert!(owner.link(&first, 0) == first);
        let links: Vec<RoomSecret> = (0..5).map(|number| owner.link(&first, number)).collect();
        let again = OwnerKey::from_seed(owner.seed());
        assert!((0..5).all(|number| again.link(&first, number) == links[number as usize]));
        for (a, one) in links.iter().enumerate() {
            for other in &links[a + 1..] {
                assert!(one != other && one.tag() != other.tag() && one.join_public() != other.join_public());
            }
            assert!(
                !one.bytes().windows(4).any(|part| one.tag().windows(4).any(|tag| tag == part)),
                "shown by its tag"
            );
        }
        let (other, another) = (OwnerKey::from_seed([8; 32]), RoomSecret::from_bytes([1; 16]));
        assert!(other.link(&first, 1) != links[1], "another room's");
        assert!(owner.link(&another, 1) == links[1], "nothing of it follows from the first one, which others know");
    }

    #[test]
    fn a_group_secret_survives_a_reload_and_changes_by_generation() {
        let owner = OwnerKey::from_seed([7; 32]);
        let again = OwnerKey::from_seed(owner.seed());
        assert!(owner.group_secret(0) == again.group_secret(0));
        assert!(owner.group_secret(0) != owner.group_secret(1));
        assert_eq!(owner.room(), again.room());
    }
}
