//! One handshake: Noise `XXpsk0` with X25519, ChaCha20-Poly1305 and SHA-256, run by `snow`.
//!
//! ```text
//! initiator → responder   psk, e         and a commitment to the initiator's nonce
//! responder → initiator   e, ee, s, es   and the responder's nonce and certificate
//! initiator → responder   s, se          and the initiator's nonce and certificate
//! ```
//!
//! The nonces are for the words that people compare ([`crate::words`]).
//!
//! The pre-shared key comes first, so whoever does not know it learns no static key, not even by answering. The prologue
//! binds a handshake to its version, room, lane and the two connections, so that none can be carried elsewhere.

use snow::params::{CipherChoice, DHChoice, HashChoice, NoiseParams};
use snow::resolvers::{BoxedCryptoResolver, CryptoResolver, DefaultResolver};
use snow::types::{Cipher, Dh, Hash, Random as SnowRandom};
use snow::{Builder, HandshakeState};
use thiserror::Error;
use zeroize::Zeroizing;

use crate::channel::SealedChannel;
use crate::identity::{Certificate, NodeIdentity, Random};
use crate::room_keys::{OwnerKey, Psk};
use crate::wire::{Lane, Shown, VERSION};
use crate::words::{NONCE_LEN, Nonce, SessionWords};

const PATTERN: &str = "Noise_XXpsk0_25519_ChaChaPoly_SHA256";
/// Longest handshake message: two keys, their tags, a nonce, and the longest certificate.
const MAX_MESSAGE: usize = 2 * (32 + 16) + NONCE_LEN + Certificate::MAX_LEN + 16;

/// Why a handshake failed. The other side is told nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum HandshakeError {
    /// A message does not fit the pattern, or was made with other keys.
    #[error("the handshake does not fit: another secret, or changed on its way")]
    Noise,
    /// The certificate does not hold.
    #[error("the other side could not prove who it is")]
    Certificate,
    /// The nonce does not match the other side's commitment.
    #[error("the other side changed its part of the three words after it had seen ours")]
    Commitment,
}

impl From<snow::Error> for HandshakeError {
    fn from(_: snow::Error) -> Self {
        Self::Noise
    }
}

/// The X25519 key pair of one start of a node.
#[derive(Clone)]
pub(crate) struct HandshakeKey {
    private: Zeroizing<[u8; 32]>,
    pub public: [u8; 32],
}

impl HandshakeKey {
    pub fn generate(random: Random) -> Self {
        let dh = DefaultResolver.resolve_dh(&DHChoice::Curve25519);
        let mut dh = dh.expect("snow is built with X25519");
        dh.generate(&mut Randomness(random)).expect("randomness from the caller does not fail");
        let (mut private, mut public) = (Zeroizing::new([0; 32]), [0; 32]);
        private.copy_from_slice(dh.privkey());
        public.copy_from_slice(dh.pubkey());
        Self { private, public }
    }
}

/// Where and between whom a handshake happens.
#[derive(Clone, Copy)]
pub(crate) struct Place<'a> {
    pub room: &'a str,
    pub lane: Lane,
    /// What the initiator says of its key.
    pub shown: Shown,
    /// The initiator's route on the relay.
    pub initiator: u32,
    /// The responder's.
    pub responder: u32,
}

impl Place<'_> {
    fn prologue(&self) -> Vec<u8> {
        let mut prologue = b"potluck\0".to_vec();
        prologue.extend_from_slice(&VERSION.to_le_bytes());
        prologue.push(self.lane as u8);
        prologue.extend_from_slice(&self.initiator.to_le_bytes());
        prologue.extend_from_slice(&self.responder.to_le_bytes());
        prologue.extend_from_slice(self.shown.bytes());
        prologue.extend_from_slice(self.room.as_bytes());
        prologue
    }
}

/// Who this side is in a handshake.
#[derive(Clone, Copy)]
pub(crate) struct Me<'a> {
    pub identity: &'a NodeIdentity,
    /// Of the room that it owns.
    pub owner: Option<&'a OwnerKey>,
    pub random: Random,
}

