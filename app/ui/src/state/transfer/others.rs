//! Conversations as other programs write them: ChatGPT's export (`conversations.json`), Open WebUI's (*Export chats*), and messages
//! of OpenAI's API. In each form, a conversation becomes a tree of messages, and the tree becomes turns.

use std::collections::BTreeMap;

use potluck_text::texts;
use serde::Deserialize;

use super::{
    super::{AnswerSettings, Conversation},
    ImportError,
    turns::{Node, Said, Turns, row},
};

/// One conversation of a file, in any of the forms.
#[derive(Deserialize)]
pub(super) struct Exported {
    title: Option<String>,
    /// ChatGPT: seconds since 1970.
    update_time: Option<f64>,
    /// The same. Older files have only this.
    create_time: Option<f64>,
    /// ChatGPT's messages.
    mapping: Option<BTreeMap<String, GptNode>>,
    current_node: Option<String>,
    /// Open WebUI: seconds since 1970.
    updated_at: Option<f64>,
    /// What Open WebUI has of it.
    chat: Option<WebUiChat>,
    /// OpenAI's API.
    messages: Option<Vec<ApiMessage>>,
}

#[derive(Deserialize)]
struct GptNode {
    message: Option<Known<GptMessage>>,
    parent: Option<String>,
    #[serde(default)]
    children: Vec<String>,
}

/// What is known, or anything else: a message of an unknown form is left out, and its conversation is read.
#[derive(Deserialize)]
#[serde(untagged)]
enum Known<T> {
    Read(T),
    Other(serde::de::IgnoredAny),
}

#[derive(Deserialize)]
struct GptMessage {
    author: GptAuthor,
    content: GptContent,
    /// Who gets it: `all`, or a tool.
    recipient: Option<String>,
    metadata: Option<GptMetadata>,
}

#[derive(Deserialize)]
struct GptAuthor {
    role: String,
}

#[derive(Deserialize)]
struct GptContent {
    content_type: String,
    #[serde(default)]
    parts: Vec<Part>,
    #[serde(default)]
    thoughts: Vec<GptThought>,
}

#[derive(Default, Deserialize)]
struct GptMetadata {
    model_slug: Option<String>,
    is_visually_hidden_from_conversation: Option<bool>,
}

#[derive(Deserialize)]
struct GptThought {
    #[serde(default)]
    content: String,
}

#[derive(Deserialize)]
struct WebUiChat {
    title: Option<String>,
    history: Option<WebUiHistory>,
    #[serde(default)]
    messages: Vec<WebUiMessage>,
    system: Option<String>,
}

