//! What Open WebUI exports: all chats of a person, one of them, or only its `chat`.

use serde_json::Value;

use super::{Read, joined, list, noted, question, string, texts_of};
use crate::state::transfer::turns::{Node, Said, linked, row};

pub(super) fn read(chat: &Value) -> Read {
    let history = &chat["history"];
    let nodes = history["messages"].as_object().into_iter().flatten().map(|(id, message)| {
        let children = list(&message["childrenIds"]).iter().filter_map(string).collect();
        (id.clone(), Node { said: said(message), parent: string(&message["parentId"]), children })
    });
    let nodes: Vec<_> = nodes.collect();
    let tree = if nodes.is_empty() { row(list(&chat["messages"]).iter().map(said)) } else { linked(nodes) };
    let system = string(&chat["system"]).or_else(|| string(&chat["params"]["system"]));
    Read { current: string(&history["currentId"]), instructions: system.into_iter().collect(), ..Read::of(tree) }
}

fn said(message: &Value) -> Said {
    let (texts, left_out) = texts_of(&message["content"]);
    match message["role"].as_str() {
        Some("user") => {
            let files = list(&message["files"]).iter();
            let files = files.map(|file| (&file["name"], string(&file["file"]["data"]["content"])));
            question(joined(texts), left_out, files)
        }
        Some("assistant") => {
            let (reasoning, text) = apart_from_folds(&noted(texts, left_out, Vec::new()));
            let model = string(&message["modelName"]).or_else(|| string(&message["model"])).unwrap_or_default();
            Said::Answer { reasoning, text, model }
        }
        _ => Said::Nothing,
    }
}

/// Open WebUI writes reasoning and calls of tools into the answer, as folds. Reasoning is kept apart; calls are left out.
fn apart_from_folds(text: &str) -> (String, String) {
    const BEGIN: &str = "<details type=\"";
    let (mut reasoning, mut answer, mut rest) = (Vec::new(), String::new(), text);
    while let Some(at) = rest.find(BEGIN) {
        let (before, from) = rest.split_at(at);
        let Some((fold, after)) = from.split_once("</details>") else { break };
        answer.push_str(before);
        match fold[BEGIN.len()..].split('"').next() {
            Some("reasoning") => reasoning.push(inside(fold)),
            Some("tool_calls" | "code_interpreter") => {}
            _ => answer.push_str(&from[..from.len() - after.len()]),
        }
        rest = after;
    }
    answer.push_str(rest);
    if reasoning.is_empty() { (String::new(), answer) } else { (joined(reasoning), answer.trim_start().to_owned()) }
}

/// The text of a fold, which is quoted, and escaped as HTML is.
fn inside(fold: &str) -> String {
    let inside = fold.split_once("</summary>").map_or("", |(_, inside)| inside).trim();
    let signs = [("&gt;", ">"), ("&lt;", "<"), ("&quot;", "\""), ("&#x27;", "'"), ("&#39;", "'"), ("&amp;", "&")];
    let inside = signs.iter().fold(inside.to_owned(), |text, (escaped, sign)| text.replace(escaped, sign));
    inside.lines().map(|line| line.strip_prefix('>').map_or(line, str::trim_start)).collect::<Vec<_>>().join("\n")
}
