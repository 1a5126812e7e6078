//! Conversations as other programs write them: ChatGPT's export, Claude's, Open WebUI's, and messages of OpenAI's API. In each form, a conversation becomes a tree of messages, and the tree becomes turns. What is of an unknown form is left out, and
//! the rest is read.

mod claude;
mod gpt;
mod moment;
mod web_ui;

use std::{iter, mem};

use potluck_text::texts;
use serde_json::Value;

use moment::milliseconds;

use super::{
    super::{AnswerSettings, AttachedFile, Conversation, QuestionParts},
    ImportError,
    turns::{Said, Tree, Turns, row},
};

/// What a form has of a conversation.
struct Read {
    tree: Tree,
    /// The newest message of the chosen branch.
    current: Option<String>,
    instructions: Vec<String>,
}

impl Read {
    fn of(tree: Tree) -> Self {
        Self { tree, current: None, instructions: Vec::new() }
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
        of_api(file["messages"].as_array().ok_or(ImportError::NotOurs)?)
    };
    let mut conversation = Conversation::new(id);
    let titles = [&chat["title"], &file["title"], &file["name"]];
    conversation.title = titles.into_iter().find_map(string).unwrap_or_default();
    let dates = ["update_time", "updated_at", "create_time", "created_at", "timestamp"].map(|name| &file[name]);
    let date = dates.into_iter().chain([&chat["timestamp"]]).find_map(milliseconds);
    conversation.changed = date.unwrap_or(f64::NAN);
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

    fn instructions(conversation: &Conversation) -> &str {
        &conversation.own_answers.as_ref().unwrap().instructions
    }

    /// A message of ChatGPT, as small as files have it.
    fn node(parent: &str, role: &str, parts: Value) -> Value {
        let metadata = json!({"model_slug": "gpt-4o"});
        json!({"parent": parent, "message": {"author": {"role": role}, "content": {"parts": parts}, "metadata": metadata}})
    }

    /// As ChatGPT exports it: a question with two answers, of which the second was gone on with.
    fn gpt() -> Value {
        let mapping = json!({
            "root": {"id": "root", "message": null, "parent": null, "children": ["s"]},
            "s": node("root", "system", json!([""])),
            "q": node("s", "user", json!(["Soup?"])),
            "a": node("q", "assistant", json!(["Cold."])),
            "b": node("q", "assistant", json!(["search(soup)"])),
            "b2": node("b", "assistant", json!(["Hot."])),
            "c": node("b2", "user", json!(["Bread?"])),
            "d": node("c", "assistant", json!(["Fresh."])),
        });
        let mut file =
            json!({"title": "Of soup", "create_time": 1.7e9, "update_time": 1_700_000_100.5, "mapping": mapping});
        file["current_node"] = json!("d");
        file["mapping"]["b"]["message"]["recipient"] = json!("browser");
        file
    }

    #[test]
    fn chatgpts_export_keeps_its_branches() {
        let mut soup = read(gpt()).unwrap();
        assert_eq!((soup.title.as_str(), soup.changed), ("Of soup", 1_700_000_100_500.0));
        assert_eq!(shown(&soup), [("Soup?", "Hot."), ("Bread?", "Fresh.")]);
        assert_eq!((soup.turns[0].answer.model.as_str(), &soup.own_answers), ("gpt-4o", &None));
        assert_eq!(soup.versions(0, Versioned::Answer), Versions { shown: 1, count: 2 });
        assert!(soup.choose(0, Versioned::Answer, 0));
        assert_eq!(shown(&soup), [("Soup?", "Cold.")]);
        let stored = serde_json::to_string(&soup).unwrap();
        assert_eq!(serde_json::from_str::<Conversation>(&stored).unwrap(), soup, "it is stored as any other");
        let mut old = gpt();
        old["update_time"] = json!(null);
        assert_eq!(read(old).unwrap().changed, 1.7e12, "when it was begun");
    }

