//! What a device gets to do.

use std::mem::discriminant;

use potluck_plan::{Bytes, PeerId};
use serde::{Deserialize, Serialize};

/// The place of a device that lends.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct DeviceDecision {
    /// Which one.
    pub peer: PeerId,
    /// What it does, and why.
    pub place: Place,
}

/// What a device does in the plan.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub enum Place {
    /// It has a part.
    Has(Part),
    /// It has none.
    LeftOut(LeftOut),
}

/// A device's part.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Part {
    /// Blocks of its stages.
    pub blocks: u32,
    /// Experts that it holds for the stages of others, counted once for each block.
    pub experts: u32,
    /// Milliseconds of its stages in a token, as the planner expects.
    pub ms: f64,
    /// Bytes that it lends.
    pub lends: Bytes,
    /// Why it takes part.
    pub why: PartReason,
}

/// Why a device takes part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum PartReason {
    /// It is the only one that lends.
    OnlyDevice,
    /// The model does not fit without it.
    NeededForMemory {
        /// Bytes that the model needs on the other devices.
        needed: Bytes,
        /// Bytes that they lend.
        others_lend: Bytes,
    },
    /// The host wants everyone to take part.
    EveryoneTakesPart,
    /// The host wants experts spread over the devices.
    ExpertsAreSpread,
    /// No plan without it was expected to be faster.
    Fastest,
}

/// Why a device has no part.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub enum LeftOut {
    /// Tokens would take longer with it, or as long.
    TooSlow {
        /// Milliseconds that a token would take with it.
        with_ms: f64,
        /// Milliseconds that a token takes.
        without_ms: f64,
    },
    /// It lends too little for its smallest part.
    NotEnoughMemory {
        /// Bytes that would do.
        needed: Bytes,
        /// Bytes that it lends.
        offered: Bytes,
    },
    /// It lends too little for a block, and experts on it would cost more than they help.
    ExpertsTooFar {
        /// Bytes that would do for a block.
        needed: Bytes,
        /// Bytes that it lends.
        offered: Bytes,
        /// Milliseconds of the round trip that a token would need.
        trip_ms: f64,
    },
    /// Its GPU does not see the KV cache of a block at once.
    BindingTooSmall {
        /// Bytes of a block's keys.
        needed: Bytes,
        /// Bytes that it sees.
        binding: Bytes,
    },
    /// The host keeps everything but experts for itself, and has none for it.
    Protected,
    /// The others have all there is to do.
    NoPartLeft,
    /// There is no plan yet.
    NoPlan {
        /// Bytes that it lends.
        offered: Bytes,
    },
}

impl DeviceDecision {
    /// Both decide the same, whatever the numbers.
    #[must_use]
    pub fn is_like(&self, other: &Self) -> bool {
        self.peer == other.peer
            && match (&self.place, &other.place) {
                (Place::Has(a), Place::Has(b)) => {
                    (a.blocks, a.experts) == (b.blocks, b.experts) && discriminant(&a.why) == discriminant(&b.why)
                }
                (Place::LeftOut(a), Place::LeftOut(b)) => discriminant(a) == discriminant(b),
                _ => false,
            }
    }
}
