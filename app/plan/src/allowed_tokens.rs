//! Which tokens of a vocabulary may be chosen.

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::LogitBias;

/// Tokens of a vocabulary that may be chosen: the LM head selects no others. Everybody who gets them may rely on their limits. They
/// take as little room as they can, on the wire and in memory.
///
/// ```
/// use potluck_plan::{AllowedTokens, LogitBias};
///
/// let allowed = AllowedTokens::from_words(40, &[0b1010, 0])?;
/// assert!(allowed.contains(3) && !allowed.contains(2));
/// let mut logits = vec![1.0; 40];
/// allowed.apply(&mut logits);
/// assert_eq!((logits[2], logits[3]), (LogitBias::BANNED, 1.0));
/// # Ok::<(), potluck_plan::BadAllowedTokens>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Unchecked", into = "Unchecked")]
pub struct AllowedTokens {
    vocabulary: u32,
    form: Form,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum Form {
    /// These tokens, ascending.
    Only(Vec<u32>),
    /// All but these, ascending.
    AllBut(Vec<u32>),
    /// A bit a token, the lowest one first; none behind the last token.
    Bits(Vec<u8>),
}

#[derive(Serialize, Deserialize)]
struct Unchecked {
    vocabulary: u32,
    form: Form,
}

/// Why something is no [`AllowedTokens`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum BadAllowedTokens {
    /// The vocabulary is empty or too large.
    #[error("allowed tokens are of a vocabulary of {0} tokens")]
    Vocabulary(u32),
    /// Their number or order does not fit the vocabulary.
    #[error("allowed tokens do not fit their vocabulary")]
    Malformed,
}

impl AllowedTokens {
    /// Tokens of a vocabulary, at most.
    pub const MAX_VOCABULARY: u32 = 1 << 21;
    /// Candidates that are always worth asking for.
    const FEW: u32 = 32;
    /// Words of the tokens of which the LM head finds the best at once: 128 tokens.
    const PART_WORDS: usize = 4;
    /// Bytes that a token's number takes, at most, if its vocabulary has no more than [`Self::MAX_VOCABULARY`].
    const ID_BYTES: usize = 3;

