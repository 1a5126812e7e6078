//! `POST /v1/messages`, Anthropic's API.

use potluck_model::ToolCall;
use potluck_panel::{Channel, LogitOptions, ReasoningEffort};
use serde_json::{Value, json};

use super::{Event, Head, Shape, Whole, forms, messages, parameters, tools};
use crate::error::ApiError;
use crate::fields::Fields;
use crate::question::{Finish, Question, Usage};

/// Tokens of thinking up to which the effort is low, and medium. Programs ask for a budget, and models know efforts.
const BUDGETS: [i64; 2] = [4_096, 16_384];

/// The question in a request's body.
pub(crate) fn question(body: &Value) -> Result<Question, ApiError> {
    let fields = &Fields::of(body)?;
    let output = fields.get("output_config");
    let of_output = |name: &str| output.and_then(|output| output.get(name)).filter(|value| !value.is_null());
    let form = match of_output("format") {
        Some(format) => forms::of_format("output_config.format", Some(format))?,
        None => forms::of_format("output_format", fields.get("output_format"))?,
    };
    let tools = tools::tools(fields)?;
    let instructions = messages::instructions(fields, "system")?;
    let messages = messages::messages(fields)?;
    let effort = of_output("effort").and_then(Value::as_str).and_then(parameters::effort_of);
    Ok(Question {
        model: fields.text("model")?.map(str::to_owned),
        messages: messages::with_joined_neighbours(instructions.into_iter().chain(messages)),
        raw: false,
        max_tokens: parameters::max_tokens(fields, &["max_tokens"])?,
        sampling: parameters::sampling(fields)?,
        seed: parameters::seed(fields)?,
        reasoning: Some(reasoning(fields, effort)?),
        stops: parameters::stops(fields, "stop_sequences")?,
        logits: LogitOptions { form: forms::with_calls(form, &tools), ..LogitOptions::default() },
        tools,
        answers: 1,
        delivery: parameters::delivery(fields)?,
    })
}

/// How much the model is to think. In this API it does not, unless it is asked to.
fn reasoning(fields: &Fields<'_>, effort: Option<ReasoningEffort>) -> Result<ReasoningEffort, ApiError> {
    let Some(thinking) = fields.get("thinking") else { return Ok(ReasoningEffort::Off) };
    let wrong = |_| ApiError::invalid("thinking", "expected an object with a type");
    let thinking = Fields::of(thinking).map_err(wrong)?;
    let budget = thinking.integer("budget_tokens").map_err(wrong)?;
    Ok(match thinking.text("type").map_err(wrong)? {
        Some("disabled") => ReasoningEffort::Off,
        _ => effort.unwrap_or(match budget {
            Some(tokens) if tokens <= BUDGETS[0] => ReasoningEffort::Low,
            Some(tokens) if tokens > BUDGETS[1] => ReasoningEffort::High,
            Some(_) | None => ReasoningEffort::Medium,
        }),
    })
}

/// An error as this API has it.
pub(crate) fn error(error: &ApiError) -> Value {
    let kind = match error {
        ApiError::NotReady => "overloaded_error",
        _ => match error.status().as_u16() {
            401 => "authentication_error",
            403 => "permission_error",
            404 => "not_found_error",
            413 => "request_too_large",
            429 => "rate_limit_error",
            500.. => "api_error",
            _ => "invalid_request_error",
        },
    };
    let message = match error {
        // Programs look for these words, and shorten their conversation.
        ApiError::TooLong { sentence, numbers: Some((tokens, context)) } => {
            format!("prompt is too long: {tokens} tokens > {context} maximum. {sentence}")
        }
        _ => error.to_string(),
    };
    json!({ "type": "error", "error": { "type": kind, "message": message } })
}

/// What a block of an answer has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Block {
    Thinking,
    Text,
}

impl Block {
    fn of(channel: Channel) -> Self {
        match channel {
            Channel::Reasoning => Self::Thinking,
            Channel::Answer | Channel::ToolCall => Self::Text,
        }
    }

    fn json(self, text: &str) -> Value {
        match self {
            Self::Thinking => json!({ "type": "thinking", "thinking": text, "signature": "" }),
            Self::Text => json!({ "type": "text", "text": text }),
        }
    }

    fn delta(self, text: &str) -> Value {
        match self {
            Self::Thinking => json!({ "type": "thinking_delta", "thinking": text }),
            Self::Text => json!({ "type": "text_delta", "text": text }),
        }
    }
}

/// How an answer is written.
#[derive(Default)]
pub(crate) struct Messages {
    has_begun: bool,
    /// The block that is being written.
    open: Option<Block>,
    /// Blocks that are complete: the index of the next one.
    complete: usize,
}

/// The message, whose content may come later.
fn message(head: &Head, content: &[Value], finish: Option<&Finish>, usage: Usage) -> Value {
    let mut message = json!({
        "id": head.id,
        "type": "message",
        "role": "assistant",
        "model": head.model,
        "content": content,
        "usage": usage_json(usage),
    });
    let (reason, stop) = end(finish);
    (message["stop_reason"], message["stop_sequence"]) = (reason, stop);
    message
}

