//! What a program asks, whichever API it uses.

use potluck_panel::{LogitOptions, Message, PromptRequest, ReasoningEffort, RequestId, Sampling, ToolOffer};

/// A question to the model. Each API is translated into it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Question {
    /// The model that is asked for, if any is named.
    pub model: Option<String>,
    /// Oldest first.
    pub messages: Vec<Message>,
    /// Continue the only message's text without the chat template.
    pub raw: bool,
    /// Most tokens to write; none: as many as the context holds.
    pub max_tokens: Option<u32>,
    /// How tokens are sampled, but for the seed.
    pub sampling: Sampling,
    /// None: another one each time.
    pub seed: Option<u64>,
    /// How much the model is to think.
    pub reasoning: Option<ReasoningEffort>,
    /// The answer ends before any of these.
    pub stops: Vec<String>,
    /// The functions that the model may call.
    pub tools: Tools,
    /// What it wants of the logits besides tokens.
    pub logits: LogitOptions,
    /// Answers, each sampled with a seed of its own; at least one.
    pub answers: u8,
    /// How the answer is delivered.
    pub delivery: Delivery,
}

impl Question {
    /// As a room gets it, but for its number, its conversation and its seed.
    pub fn into_prompt(self) -> PromptRequest {
        PromptRequest {
            request: RequestId(0),
            conversation: String::new(),
            messages: self.messages,
            raw: self.raw,
            max_tokens: self.max_tokens.unwrap_or(u32::MAX),
            sampling: self.sampling,
            reasoning: self.reasoning,
            tools: self.tools.offer,
            logits: self.logits,
        }
    }
}

/// The functions that a question offers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tools {
    /// What the room is told of them.
    pub offer: ToolOffer,
    /// The answer ends with its first call.
    pub is_single: bool,
    /// Calls must fit the schemas of their functions.
    pub is_strict: bool,
}

/// How an answer is delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Delivery {
    /// At its end.
    Whole,
    /// As it is written.
    Stream {
        /// Its end says how many tokens it took, if the API leaves that open.
        with_usage: bool,
    },
}

impl Delivery {
    /// The stream's end says how many tokens it took.
    pub fn with_usage(self) -> bool {
        self == Self::Stream { with_usage: true }
    }
}

/// Why an answer ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Finish {
    /// The model ended it.
    Stop,
    /// This stop string would have come next.
    StopString(String),
    /// `max_tokens` or the context is reached.
    Length,
    /// The model called functions.
    ToolCalls,
}

impl Finish {
    /// As OpenAI's API for chats calls it.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Stop | Self::StopString(_) => "stop",
            Self::Length => "length",
            Self::ToolCalls => "tool_calls",
        }
    }
}

/// What an answer took, in tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Usage {
    /// Of the prompt.
    pub prompt: u32,
    /// Of these, tokens whose KV cache was still there.
    pub cached: u32,
    /// Of the answer.
    pub answer: u32,
    /// Of these, tokens of reasoning.
    pub reasoning: u32,
}

impl Usage {
    /// That of one more answer to the same prompt, whose tokens count once.
    pub fn and(self, other: Self) -> Self {
        Self {
            answer: self.answer.saturating_add(other.answer),
            reasoning: self.reasoning.saturating_add(other.reasoning),
            ..self
        }
    }
}