    /// Those whose bits are set, 32 tokens a word, the lowest bit first. Bits behind the last token do not count.
    ///
    /// # Errors
    /// Any [`BadAllowedTokens`].
    pub fn from_words(vocabulary: u32, words: &[u32]) -> Result<Self, BadAllowedTokens> {
        check_vocabulary(vocabulary)?;
        if words.len() != vocabulary.div_ceil(32) as usize {
            return Err(BadAllowedTokens::Malformed);
        }
        let is_set = |id: u32| words[(id / 32) as usize] >> (id % 32) & 1 == 1;
        let bytes = vocabulary.div_ceil(8) as usize;
        // A word of 32 is counted at once: vocabularies have hundreds of thousands of tokens.
        let spare = words.len() as u32 * 32 - vocabulary;
        let last = words.last().map_or(0, |word| (word << spare).count_ones());
        let count = words[..words.len() - 1].iter().map(|word| word.count_ones()).sum::<u32>() + last;
        let fits = |count: u32| count as usize * Self::ID_BYTES <= bytes;
        let form = if fits(count) {
            Form::Only((0..vocabulary).filter(|id| is_set(*id)).collect())
        } else if fits(vocabulary - count) {
            Form::AllBut((0..vocabulary).filter(|id| !is_set(*id)).collect())
        } else {
            let mut bits: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).take(bytes).collect();
            if let Some(last) = bits.last_mut() {
                *last &= u8::MAX >> ((8 - vocabulary % 8) % 8);
            }
            Form::Bits(bits)
        };
        Ok(Self { vocabulary, form })
    }

    /// Only these tokens, in any order; those that the vocabulary does not have are left out.
    ///
    /// # Errors
    /// [`BadAllowedTokens::Vocabulary`].
    pub fn only(vocabulary: u32, tokens: impl IntoIterator<Item = u32>) -> Result<Self, BadAllowedTokens> {
        check_vocabulary(vocabulary)?;
        let mut words = vec![0; vocabulary.div_ceil(32) as usize];
        for id in tokens.into_iter().filter(|id| *id < vocabulary) {
            words[(id / 32) as usize] |= 1 << (id % 32);
        }
        Self::from_words(vocabulary, &words)
    }

    /// All of them.
    ///
    /// # Errors
    /// [`BadAllowedTokens::Vocabulary`].
    pub fn all(vocabulary: u32) -> Result<Self, BadAllowedTokens> {
        check_vocabulary(vocabulary)?;
        Ok(Self { vocabulary, form: Form::AllBut(Vec::new()) })
    }

    /// Tokens of the vocabulary.
    #[must_use]
    pub fn vocabulary(&self) -> u32 {
        self.vocabulary
    }

    /// Every token may be chosen.
    #[must_use]
    pub fn are_all(&self) -> bool {
        matches!(&self.form, Form::AllBut(none) if none.is_empty())
    }

    /// This one may be chosen.
    #[must_use]
    pub fn contains(&self, token: u32) -> bool {
        token < self.vocabulary
            && match &self.form {
                Form::Only(tokens) => tokens.binary_search(&token).is_ok(),
                Form::AllBut(tokens) => tokens.binary_search(&token).is_err(),
                Form::Bits(bits) => bits[(token / 8) as usize] >> (token % 8) & 1 == 1,
            }
    }

    /// Some token may be chosen that the bias does not ban.
    #[must_use]
    pub fn have_some(&self, bias: &LogitBias) -> bool {
        let banned: Vec<u32> = bias.banned().collect();
        (0..self.vocabulary).any(|id| self.contains(id) && banned.binary_search(&id).is_err())
    }

    /// A bit a token, 32 tokens a word, the lowest bit first; none behind the last token.
    #[must_use]
    pub fn words(&self) -> Vec<u32> {
        let count = self.vocabulary.div_ceil(32) as usize;
        let set = |mut words: Vec<u32>, tokens: &[u32]| {
            tokens.iter().for_each(|id| words[(id / 32) as usize] ^= 1 << (id % 32));
            words
        };
        match &self.form {
            Form::Only(tokens) => set(vec![0; count], tokens),
            Form::AllBut(tokens) => {
                let mut words = vec![u32::MAX; count];
                if let Some(last) = words.last_mut() {
                    *last >>= (32 - self.vocabulary % 32) % 32;
                }
                set(words, tokens)
            }
            Form::Bits(bits) => {
                let word = |bytes: &[u8]| bytes.iter().rev().fold(0, |word, byte| word << 8 | u32::from(*byte));
                bits.chunks(4).map(word).collect()
            }
        }
    }

    /// So many candidates are worth asking for, of at most `most`: no more than there are tokens. Where these lie close together, a GPU
    /// finds candidates one after another, and some that compute on a processor stop early: then it is a few.
    #[must_use]
    pub fn candidates(&self, most: u16) -> u16 {
        let words = self.words();
        let tokens: u32 = words.iter().map(|word| word.count_ones()).sum();
        let parts = words.chunks(Self::PART_WORDS).filter(|part| part.iter().any(|word| *word > 0)).count() as u32;
        let worth = tokens.min(parts.max(Self::FEW)).max(1);
        most.min(u16::try_from(worth).unwrap_or(u16::MAX))
    }

    /// Bans all other logits of a vocabulary, as the GPU does.
    pub fn apply(&self, logits: &mut [f32]) {
        let banned = logits.iter_mut().zip(0..).filter(|(_, id)| !self.contains(*id));
        banned.for_each(|(logit, _)| *logit = LogitBias::BANNED);
    }
}

fn check_vocabulary(vocabulary: u32) -> Result<(), BadAllowedTokens> {
    let is_one = (1..=AllowedTokens::MAX_VOCABULARY).contains(&vocabulary);
    if is_one { Ok(()) } else { Err(BadAllowedTokens::Vocabulary(vocabulary)) }
}

impl From<AllowedTokens> for Unchecked {
    fn from(AllowedTokens { vocabulary, form }: AllowedTokens) -> Self {
        Self { vocabulary, form }
    }
}

impl TryFrom<Unchecked> for AllowedTokens {
    type Error = BadAllowedTokens;

