//! `POST /v1/responses`, OpenAI's newer API: text in and out. Nothing is stored.

mod input;

use potluck_model::ToolCall;
use potluck_panel::Channel;
use serde_json::{Map, Value, json};

use super::{Event, Head, Shape, Whole};
use crate::error::ApiError;
use crate::fields::Fields;
use crate::question::{Finish, Usage};

pub(crate) use input::question;

/// What a reply repeats of its request, where it is a number or a short text.
const REPEATED: [&str; 5] = ["instructions", "max_output_tokens", "temperature", "top_p", "user"];
/// What it repeats of `reasoning`.
const REPEATED_OF_REASONING: [&str; 2] = ["effort", "summary"];
/// Bytes of a text that is repeated. Each event of a whole response has it again.
const MAX_REPEATED: usize = 4096;
/// Entries of `metadata`, and bytes of one, as in OpenAI's API.
const METADATA: (usize, usize) = (16, 512);

/// What an item of an answer has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Reasoning,
    Message,
}

impl Kind {
    fn of(channel: Channel) -> Self {
        match channel {
            Channel::Reasoning => Self::Reasoning,
            Channel::Answer | Channel::ToolCall => Self::Message,
        }
    }

    fn part(self, text: &str) -> Value {
        match self {
            Self::Reasoning => json!({ "type": "reasoning_text", "text": text }),
            Self::Message => json!({ "type": "output_text", "text": text, "annotations": [], "logprobs": [] }),
        }
    }

    fn item(self, id: &str, status: &str, content: &[Value]) -> Value {
        match self {
            Self::Reasoning => {
                json!({ "type": "reasoning", "id": id, "status": status, "summary": [], "content": content })
            }
            Self::Message => {
                json!({ "type": "message", "id": id, "status": status, "role": "assistant", "content": content })
            }
        }
    }

    /// The events of more text, and of all of it.
    fn events(self) -> (&'static str, &'static str) {
        match self {
            Self::Reasoning => ("response.reasoning_text.delta", "response.reasoning_text.done"),
            Self::Message => ("response.output_text.delta", "response.output_text.done"),
        }
    }
}

/// The item that is being written.
#[derive(Debug)]
struct Open {
    kind: Kind,
    id: String,
    text: String,
}

/// How an answer is written.
pub(crate) struct Responses {
    repeated: Map<String, Value>,
    /// Events so far.
    sent: u64,
    /// Items that are complete.
    output: Vec<Value>,
    open: Option<Open>,
}

impl Responses {
    /// The answer to a request.
    pub fn of(body: &Value) -> Result<Self, ApiError> {
        let fields = Fields::of(body)?;
        let mut repeated = short(&REPEATED, |name| fields.get(name));
        let reasoning = fields.get("reasoning");
        let reasoning = reasoning.map(|given| short(&REPEATED_OF_REASONING, |name| given.get(name)));
        repeated.insert("reasoning".to_owned(), json!(reasoning));
        repeated.insert("metadata".to_owned(), metadata(&fields)?);
        Ok(Self { repeated, sent: 0, output: Vec::new(), open: None })
    }

    /// The response, as far as it is.
    fn response(&self, head: &Head, status: &str, output: &[Value], usage: Option<Usage>) -> Value {
        let mut response = json!({
            "id": head.id,
            "object": "response",
            "created_at": head.created,
            "status": status,
            "model": head.model,
            "output": output,
            "usage": usage.map(usage_json),
            "error": null,
            "incomplete_details": null,
            "previous_response_id": null,
            "background": false,
            "store": false,
            "text": { "format": { "type": "text" } },
            "tools": [],
            "tool_choice": "auto",
            "parallel_tool_calls": false,
            "truncation": "disabled",
        });
        if let Value::Object(fields) = &mut response {
            fields.extend(self.repeated.clone());
        }
        response
    }

