//! Checks the signatures of entries.

use potluck_relay_api::{EntryProof, Nonce, PublicKey, Signature, SignedEntry, door_message, entry_message};
use ring::signature::{ED25519, UnparsedPublicKey};

use super::id::RoomId;

/// The points of Ed25519 of small order, without the sign bit, also in encodings that are not canonical. A key among them
/// accepts signatures that nobody made.
const SMALL_ORDER: [&str; 7] = [
    "0000000000000000000000000000000000000000000000000000000000000000",
    "0100000000000000000000000000000000000000000000000000000000000000",
    "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
    "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",
    "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
    "edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
    "eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
];

/// The keys that a room has.
#[derive(Clone, Debug)]
pub struct RoomKeys {
    /// Of its owner: certifies the door keys of invites.
    pub owner: PublicKey,
    /// A signature with one of them proves the link, or an earlier one.
    pub links: Vec<PublicKey>,
}

/// Whether an entry as owner, by link or by invite is signed for this room and this connection. `keys` are those that the room
/// has; an owner brings its own. Visitors sign nothing. Whether an invite has expired or a link was renewed is not checked here.
pub fn holds(room: &RoomId, nonce: &Nonce, proof: &EntryProof, keys: Option<&RoomKeys>) -> bool {
    match proof {
        EntryProof::Owner { key, join_key, title, visible, term, signature } => {
            let entry = SignedEntry::Owner { join_key, title, visible: *visible, term: *term };
            RoomId::of_owner(key) == *room && verify(key, &entry_message(room.as_str(), nonce, entry), signature)
        }
        EntryProof::Link { key, signature } => {
            let message = entry_message(room.as_str(), nonce, SignedEntry::Link);
            keys.is_some_and(|keys| keys.links.contains(key)) && verify(key, &message, signature)
        }
        EntryProof::Invite { certificate, signature } => {
            let certified = door_message(&certificate.terms, &certificate.door);
            let message = entry_message(room.as_str(), nonce, SignedEntry::Invite);
            keys.is_some_and(|keys| verify(&keys.owner, &certified, &certificate.signature))
                && verify(&certificate.door, &message, signature)
        }
        EntryProof::Visitor => true,
    }
}

fn verify(key: &PublicKey, message: &[u8], signature: &Signature) -> bool {
    !is_small_order(key) && UnparsedPublicKey::new(&ED25519, key.0).verify(message, &signature.0).is_ok()
}

