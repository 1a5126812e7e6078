//! All frames.

use potluck_plan::{Channel, ModelId, PlanEpoch};
use serde::{Deserialize, Serialize};

use crate::{
    CalibrationRuns, Checkers, ExpertCall, ExpertCancel, ExpertHint, ExpertResult, Followed, Forward, Hello, Hold,
    Holding, LoadFault, LogitsResult, ModelCard, PieceFault, PieceRequest, Prepare, PromptRequest, Received, Residency,
    RoomView, RowHashes, RowRange, Rows, RowsRequest, Signal, StageFault, StandbyOrder, Succession, TokenLogprobs,
    WorkerStatus,
};

/// Names a prompt within one start of the asking peer.
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
    /// A function that the model called: the text is its result.
    Tool,
}

/// One message of a conversation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Message {
    /// Who wrote it.
    pub role: Role,
    /// Its text.
    pub content: String,
    /// What the model thought before it said this.
    #[serde(default)]
    pub reasoning: String,
    /// The functions that it called then, in its own form.
    #[serde(default)]
    pub tool_calls: String,
    /// The id of the call that a function's message answers.
    #[serde(default)]
    pub tool_call_id: String,
}

impl Message {
    /// A message of text only.
    pub fn new(role: Role, content: impl Into<String>) -> Self {
        let (reasoning, tool_calls, tool_call_id) = Default::default();
        Self { role, content: content.into(), reasoning, tool_calls, tool_call_id }
    }

    /// Bytes of its texts.
    pub fn bytes(&self) -> usize {
        let texts = [&self.content, &self.reasoning, &self.tool_calls, &self.tool_call_id];
        texts.into_iter().fold(0, |sum, text| sum.saturating_add(text.len()))
    }
}

/// A step of an answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum AnswerPart {
    /// Others are before it; 1 is next.
    Queued(u32),
    /// Prompt tokens processed, of how many.
    Reading(u32, u32),
    /// More text.
    Text {
        /// Number of this piece, from 0: lost pieces are noticed and requested again.
        index: u32,
        /// Which of the answer's texts it belongs to.
        channel: Channel,
        /// Appended to that text.
        delta: String,
        /// The tokens behind it.
        tokens: Vec<u32>,
        /// Log-probabilities of these tokens, if they were asked for.
        #[serde(default)]
        logprobs: Vec<TokenLogprobs>,
    },
    /// A lost device is being replaced; one sentence.
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
    /// Answer to [`Frame::Resume`]: the coordinator does not know the question, or forgot it in a reload.
    Unknown,
    /// A device that computed some of it was found wrong: the text so far is void, and the answer is written again.
    Void {
        /// It is numbered among the pieces of text, so that it is not lost.
        index: u32,
    },
    /// The answer is complete, and since then a device that computed some of it was found wrong.
    Doubtful {
        /// The conversation of its prompt.
        conversation: String,
    },
}

/// Why an answer ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum AnswerStop {
    /// The model ended it.
    Complete,
    /// `max_tokens` or the context is reached.
    Length,
    /// Somebody stopped it.
    Stopped,
    /// One sentence with what to do.
    Failed(String),
    /// The question was not taken, for the reason in this sentence: changed, it can be asked again.
    Refused(String),
}

/// What an answer took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Timings {
    /// Tokens of the prompt.
    pub prompt_tokens: u32,
    /// Of these, tokens whose KV cache was still there.
    pub reused_tokens: u32,
    /// Tokens written.
    pub answer_tokens: u32,
    /// From the prompt to the first token.
    pub first_token_ms: f64,
    /// Prediction of it when the first chunk was processed; 0 if there is none because the answer waited.
    pub expected_first_ms: f64,
    /// From the first token to the last.
    pub decode_ms: f64,
    /// Positions of context used.
    pub context_used: u32,
    /// Positions of context there are.
    pub context: u32,
}

impl Timings {
    /// Milliseconds from one token to the next; 0 if there is no second one.
    pub fn millis_a_token(&self) -> f64 {
        let steps = self.answer_tokens.saturating_sub(1);
        if steps > 0 { self.decode_ms / f64::from(steps) } else { 0.0 }
    }
}

/// What becomes of a room whose host leaves it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Leaving {
    /// It ends.
    ForGood,
    /// It is closed until the host opens it again.
    ForNow,
}

