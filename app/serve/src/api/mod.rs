//! The APIs: pure functions from JSON to a [`Question`](crate::question::Question), and from an answer to JSON.

pub(crate) mod anthropic;
mod calls;
pub(crate) mod chat;
pub(crate) mod completions;
mod event;
mod forms;
mod logprobs;
mod messages;
pub(crate) mod models;
mod parameters;
pub(crate) mod responses;
pub(crate) mod tokens;
mod tools;

use potluck_model::ToolCall;
use potluck_panel::{Channel, TokenLogprobs};
use serde_json::{Value, json};

use crate::error::ApiError;
use crate::question::{Finish, Usage};

pub(crate) use event::Event;

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
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Whole {
    /// What the model said.
    pub text: String,
    /// What it thought.
    pub reasoning: String,
    /// The functions that it called.
    pub calls: Vec<ToolCall>,
    /// Log-probabilities of the tokens of the text, if they were asked for.
    pub logprobs: Vec<TokenLogprobs>,
    /// Why it ended.
    pub finish: Finish,
    /// What it took.
    pub usage: Usage,
}

/// How an API writes one answer.
pub(crate) trait Shape: Send {
    /// What the id of the reply begins with.
    fn prefix(&self) -> &'static str;

    /// The first events of a stream, before anything is known of the answer.
    fn begin(&mut self, head: &Head) -> Vec<Event>;

    /// The room begins to answer: `usage` has what is known by then.
    fn taken(&mut self, _head: &Head, _usage: Usage) -> Vec<Event> {
        Vec::new()
    }

    /// Log-probabilities of tokens whose text comes next, or has come.
    fn scores(&mut self, _logprobs: Vec<TokenLogprobs>) {}

    /// All that came so far is void, and none of it was text.
    fn void(&mut self) {}

    /// More text.
    fn more(&mut self, head: &Head, channel: Channel, text: &str) -> Vec<Event>;

    /// A call of a function; none comes where no functions can be offered.
    fn call(&mut self, _head: &Head, _call: &ToolCall) -> Vec<Event> {
        Vec::new()
    }

    /// The answer is complete.
    fn end(&mut self, head: &Head, finish: &Finish, usage: Usage) -> Vec<Event>;

    /// All answers are complete, and took so much together.
    fn close(&mut self, _head: &Head, _usage: Usage) -> Vec<Event> {
        Vec::new()
    }

    /// The answer will not be complete.
    fn fail(&mut self, _head: &Head, error: &ApiError) -> Vec<Event> {
        vec![Event::Json(Some("error"), error.to_json())]
    }

    /// The answer in one piece.
    fn whole(&self, head: &Head, whole: &Whole) -> Value;

    /// Several answers in one piece.
    fn all(&self, head: &Head, answers: &[Whole]) -> Value {
        answers.first().map_or(Value::Null, |whole| self.whole(head, whole))
    }
}

/// A reply with these choices.
fn reply(head: &Head, object: &str, choices: &Value) -> Value {
    json!({
        "id": head.id, "object": object, "created": head.created, "model": head.model, "choices": choices,
        "system_fingerprint": potluck_panel::BUILD,
    })
}

/// What several answers took.
fn usage_of(answers: &[Whole]) -> Usage {
    answers.iter().map(|whole| whole.usage).reduce(Usage::and).unwrap_or_default()
}

fn usage_json(usage: Usage) -> Value {
    json!({
        "prompt_tokens": usage.prompt,
        "completion_tokens": usage.answer,
        "total_tokens": usage.prompt.saturating_add(usage.answer),
        "prompt_tokens_details": { "cached_tokens": usage.cached },
        "completion_tokens_details": { "reasoning_tokens": usage.reasoning },
    })
}

/// What follows the last choice of a stream, if it is asked for.
fn usage_event(head: &Head, object: &str, usage: Usage) -> Event {
    let mut reply = reply(head, object, &json!([]));
    reply["usage"] = usage_json(usage);
    Event::unnamed(reply)
}

/// A call for tests.
#[cfg(test)]
fn test_call(id: &str) -> ToolCall {
    ToolCall {
        id: id.to_owned(),
        name: "weather".to_owned(),
        arguments: r#"{"city": "Rome", "days": 1.10}"#.to_owned(),
    }
}

#[cfg(test)]
fn test_head(id: &str) -> Head {
    Head { id: id.to_owned(), created: 7, model: "tiny".to_owned() }
}
