//! Messages as templates see them.

use serde::{Deserialize, Serialize};

use super::jinja::{Fault, Value, parse_json};
use crate::Tokenizer;

/// One message of a conversation.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Message {
    /// `system`, `user`, `assistant` or `tool`.
    pub role: String,
    /// Its text.
    pub content: String,
    /// What the assistant thought before it answered (`reasoning_content`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reasoning: Option<String>,
    /// Functions that the assistant called.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tool_calls: Vec<ToolCall>,
    /// The call that a `tool` message answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_call_id: Option<String>,
    /// The function that a `tool` message answers for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

/// How a template reads the text of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Content {
    /// As a string.
    Text,
    /// As a list with one part of type `text`.
    Parts,
}

/// A call of a function.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolCall {
    /// Names the call in the message that answers it.
    pub id: String,
    /// The function's name.
    pub name: String,
    /// Its arguments, as JSON text.
    pub arguments: String,
}

impl Message {
    /// A message of text.
    pub fn new(role: impl Into<String>, content: impl Into<String>) -> Self {
        Self { role: role.into(), content: content.into(), ..Self::default() }
    }

    /// Bytes of its texts.
    pub(super) fn bytes(&self) -> usize {
        let calls = self.tool_calls.iter().map(|call| call.id.len() + call.name.len() + call.arguments.len());
        let others = [&self.reasoning, &self.tool_call_id, &self.name].into_iter().flatten().map(String::len);
        self.content.len() + calls.chain(others).sum::<usize>()
    }

    /// True if the model can go on with it: reasoning and text of the assistant.
    pub(super) fn is_begun_answer(&self) -> bool {
        self.role == "assistant" && self.tool_calls.is_empty()
    }

    /// The message as Transformers hands it to a template; what it lacks is undefined.
    pub(super) fn value(&self, shield: Shield<'_>, form: Content) -> Result<Value, Fault> {
        let text = Value::from(shield.answer(&self.content, self.role == "assistant"));
        let content = match form {
            Content::Text => text,
            Content::Parts => Value::list(vec![Value::dict([("type", "text".into()), ("text", text)])?])?,
        };
        let reasoning = self.reasoning.as_deref().map(|text| Value::from(shield.answer(text, false)));
        let text = |text: &Option<String>| text.as_deref().map(|text| shield.text(text));
        let all = [
            // gpt-oss and LFM2.5 read the reasoning under this name; Transformers passes it as well, and first.
            ("thinking", reasoning.clone()),
            ("role", Some(self.role.as_str().into())),
            ("content", Some(content)),
            ("reasoning_content", reasoning),
            ("tool_call_id", text(&self.tool_call_id)),
            ("name", text(&self.name)),
        ];
        let mut pairs: Vec<_> = all.into_iter().filter_map(|(key, value)| Some((key, value?))).collect();
        if !self.tool_calls.is_empty() {
            let calls = self.tool_calls.iter().map(|call| call.value(shield)).collect::<Result<_, Fault>>()?;
            pairs.push(("tool_calls", Value::list(calls)?));
        }
        Value::dict(pairs)
    }
}

impl ToolCall {
    fn value(&self, shield: Shield<'_>) -> Result<Value, Fault> {
        let function = [("name", shield.text(&self.name)), ("arguments", shield.json(&self.arguments))];
        Value::dict([("type", "function".into()), ("id", shield.text(&self.id)), ("function", Value::dict(function)?)])
    }
}

/// Shields the texts that a template sees (see [`Tokenizer::shield`]), if there is a tokenizer.
#[derive(Clone, Copy)]
pub(super) struct Shield<'a>(pub(super) Option<&'a Tokenizer>);

impl Shield<'_> {
    /// A message's text; an answer keeps its reasoning tags.
    pub(super) fn answer(self, text: &str, is_answer: bool) -> String {
        self.0.map_or_else(|| text.to_owned(), |tokenizer| tokenizer.shield(text, is_answer))
    }

    /// A name or a string of JSON. Templates compare those with words of theirs (`type == "string"`), so a word without any
    /// sign stays as it is: only a template that puts signs around it on purpose can make a control token of it.
    fn text(self, text: &str) -> Value {
        let is_word = text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        let is_name = || self.0.is_some_and(|tokenizer| tokenizer.special_id(text).is_some());
        if is_word && !is_name() { Value::from(text) } else { Value::from(self.answer(text, false)) }
    }

    /// JSON text as a value with every string shielded; other text as it is.
    pub(super) fn json(self, text: &str) -> Value {
        parse_json(text, &|text| self.text(text)).unwrap_or_else(|| self.text(text))
    }
}
