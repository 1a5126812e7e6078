//! Calls in tags: `name<arg_key>k</arg_key><arg_value>v</arg_value>` (GLM), `<function=name><parameter=k>v</parameter></function>`
//! (Qwen3-Coder, Nemotron 3), `<invoke name="name"><parameter name="k">v</parameter></invoke>` (MiniMax M2).

use super::{Functions, is_name, object};
use crate::ToolCall;

/// How a call begins, its name ends, the call ends; and the same of its parameters, whose values end with the last.
struct Form {
    call: [&'static str; 3],
    parameter: [&'static str; 3],
}

const FORMS: [Form; 2] = [
    Form { call: ["<function=", ">", "</function>"], parameter: ["<parameter=", ">", "</parameter>"] },
    Form { call: ["<invoke name=\"", "\">", "</invoke>"], parameter: ["<parameter name=\"", "\">", "</parameter>"] },
];

/// Of GLM, whose calls have no tags around them.
const KEY: [&str; 2] = ["<arg_key>", "</arg_key>"];
const VALUE: [&str; 2] = ["<arg_value>", "</arg_value>"];

/// The calls in a text.
pub(super) fn read(text: &str, functions: &Functions) -> Option<Vec<ToolCall>> {
    let mut rest = text.trim_start();
    // Looked for once: a stranger's text may have a word in place of each call.
    let has_keys = rest.contains(KEY[0]);
    let mut calls = Vec::new();
    while !rest.is_empty() {
        let form = FORMS.iter().find(|form| rest.starts_with(form.call[0]));
        let (call, behind) = match form {
            Some(form) => in_form(rest, form, functions)?,
            None => of_glm(rest, has_keys, functions)?,
        };
        calls.push(call);
        rest = behind.trim_start();
    }
    Some(calls)
}

fn in_form<'a>(text: &'a str, form: &Form, functions: &Functions) -> Option<(ToolCall, &'a str)> {
    let [open, named, close] = form.call;
    let (name, mut rest) = between(text, open, named)?;
    let name = name.trim().trim_matches('"');
    let [open, key_end, value_end] = form.parameter;
    let mut fields = Vec::new();
    while let Some((key, behind)) = between(rest.trim_start(), open, key_end) {
        let (value, behind) = behind.split_once(value_end)?;
        let value = value.strip_prefix('\n').unwrap_or(value);
        fields.push((key, value.strip_suffix('\n').unwrap_or(value)));
        rest = behind;
    }
    let rest = rest.trim_start().strip_prefix(close)?;
    is_name(name).then(|| (call(name, &fields, functions), rest))
}

/// A name without arguments is a call only beside calls with some, or if a function of that name was offered.
fn of_glm<'a>(text: &'a str, has_keys: bool, functions: &Functions) -> Option<(ToolCall, &'a str)> {
    let end = text.find(|c: char| c.is_whitespace() || c == '<').unwrap_or(text.len());
    let (name, mut rest) = text.split_at(end);
    let mut fields = Vec::new();
    while let Some((key, behind)) = between(rest.trim_start(), KEY[0], KEY[1]) {
        let (value, behind) = between(behind.trim_start(), VALUE[0], VALUE[1])?;
        fields.push((key, value));
        rest = behind;
    }
    let is_call = is_name(name) && (has_keys || functions.has(name));
    is_call.then(|| (call(name, &fields, functions), rest))
}

fn call(name: &str, fields: &[(&str, &str)], functions: &Functions) -> ToolCall {
    let value = |(key, value): &(&str, &str)| {
        let key = key.trim();
        (key.to_owned(), functions.value(name, key, value))
    };
    ToolCall::new(name, object(&fields.iter().map(value).collect::<Vec<_>>()))
}

/// What is between the first of these, with which the text begins, and the second; and what is behind that.
fn between<'a>(text: &'a str, open: &str, close: &str) -> Option<(&'a str, &'a str)> {
    text.strip_prefix(open)?.split_once(close)
}