    /// The response that ended like this.
    fn ended(&self, head: &Head, finish: &Finish, output: &[Value], usage: Usage) -> Value {
        let mut response = self.response(head, status(finish), output, Some(usage));
        if *finish == Finish::Length {
            response["incomplete_details"] = json!({ "reason": "max_output_tokens" });
        }
        response
    }

    fn event(&mut self, name: &'static str, mut json: Value) -> Event {
        json["sequence_number"] = json!(self.sent);
        self.sent += 1;
        Event::named(name, json)
    }

    /// An event of a part of the item that is being written: `more` beside where it belongs.
    fn part_event(&mut self, name: &'static str, id: &str, more: Value) -> Event {
        let mut json = more;
        (json["item_id"], json["output_index"], json["content_index"]) =
            (json!(id), json!(self.output.len()), json!(0));
        self.event(name, json)
    }

    fn open(&mut self, head: &Head, kind: Kind) -> Vec<Event> {
        let index = self.output.len();
        let id = item_id(head, index);
        let item = kind.item(&id, "in_progress", &[]);
        let events = vec![
            self.event("response.output_item.added", json!({ "output_index": index, "item": item })),
            self.part_event("response.content_part.added", &id, json!({ "part": kind.part("") })),
        ];
        self.open = Some(Open { kind, id, text: String::new() });
        events
    }

    /// Ends the item that is being written, if one is.
    fn close(&mut self, status: &str) -> Vec<Event> {
        let Some(Open { kind, id, text }) = self.open.take() else { return Vec::new() };
        let part = kind.part(&text);
        let mut done = json!({ "text": text });
        if kind == Kind::Message {
            done["logprobs"] = json!([]);
        }
        let item = kind.item(&id, status, std::slice::from_ref(&part));
        let events = vec![
            self.part_event(kind.events().1, &id, done),
            self.part_event("response.content_part.done", &id, json!({ "part": part })),
            self.event("response.output_item.done", json!({ "output_index": self.output.len(), "item": item })),
        ];
        self.output.push(item);
        events
    }
}

/// These fields, null where they are absent or too long to be repeated.
fn short<'a>(names: &[&str], get: impl Fn(&str) -> Option<&'a Value>) -> Map<String, Value> {
    let is_short = |value: &&Value| value.is_number() || value.as_str().is_some_and(|text| text.len() <= MAX_REPEATED);
    let one = |name: &&str| ((*name).to_owned(), get(name).filter(is_short).cloned().unwrap_or_default());
    names.iter().map(one).collect()
}

/// The client's notes on its request.
fn metadata(fields: &Fields<'_>) -> Result<Value, ApiError> {
    let (most, longest) = METADATA;
    let Some(given) = fields.get("metadata") else { return Ok(json!({})) };
    let is_short = |(name, value): (&String, &Value)| {
        name.len() <= longest && value.as_str().is_some_and(|text| text.len() <= longest)
    };
    let is_fine = given.as_object().is_some_and(|entries| entries.len() <= most && entries.iter().all(is_short));
    let expected =
        || ApiError::invalid("metadata", format!("expected at most {most} strings of at most {longest} bytes"));
    is_fine.then(|| given.clone()).ok_or_else(expected)
}

/// The status of a response that ended like this, and of its last item.
fn status(finish: &Finish) -> &'static str {
    match finish {
        Finish::Stop | Finish::StopString(_) | Finish::ToolCalls => "completed",
        Finish::Length => "incomplete",
    }
}

fn item_id(head: &Head, index: usize) -> String {
    format!("item_{}_{index}", head.id)
}

/// The item of a call. Its arguments come later in a stream.
fn function_call(id: &str, call: &ToolCall, arguments: &str, status: &str) -> Value {
    json!({
        "type": "function_call",
        "id": id,
        "call_id": call.id,
        "name": call.name,
        "arguments": arguments,
        "status": status,
    })
}

