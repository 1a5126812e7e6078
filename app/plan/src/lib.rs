//! Ids, units, weight units and the **Plan**: where every part of a model lives in a room. Pure data and checks, no I/O.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod arithmetic;
mod hedging;
mod ids;
mod kv_cache_type;
mod plan;
mod pool;
pub mod random;
mod recurrent;
mod sampling;
mod shape;
mod sharing;
mod unit;
mod work;

pub use arithmetic::{Arithmetic, UnknownArithmetic};
pub use hedging::Hedging;
pub use ids::{
    BlockIndex, BlockRange, Bytes, ConversationId, DeviceId, ExpertId, Millis, ModelId, PeerId, PlanEpoch, Position,
    StageId,
};
pub use kv_cache_type::{KV_PAGE_TOKENS, KvCacheType, UnknownKvCacheType};
pub use plan::{ExpertHolder, Plan, PlanError, RemoteExperts, Stage, WireType};
pub use pool::{ExpertPool, HolderPool, PooledExperts, divide_slots};
pub use recurrent::{CHECKPOINT_TOKENS, STATE_CONVERSATIONS, StateHistory, StateMoves};
pub use sampling::{SampledSteps, Sampling, SamplingWords};
pub use shape::{BlockShape, Cuts, FeedForwardShape, ModelShape};
pub use sharing::Sharing;
pub use unit::WeightUnit;
pub use work::{
    BatchToken, Candidates, Computed, ExpertOutputs, FirstToken, Input, KernelClass, LmHeadRequest, LmHeadTokens,
    LogitsRequest, Outcome, Route, Task, Then, Ticket, Work,
};
