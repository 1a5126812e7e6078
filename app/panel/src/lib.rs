//! Typed messages between the page and the node, with the build's id. Floor 0: plain data.
//!
//! The page sends [`ToNode`], the node answers with [`ToPage`]. A [`Status`] is a whole snapshot, so a page that reloads
//! or misses one is never out of step. Both sides compare [`BUILD`] first: a stale worker says so in one sentence.
#![forbid(unsafe_code)]

mod answer;
mod bench;
mod command;
mod status;
mod timeline;

pub use answer::{AnswerEnd, AnswerEvent, AnswerTimings, Message, RequestId, Role, SamplingChoice};
pub use bench::{
    BenchChoice, BenchDevice, BenchEvent, BenchKernel, BenchKernels, BenchLoad, BenchModel, BenchRates, BenchReport,
    BenchResult, BenchRun, BenchWorkload, CacheType,
};
pub use command::{ContributeChoice, HostChoice, ModelSource, Prompt, StoredModel, ToNode, ToPage};
pub use potluck_plan::Sharing;
pub use status::{
    Connection, DeviceKind, DeviceReport, ForecastReport, HopReport, Loading, Member, MemberLink, MemberState,
    ModelReport, Notice, NoticeLevel, PlanReport, PlanState, Roles, RoomReport, SelfTest, SelfTestState, StageReport,
    Status, Waiting,
};
pub use timeline::{Mark, MarkKind, Timeline, TokenSample};

/// Identifies the build that both sides came from (`POTLUCK_BUILD` at compile time, else the crate's version).
pub const BUILD: &str = match option_env!("POTLUCK_BUILD") {
    Some(build) => build,
    None => env!("CARGO_PKG_VERSION"),
};
