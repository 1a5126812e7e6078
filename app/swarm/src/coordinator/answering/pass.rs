//! Work of an answer on its way through the stages.

use potluck_plan::Millis;
use potluck_protocol::PassId;

use super::Drafts;

/// A chunk somewhere between the first stage and us.
pub(in crate::coordinator) struct Pass {
    pub id: PassId,
    /// Log position after its last token.
    pub end: usize,
    /// Tokens that it computes, drafts and further steps included.
    pub tokens: u64,
    /// Draft tokens after it.
    pub drafts: Drafts,
    /// Tokens that are computed after it.
    pub further_steps: u16,
    pub(super) sent: Millis,
    /// A single decoded token, with or without drafts.
    pub(super) is_decode: bool,
}

/// A token's pass through all stages while nothing else was in flight.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::coordinator) struct DecodePass {
    /// Tokens computed in this pass, one after another.
    pub steps: u16,
    /// Milliseconds of the engine at each stage.
    pub stage_millis: Vec<f64>,
    /// Milliseconds from sending the first frame to receiving the result.
    pub millis: f64,
    /// It is the first token of its answer.
    pub is_first: bool,
}

impl Pass {
    /// A chunk of a replayed log.
    pub fn replayed(id: PassId, end: usize, tokens: usize, now: Millis) -> Self {
        Self {
            id,
            end,
            tokens: tokens as u64,
            drafts: Drafts::default(),
            further_steps: 0,
            sent: now,
            is_decode: false,
        }
    }

    /// Positions of KV cache it leaves behind, right or wrong.
    pub(super) fn held(&self) -> usize {
        self.end + self.drafts.tokens.len() + usize::from(self.further_steps)
    }

    /// How long it was in flight, if it was a single token with its drafts.
    pub fn decode_millis(&self, now: Millis) -> Option<f64> {
        self.is_decode.then_some(now.0 - self.sent.0)
    }
}

/// A prompt chunk that passed the stages while no other answer ran.
pub(in crate::coordinator) struct PrefillPass {
    pub tokens: usize,
    /// Milliseconds of the engine at each stage.
    pub stage_millis: Vec<f64>,
}

/// A prompt chunk that arrived `millis` after the one before it.
pub(in crate::coordinator) struct Reading {
    pub tokens: usize,
    pub millis: f64,
}
