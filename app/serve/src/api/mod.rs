//! The APIs: pure functions from JSON to a [`Question`], and from an answer to JSON.

pub(crate) mod chat;
pub(crate) mod completions;
mod messages;
pub(crate) mod models;
mod parameters;

use potluck_panel::Channel;
use serde_json::{Value, json};

use crate::question::{Finish, Usage};

/// What every reply begins with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Head {
    /// One for all parts of a stream.
    pub id: String,
    /// Seconds since 1970.
    pub created: u64,
    /// The model's id.
    pub model: String,
}

/// A whole answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Whole {
    /// What the model said.
    pub text: String,
    /// What it thought.
    pub reasoning: String,
    /// Why it ended.
    pub finish: Finish,
    /// What it took.
    pub usage: Usage,
}

/// How an API writes an answer.
pub(crate) trait Shape: Send + Sync {
    /// What the ids of replies begin with.
    fn prefix(&self) -> &'static str;

    /// The first chunk, before any text.
    fn first(&self, head: &Head) -> Option<Value>;

    /// More text.
    fn more(&self, head: &Head, channel: Channel, text: &str) -> Value;

    /// The last chunk with a choice.
    fn last(&self, head: &Head, finish: Finish) -> Value;

    /// What follows the last chunk if it is asked for.
    fn usage(&self, head: &Head, usage: Usage) -> Value;

    /// The answer in one piece.
    fn whole(&self, head: &Head, whole: &Whole) -> Value;
}

/// A reply with these choices.
fn reply(head: &Head, object: &str, choices: &Value) -> Value {
    json!({ "id": head.id, "object": object, "created": head.created, "model": head.model, "choices": choices })
}

fn usage_json(usage: Usage) -> Value {
    json!({
        "prompt_tokens": usage.prompt,
        "completion_tokens": usage.answer,
        "total_tokens": usage.prompt.saturating_add(usage.answer),
        "prompt_tokens_details": { "cached_tokens": usage.cached },
    })
}

#[cfg(test)]
fn test_head() -> Head {
    Head { id: "chatcmpl-1".to_owned(), created: 7, model: "tiny".to_owned() }
}