    fn try_from(Unchecked { vocabulary, form }: Unchecked) -> Result<Self, BadAllowedTokens> {
        check_vocabulary(vocabulary)?;
        let fits = match &form {
            Form::Only(tokens) | Form::AllBut(tokens) => {
                tokens.is_sorted_by(|a, b| a < b) && tokens.last().is_none_or(|last| *last < vocabulary)
            }
            Form::Bits(bits) => {
                bits.len() == vocabulary.div_ceil(8) as usize
                    && (vocabulary.is_multiple_of(8) || bits.last().is_none_or(|last| last >> (vocabulary % 8) == 0))
            }
        };
        if fits { Ok(Self { vocabulary, form }) } else { Err(BadAllowedTokens::Malformed) }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use super::*;

    fn with(vocabulary: u32, is_set: impl Fn(u32) -> bool) -> AllowedTokens {
        let mut words = vec![0; vocabulary.div_ceil(32) as usize];
        (0..vocabulary).filter(|id| is_set(*id)).for_each(|id| words[(id / 32) as usize] |= 1 << (id % 32));
        AllowedTokens::from_words(vocabulary, &words).unwrap()
    }

    #[test]
    fn each_form_has_the_same_tokens_and_words() {
        type IsSet = fn(u32) -> bool;
        for vocabulary in [1, 31, 32, 33, 1_001, 4_096] {
            let all: [IsSet; 5] = [|_| false, |_| true, |id| id == 0, |id| id % 97 != 5, |id| id % 3 == 1];
            for is_set in all {
                let allowed = with(vocabulary, is_set);
                assert!((0..vocabulary + 70).all(|id| allowed.contains(id) == (id < vocabulary && is_set(id))));
                assert_eq!(AllowedTokens::from_words(vocabulary, &allowed.words()).unwrap(), allowed);
                let mut logits = vec![2.0; vocabulary as usize];
                allowed.apply(&mut logits);
                assert!((0..).zip(&logits).all(|(id, logit)| (*logit == 2.0) == is_set(id)));
            }
        }
        assert!(AllowedTokens::all(77).unwrap().are_all() && with(77, |_| true).are_all());
        assert!(!with(77, |id| id != 3).are_all());
        assert_eq!(AllowedTokens::only(40, [7, 3, 90]).unwrap(), with(40, |id| id == 3 || id == 7));
    }

    #[test]
    fn the_smallest_form_is_taken() {
        assert!(matches!(with(10_000, |id| id == 9_999).form, Form::Only(_)));
        assert!(matches!(with(10_000, |id| id != 9_999).form, Form::AllBut(_)));
        assert!(matches!(with(10_000, |id| id % 2 == 0).form, Form::Bits(bits) if bits.len() == 1_250));
        let stray = AllowedTokens::from_words(33, &[0, u32::MAX]).unwrap();
        assert_eq!(stray, with(33, |id| id == 32), "bits behind the last token do not count");
    }

    #[test]
    fn no_more_candidates_are_worth_asking_for_than_there_are() {
        assert_eq!(with(10_000, |id| id < 5).candidates(128), 5);
        assert_eq!(with(10_000, |id| id < 120).candidates(128), 32, "close together");
        assert_eq!(with(10_000, |id| id % 128 < 3).candidates(128), 79, "one of each part");
        assert_eq!(AllowedTokens::all(100_000).unwrap().candidates(128), 128);
        assert_eq!((with(100, |_| false).candidates(128), with(100, |_| true).candidates(1)), (1, 1));
    }

    #[test]
    fn a_bias_may_leave_nothing() {
        let bias = LogitBias::new([(3, -100.0), (5, 4.0)]).unwrap();
        assert!(with(40, |id| id < 4).have_some(&bias) && with(40, |id| id == 5).have_some(&bias));
        assert!(!with(40, |id| id == 3).have_some(&bias) && !with(40, |_| false).have_some(&LogitBias::default()));
    }

    #[test]
    fn what_does_not_fit_a_vocabulary_is_refused() {
        let read = |vocabulary, form| AllowedTokens::try_from(Unchecked { vocabulary, form });
        assert_eq!(read(0, Form::Only(vec![])), Err(BadAllowedTokens::Vocabulary(0)));
        assert_eq!(read(1 << 22, Form::AllBut(vec![])), Err(BadAllowedTokens::Vocabulary(1 << 22)));
        for wrong in [
            Form::Only(vec![4, 4]),
            Form::Only(vec![5, 4]),
            Form::AllBut(vec![10]),
            Form::Bits(vec![0]),
            Form::Bits(vec![0, 4]),
        ] {
            assert_eq!(read(10, wrong.clone()), Err(BadAllowedTokens::Malformed), "{wrong:?}");
        }
        assert!(read(10, Form::Bits(vec![0, 3])).is_ok());
        assert_eq!(AllowedTokens::from_words(40, &[0]), Err(BadAllowedTokens::Malformed));
    }
}
