//! Messages of a chat, as programs send them.

use potluck_panel::{Message, Role};
use potluck_text::texts;
use serde_json::Value;

use super::calls::{Call, Calls};
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
    let (mut all, mut calls) = (Vec::new(), Calls::default());
    for (index, message) in messages.iter().enumerate() {
        all.extend(of(message, &format!("messages[{index}]"), &mut calls)?);
    }
    Ok(all)
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
            // Each result answers a call of its own.
            Some(last) if last.role == message.role && message.role != Role::Tool => {
                last.content = joined([last.content.as_str(), &message.content]);
                last.reasoning = joined([last.reasoning.as_str(), &message.reasoning]);
                last.tool_calls = joined([last.tool_calls.as_str(), &message.tool_calls]);
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

/// One message. In Anthropic's API it may have results of calls, which are messages of their own.
pub(super) fn of(message: &Value, place: &str, calls: &mut Calls) -> Result<Vec<Message>, ApiError> {
    let at = |field: &str| format!("{place}.{field}");
    let fields = Fields::of(message).map_err(|_| ApiError::invalid(place, "expected an object"))?;
    let role = match fields.get("role").and_then(Value::as_str) {
        Some("system" | "developer") => Role::System,
        Some("user") => Role::User,
        Some("assistant") => Role::Assistant,
        Some("tool") => {
            let text = text_of(fields.get("content"), &at("content"))?;
            return Ok(vec![calls.result(fields.get("tool_call_id"), text, &at("tool_call_id"))?]);
        }
        Some("function") => return Err(ApiError::unsupported(at("role"), texts().api.no_tool_messages())),
        _ => return Err(ApiError::invalid(at("role"), "expected system, developer, user, assistant or tool")),
    };
    let content = match fields.get("content") {
        // A message of an assistant may have only reasoning, or calls.
        None if role == Role::Assistant => Content::default(),
        content => content_of(content.unwrap_or(&Value::Null), &at("content"))?,
    };
    let beside = fields.get("reasoning_content").or(fields.get("reasoning")).and_then(Value::as_str);
    let reasoning = match beside {
        _ if role != Role::Assistant => String::new(),
        Some(reasoning) => reasoning.to_owned(),
        None => content.reasoning,
    };
    let mut said = Message { reasoning, ..Message::new(role, content.text) };
    if role == Role::Assistant {
        content.calls.into_iter().for_each(|call| calls.make(call, &mut said));
        for call in fields.get("tool_calls").map_or(Ok(&Vec::new()), |given| array(given, &at("tool_calls")))? {
            calls.make(Call::of_chat(call, &at("tool_calls"))?, &mut said);
        }
        return Ok(vec![said]);
    }
    let results = content.results.into_iter().map(|(id, text)| calls.result(Some(&id), text, &at("content")));
    let mut all = results.collect::<Result<Vec<Message>, ApiError>>()?;
    if all.is_empty() || !said.content.is_empty() {
        all.push(said);
    }
    Ok(all)
}

fn array<'a>(value: &'a Value, place: &str) -> Result<&'a Vec<Value>, ApiError> {
    value.as_array().ok_or_else(|| ApiError::invalid(place, "expected an array"))
}

/// The text of what a function gave.
pub(super) fn text_of(content: Option<&Value>, place: &str) -> Result<String, ApiError> {
    content.map_or(Ok(String::new()), |content| Ok(content_of(content, place)?.text))
}

/// What a message says.
#[derive(Debug, Default)]
struct Content {
    text: String,
    reasoning: String,
    calls: Vec<Call>,
    /// The id of the call, and the text.
    results: Vec<(Value, String)>,
}