fn is_small_order(key: &PublicKey) -> bool {
    let mut plain = key.0;
    plain[31] &= 0x7f;
    let hex = data_encoding::HEXLOWER.encode(&plain);
    SMALL_ORDER.contains(&hex.as_str())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use potluck_relay_api::{Binary, DoorCertificate, TERMS_LEN, Term};
    use ring::signature::{Ed25519KeyPair, KeyPair};

    use super::*;

    fn pair(seed: u8) -> (Ed25519KeyPair, PublicKey) {
        let pair = Ed25519KeyPair::from_seed_unchecked(&[seed; 32]).unwrap();
        let public = Binary(pair.public_key().as_ref().try_into().unwrap());
        (pair, public)
    }

    fn sign(pair: &Ed25519KeyPair, message: &[u8]) -> Signature {
        Binary(pair.sign(message).as_ref().try_into().unwrap())
    }

    #[test]
    fn an_owners_signature_covers_the_connection_the_key_the_listing_and_the_term() {
        let (pair, key) = pair(1);
        let (room, nonce, join_key) = (RoomId::of_owner(&key), Binary([5; 32]), Binary([6; 32]));
        let entry = SignedEntry::Owner { join_key: &join_key, title: "Kitchen", visible: true, term: Term(1) };
        let signature = sign(&pair, &entry_message(room.as_str(), &nonce, entry));
        let proof = |join_key, title: &str, visible, term| EntryProof::Owner {
            key,
            join_key,
            title: title.into(),
            visible,
            term: Term(term),
            signature,
        };
        let good = proof(join_key, "Kitchen", true, 1);
        assert!(holds(&room, &nonce, &good, None));
        assert!(!holds(&room, &Binary([4; 32]), &good, None), "another connection's nonce");
        let other_room = RoomId::of_owner(&Binary([9; 32]));
        assert!(!holds(&other_room, &nonce, &good, None), "another room");
        for bad in [
            proof(Binary([7; 32]), "Kitchen", true, 1),
            proof(join_key, "kitchen", true, 1),
            proof(join_key, "Kitchen", false, 1),
            proof(join_key, "Kitchen", true, 2),
            proof(join_key, "Kitchen", true, 0),
        ] {
            assert!(!holds(&room, &nonce, &bad, None), "{bad:?}");
        }
    }

    fn keys(owner: u8, join: &PublicKey) -> Option<RoomKeys> {
        Some(RoomKeys { owner: pair(owner).1, links: vec![*join] })
    }

    #[test]
    fn an_invite_is_proved_by_its_door_key_which_the_rooms_owner_has_certified() {
        let (((owner, key), (door_pair, door)), nonce) = ((pair(1), pair(2)), Binary([5; 32]));
        let (room, terms) = (RoomId::of_owner(&key), Binary([3; TERMS_LEN]));
        let good = DoorCertificate { terms, door, signature: sign(&owner, &door_message(&terms, &door)) };
        let message = entry_message(room.as_str(), &nonce, SignedEntry::Invite);
        let check = |certificate, by: &Ed25519KeyPair, owner| {
            holds(
                &room,
                &nonce,
                &EntryProof::Invite { certificate, signature: sign(by, &message) },
                keys(owner, &door).as_ref(),
            )
        };
        assert!(check(good, &door_pair, 1));
        assert!(!check(good, &owner, 1), "who does not have the door key");
        assert!(!check(good, &door_pair, 9), "another room's owner certified it");
        let longer = DoorCertificate { terms: Binary([4; TERMS_LEN]), ..good };
        assert!(!check(longer, &door_pair, 1), "other terms");
        let (other_pair, other) = pair(7);
        assert!(!check(DoorCertificate { door: other, ..good }, &other_pair, 1), "another door key");
        let stolen = sign(&door_pair, &entry_message(room.as_str(), &Binary([6; 32]), SignedEntry::Invite));
        let stolen = EntryProof::Invite { certificate: good, signature: stolen };
        assert!(!holds(&room, &nonce, &stolen, keys(1, &door).as_ref()), "another connection's nonce");
    }

    #[test]
    fn a_link_is_proved_by_the_rooms_join_key_only() {
        let ((pair, join_key), nonce) = (pair(2), Binary([5; 32]));
        let room = RoomId::of_owner(&Binary([9; 32]));
        let message = entry_message(room.as_str(), &nonce, SignedEntry::Link);
        let proof = EntryProof::Link { key: join_key, signature: sign(&pair, &message) };
        let holds = |proof: &EntryProof, keys: Option<RoomKeys>| holds(&room, &nonce, proof, keys.as_ref());
        assert!(holds(&proof, keys(9, &join_key)));
        assert!(!holds(&proof, keys(9, &Binary([9; 32]))), "a key that is none of this room's links");
        assert!(!holds(&proof, None));
        let other = Binary([9; 32]);
        assert!(!holds(&EntryProof::Link { key: other, signature: sign(&pair, &message) }, keys(9, &other)));
        let mut signature = sign(&pair, &message);
        // S + the group's order: the same signature to a verifier that is not strict.
        let order = data_encoding::HEXLOWER
            .decode(b"edd3f55c1a631258d69cf7a2def9de1400000000000000000000000000000010")
            .unwrap();
        let mut carry = 0;
        for (byte, add) in signature.0[32..].iter_mut().zip(order) {
            let sum = u16::from(*byte) + u16::from(add) + carry;
            (*byte, carry) = (sum as u8, sum >> 8);
        }
        assert!(!holds(&EntryProof::Link { key: join_key, signature }, keys(9, &join_key)), "a second form of it");
    }

    #[test]
    fn a_key_that_accepts_any_signature_is_no_key() {
        // The neutral element: S = 0 and R = the neutral element satisfy the equation for every message.
        let mut key = Binary([0; 32]);
        key.0[0] = 1;
        let mut signature = Binary([0; 64]);
        signature.0[0] = 1;
        assert!(
            UnparsedPublicKey::new(&ED25519, key.0).verify(b"anything", &signature.0).is_ok(),
            "the danger is real"
        );
        assert!(!verify(&key, b"anything", &signature));
    }
}
