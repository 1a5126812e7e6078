//! Typed messages between the page and the node, with the build's id. Plain data, no I/O.
//!
//! What peers say to each other as well, such as members, answers and the model, keeps the protocol's types; only what a
//! page needs besides has types here.
//!
//! The page sends [`ToNode`], the node answers with [`ToPage`]. A [`Status`] is a whole snapshot, so a page that reloads
//! or misses one is never out of step. Both sides compare [`BUILD`] first: a stale worker says so in one sentence.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod access_tokens;
mod bench;
mod command;
mod decision;
mod direct;
mod file_pages;
mod hub;
mod keys;
mod model_link;
mod notice;
mod status;
mod timeline;

/// Where `potluck-node serve` answers programs, unless told otherwise.
pub const API_ADDRESS: &str = "127.0.0.1:8788";

pub use access_tokens::{AccessToken, AccessTokens, BadAccess};
pub use bench::{
    BenchChoice, BenchDevice, BenchEvent, BenchKernel, BenchKernels, BenchLoad, BenchModel, BenchRates, BenchReport,
    BenchResult, BenchRun, BenchWorkload,
};
pub use command::{ContributeChoice, ExpertGuesser, HostChoice, InviteChoice, StoredModel, ToNode, ToPage};
pub use decision::{
    AvoidedReason, Compared, Decision, DeferredReason, DeviceDecision, DraftDecision, Drafter, EndsCompared,
    HedgingDecision, HolderDecision, KeptReason, LeftOut, NoPlanReason, Part, PartReason, Place, PlanDecision,
    PredictionDecision, ReplacedReason, SpreadingCompared, StandbyDecision, Turn, WhyPlan,
};
pub use direct::DirectConnections;
pub use hub::{ListedFile, Repository};
pub use keys::{KeySeed, RoomKeys};
pub use model_link::{BadModelLink, ModelLink};
pub use notice::{Condition, Notice, NoticeLevel};
pub use potluck_plan::{
    Arithmetic, BadPooling, Bytes, Channel, DeviceId, Ends, Hedging, KvCacheType, LogitBias, ModelId, PeerId,
    PlanEpoch, Pooling, ReasoningEffort, Sharing, StageId, WireType,
};
pub use potluck_predict::{ForesightReport, Guessing, PredictorKind};
pub use potluck_protocol::{
    AnswerForm, AnswerPart, AnswerStop, CreditView, DeputyChoice, DeviceKind, Doors, ExpertsView, ForecastView,
    HolderView, HopView, Invite, InviteId, InviteKind, LayerChecksView, Leaving, LoadPhase, LoadReport, LogEntry,
    LogEvent, LogitOptions, Logprob, MemberStatus, MemberView, Message, ModelCard, ModelSource, PlanStatus,
    PromptRequest, RequestId, Role, Sampling, Term, Timings, TokenLogprobs, ToolChoice, ToolOffer, UnixSeconds, Way,
    Work,
};
pub use status::{
    BannedReport, CallTimes, Connection, DeviceReport, DoorsReport, DraftCount, DraftReport, ExpertHolding,
    InviteReport, InviteState, OnDemandReport, PathReport, PlanReport, Roles, RoomReport, Sealing, SelfTest,
    SelfTestState, ShadowReport, StageReport, Status, Waiting,
};
pub use timeline::{Anchor, Mark, MarkKind, Picture, Shape, Timeline, TokenSample};

/// Identifies the build that both sides came from (`POTLUCK_BUILD` at compile time, else the crate's version).
pub const BUILD: &str = match option_env!("POTLUCK_BUILD") {
    Some(build) => build,
    None => env!("CARGO_PKG_VERSION"),
};
