//! What a request asks.

use potluck_panel::{LogitOptions, Message, Role};
use potluck_text::texts;
use serde_json::Value;

use crate::api::calls::{Call, Calls};
use crate::api::{forms, messages, parameters, tools};
use crate::error::ApiError;
use crate::fields::Fields;
use crate::question::Question;

/// Fields that lead to what an earlier request left.
const LEFT_BEFORE: [&str; 2] = ["previous_response_id", "conversation"];

const NOTHING_STORED: &str =
    "nothing is stored here: send the whole conversation (some libraries do if store is false)";

/// The question in a request's body.
pub(crate) fn question(body: &Value) -> Result<Question, ApiError> {
    let fields = &Fields::of(body)?;
    parameters::refuse_what_cannot_be(fields)?;
    let format = fields.get("text").and_then(|text| text.get("format")).filter(|format| !format.is_null());
    let form = forms::of_format("text.format", format)?;
    let tools = tools::tools(fields)?;
    if let Some(name) = LEFT_BEFORE.into_iter().find(|name| fields.get(name).is_some()) {
        return Err(ApiError::unsupported(name, NOTHING_STORED));
    }
    if fields.boolean("background")? == Some(true) {
        return Err(ApiError::unsupported("background", "answers stop when their connection closes"));
    }
    let instructions = messages::instructions(fields, "instructions")?;
    let messages = input(fields)?;
    Ok(Question {
        model: fields.text("model")?.map(str::to_owned),
        messages: messages::with_joined_instructions(instructions.into_iter().chain(messages)),
        raw: false,
        max_tokens: parameters::max_tokens(fields, &["max_output_tokens"])?,
        sampling: parameters::sampling(fields)?,
        seed: parameters::seed(fields)?,
        reasoning: parameters::reasoning(fields),
        stops: Vec::new(),
        logits: LogitOptions { form: forms::with_calls(form, &tools), ..LogitOptions::default() },
        tools,
        answers: 1,
        delivery: parameters::delivery(fields)?,
    })
}

/// The messages of the input: a string, or items.
fn input(fields: &Fields<'_>) -> Result<Vec<Message>, ApiError> {
    let items = match fields.get("input") {
        Some(Value::String(text)) => return Ok(vec![Message::new(Role::User, text.clone())]),
        Some(Value::Array(items)) if !items.is_empty() => items,
        _ => return Err(ApiError::invalid("input", "expected a string or an array of items")),
    };
    let mut messages: Vec<Message> = Vec::new();
    let mut thought = String::new();
    let mut calls = Calls::default();
    for (index, item) in items.iter().enumerate() {
        let place = format!("input[{index}]");
        match item.get("type").map_or(Some("message"), Value::as_str) {
            Some("message") => {
                let before = std::mem::take(&mut thought);
                for mut message in messages::of(item, &place, &mut calls)? {
                    if message.role == Role::Assistant && message.reasoning.is_empty() {
                        message.reasoning.clone_from(&before);
                    }
                    messages.push(message);
                }
            }
            Some("function_call") => {
                let call = Call::new(item.get("call_id"), item.get("name"), item.get("arguments"), &place)?;
                // Calls of one turn are one message, with what was said before them.
                if messages.last().is_none_or(|last| last.role != Role::Assistant) {
                    let reasoning = std::mem::take(&mut thought);
                    messages.push(Message { reasoning, ..Message::new(Role::Assistant, "") });
                }
                if let Some(last) = messages.last_mut() {
                    // What was thought between what it said and the call.
                    let between = std::mem::take(&mut thought);
                    if !between.is_empty() {
                        last.reasoning.push_str(if last.reasoning.is_empty() { "" } else { "\n\n" });
                        last.reasoning.push_str(&between);
                    }
                    calls.make(call, last);
                }
            }
            Some("function_call_output") => {
                let text = messages::text_of(item.get("output"), &format!("{place}.output"))?;
                messages.push(calls.result(item.get("call_id"), text, &place)?);
            }
            Some("reasoning") => thought = reasoning(item),
            Some("item_reference") => return Err(ApiError::unsupported(place, NOTHING_STORED)),
            Some(_) => return Err(ApiError::unsupported(place, texts().api.no_tool_messages())),
            None => return Err(ApiError::invalid(place, "expected an item with a type")),
        }
    }
    if messages.is_empty() {
        return Err(ApiError::invalid("input", "expected at least one message"));
    }
    Ok(messages)
}

