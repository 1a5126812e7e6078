//! What LibreChat exports as JSON: a list of messages that name their parents, or messages inside of one another.

use serde_json::Value;

use super::{Read, joined, list, question, string};
use crate::state::transfer::turns::{Node, Said, linked};

pub(super) fn read(messages: &[Value], options: &Value) -> Read {
    let (mut nodes, mut due) = (Vec::new(), messages.iter().rev().collect::<Vec<_>>());
    while let Some(message) = due.pop() {
        due.extend(list(&message["children"]).iter().rev());
        if let Some(id) = string(&message["messageId"]) {
            let node = Node::new(&message["parentMessageId"], Vec::new(), &message["createdAt"]);
            nodes.push((id, Node { said: said(message), ..node }));
        }
    }
    let newest = nodes.iter().max_by(|(_, left), (_, right)| left.at.total_cmp(&right.at));
    let (current, changed) = newest.map_or((None, None), |(id, node)| (Some(id.clone()), Some(node.at)));
    let instructions = ["promptPrefix", "system"].iter().filter_map(|name| string(&options[name])).collect();
    Read { current, changed, instructions, ..Read::of(linked(nodes.into_iter())) }
}

fn said(message: &Value) -> Said {
    let of_parts = |name: &str| {
        let value = |part: &Value| string(&part[name]).or_else(|| string(&part[name]["value"]));
        joined(list(&message["content"]).iter().filter_map(value))
    };
    let (text, reasoning) = (of_parts("text"), of_parts("think"));
    let text = if text.is_empty() { string(&message["text"]).unwrap_or_default() } else { text };
    if message["isCreatedByUser"] == true {
        question(text, 0, list(&message["files"]).iter().map(|file| (&file["filename"], None)))
    } else {
        Said::Answer { reasoning, text, model: string(&message["model"]).unwrap_or_default() }
    }
}
