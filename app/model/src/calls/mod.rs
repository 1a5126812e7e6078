//! The calls of functions that a model wrote: read from their texts ([`ToolCall::read`]), and found in an answer as it comes in
//! ([`CallStream`]). Each model has a form of its own; from the makers' chat templates.

mod gemma;
mod json;
mod python;
mod stream;
mod tagged;

use serde::de::IgnoredAny;
use serde_json::Value;

use crate::ToolCall;
pub use stream::{CallPart, CallStream};

/// Longest name of a function, in bytes.
const LONGEST_NAME: usize = 128;

impl ToolCall {
    /// The calls in a text. Empty if any of it has another form than these: JSON objects with name and arguments (Hermes, Qwen, Llama,
    /// Mistral, Granite) or behind the name (harmony, Mistral, DeepSeek, Kimi), tags (GLM, Qwen3-Coder, MiniMax), Gemma 4's, and
    /// Python's (LFM2).
    ///
    /// Arguments in JSON stay as they are written: in a number every digit may count, and a model reads again what it wrote.
    pub fn read(text: &str) -> Vec<Self> {
        numbered(read(text, &Functions::default()).unwrap_or_default())
    }

    fn new(name: &str, arguments: impl Into<String>) -> Self {
        Self { id: String::new(), name: name.to_owned(), arguments: arguments.into() }
    }
}

/// The same with an id for each that has none: nine letters or digits, as Mistral's templates want it.
fn numbered(mut calls: Vec<ToolCall>) -> Vec<ToolCall> {
    for (index, call) in calls.iter_mut().enumerate().filter(|(_, call)| call.id.is_empty()) {
        call.id = format!("call{index:05}");
    }
    calls
}

/// The calls in a text in any form. `None`: some of it is no call.
fn read(text: &str, functions: &Functions) -> Option<Vec<ToolCall>> {
    let text = text.trim();
    let others = || gemma::read(text).or_else(|| python::read(text)).or_else(|| tagged::read(text, functions));
    json::read(text).or_else(others).and_then(with_objects)
}

/// Programs read the arguments of each as an object.
fn with_objects(calls: Vec<ToolCall>) -> Option<Vec<ToolCall>> {
    let is_object = |json: &str| json.trim_start().starts_with('{') && is_json(json);
    calls.iter().all(|call| is_object(&call.arguments)).then_some(calls)
}

fn is_json(text: &str) -> bool {
    serde_json::from_str::<IgnoredAny>(text).is_ok()
}

/// True if a function may have this name.
fn is_name(text: &str) -> bool {
    let is_letter = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | ':' | '/');
    (1..=LONGEST_NAME).contains(&text.len()) && text.chars().all(is_letter)
}

/// The name without what models put around it: `functions.now:0` (Kimi).
fn bare_name(name: &str) -> &str {
    let Some(name) = name.strip_prefix("functions.") else { return name };
    match name.rsplit_once(':') {
        Some((bare, number)) if number.chars().all(|c| c.is_ascii_digit()) => bare,
        _ => name,
    }
}

/// The functions that were offered, as far as their calls are read by them.
#[derive(Clone, Debug, Default)]
struct Functions(Vec<Function>);

#[derive(Clone, Debug)]
struct Function {
    name: String,
    /// Parameters that are texts, so that `5` in one is no number.
    texts: Vec<String>,
}

impl Functions {
    /// From their JSON texts; others are left out.
    fn new<'a>(offered: impl IntoIterator<Item = &'a str>) -> Self {
        let read = |text: &str| {
            let json: Value = serde_json::from_str(text).ok()?;
            let function = json.get("function").unwrap_or(&json);
            let properties = function.pointer("/parameters/properties").and_then(Value::as_object);
            let is_text = |(_, schema): &(&String, &Value)| schema.get("type").is_some_and(|kind| kind == "string");
            let texts = properties.into_iter().flatten().filter(is_text).map(|(name, _)| name.clone()).collect();
            Some(Function { name: function.get("name")?.as_str()?.to_owned(), texts })
        };
        Self(offered.into_iter().filter_map(read).collect())
    }

    fn has(&self, name: &str) -> bool {
        self.0.iter().any(|function| function.name == name)
    }

    /// The value of a parameter that was written without quotes, as JSON.
    fn value(&self, function: &str, parameter: &str, written: &str) -> String {
        let is_text =
            self.0.iter().any(|known| known.name == function && known.texts.iter().any(|text| text == parameter));
        if !is_text && is_json(written) { written.trim().to_owned() } else { quoted(written) }
    }
}

/// A JSON string.
fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}

/// A JSON object of fields whose values are JSON.
fn object(fields: &[(String, String)]) -> String {
    let fields: Vec<String> = fields.iter().map(|(name, value)| format!("{}: {value}", quoted(name))).collect();
    format!("{{{}}}", fields.join(", "))
}

#[cfg(test)]
mod tests;
