//! Keys of rooms, and proofs made with them.

use potluck_relay_api::{
    Binary, DoorCertificate, EntryProof, Nonce, PublicKey, Signature, SignedEntry, TERMS_LEN, Term, door_message,
    entry_message, room_id,
};
use ring::signature::{Ed25519KeyPair, KeyPair};

/// The keys of a room, and how its owner lists it.
pub struct Keys {
    owner: Ed25519KeyPair,
    join: Ed25519KeyPair,
    pub title: String,
    pub visible: bool,
}

impl Keys {
    /// The same keys for the same seed.
    pub fn new(seed: u8) -> Self {
        Self { owner: key_pair(seed), join: key_pair(seed ^ 0x80), title: String::new(), visible: false }
    }

    /// For more rooms than a seed has values.
    pub fn of_room(number: u32) -> Self {
        let pair = |kind: u8| {
            let (mut seed, [a, b, c, d]) = ([kind; 32], number.to_le_bytes());
            seed[..4].copy_from_slice(&[a, b, kind ^ c, kind ^ d]);
            Ed25519KeyPair::from_seed_unchecked(&seed).unwrap()
        };
        Self { owner: pair(1), join: pair(2), title: String::new(), visible: false }
    }

    pub fn listed(seed: u8, title: &str) -> Self {
        Self { title: title.into(), visible: true, ..Self::new(seed) }
    }

    pub fn id(&self) -> String {
        room_id(&public(&self.owner))
    }

    pub fn owner(&self, nonce: &Nonce) -> EntryProof {
        self.owner_with(self, nonce)
    }

    /// The key of its link.
    pub fn join_key(&self) -> PublicKey {
        public(&self.join)
    }

    /// The owner registers the join key of another room's keys.
    pub fn owner_with(&self, link: &Self, nonce: &Nonce) -> EntryProof {
        self.owner_in(Term::default(), link, nonce)
    }

    /// The owner hosts in this term.
    pub fn owner_in(&self, term: Term, link: &Self, nonce: &Nonce) -> EntryProof {
        let (title, visible, join_key) = (self.title.clone(), self.visible, public(&link.join));
        let entry = SignedEntry::Owner { join_key: &join_key, title: &title, visible, term };
        let signature = sign(&self.owner, &entry_message(&self.id(), nonce, entry));
        EntryProof::Owner { key: public(&self.owner), join_key, title, visible, term, signature }
    }

    pub fn link(&self, nonce: &Nonce) -> EntryProof {
        self.link_of(self, nonce)
    }

    /// Somebody has the join key of another room's keys.
    pub fn link_of(&self, link: &Self, nonce: &Nonce) -> EntryProof {
        let signature = sign(&link.join, &entry_message(&self.id(), nonce, SignedEntry::Link));
        EntryProof::Link { key: public(&link.join), signature }
    }
}

/// An invite: its number, until when it is good in seconds since 1970, and the seed of its door key.
#[derive(Clone, Copy)]
pub struct Invite {
    pub number: u32,
    pub expires: u32,
    pub seed: u8,
}

impl Invite {
    /// One that is good for long.
    pub fn new(number: u32) -> Self {
        Self { number, expires: u32::MAX, seed: number as u8 ^ 0x40 }
    }

    /// One that was good once.
    pub fn expired(number: u32) -> Self {
        Self { expires: 1_000_000, ..Self::new(number) }
    }
}

impl Keys {
    /// Somebody has an invite of this room.
    pub fn invite(&self, invite: Invite, nonce: &Nonce) -> EntryProof {
        let (pair, mut terms) = (key_pair(invite.seed), [1; TERMS_LEN]);
        terms[1..5].copy_from_slice(&invite.number.to_le_bytes());
        terms[5..9].copy_from_slice(&invite.expires.to_le_bytes());
        let (terms, door) = (Binary(terms), public(&pair));
        let certificate = DoorCertificate { terms, door, signature: sign(&self.owner, &door_message(&terms, &door)) };
        let signature = sign(&pair, &entry_message(&self.id(), nonce, SignedEntry::Invite));
        EntryProof::Invite { certificate, signature }
    }
}

fn key_pair(seed: u8) -> Ed25519KeyPair {
    Ed25519KeyPair::from_seed_unchecked(&[seed; 32]).unwrap()
}

fn public(pair: &Ed25519KeyPair) -> PublicKey {
    Binary(pair.public_key().as_ref().try_into().unwrap())
}

fn sign(pair: &Ed25519KeyPair, message: &[u8]) -> Signature {
    Binary(pair.sign(message).as_ref().try_into().unwrap())
}
