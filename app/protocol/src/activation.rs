//! Frames of a token's pass: stage to stage, stage to experts and back, last stage to coordinator.

use potluck_plan::{
    BlockIndex, Candidates, ConversationId, KernelClass, LmHeadRequest, PeerId, PlanEpoch, Position, Route, StageId,
    WireType,
};
use serde::{Deserialize, Serialize};

/// Number of a chunk that the coordinator sent, above those of all earlier chunks of any plan. A result with another
/// number than the awaited one was sent before a rewind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct PassId(pub u64);

/// A chunk of tokens on its way through the stages. The receiver first truncates the conversation's KV cache to
/// `base`, so replay, drafts, regenerate and recovery are one operation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Forward {
    /// Dropped unless it is the receiver's committed plan.
    pub epoch: PlanEpoch,
    /// The receiving stage.
    pub stage: StageId,
    /// Number of the chunk; comes back with the result.
    pub pass: PassId,
    /// Conversations whose KV cache was valid when the chunk was sent, on this plan or another: plans share the
    /// pages. The receiver frees all others that got no newer tokens. So what must be freed for this chunk is freed
    /// before it, at every stage, whatever frames were lost.
    pub live: Vec<ConversationId>,
    /// The conversation.
    pub conversation: ConversationId,
    /// Position of the first token.
    pub base: Position,
    /// Kernels to use.
    pub class: KernelClass,
    /// Number of tokens.
    pub count: u32,
    /// Their ids, for the first stage only: it embeds them. No other stage needs them, so no other gets them.
    pub tokens: Vec<u32>,
    /// Multi-step decode: greedy tokens to compute after this one, each from the one before, by a stage that holds
    /// the whole model. The result has candidates for each. 0 otherwise.
    pub further_steps: u16,
    /// What the last stage computes of the LM head; `None`: it only reports that the chunk has passed.
    pub lm_head: Option<LmHeadRequest>,
    /// Engine milliseconds at each stage passed so far, in order.
    pub stage_millis: Vec<f64>,
    /// Number format of `hidden` in the tail.
    pub wire: WireType,
    /// Hidden vectors, tokens × hidden width; empty for the first stage.
    #[serde(skip)]
    pub hidden: Vec<f32>,
}

/// A call of experts on another worker, one frame for each worker and block: the hidden vectors once, and the experts
/// that each token needs.
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
    /// For each token the experts to sum, with their weights.
    pub routes: Vec<Route>,
    /// Number format of `normed` in the tail, and of the answer.
    pub wire: WireType,
    /// Vectors after the feed-forward norm, tokens × hidden width.
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
    /// Tokens × hidden width.
    #[serde(skip)]
    pub sum: Vec<f32>,
}

/// The last stage's result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LogitsResult {
    /// Of the chunk.
    pub epoch: PlanEpoch,
    /// Of the chunk.
    pub pass: PassId,
    /// Of the chunk.
    pub conversation: ConversationId,
    /// Position of the first token.
    pub base: Position,
    /// Number of tokens that passed all stages.
    pub tokens: u32,
    /// The requested output of the LM head.
    pub result: LmHeadOutput,
    /// Engine milliseconds at each stage, in order.
    pub stage_millis: Vec<f64>,
}

/// Output of the LM head.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum LmHeadOutput {
    /// No logits were requested; the chunk has passed.
    NotRequested,
    /// The best candidates of each token whose logits were requested.
    Candidates(Vec<Candidates>),
}

/// A stage cannot do what it was asked.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StageFault {
    /// Of the plan.
    pub epoch: PlanEpoch,
    /// The stage.
    pub stage: StageId,
    /// The conversation.
    pub conversation: ConversationId,
    /// The chunk; `None` if the fault concerns no particular one.
    pub pass: Option<PassId>,
    /// Why.
    pub kind: StageFaultKind,
}

/// Why a stage cannot go on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum StageFaultKind {
    /// Its KV cache ends here, before the base of the chunk: replay from this position.
    Gap(Position),
    /// Its GPU device is gone.
    DeviceLost,
    /// No holder of an expert answers.
    ExpertsUnreachable(BlockIndex),
    /// What this peer sent, or its own engine if it is the reporter, has the wrong size or contains a value that is
    /// not finite. The room goes on without it.
    BadResult(PeerId),
    /// Anything else, in one sentence.
    Failed(String),
}
