//! Reads an answer token by token.

use llguidance::TokenParser;
use llguidance::api::StopReason;
use potluck_plan::AllowedTokens;

use crate::GrammarError;

/// Reads an answer token by token, and says which tokens may come next.
#[derive(Clone)]
pub struct Matcher {
    inner: llguidance::Matcher,
    vocabulary: u32,
}

impl Matcher {
    pub(crate) fn new(parser: TokenParser, vocabulary: u32) -> Self {
        Self { inner: llguidance::Matcher::new(Ok(parser)), vocabulary }
    }

    /// The tokens that may come next. One that ends an answer may come where the answer has its form.
    ///
    /// # Errors
    /// [`GrammarError::Stuck`].
    pub fn allowed(&mut self) -> Result<AllowedTokens, GrammarError> {
        let mask = self.inner.compute_mask_or_eos().map_err(|_| self.stuck())?;
        let words = &mask.as_slice()[..(self.vocabulary.div_ceil(32) as usize).min(mask.as_slice().len())];
        AllowedTokens::from_words(self.vocabulary, words).map_err(GrammarError::stuck)
    }

    /// Which tokens may come next, then which may come after each of these drafts. The first draft that may not come is taken away, with
    /// those behind it. The answer does not go on.
    ///
    /// # Errors
    /// [`GrammarError::Stuck`] of the first tokens; where a draft leads does not matter.
    pub fn allowed_with(&mut self, drafts: &mut Vec<u32>) -> Result<Vec<AllowedTokens>, GrammarError> {
        let mut all = vec![self.allowed()?];
        if drafts.is_empty() {
            return Ok(all);
        }
        // A copy: one that has failed cannot go back.
        let mut ahead = Self { inner: self.inner.clone(), vocabulary: self.vocabulary };
        for draft in drafts.iter() {
            let may_come = all.last().is_some_and(|allowed| allowed.contains(*draft));
            if !may_come || ahead.is_complete() || ahead.push(*draft).is_err() {
                break;
            }
            let Ok(allowed) = ahead.allowed() else { break };
            all.push(allowed);
        }
        drafts.truncate(all.len() - 1);
        Ok(all)
    }

    /// The answer goes on with this token.
    ///
    /// # Errors
    /// [`GrammarError::Stuck`]: it may not come.
    pub fn push(&mut self, token: u32) -> Result<(), GrammarError> {
        self.inner.consume_token(token).map_err(|_| self.stuck())
    }

    /// The answer has its form, and nothing can follow.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        matches!(self.inner.stop_reason(), StopReason::NoExtension | StopReason::EndOfSentence)
    }

    fn stuck(&self) -> GrammarError {
        GrammarError::stuck(match self.inner.stop_reason() {
            StopReason::NoExtensionBias => "no token fits it".to_owned(),
            StopReason::LexerTooComplex | StopReason::ParserTooComplex => "it is too complex".to_owned(),
            reason => self.inner.get_error().unwrap_or_else(|| reason.to_string()),
        })
    }
}
