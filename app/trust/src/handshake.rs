//! One handshake: Noise `XXpsk0` with X25519, ChaCha20-Poly1305 and SHA-256, run by `snow`.
//!
//! ```text
//! initiator → responder   psk, e
//! responder → initiator   e, ee, s, es   and the responder's certificate
//! initiator → responder   s, se          and the initiator's certificate
//! ```
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
use crate::invite::SignedInvite;
use crate::room_keys::{OwnerKey, Psk};
use crate::wire::{Lane, VERSION};

const PATTERN: &str = "Noise_XXpsk0_25519_ChaChaPoly_SHA256";
/// Longest handshake message: two keys, their tags, and the longest certificate. (An invite is shorter than an owner's part.)
const MAX_MESSAGE: usize = 2 * (32 + 16) + Certificate::MAX_LEN + 16;

/// Why a handshake failed. The other side is told nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum HandshakeError {
    /// A message does not fit the pattern, or was made with other keys.
    #[error("the handshake does not fit: another secret, or changed on its way")]
    Noise,
    /// The certificate does not hold.
    #[error("the other side could not prove who it is")]
    Certificate,
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
    /// What it came by.
    pub invite: Option<&'a SignedInvite>,
    pub random: Random,
}

/// A handshake that waits for its next message.
pub(crate) struct Handshake {
    state: HandshakeState,
    room: String,
    pub lane: Lane,
}

/// A handshake that is done.
pub(crate) struct Established {
    pub channel: SealedChannel,
    pub other: Certificate,
    pub lane: Lane,
    /// What the other side came by. Whether the owner signed it is still to be checked.
    pub invite: Option<SignedInvite>,
}

impl Handshake {
    /// Begins a handshake; returns its first message.
    pub fn begin(me: Me<'_>, place: Place<'_>, psk: &Psk) -> Result<(Self, Vec<u8>), HandshakeError> {
        let mut handshake = Self::new(me, place, psk, true)?;
        let message = handshake.write(&[])?;
        Ok((handshake, message))
    }

    /// Answers a first message; returns the second.
    pub fn answer(me: Me<'_>, place: Place<'_>, psk: &Psk, first: &[u8]) -> Result<(Self, Vec<u8>), HandshakeError> {
        let mut handshake = Self::new(me, place, psk, false)?;
        handshake.read(first)?;
        let message = handshake.write(&me.identity.certificate(me.owner))?;
        Ok((handshake, message))
    }

    /// The initiator reads the second message; returns the third.
    pub fn finish(mut self, me: Me<'_>, second: &[u8]) -> Result<(Established, Vec<u8>), HandshakeError> {
        let certificate = self.read(second)?;
        let mut proof = me.identity.certificate(me.owner);
        proof.extend(me.invite.filter(|_| self.lane == Lane::Invite).map(SignedInvite::bytes).unwrap_or_default());
        let message = self.write(&proof)?;
        Ok((self.established(&certificate, None)?, message))
    }

    /// The responder reads the third message.
    pub fn accept(mut self, third: &[u8]) -> Result<Established, HandshakeError> {
        let proof = self.read(third)?;
        if self.lane != Lane::Invite {
            return self.established(&proof, None);
        }
        let (certificate, invite) = proof.split_at_checked(Certificate::LEN).ok_or(HandshakeError::Certificate)?;
        let invite = SignedInvite::from_bytes(invite).ok_or(HandshakeError::Certificate)?;
        self.established(certificate, Some(invite))
    }

    fn new(me: Me<'_>, place: Place<'_>, psk: &Psk, initiates: bool) -> Result<Self, HandshakeError> {
        let params: NoiseParams = PATTERN.parse()?;
        let prologue = place.prologue();
        let builder = Builder::with_resolver(params, resolver(me.random))
            .local_private_key(me.identity.key.private.as_ref())?
            .prologue(&prologue)?
            .psk(0, psk)?;
        let state = if initiates { builder.build_initiator() } else { builder.build_responder() }?;
        Ok(Self { state, room: place.room.to_owned(), lane: place.lane })
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

    fn established(mut self, certificate: &[u8], invite: Option<SignedInvite>) -> Result<Established, HandshakeError> {
        let key = self.state.get_remote_static().and_then(|key| key.try_into().ok());
        let key: [u8; 32] = key.ok_or(HandshakeError::Noise)?;
        let other = Certificate::check(certificate, &key, &self.room).ok_or(HandshakeError::Certificate)?;
        let (by_initiator, by_responder) = self.state.dangerously_get_raw_split();
        let (by_initiator, by_responder) = (Zeroizing::new(by_initiator), Zeroizing::new(by_responder));
        let channel = match self.state.is_initiator() {
            true => SealedChannel::new(&by_initiator, &by_responder),
            false => SealedChannel::new(&by_responder, &by_initiator),
        };
        Ok(Established { channel, other, lane: self.lane, invite })
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
        Me { identity, owner: None, invite: None, random: counting }
    }

    const PLACE: Place<'_> = Place { room: "room", lane: Lane::Link, initiator: 5, responder: 3 };

    #[test]
    fn both_sides_learn_who_the_other_is_and_can_talk() {
        let (alice, bob, psk) = (identity(), identity(), Psk::new([4; 32]));
        let (begun, first) = Handshake::begin(me(&alice), PLACE, &psk).unwrap();
        let (answered, second) = Handshake::answer(me(&bob), PLACE, &psk, &first).unwrap();
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
    fn nothing_fits_that_differs_in_secret_room_lane_or_route() {
        let (alice, bob, psk) = (identity(), identity(), Psk::new([4; 32]));
        let others = [
            (Place { room: "other", ..PLACE }, psk.clone()),
            (Place { lane: Lane::Group, ..PLACE }, psk.clone()),
            (Place { initiator: 6, ..PLACE }, psk.clone()),
            (Place { responder: 4, ..PLACE }, psk.clone()),
            (PLACE, Psk::new([5; 32])),
        ];
        for (place, key) in others {
            let (_, first) = Handshake::begin(me(&alice), PLACE, &psk).unwrap();
            let answered = Handshake::answer(me(&bob), place, &key, &first);
            assert_eq!(answered.err(), Some(HandshakeError::Noise));
        }
    }

    #[test]
    fn a_certificate_of_somebody_else_is_refused() {
        let (mallory, bob, psk) = (identity(), identity(), Psk::new([4; 32]));
        let (mut begun, first) = Handshake::begin(me(&mallory), PLACE, &psk).unwrap();
        let (answered, second) = Handshake::answer(me(&bob), PLACE, &psk, &first).unwrap();
        begun.read(&second).unwrap();
        let third = begun.write(&identity().certificate(None)).unwrap();
        assert_eq!(answered.accept(&third).err(), Some(HandshakeError::Certificate));
    }
}