#[derive(Deserialize)]
struct WebUiHistory {
    #[serde(default)]
    messages: BTreeMap<String, WebUiMessage>,
    #[serde(rename = "currentId")]
    current: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WebUiMessage {
    parent_id: Option<String>,
    #[serde(default)]
    children_ids: Vec<String>,
    role: String,
    #[serde(default)]
    content: Content,
    model: Option<String>,
    model_name: Option<String>,
}

#[derive(Deserialize)]
struct ApiMessage {
    role: String,
    #[serde(default)]
    content: Content,
    reasoning_content: Option<String>,
}

/// A text, or parts of which some are text.
#[derive(Deserialize)]
#[serde(untagged)]
enum Content {
    Text(String),
    Parts(Vec<Part>),
    None(()),
}

impl Default for Content {
    fn default() -> Self {
        Self::None(())
    }
}

/// A text, an object with one, or something else, such as a picture.
#[derive(Deserialize)]
#[serde(untagged)]
enum Part {
    Text(String),
    Object { text: String },
    Other(serde::de::IgnoredAny),
}

impl Content {
    fn into_text(self) -> String {
        match self {
            Self::Text(text) => text,
            Self::Parts(parts) => joined(parts),
            Self::None(()) => String::new(),
        }
    }
}

fn joined(parts: Vec<Part>) -> String {
    let text = |part| match part {
        Part::Text(text) | Part::Object { text } => text,
        Part::Other(_) => texts().transfer.not_text().to_owned(),
    };
    parts.into_iter().map(text).filter(|text| !text.trim().is_empty()).collect::<Vec<_>>().join("\n\n")
}

impl Exported {
    /// The conversation, with an id of its own.
    ///
    /// # Errors
    /// It has another form, no question, or too many turns.
    pub(super) fn read(self, id: String) -> Result<Conversation, ImportError> {
        let Self { mut title, update_time, create_time, mapping, mut current_node, updated_at, chat, messages } = self;
        let mut changed = update_time.or(create_time);
        let mut instructions = String::new();
        let tree = match (mapping, chat, messages) {
            (Some(mapping), ..) => mapping.into_iter().map(|(id, node)| (id, node.into())).collect(),
            (_, Some(chat), _) => {
                (title, changed) = (chat.title.or(title), updated_at);
                instructions = chat.system.unwrap_or_default();
                match chat.history.filter(|history| !history.messages.is_empty()) {
                    Some(history) => {
                        current_node = history.current;
                        history.messages.into_iter().map(|(id, message)| (id, message.into())).collect()
                    }
                    None => row(chat.messages.into_iter().map(|message| Node::from(message).said)),
                }
            }
            (.., Some(messages)) => {
                let is_system = |message: &ApiMessage| matches!(message.role.as_str(), "system" | "developer");
                let (system, messages): (Vec<_>, Vec<_>) = messages.into_iter().partition(is_system);
                let system: Vec<_> = system.into_iter().map(|message| message.content.into_text()).collect();
                instructions = system.join("\n\n");
                row(messages.into_iter().map(Said::from))
            }
            _ => return Err(ImportError::NotOurs),
        };
        let mut conversation = Conversation::new(id);
        conversation.title = title.unwrap_or_default();
        conversation.changed = changed.map_or(f64::NAN, |seconds| seconds * 1_000.0);
        if !instructions.trim().is_empty() {
            conversation.own_answers = Some(AnswerSettings { instructions, ..AnswerSettings::default() });
        }
        let turns = Turns::of(&tree)?;
        turns.put_into(&mut conversation, &tree, current_node);
        Ok(conversation)
    }
}

impl From<GptNode> for Node {
    fn from(node: GptNode) -> Self {
        let said = node.message.map_or(Said::Nothing, |message| {
            let Known::Read(GptMessage { author, content, recipient, metadata }) = message else {
                return Said::Nothing;
            };
            let metadata = metadata.unwrap_or_default();
            let is_for_all = recipient.as_deref().is_none_or(|recipient| recipient == "all");
            let is_shown = is_for_all && metadata.is_visually_hidden_from_conversation != Some(true);
            let reasoning =
                content.thoughts.into_iter().map(|thought| thought.content).collect::<Vec<_>>().join("\n\n");
            match (author.role.as_str(), content.content_type.as_str()) {
                _ if !is_shown => Said::Nothing,
                ("user", "text" | "multimodal_text") => Said::Question(joined(content.parts)),
                ("assistant", "text" | "multimodal_text" | "thoughts") => Said::Answer {
                    reasoning,
                    text: joined(content.parts),
                    model: metadata.model_slug.unwrap_or_default(),
                },
                _ => Said::Nothing,
            }
        });
        Self { said, parent: node.parent, children: node.children }
    }
}

impl From<WebUiMessage> for Node {
    fn from(message: WebUiMessage) -> Self {
        let WebUiMessage { parent_id, children_ids, role, content, model, model_name } = message;
        let said = match role.as_str() {
            "user" => Said::Question(content.into_text()),
            "assistant" => {
                let (reasoning, text) = apart_from_reasoning(content.into_text());
                Said::Answer { reasoning, text, model: model_name.or(model).unwrap_or_default() }
            }
            _ => Said::Nothing,
        };
        Self { said, parent: parent_id, children: children_ids }
    }
}

impl From<ApiMessage> for Said {
    fn from(message: ApiMessage) -> Self {
        let ApiMessage { role, content, reasoning_content } = message;
        let text = content.into_text();
        match role.as_str() {
            "user" => Self::Question(text),
            "assistant" => {
                Self::Answer { reasoning: reasoning_content.unwrap_or_default(), text, model: String::new() }
            }
            _ => Self::Nothing,
        }
    }
}

/// Open WebUI writes reasoning into the answer, as a fold that begins it.
fn apart_from_reasoning(text: String) -> (String, String) {
    const BEGIN: &str = "<details type=\"reasoning\"";
    let fold = text.trim_start().strip_prefix(BEGIN).and_then(|rest| rest.split_once("</details>"));
    let Some((fold, answer)) = fold else { return (String::new(), text) };
    let inside = fold.split_once("</summary>").map_or("", |(_, inside)| inside).trim();
    let lines = inside.lines().map(|line| line.strip_prefix('>').map_or(line, str::trim_start));
    (lines.collect::<Vec<_>>().join("\n"), answer.trim_start().to_owned())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use serde_json::{Value, json};

    use super::{super::MOST_TURNS, *};
    use crate::state::{Versioned, Versions};

    fn read(value: Value) -> Result<Conversation, ImportError> {
        serde_json::from_value::<Exported>(value).unwrap().read("fresh".into())
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