/// A handshake that was begun: it waits for the second message.
pub(crate) struct Begun {
    handshake: Handshake,
    nonce: Nonce,
}

/// A handshake begun by a peer that knows the pre-shared key. It has cost one curve multiplication so far, for the fresh key.
pub(crate) struct Asked {
    handshake: Handshake,
    commitment: [u8; NONCE_LEN],
}

/// A handshake that was answered: it waits for the third message.
pub(crate) struct Answered {
    handshake: Handshake,
    nonce: Nonce,
    /// What the initiator has committed to.
    commitment: [u8; NONCE_LEN],
    /// Noise's hash after the second message.
    hash: Vec<u8>,
}

struct Handshake {
    state: HandshakeState,
    room: String,
    lane: Lane,
    shown: Shown,
}

/// A handshake that is done.
pub(crate) struct Established {
    pub channel: SealedChannel,
    pub other: Certificate,
    pub lane: Lane,
    /// The link or invite that one side came by: it knows its key.
    pub shown: Shown,
    pub words: SessionWords,
}

impl Begun {
    /// Begins a handshake; returns its first message.
    pub fn new(me: Me<'_>, place: Place<'_>, psk: &Psk) -> Result<(Self, Vec<u8>), HandshakeError> {
        let mut handshake = Handshake::new(me, place, psk, true)?;
        let nonce = Nonce::draw(me.random);
        let message = handshake.write(&nonce.commitment())?;
        Ok((Self { handshake, nonce }, message))
    }

    /// Reads the second message; returns the third.
    pub fn finish(self, me: Me<'_>, second: &[u8]) -> Result<(Established, Vec<u8>), HandshakeError> {
        let Self { mut handshake, nonce } = self;
        let payload = handshake.read(second)?;
        let (theirs, certificate) = Nonce::split(&payload).ok_or(HandshakeError::Noise)?;
        let words = SessionWords::of(handshake.state.get_handshake_hash(), &nonce, &theirs);
        let message = handshake.write(&[&nonce.bytes()[..], &me.identity.certificate(me.owner)].concat())?;
        Ok((handshake.established(certificate, words)?, message))
    }
}

impl Asked {
    /// Reads a first message.
    pub fn read(me: Me<'_>, place: Place<'_>, psk: &Psk, first: &[u8]) -> Result<Self, HandshakeError> {
        let mut handshake = Handshake::new(me, place, psk, false)?;
        let commitment = handshake.read(first)?.try_into().map_err(|_| HandshakeError::Noise)?;
        Ok(Self { handshake, commitment })
    }

    /// Returns the second message.
    pub fn answer(self, me: Me<'_>) -> Result<(Answered, Vec<u8>), HandshakeError> {
        let Self { mut handshake, commitment } = self;
        let nonce = Nonce::draw(me.random);
        let message = handshake.write(&[&nonce.bytes()[..], &me.identity.certificate(me.owner)].concat())?;
        let hash = handshake.state.get_handshake_hash().to_vec();
        Ok((Answered { handshake, nonce, commitment, hash }, message))
    }
}

impl Answered {
    /// Reads the third message.
    pub fn accept(self, third: &[u8]) -> Result<Established, HandshakeError> {
        let Self { mut handshake, nonce, commitment, hash } = self;
        let payload = handshake.read(third)?;
        let (theirs, certificate) = Nonce::split(&payload).ok_or(HandshakeError::Noise)?;
        if theirs.commitment() != commitment {
            return Err(HandshakeError::Commitment);
        }
        let words = SessionWords::of(&hash, &theirs, &nonce);
        handshake.established(certificate, words)
    }
}

impl Handshake {
    fn new(me: Me<'_>, place: Place<'_>, psk: &Psk, initiates: bool) -> Result<Self, HandshakeError> {
        let params: NoiseParams = PATTERN.parse()?;
        let prologue = place.prologue();
        let builder = Builder::with_resolver(params, resolver(me.random))
            .local_private_key(me.identity.key.private.as_ref())?
            .prologue(&prologue)?
            .psk(0, psk)?;
        let state = if initiates { builder.build_initiator() } else { builder.build_responder() }?;
        Ok(Self { state, room: place.room.to_owned(), lane: place.lane, shown: place.shown })
    }

