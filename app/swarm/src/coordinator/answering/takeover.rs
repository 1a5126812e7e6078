//! An answer that another host began.

use potluck_plan::Millis;
use potluck_protocol::Received;

use super::Answering;
use crate::language::Language;

/// Pieces that an asker may have and this host not: a second's worth would be fewer than a thousand. Each takes memory here.
const MAX_LACKING_PIECES: usize = 1 << 14;

/// What becomes of an inherited answer, now that its asker has said how much of it it has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::coordinator) enum Continuation {
    GoesOn,
    /// What this host lacks cannot be made up.
    BeginsAgain,
    /// No host has sent so much.
    Impossible,
}

impl Answering {
    /// Goes on with tokens that another host has written, but sends nothing before the asker says how far it got. False if they do not
    /// have the form that they must have, so that the answer must begin again.
    #[must_use]
    pub fn inherit(&mut self, written: &[u32], now: Millis) -> bool {
        self.awaits_asker = true;
        self.expected_first = Some(0.0);
        self.first_token = (!written.is_empty()).then_some(now);
        self.take(written)
    }

    /// Tokens of the answer that are not computed here. Their text was sent before. False if they do not have its form.
    fn take(&mut self, written: &[u32]) -> bool {
        written.iter().all(|token| {
            self.conversation.log.push(*token);
            if let Some(last) = self.stream.push(*token).last() {
                self.channel = last.channel;
            }
            self.grammar.as_mut().is_none_or(|grammar| grammar.push(*token).is_ok())
        })
    }

    /// The asker has received so much of an inherited answer. It may know more of it than this host, whose predecessor was lost in
    /// between.
    #[must_use]
    pub fn goes_on_from(&mut self, received: &Received, language: &dyn Language, vocabulary: u32) -> Continuation {
        let pieces = received.pieces as usize;
        let lacking_pieces = pieces.saturating_sub(self.transcript.pieces());
        self.awaits_asker = false;
        match lacking_pieces {
            0 => return Continuation::GoesOn,
            1..=MAX_LACKING_PIECES => {}
            _ => return Continuation::Impossible,
        }
        let lacking = (received.tokens as usize).checked_sub(self.answer_tokens());
        let last = lacking.and_then(|lacking| received.last.len().checked_sub(lacking));
        let missing = last.map(|from| received.last[from..].to_vec()).filter(|missing| {
            let is_token = |token: &u32| *token < vocabulary && !language.is_end(*token);
            missing.iter().all(is_token) && self.conversation.log.len() + missing.len() <= self.context
        });
        let (is_known, missing) = (missing.is_some(), missing.unwrap_or_default());
        let goes_on = is_known && self.take(&missing);
        self.transcript.sent_elsewhere(pieces, self.channel, missing);
        if goes_on { Continuation::GoesOn } else { Continuation::BeginsAgain }
    }
}
