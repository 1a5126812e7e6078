//! Conversations as other programs write them: ChatGPT's export, Claude's, Open WebUI's, LibreChat's, and messages of OpenAI's API.
//! In each form, a conversation becomes a tree of messages, and the tree becomes turns. What is of an unknown form is left out, and
//! the rest is read.

mod claude;
mod gpt;
mod libre_chat;
mod moment;
mod web_ui;

use std::{borrow::Cow, collections::BTreeMap, iter, mem};

use potluck_text::texts;
use serde::Deserialize;
use serde_json::{Value, value::RawValue};

use super::{
    super::{AnswerSettings, AttachedFile, Conversation, QuestionParts},
    ImportError,
    turns::{Said, Tree, Turns, row},
};
pub(super) use moment::milliseconds;

/// The fields of an object. Only those that are asked for are read further.
#[derive(Deserialize)]
struct Fields<'a>(#[serde(borrow)] BTreeMap<Cow<'a, str>, &'a RawValue>);

impl<'a> Fields<'a> {
    fn value(&self, name: &str) -> Value {
        self.0.get(name).and_then(|value| serde_json::from_str(value.get()).ok()).unwrap_or_default()
    }

    fn list(&self, name: &str) -> Option<Vec<&'a RawValue>> {
        serde_json::from_str(self.0.get(name)?.get()).ok()
    }
}

/// What a form has of a conversation.
struct Read {
    tree: Tree,
    /// The newest message of the chosen branch.
    current: Option<String>,
    instructions: Vec<String>,
    /// Milliseconds since 1970, where the conversation itself does not say it.
    changed: Option<f64>,
}

impl Read {
    fn of(tree: Tree) -> Self {
        Self { tree, current: None, instructions: Vec::new(), changed: None }
    }
}

/// Reads a conversation, which gets an id of its own.
///
/// # Errors
/// It has another form, no question, or too many turns.
pub(super) fn read(text: &str, id: String) -> Result<Conversation, ImportError> {
    let fields: Fields = serde_json::from_str(text).map_err(|_| ImportError::NotOurs)?;
    let value = |name: &str| fields.value(name);
    let [mapping, chat, history] = ["mapping", "chat", "history"].map(value);
    let first = |names: &[&str]| names.iter().find_map(|name| string(&value(name)).or_else(|| string(&chat[name])));
    let read = if mapping.is_object() {
        gpt::read(&mapping, string(&value("current_node")))
    } else if let Value::Array(messages) = value("chat_messages") {
        claude::read(&messages, string(&value("current_leaf_message_uuid")))
    } else if chat.is_object() {
        web_ui::read(&chat)
    } else if history.is_object() {
        web_ui::read(&serde_json::from_str(text).map_err(|_| ImportError::NotOurs)?)
    } else {
        let messages = fields.list("messagesTree").or_else(|| fields.list("messages")).ok_or(ImportError::NotOurs)?;
        if string(&value("conversationId")).is_some() {
            libre_chat::read(messages, &value("options"))?
        } else {
            let messages: Vec<Value> = messages.iter().filter_map(|one| serde_json::from_str(one.get()).ok()).collect();
            let (system, messages): (Vec<_>, Vec<_>) =
                messages.iter().partition(|message| matches!(message["role"].as_str(), Some("system" | "developer")));
            let instructions = system.into_iter().flat_map(|message| texts_of(&message["content"]).0);
            let instructions = instructions.chain(string(&value("prompt"))).collect();
            Read { instructions, ..Read::of(row(messages.into_iter().map(said))) }
        }
    };
    let mut conversation = Conversation::new(id);
    conversation.title = first(&["title", "name"]).unwrap_or_default();
    let dates = ["update_time", "updated_at", "create_time", "created_at"].iter().map(|name| value(name));
    let date = dates.chain([chat["timestamp"].clone(), value("timestamp")]).find_map(|date| milliseconds(&date));
    conversation.changed = date.or(read.changed).unwrap_or(f64::NAN);
    let mut turns = Turns::of(&read.tree)?;
    let instructions = joined(read.instructions.into_iter().chain(mem::take(&mut turns.instructions)));
    if !instructions.is_empty() {
        conversation.own_answers = Some(AnswerSettings { instructions, ..AnswerSettings::default() });
    }
    turns.put_into(&mut conversation, &read.tree, read.current);
    Ok(conversation)
}

/// A message of OpenAI's API.
fn said(message: &Value) -> Said {
    let (texts, left_out) = texts_of(&message["content"]);
    match message["role"].as_str() {
        Some("user") => question(joined(texts), left_out, iter::empty()),
        Some("assistant") => {
            let reasoning = string(&message["reasoning_content"]).unwrap_or_default();
            Said::Answer { reasoning, text: noted(texts, left_out, Vec::new()), model: String::new() }
        }
        _ => Said::Nothing,
    }
}