    fn write(&mut self, payload: &[u8]) -> Result<Vec<u8>, HandshakeError> {
        let mut message = vec![0; MAX_MESSAGE];
        let len = self.state.write_message(payload, &mut message)?;
        message.truncate(len);
        Ok(message)
    }

    fn read(&mut self, message: &[u8]) -> Result<Vec<u8>, HandshakeError> {
        if message.len() > MAX_MESSAGE {
            return Err(HandshakeError::Noise);
        }
        let mut payload = vec![0; MAX_MESSAGE];
        let len = self.state.read_message(message, &mut payload)?;
        payload.truncate(len);
        Ok(payload)
    }

    fn established(mut self, certificate: &[u8], words: SessionWords) -> Result<Established, HandshakeError> {
        let key = self.state.get_remote_static().and_then(|key| key.try_into().ok());
        let key: [u8; 32] = key.ok_or(HandshakeError::Noise)?;
        let other = Certificate::check(certificate, &key, &self.room).ok_or(HandshakeError::Certificate)?;
        let (by_initiator, by_responder) = self.state.dangerously_get_raw_split();
        let (by_initiator, by_responder) = (Zeroizing::new(by_initiator), Zeroizing::new(by_responder));
        let channel = if self.state.is_initiator() {
            SealedChannel::new(&by_initiator, &by_responder)
        } else {
            SealedChannel::new(&by_responder, &by_initiator)
        };
        Ok(Established { channel, other, lane: self.lane, shown: self.shown, words })
    }
}

/// snow's own cryptography with the caller's randomness.
struct Resolver(Random);

struct Randomness(Random);

impl SnowRandom for Randomness {
    fn try_fill_bytes(&mut self, dest: &mut [u8]) -> Result<(), snow::Error> {
        (self.0)(dest);
        Ok(())
    }
}

impl CryptoResolver for Resolver {
    fn resolve_rng(&self) -> Option<Box<dyn SnowRandom>> {
        Some(Box::new(Randomness(self.0)))
    }

    fn resolve_dh(&self, choice: &DHChoice) -> Option<Box<dyn Dh>> {
        DefaultResolver.resolve_dh(choice)
    }

    fn resolve_hash(&self, choice: &HashChoice) -> Option<Box<dyn Hash>> {
        DefaultResolver.resolve_hash(choice)
    }

    fn resolve_cipher(&self, choice: &CipherChoice) -> Option<Box<dyn Cipher>> {
        DefaultResolver.resolve_cipher(choice)
    }
}

fn resolver(random: Random) -> BoxedCryptoResolver {
    Box::new(Resolver(random))
}

