//! Messages of a chat, as programs send them.

use potluck_panel::{Message, Role};
use potluck_text::texts;
use serde_json::Value;

use crate::error::ApiError;
use crate::fields::Fields;

/// What stands between the parts of a message.
const BETWEEN: &str = "\n";
/// What stands between instructions that came in several messages.
const BETWEEN_INSTRUCTIONS: &str = "\n\n";

/// The messages of a request, oldest first.
pub(super) fn messages(fields: &Fields<'_>) -> Result<Vec<Message>, ApiError> {
    let messages = fields.get("messages").ok_or_else(|| ApiError::invalid("messages", "expected a conversation"))?;
    let messages = messages.as_array().ok_or_else(|| ApiError::invalid("messages", "expected an array"))?;
    if messages.is_empty() {
        return Err(ApiError::invalid("messages", "expected at least one message"));
    }
    messages.iter().enumerate().map(|(index, message)| of(message, &format!("messages[{index}]"))).collect()
}

/// A field with instructions, as a message, if it has any.
pub(super) fn instructions(fields: &Fields<'_>, name: &str) -> Result<Option<Message>, ApiError> {
    let Some(content) = fields.get(name) else { return Ok(None) };
    let text = content_of(content, name)?.text;
    Ok((!text.is_empty()).then(|| Message::new(Role::System, text)))
}

/// The same with the instructions at its beginning in one message: that is what chat templates know.
pub(super) fn with_joined_instructions(messages: impl IntoIterator<Item = Message>) -> Vec<Message> {
    let mut joined: Vec<Message> = Vec::new();
    for message in messages {
        match joined.as_mut_slice() {
            [first] if first.role == Role::System && message.role == Role::System => {
                first.content = [first.content.as_str(), &message.content].join(BETWEEN_INSTRUCTIONS);
            }
            _ => joined.push(message),
        }
    }
    joined
}

/// The same with neighbours of one role in one message, as in Anthropic's API: many chat templates insist on turns.
pub(super) fn with_joined_neighbours(messages: impl IntoIterator<Item = Message>) -> Vec<Message> {
    let mut turns: Vec<Message> = Vec::new();
    for message in messages {
        match turns.last_mut() {
            Some(last) if last.role == message.role => {
                last.content = joined([last.content.as_str(), &message.content]);
                last.reasoning = joined([last.reasoning.as_str(), &message.reasoning]);
            }
            _ => turns.push(message),
        }
    }
    turns
}

/// These texts one after another, without empty ones.
fn joined<'a>(texts: impl IntoIterator<Item = &'a str>) -> String {
    texts.into_iter().filter(|text| !text.is_empty()).collect::<Vec<_>>().join(BETWEEN)
}

/// One message.
pub(super) fn of(message: &Value, place: &str) -> Result<Message, ApiError> {
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
        // A message of an assistant may have only reasoning.
        None if role == Role::Assistant => Content::default(),
        content => content_of(content.unwrap_or(&Value::Null), &at("content"))?,
    };
    let beside = fields.get("reasoning_content").or(fields.get("reasoning")).and_then(Value::as_str);
    let reasoning = match beside {
        _ if role != Role::Assistant => String::new(),
        Some(reasoning) => reasoning.to_owned(),
        None => content.reasoning,
    };
    Ok(Message { reasoning, ..Message::new(role, content.text) })
}

/// What a message says.
#[derive(Debug, Default)]
struct Content {
    text: String,
    reasoning: String,
}

/// The content of a message: a string, or an array of parts.
fn content_of(content: &Value, place: &str) -> Result<Content, ApiError> {
    let parts = match content {
        Value::String(text) => return Ok(Content { text: text.clone(), ..Content::default() }),
        Value::Array(parts) => parts,
        _ => return Err(ApiError::invalid(place, "expected a string or an array of parts")),
    };
    let (mut said, mut thought) = (Vec::new(), Vec::new());
    for part in parts {
        match part_of(part, place)? {
            Part::Text(text) => said.push(text),
            Part::Reasoning(text) => thought.push(text),
        }
    }
    Ok(Content { text: said.join(BETWEEN), reasoning: joined(thought.iter().map(String::as_str)) })
}

enum Part {
    Text(String),
    Reasoning(String),
}

/// A part. What is no text is a note, so that the conversation goes on.
fn part_of(part: &Value, place: &str) -> Result<Part, ApiError> {
    if let Value::String(text) = part {
        return Ok(Part::Text(text.clone()));
    }
    let kind = part.get("type").and_then(Value::as_str);
    let text = |name: &str| part.get(name).and_then(Value::as_str).map(str::to_owned);
    match kind {
        Some("text" | "input_text" | "output_text") => {
            let text = text("text").ok_or_else(|| ApiError::invalid(place, "expected the part's text to be a string"));
            text.map(Part::Text)
        }
        Some("refusal") => Ok(Part::Text(text("refusal").unwrap_or_default())),
        Some("thinking") => Ok(Part::Reasoning(text("thinking").unwrap_or_default())),
        // Encrypted by a service that cannot be asked here.
        Some("redacted_thinking") => Ok(Part::Reasoning(String::new())),
        Some("image_url" | "input_image" | "image") => Ok(Part::Text(texts().api.image().to_owned())),
        Some("tool_use" | "tool_result") => Err(ApiError::unsupported(place, texts().api.no_tool_messages())),
        Some(_) => Ok(Part::Text(texts().api.no_text().to_owned())),
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
    fn thoughts_are_apart_from_what_was_said() {
        let thought = json!([{ "role": "assistant", "content": [
            { "type": "thinking", "thinking": "Hm.", "signature": "" },
            { "type": "redacted_thinking", "data": "x" },
            { "type": "text", "text": "Yes." },
        ] }]);
        let read = read(&thought).unwrap();
        assert_eq!((read[0].content.as_str(), read[0].reasoning.as_str()), ("Yes.", "Hm."));
    }

    #[test]
    fn instructions_at_the_beginning_become_one_message() {
        let of = |role, text: &str| Message::new(role, text);
        let all = [of(Role::System, "a"), of(Role::System, "b"), of(Role::User, "c"), of(Role::System, "d")];
        let joined = with_joined_instructions(all);
        assert_eq!(joined, [of(Role::System, "a\n\nb"), of(Role::User, "c"), of(Role::System, "d")]);
        let body = json!({ "system": [{ "type": "text", "text": "a", "cache_control": {} }], "empty": "", "wrong": 5 });
        let fields = Fields::of(&body).unwrap();
        assert_eq!(instructions(&fields, "system").unwrap().unwrap().content, "a");
        assert_eq!(instructions(&fields, "empty"), Ok(None));
        assert!(instructions(&fields, "wrong").is_err());
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
            json!([{ "role": "assistant", "content": [{ "type": "tool_use", "id": "a", "name": "f", "input": {} }] }]),
            json!([{ "role": "user", "content": [{ "type": "tool_result", "tool_use_id": "a", "content": "5" }] }]),
        ] {
            assert!(matches!(read(&messages), Err(ApiError::Unsupported { .. })), "{messages}");
        }
    }
}
