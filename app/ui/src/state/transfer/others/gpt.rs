//! What ChatGPT exports (`conversations.json`).

use std::collections::BTreeMap;

use serde_json::Value;

use super::{Read, joined, list, noted, string, texts_of};
use crate::state::transfer::turns::{Node, Said, linked};

/// What begins a mark that ChatGPT's page replaces, and what ends it.
const MARK: [char; 2] = ['\u{e200}', '\u{e201}'];

/// What stands where instructions stood.
const GONE: &str = "Original custom instructions no longer available";

pub(super) fn read(mapping: &Value, current: Option<String>) -> Read {
    let nodes = mapping.as_object().into_iter().flatten().map(|(id, node)| {
        let message = &node["message"];
        let children = list(&node["children"]).iter().filter_map(string).collect();
        (id.clone(), Node { said: said(message), parent: string(&node["parent"]), children })
    });
    Read { current, ..Read::of(linked(nodes.collect())) }
}

fn said(message: &Value) -> Said {
    let (content, metadata) = (&message["content"], &message["metadata"]);
    let is_for_all = message["recipient"].as_str().is_none_or(|recipient| recipient == "all");
    let is_hidden = metadata["is_visually_hidden_from_conversation"] == true;
    let names = list(&metadata["attachments"]).iter().filter_map(|file| string(&file["name"])).collect();
    let (texts, left_out) = texts_of(&content["parts"]);
    let answer =
        |reasoning, text| Said::Answer { reasoning, text, model: string(&metadata["model_slug"]).unwrap_or_default() };
    // Without a type, it is text.
    match (message["author"]["role"].as_str().unwrap_or_default(), content["content_type"].as_str().unwrap_or("text")) {
        ("user" | "system", "user_editable_context") => {
            let context = &metadata["user_context_message_data"];
            let user = string(&context["about_user_message"]).or_else(|| string(&content["user_profile"]));
            let model = string(&context["about_model_message"]).or_else(|| string(&content["user_instructions"]));
            Said::Instructions(joined(user.into_iter().chain(model)))
        }
        _ if texts == [GONE] => Said::Nothing,
        ("system", "text") => Said::Instructions(joined(texts)),
        _ if is_hidden || !is_for_all => Said::Nothing,
        ("user", "text" | "multimodal_text") => Said::Question(noted(texts, left_out, names)),
        ("assistant", "text" | "multimodal_text") => {
            answer(String::new(), without_marks(&noted(texts, left_out, names), list(&metadata["content_references"])))
        }
        ("assistant", "thoughts") => {
            let thoughts = list(&content["thoughts"]).iter();
            let mut thoughts: Vec<_> = thoughts
                .filter_map(|thought| string(&thought["content"]).or_else(|| string(&thought["summary"])))
                .collect();
            thoughts.dedup();
            answer(joined(thoughts), String::new())
        }
        ("assistant", "code") => {
            let language = content["language"].as_str().filter(|language| *language != "unknown").unwrap_or_default();
            answer(String::new(), format!("```{language}\n{}\n```", content["text"].as_str().unwrap_or_default()))
        }
        // A picture that was made.
        ("tool", "multimodal_text") if left_out > 0 => answer(String::new(), noted(Vec::new(), left_out, names)),
        _ => Said::Nothing,
    }
}

/// Puts sources where marks stand, and takes the other marks away.
fn without_marks(text: &str, references: &[Value]) -> String {
    let source = |one: &Value| Some((string(&one["matched_text"])?, string(&one["alt"]).unwrap_or_default()));
    let sources: BTreeMap<_, _> = references.iter().filter_map(source).collect();
    let (mut clean, mut rest) = (String::new(), text);
    let mut begins = vec![MARK[0], '【'];
    while let Some(start) = rest.find(begins.as_slice()) {
        let end = if rest[start..].starts_with(MARK[0]) { MARK[1] } else { '】' };
        let Some(length) = rest[start..].find(end).map(|length| length + end.len_utf8()) else {
            // None of its kind ends from here on.
            begins.retain(|begin| !rest[start..].starts_with(*begin));
            continue;
        };
        let mark = &rest[start..start + length];
        clean.push_str(&rest[..start]);
        let kept = if end == MARK[1] { "" } else { mark };
        clean.push_str(sources.get(mark).map_or(kept, String::as_str));
        rest = &rest[start + length..];
    }
    clean + rest
}
