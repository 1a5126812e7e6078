//! What an executor asks an engine to compute, and what comes back.
//!
//! A piece of [`Work`] is one submit and at most one readback. It carries all its inputs: an engine keeps weights and
//! KV cache, but no half-finished tokens, so any work can be repeated on another engine.

use serde::{Deserialize, Serialize};

use crate::{BiasedTokens, BlockIndex, BlockRange, ConversationId, ExpertId, LogitBias, Position, SampledSteps};

/// Identifies a piece of work, to match results with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Ticket(pub u64);

impl Ticket {
    /// Tickets from here on are the host's checks of other devices' work; no plan of a room has tickets this large. Devices have
    /// larger ones for work of their own.
    pub const FIRST_CHECK: Self = Self(1 << 60);
}

/// One token of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct BatchToken {
    /// The conversation whose KV cache it reads and extends.
    pub conversation: ConversationId,
    /// Its position; it attends to positions `0..=position` of its conversation.
    pub position: Position,
}

/// Which kernels compute a batch. A token's result depends on this class, never on the number of tokens beside it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum KernelClass {
    /// Matrix-vector kernels for 1 to [`Work::DECODE_TOKENS`] tokens: decode, verification of drafts, replay of decoded
    /// tokens.
    Decode,
    /// Tiled matrix-matrix kernels: chunks of a prompt, and their replay.
    Prefill,
}

/// The input of a batch.
#[derive(Clone, Debug, PartialEq)]
pub enum Input {
    /// Token ids to be embedded (the first stage).
    Tokens(Vec<u32>),
    /// Hidden vectors, tokens × hidden width, row-major (every other stage).
    Hidden(Vec<f32>),
    /// What a block's experts computed, wherever they are. The engine adds their weighted sum to the residual stream and
    /// goes on with the next block.
    Experts(ExpertOutputs),
}

/// The outputs of the experts that a router chose for a batch, with what their weighted sum is added to.
#[derive(Clone, Debug, PartialEq)]
pub struct ExpertOutputs {
    /// The block.
    pub block: BlockIndex,
    /// The residual stream after the token mixer, tokens × hidden width ([`Outcome::Routed`]).
    pub residual: Vec<f32>,
    /// The router's choice for each token. The sum is taken in this order, whoever computed an output, so that the
    /// result does not depend on where experts are.
    pub routes: Vec<ExpertRoute>,
    /// One vector of hidden width for each token and expert of `routes`, in that order, unweighted.
    pub outputs: Vec<f32>,
}

/// Where the first token of a continuation comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FirstToken {
    /// This token.
    Given(u32),
    /// The token chosen last, which is still on the GPU: the last work of this conversation ended in the LM head with
    /// [`LogitsRequest::Top`], or was a continuation; a sampled continuation goes on only from another one, whose recent
    /// tokens it keeps. This lets the next token be submitted before the last one is read
    /// back.
    Sampled,
}

/// What follows the blocks of a forward pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Then {
    /// Nothing is read back: only the KV cache is extended.
    Nothing,
    /// The hidden vectors come back, for the next stage.
    Hidden,
    /// The token mixer and router of one more block run; its experts are computed elsewhere.
    Route(BlockIndex),
    /// Final norm, LM head and selection of candidates.
    LmHead(LmHeadRequest),
}

/// Which tokens pass the LM head, and what comes back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct LmHeadRequest {
    /// Which tokens of the batch.
    pub tokens: LmHeadTokens,
    /// What to return of the logits.
    pub logits: LogitsRequest,
}

/// Which tokens of a batch pass the LM head.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum LmHeadTokens {
    /// The last one: decode, and the end of a prompt.
    Last,
    /// Every one: verification and teacher-forced comparison.
    All,
}

/// What to return of a token's logits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum LogitsRequest {
    /// The best `n` (1 is greedy), best first, ties to the lowest id. At most [`LogitsRequest::MAX_TOP`].
    Top(u16),
    /// The same with the log-sum-exp of all logits, in [`Candidates::log_sum_exp`].
    TopWithSum(u16),
    /// All of them.
    Logits,
}

impl LogitsRequest {
    /// Largest `n` of [`LogitsRequest::Top`].
    pub const MAX_TOP: u16 = 128;

    /// How many of the best it wants; `None`: all logits.
    #[must_use]
    pub const fn candidates(self) -> Option<u16> {
        match self {
            Self::Top(n) | Self::TopWithSum(n) => Some(n),
            Self::Logits => None,
        }
    }

    /// It wants the log-sum-exp.
    #[must_use]
    pub const fn sums(self) -> bool {
        matches!(self, Self::TopWithSum(_))
    }

    /// A request whose result holds what both want of candidates; `None` if one of them wants all logits.
    #[must_use]
    pub fn of_both(self, other: Self) -> Option<Self> {
        let n = self.candidates()?.max(other.candidates()?);
        Some(if self.sums() || other.sums() { Self::TopWithSum(n) } else { Self::Top(n) })
    }
}

/// The experts a router chose for one token, largest weight first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ExpertRoute {
    /// Experts with their weights; at most as many as the model uses per token.
    pub experts: Vec<(ExpertId, f32)>,
}

