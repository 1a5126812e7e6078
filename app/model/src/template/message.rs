//! Messages as templates see them.

use minijinja::Value;
use minijinja::value::ValueKind;
use serde::{Deserialize, Serialize};

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

    /// True if the model can go on with it: text of the assistant only.
    pub(super) fn is_begun_answer(&self) -> bool {
        self.role == "assistant" && self.tool_calls.is_empty() && self.reasoning.is_none()
    }

    /// The message as Transformers hands it to a template; what it lacks is undefined.
    pub(super) fn value(&self, shield: Shield<'_>) -> Value {
        let content = shield.answer(&self.content, self.role == "assistant");
        let mut pairs = vec![("role", Value::from(self.role.as_str())), ("content", Value::from(content))];
        let text = |text: &Option<String>| text.as_deref().map(|text| shield.text(text));
        let reasoning = self.reasoning.as_deref().map(|text| Value::from(shield.answer(text, false)));
        let optional = [
            ("reasoning_content", reasoning.clone()),
            // gpt-oss and LFM2.5 read it under this name; Transformers passes both.
            ("thinking", reasoning),
            ("tool_call_id", text(&self.tool_call_id)),
            ("name", text(&self.name)),
        ];
        pairs.extend(optional.into_iter().filter_map(|(key, value)| Some((key, value?))));
        if !self.tool_calls.is_empty() {
            pairs.push(("tool_calls", self.tool_calls.iter().map(|call| call.value(shield)).collect()));
        }
        Value::from_pairs(pairs)
    }
}

impl ToolCall {
    fn value(&self, shield: Shield<'_>) -> Value {
        let function = [("name", shield.text(&self.name)), ("arguments", shield.json(&self.arguments))];
        Value::from_pairs([
            ("type", Value::from("function")),
            ("id", shield.text(&self.id)),
            ("function", Value::from_pairs(function)),
        ])
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
        match serde_json::from_str::<Value>(text) {
            Ok(value) => self.value(&value),
            Err(_) => self.text(text),
        }
    }

    /// As deep as the parser allows, which is 128 levels.
    fn value(self, value: &Value) -> Value {
        let items = || value.try_iter().into_iter().flatten();
        match value.kind() {
            ValueKind::String => self.text(value.as_str().unwrap_or_default()),
            ValueKind::Seq => items().map(|item| self.value(&item)).collect(),
            ValueKind::Map => {
                let pair = |key: Value| (self.value(&key), self.value(&value.get_item(&key).unwrap_or_default()));
                Value::from_pairs(items().map(pair))
            }
            _ => value.clone(),
        }
    }
}