    #[test]
    fn what_chatgpt_has_beside_its_text_is_named_or_left_out() {
        let mut file = gpt();
        let picture = json!({"content_type": "image_asset_pointer"});
        // One that is hidden, beside the next question, and a picture that was made.
        file["mapping"]["h"] = node("b2", "assistant", json!([""]));
        file["mapping"]["p"] = node("c", "tool", json!([picture]));
        file["current_node"] = json!("p");
        let thoughts = json!({"content_type": "thoughts", "thoughts": [{"summary": "A bowl", "content": ""}]});
        let source = json!([{"matched_text": "\u{e200}cite\u{e201}", "alt": " ([a](b))"}]);
        for (id, field, value) in [
            ("s", "content", json!({"parts": ["Be brief."]})),
            ("q", "content", json!({"parts": ["Draw!", picture]})),
            ("q", "metadata", json!({"attachments": [{"name": "soup.png"}, {"name": "soup.pdf"}]})),
            ("b", "recipient", json!("all")),
            ("b", "content", thoughts),
            (
                "b2",
                "content",
                json!({"parts": ["Done\u{e200}cite\u{e201}.\u{e200}x\u{e201}【8】【9 \u{e200}y\u{e201}"]}),
            ),
            ("b2", "metadata", json!({"content_references": source})),
            ("p", "content", json!({"content_type": "multimodal_text", "parts": [picture]})),
        ] {
            file["mapping"][id]["message"][field] = value;
        }
        let soup = read(file).unwrap();
        let question = "Draw!\n\n(not text: soup.png)\n\n(not text: soup.pdf)";
        assert_eq!(shown(&soup), [(question, "Done ([a](b)).【8】【9 "), ("Bread?", "(not text)")]);
        assert_eq!((soup.turns[0].answer.reasoning.as_str(), soup.aside.len()), ("A bowl", 2));
        assert_eq!(instructions(&soup), "Be brief.");
    }

    #[test]
    fn open_webuis_export_keeps_branches_reasoning_files_and_instructions() {
        let fold =
            |kind: &str, text: &str| format!("<details type=\"{kind}\">\n<summary>x</summary>\n{text}\n</details>\n");
        let answer = fold("reasoning", "&gt; Is it &lt; 9?\n> It is.") + &fold("tool_calls", "soups") + "Hot.";
        let files = json!([{"name": "a.txt", "file": {"data": {"content": "salt"}}}, {"type": "image", "url": "x"}]);
        let history = json!({"currentId": "a", "messages": {
            "q": {"parentId": null, "childrenIds": ["a", "b"], "role": "user", "content": "Soup?", "files": files},
            "a": {"parentId": "q", "childrenIds": [], "role": "assistant", "content": answer},
            "b": {"parentId": "q", "childrenIds": [], "role": "assistant", "content": "Cold."},
        }});
        let chat =
            json!({"title": "Of soup", "timestamp": 5e12, "params": {"system": "Be brief."}, "history": history});
        for (file, changed) in [(json!({"updated_at": 9, "chat": chat}), 9_000.0), (chat, 5e12)] {
            let soup = read(file).unwrap();
            assert_eq!((soup.title.as_str(), soup.changed), ("Of soup", changed));
            assert_eq!(shown(&soup), [("Soup?\n\n(not text)\n\nFile \"a.txt\":\n```txt\nsalt\n```", "Hot.")]);
            assert_eq!((soup.turns[0].answer.reasoning.as_str(), soup.aside.len()), ("Is it < 9?\nIt is.", 1));
            assert_eq!(instructions(&soup), "Be brief.");
        }
    }

    #[test]
    fn claudes_export_keeps_branches_reasoning_and_texts() {
        let texts =
            json!([{"thinking": "Is it?"}, {"text": "Hot."}, {"name": "artifacts", "input": {"content": "# Soup"}}]);
        let attached = json!([{"file_name": "a", "extracted_content": "salt"}, {"file_name": "b.png"}]);
        let mut file = json!({"name": "Of soup", "updated_at": "2001-09-09T01:46:40Z", "chat_messages": [
            {"uuid": "q", "sender": "human", "text": "Soup?", "attachments": attached},
            {"uuid": "z", "sender": "assistant", "content": texts},
        ]});
        let question = "Soup?\n\n(not text: b.png)\n\nFile \"a\":\n```\nsalt\n```";
        let soup = read(file.clone()).unwrap();
        assert_eq!((soup.title.as_str(), soup.changed), ("Of soup", 1e12));
        assert_eq!(shown(&soup), [(question, "Hot.\n\n# Soup")]);
        assert_eq!(soup.turns[0].answer.reasoning, "Is it?");
        file["chat_messages"][1]["parent_message_uuid"] = json!("q");
        let other = json!({"uuid": "a", "parent_message_uuid": "q", "sender": "assistant", "text": "Cold."});
        file["chat_messages"].as_array_mut().unwrap().push(other);
        let soup = read(file).unwrap();
        assert_eq!(shown(&soup), [(question, "Cold.")]);
        assert_eq!(soup.versions(0, Versioned::Answer), Versions { shown: 1, count: 2 });
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
        let mut many = gpt();
        many["mapping"]["a"] = node("q", "assistant", json!(["Soup. ".repeat(1 << 19)]));
        (0..40).for_each(|at| many["mapping"][format!("e{at}")] = node("a", "assistant", json!(["!"])));
        assert_eq!(read(many), Err(ImportError::TooLarge), "40 versions of one long answer");
    }
}
