//! Identities: a device's key, a tab's key, and the certificate that ties a handshake to both.

use ed25519_dalek::{Signature, Signer, SigningKey, VerifyingKey};
use potluck_plan::{DeviceId, PeerId};
use potluck_relay_api::Binary;
use zeroize::Zeroizing;

use crate::handshake::HandshakeKey;
use crate::room_keys::OwnerKey;

/// Fills a buffer with randomness that is fit for keys.
pub type Random = fn(&mut [u8]);

const TAB_CONTEXT: &[u8] = b"potluck v9 device certifies tab\0";
const SESSION_CONTEXT: &[u8] = b"potluck v9 tab certifies handshake key\0";
const OWNER_CONTEXT: &[u8] = b"potluck v9 owner certifies handshake key\0";
const PEER_CONTEXT: &str = "potluck 2026-11 peer id from tab key";

/// The secret keys of a tab, kept by its browser (natively by a file): 32-byte Ed25519 seeds.
#[derive(Clone)]
pub struct IdentityKeys {
    /// The same in every tab of the browser.
    pub device: Zeroizing<[u8; 32]>,
    /// This tab's, kept over reloads.
    pub tab: Zeroizing<[u8; 32]>,
}

impl IdentityKeys {
    /// New keys.
    pub fn generate(random: Random) -> Self {
        let mut keys = Self { device: Zeroizing::new([0; 32]), tab: Zeroizing::new([0; 32]) };
        random(keys.device.as_mut());
        random(keys.tab.as_mut());
        keys
    }

    /// The device's public key.
    pub fn device(&self) -> DeviceId {
        DeviceId(SigningKey::from_bytes(&self.device).verifying_key().to_bytes())
    }

    /// The id that the tab's key gives its peer.
    pub fn peer(&self) -> PeerId {
        peer_id(&SigningKey::from_bytes(&self.tab).verifying_key())
    }
}

/// The id of the peer with this tab key.
fn peer_id(tab: &VerifyingKey) -> PeerId {
    let hash = blake3::derive_key(PEER_CONTEXT, tab.as_bytes());
    let mut id = [0; 16];
    id.copy_from_slice(&hash[..16]);
    PeerId(id)
}

/// What one start of a node identifies itself with: a fresh handshake key, certified by the tab's key.
#[derive(Clone)]
pub struct NodeIdentity {
    pub(crate) key: HandshakeKey,
    certificate: Vec<u8>,
    peer: PeerId,
    device: DeviceId,
}

impl NodeIdentity {
    /// Makes a handshake key and certifies it.
    pub fn new(keys: &IdentityKeys, random: Random) -> Self {
        let key = HandshakeKey::generate(random);
        let (device, tab) = (SigningKey::from_bytes(&keys.device), SigningKey::from_bytes(&keys.tab));
        let tab_public = tab.verifying_key();
        let mut certificate = Vec::with_capacity(Certificate::LEN);
        certificate.extend_from_slice(device.verifying_key().as_bytes());
        certificate.extend_from_slice(tab_public.as_bytes());
        certificate.extend_from_slice(&sign(&device, TAB_CONTEXT, &[tab_public.as_bytes()]));
        certificate.extend_from_slice(&sign(&tab, SESSION_CONTEXT, &[&key.public]));
        Self { certificate, peer: peer_id(&tab_public), device: DeviceId(device.verifying_key().to_bytes()), key }
    }

    /// This peer.
    pub fn peer(&self) -> PeerId {
        self.peer
    }

    /// This device.
    pub fn device(&self) -> DeviceId {
        self.device
    }

    /// The certificate to show in a room; an owner also proves that the room is its own.
    pub(crate) fn certificate(&self, owner: Option<&OwnerKey>) -> Vec<u8> {
        let mut bytes = self.certificate.clone();
        if let Some(owner) = owner {
            bytes.extend_from_slice(&owner.public());
            bytes.extend_from_slice(&sign(owner.signing(), OWNER_CONTEXT, &[&self.key.public]));
        }
        bytes
    }
}

fn sign(key: &SigningKey, context: &[u8], parts: &[&[u8]]) -> [u8; 64] {
    key.sign(&message(context, parts)).to_bytes()
}

fn message(context: &[u8], parts: &[&[u8]]) -> Vec<u8> {
    let mut message = context.to_vec();
    parts.iter().for_each(|part| message.extend_from_slice(part));
    message
}

