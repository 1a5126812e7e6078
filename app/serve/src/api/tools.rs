//! The functions that a request offers, and whether the answer must call one.

use std::collections::HashMap;
use std::fmt::Write;

use potluck_panel::{ToolChoice, ToolOffer};
use potluck_swarm::MAX_FUNCTIONS;
use potluck_text::texts;
use serde_json::{Map, Value};

use crate::error::ApiError;
use crate::fields::Fields;
use crate::question::Tools;

/// Bytes of a function's name, at most.
const MAX_NAME: usize = 128;
/// The usual order of a schema's fields, which models know. Others follow as the program has them.
const ORDER: [&str; 8] = ["type", "title", "description", "enum", "format", "items", "properties", "required"];
/// Of a function without parameters.
const NO_PARAMETERS: &str = r#"{"type": "object", "properties": {}}"#;

/// What a request says of tools.
pub(super) fn tools(fields: &Fields<'_>) -> Result<Tools, ApiError> {
    // The older form of a demand, whose answer would need its own.
    if fields.get("function_call").is_some_and(|choice| !matches!(choice.as_str(), Some("auto" | "none"))) {
        return Err(ApiError::unsupported("function_call", texts().api.no_tools()));
    }
    let mut functions = functions(fields)?;
    let given = fields.get("tool_choice");
    let choice = match given.map_or(Ok(Choice::Free), choice)? {
        Choice::Never => return Ok(Tools::default()),
        Choice::Free => ToolChoice::Free,
        Choice::Any => ToolChoice::Any,
        Choice::Function(name) => {
            functions.retain(|function| function.name == name);
            ToolChoice::Function(name)
        }
        Choice::Some { names, is_demanded } => {
            functions.retain(|function| names.contains(&function.name));
            if is_demanded { ToolChoice::Any } else { ToolChoice::Free }
        }
    };
    if choice != ToolChoice::Free && functions.is_empty() {
        return Err(ApiError::invalid("tool_choice", "expected a function that is in tools"));
    }
    // Anthropic's API has it in the choice.
    let not_parallel = given.and_then(|choice| choice.get("disable_parallel_tool_use")).and_then(Value::as_bool);
    let is_single = fields.boolean("parallel_tool_calls")? == Some(false) || not_parallel == Some(true);
    let is_strict = functions.iter().any(|function| function.is_strict);
    let functions = functions.into_iter().map(|function| function.text).collect();
    Ok(Tools { offer: ToolOffer { functions, choice }, is_single, is_strict })
}

enum Choice {
    Never,
    Free,
    Any,
    Function(String),
    /// Of these functions only.
    Some {
        names: Vec<String>,
        is_demanded: bool,
    },
}

/// A word in OpenAI's APIs, or an object with a type.
fn choice(choice: &Value) -> Result<Choice, ApiError> {
    let kind = choice.as_str().or_else(|| choice.get("type")?.as_str());
    let inner = |name: &str| choice.get(name).unwrap_or(choice);
    match kind {
        Some("none") => Ok(Choice::Never),
        Some("auto") => Ok(Choice::Free),
        Some("required" | "any") => Ok(Choice::Any),
        Some("function" | "tool") => {
            let name = inner("function").get("name").and_then(Value::as_str);
            name.map(|name| Choice::Function(name.to_owned()))
                .ok_or_else(|| ApiError::invalid("tool_choice", "expected the name of a function"))
        }
        Some("allowed_tools") => {
            let allowed = inner("allowed_tools");
            let named = |tool: &Value| Some(tool.get("function").unwrap_or(tool).get("name")?.as_str()?.to_owned());
            let names =
                allowed.get("tools").and_then(Value::as_array).into_iter().flatten().filter_map(named).collect();
            let is_demanded = allowed.get("mode").is_some_and(|mode| mode == "required");
            Ok(Choice::Some { names, is_demanded })
        }
        Some(_) => Err(ApiError::unsupported("tool_choice", texts().api.no_tools())),
        None => Err(ApiError::invalid("tool_choice", "expected a string or an object with a type")),
    }
}

struct Function {
    name: String,
    /// In the form that chat templates read.
    text: String,
    /// Its calls must fit its schema.
    is_strict: bool,
}

/// The functions among the tools; others are ignored, because programs offer them to every model.
fn functions(fields: &Fields<'_>) -> Result<Vec<Function>, ApiError> {
    let Some(tools) = fields.get("tools") else { return Ok(Vec::new()) };
    let tools = tools.as_array().ok_or_else(|| ApiError::invalid("tools", "expected an array"))?;
    let read = |(index, tool): (usize, &Value)| function(tool, &format!("tools[{index}]")).transpose();
    let functions = tools.iter().enumerate().filter_map(read).collect::<Result<Vec<Function>, ApiError>>()?;
    if functions.len() > MAX_FUNCTIONS {
        return Err(ApiError::invalid("tools", format!("expected at most {MAX_FUNCTIONS} functions")));
    }
    Ok(functions)
}

