//! Which tokens an answer may be given, and what a result of the last stage must be.

use std::borrow::Cow;

use potluck_plan::{AllowedTokens, Candidates, LogitsRequest};
use potluck_protocol::{LogitOptions, Logprob, TokenLogprobs};

use super::Answering;
use crate::coordinator::token_log::Chunk;
use crate::language::Language;

/// No logit is larger than the log-sum-exp of all by more than this share of it.
const SUM_TOLERANCE: f32 = 1e-3;

/// Why an answer ends that has a bias and a form.
const NOTHING_ALLOWED: &str = "The logit bias bans every token with which the answer could have the form that it must have. Ask with another bias.";

impl Answering {
    /// Finds out which tokens may be chosen after a chunk and each of its drafts, and drops drafts that may not be.
    ///
    /// # Errors
    /// One sentence: none may.
    pub fn constrain(&mut self, chunk: &mut Chunk) -> Result<(), String> {
        let Some(grammar) = self.grammar.as_mut().filter(|_| chunk.last) else { return Ok(()) };
        let bias = &self.prompt.logits.bias;
        let mut allowed = grammar.allowed(&mut chunk.drafts.tokens)?;
        // What a draft would lead to is not certain.
        let certain = allowed.iter().take_while(|allowed| allowed.have_some(bias)).count();
        if certain == 0 {
            return Err(NOTHING_ALLOWED.to_owned());
        }
        allowed.truncate(certain);
        chunk.drafts.tokens.truncate(certain - 1);
        self.allowed = allowed;
        Ok(())
    }

    pub(super) fn logits_request(&self) -> LogitsRequest {
        let request = self.prompt.sampling.request();
        let request = match self.prompt.logits.top_logprobs {
            Some(likeliest) => request.of_both(LogitsRequest::TopWithSum(likeliest.max(1).into())).unwrap_or(request),
            None => request,
        };
        let worth = |most| self.allowed.iter().map(|allowed| allowed.candidates(most)).max().unwrap_or(most);
        match request {
            LogitsRequest::Top(most) => LogitsRequest::Top(worth(most)),
            LogitsRequest::TopWithSum(most) => LogitsRequest::TopWithSum(worth(most)),
            all @ LogitsRequest::Logits => all,
        }
    }

    /// The candidates that neither its bias nor its form bans.
    pub fn allowed<'a>(&self, best_of: &'a Candidates) -> Cow<'a, Candidates> {
        let is_biased = !self.prompt.logits.bias.is_empty() || self.grammar.is_some();
        if is_biased { Cow::Owned(best_of.without_banned()) } else { Cow::Borrowed(best_of) }
    }

    /// The result of a token, the first one of a pass or a later one, is what was asked for: candidates with numbers that may be chosen,
    /// and their log-sum-exp if it was wanted.
    pub fn is_result(&self, index: usize, best_of: &Candidates, vocabulary: u32) -> bool {
        let fits = !best_of.ids.is_empty() && best_of.ids.len() == best_of.logits.len();
        let is_sum = |sum: f32| {
            sum.is_finite() && best_of.logits.iter().all(|logit| *logit <= sum + SUM_TOLERANCE * sum.abs().max(1.0))
        };
        let may_come = |allowed: &AllowedTokens| {
            let best = best_of.without_banned();
            best.ids.iter().all(|id| allowed.contains(*id))
        };
        let allowed = self.allowed.get(index).filter(|_| self.grammar.is_some());
        fits && allowed.is_none_or(may_come)
            && best_of.ids.len() <= usize::from(LogitsRequest::MAX_TOP)
            && best_of.ids.iter().all(|id| *id < vocabulary)
            && !best_of.logits.iter().any(|logit| logit.is_nan())
            && best_of.log_sum_exp.is_some() == self.prompt.logits.top_logprobs.is_some()
            && best_of.log_sum_exp.is_none_or(is_sum)
    }

    /// The log-probabilities of a token and of the likeliest ones in its place, if they are wanted.
    pub fn logprobs(&self, token: u32, best_of: &Candidates, language: &dyn Language) -> Option<TokenLogprobs> {
        let likeliest = self.prompt.logits.top_logprobs.filter(|_| self.answer_tokens() < LogitOptions::MAX_SCORED)?;
        let sum = best_of.log_sum_exp?;
        let of = |(id, logit): (&u32, &f32)| Logprob {
            token: *id,
            bytes: language.piece(*id),
            logprob: (logit - sum).min(0.0),
        };
        let mut all = best_of.ids.iter().zip(&best_of.logits);
        let top = all.clone().take(likeliest.into()).map(of).collect();
        Some(TokenLogprobs { chosen: all.find(|(id, _)| **id == token).map(of)?, top })
    }
}
