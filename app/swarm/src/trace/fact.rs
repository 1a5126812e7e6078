//! What a line of the recording says, for programs that evaluate it.

use std::fmt;

use potluck_plan::BlockIndex;
use potluck_protocol::{Frame, RequestId};
use serde::{Deserialize, Serialize};

use crate::{Action, Event};

/// What begins a question, and what happens with every token of its answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fact {
    /// Somebody asks.
    Prompt(RequestId),
    /// A part of an answer has come to the asker, which is this device.
    AnswerPart(RequestId),
    /// A part of an answer is on its way to an asker elsewhere.
    AnswerOnTheWay,
    /// Work goes to the engine.
    Compute,
    /// Work has ended.
    Computed,
    /// Vectors go to the next stage.
    Forward {
        /// Tokens.
        rows: u32,
    },
    /// A device is asked for a block's experts.
    ExpertCall {
        /// Tokens.
        rows: u32,
    },
    /// It has answered.
    ExpertResult,
    /// Its answer is not needed any more.
    ExpertCancel,
    /// A device is told what it will probably be asked for.
    ExpertHint,
    /// All experts of a block have come.
    Experts(ExpertWait),
    /// Tokens have passed all stages.
    Picked {
        /// Tokens.
        rows: u32,
        /// Engine milliseconds at each stage, in order.
        stage_millis: Vec<f64>,
    },
}

/// How the experts of a block came, of which others computed some.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ExpertWait {
    /// The block.
    pub block: BlockIndex,
    /// From the router's choice to the last vector.
    pub millis: f64,
    /// Of the engine whose answer came last.
    pub engine_millis: f64,
    /// Bytes of vectors in all calls and answers.
    pub bytes: u64,
    /// Of those that were made at first.
    pub first_bytes: u64,
    /// Which calls each expert waited for (`experts/asked.rs`).
    pub asked: String,
}

impl fmt::Display for ExpertWait {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { block, millis, engine_millis, bytes, first_bytes, asked } = self;
        write!(f, "experts of block {} in {millis:.2} ms, {engine_millis:.2} ms of an engine, ", block.0)?;
        write!(f, "{bytes} bytes for {first_bytes}, asked {asked}")
    }
}

impl Fact {
    pub(crate) fn of_event(event: &Event) -> Option<Self> {
        match event {
            Event::Prompt(prompt) => Some(Self::Prompt(prompt.request)),
            Event::Computed(_) => Some(Self::Computed),
            Event::Frame { frame, .. } => Self::of_frame(frame),
            _ => None,
        }
    }

    pub(crate) fn of_action(action: &Action) -> Option<Self> {
        match action {
            Action::Answer(request, _) => Some(Self::AnswerPart(*request)),
            Action::Compute(_) => Some(Self::Compute),
            Action::Send { frame, .. } => Self::of_frame(frame),
            _ => None,
        }
    }

    pub(crate) fn of_frame(frame: &Frame) -> Option<Self> {
        Some(match frame {
            Frame::Forward(forward) => Self::Forward { rows: forward.count },
            Frame::ExpertCall(call) => Self::ExpertCall { rows: u32::try_from(call.rows.len()).unwrap_or(u32::MAX) },
            Frame::ExpertResult(_) => Self::ExpertResult,
            Frame::ExpertCancel(_) => Self::ExpertCancel,
            Frame::ExpertHint(_) => Self::ExpertHint,
            Frame::LogitsResult(reply) => Self::Picked { rows: reply.tokens, stage_millis: reply.stage_millis.clone() },
            Frame::Answer(..) => Self::AnswerOnTheWay,
            _ => return None,
        })
    }
}
