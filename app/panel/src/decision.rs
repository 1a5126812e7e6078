//! What a room's host decided, and the numbers that it compared. The wording is in `potluck_text`.
//!
//! A decision goes into the recording of the device that made it and to the host's own page, and to nobody else.

mod device;
mod plan;
mod running;

use potluck_plan::{Arithmetic, Bytes, PeerId};
use serde::{Deserialize, Serialize};

pub use self::device::{DeviceDecision, LeftOut, Part, PartReason, Place};
pub use self::plan::{Compared, DeferredReason, KeptReason, NoPlanReason, PlanDecision, ReplacedReason};
pub use self::running::{
    AvoidedReason, DraftDecision, Drafter, HedgingDecision, HolderDecision, PredictionDecision, Turn,
};

/// One decision, as the recording keeps it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Decision {
    /// Whether the room's plan goes on.
    Plan(PlanDecision),
    /// What a device gets to do.
    Device(DeviceDecision),
    /// What there is in case a device leaves.
    Standby(StandbyDecision),
    /// Whether a holder of experts is asked in its turn.
    Holder(HolderDecision),
    /// Copies of calls of experts.
    Hedging(HedgingDecision),
    /// Whether guesses of experts are loaded ahead.
    Prediction(PredictionDecision),
    /// Draft tokens.
    Drafts(DraftDecision),
}

impl Decision {
    /// Both decide the same, whatever the numbers.
    #[must_use]
    pub fn is_like(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Plan(a), Self::Plan(b)) => a.is_like(b),
            (Self::Device(a), Self::Device(b)) => a.is_like(b),
            (Self::Standby(a), Self::Standby(b)) => a.is_like(b),
            (Self::Holder(a), Self::Holder(b)) => a.is_like(b),
            (Self::Prediction(a), Self::Prediction(b)) => a.is_like(b),
            (Self::Drafts(a), Self::Drafts(b)) => a.is_like(b),
            _ => false,
        }
    }
}

/// What there is in case a device leaves.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum StandbyDecision {
    /// Others hold its part, or load it.
    Made {
        /// The device that may leave.
        lost: PeerId,
        /// Who takes over.
        helpers: Vec<PeerId>,
        /// They hold all of it.
        ready: bool,
    },
    /// Its part would have to be loaded again.
    NotMade {
        /// The device that may leave.
        lost: PeerId,
        /// Bytes of memory that the others lack; 0 if it is not memory that they lack.
        missing: Bytes,
    },
}

impl StandbyDecision {
    /// The device that may leave.
    #[must_use]
    pub const fn lost(&self) -> PeerId {
        match self {
            Self::Made { lost, .. } | Self::NotMade { lost, .. } => *lost,
        }
    }

    /// Both decide the same, whatever the numbers.
    #[must_use]
    pub fn is_like(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::NotMade { lost, .. }, Self::NotMade { lost: other, .. }) => lost == other,
            _ => self == other,
        }
    }
}

/// Why the room runs as it does: what was decided last.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WhyPlan {
    /// Why the newest plan was made; none before the first one.
    pub chosen: Option<PlanDecision>,
    /// What became of the last look for a better one.
    pub plan: PlanDecision,
    /// How products are computed; none before there is a plan.
    #[serde(default)]
    pub arithmetic: Option<Arithmetic>,
    /// The devices that lend, each with its place.
    pub devices: Vec<DeviceDecision>,
    /// Experts spread over the devices, and whole blocks; none if there is nothing to compare.
    pub spreading: Option<SpreadingCompared>,
    /// What a token takes because the ends of the model stay on the host; none if they may be anywhere, or before it is known.
    #[serde(default)]
    pub ends: Option<EndsCompared>,
    /// What there is in case a device leaves.
    pub standbys: Vec<StandbyDecision>,
}

/// The ends of the model on the host, and anywhere. Milliseconds a token, as the planner expects.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct EndsCompared {
    /// With the plan that keeps them on the host.
    pub kept_ms: f64,
    /// With the best plan that need not.
    pub free_ms: f64,
}

/// The two ways to place experts.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct SpreadingCompared {
    /// Blocks that need a round trip if experts are spread.
    pub trips: u32,
    /// Milliseconds that a token then takes.
    pub spread_ms: f64,
    /// Milliseconds that it takes with whole blocks; none if they do not fit.
    pub whole_ms: Option<f64>,
}

#[cfg(test)]
mod tests {
    use potluck_plan::PlanEpoch;

    use super::*;

    /// Tools read the recording: what it is about and what was decided are names, and the numbers lie below them.
    #[test]
    fn a_decision_reads_well_as_json() {
        let compared = Compared { active_ms: 20.0, best_ms: 19.5, needed_ms: 18.0 };
        let kept = PlanDecision::Kept { epoch: PlanEpoch(3), compared, reason: KeptReason::GainTooSmall };
        let json = serde_json::to_value(Decision::Plan(kept.clone())).expect("plain data");
        let expected = serde_json::json!({
            "Plan": {
                "Kept": {
                    "epoch": 3,
                    "compared": { "active_ms": 20.0, "best_ms": 19.5, "needed_ms": 18.0 },
                    "reason": "GainTooSmall",
                },
            },
        });
        assert_eq!(json, expected);
        let read: Decision = serde_json::from_value(json).expect("it reads again");
        assert_eq!(read, Decision::Plan(kept));
    }

    #[test]
    fn decisions_are_alike_whatever_their_numbers() {
        let kept = |best_ms, reason| {
            let compared = Compared { active_ms: 20.0, best_ms, needed_ms: 18.0 };
            Decision::Plan(PlanDecision::Kept { epoch: PlanEpoch(3), compared, reason })
        };
        let short =
            |looks| KeptReason::NotForLongEnough { looks, needed_looks: 3, better_for_ms: 9.0, needed_for_ms: 19.0 };
        assert!(kept(19.5, KeptReason::GainTooSmall).is_like(&kept(19.0, KeptReason::GainTooSmall)));
        assert!(!kept(19.5, KeptReason::GainTooSmall).is_like(&kept(19.5, KeptReason::IsBest)));
        assert!(kept(9.0, short(1)).is_like(&kept(9.0, short(2))));
        let slow = |with_ms| LeftOut::TooSlow { with_ms, without_ms: 20.0 };
        let left_out = |peer, with_ms| {
            Decision::Device(DeviceDecision { peer: PeerId([peer; 16]), place: Place::LeftOut(slow(with_ms)) })
        };
        assert!(left_out(1, 60.0).is_like(&left_out(1, 70.0)));
        assert!(!left_out(1, 60.0).is_like(&left_out(2, 60.0)), "another device");
    }
}
