//! What a question wants of the logits besides a token, and what comes back.

use potluck_plan::LogitBias;
use serde::{Deserialize, Serialize};

use crate::AnswerForm;

/// What a question wants of the logits besides a token.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct LogitOptions {
    /// Added to the logits before a token is chosen.
    pub bias: LogitBias,
    /// The log-probability of each token of the answer, and those of so many of the likeliest tokens in its place: at most
    /// [`LogitOptions::MAX_TOP`]. `None`: neither.
    pub top_logprobs: Option<u8>,
    /// The form that the answer must have.
    pub form: AnswerForm,
}

impl LogitOptions {
    /// Most of the likeliest tokens.
    pub const MAX_TOP: u8 = 20;
    /// Tokens of an answer that have log-probabilities, at most: the first ones. The host keeps them for a while.
    pub const MAX_SCORED: usize = 8_192;

    /// Tokens can be chosen on the GPU, without a look at all logits.
    #[must_use]
    pub fn are_usual(&self) -> bool {
        self.bias.is_empty() && self.top_logprobs.is_none() && self.form.is_free()
    }
}

/// A token with its log-probability: the natural logarithm of its probability at temperature 1, without penalties, among all tokens of
/// the vocabulary. A bias counts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Logprob {
    /// Its id.
    pub token: u32,
    /// The bytes that it stands for, which need not be whole characters.
    pub bytes: Vec<u8>,
    /// At most 0.
    pub logprob: f32,
}

/// The log-probability of a token of an answer, and of the likeliest ones in its place.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TokenLogprobs {
    /// The token that was chosen.
    pub chosen: Logprob,
    /// The likeliest, best first.
    pub top: Vec<Logprob>,
}

impl TokenLogprobs {
    /// Bytes of a token, at most; some stand for a long run of spaces.
    const MAX_BYTES: usize = 1_024;

    /// They are within the limits, and numbers. A host may send anything.
    #[must_use]
    pub fn are_possible(&self) -> bool {
        let is_possible =
            |of: &Logprob| of.logprob.is_finite() && of.logprob <= 0.0 && of.bytes.len() <= Self::MAX_BYTES;
        self.top.len() <= usize::from(LogitOptions::MAX_TOP)
            && [&self.chosen].into_iter().chain(&self.top).all(is_possible)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn log_probabilities_are_bounded_numbers() {
        let of = |logprob: f32| Logprob { token: 7, bytes: vec![b'a'], logprob };
        let with = |chosen, top: usize| TokenLogprobs { chosen, top: vec![of(-1.0); top] };
        assert!(with(of(-0.5), 20).are_possible() && with(of(0.0), 0).are_possible());
        assert!(!with(of(-0.5), 21).are_possible(), "too many");
        for wrong in [0.1, f32::NAN, f32::NEG_INFINITY] {
            assert!(!with(of(wrong), 0).are_possible(), "{wrong}");
        }
        assert!(!with(Logprob { bytes: vec![0; 2_000], ..of(-1.0) }, 0).are_possible());
    }
}
