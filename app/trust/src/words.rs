//! Three words of a handshake, for two people to compare, over the phone or from screen to screen.
//!
//! Each side draws a nonce. The initiator commits to its own with the first message, the responder sends its own with the
//! second, and the initiator opens the commitment with the third. The words are derived from both nonces and from Noise's
//! handshake hash after the second message, which covers the commitment, the responder's nonce and both ephemeral keys. So
//! neither side can choose the words: the responder does not know the initiator's nonce when it chooses, and the initiator
//! cannot change its own when it knows the responder's. The third message is left out on purpose: whoever makes it knows
//! both nonces and could try until the words suit it. A man in the middle has a handshake with each device, and gets the same
//! words in both once in 2³⁰ attempts, each of which is a handshake.
//! (Vaudenay, "Secure Communications over Insecure Channels Based on Short Authenticated Strings", 2005; RFC 6189, 4.4.1.)

use std::fmt;

use zeroize::Zeroizing;

use crate::identity::Random;

/// Plain words, sorted.
const LIST: &str = include_str!("words.txt");
const WORDS: &str = "potluck 2026-11 three words of a handshake";
const COMMITMENT: &str = "potluck 2026-11 commitment to a nonce of a handshake";

/// Bytes of a nonce and of a commitment to one.
pub(crate) const NONCE_LEN: usize = 32;

/// One side's contribution to the words of a handshake.
pub(crate) struct Nonce(Zeroizing<[u8; NONCE_LEN]>);

impl Nonce {
    pub fn draw(random: Random) -> Self {
        let mut nonce = Zeroizing::new([0; NONCE_LEN]);
        random(nonce.as_mut());
        Self(nonce)
    }

    /// In front of a message's payload, with the rest; `None` if it is too short.
    pub fn split(payload: &[u8]) -> Option<(Self, &[u8])> {
        let (nonce, rest) = payload.split_first_chunk()?;
        Some((Self(Zeroizing::new(*nonce)), rest))
    }

    pub fn bytes(&self) -> &[u8; NONCE_LEN] {
        &self.0
    }

    /// Binds this side to the nonce without revealing it.
    pub fn commitment(&self) -> [u8; NONCE_LEN] {
        blake3::derive_key(COMMITMENT, self.bytes())
    }
}

/// The three words of one handshake. Both sides have the same words if there is no man in the middle; the next handshake has
/// other words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionWords(String);

impl SessionWords {
    /// Of a handshake whose hash after its second message is `hash`.
    pub(crate) fn of(hash: &[u8], initiator: &Nonce, responder: &Nonce) -> Self {
        let list: Vec<&str> = LIST.lines().collect();
        let hash = blake3::derive_key(WORDS, &[hash, initiator.bytes(), responder.bytes()].concat());
        // 64 bits for each word: the bias is negligible, although the list's length is not a power of two.
        let word = |from: usize| {
            let number = hash[from..from + 8].iter().fold(0u64, |number, byte| number << 8 | u64::from(*byte));
            list[(number % list.len() as u64) as usize]
        };
        Self([word(0), word(8), word(16)].join(" "))
    }
}

impl fmt::Display for SessionWords {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::handshake::tests::counting;

    #[test]
    fn the_list_is_long_enough_sorted_and_plain() {
        let list: Vec<&str> = LIST.lines().collect();
        assert!(list.len() >= 1_000, "{} words", list.len());
        assert!(list.is_sorted_by(|a, b| a < b), "sorted, none twice");
        assert!(
            list.iter()
                .all(|word| (2..=12).contains(&word.len()) && word.bytes().all(|byte| byte.is_ascii_lowercase()))
        );
    }

    #[test]
    fn the_words_follow_from_the_hash_and_both_nonces_by_their_side() {
        let (a, b) = (Nonce::draw(counting), Nonce::draw(counting));
        let words = SessionWords::of(&[1; 32], &a, &b);
        assert_eq!(words, SessionWords::of(&[1; 32], &a, &b));
        let others = [(2, &a, &b), (1, &b, &a), (1, &a, &a), (1, &b, &b)];
        let all: BTreeSet<String> =
            others.map(|(hash, i, r)| SessionWords::of(&[hash; 32], i, r).to_string()).into_iter().collect();
        assert_eq!((all.len(), all.contains(&words.to_string())), (4, false));
        assert_eq!(words.to_string().split(' ').count(), 3);
    }

    #[test]
    fn a_commitment_says_nothing_that_another_nonce_has_too() {
        let (a, b) = (Nonce::draw(counting), Nonce::draw(counting));
        assert_ne!(a.commitment(), b.commitment());
        assert_ne!(&a.commitment(), a.bytes());
    }
}