/// A message from peer to peer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Frame {
    /// Who the sender is.
    Hello(Hello),
    /// The coordinator does not let the peer in: one sentence.
    Refused(String),
    /// The sender is there. `sent` is its clock in milliseconds and comes back in [`Frame::HeartbeatBack`].
    Heartbeat {
        /// The sender's clock.
        sent: f64,
        /// Its status, if it contributes.
        status: Option<WorkerStatus>,
    },
    /// Answer to a heartbeat.
    HeartbeatBack {
        /// The asker's clock.
        sent: f64,
        /// Bytes that came with the heartbeat or probe.
        probed: u32,
        /// The sender has nothing to compute or to load, so it answered at once.
        idle: bool,
    },
    /// Padding for measuring bandwidth; answered by [`Frame::HeartbeatBack`].
    Probe {
        /// The sender's clock.
        sent: f64,
        /// The bytes.
        #[serde(skip)]
        bytes: Vec<u8>,
    },
    /// The coordinator asks a device to time two ranges of a model's blocks, before it plans with it.
    Calibrate(Box<ModelCard>),
    /// Answer to [`Frame::Calibrate`]: the times, or one sentence on why there are none.
    Calibrated(ModelId, Box<Result<CalibrationRuns, String>>),
    /// The sender leaves on purpose.
    Bye,
    /// The room, from the coordinator.
    Room(Box<RoomView>),
    /// Get ready for a plan.
    Prepare(Box<Prepare>),
    /// The sender is ready for the plan, or holds what a standby order names.
    Prepared(PlanEpoch),
    /// The sender cannot get ready, or does not stand by any more.
    PrepareFailed(PlanEpoch, LoadFault),
    /// This plan is active from now on.
    Commit(PlanEpoch),
    /// The sender switched to the plan and frees what only the older one needed.
    Committed(PlanEpoch),
    /// The plan is abandoned: what only it needs can be freed.
    Abandon(PlanEpoch),
    /// Hold units for the loss of another device.
    StandBy(Box<StandbyOrder>),
    /// Tokens for a stage.
    Forward(Forward),
    /// Tokens for experts.
    ExpertCall(ExpertCall),
    /// The experts' answer.
    ExpertResult(ExpertResult),
    /// The last stage's result.
    LogitsResult(LogitsResult),
    /// A stage cannot go on.
    StageFault(StageFault),
    /// Somebody writes a question at the sender.
    Writing,
    /// Work of the active plan is about to come: the coordinator has a question, or somebody writes one.
    Expect,
    /// A question.
    Prompt(PromptRequest),
    /// Send an answer again from what was received on.
    Resume(RequestId, Received),
    /// Stop an answer.
    Stop(RequestId),
    /// Part of an answer, to the asking peer.
    Answer(RequestId, AnswerPart),
    /// The sender does not know, or forgot, who is on this connection: say hello.
    Unknown,
    /// Ask for bytes of the host's file.
    PieceRequest(PieceRequest),
    /// Bytes of the host's file.
    Piece {
        /// Of the request.
        id: u64,
        /// Why there are none.
        failed: Option<PieceFault>,
        /// The bytes.
        #[serde(skip)]
        bytes: Vec<u8>,
    },
    /// Nobody waits for an expert call any more.
    ExpertCancel(ExpertCancel),
    /// Where experts of the active plan lie now.
    Residency(Residency),
    /// Load experts of the active plan.
    Hold(Hold),
    /// Answer to [`Frame::Hold`].
    Holding(Holding),
    /// Experts that will probably be called.
    ExpertHint(ExpertHint),
    /// The room, from the coordinator, without its plan: that is as in the last [`Frame::Room`], and has this epoch.
    RoomUpdate(PlanEpoch, Box<RoomView>),
    /// The coordinator leaves on purpose, and what becomes of its room.
    Closed(Leaving),
    /// Who may check whose answers.
    Checkers(Checkers),
    /// The host asks a stage for hashes of what it got and sent.
    CommitRows(RowRange),
    /// Answer to [`Frame::CommitRows`].
    RowHashes(RowHashes),
    /// The host asks a stage for what it got.
    RowsRequest(RowsRequest),
    /// Answer to [`Frame::RowsRequest`].
    Rows(Rows),
    /// About a direct connection. The connection to the room handles it; no state machine gets it.
    Signal(Signal),
    /// The receiver is the room's deputy and hosts in the sender's place if it is lost; without anything, it no longer is.
    Deputy(Option<Box<Succession>>),
    /// What the deputy is to know of questions and answers, in order.
    Follow(Box<Followed>),
}
