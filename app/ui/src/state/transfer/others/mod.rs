//! Conversations as other programs write them: ChatGPT's export, Claude's, Open WebUI's, LibreChat's, and messages of OpenAI's API.
//! In each form, a conversation becomes a tree of messages, and the tree becomes turns. What is of an unknown form is left out, and
//! the rest is read.

mod claude;
mod gpt;
mod libre_chat;
mod moment;
mod web_ui;

use std::{iter, mem};

use potluck_text::texts;
use serde_json::Value;

use super::{
    super::{AnswerSettings, AttachedFile, Conversation, QuestionParts},
    ImportError,
    turns::{Said, Tree, Turns, row},
};
pub(super) use moment::milliseconds;

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
    let file: Value = serde_json::from_str(text).map_err(|_| ImportError::NotOurs)?;
    let chat = &file["chat"];
    let read = if file["mapping"].is_object() {
        gpt::read(&file["mapping"], string(&file["current_node"]))
    } else if let Value::Array(messages) = &file["chat_messages"] {
        claude::read(messages, string(&file["current_leaf_message_uuid"]))
    } else if chat.is_object() {
        web_ui::read(chat)
    } else if file["history"].is_object() {
        web_ui::read(&file)
    } else {
        let messages = file["messagesTree"].as_array().or_else(|| file["messages"].as_array());
        let messages = messages.ok_or(ImportError::NotOurs)?;
        if file["conversationId"].is_string() { libre_chat::read(messages, &file["options"]) } else { of_api(messages) }
    };
    let mut conversation = Conversation::new(id);
    let titles = [&chat["title"], &file["title"], &file["name"]];
    conversation.title = titles.into_iter().find_map(string).unwrap_or_default();
    let dates = ["update_time", "updated_at", "create_time", "created_at", "timestamp"].map(|name| &file[name]);
    let date = dates.into_iter().chain([&chat["timestamp"]]).find_map(milliseconds);
    conversation.changed = date.or(read.changed).unwrap_or(f64::NAN);
    let mut turns = Turns::of(&read.tree)?;
    let instructions = joined(read.instructions.into_iter().chain(mem::take(&mut turns.instructions)));
    if !instructions.is_empty() {
        conversation.own_answers = Some(AnswerSettings { instructions, ..AnswerSettings::default() });
    }
    turns.put_into(&mut conversation, &read.tree, read.current);
    Ok(conversation)
}

