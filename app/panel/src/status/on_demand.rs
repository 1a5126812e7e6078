//! What loading experts on demand costs a device.

use potluck_predict::ForesightReport;
use serde::{Deserialize, Serialize};

/// Milliseconds that a call of a block's experts takes on a device that loads them on demand, for decoded tokens, from when it
/// is there until its result is. The parts add up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CallTimes {
    /// Waiting for calls before it.
    pub queued: f64,
    /// Waiting for slots that earlier work or loads under way still have.
    pub slots_wait: f64,
    /// Waiting for experts that were not there: their reads and what follows of them.
    pub reads_wait: f64,
    /// Waiting for the engine, which has everything it needs.
    pub engine: f64,
    /// Everything else.
    pub rest: f64,
}

impl CallTimes {
    /// The whole call.
    pub fn total(&self) -> f64 {
        self.queued + self.slots_wait + self.reads_wait + self.engine + self.rest
    }

    /// Parts of two, each combined.
    #[must_use]
    pub fn with(&self, other: &Self, each: impl Fn(f64, f64) -> f64) -> Self {
        Self {
            queued: each(self.queued, other.queued),
            slots_wait: each(self.slots_wait, other.slots_wait),
            reads_wait: each(self.reads_wait, other.reads_wait),
            engine: each(self.engine, other.engine),
            rest: each(self.rest, other.rest),
        }
    }
}

/// What loading experts on demand costs, as means over all decoded tokens of the plan.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct OnDemandReport {
    /// Decoded tokens.
    pub tokens: u64,
    /// Slots for experts.
    pub slots: u32,
    /// Experts that share them.
    pub experts: u32,
    /// Experts that tokens used and that were in a slot.
    pub hits: u64,
    /// Experts that tokens used and that had to be loaded.
    pub misses: u64,
    /// The share of used experts that were in a slot; 0 before the first token.
    pub recall: f64,
    /// Bytes loaded a token.
    pub token_bytes: f64,
    /// Those of them that came over the network: a first use, or a cache that was evicted.
    pub token_network_bytes: f64,
    /// Blocks at which a token waited for a load.
    pub token_stalls: f64,
    /// Milliseconds for which a token waited for loads.
    pub token_wait_ms: f64,
    /// Bytes loaded for prompts, in all.
    pub prompt_bytes: u64,
    /// Bytes loaded on guesses of what would be needed, in all: on this device's own and on what others hinted. They count
    /// in `token_bytes` too.
    pub guessed_bytes: u64,
    /// Experts that tokens used and that stages elsewhere had hinted.
    pub hinted: u64,
    /// Experts loaded, for whatever reason.
    pub loads: u64,
    /// Milliseconds in which any load was under way.
    pub load_ms: f64,
    /// Calls of a block's experts by decoded tokens.
    pub calls: u64,
    /// What one of them took.
    pub a_call: CallTimes,
    /// What came of this device's own guesses; none if it does not guess.
    pub guesses: Option<ForesightReport>,
}

/// A shadow made from the model of a room.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShadowReport {
    /// GPU memory that it takes of what its device lends, in bytes.
    pub bytes: u64,
    /// It is made, and guesses.
    pub ready: bool,
}

/// Draft tokens that a host sent along with certain ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DraftReport {
    /// Those that followed in the text before (prompt lookup).
    pub from_text: DraftCount,
    /// Those that a shadow model expected.
    pub from_shadow: DraftCount,
}

/// How many draft tokens were right.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DraftCount {
    /// Sent beside a certain token.
    pub sent: u64,
    /// Those of them that the model chose, too.
    pub accepted: u64,
}

impl OnDemandReport {
    /// The same of the tokens since an earlier report.
    #[must_use]
    pub fn since(&self, before: &Self) -> Self {
        let tokens = self.tokens.saturating_sub(before.tokens);
        let a_token = |of: fn(&Self) -> f64| {
            (of(self) * self.tokens as f64 - of(before) * before.tokens as f64).max(0.0) / tokens.max(1) as f64
        };
        let calls = self.calls.saturating_sub(before.calls);
        let (all, earlier) = (self.calls as f64, before.calls as f64);
        let a_call =
            self.a_call.with(&before.a_call, |now, then| (now * all - then * earlier).max(0.0) / calls.max(1) as f64);
        let hits = self.hits.saturating_sub(before.hits);
        let misses = self.misses.saturating_sub(before.misses);
        Self {
            tokens,
            hits,
            misses,
            recall: hits as f64 / (hits + misses).max(1) as f64,
            token_bytes: a_token(|report| report.token_bytes),
            token_network_bytes: a_token(|report| report.token_network_bytes),
            token_stalls: a_token(|report| report.token_stalls),
            token_wait_ms: a_token(|report| report.token_wait_ms),
            prompt_bytes: self.prompt_bytes.saturating_sub(before.prompt_bytes),
            guessed_bytes: self.guessed_bytes.saturating_sub(before.guessed_bytes),
            hinted: self.hinted.saturating_sub(before.hinted),
            loads: self.loads.saturating_sub(before.loads),
            load_ms: (self.load_ms - before.load_ms).max(0.0),
            calls,
            a_call,
            guesses: self.guesses.map(|now| now.since(&before.guesses.unwrap_or_default())),
            ..*self
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_since_an_earlier_report_have_means_of_their_own() {
        let before = OnDemandReport { tokens: 10, hits: 20, misses: 20, token_bytes: 8.0, ..OnDemandReport::default() };
        let now = OnDemandReport { tokens: 30, hits: 50, misses: 30, token_bytes: 4.0, ..before };
        let since = now.since(&before);
        assert_eq!((since.tokens, since.hits, since.misses), (20, 30, 10));
        assert_eq!((since.recall, since.token_bytes), (0.75, 2.0));
        assert_eq!(now.since(&OnDemandReport::default()).token_bytes, 4.0);
    }

    #[test]
    fn calls_since_an_earlier_report_have_times_of_their_own() {
        let times = |engine, rest| CallTimes { engine, rest, ..CallTimes::default() };
        let before = OnDemandReport { calls: 10, a_call: times(3.0, 1.0), ..OnDemandReport::default() };
        let now = OnDemandReport { calls: 40, a_call: times(1.5, 1.0), ..before };
        let since = now.since(&before);
        assert_eq!((since.calls, since.a_call), (30, times(1.0, 1.0)));
        assert_eq!(since.a_call.total(), 2.0);
    }
}
