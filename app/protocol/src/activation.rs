//! Frames on a token's way: stage to stage, stage to experts and back, last stage to coordinator.

use potluck_plan::{
    BlockIndex, Candidates, ConversationId, KernelClass, LmHeadRequest, PeerId, PlanEpoch, Position, Route, StageId,
    WireType,
};
use serde::{Deserialize, Serialize};

/// Names rows that the coordinator sent: larger than those of all rows it sent before, whatever the plan. A result with another
/// name than the one awaited was sent before a rewind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct PassId(pub u64);

/// Rows on their way through the stages. The receiver first truncates its state of the conversation to `base`, so
/// replay, drafts, regenerate and recovery are one operation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Forward {
    /// Dropped unless it is the receiver's committed plan.
    pub epoch: PlanEpoch,
    /// The stage that is to compute it.
    pub stage: StageId,
    /// Names these rows; comes back with the result.
    pub pass: PassId,
    /// Conversations with state that counted when these rows were sent, on this plan or another: plans share the pages. The
    /// receiver frees all others that got no newer rows, so what must be freed for these rows is freed before them, at every
    /// stage, whatever was lost on the way.
    pub live: Vec<ConversationId>,
    /// Whose state.
    pub conversation: ConversationId,
    /// Position of the first row.
    pub base: Position,
    /// Kernels to use.
    pub class: KernelClass,
    /// Token ids, one a row.
    pub tokens: Vec<u32>,
    /// Greedy tokens to compute behind the row, each from the one before, by a stage that holds the whole model: the answer
    /// has candidates for each. 0 otherwise.
    pub further_steps: u16,
    /// What the last stage does; `None`: it only reports that the rows are through.
    pub head: Option<LmHeadRequest>,
    /// Milliseconds of the engine at each stage that the rows have passed, in order.
    pub stage_millis: Vec<f64>,
    /// Number format of `hidden` in the tail.
    pub wire: WireType,
    /// Hidden vectors, rows × hidden width; empty for the first stage.
    #[serde(skip)]
    pub hidden: Vec<f32>,
}

/// One frame per worker and block: the hidden vectors once, and which experts of the worker each row needs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ExpertCall {
    /// Dropped unless it is the receiver's committed plan.
    pub epoch: PlanEpoch,
    /// Chosen by the caller; comes back with the sum.
    pub call: u64,
    /// The block.
    pub block: BlockIndex,
    /// Kernels to use.
    pub class: KernelClass,
    /// For each row the experts to sum, with their weights.
    pub routes: Vec<Route>,
    /// Number format of `normed` in the tail, and of the answer.
    pub wire: WireType,
    /// Vectors after the feed-forward norm, rows × hidden width.
    #[serde(skip)]
    pub normed: Vec<f32>,
}

/// The weighted sum over the experts of one call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ExpertSum {
    /// Of the call.
    pub epoch: PlanEpoch,
    /// Of the call.
    pub call: u64,
    /// Why there is no sum, in one sentence.
    pub failed: Option<String>,
    /// Number format of `sum` in the tail.
    pub wire: WireType,
    /// Rows × hidden width.
    #[serde(skip)]
    pub sum: Vec<f32>,
}

/// What the last stage tells the coordinator.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LogitsResult {
    /// Of the rows.
    pub epoch: PlanEpoch,
    /// Of the rows.
    pub pass: PassId,
    /// Of the rows.
    pub conversation: ConversationId,
    /// Position of the first row.
    pub base: Position,
    /// Number of rows that are through all stages.
    pub tokens: u32,
    /// What of the head was asked for.
    pub result: LmHeadOutput,
    /// Milliseconds of the engine at each stage, in order.
    pub stage_millis: Vec<f64>,
}

/// The head's answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum LmHeadOutput {
    /// No head was asked for; the rows are through.
    NotRequested,
    /// The best candidates of each row that passed the head.
    Candidates(Vec<Candidates>),
}

/// A stage cannot do what it was asked.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StageFault {
    /// Of the plan.
    pub epoch: PlanEpoch,
    /// The stage.
    pub stage: StageId,
    /// Whose rows.
    pub conversation: ConversationId,
    /// Which rows; nothing if it is about no rows in particular.
    pub pass: Option<PassId>,
    /// Why.
    pub kind: StageFaultKind,
}

/// Why a stage cannot go on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum StageFaultKind {
    /// Its state ends here, before the base of the rows: replay from this position.
    Gap(Position),
    /// Its GPU device is gone.
    DeviceLost,
    /// No holder of an expert answers.
    ExpertsUnreachable(BlockIndex),
    /// What this peer sent, or its own engine if it is the reporter, has another size than its rows or holds a value that is no
    /// number. The room goes on without it.
    BadResult(PeerId),
    /// Anything else, in one sentence.
    Failed(String),
}
