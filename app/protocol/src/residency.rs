//! Frames about where experts lie while a plan runs. A plan says where they lie at first; changes are numbered and need
//! no other plan.

use potluck_plan::{BlockIndex, Bytes, ExpertId, PeerId, PlanEpoch};
use serde::{Deserialize, Serialize};

use crate::LoadFault;

/// Where experts of the active plan lie now, from the coordinator to its stages.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Residency {
    /// The plan.
    pub epoch: PlanEpoch,
    /// Larger than that of every earlier residency of the plan. An older one is dropped.
    pub version: u32,
    /// Everything that has changed since the plan was made, in order: so no change can be missed.
    pub changes: Vec<ResidencyChange>,
}

/// One change of where experts lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ResidencyChange {
    /// A device holds an expert from now on, after all its other holders.
    Add {
        /// The expert's block.
        block: BlockIndex,
        /// The expert.
        expert: ExpertId,
        /// Who holds it.
        peer: PeerId,
    },
    /// A device holds no expert of this plan any more: it is gone, or found wrong.
    Drop(PeerId),
}

/// The coordinator asks a device of the active plan to load experts, besides what it holds. What it computes meanwhile
/// is not disturbed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hold {
    /// The plan.
    pub epoch: PlanEpoch,
    /// Comes back with the answer.
    pub version: u32,
    /// The experts.
    pub experts: Vec<(BlockIndex, ExpertId)>,
}

/// Answer to [`Hold`]: the experts are on the GPU, or why they are not.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Holding {
    /// Of the order.
    pub epoch: PlanEpoch,
    /// Of the order.
    pub version: u32,
    /// Why they could not be loaded. The plan goes on as before.
    pub failed: Option<LoadFault>,
}

/// Who may check whose answers, from the coordinator to each device with a stage whose experts lie elsewhere. It is not part
/// of a plan; the newest one counts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Checkers {
    /// Decides which answers are checked, and by whom. Each device with a stage has its own; holders get none.
    pub secret: u64,
    /// The room's devices by the way they came in. One that is missing here neither checks nor is checked.
    pub lineages: Vec<(PeerId, Lineage)>,
}

/// Devices that may belong to one person share it: they came in by the same invite, by the room's link, or from the public
/// list, or one of them came in by two of these ways.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Lineage(pub u16);

impl Lineage {
    /// That of the host's own device.
    pub const HOST: Self = Self(0);
}

/// What a stage has seen of a holder, for the planner and for the page.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct HolderReport {
    /// The holder.
    pub peer: PeerId,
    /// Calls that it has answered.
    pub answers: u32,
    /// Median milliseconds from a call of decoded tokens to its answer.
    pub round_trip_millis: f64,
    /// The 95th percentile of these milliseconds.
    pub slow_millis: f64,
    /// Median engine milliseconds of such a call.
    pub engine_millis: f64,
    /// Mean experts of such a call, counted once for each token.
    pub experts: f64,
    /// Calls that were sent to it because others took long, or at once as a copy.
    pub hedges: u32,
    /// Of these, calls that were answered first.
    pub hedges_won: u32,
    /// Calls that it has not answered yet.
    pub open: u32,
    /// Calls for which somebody else was asked because it took too long.
    pub timeouts: u32,
    /// It is asked last: several times in a row it did not answer, or refused.
    pub is_unhealthy: bool,
    /// What it has computed in all, as the stage has received it.
    pub work: Work,
}

/// What a device has computed for others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Work {
    /// Tokens, each counted once.
    pub tokens: u64,
    /// Milliseconds of its GPU, at most as long as somebody waited for it.
    pub gpu_millis: f64,
    /// Bytes of results that it sent to other devices.
    pub bytes: Bytes,
}

/// What it costs a token that experts lie elsewhere, on average.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ExpertWaits {
    /// Blocks for which other devices were asked.
    pub trips: f64,
    /// Milliseconds in which nothing but their answers was waited for; 0 before the first token.
    pub millis: f64,
    /// Of these, milliseconds in which the engine computed whose answer came last. The others are the way there and back.
    pub engine_millis: f64,
    /// Milliseconds of the asking device's own engine, with its readbacks.
    pub own_millis: f64,
    /// Bytes of vectors in calls and answers, those to second holders included.
    pub bytes: f64,
}

/// How long the experts of a block took, where so many other devices were asked for them at first. Not counted among these
/// are devices that were asked besides them or in their place: the time shows what that gave.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ExpertPhase {
    /// Other devices.
    pub asked: u16,
    /// Batches of decoded tokens since the plan began.
    pub passes: u32,
    /// Mean milliseconds from the router's choice to the last vector that was needed, the own ones included.
    pub millis: f64,
}
