//! Conversations as the golden files have them.

use potluck_model::{LocalTime, Message, RenderOptions, ToolCall};
use serde_json::Value;

fn text(value: &Value) -> Option<String> {
    value.as_str().map(str::to_owned)
}

/// A message in the form of OpenAI's API.
fn message(value: &Value) -> Message {
    let call = |call: &Value| ToolCall {
        id: text(&call["id"]).unwrap(),
        name: text(&call["function"]["name"]).unwrap(),
        arguments: text(&call["function"]["arguments"]).unwrap(),
    };
    Message {
        role: text(&value["role"]).unwrap(),
        content: text(&value["content"]).unwrap(),
        reasoning: text(&value["reasoning_content"]),
        tool_calls: value["tool_calls"].as_array().map(|calls| calls.iter().map(call).collect()).unwrap_or_default(),
        tool_call_id: text(&value["tool_call_id"]),
        name: text(&value["name"]),
    }
}

/// Messages and options of a case.
pub fn conversation(case: &Value) -> (Vec<Message>, RenderOptions) {
    let messages = case["messages"].as_array().unwrap().iter().map(message).collect();
    let tools = case["tools"].as_array().map(|tools| tools.iter().filter_map(text).collect());
    let options = RenderOptions {
        tools: tools.unwrap_or_default(),
        add_generation_prompt: case["add_generation_prompt"].as_bool().unwrap_or(true),
        thinking: case["enable_thinking"].as_bool(),
        effort: None,
        now: Some(LocalTime { year: 2026, month: 11, day: 21, hour: 9, minute: 5, second: 7 }),
    };
    (messages, options)
}