/// What to compute.
#[derive(Clone, Debug, PartialEq)]
pub enum Task {
    /// A batch through consecutive blocks; all their experts are the engine's own.
    Forward {
        /// The tokens, positions ascending within a conversation.
        batch: Vec<BatchToken>,
        /// Kernels to use.
        class: KernelClass,
        /// Their input.
        input: Input,
        /// Blocks to compute; may be empty.
        blocks: BlockRange,
        /// What follows.
        then: Then,
        /// What is added to the logits of which tokens, if the LM head follows. Of a token in several of these, the last one counts.
        /// At most [`Work::DECODE_TOKENS`] tokens with a bias pass the LM head.
        biases: Vec<BiasedTokens>,
    },
    /// Multi-step decode on an engine that holds the whole model: the token chosen at each step is that of the next.
    /// Greedily it is the best candidate, and [`Outcome::Candidates`] has one candidate per step. Sampled, each step has
    /// [`LogitsRequest::MAX_TOP`] of them and the token in [`Candidates::sampled`]. Surplus steps do no harm: the next work
    /// of the conversation begins at an earlier position, which truncates its KV cache.
    Continue {
        /// Conversation and position of the first step.
        row: BatchToken,
        /// Its token.
        token: FirstToken,
        /// Steps, 1 to [`Work::MAX_STEPS`], all of class [`KernelClass::Decode`].
        steps: u16,
        /// How the tokens are sampled; `None`: greedily.
        sampling: Option<SampledSteps>,
    },
    /// Outputs of some experts of a block, for a stage elsewhere (or the stage's own share).
    Experts {
        /// The block.
        block: BlockIndex,
        /// Kernels to use.
        class: KernelClass,
        /// Vectors after the feed-forward norm, tokens × hidden width.
        normed: Vec<f32>,
        /// For each token its experts; at most as many as the model uses per token, none twice.
        experts: Vec<Vec<ExpertId>>,
        /// The router's weights of `experts`: then one weighted sum a token comes back instead of a vector for each of its experts. Only
        /// for tokens of which these are all experts, in the router's order: the sum has the bits that the stage would get.
        sum: Option<Vec<Vec<f32>>>,
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
    /// Most tokens of class [`KernelClass::Decode`] in one piece of work.
    pub const DECODE_TOKENS: usize = 16;
    /// Most steps of one [`Task::Continue`].
    pub const MAX_STEPS: u16 = 8;
    /// Most tokens of class [`KernelClass::Prefill`] in one piece of work. An engine with less scratch memory splits it.
    pub const PREFILL_TOKENS: usize = 512;
}

/// The best candidates for the next token, best first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Candidates {
    /// Token ids.
    pub ids: Vec<u32>,
    /// Their logits.
    pub logits: Vec<f32>,
    /// The token that a continuation sampled from them and went on with.
    pub sampled: Option<u32>,
    /// The log-sum-exp of all logits of the vocabulary: the probability of a candidate is `exp(logit - log_sum_exp)`. Only if it was
    /// asked for ([`LogitsRequest::TopWithSum`]).
    #[serde(default)]
    pub log_sum_exp: Option<f32>,
}

impl Candidates {
    /// The same without banned tokens, unless all are.
    #[must_use]
    pub fn without_banned(&self) -> Self {
        let is_allowed = |(_, logit): &(&u32, &f32)| **logit > LogitBias::BANNED;
        let (ids, logits): (Vec<u32>, Vec<f32>) = self.ids.iter().zip(&self.logits).filter(is_allowed).unzip();
        if ids.is_empty() { self.clone() } else { Self { ids, logits, ..self.clone() } }
    }

    /// What the requester of so many candidates, with or without the log-sum-exp, gets of them.
    pub fn cut(&mut self, request: LogitsRequest) {
        if let Some(n) = request.candidates() {
            self.ids.truncate(usize::from(n));
            self.logits.truncate(usize::from(n));
        }
        if !request.sums() {
            self.log_sum_exp = None;
        }
    }
}

/// How a piece of work ended.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// [`Then::Nothing`] is done.
    Done,
    /// Tokens × hidden width.
    Hidden(Vec<f32>),
    /// [`Then::Route`]: what the experts need, and what their sum is added to.
    Routed {
        /// The residual stream after the token mixer, tokens × hidden width.
        residual: Vec<f32>,
        /// The same after the feed-forward norm.
        normed: Vec<f32>,
        /// The router's choice for each token.
        routes: Vec<ExpertRoute>,
    },
    /// [`Task::Experts`]: one unweighted vector of hidden width for each token and expert, in the order of the task; or for each token
    /// its weighted sum.
    ExpertOutputs(Vec<f32>),
    /// [`Task::Experts`]: some experts that it names are not loaded. They can be loaded and the task repeated.
    Missing {
        /// The block.
        block: BlockIndex,
        /// The experts that are not loaded, ascending.
        experts: Vec<ExpertId>,
    },
    /// [`LogitsRequest::Top`]: one for each token that passed the LM head. [`Task::Continue`]: one for each step.
    Candidates(Vec<Candidates>),
    /// [`LogitsRequest::Logits`]: tokens × vocabulary.
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
