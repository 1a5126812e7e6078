//! Sealed messages between two peers whose handshake is done: ChaCha20-Poly1305 with one key for each direction.
//!
//! A message's counter is exactly the last one plus one. A message that was dropped, doubled, swapped or replayed on the
//! way ends the channel, as one that was altered does: the two shake hands again, and what was lost is recovered as after
//! a broken connection.

use thiserror::Error;

use crate::cipher::Cipher;
use crate::wire::{COUNTER, HEADER, Kind, OVERHEAD, TAG};

/// Why a sealed message was not opened. The channel is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum OpenError {
    /// Shorter than an empty message.
    #[error("a sealed message ended too early")]
    TooShort,
    /// Its counter is not the next one.
    #[error("a sealed message was lost, repeated or moved on its way")]
    Counter,
    /// It was not sealed by the other side, or was changed since.
    #[error("a sealed message was changed on its way")]
    Forged,
}

/// One direction of sealed messages.
struct Direction {
    cipher: Cipher,
    next: u64,
}

impl Direction {
    fn new(key: &[u8; 32]) -> Self {
        Self { cipher: Cipher::new(key), next: 0 }
    }

    fn nonce(&self) -> [u8; 12] {
        let mut nonce = [0; 12];
        nonce[4..].copy_from_slice(&self.next.to_le_bytes());
        nonce
    }
}

/// Both directions.
pub struct SealedChannel {
    out: Direction,
    incoming: Direction,
}

impl SealedChannel {
    /// From the keys of a handshake.
    pub(crate) fn new(out: &[u8; 32], incoming: &[u8; 32]) -> Self {
        Self { out: Direction::new(out), incoming: Direction::new(incoming) }
    }

    /// How many messages this side has sealed.
    pub(crate) fn sealed(&self) -> u64 {
        self.out.next
    }

    /// How many messages of the other side were opened.
    pub(crate) fn opened(&self) -> u64 {
        self.incoming.next
    }

    /// A message as it goes over the wire. `None` if it is longer than the cipher allows (256 GiB).
    pub(crate) fn seal(&mut self, kind: Kind, plain: &[u8]) -> Option<Vec<u8>> {
        let mut message = Vec::with_capacity(plain.len() + OVERHEAD);
        message.extend_from_slice(&kind.header());
        message.extend_from_slice(&self.out.next.to_le_bytes());
        message.extend_from_slice(plain);
        let (header, body) = message.split_at_mut(HEADER + COUNTER);
        let tag = self.out.cipher.seal(self.out.nonce(), header, body)?;
        message.extend_from_slice(&tag);
        self.out.next += 1;
        Some(message)
    }

    /// What a message holds. `rest` is the message behind its header.
    ///
    /// # Errors
    /// [`OpenError`]; the channel must not be used any more.
    pub(crate) fn open(&mut self, kind: Kind, rest: &[u8]) -> Result<Vec<u8>, OpenError> {
        let (counter, sealed) = rest.split_first_chunk::<COUNTER>().ok_or(OpenError::TooShort)?;
        let (body, tag) = sealed.split_last_chunk::<TAG>().ok_or(OpenError::TooShort)?;
        if u64::from_le_bytes(*counter) != self.incoming.next {
            return Err(OpenError::Counter);
        }
        let mut header = [0; HEADER + COUNTER];
        header[..HEADER].copy_from_slice(&kind.header());
        header[HEADER..].copy_from_slice(counter);
        let mut plain = body.to_vec();
        if !self.incoming.cipher.open(self.incoming.nonce(), &header, &mut plain, *tag) {
            return Err(OpenError::Forged);
        }
        self.incoming.next += 1;
        Ok(plain)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair() -> (SealedChannel, SealedChannel) {
        (SealedChannel::new(&[1; 32], &[2; 32]), SealedChannel::new(&[2; 32], &[1; 32]))
    }

    fn sealed(channel: &mut SealedChannel, plain: &[u8]) -> Vec<u8> {
        channel.seal(Kind::Frame, plain).unwrap_or_default()
    }

    fn open(channel: &mut SealedChannel, message: &[u8]) -> Result<Vec<u8>, OpenError> {
        channel.open(Kind::Frame, &message[HEADER..])
    }

    #[test]
    fn messages_arrive_in_order_and_hide_what_they_hold() {
        let (mut a, mut b) = pair();
        for plain in [&b"the quick brown fox"[..], b"", b"again"] {
            let message = sealed(&mut a, plain);
            assert_eq!(message.len(), plain.len() + OVERHEAD);
            assert!(plain.is_empty() || !message.windows(plain.len()).any(|bytes| bytes == plain));
            assert_eq!(open(&mut b, &message), Ok(plain.to_vec()));
        }
    }

    #[test]
    fn a_message_opens_once_in_its_place_and_under_its_kind() {
        let (mut a, mut b) = pair();
        let messages: Vec<_> = (0..3).map(|byte| sealed(&mut a, &[byte])).collect();
        assert_eq!(open(&mut b, &messages[1]), Err(OpenError::Counter), "one was dropped");
        assert_eq!(open(&mut b, &messages[0]), Ok(vec![0]));
        assert_eq!(open(&mut b, &messages[0]), Err(OpenError::Counter), "replayed");
        assert_eq!(b.open(Kind::GroupSecret, &messages[1][HEADER..]), Err(OpenError::Forged), "under another kind");
        assert_eq!(open(&mut a, &messages[0]), Err(OpenError::Forged), "reflected to its sender");
    }

    #[test]
    fn every_flipped_bit_and_every_cut_is_noticed() {
        let (mut a, mut b) = pair();
        let message = sealed(&mut a, b"token");
        for bit in HEADER * 8..message.len() * 8 {
            let mut wrong = message.clone();
            wrong[bit / 8] ^= 1 << (bit % 8);
            assert!(open(&mut b, &wrong).is_err(), "bit {bit} flipped");
        }
        for len in HEADER..message.len() {
            assert!(open(&mut b, &message[..len]).is_err(), "{len} bytes");
        }
        assert_eq!(open(&mut b, &message), Ok(b"token".to_vec()), "nothing of it advanced the counter");
    }
}