/// Why it ended, and the stop string that ended it.
fn end(finish: Option<&Finish>) -> (Value, Value) {
    match finish {
        None => (Value::Null, Value::Null),
        Some(Finish::Stop) => (json!("end_turn"), Value::Null),
        Some(Finish::StopString(string)) => (json!("stop_sequence"), json!(string)),
        Some(Finish::Length) => (json!("max_tokens"), Value::Null),
        Some(Finish::ToolCalls) => (json!("tool_use"), Value::Null),
    }
}

/// In this API, tokens from a cache are not among those of the input.
fn usage_json(usage: Usage) -> Value {
    json!({
        "input_tokens": usage.prompt.saturating_sub(usage.cached),
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": usage.cached,
        "output_tokens": usage.answer,
    })
}

impl Messages {
    /// The first event. It says how many tokens are read, so it waits until that is known.
    fn start(&mut self, head: &Head, usage: Usage) -> Option<Event> {
        let is_first = !std::mem::replace(&mut self.has_begun, true);
        is_first.then(|| Event::named("message_start", json!({ "message": message(head, &[], None, usage) })))
    }

    /// Ends the block that is being written, and begins another.
    fn turn_to(&mut self, block: Option<Block>) -> Vec<Event> {
        let mut events = Vec::new();
        if self.open == block {
            return events;
        }
        if self.open.take().is_some() {
            events.push(self.block_stop());
        }
        self.open = block;
        events.extend(block.map(|block| self.block_start(&block.json(""))));
        events
    }

    fn block_start(&self, block: &Value) -> Event {
        Event::named("content_block_start", json!({ "index": self.complete, "content_block": block }))
    }

    fn block_delta(&self, delta: &Value) -> Event {
        Event::named("content_block_delta", json!({ "index": self.complete, "delta": delta }))
    }

    fn block_stop(&mut self) -> Event {
        let event = Event::named("content_block_stop", json!({ "index": self.complete }));
        self.complete += 1;
        event
    }
}

/// A call, whose input comes later in a stream.
fn tool_use(call: &ToolCall, input: &Value) -> Value {
    json!({ "type": "tool_use", "id": call.id, "name": call.name, "input": input })
}

impl Shape for Messages {
    fn prefix(&self) -> &'static str {
        "msg_"
    }

    fn begin(&mut self, _head: &Head) -> Vec<Event> {
        Vec::new()
    }

    fn taken(&mut self, head: &Head, usage: Usage) -> Vec<Event> {
        self.start(head, usage).into_iter().collect()
    }

    fn more(&mut self, head: &Head, channel: Channel, text: &str) -> Vec<Event> {
        let block = Block::of(channel);
        let mut events: Vec<Event> = self.start(head, Usage::default()).into_iter().collect();
        events.extend(self.turn_to(Some(block)));
        events.push(self.block_delta(&block.delta(text)));
        events
    }

    fn call(&mut self, head: &Head, call: &ToolCall) -> Vec<Event> {
        let mut events: Vec<Event> = self.start(head, Usage::default()).into_iter().collect();
        events.extend(self.turn_to(None));
        events.push(self.block_start(&tool_use(call, &json!({}))));
        events.push(self.block_delta(&json!({ "type": "input_json_delta", "partial_json": call.arguments })));
        events.push(self.block_stop());
        events
    }

    fn end(&mut self, head: &Head, finish: &Finish, usage: Usage) -> Vec<Event> {
        let mut events: Vec<Event> = self.start(head, usage).into_iter().collect();
        if self.open.is_none() && self.complete == 0 {
            events.extend(self.turn_to(Some(Block::Text)));
        }
        events.extend(self.turn_to(None));
        let (reason, stop) = end(Some(finish));
        let delta = json!({ "stop_reason": reason, "stop_sequence": stop });
        events.push(Event::named("message_delta", json!({ "delta": delta, "usage": usage_json(usage) })));
        events.push(Event::named("message_stop", json!({})));
        events
    }

    fn fail(&mut self, _head: &Head, failure: &ApiError) -> Vec<Event> {
        vec![Event::named("error", error(failure))]
    }

    fn whole(&self, head: &Head, whole: &Whole) -> Value {
        let thought = (!whole.reasoning.is_empty()).then(|| Block::Thinking.json(&whole.reasoning));
        // A message without any block would be one that many programs cannot show.
        let is_empty = thought.is_none() && whole.calls.is_empty();
        let said = (!whole.text.is_empty() || is_empty).then(|| Block::Text.json(&whole.text));
        let input = |call: &ToolCall| serde_json::from_str(&call.arguments).unwrap_or_else(|_| json!({}));
        let calls = whole.calls.iter().map(|call| tool_use(call, &input(call)));
        let content: Vec<Value> = thought.into_iter().chain(said).chain(calls).collect();
        message(head, &content, Some(&whole.finish), whole.usage)
    }
}

#[cfg(test)]
mod tests;