fn verify(key: &VerifyingKey, context: &[u8], parts: &[&[u8]], signature: &[u8; 64]) -> bool {
    key.verify_strict(&message(context, parts), &Signature::from_bytes(signature)).is_ok()
}

/// What a handshake has proven about the other side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Certificate {
    /// The peer, by its tab's key.
    pub peer: PeerId,
    /// Its device.
    pub device: DeviceId,
    /// It holds the room's owner key.
    pub is_owner: bool,
}

impl Certificate {
    /// Bytes of a certificate without the owner's part.
    pub(crate) const LEN: usize = 32 + 32 + 64 + 64;
    /// Bytes of the longest certificate.
    pub(crate) const MAX_LEN: usize = Self::LEN + 32 + 64;

    /// Checks a certificate against the handshake key that its sender has proven to hold. `None` if anything is wrong.
    pub(crate) fn check(bytes: &[u8], handshake_key: &[u8; 32], room: &str) -> Option<Self> {
        let (device, rest) = bytes.split_first_chunk::<32>()?;
        let (tab, rest) = rest.split_first_chunk::<32>()?;
        let (by_device, rest) = rest.split_first_chunk::<64>()?;
        let (by_tab, rest) = rest.split_first_chunk::<64>()?;
        let device_key = VerifyingKey::from_bytes(device).ok()?;
        let tab_key = VerifyingKey::from_bytes(tab).ok()?;
        let is_signed = verify(&device_key, TAB_CONTEXT, &[tab], by_device)
            && verify(&tab_key, SESSION_CONTEXT, &[handshake_key], by_tab);
        let is_owner = !rest.is_empty();
        if !is_signed || is_owner && !is_owner_proof(rest, handshake_key, room) {
            return None;
        }
        Some(Self { peer: peer_id(&tab_key), device: DeviceId(*device), is_owner })
    }
}

/// An owner's part of a certificate: its public key, which must hash to the room's id, and its signature.
fn is_owner_proof(bytes: &[u8], handshake_key: &[u8; 32], room: &str) -> bool {
    let Some((key, signature)) = bytes.split_first_chunk::<32>() else { return false };
    let (Ok(signature), Ok(owner)) = (signature.try_into(), VerifyingKey::from_bytes(key)) else { return false };
    potluck_relay_api::room_id(&Binary(*key)) == room && verify(&owner, OWNER_CONTEXT, &[handshake_key], signature)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::handshake::tests::counting;

    fn node(seed: u8) -> NodeIdentity {
        let keys = IdentityKeys { device: Zeroizing::new([seed; 32]), tab: Zeroizing::new([seed + 100; 32]) };
        NodeIdentity::new(&keys, counting)
    }

    #[test]
    fn a_certificate_names_peer_and_device_and_holds_for_its_handshake_key_only() {
        let (node, other) = (node(1), node(2));
        let bytes = node.certificate(None);
        assert_eq!(
            Certificate::check(&bytes, &node.key.public, "room"),
            Some(Certificate { peer: node.peer(), device: node.device(), is_owner: false })
        );
        assert_eq!(Certificate::check(&bytes, &other.key.public, "room"), None, "copied by another peer");
    }

    #[test]
    fn every_flipped_bit_and_every_missing_byte_is_noticed() {
        let node = node(1);
        let owner = OwnerKey::from_seed([7; 32]);
        let room = owner.room();
        let bytes = node.certificate(Some(&owner));
        assert!(Certificate::check(&bytes, &node.key.public, &room).is_some_and(|certificate| certificate.is_owner));
        for len in (0..bytes.len()).filter(|len| *len != Certificate::LEN) {
            assert_eq!(Certificate::check(&bytes[..len], &node.key.public, &room), None, "{len} bytes");
        }
        for bit in 0..bytes.len() * 8 {
            let mut wrong = bytes.clone();
            wrong[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(Certificate::check(&wrong, &node.key.public, &room), None, "bit {bit} flipped");
        }
    }

    #[test]
    fn another_rooms_owner_is_not_this_rooms() {
        let node = node(1);
        let (owner, other) = (OwnerKey::from_seed([7; 32]), OwnerKey::from_seed([8; 32]));
        assert_eq!(Certificate::check(&node.certificate(Some(&other)), &node.key.public, &owner.room()), None);
    }
}