/// The text of a reasoning item, which belongs to the message after it. It may be encrypted by a service that cannot be asked here.
fn reasoning(item: &Value) -> String {
    let parts = item.get("content").and_then(Value::as_array);
    let texts = parts.into_iter().flatten().filter_map(|part| part.get("text")?.as_str());
    texts.collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use serde_json::json;

    use super::*;

    #[test]
    fn a_text_or_items_become_messages() {
        let asked = question(&json!({ "input": "Hi", "max_output_tokens": 9, "store": true, "include": [] })).unwrap();
        assert_eq!((asked.messages, asked.max_tokens), (vec![Message::new(Role::User, "Hi")], Some(9)));
        let asked = question(&json!({
            "instructions": "Be brief.",
            "input": [
                { "role": "developer", "content": "And kind." },
                { "role": "user", "content": [{ "type": "input_text", "text": "Hi" }] },
                { "type": "reasoning", "id": "r", "summary": [], "content": [{ "type": "reasoning_text", "text": "Hm." }] },
                { "type": "message", "role": "assistant", "content": [{ "type": "output_text", "text": "Hello" }] },
                { "role": "user", "content": "And?" },
            ],
            "tools": [{ "type": "custom", "name": "f" }], "tool_choice": "auto", "text": { "verbosity": "low" },
        }))
        .unwrap();
        let read: Vec<(Role, &str, &str)> = asked
            .messages
            .iter()
            .map(|message| (message.role, message.content.as_str(), message.reasoning.as_str()))
            .collect();
        let expected = [
            (Role::System, "Be brief.\n\nAnd kind.", ""),
            (Role::User, "Hi", ""),
            (Role::Assistant, "Hello", "Hm."),
            (Role::User, "And?", ""),
        ];
        assert_eq!(read, expected);
    }

    #[test]
    fn calls_and_their_results_become_messages() {
        let call = |id: &str| json!({ "type": "function_call", "call_id": id, "name": "now", "arguments": "{\"zone\": \"UTC\"}" });
        let result =
            |id: &str, output: Value| json!({ "type": "function_call_output", "call_id": id, "output": output });
        let asked = question(&json!({ "input": [
            { "role": "user", "content": "Hi" },
            { "type": "reasoning", "summary": [], "content": [{ "type": "reasoning_text", "text": "Hm." }] },
            call("a"), call("b"), result("a", json!("5")), result("b", json!([{ "type": "input_text", "text": "6" }])),
        ] }))
        .unwrap();
        let [_, called, first, second] = &asked.messages[..] else { panic!("{:?}", asked.messages) };
        let read = potluck_model::ToolCall::read(&called.tool_calls);
        assert_eq!((called.role, called.reasoning.as_str(), read.len()), (Role::Assistant, "Hm.", 2));
        assert_eq!((read[1].id.as_str(), read[1].arguments.as_str()), ("b", "{\"zone\": \"UTC\"}"));
        for (message, id, text) in [(first, "a", "5"), (second, "b", "6")] {
            assert_eq!((message.role, message.tool_call_id.as_str(), message.content.as_str()), (Role::Tool, id, text));
        }
    }

    #[test]
    fn what_cannot_be_is_refused_by_name() {
        let result = json!({ "type": "function_call_output", "call_id": "a", "output": "5" });
        let other = json!({ "type": "custom_tool_call", "call_id": "a", "name": "f", "input": "5" });
        for (wrong, field) in [
            (json!({}), "input"),
            (json!({ "input": [] }), "input"),
            (json!({ "input": 5 }), "input"),
            (json!({ "input": [{ "type": "reasoning", "summary": [] }] }), "input"),
            (json!({ "input": [5] }), "input[0]"),
            (json!({ "input": [{ "role": "wizard", "content": "a" }] }), "input[0].role"),
            (json!({ "input": [{ "type": "item_reference", "id": "a" }] }), "input[0]"),
            (json!({ "input": [result] }), "input[0]"),
            (json!({ "input": [other] }), "input[0]"),
            (json!({ "input": "a", "previous_response_id": "resp_1" }), "previous_response_id"),
            (json!({ "input": "a", "background": true }), "background"),
            (json!({ "input": "a", "tool_choice": "required" }), "tool_choice"),
            (json!({ "input": "a", "text": { "format": { "type": "json_schema" } } }), "text.format.schema"),
        ] {
            let error = question(&wrong).unwrap_err().to_json();
            assert_eq!(error["error"]["param"], field, "{wrong}: {error}");
        }
    }
}
