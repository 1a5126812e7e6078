//! What those who decide and those who compute must agree on: ids and units, the sizes of a model, the **Plan** (where every
//! part of a model lives in a room), the [`Work`] that an executor asks of an engine, and how tokens are sampled from logits.
//!
//! A type belongs here if `engine` and `swarm` (or `planner`) both use it, or a frame carries it between them. What only one
//! of them uses belongs to that crate, what is read from a file to `model`, frames to `protocol`, and decisions to `planner`.
//! Plain data with its checks and its arithmetic, no I/O.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod allowed_tokens;
mod arithmetic;
mod channel;
mod hedging;
mod ids;
mod kv_cache_type;
mod logit_bias;
mod plan;
mod pool;
mod pooling;
pub mod random;
mod recurrent;
mod sampling;
mod shape;
mod sharing;
mod unit;
mod wire_type;
mod work;

pub use allowed_tokens::{AllowedTokens, BadAllowedTokens};
pub use arithmetic::{Arithmetic, UnknownArithmetic};
pub use channel::{Channel, ChannelText, ReasoningEffort};
pub use hedging::{Hedging, UnknownHedging};
pub use ids::{
    BlockIndex, BlockRange, Bytes, ConversationId, DeviceId, ExpertId, Millis, ModelId, PeerId, PlanEpoch, Position,
    StageId,
};
pub use kv_cache_type::{KV_PAGE_TOKENS, KvCacheType, UnknownKvCacheType};
pub use logit_bias::{BadLogitBias, BiasedTokens, LogitBias};
pub use plan::{ExpertHolder, Plan, PlanError, RemoteExperts, Stage};
pub use pool::{ExpertPool, HolderPool, PooledExperts, divide_slots};
pub use pooling::{BadPooling, Pooling};
pub use recurrent::{CHECKPOINT_TOKENS, STATE_CONVERSATIONS, StateHistory, StateMoves};
pub use sampling::{SampledSteps, Sampling, SamplingWords};
pub use shape::{BlockShape, Cuts, FeedForwardShape, ModelShape};
pub use sharing::{Ends, Sharing};
pub use unit::WeightUnit;
pub use wire_type::{UnknownWireType, WireType};
pub use work::{
    BatchToken, Candidates, Computed, ExpertOutputs, ExpertRoute, FirstToken, Input, KernelClass, LmHeadRequest,
    LmHeadTokens, LogitsRequest, Outcome, Task, Then, Ticket, Work,
};
