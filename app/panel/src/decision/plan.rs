//! Whether the room's plan goes on.

use std::mem::discriminant;

use potluck_plan::{Bytes, PlanEpoch};
use serde::{Deserialize, Serialize};

/// What became of a look for a better plan.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum PlanDecision {
    /// The active plan goes on.
    Kept {
        /// Which one.
        epoch: PlanEpoch,
        /// What a token takes.
        compared: Compared,
        /// Why.
        reason: KeptReason,
    },
    /// Another plan is prepared.
    Replaced {
        /// The new one.
        epoch: PlanEpoch,
        /// Milliseconds that a token takes with the new one, as the planner expects.
        new_ms: f64,
        /// The same with the plan before; none if there was none, or it cannot go on.
        active_ms: Option<f64>,
        /// Why.
        reason: ReplacedReason,
    },
    /// Nothing was compared: that has to wait.
    Deferred {
        /// Why.
        reason: DeferredReason,
    },
    /// There is no plan.
    NoPlan {
        /// Why.
        reason: NoPlanReason,
    },
}

/// Milliseconds that a token takes, as the planner expects.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Compared {
    /// With the active plan.
    pub active_ms: f64,
    /// With the best plan that was found.
    pub best_ms: f64,
    /// A plan with as many devices is worth a change if it takes less than this.
    pub needed_ms: f64,
}

/// Why the active plan goes on.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub enum KeptReason {
    /// It is the best one.
    IsBest,
    /// The best one gains less than a change has to, or less than measurements vary.
    GainTooSmall,
    /// The host wants as many devices as possible to take part, and the best one has fewer.
    FewerDevices {
        /// Devices with a part in the active plan.
        active: u32,
        /// … and in the best one.
        best: u32,
    },
    /// In an unchanged room a plan must be better for a while.
    NotForLongEnough {
        /// Looks at which it was better.
        looks: u32,
        /// Looks that it takes.
        needed_looks: u32,
        /// Milliseconds for which it was better.
        better_for_ms: f64,
        /// Milliseconds that it takes.
        needed_for_ms: f64,
    },
    /// Answers in progress end first.
    AnswersEndFirst,
    /// The best one does not fit beside it, and loading it would take longer than its tokens would save.
    DoesNotPay {
        /// Milliseconds that loading takes.
        load_ms: f64,
        /// Tokens that are expected.
        tokens: u64,
    },
    /// The best one does not fit beside it: it is loaded once nobody asks.
    RoomInUse {
        /// Milliseconds that loading takes.
        load_ms: f64,
    },
    /// Another plan is being prepared already, and the best one is not worth beginning anew.
    AnotherIsPrepared,
}

/// Why another plan is prepared.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub enum ReplacedReason {
    /// There was none.
    First,
    /// The plan before is gone with a device.
    PlanLost,
    /// Tokens are faster by more than a change has to gain.
    Faster,
    /// More devices take part, as the host wants.
    MoreDevices {
        /// Devices with a part before.
        before: u32,
        /// … and with the new plan.
        after: u32,
    },
    /// The plan before cannot go on: a device lends less, or the context is another one.
    CannotGoOn,
    /// The host wants the work shared in another way.
    SharingChanged,
    /// The plan before loaded experts on demand, and there is memory for all by now.
    FitsNow,
    /// It is the standby plan for a device that was lost: the others hold its part already.
    TakesOver,
}

/// Why nothing was compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum DeferredReason {
    /// A device of the active plan is away for a moment.
    DeviceAway,
    /// Devices are timing themselves.
    Measuring,
    /// A device left that the plan can spare: answers in progress end first.
    AnswersEndFirst,
}

/// Why there is no plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum NoPlanReason {
    /// The devices lend too little.
    NotEnoughMemory {
        /// Bytes that the model needs.
        needed: Bytes,
        /// Bytes that the devices lend.
        offered: Bytes,
        /// Bytes that are missing, at least; 0 if they lend enough, but no device has room for its part.
        missing: Bytes,
    },
    /// The ends of the model stay on the host, which lends too little for them.
    HostTooSmallForEnds {
        /// Bytes that it needs for them.
        needed: Bytes,
        /// Bytes that it lends.
        offered: Bytes,
        /// Bytes that are missing.
        missing: Bytes,
    },
    /// The model cannot use the KV cache type that the host chose.
    KvCacheType,
}

impl PlanDecision {
    /// Both decide the same, whatever the numbers.
    #[must_use]
    pub fn is_like(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Kept { epoch, reason, .. }, Self::Kept { epoch: of, reason: other, .. }) => {
                epoch == of && discriminant(reason) == discriminant(other)
            }
            (Self::Replaced { epoch, .. }, Self::Replaced { epoch: of, .. }) => epoch == of,
            (Self::Deferred { reason }, Self::Deferred { reason: other }) => reason == other,
            (Self::NoPlan { reason }, Self::NoPlan { reason: other }) => reason == other,
            _ => false,
        }
    }
}
