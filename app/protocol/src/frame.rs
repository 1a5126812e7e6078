//! All frames.

use potluck_plan::{ModelId, PlanEpoch};
use serde::{Deserialize, Serialize};

use crate::{
    CalibrationRuns, ExpertCall, ExpertSum, Forward, Hello, LoadFault, LogitsResult, ModelCard, PieceRequest, Prepare,
    PromptRequest, RoomView, StageFault, StandbyOrder, WorkerStatus,
};

/// Names a prompt within the asking peer's session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct RequestId(pub u32);

/// Who wrote a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Instructions for the model.
    System,
    /// A person.
    User,
    /// The model.
    Assistant,
}

/// One message of a conversation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Message {
    /// Who wrote it.
    pub role: Role,
    /// Its text.
    pub content: String,
}

/// A step of an answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum AnswerPart {
    /// Others are before it; 1 is next.
    Queued(u32),
    /// Tokens of the prompt read, of how many.
    Reading(u32, u32),
    /// More text.
    Text {
        /// Number of this piece, from 0: pieces lost on the way are noticed and asked for again.
        index: u32,
        /// Appended to the answer.
        delta: String,
        /// The tokens behind it.
        tokens: Vec<u32>,
    },
    /// What a lost device held is rebuilt; one sentence.
    Recovering(String),
    /// Nothing more comes.
    End {
        /// Pieces of text there are.
        pieces: u32,
        /// Why it ended.
        stop: AnswerStop,
        /// What it took.
        timings: Timings,
    },
    /// Answer to [`Frame::Resume`]: the coordinator has never heard of the question (or forgot it in a reload).
    Unknown,
}

/// Why an answer ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum AnswerStop {
    /// The model was done.
    Complete,
    /// `max_tokens` or the context is reached.
    Length,
    /// Somebody stopped it.
    Stopped,
    /// One sentence with what to do.
    Failed(String),
}

/// What an answer took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Timings {
    /// Tokens of the prompt.
    pub prompt_tokens: u32,
    /// Of these, tokens whose state was still there.
    pub reused_tokens: u32,
    /// Tokens written.
    pub answer_tokens: u32,
    /// From the prompt to the first token.
    pub first_token_ms: f64,
    /// What was expected of it when its first rows were read, 0 if nothing was: it waited for others.
    pub expected_first_ms: f64,
    /// From the first token to the last.
    pub decode_ms: f64,
    /// Positions of context used.
    pub context_used: u32,
    /// Positions of context there are.
    pub context: u32,
}

/// A message from peer to peer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Frame {
    /// Who the sender is.
    Hello(Hello),
    /// The coordinator does not let the peer in: one sentence.
    Refused(String),
    /// The sender is there; `sent` is its clock in milliseconds and comes back in [`Frame::HeartbeatBack`].
    Heartbeat {
        /// The sender's clock.
        sent: f64,
        /// How it is, if it lends.
        status: Option<WorkerStatus>,
    },
    /// Answer to a heartbeat.
    HeartbeatBack {
        /// The asker's clock.
        sent: f64,
        /// Bytes that came with the question.
        probed: u32,
        /// The sender has nothing to compute or to load, so it answered at once.
        idle: bool,
    },
    /// Bytes that mean nothing, for measuring how fast they arrive; answered by [`Frame::HeartbeatBack`].
    Probe {
        /// The sender's clock.
        sent: f64,
        /// The bytes.
        #[serde(skip)]
        bytes: Vec<u8>,
    },
    /// The coordinator asks a device to time two ranges of a model's blocks, before it plans with it.
    Calibrate(Box<ModelCard>),
    /// Answer to [`Frame::Calibrate`]: the times, or why there are none in one sentence.
    Calibrated(ModelId, Box<Result<CalibrationRuns, String>>),
    /// The sender leaves on purpose.
    Bye,
    /// The room, from the coordinator.
    Room(Box<RoomView>),
    /// Get ready for a plan.
    Prepare(Box<Prepare>),
    /// The sender is ready for the plan, or holds what an order to stand by names.
    Prepared(PlanEpoch),
    /// The sender cannot get ready, or does not stand by any more.
    PrepareFailed(PlanEpoch, LoadFault),
    /// From now on this plan counts.
    Commit(PlanEpoch),
    /// It does for the sender; what only the older plan needed is freed.
    Committed(PlanEpoch),
    /// The plan will not come: what only it needs can go.
    Abandon(PlanEpoch),
    /// Hold units for the loss of another device.
    StandBy(Box<StandbyOrder>),
    /// Rows for a stage.
    Forward(Forward),
    /// Rows for experts.
    ExpertCall(ExpertCall),
    /// The experts' answer.
    ExpertSum(ExpertSum),
    /// The last stage's answer.
    LogitsResult(LogitsResult),
    /// A stage cannot go on.
    StageFault(StageFault),
    /// Somebody writes a question at the sender.
    Writing,
    /// Rows of the running plan are about to come: the coordinator has a question, or somebody writes one.
    Expect,
    /// A question.
    Prompt(PromptRequest),
    /// Send an answer again from this piece on: some were lost.
    Resume(RequestId, u32),
    /// Stop an answer.
    Stop(RequestId),
    /// Part of an answer, to the asking peer.
    Answer(RequestId, AnswerPart),
    /// The sender does not know, or no longer knows, who is on this connection: say hello.
    Unknown,
    /// Ask for bytes of the host's file.
    PieceRequest(PieceRequest),
    /// Bytes of the host's file.
    Piece {
        /// Of the request.
        id: u64,
        /// Why there are none, in one sentence.
        failed: Option<String>,
        /// The bytes.
        #[serde(skip)]
        bytes: Vec<u8>,
    },
}