/// The content of a message: a string, or an array of parts.
fn content_of(content: &Value, place: &str) -> Result<Content, ApiError> {
    let parts = match content {
        Value::String(text) => return Ok(Content { text: text.clone(), ..Content::default() }),
        Value::Array(parts) => parts,
        _ => return Err(ApiError::invalid(place, "expected a string or an array of parts")),
    };
    let (mut said, mut thought, mut calls, mut results) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for part in parts {
        match part_of(part, place)? {
            Part::Text(text) => said.push(text),
            Part::Reasoning(text) => thought.push(text),
            Part::Call(call) => calls.push(call),
            Part::Result(id, text) => results.push((id, text)),
        }
    }
    let reasoning = joined(thought.iter().map(String::as_str));
    Ok(Content { text: said.join(BETWEEN), reasoning, calls, results })
}

enum Part {
    Text(String),
    Reasoning(String),
    Call(Call),
    /// The id of the call, and the text.
    Result(Value, String),
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
        Some("tool_use") => Call::new(part.get("id"), part.get("name"), part.get("input"), place).map(Part::Call),
        Some("tool_result") => {
            let id = part.get("tool_use_id").cloned().unwrap_or_default();
            // No results are within results.
            let inner = part.get("content").filter(|content| !content.is_null());
            Ok(Part::Result(id, text_of(inner, place)?))
        }
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
    fn calls_and_their_results_are_kept() {
        let arguments = "{\"to\": \"b\", \"from\": 1.10}";
        let function = |arguments: Value| json!({ "name": "move", "arguments": arguments });
        let call =
            |id: &str, arguments: Value| json!({ "id": id, "type": "function", "function": function(arguments) });
        let read = read(&json!([
            { "role": "user", "content": "Go" },
            { "role": "assistant", "content": null, "tool_calls": [call("a", json!(arguments)), call("b", json!(""))] },
            { "role": "tool", "tool_call_id": "b", "content": [{ "type": "text", "text": "there" }] },
            { "role": "tool", "tool_call_id": "a", "content": "here" },
        ]))
        .unwrap();
        let calls = potluck_model::ToolCall::read(&read[1].tool_calls);
        let calls: Vec<[&str; 3]> =
            calls.iter().map(|call| [&call.id, &call.name, &call.arguments].map(String::as_str)).collect();
        assert_eq!(calls, [["a", "move", arguments], ["b", "move", "{}"]], "as they were written");
        let of = |index: usize| (read[index].role, read[index].tool_call_id.as_str(), read[index].content.as_str());
        assert_eq!([of(2), of(3)], [(Role::Tool, "b", "there"), (Role::Tool, "a", "here")]);
        let joined = with_joined_neighbours(read.clone());
        assert_eq!(joined, read, "each result answers a call of its own");
    }

    #[test]
    fn a_result_without_its_call_is_named() {
        let result = json!({ "role": "tool", "content": "5", "tool_call_id": "a" });
        let call = json!({ "id": "b", "type": "function", "function": { "name": "f" } });
        for (messages, place) in [
            (json!([result]), "messages[0].tool_call_id"),
            (json!([{ "role": "tool", "content": "5" }]), "messages[0].tool_call_id"),
            (json!([{ "role": "assistant", "tool_calls": [call] }, result]), "messages[1].tool_call_id"),
            (
                json!([{ "role": "user", "content": [{ "type": "tool_result", "tool_use_id": "a" }] }]),
                "messages[0].content",
            ),
            (json!([{ "role": "assistant", "tool_calls": [{ "id": "a" }] }]), "messages[0].tool_calls"),
            (
                json!([{ "role": "assistant", "tool_calls": [{ "function": { "name": "f" } }] }]),
                "messages[0].tool_calls",
            ),
            (json!([{ "role": "assistant", "tool_calls": 5 }]), "messages[0].tool_calls"),
            (json!([{ "role": "assistant", "content": [{ "type": "tool_use", "id": "a" }] }]), "messages[0].content"),
        ] {
            let error = read(&messages).unwrap_err();
            assert!(matches!(&error, ApiError::Invalid { field, .. } if field == place), "{messages}: {error}");
        }
        let custom = json!([{ "role": "assistant", "tool_calls": [{ "id": "a", "type": "custom", "custom": { "name": "f" } }] }]);
        assert!(matches!(read(&custom), Err(ApiError::Unsupported { .. })));
    }
}