fn function(tool: &Value, place: &str) -> Result<Option<Function>, ApiError> {
    let kind = tool.get("type").and_then(Value::as_str);
    let (function, schema) = match (kind, tool.get("function")) {
        (Some("function") | None, Some(function)) => (function, "parameters"),
        // As in Responses.
        (Some("function"), None) => (tool, "parameters"),
        // As in Anthropic's API.
        (Some("custom") | None, None) if tool.get("input_schema").is_some() => (tool, "input_schema"),
        _ => return Ok(None),
    };
    let name = function.get("name").and_then(Value::as_str).unwrap_or_default();
    let is_letter = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    if !(1..=MAX_NAME).contains(&name.len()) || !name.chars().all(is_letter) {
        let expected = format!("expected up to {MAX_NAME} letters, digits, and signs of _-.");
        return Err(ApiError::invalid(format!("{place}.name"), expected));
    }
    let mut text = format!(r#"{{"type": "function", "function": {{"name": "{name}""#);
    let description = function.get("description").filter(|description| description.is_string());
    let parameters = match function.get(schema).filter(|schema| !schema.is_null()) {
        None => NO_PARAMETERS.to_owned(),
        Some(Value::Object(fields)) if fields.is_empty() => NO_PARAMETERS.to_owned(),
        Some(schema @ Value::Object(_)) => schema_text(schema),
        Some(_) => return Err(ApiError::invalid(format!("{place}.{schema}"), "expected a schema")),
    };
    if let Some(description) = description {
        // Writing to a string does not fail.
        _ = write!(text, r#", "description": {description}"#);
    }
    _ = write!(text, r#", "parameters": {parameters}}}}}"#);
    let is_strict = [tool, function].iter().any(|object| object.get("strict") == Some(&Value::Bool(true)));
    Ok(Some(Function { name: name.to_owned(), text, is_strict }))
}

/// A schema as JSON with its fields in their usual order, the others as the program has them. Parameters that are required
/// come first.
fn schema_text(schema: &Value) -> String {
    let mut text = String::new();
    write_in_order(schema, &ORDER, &mut text);
    text
}

fn write_in_order(value: &Value, order: &[&str], text: &mut String) {
    match value {
        Value::Object(fields) => {
            text.push('{');
            for (index, (name, value)) in in_order(fields, order).into_iter().enumerate() {
                text.push_str(if index > 0 { ", " } else { "" });
                _ = write!(text, "{}: ", Value::from(name));
                let required = fields.get("required").and_then(Value::as_array);
                let required = required.into_iter().flatten().filter_map(Value::as_str);
                match name {
                    "properties" => write_in_order(value, &required.collect::<Vec<_>>(), text),
                    _ => write_in_order(value, &ORDER, text),
                }
            }
            text.push('}');
        }
        Value::Array(items) => {
            text.push('[');
            for (index, item) in items.iter().enumerate() {
                text.push_str(if index > 0 { ", " } else { "" });
                write_in_order(item, &ORDER, text);
            }
            text.push(']');
        }
        _ => _ = write!(text, "{value}"),
    }
}

fn in_order<'a>(fields: &'a Map<String, Value>, order: &[&str]) -> Vec<(&'a str, &'a Value)> {
    // The first place counts.
    let places: HashMap<&str, usize> = order.iter().enumerate().rev().map(|(place, name)| (*name, place)).collect();
    let mut named: Vec<(&str, &Value)> = fields.iter().map(|(name, value)| (name.as_str(), value)).collect();
    named.sort_by_key(|(name, _)| places.get(name).copied().unwrap_or(usize::MAX));
    named
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use serde_json::json;

    use super::*;

    fn read(body: &Value) -> Result<Tools, ApiError> {
        tools(&Fields::of(body).unwrap())
    }

    fn with_choice(choice: &Value) -> Result<Tools, ApiError> {
        let tool = |name: &str| json!({ "type": "function", "function": { "name": name } });
        read(&json!({ "tools": [tool("a"), tool("b")], "tool_choice": choice }))
    }

    #[test]
    fn functions_of_each_api_get_the_form_of_chat_templates() {
        let schema = json!({
            "type": "object", "required": ["to", "from"], "additionalProperties": false,
            "properties": { "bags": { "type": "integer" }, "from": { "type": "string", "description": "Where" }, "to": { "type": "string" } },
        });
        let expected = concat!(
            r#"{"type": "function", "function": {"name": "go", "description": "Go \"there\"", "parameters": {"type": "object", "#,
            r#""properties": {"to": {"type": "string"}, "from": {"type": "string", "description": "Where"}, "#,
            r#""bags": {"type": "integer"}}, "required": ["to", "from"], "additionalProperties": false}}}"#
        );
        let description = "Go \"there\"";
        for tool in [
            json!({ "type": "function", "function": { "name": "go", "description": description, "parameters": schema, "strict": true } }),
            json!({ "type": "function", "name": "go", "description": description, "parameters": schema }),
            json!({ "name": "go", "description": description, "input_schema": schema, "cache_control": {} }),
            json!({ "type": "custom", "name": "go", "description": description, "input_schema": schema }),
        ] {
            let tools =
                read(&json!({ "tools": [tool, { "type": "web_search" }, { "type": "custom", "name": "c" }] })).unwrap();
            assert_eq!(tools.offer, ToolOffer { functions: vec![expected.to_owned()], choice: ToolChoice::Free });
        }
        let bare = read(&json!({ "tools": [{ "type": "function", "function": { "name": "now", "parameters": {} } }] }))
            .unwrap();
        let function: Value = serde_json::from_str(&bare.offer.functions[0]).unwrap();
        assert_eq!(function["function"]["parameters"], json!({ "type": "object", "properties": {} }));
    }

    #[test]
    fn a_choice_is_free_or_demands_a_call_or_leaves_functions_out() {
        let choice = |given: Value| with_choice(&given).map(|tools| (tools.offer.functions.len(), tools.offer.choice));
        assert_eq!(choice(json!("auto")), Ok((2, ToolChoice::Free)));
        assert_eq!(choice(json!({ "type": "auto" })), Ok((2, ToolChoice::Free)));
        assert_eq!(choice(json!("none")), Ok((0, ToolChoice::Free)));
        assert_eq!(choice(json!("required")), Ok((2, ToolChoice::Any)));
        assert_eq!(choice(json!({ "type": "any" })), Ok((2, ToolChoice::Any)));
        let a = || Ok((1, ToolChoice::Function("a".to_owned())));
        assert_eq!(choice(json!({ "type": "function", "function": { "name": "a" } })), a());
        assert_eq!(choice(json!({ "type": "function", "name": "a" })), a());
        assert_eq!(choice(json!({ "type": "tool", "name": "a" })), a());
        let allowed = json!({ "mode": "required", "tools": [{ "type": "function", "function": { "name": "b" } }] });
        assert_eq!(choice(json!({ "type": "allowed_tools", "allowed_tools": allowed })), Ok((1, ToolChoice::Any)));
        assert!(with_choice(&json!({ "type": "auto", "disable_parallel_tool_use": true })).unwrap().is_single);
        assert!(read(&json!({ "parallel_tool_calls": false })).unwrap().is_single);
        for (strict, tool) in [
            (true, json!({ "type": "function", "strict": true, "name": "a" })),
            (true, json!({ "type": "function", "function": { "name": "a", "strict": true } })),
            (true, json!({ "name": "a", "input_schema": {}, "strict": true })),
            (false, json!({ "type": "function", "function": { "name": "a", "strict": null } })),
        ] {
            assert_eq!(read(&json!({ "tools": [tool] })).unwrap().is_strict, strict, "{tool}");
        }
    }

    #[test]
    fn what_is_wrong_is_named() {
        let function = |name: &str, schema: Value| json!([{ "type": "function", "function": { "name": name, "parameters": schema } }]);
        for (body, field) in [
            (json!({ "tools": {} }), "tools"),
            (json!({ "tools": function("", json!({})) }), "tools[0].name"),
            (json!({ "tools": function("two words", json!({})) }), "tools[0].name"),
            (json!({ "tools": function("<|im_end|>", json!({})) }), "tools[0].name"),
            (json!({ "tools": function("a", json!([])) }), "tools[0].parameters"),
            (json!({ "tools": vec![function("a", json!({}))[0].clone(); MAX_FUNCTIONS + 1] }), "tools"),
            (json!({ "tool_choice": "required" }), "tool_choice"),
            (json!({ "tool_choice": 5 }), "tool_choice"),
            (
                json!({ "tools": function("a", json!({})), "tool_choice": { "type": "function", "name": "b" } }),
                "tool_choice",
            ),
            (
                json!({ "tools": function("a", json!({})), "tool_choice": { "type": "custom", "name": "a" } }),
                "tool_choice",
            ),
            (json!({ "function_call": { "name": "a" } }), "function_call"),
        ] {
            let error = read(&body).unwrap_err().to_json();
            assert_eq!(error["error"]["param"], field, "{error}");
        }
    }
}
