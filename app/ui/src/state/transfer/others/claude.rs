//! What Claude exports (`conversations.json`).

use serde_json::Value;

use super::{Read, joined, list, question, string};
use crate::state::transfer::turns::{Node, Said, linked, row};

pub(super) fn read(messages: &[Value], leaf: Option<String>) -> Read {
    // Older files have no branches.
    if messages.iter().all(|message| message["parent_message_uuid"].is_null()) {
        return Read::of(row(messages.iter().map(said)));
    }
    let id = |message: &Value| string(&message["uuid"]);
    let current = leaf.or_else(|| id(messages.last()?));
    let nodes = messages.iter().enumerate().map(|(at, message)| {
        let node = Node { said: said(message), parent: string(&message["parent_message_uuid"]), children: Vec::new() };
        (id(message).unwrap_or_else(|| at.to_string()), node)
    });
    Read { current, ..Read::of(linked(nodes.collect())) }
}

fn said(message: &Value) -> Said {
    let parts = list(&message["content"]).iter();
    // A text that stands beside the conversation is one of its parts, too.
    let text = |part: &Value| match part["name"].as_str() {
        Some("artifacts") => string(&part["input"]["content"]),
        _ => string(&part["text"]),
    };
    let texts: Vec<_> = parts.clone().filter_map(text).collect();
    let text = if texts.is_empty() { string(&message["text"]).unwrap_or_default() } else { joined(texts) };
    match message["sender"].as_str() {
        Some("human") => {
            let attachments = list(&message["attachments"]).iter().chain(list(&message["files"]));
            question(text, 0, attachments.map(|file| (&file["file_name"], string(&file["extracted_content"]))))
        }
        Some("assistant") => {
            let reasoning = joined(parts.filter_map(|part| string(&part["thinking"])));
            Said::Answer { reasoning, text, model: String::new() }
        }
        _ => Said::Nothing,
    }
}
