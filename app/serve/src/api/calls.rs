//! Calls of functions and their results in a conversation.

use std::collections::HashSet;

use potluck_panel::{Message, Role};
use potluck_text::texts;
use serde_json::{Value, json};

use crate::error::ApiError;

/// A call that the assistant made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Call {
    id: String,
    /// In the form in which the room's host reads calls.
    line: String,
}

impl Call {
    /// A call with these fields. Arguments are JSON text in OpenAI's APIs and an object in Anthropic's.
    pub fn new(
        id: Option<&Value>,
        name: Option<&Value>,
        arguments: Option<&Value>,
        place: &str,
    ) -> Result<Self, ApiError> {
        let id = text_of(id).ok_or_else(|| ApiError::invalid(place, "expected each call to have an id"))?;
        let name = text_of(name).ok_or_else(|| ApiError::invalid(place, "expected each call to name its function"))?;
        let arguments = match arguments {
            None | Some(Value::Null) => "{}".to_owned(),
            Some(Value::String(text)) if text.trim().is_empty() => "{}".to_owned(),
            // As it is written, if it is an object: the model reads again what it wrote.
            Some(Value::String(text)) => match serde_json::from_str::<Value>(text) {
                Ok(Value::Object(_)) => text.trim().to_owned(),
                _ => json!(text).to_string(),
            },
            Some(value) => value.to_string(),
        };
        let line = format!(r#"{{"name": {}, "arguments": {arguments}, "id": {}}}"#, json!(name), json!(id));
        Ok(Self { id: id.to_owned(), line })
    }

    /// A call in the form of OpenAI's chats.
    pub fn of_chat(call: &Value, place: &str) -> Result<Self, ApiError> {
        let function = match call.get("type").and_then(Value::as_str) {
            Some("function") | None => call.get("function"),
            Some(_) => return Err(ApiError::unsupported(place, texts().api.no_tool_messages())),
        };
        let of = |name: &str| function.and_then(|function| function.get(name));
        Self::new(call.get("id"), of("name"), of("arguments"), place)
    }
}

fn text_of(value: Option<&Value>) -> Option<&str> {
    value?.as_str().filter(|text| !text.is_empty())
}

/// The calls of a conversation so far.
#[derive(Debug, Default)]
pub(super) struct Calls(HashSet<String>);

impl Calls {
    /// The assistant makes a call in this message.
    pub fn make(&mut self, call: Call, message: &mut Message) {
        if !message.tool_calls.is_empty() {
            message.tool_calls.push('\n');
        }
        message.tool_calls.push_str(&call.line);
        self.0.insert(call.id);
    }

    /// The message with the result of a call.
    ///
    /// # Errors
    /// There is no such call before it.
    pub fn result(&self, id: Option<&Value>, text: String, place: &str) -> Result<Message, ApiError> {
        let id = id.and_then(Value::as_str).unwrap_or_default();
        if !self.0.contains(id) {
            // It may be long, and is shown.
            let shown: String = id.chars().take(64).collect();
            return Err(ApiError::invalid(place, texts().api.no_call(shown)));
        }
        Ok(Message { tool_call_id: id.to_owned(), ..Message::new(Role::Tool, text) })
    }
}
