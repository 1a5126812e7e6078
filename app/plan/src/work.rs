//! Steps as tickets: what an executor asks an engine to compute, and what comes back.
//!
//! A piece of [`Work`] is one submit and at most one readback. It carries everything it needs (the engine keeps
//! weights and state, no half-finished tokens), so it can be repeated anywhere.

use serde::{Deserialize, Serialize};

use crate::{BlockIndex, BlockRange, ConversationId, ExpertId, Position};

/// Names a piece of work, so that its result can be told from others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Ticket(pub u64);

/// One row of a batch: a token of a conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct BatchToken {
    /// Whose state it reads and extends.
    pub conversation: ConversationId,
    /// Where it stands; it attends to positions `0..=position` of its conversation.
    pub position: Position,
}

/// Which kernels compute the rows. A row's result depends on its class, never on how many rows run beside it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum KernelClass {
    /// Matrix-vector kernels, 1 to [`Work::DECODE_TOKENS`] rows: decode, verification of drafts, replay of decoded rows.
    Decode,
    /// Tiled matrix kernels: chunks of a prompt, and their replay.
    Prefill,
}

/// What the rows start from.
#[derive(Clone, Debug, PartialEq)]
pub enum Input {
    /// Token ids, one a row, to be embedded (the first stage).
    Tokens(Vec<u32>),
    /// Hidden vectors, rows × hidden width, row-major (every other stage, and after remote experts).
    Hidden(Vec<f32>),
}

/// Where the first token of a continuation comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FirstToken {
    /// It is known.
    Given(u32),
    /// The best candidate of the row before, which the engine still has on the GPU: the last work of this conversation
    /// passed the head with [`LogitsRequest::Top`], or was a continuation. So a token is submitted before the last one is read.
    Sampled,
}

/// What follows the blocks of a forward pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Then {
    /// Nothing is read back: only the state counts.
    Nothing,
    /// The hidden vectors come back, for the next stage.
    Hidden,
    /// The mixer and router of one more block run, and its experts are somebody else's.
    Route(BlockIndex),
    /// Final norm, output matrix and choice of candidates.
    LmHead(LmHeadRequest),
}

/// Which rows pass the head, and what comes back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct LmHeadRequest {
    /// Which rows.
    pub tokens: LmHeadTokens,
    /// What of the logits.
    pub logits: LogitsRequest,
}

/// Which rows of a batch pass the head.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum LmHeadTokens {
    /// The last one: decode, and the end of a prompt.
    Last,
    /// Every one: verification and teacher-forced comparison.
    All,
}

/// What comes back of a row's logits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum LogitsRequest {
    /// The best `n` (1 is greedy), best first, ties to the lowest id. At most [`LogitsRequest::MOST`].
    Top(u16),
    /// All of them.
    Logits,
}

impl LogitsRequest {
    /// Largest `n` of [`LogitsRequest::Top`].
    pub const MAX_TOP: u16 = 128;
}

/// The experts a router chose for one row, in its order (largest weight first).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Route {
    /// Expert and weight; at most `used` of the model.
    pub experts: Vec<(ExpertId, f32)>,
}

/// What to compute.
#[derive(Clone, Debug, PartialEq)]
pub enum Task {
    /// Rows through consecutive blocks, all of whose experts are the engine's own.
    Forward {
        /// The rows, positions ascending within a conversation.
        batch: Vec<BatchToken>,
        /// Kernels to use.
        class: KernelClass,
        /// What they start from.
        input: Input,
        /// Blocks to pass; may be empty.
        blocks: BlockRange,
        /// What follows.
        then: Then,
    },
    /// Greedy tokens one after another, on an engine that holds everything: each step's best candidate is the token of
    /// the next row. [`Outcome::Candidates`] has one candidate a step. Steps that turn out to be too many do no harm:
    /// the next work of the conversation begins at an earlier position, which truncates its state.
    Continue {
        /// The first row.
        row: BatchToken,
        /// Its token.
        token: FirstToken,
        /// Rows, 1 to [`Work::STEPS`], all of class [`KernelClass::Decode`].
        steps: u16,
    },
    /// Weighted sums over some experts of a block, for a stage elsewhere (or the stage's own share).
    Experts {
        /// The block.
        block: BlockIndex,
        /// Kernels to use.
        class: KernelClass,
        /// Vectors after the feed-forward norm, rows × hidden width.
        normed: Vec<f32>,
        /// For each row the experts to sum, with their weights.
        routes: Vec<Route>,
    },
}

/// A task with its ticket.
#[derive(Clone, Debug, PartialEq)]
pub struct Work {
    /// Its name.
    pub ticket: Ticket,
    /// What to compute.
    pub task: Task,
}

impl Work {
    /// Most rows of class [`KernelClass::Decode`] in one piece of work.
    pub const DECODE_TOKENS: usize = 16;
    /// Most steps of one [`Task::Continue`].
    pub const MAX_STEPS: u16 = 8;
    /// Most rows of class [`KernelClass::Prefill`] in one piece of work. An engine that has less room cuts it.
    pub const PREFILL_TOKENS: usize = 512;
}

/// The best candidates for the token after a row, best first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Candidates {
    /// Token ids.
    pub ids: Vec<u32>,
    /// Their logits.
    pub logits: Vec<f32>,
}

/// How a piece of work ended.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// [`Then::Nothing`] is done.
    Done,
    /// Rows × hidden width.
    Hidden(Vec<f32>),
    /// [`Then::Route`]: what the experts need, and what their sum is added to.
    Routed {
        /// The residual stream after the mixer, rows × hidden width.
        residual: Vec<f32>,
        /// The same after the feed-forward norm.
        normed: Vec<f32>,
        /// The router's choice, one a row.
        routes: Vec<Route>,
    },
    /// [`Task::Experts`]: rows × hidden width.
    Sum(Vec<f32>),
    /// [`LogitsRequest::Top`]: one a row that passed the head. [`Task::Continue`]: one a step.
    Candidates(Vec<Candidates>),
    /// [`LogitsRequest::Logits`]: rows × vocabulary.
    Logits(Vec<f32>),
    /// The GPU device is gone; everything on it too.
    DeviceLost,
    /// The work was dropped before it ran.
    Cancelled,
    /// The engine could not do it; one sentence says why.
    Failed(String),
}

/// A result, with what it cost.
#[derive(Clone, Debug, PartialEq)]
pub struct Computed {
    /// Of which work.
    pub ticket: Ticket,
    /// How it ended.
    pub outcome: Outcome,
    /// Milliseconds from submit to the mapped result, on the engine's clock.
    pub millis: f64,
}