/// Messages of OpenAI's API.
fn of_api(messages: &[Value]) -> Read {
    let (system, messages): (Vec<_>, Vec<_>) =
        messages.iter().partition(|message| matches!(message["role"].as_str(), Some("system" | "developer")));
    let instructions = system.into_iter().flat_map(|message| texts_of(&message["content"]).0).collect();
    Read { instructions, ..Read::of(row(messages.into_iter().map(said))) }
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

    /// A message of ChatGPT as small as files have it.
    fn said(role: &str, parts: Value) -> Value {
        json!({"author": {"role": role}, "content": {"parts": parts}, "metadata": {}})
    }

    #[test]
    fn messages_follow_one_another_in_time_if_nothing_else_is_said() {
        let at = |time: i32, role: &str, text: &str| {
            let mut message = said(role, json!([text]));
            message["create_time"] = json!(time);
            json!({"message": message})
        };
        let mapping =
            json!({"a": at(2, "assistant", "Hot."), "b": at(3, "user", "Bread?"), "c": at(1, "user", "Soup?")});
        assert_eq!(shown(&read(json!({"mapping": mapping})).unwrap()), [("Soup?", "Hot."), ("Bread?", "")]);
        let mut parents = json!({"x": {"message": said("user", json!(["Soup?"]))}});
        parents["a"] = json!({"parent": "x", "message": said("assistant", json!(["Hot."]))});
        assert_eq!(shown(&read(json!({"mapping": parents})).unwrap()), [("Soup?", "Hot.")]);
    }

    #[test]
    fn what_chatgpt_has_beside_its_text_is_named_or_left_out() {
        let picture = json!({"content_type": "image_asset_pointer"});
        let mut row = vec![
            said("system", json!(["Be brief."])),
            said("user", json!(["Draw!", picture])),
            said("assistant", json!([])),
        ];
        row[1]["metadata"]["attachments"] = json!([{"name": "soup.png"}, {"name": "soup.pdf"}]);
        row[2]["content"] = json!({"content_type": "thoughts", "thoughts": [{"summary": "A bowl", "content": ""}]});
        row.push(said("tool", json!([picture])));
        row[3]["content"]["content_type"] = json!("multimodal_text");
        row.push(said("assistant", json!(["Done\u{e200}cite\u{e202}1\u{e201}.\u{e200}x\u{e201}"])));
        row[4]["metadata"]["content_references"] =
            json!([{"matched_text": "\u{e200}cite\u{e202}1\u{e201}", "alt": " ([a](b))"}]);
        let mut mapping = json!({});
        for (at, message) in row.iter().enumerate() {
            let parent = at.checked_sub(1).map(|at| at.to_string());
            mapping[at.to_string()] = json!({"parent": parent, "message": message});
        }
        // One that is hidden, beside the next question.
        mapping["h"] = json!({"parent": "4", "message": said("assistant", json!([""]))});
        mapping["q"] = json!({"parent": "4", "message": said("user", json!(["Thanks."]))});
        let soup = read(json!({"mapping": mapping, "current_node": "q"})).unwrap();
        let question = "Draw!\n\n(not text: soup.png)\n\n(not text: soup.pdf)";
        assert_eq!(shown(&soup), [(question, "(not text)\n\nDone ([a](b))."), ("Thanks.", "")]);
        assert_eq!((soup.turns[0].answer.reasoning.as_str(), soup.aside.len()), ("A bowl", 0));
        assert_eq!(soup.own_answers.unwrap().instructions, "Be brief.");
    }

    #[test]
    fn a_chat_of_open_webui_is_read_without_its_cover() {
        let fold = |kind: &str, text: &str| format!("<details type=\"{kind}\"><summary>x</summary>{text}</details>");
        let answer = [fold("reasoning", "&gt; 1 &lt; 2"), fold("tool_calls", "soups"), "Hot.".into()].concat();
        let history = json!({"currentId": "a", "messages": {
            "q": {"parentId": null, "role": "user", "content": "Soup?", "files": [
                {"name": "a.txt", "file": {"data": {"content": "salt"}}}, {"type": "image", "url": "x"},
            ]},
            "a": {"parentId": "q", "role": "assistant", "content": answer},
        }});
        let soup = read(json!({"timestamp": 5e12, "params": {"system": "Be brief."}, "history": history})).unwrap();
        assert_eq!(shown(&soup), [("Soup?\n\n(not text)\n\nFile \"a.txt\":\n```txt\nsalt\n```", "Hot.")]);
        assert_eq!((soup.turns[0].answer.reasoning.as_str(), soup.changed), ("1 < 2", 5e12));
        assert_eq!(soup.own_answers.unwrap().instructions, "Be brief.");
    }

    #[test]
    fn claudes_and_librechats_exports_are_read() {
        let soup = read(json!({"name": "Of soup", "updated_at": "2001-09-09T01:46:40Z", "chat_messages": [
            {"sender": "human", "text": "Soup?", "attachments": [{"file_name": "a", "extracted_content": "salt"}], "files": [{"file_name": "b.png"}]},
            {"sender": "assistant", "content": [{"type": "thinking", "thinking": "Is it?"}, {"type": "text", "text": "Hot."}]},
        ]}));
        let soup = soup.unwrap();
        assert_eq!((soup.title.as_str(), soup.changed), ("Of soup", 1e12));
        assert_eq!(shown(&soup), [("Soup?\n\n(not text: b.png)\n\nFile \"a\":\n```\nsalt\n```", "Hot.")]);
        assert_eq!(soup.turns[0].answer.reasoning, "Is it?");
        let message = |id: &str, text: &str, children: Value| {
            let parent = if id == "q" { "0" } else { "q" };
            json!({"messageId": id, "parentMessageId": parent, "isCreatedByUser": id == "q", "text": text, "children": children})
        };
        let answers = json!([message("a", "Hot.", json!([])), message("b", "Cold.", json!([]))]);
        let mut file = json!({"conversationId": "c", "options": {"promptPrefix": "Be brief."}});
        file["messages"] = json!([message("q", "Soup?", answers)]);
        let mut soup = read(file).unwrap();
        assert_eq!(soup.own_answers.clone().unwrap().instructions, "Be brief.");
        assert_eq!(soup.versions(0, Versioned::Answer).count, 2);
        assert!(soup.choose(0, Versioned::Answer, 0));
        assert_eq!(shown(&soup), [("Soup?", "Hot.")]);
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
