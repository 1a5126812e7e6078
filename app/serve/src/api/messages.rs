//! Messages of a chat, as programs send them.

use potluck_panel::{Message, Role};
use potluck_text::texts;
use serde_json::Value;

use crate::error::ApiError;
use crate::fields::Fields;

/// What stands between the parts of a message.
const BETWEEN: &str = "\n";

/// The messages of a request, oldest first.
pub(super) fn messages(fields: &Fields<'_>) -> Result<Vec<Message>, ApiError> {
    let messages = fields.get("messages").ok_or_else(|| ApiError::invalid("messages", "expected a conversation"))?;
    let messages = messages.as_array().ok_or_else(|| ApiError::invalid("messages", "expected an array"))?;
    if messages.is_empty() {
        return Err(ApiError::invalid("messages", "expected at least one message"));
    }
    messages.iter().enumerate().map(|(index, message)| of(message, &format!("messages[{index}]"))).collect()
}

fn of(message: &Value, place: &str) -> Result<Message, ApiError> {
    let at = |field: &str| format!("{place}.{field}");
    let fields = Fields::of(message).map_err(|_| ApiError::invalid(place, "expected an object"))?;
    let role = match fields.get("role").and_then(Value::as_str) {
        Some("system" | "developer") => Role::System,
        Some("user") => Role::User,
        Some("assistant") => Role::Assistant,
        Some("tool" | "function") => {
            return Err(ApiError::unsupported(at("role"), texts().api.no_tool_messages()));
        }
        _ => return Err(ApiError::invalid(at("role"), "expected system, developer, user or assistant")),
    };
    if fields.get("tool_calls").is_some_and(|calls| calls.as_array().is_none_or(|calls| !calls.is_empty())) {
        return Err(ApiError::unsupported(at("tool_calls"), texts().api.no_tool_messages()));
    }
    let content = match fields.get("content") {
        // Of an assistant that only thought.
        None if role == Role::Assistant => String::new(),
        None => return Err(ApiError::invalid(at("content"), "expected a string or an array of parts")),
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(parts)) => {
            let parts = parts.iter().map(|part| text_of(part, &at("content")));
            parts.collect::<Result<Vec<_>, _>>()?.join(BETWEEN)
        }
        Some(_) => return Err(ApiError::invalid(at("content"), "expected a string or an array of parts")),
    };
    let reasoning = fields.get("reasoning_content").or(fields.get("reasoning")).and_then(Value::as_str);
    let reasoning = reasoning.filter(|_| role == Role::Assistant).unwrap_or_default().to_owned();
    Ok(Message { reasoning, ..Message::new(role, content) })
}

/// The text of a part. What is no text is a note, so that the conversation goes on.
fn text_of(part: &Value, place: &str) -> Result<String, ApiError> {
    if let Value::String(text) = part {
        return Ok(text.clone());
    }
    let kind = part.get("type").and_then(Value::as_str);
    let text = |name: &str| part.get(name).and_then(Value::as_str).map(str::to_owned);
    match kind {
        Some("text" | "input_text" | "output_text") => {
            text("text").ok_or_else(|| ApiError::invalid(place, "expected the part's text to be a string"))
        }
        Some("refusal") => Ok(text("refusal").unwrap_or_default()),
        Some("image_url" | "input_image" | "image") => Ok(texts().api.image().to_owned()),
        Some(_) => Ok(texts().api.no_text().to_owned()),
        None => Err(ApiError::invalid(place, "expected each part to have a type")),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use serde_json::json;

    use super::*;

    fn read(messages: &Value) -> Result<Vec<Message>, ApiError> {
        let body = json!({ "messages": messages });
        super::messages(&Fields::of(&body).unwrap())
    }

    #[test]
    fn roles_and_parts_become_messages() {
        let read = read(&json!([
            { "role": "developer", "content": "Be brief.", "name": "x" },
            { "role": "user", "content": [{ "type": "text", "text": "What is" }, { "type": "text", "text": "this?" }] },
            { "role": "assistant", "content": null, "reasoning_content": "Hm.", "tool_calls": [] },
            { "role": "user", "content": [{ "type": "image_url", "image_url": { "url": "data:…" } }, { "type": "input_audio" }] },
        ]))
        .unwrap();
        let of = |index: usize| (read[index].role, read[index].content.as_str());
        assert_eq!(of(0), (Role::System, "Be brief."));
        assert_eq!(of(1), (Role::User, "What is\nthis?"));
        assert_eq!((of(2), read[2].reasoning.as_str()), ((Role::Assistant, ""), "Hm."));
        let notes = format!("{}\n{}", texts().api.image(), texts().api.no_text());
        assert_eq!(of(3), (Role::User, notes.as_str()), "no error");
    }

    #[test]
    fn what_is_wrong_is_named_with_its_place() {
        for (messages, place) in [
            (json!([]), "messages"),
            (json!("Hello"), "messages"),
            (json!(["Hello"]), "messages[0]"),
            (json!([{ "role": "user", "content": "a" }, { "role": "wizard", "content": "b" }]), "messages[1].role"),
            (json!([{ "content": "a" }]), "messages[0].role"),
            (json!([{ "role": "user" }]), "messages[0].content"),
            (json!([{ "role": "user", "content": 5 }]), "messages[0].content"),
            (json!([{ "role": "user", "content": [{ "text": "a" }] }]), "messages[0].content"),
            (json!([{ "role": "user", "content": [{ "type": "text", "text": 1 }] }]), "messages[0].content"),
        ] {
            let error = read(&messages).unwrap_err();
            assert!(matches!(&error, ApiError::Invalid { field, .. } if field == place), "{messages}: {error}");
        }
        assert!(super::messages(&Fields::of(&json!({})).unwrap()).is_err());
    }

    #[test]
    fn calls_of_tools_are_refused_and_not_lost_silently() {
        for messages in [
            json!([{ "role": "tool", "content": "5", "tool_call_id": "a" }]),
            json!([{ "role": "assistant", "content": null, "tool_calls": [{ "id": "a" }] }]),
        ] {
            assert!(matches!(read(&messages), Err(ApiError::Unsupported { .. })), "{messages}");
        }
    }
}
