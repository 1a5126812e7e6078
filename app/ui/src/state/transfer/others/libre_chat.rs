//! What LibreChat exports as JSON: a list of messages that name their parents, or messages inside of one another.

use serde_json::{Value, value::RawValue};

use super::{Fields, Read, joined, list, question, string};
use crate::state::transfer::{
    ImportError, LARGEST_FILE,
    turns::{Node, Said, linked},
};

/// JSON is not read to any depth, so messages inside of others are read apart from those. This limits how much text is looked at.
const MOST_BYTES: usize = 32 * LARGEST_FILE as usize;

pub(super) fn read(messages: Vec<&RawValue>, options: &Value) -> Result<Read, ImportError> {
    let (mut nodes, mut bytes) = (Vec::new(), 0);
    let mut due: Vec<_> = messages.into_iter().rev().map(|message| (message, None)).collect();
    while let Some((text, above)) = due.pop() {
        bytes += text.get().len();
        if bytes > MOST_BYTES {
            return Err(ImportError::TooLarge);
        }
        let Ok(message) = serde_json::from_str::<Fields>(text.get()) else { continue };
        let Some(id) = string(&message.value("messageId")) else { continue };
        let children = message.list("children").unwrap_or_default();
        due.extend(children.into_iter().rev().map(|child| (child, Some(id.clone()))));
        let parent = above.map_or_else(|| message.value("parentMessageId"), Value::from);
        let node = Node::new(&parent, Vec::new(), &message.value("createdAt"));
        nodes.push((id, Node { said: said(&message), ..node }));
    }
    let newest = nodes.iter().max_by(|(_, left), (_, right)| left.at.total_cmp(&right.at));
    let (current, changed) = newest.map_or((None, None), |(id, node)| (Some(id.clone()), Some(node.at)));
    let instructions = ["promptPrefix", "system"].iter().filter_map(|name| string(&options[name])).collect();
    Ok(Read { current, changed, instructions, ..Read::of(linked(nodes.into_iter())) })
}

fn said(message: &Fields) -> Said {
    let content = message.value("content");
    let of_parts = |name: &str| {
        let value = |part: &Value| string(&part[name]).or_else(|| string(&part[name]["value"]));
        joined(list(&content).iter().filter_map(value))
    };
    let (text, reasoning) = (of_parts("text"), of_parts("think"));
    let text = if text.is_empty() { string(&message.value("text")).unwrap_or_default() } else { text };
    if message.value("isCreatedByUser") == true {
        question(text, 0, list(&message.value("files")).iter().map(|file| (&file["filename"], None)))
    } else {
        Said::Answer { reasoning, text, model: string(&message.value("model")).unwrap_or_default() }
    }
}
