//! Frames between peers, byte for byte. Encoding and bounds, no I/O.
//!
//! A frame is
//!
//! ```text
//! version   u16 LE      refused with one sentence if it is not ours
//! head      u32 LE      length of the head
//! head      postcard    the frame without its numbers (postcard's stable format)
//! tail      bytes       the numbers: f32 or f16, little endian, or raw file bytes
//! ```
//!
//! [`encode`] and [`decode`] are the one place every frame passes. What they make is sealed for one peer before it
//! leaves; the session's keys say who sent it, so a frame has no sender in it.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod activation;
mod answer_form;
mod codec;
mod control;
mod door_log;
mod doors;
mod frame;
mod logprobs;
mod prompt_sampling;
mod residency;
mod room;
mod rows;
mod signal;
mod succession;
mod tools;
mod values;

pub use activation::{
    ExpertCall, ExpertCancel, ExpertFailure, ExpertHint, ExpertResult, Forward, LmHeadOutput, LogitsResult, PassId,
    StageFault, StageFaultKind,
};
pub use answer_form::AnswerForm;
pub use codec::{FrameError, MAX_FRAME, VERSION, decode, encode};
pub use control::{
    CalibrationRuns, Contribution, Hello, LoadFault, ModelCard, ModelSource, PieceFault, PieceRequest, Prepare,
    PromptRequest, StandbyOrder, StartId, WorkerStatus, server_of,
};
pub use door_log::{LogEntry, LogEvent, LogKind, Way};
pub use doors::{
    BannedDevice, Doors, EarlierLinks, Invite, InviteId, InviteKind, IssuedInvite, LinkHolder, RevokedInvites,
    UnixSeconds,
};
pub use frame::{AnswerPart, AnswerStop, Frame, Leaving, Message, RequestId, Role, Timings};
pub use logprobs::{LogitOptions, Logprob, TokenLogprobs};
pub use potluck_plan::{Ends, Hedging, Sampling, Sharing};
pub use potluck_relay_api::Term;
pub use residency::{
    Checkers, ExpertPhase, ExpertWaits, Hold, HolderReport, Holding, Lineage, Residency, ResidencyChange, Work,
};
pub use room::{
    CreditView, DeviceKind, ExpertsView, ForecastView, HolderView, HopView, LayerChecksView, LoadPhase, LoadReport,
    MemberStatus, MemberView, PlanStatus, PlanView, RoomView,
};
pub use rows::{RowHashes, RowRange, Rows, RowsHash, RowsRequest, StageHashes};
pub use signal::{AttemptId, MAX_DESCRIPTION, Signal};
pub use succession::{DeputyChoice, Followed, LoggedTokens, OwnerSecrets, Received, Succession};
pub use tools::{ToolChoice, ToolOffer};
pub use values::round;
