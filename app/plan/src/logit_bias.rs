//! What is added to logits before tokens are chosen from them.

use std::ops::Range;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::AllowedTokens;

/// What is added to the logits of a few tokens, before the LM head selects candidates. Everybody who gets one may rely on its limits.
///
/// ```
/// use potluck_plan::LogitBias;
///
/// let bias = LogitBias::new([(7, -100.0), (3, 2.5)])?;
/// let mut logits = vec![1.0; 8];
/// bias.apply(&mut logits);
/// assert_eq!((logits[3], logits[4], logits[7]), (3.5, 1.0, LogitBias::BANNED));
/// # Ok::<(), potluck_plan::BadLogitBias>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Vec<(u32, f32)>")]
pub struct LogitBias(Vec<(u32, f32)>);

/// Why something is no [`LogitBias`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum BadLogitBias {
    /// It has too many tokens.
    #[error("a logit bias has {0} tokens, {most} are the most", most = LogitBias::MAX_TOKENS)]
    TooMany(usize),
    /// A token is named twice.
    #[error("a logit bias names token {0} twice")]
    Twice(u32),
    /// It is not a number from -100 to 100.
    #[error("the logit bias of token {0} is no number from -100 to 100")]
    OutOfRange(u32),
}

impl LogitBias {
    /// Most tokens it may have.
    pub const MAX_TOKENS: usize = 1_024;
    /// The largest bias; its negative bans a token.
    pub const MAX: f32 = 100.0;
    /// The logit of a banned token. Its probability is zero.
    pub const BANNED: f32 = -1e30;

    /// The bias with these tokens, in any order.
    ///
    /// # Errors
    /// Any [`BadLogitBias`].
    pub fn new(tokens: impl IntoIterator<Item = (u32, f32)>) -> Result<Self, BadLogitBias> {
        let mut tokens: Vec<(u32, f32)> = tokens.into_iter().take(Self::MAX_TOKENS + 1).collect();
        if tokens.len() > Self::MAX_TOKENS {
            return Err(BadLogitBias::TooMany(tokens.len()));
        }
        tokens.sort_unstable_by_key(|(id, _)| *id);
        if let Some(pair) = tokens.windows(2).find(|pair| pair[0].0 == pair[1].0) {
            return Err(BadLogitBias::Twice(pair[0].0));
        }
        match tokens.iter().find(|(_, bias)| !(-Self::MAX..=Self::MAX).contains(bias)) {
            Some((id, _)) => Err(BadLogitBias::OutOfRange(*id)),
            None => Ok(Self(tokens)),
        }
    }

    /// It changes nothing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Tokens with their biases, by ascending token.
    #[must_use]
    pub fn tokens(&self) -> &[(u32, f32)] {
        &self.0
    }

    /// Tokens that it bans, ascending.
    pub fn banned(&self) -> impl Iterator<Item = u32> {
        self.0.iter().filter(|(_, bias)| *bias <= -Self::MAX).map(|(id, _)| *id)
    }

    /// A token that a vocabulary of this size does not have.
    #[must_use]
    pub fn unknown(&self, vocabulary: u32) -> Option<u32> {
        self.0.last().map(|(id, _)| *id).filter(|id| *id >= vocabulary)
    }

    /// Adds it to the logits of a vocabulary, as the GPU does. Tokens that are not there are left out.
    pub fn apply(&self, logits: &mut [f32]) {
        for (id, bias) in &self.0 {
            if let Some(logit) = logits.get_mut(*id as usize) {
                *logit = if *bias <= -Self::MAX { Self::BANNED } else { *logit + bias };
            }
        }
    }
}

impl TryFrom<Vec<(u32, f32)>> for LogitBias {
    type Error = BadLogitBias;

    fn try_from(tokens: Vec<(u32, f32)>) -> Result<Self, BadLogitBias> {
        Self::new(tokens)
    }
}

/// Tokens of a batch whose logits are changed before candidates are chosen.
#[derive(Clone, Debug, PartialEq)]
pub struct BiasedTokens {
    /// Which of the batch, by index.
    pub tokens: Range<u32>,
    /// What is added to the logits of each of them.
    pub bias: LogitBias,
    /// Which tokens may be chosen in their place; `None`: all.
    pub allowed: Option<AllowedTokens>,
}

impl BiasedTokens {
    /// One bias for all `count` tokens of a batch; nothing if it is empty.
    #[must_use]
    pub fn all(count: usize, bias: &LogitBias) -> Vec<Self> {
        let tokens = 0..count as u32;
        (!bias.is_empty()).then(|| Self { tokens, bias: bias.clone(), allowed: None }).into_iter().collect()
    }

    /// Those of a part of a batch, by index within the part.
    #[must_use]
    pub fn within(all: &[Self], part: &Range<usize>) -> Vec<Self> {
        let (first, end) = (part.start as u32, part.end as u32);
        let cut = all.iter().map(|Self { tokens, bias, allowed }| Self {
            tokens: tokens.start.clamp(first, end) - first..tokens.end.clamp(first, end) - first,
            bias: bias.clone(),
            allowed: allowed.clone(),
        });
        cut.filter(|biased| !biased.tokens.is_empty()).collect()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use super::*;

    #[test]
    fn a_bias_is_bounded_and_finite_and_names_no_token_twice() {
        assert_eq!(LogitBias::new([(9, 1.0), (2, -100.0)]).unwrap().tokens(), [(2, -100.0), (9, 1.0)]);
        assert_eq!(LogitBias::new([(9, 1.0), (9, 2.0)]), Err(BadLogitBias::Twice(9)));
        for wrong in [100.5, -101.0, f32::NAN, f32::INFINITY] {
            assert_eq!(LogitBias::new([(4, wrong)]), Err(BadLogitBias::OutOfRange(4)), "{wrong}");
        }
        let many = |count: u32| LogitBias::new((0..count).map(|id| (id, 1.0)));
        assert!(many(1_024).is_ok());
        assert_eq!(many(1_025), Err(BadLogitBias::TooMany(1_025)));
    }

    #[test]
    fn tokens_that_a_vocabulary_does_not_have_are_named_and_left_out() {
        let bias = LogitBias::new([(1, 5.0), (4, 5.0)]).unwrap();
        assert_eq!((bias.unknown(5), bias.unknown(4)), (None, Some(4)));
        let mut logits = [0.0; 3];
        bias.apply(&mut logits);
        assert_eq!(logits, [0.0, 5.0, 0.0]);
    }

    #[test]
    fn a_part_of_a_batch_keeps_its_biases() {
        let [a, b] = [3.0, 4.0].map(|bias| LogitBias::new([(1, bias)]).unwrap());
        let allowed = AllowedTokens::only(9, [1]).ok();
        let of_b = |tokens| BiasedTokens { tokens, bias: b.clone(), allowed: allowed.clone() };
        let all = [BiasedTokens { tokens: 0..2, bias: a, allowed: None }, of_b(4..9)];
        assert_eq!(BiasedTokens::within(&all, &(3..6)), [of_b(1..3)]);
        assert_eq!(BiasedTokens::within(&all, &(2..4)), []);
    }
}