fn usage_json(usage: Usage) -> Value {
    json!({
        "input_tokens": usage.prompt,
        "input_tokens_details": { "cached_tokens": usage.cached },
        "output_tokens": usage.answer,
        "output_tokens_details": { "reasoning_tokens": usage.reasoning },
        "total_tokens": usage.prompt.saturating_add(usage.answer),
    })
}

impl Shape for Responses {
    fn prefix(&self) -> &'static str {
        "resp_"
    }

    fn begin(&mut self, head: &Head) -> Vec<Event> {
        let response = self.response(head, "in_progress", &[], None);
        ["response.created", "response.in_progress"]
            .map(|name| self.event(name, json!({ "response": response })))
            .into_iter()
            .collect()
    }

    fn more(&mut self, head: &Head, channel: Channel, text: &str) -> Vec<Event> {
        let kind = Kind::of(channel);
        let mut events = Vec::new();
        if self.open.as_ref().map(|open| open.kind) != Some(kind) {
            events.extend(self.close("completed"));
            events.extend(self.open(head, kind));
        }
        let mut delta = json!({ "delta": text });
        if kind == Kind::Message {
            delta["logprobs"] = json!([]);
        }
        if let Some(open) = &mut self.open {
            open.text.push_str(text);
        }
        let id = item_id(head, self.output.len());
        events.push(self.part_event(kind.events().0, &id, delta));
        events
    }

    fn call(&mut self, head: &Head, call: &ToolCall) -> Vec<Event> {
        let mut events = self.close("completed");
        let index = self.output.len();
        let id = item_id(head, index);
        let begun = json!({ "output_index": index, "item": function_call(&id, call, "", "in_progress") });
        events.push(self.event("response.output_item.added", begun));
        let arguments = |name: &str| json!({ "item_id": id, "output_index": index, name: call.arguments });
        events.push(self.event("response.function_call_arguments.delta", arguments("delta")));
        let mut done = arguments("arguments");
        done["name"] = json!(call.name);
        events.push(self.event("response.function_call_arguments.done", done));
        let item = function_call(&id, call, &call.arguments, "completed");
        events.push(self.event("response.output_item.done", json!({ "output_index": index, "item": item })));
        self.output.push(item);
        events
    }

    fn end(&mut self, head: &Head, finish: &Finish, usage: Usage) -> Vec<Event> {
        let mut events = Vec::new();
        if self.open.is_none() && self.output.is_empty() {
            events.extend(self.open(head, Kind::Message));
        }
        events.extend(self.close(status(finish)));
        let response = self.ended(head, finish, &self.output, usage);
        let name = if *finish == Finish::Length { "response.incomplete" } else { "response.completed" };
        events.push(self.event(name, json!({ "response": response })));
        events.push(Event::Done);
        events
    }

    fn fail(&mut self, head: &Head, error: &ApiError) -> Vec<Event> {
        let mut response = self.response(head, "failed", &self.output, None);
        response["error"] = json!({ "code": error.code().unwrap_or("server_error"), "message": error.message() });
        vec![self.event("response.failed", json!({ "response": response }))]
    }

    fn whole(&self, head: &Head, whole: &Whole) -> Value {
        let thought = (!whole.reasoning.is_empty()).then_some((Kind::Reasoning, &whole.reasoning));
        let is_empty = thought.is_none() && whole.calls.is_empty();
        let said = (!whole.text.is_empty() || is_empty).then_some((Kind::Message, &whole.text));
        let items: Vec<(Kind, &String)> = thought.into_iter().chain(said).collect();
        let mut output = Vec::new();
        for (kind, text) in &items {
            let is_last = output.len() + 1 == items.len() && whole.calls.is_empty();
            let status = if is_last { status(&whole.finish) } else { "completed" };
            output.push(kind.item(&item_id(head, output.len()), status, &[kind.part(text)]));
        }
        for call in &whole.calls {
            output.push(function_call(&item_id(head, output.len()), call, &call.arguments, "completed"));
        }
        self.ended(head, &whole.finish, &output, whole.usage)
    }
}

#[cfg(test)]
mod tests;
