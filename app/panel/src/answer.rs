//! Questions and answers.

use serde::{Deserialize, Serialize};

/// Names a prompt within a tab.
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

/// How the next token is chosen.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct SamplingChoice {
    /// 0 is greedy.
    pub temperature: f32,
    /// Keep the best `k`; 0 keeps all candidates the engine returns (128).
    pub top_k: u32,
    /// Keep the most likely tokens up to this probability.
    pub top_p: f32,
    /// Drop tokens below this share of the best one's probability.
    pub min_p: f32,
    /// Divides (or multiplies) logits of tokens seen before; 1 is off.
    pub repetition_penalty: f32,
    /// The same seed gives the same answer.
    pub seed: u64,
}

impl Default for SamplingChoice {
    fn default() -> Self {
        Self { temperature: 0.7, top_k: 40, top_p: 0.95, min_p: 0.05, repetition_penalty: 1.0, seed: 0 }
    }
}

/// A step of an answer, in order: queued, reading, text …, end.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum AnswerEvent {
    /// Others are before it.
    Queued {
        /// 1 is next.
        position: u32,
    },
    /// The prompt is being read.
    Reading {
        /// Tokens read.
        done: u32,
        /// Tokens of the prompt.
        total: u32,
    },
    /// More of the answer.
    Text {
        /// Appended to the answer.
        delta: String,
        /// Tokens behind it.
        tokens: Vec<u32>,
    },
    /// The room rebuilds what a lost device held; the answer goes on after it.
    Recovering {
        /// One sentence: who left.
        reason: String,
    },
    /// Nothing more comes.
    End {
        /// Why.
        end: AnswerEnd,
        /// What it took.
        timings: AnswerTimings,
    },
}

/// Why an answer ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum AnswerEnd {
    /// The model was done.
    Complete,
    /// `max_tokens` or the context is reached; "Continue" makes sense.
    Length,
    /// Somebody pressed Stop.
    Stopped,
    /// It could not go on: one sentence with what to do.
    Failed(String),
}

/// What an answer took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct AnswerTimings {
    /// Tokens of the prompt.
    pub prompt_tokens: u32,
    /// Of these, tokens whose state was still there.
    pub reused_tokens: u32,
    /// Tokens written.
    pub answer_tokens: u32,
    /// From the prompt to the first token.
    pub first_token_ms: f64,
    /// What was expected of it, 0 if nothing was.
    pub expected_first_ms: f64,
    /// From the first token to the last.
    pub decode_ms: f64,
    /// Context used by the conversation, in positions.
    pub context_used: u32,
    /// Context there is.
    pub context: u32,
}