/// A text that says something.
fn string(value: &Value) -> Option<String> {
    value.as_str().filter(|text| !text.trim().is_empty()).map(str::to_owned)
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn joined(texts: impl IntoIterator<Item = String>) -> String {
    texts.into_iter().collect::<Vec<_>>().join("\n\n")
}

/// The texts of a content, which is one or has parts, and how many of the parts are none.
fn texts_of(content: &Value) -> (Vec<String>, usize) {
    let of_part = |part: &Value| string(part).or_else(|| string(&part["text"]));
    let texts: Vec<_> = string(content).into_iter().chain(list(content).iter().filter_map(of_part)).collect();
    let is_sound = |part: &Value| part["content_type"].as_str().is_some_and(|kind| kind.contains("audio"));
    let others = list(content).iter().filter(|part| part.is_object() && part["text"].as_str().is_none());
    // What was spoken stands beside its sound.
    let left_out = others.filter(|part| texts.is_empty() || !is_sound(part)).count();
    (texts, left_out)
}

/// Texts, and what was left out: at least the files of these names.
fn noted(said: Vec<String>, left_out: usize, names: Vec<String>) -> String {
    let unnamed = left_out.saturating_sub(names.len());
    let named = names.into_iter().map(|name| texts().transfer.not_text_named(&name));
    let notes = named.chain(iter::repeat_n(texts().transfer.not_text().to_owned(), unnamed));
    joined(said.into_iter().chain(notes))
}

/// A question with its files: the text of each, or else its name.
fn question<'a>(text: String, left_out: usize, files: impl Iterator<Item = (&'a Value, Option<String>)>) -> Said {
    let (mut names, mut attached) = (Vec::new(), Vec::new());
    for (name, content) in files {
        let name = string(name).unwrap_or_default();
        match content {
            Some(content) => attached.push(AttachedFile::new(&name, &content)),
            None => names.push(name),
        }
    }
    let left_out = left_out.max(names.len());
    names.retain(|name| !name.is_empty());
    let text = noted(Some(text).filter(|text| !text.is_empty()).into_iter().collect(), left_out, names);
    Said::Question(QuestionParts { text, files: attached }.whole())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use serde_json::json;

    use super::{super::MOST_TURNS, *};
    use crate::state::{Versioned, Versions};

    fn read(value: Value) -> Result<Conversation, ImportError> {
        super::read(&value.to_string(), "fresh".into())
    }

    /// The chosen branch.
    fn shown(conversation: &Conversation) -> Vec<(&str, &str)> {
        conversation.turns.iter().map(|turn| (turn.question.as_str(), turn.answer.text.as_str())).collect()
    }

    fn gpt_node(parent: Option<&str>, children: &[&str], role: &str, parts: Value) -> Value {
        json!({
            "id": "x", "parent": parent, "children": children,
            "message": {
                "id": "x", "author": {"role": role, "name": null, "metadata": {}}, "create_time": 1.5, "status": "finished_successfully",
                "content": {"content_type": "text", "parts": parts}, "recipient": "all", "weight": 1.0, "end_turn": true,
                "metadata": {"model_slug": "gpt-4o"},
            },
        })
    }

    /// As ChatGPT exports it: a question with two answers, of which the second was gone on with.
    fn gpt() -> Value {
        let mut hidden = gpt_node(Some("root"), &["q"], "system", json!([""]));
        hidden["message"]["metadata"]["is_visually_hidden_from_conversation"] = json!(true);
        let mut tool = gpt_node(Some("q"), &["b2"], "assistant", json!(["search(soup)"]));
        tool["message"]["recipient"] = json!("browser");
        json!({
            "title": "Of soup", "create_time": 1_700_000_000.1, "update_time": 1_700_000_100.5, "current_node": "d",
            "mapping": {
                "root": {"id": "root", "message": null, "parent": null, "children": ["s"]},
                "s": hidden,
                "q": gpt_node(Some("s"), &["a", "b"], "user", json!(["Soup?"])),
                "a": gpt_node(Some("q"), &[], "assistant", json!(["Cold."])),
                "b": tool,
                "b2": gpt_node(Some("b"), &["c"], "assistant", json!(["Hot.", {"content_type": "image_asset_pointer"}])),
                "c": gpt_node(Some("b2"), &["d"], "user", json!(["Bread?"])),
                "d": gpt_node(Some("c"), &[], "assistant", json!(["Fresh."])),
            },
        })
    }

    #[test]
    fn chatgpts_export_keeps_its_branches() {
        let mut soup = read(gpt()).unwrap();
        assert_eq!((soup.title.as_str(), soup.changed), ("Of soup", 1_700_000_100_500.0));
        assert_eq!(shown(&soup), [("Soup?", "Hot.\n\n(not text)"), ("Bread?", "Fresh.")]);
        assert_eq!(soup.turns[0].answer.model, "gpt-4o");
        assert_eq!(soup.versions(0, Versioned::Answer), Versions { shown: 1, count: 2 });
        assert!(soup.choose(0, Versioned::Answer, 0));
        assert_eq!(shown(&soup), [("Soup?", "Cold.")]);
        let stored = serde_json::to_string(&soup).unwrap();
        assert_eq!(serde_json::from_str::<Conversation>(&stored).unwrap(), soup, "it is stored as any other");
        let mut old = gpt();
        old["update_time"] = json!(null);
        assert_eq!(read(old).unwrap().changed, 1_700_000_000_100.0, "when it was begun");
    }

    #[test]
    fn open_webuis_export_keeps_branches_reasoning_and_instructions() {
        let message = |parent: Value, children: Value, role: &str, content: &str| {
            json!({"id": "x", "parentId": parent, "childrenIds": children, "role": role, "content": content,
                   "model": "qwen3:8b", "timestamp": 1_700_000_000})
        };
        let answer = "<details type=\"reasoning\" done=\"true\" duration=\"3\">\n<summary>Thought for 3 seconds</summary>\n> Is it?\n> It is.\n</details>\nHot.";
        let soup = read(json!({
            "id": "c", "user_id": "u", "title": "Soup", "updated_at": 1_700_000_100, "archived": false, "pinned": true, "meta": {},
            "chat": {
                "title": "Of soup", "models": ["qwen3:8b"], "system": "Be brief.", "params": {}, "files": [], "tags": [],
                "history": {"currentId": "a", "messages": {
                    "q": message(json!(null), json!(["a", "b"]), "user", "Soup?"),
                    "a": message(json!("q"), json!([]), "assistant", answer),
                    "b": message(json!("q"), json!([]), "assistant", "Cold."),
                }},
                "messages": [],
            },
        }))
        .unwrap();
        assert_eq!(shown(&soup), [("Soup?", "Hot.")]);
        assert_eq!((soup.turns[0].answer.reasoning.as_str(), soup.aside.len()), ("Is it?\nIt is.", 1));
        assert_eq!(soup.own_answers.unwrap().instructions, "Be brief.");
    }

    #[test]
    fn messages_of_openais_api_are_read_as_they_are_exported() {
        let soup = read(json!({"messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": [{"type": "text", "text": "Soup?"}, {"type": "image_url", "image_url": {"url": "x"}}]},
            {"role": "assistant", "content": null, "tool_calls": []},
            {"role": "tool", "content": "12 soups"},
            {"role": "assistant", "content": "Hot."},
            {"role": "user", "content": "Bread?"},
        ]}))
        .unwrap();
        assert_eq!(shown(&soup), [("Soup?\n\n(not text)", "Hot."), ("Bread?", "")]);
        assert_eq!(soup.own_answers.unwrap().instructions, "Be brief.");
    }

    #[test]
    fn damaged_trees_are_read_as_far_as_they_go() {
        assert_eq!(read(json!({"title": "x"})), Err(ImportError::NotOurs));
        let mut unknown = gpt();
        unknown["mapping"]["d"]["message"]["content"] = json!("of a form to come");
        unknown["mapping"]["c"]["message"]["metadata"] = json!(null);
        assert_eq!(shown(&read(unknown).unwrap())[1], ("Bread?", ""), "only that message is lost");
        assert_eq!(read(json!({"messages": []})), Err(ImportError::Empty));
        let mut circle = gpt();
        circle["mapping"]["d"]["children"] = json!(["q", "nobody"]);
        assert_eq!(shown(&read(circle).unwrap()).len(), 2);
        let mut all_in_a_circle = gpt();
        all_in_a_circle["mapping"]["root"]["parent"] = json!("d");
        assert_eq!(read(all_in_a_circle), Err(ImportError::Empty), "it begins nowhere");
        let mut lost = gpt();
        lost["current_node"] = json!("nobody");
        assert_eq!(shown(&read(lost).unwrap()).len(), 2, "some branch is shown");
        let questions: Vec<_> = (0..=MOST_TURNS).map(|_| json!({"role": "user", "content": "?"})).collect();
        assert_eq!(read(json!({"messages": questions})), Err(ImportError::TooLarge));
    }
}