#[cfg(test)]
pub(crate) mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]

    use std::cell::Cell;

    use super::*;
    use crate::identity::IdentityKeys;

    thread_local!(static COUNT: Cell<u64> = const { Cell::new(0) });

    /// Unlike bytes at every call, the same in every run.
    pub fn counting(bytes: &mut [u8]) {
        let count = COUNT.get() + 1;
        COUNT.set(count);
        let hash = blake3::hash(&count.to_le_bytes());
        bytes.iter_mut().zip(hash.as_bytes().iter().cycle()).for_each(|(byte, random)| *byte = *random);
    }

    pub fn identity() -> NodeIdentity {
        NodeIdentity::new(&IdentityKeys::generate(counting), counting)
    }

    fn me(identity: &NodeIdentity) -> Me<'_> {
        Me { identity, owner: None, random: counting }
    }

    fn answer(me: Me<'_>, place: Place<'_>, psk: &Psk, first: &[u8]) -> Result<(Answered, Vec<u8>), HandshakeError> {
        Asked::read(me, place, psk, first)?.answer(me)
    }

    const PLACE: Place<'_> =
        Place { room: "room", lane: Lane::Link, shown: Shown::Link([2; 8]), initiator: 5, responder: 3 };

    /// The device that begins, the one that answers, and the words that each of them sees.
    fn meet(alice: &NodeIdentity, bob: &NodeIdentity, psk: &Psk) -> [String; 2] {
        let (begun, first) = Begun::new(me(alice), PLACE, psk).unwrap();
        let (answered, second) = answer(me(bob), PLACE, psk, &first).unwrap();
        let (a, third) = begun.finish(me(alice), &second).unwrap();
        [a.words, answered.accept(&third).unwrap().words].map(|words| words.to_string())
    }

    #[test]
    fn both_sides_learn_who_the_other_is_and_can_talk() {
        let (alice, bob, psk) = (identity(), identity(), Psk::new([4; 32]));
        let (begun, first) = Begun::new(me(&alice), PLACE, &psk).unwrap();
        let (answered, second) = answer(me(&bob), PLACE, &psk, &first).unwrap();
        let (mut a, third) = begun.finish(me(&alice), &second).unwrap();
        let mut b = answered.accept(&third).unwrap();
        assert_eq!((a.other.peer, b.other.peer), (bob.peer(), alice.peer()));
        assert_eq!((a.other.device, a.other.is_owner), (bob.device(), false));
        let message = a.channel.seal(crate::wire::Kind::Frame, b"hello").unwrap();
        assert_eq!(b.channel.open(crate::wire::Kind::Frame, &message[3..]).unwrap(), b"hello");
        let longest = [&first, &second, &third].map(Vec::len);
        assert!(longest.iter().all(|len| *len <= MAX_MESSAGE), "{longest:?}");
    }

    #[test]
    fn the_longest_messages_fit() {
        let (alice, bob, psk) = (identity(), identity(), Psk::new([4; 32]));
        let owner = OwnerKey::from_seed([7; 32]);
        let room = owner.room();
        let place = Place { room: &room, lane: Lane::Invite, shown: Shown::Invite([5; 11]), ..PLACE };
        let host = Me { owner: Some(&owner), ..me(&bob) };
        let (begun, first) = Begun::new(me(&alice), place, &psk).unwrap();
        let (answered, second) = answer(host, place, &psk, &first).unwrap();
        let (established, third) = begun.finish(me(&alice), &second).unwrap();
        assert!(established.other.is_owner && answered.accept(&third).unwrap().shown == place.shown);
    }

    #[test]
    fn both_sides_see_the_same_words_and_others_at_each_meeting() {
        let (alice, bob, psk) = (identity(), identity(), Psk::new([4; 32]));
        let seen: Vec<[String; 2]> = (0..50).map(|_| meet(&alice, &bob, &psk)).collect();
        assert!(seen.iter().all(|[a, b]| a == b), "{seen:?}");
        let different: std::collections::BTreeSet<_> = seen.iter().map(|[a, _]| a).collect();
        assert_eq!(different.len(), 50, "nothing of them follows from the keys");
    }

    /// Mallory is between Alice, who begins, and Bob: it answers Alice and begins with Bob, in any order and with everything that
    /// it has seen before.
    #[test]
    fn who_relays_between_two_handshakes_shows_other_words_to_each_side() {
        let (alice, bob, mallory, psk) = (identity(), identity(), identity(), Psk::new([4; 32]));
        let mut same = 0;
        for attempt in 0..200 {
            let (begun, first) = Begun::new(me(&alice), PLACE, &psk).unwrap();
            let towards_bob = || {
                let (begun, first) = Begun::new(me(&mallory), PLACE, &psk).unwrap();
                let (answered, second) = answer(me(&bob), PLACE, &psk, &first).unwrap();
                let (mine, third) = begun.finish(me(&mallory), &second).unwrap();
                let his = answered.accept(&third).unwrap();
                assert_eq!(mine.words, his.words, "Mallory knows what Bob sees");
                his.words
            };
            let early = (attempt % 2 == 0).then(towards_bob);
            let (answered, second) = answer(me(&mallory), PLACE, &psk, &first).unwrap();
            let (hers, third) = begun.finish(me(&alice), &second).unwrap();
            let mine = answered.accept(&third).unwrap();
            assert_eq!(mine.words, hers.words, "and what Alice sees");
            same += usize::from(early.unwrap_or_else(towards_bob) == hers.words);
        }
        assert_eq!(same, 0, "of 200 attempts, where one in a billion succeeds");
    }

    #[test]
    fn a_nonce_that_is_changed_after_the_commitment_is_refused() {
        let (mallory, bob, psk) = (identity(), identity(), Psk::new([4; 32]));
        let (mut begun, first) = Begun::new(me(&mallory), PLACE, &psk).unwrap();
        let (answered, second) = answer(me(&bob), PLACE, &psk, &first).unwrap();
        // It has seen Bob's nonce, and now prefers another one of its own.
        begun.nonce = Nonce::draw(counting);
        let (_, third) = begun.finish(me(&mallory), &second).unwrap();
        assert_eq!(answered.accept(&third).err(), Some(HandshakeError::Commitment));
    }

    /// Whoever makes the third message knows both nonces. It could try one after another, if they changed the words.
    #[test]
    fn the_third_message_changes_no_words() {
        let (bob, psk) = (identity(), Psk::new([4; 32]));
        let seen = [identity(), identity(), identity()].map(|mallory| {
            COUNT.set(1_000_000);
            let (begun, first) = Begun::new(me(&mallory), PLACE, &psk).unwrap();
            let (answered, second) = answer(me(&bob), PLACE, &psk, &first).unwrap();
            let (_, third) = begun.finish(me(&mallory), &second).unwrap();
            (answered.accept(&third).unwrap().words.to_string(), third)
        });
        COUNT.set(2_000_000);
        assert!(seen.iter().all(|(words, _)| *words == seen[0].0), "the same words");
        assert!(seen[0].1 != seen[1].1 && seen[1].1 != seen[2].1, "whoever shows itself");
    }

    #[test]
    fn messages_without_a_commitment_or_a_nonce_are_refused() {
        let (alice, bob, psk) = (identity(), identity(), Psk::new([4; 32]));
        for payload in [&[][..], &[1; 31], &[1; 33]] {
            let first = Handshake::new(me(&alice), PLACE, &psk, true).unwrap().write(payload).unwrap();
            let answered = answer(me(&bob), PLACE, &psk, &first);
            assert_eq!(answered.err(), Some(HandshakeError::Noise), "{} bytes", payload.len());
        }
        let (begun, first) = Begun::new(me(&alice), PLACE, &psk).unwrap();
        let mut handshake = Handshake::new(me(&bob), PLACE, &psk, false).unwrap();
        handshake.read(&first).unwrap();
        let second = handshake.write(&[1; 31]).unwrap();
        assert_eq!(begun.finish(me(&alice), &second).err(), Some(HandshakeError::Noise));
    }

    #[test]
    fn nothing_fits_that_differs_in_secret_room_lane_or_route() {
        let (alice, bob, psk) = (identity(), identity(), Psk::new([4; 32]));
        let others = [
            (Place { room: "other", ..PLACE }, psk.clone()),
            (Place { lane: Lane::Group, ..PLACE }, psk.clone()),
            (Place { shown: Shown::Invite([1; 11]), ..PLACE }, psk.clone()),
            (Place { initiator: 6, ..PLACE }, psk.clone()),
            (Place { responder: 4, ..PLACE }, psk.clone()),
            (PLACE, Psk::new([5; 32])),
        ];
        for (place, key) in others {
            let (_, first) = Begun::new(me(&alice), PLACE, &psk).unwrap();
            let answered = answer(me(&bob), place, &key, &first);
            assert_eq!(answered.err(), Some(HandshakeError::Noise));
        }
    }

    #[test]
    fn a_certificate_of_somebody_else_is_refused() {
        let (mallory, bob, psk) = (identity(), identity(), Psk::new([4; 32]));
        let (mut begun, first) = Begun::new(me(&mallory), PLACE, &psk).unwrap();
        let (answered, second) = answer(me(&bob), PLACE, &psk, &first).unwrap();
        begun.handshake.read(&second).unwrap();
        let third = [&begun.nonce.bytes()[..], &identity().certificate(None)].concat();
        let third = begun.handshake.write(&third).unwrap();
        assert_eq!(answered.accept(&third).err(), Some(HandshakeError::Certificate));
    }
}
