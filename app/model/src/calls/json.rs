//! Calls whose arguments are JSON, which stays as it is written.

use serde::de::IgnoredAny;

use super::{bare_name, is_name};
use crate::ToolCall;

/// Between calls, and between a name and its arguments, where these are no control tokens of the vocabulary.
const MARKERS: [&str; 12] = [
    "[ARGS]",
    "[CALL_ID]",
    "<｜tool▁calls▁begin｜>",
    "<｜tool▁call▁begin｜>",
    "<｜tool▁sep｜>",
    "<｜tool▁call▁end｜>",
    "<|tool_call_begin|>",
    "<|tool_call_argument_begin|>",
    "<|tool_call_end|>",
    // DeepSeek R1.
    "```json",
    "```",
    ";",
];

/// The calls in a text: JSON objects with name and arguments, in lines or in a list, or names, each in front of its arguments.
/// `None`: it has some other text.
pub(super) fn read(text: &str) -> Option<Vec<ToolCall>> {
    let mut rest = behind_markers(text);
    let mut calls = Vec::new();
    while !rest.is_empty() {
        if rest.starts_with(['{', '[']) {
            let (value, behind) = value(rest)?;
            match within(value, '[', ']') {
                Some(list) => calls.extend(items(list)?.into_iter().map(named).collect::<Option<Vec<ToolCall>>>()?),
                None => calls.push(named(value)?),
            }
            rest = behind;
        } else {
            let (call, behind) = behind_name(rest)?;
            calls.push(call);
            rest = behind;
        }
        // Llama puts semicolons between calls, some models commas.
        rest = behind_markers(rest.strip_prefix(',').unwrap_or(rest));
    }
    Some(calls)
}

fn behind_markers(mut text: &str) -> &str {
    loop {
        text = text.trim_start();
        match MARKERS.iter().find_map(|marker| text.strip_prefix(marker)) {
            Some(behind) => text = behind,
            None => return text,
        }
    }
}

/// A name with its arguments, and what is behind them.
fn behind_name(text: &str) -> Option<(ToolCall, &str)> {
    let (mut name, mut rest) = word(text)?;
    // DeepSeek R1 says first what kind of tool it is.
    if name == "function" && !rest.starts_with('{') {
        (name, rest) = word(rest)?;
    }
    let mut id = String::new();
    if !rest.starts_with('{') {
        // Mistral's ids have nine letters or digits.
        let behind;
        (id, behind) = word(rest).map(|(id, behind)| (id.to_owned(), behind))?;
        if id.len() != 9 || !id.chars().all(|c| c.is_ascii_alphanumeric()) {
            return None;
        }
        rest = behind;
    }
    let (arguments, behind) = value(rest)?;
    arguments.starts_with('{').then(|| (ToolCall { id, ..ToolCall::new(bare_name(name), arguments) }, behind))
}

/// The word with which a text begins, and what is behind it and its markers.
fn word(text: &str) -> Option<(&str, &str)> {
    let end = text.find(|c: char| c.is_whitespace() || matches!(c, '{' | '[' | '<' | '`')).unwrap_or(text.len());
    let (word, behind) = text.split_at(end);
    // Gemma's calls look alike if they have no arguments.
    (is_name(word) && !word.starts_with("call:")).then(|| (word, behind_markers(behind)))
}

/// An object with name and arguments.
fn named(value: &str) -> Option<ToolCall> {
    let all = fields(within(value, '{', '}')?)?;
    // As in OpenAI's API. Within it there is no other: a stranger's text may have thousands.
    match field_of(&all, "function").filter(|function| function.starts_with('{')) {
        Some(function) => {
            let id = field_of(&all, "id").and_then(string).unwrap_or_default();
            of_fields(&fields(within(function, '{', '}')?)?).map(|call| ToolCall { id, ..call })
        }
        None => of_fields(&all),
    }
}

fn field_of<'a>(fields: &[(String, &'a str)], name: &str) -> Option<&'a str> {
    fields.iter().rfind(|(field, _)| field == name).map(|(_, value)| *value)
}

fn of_fields(fields: &[(String, &str)]) -> Option<ToolCall> {
    let field = |name: &str| field_of(fields, name);
    let name = string(field("name").or_else(|| field("tool_name"))?)?;
    let arguments = ["arguments", "parameters"].into_iter().find_map(field).unwrap_or("{}");
    // Some models write the JSON as a string.
    let arguments = match string(arguments) {
        Some(text) if text.trim().is_empty() => "{}".to_owned(),
        Some(text) => text,
        None if arguments == "null" => "{}".to_owned(),
        None => arguments.to_owned(),
    };
    let id = field("id").and_then(string).unwrap_or_default();
    is_name(&name).then(|| ToolCall { id, ..ToolCall::new(bare_name(&name), arguments) })
}

fn string(json: &str) -> Option<String> {
    serde_json::from_str(json).ok()
}

/// The JSON value with which a text begins, as it is written, and what is behind it.
fn value(text: &str) -> Option<(&str, &str)> {
    let mut values = serde_json::Deserializer::from_str(text).into_iter::<IgnoredAny>();
    values.next()?.ok()?;
    let (value, behind) = text.split_at(values.byte_offset());
    Some((value, behind.trim_start()))
}

/// What is within the brackets of a list or an object.
fn within(value: &str, open: char, close: char) -> Option<&str> {
    Some(value.strip_prefix(open)?.strip_suffix(close)?.trim_start())
}

/// The values of a list.
fn items(mut rest: &str) -> Option<Vec<&str>> {
    let mut all = Vec::new();
    while !rest.is_empty() {
        let (item, behind) = value(rest)?;
        all.push(item);
        rest = behind.strip_prefix(',').unwrap_or(behind).trim_start();
    }
    Some(all)
}

/// The fields of an object.
fn fields(mut rest: &str) -> Option<Vec<(String, &str)>> {
    let mut all = Vec::new();
    while !rest.is_empty() {
        let (name, behind) = value(rest)?;
        let (value, behind) = value(behind.strip_prefix(':')?.trim_start())?;
        all.push((string(name)?, value));
        rest = behind.strip_prefix(',').unwrap_or(behind).trim_start();
    }
    Some(all)
}
