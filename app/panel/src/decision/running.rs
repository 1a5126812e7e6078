//! What is chosen while tokens are written: which holders of experts are asked, when copies of calls are sent, whether guesses
//! are loaded, and how many draft tokens go along.

use std::mem::discriminant;

use potluck_plan::PeerId;
use potluck_predict::{Guessing, PredictorKind};
use serde::{Deserialize, Serialize};

/// Whether a holder of experts is asked in its turn.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct HolderDecision {
    /// Which one.
    pub peer: PeerId,
    /// Whether it is asked.
    pub turn: Turn,
    /// Milliseconds that half of its calls take, 0 before it is known.
    pub usual_ms: f64,
    /// Milliseconds within which 95% of its calls are answered, 0 before it is known.
    pub slow_ms: f64,
}

/// When a holder is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Turn {
    /// As the plan says.
    InTurn,
    /// Others are asked first.
    Avoided {
        /// Why.
        reason: AvoidedReason,
    },
}

/// Why others are asked before a holder.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum AvoidedReason {
    /// A call took more than twice the time within which 95% are answered.
    Late,
    /// Several calls in a row were not answered in time, or refused.
    Unhealthy {
        /// Calls that were not answered in time, since it came.
        timeouts: u32,
    },
}

/// Copies of calls that went to another holder before the first one had answered.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct HedgingDecision {
    /// Who got them.
    pub peer: PeerId,
    /// Calls that it has answered.
    pub calls: u32,
    /// Copies that it got.
    pub copies: u32,
    /// Those of them that it answered first.
    pub won: u32,
}

/// Whether guesses of experts are loaded ahead.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct PredictionDecision {
    /// Whether they are.
    pub guessing: Guessing,
    /// Who guesses.
    pub predictor: PredictorKind,
    /// The share of used experts that were guessed; none before the first token with guesses.
    pub recall: Option<f64>,
    /// Experts loaded on a guess.
    pub loaded: u64,
    /// Those of them that were used.
    pub useful: u64,
}

/// How many draft tokens go along with a certain one.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct DraftDecision {
    /// Who proposes them.
    pub drafter: Drafter,
    /// How many.
    pub length: u32,
    /// Tokens in the time of one without drafts that this promises.
    pub gain: f64,
    /// The share of the drafter's tokens that was right lately.
    pub accepted: f64,
    /// What a pass takes longer for each draft, as a share of a pass without; none before it was measured.
    pub cost: Option<f64>,
}

/// Who proposes draft tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Drafter {
    /// The text so far: what followed when its last tokens occurred before.
    #[default]
    Text,
    /// A shadow model.
    Shadow,
}

impl HolderDecision {
    /// Both decide the same, whatever the numbers.
    #[must_use]
    pub fn is_like(&self, other: &Self) -> bool {
        let reason = |turn: &Turn| match turn {
            Turn::InTurn => None,
            Turn::Avoided { reason } => Some(discriminant(reason)),
        };
        self.peer == other.peer && reason(&self.turn) == reason(&other.turn)
    }
}

impl PredictionDecision {
    /// Both decide the same, whatever the numbers.
    #[must_use]
    pub fn is_like(&self, other: &Self) -> bool {
        (self.guessing, self.predictor) == (other.guessing, other.predictor)
    }
}

impl DraftDecision {
    /// Both decide the same, whatever the numbers.
    #[must_use]
    pub fn is_like(&self, other: &Self) -> bool {
        (self.drafter, self.length) == (other.drafter, other.length)
    }
}
