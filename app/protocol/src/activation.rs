//! Frames of a token's pass: stage to stage, stage to experts and back, last stage to coordinator.

use potluck_plan::{
    AllowedTokens, BlockIndex, Candidates, ConversationId, ExpertId, KernelClass, LmHeadRequest, LogitBias, PeerId,
    PlanEpoch, Position, SampledSteps, StageId, WireType,
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
    /// Multi-step decode: tokens to compute after this one, each from the one before, by a stage that holds the whole
    /// model. The result has candidates for each. 0 otherwise.
    pub further_steps: u16,
    /// How the further tokens are sampled; `None`: greedily.
    pub sampling: Option<SampledSteps>,
    /// What the last stage computes of the LM head; `None`: it only reports that the chunk has passed.
    pub lm_head: Option<LmHeadRequest>,
    /// What is added to the logits of each token that passes the LM head. Not in multi-step decode.
    pub bias: LogitBias,
    /// Which tokens may be chosen in place of each token that passes the LM head, in their order; none: all may. Not in multi-step decode.
    pub allowed: Vec<AllowedTokens>,
    /// Engine milliseconds at each stage passed so far, in order.
    pub stage_millis: Vec<f64>,
    /// Number format of `hidden` in the tail.
    pub wire: WireType,
    /// Hidden vectors, tokens × hidden width; empty for the first stage.
    #[serde(skip)]
    pub hidden: Vec<f32>,
}

/// A call of experts on another worker, one frame for each holder and block: the vectors of the tokens that use this
/// holder, and the experts that each of them needs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ExpertCall {
    /// Dropped unless it is the receiver's committed plan.
    pub epoch: PlanEpoch,
    /// Chosen by the caller; comes back with the outputs. The same call may come again: a frame may be lost.
    pub call: u64,
    /// The block.
    pub block: BlockIndex,
    /// Kernels to use.
    pub class: KernelClass,
    /// For each token that was sent, the experts to compute: at least one, none twice.
    pub rows: Vec<Vec<ExpertId>>,
    /// The router's weights of `rows`, if the answer shall have one weighted sum a token: then a row has all experts of its token, in the
    /// router's order. Empty: the answer has a vector for each token and expert, and the weights stay with the stage.
    pub weights: Vec<Vec<f32>>,
    /// Number format of `normed` in the tail, and of the answer.
    pub wire: WireType,
    /// Vectors after the feed-forward norm, `rows` × hidden width.
    #[serde(skip)]
    pub normed: Vec<f32>,
}

/// The outputs of one call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ExpertResult {
    /// Of the call.
    pub epoch: PlanEpoch,
    /// Of the call.
    pub call: u64,
    /// Milliseconds that the holder's engine took.
    pub millis: f64,
    /// Why there are no outputs.
    pub failed: Option<ExpertFailure>,
    /// Number format of `outputs` in the tail.
    pub wire: WireType,
    /// One unweighted vector of hidden width for each token and expert, in the order of the call; or one weighted sum a token, if the call
    /// has weights.
    #[serde(skip)]
    pub outputs: Vec<f32>,
}

/// Why a holder has no outputs. Another one is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ExpertFailure {
    /// It does not hold one of the experts.
    NotHere,
    /// The stage has too many calls open.
    Busy,
    /// The call's numbers cannot be right.
    BadCall,
    /// Its GPU is gone.
    DeviceLost,
    /// Its engine could not do it.
    Failed,
    /// It does not compute for this plan, or not any more.
    NoPlan,
}

/// Nobody waits for a call any more: another holder was quicker. What has not begun is dropped; nothing is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExpertCancel {
    /// Of the call.
    pub epoch: PlanEpoch,
    /// Of the call.
    pub call: u64,
}

/// Experts that a stage will probably call soon, for a holder that loads them on demand. A newer hint replaces an older one. A
/// wrong guess costs the load of a few experts, at most of a quarter of the holder's slots.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExpertHint {
    /// The plan.
    pub epoch: PlanEpoch,
    /// The experts, those that are needed first first.
    pub experts: Vec<(BlockIndex, ExpertId)>,
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
    ExpertsUnreachable {
        /// The expert's block.
        block: BlockIndex,
        /// Devices that are there and said that they cannot compute it, or said nothing.
        failed: Vec<PeerId>,
    },
    /// What this peer sent, or its own engine if it is the reporter, has the wrong size or contains a value that is
    /// not finite. The room goes on without it.
    BadResult(PeerId),
    /// Anything else, in one sentence.
    Failed(String),
    /// A holder has answered in another number format than it was asked in. The room goes on without it.
    OtherWireType {
        /// Who.
        holder: PeerId,
        /// In which format.
        answered: WireType,
    },
}

impl StageFaultKind {
    /// Whose numbers are wrong.
    #[must_use]
    pub const fn accused(&self) -> Option<PeerId> {
        match self {
            Self::BadResult(peer) | Self::OtherWireType { holder: peer, .. } => Some(*peer),
            Self::Gap(_) | Self::DeviceLost | Self::ExpertsUnreachable { .. } | Self::Failed(_) => None,
        }
    }
}
