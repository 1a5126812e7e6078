//! Conversations as files: as Markdown, as the messages of OpenAI's API, and in a form of its own that is read again. What other
//! programs export is read, too.

#[cfg(test)]
mod foreign;
mod others;
mod turns;

use potluck_text::texts;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json, value::RawValue};
use thiserror::Error;

use super::{AnswerSettings, AnswerState, Conversation};

/// The version of the own form that this page writes.
const VERSION: u64 = 1;
/// What a file in the own form says it is.
const FORM: &str = "potluck-conversation";
/// Largest file that is read, in bytes.
pub const LARGEST_FILE: u64 = 48 << 20;
/// Turns of a conversation that is imported: stepping between versions looks at all of them.
const MOST_TURNS: usize = 5_000;
/// Most letters of a title from a file.
const LONGEST_TITLE: usize = 200;

/// A form in which a conversation is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileForm {
    /// To be read by people.
    Markdown,
    /// To be read by Potluck, with all branches.
    Own,
    /// To be read by programs that take messages as OpenAI's API does.
    Messages,
}

impl FileForm {
    /// The name of a conversation's file.
    #[must_use]
    pub fn file_name(self, conversation: &Conversation) -> String {
        let name = conversation.file_stem();
        match self {
            Self::Markdown => format!("{name}.md"),
            Self::Own => format!("{name}.potluck.json"),
            Self::Messages => format!("{name}.messages.json"),
        }
    }

    /// The media type.
    #[must_use]
    pub const fn media_type(self) -> &'static str {
        match self {
            Self::Markdown => "text/markdown",
            Self::Own | Self::Messages => "application/json",
        }
    }

    /// What is in the file. All but the own form have the chosen branch only.
    #[must_use]
    pub fn write(self, conversation: &Conversation) -> String {
        match self {
            Self::Markdown => markdown(conversation),
            Self::Own => pretty(&Envelope { form: FORM, version: VERSION, conversation }),
            Self::Messages => pretty(&json!({ "messages": messages(conversation) })),
        }
    }
}

impl Conversation {
    /// The name of a file with it, without what says its form.
    #[must_use]
    pub fn file_stem(&self) -> String {
        let is_plain = |letter: char| letter.is_alphanumeric() || " -_".contains(letter);
        let name: String = self.title.chars().filter(|letter| is_plain(*letter)).take(60).collect();
        if name.trim().is_empty() { "potluck".to_owned() } else { name.trim().to_owned() }
    }
}

#[derive(Serialize)]
struct Envelope<'a> {
    form: &'a str,
    version: u64,
    conversation: &'a Conversation,
}

/// Why a file is not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum ImportError {
    /// It has more than [`LARGEST_FILE`] bytes, or more than [`MOST_TURNS`] turns.
    #[error("{}", texts().transfer.too_large(LARGEST_FILE))]
    TooLarge,
    /// It is something else.
    #[error("{}", texts().transfer.not_ours())]
    NotOurs,
    /// A later version of the page has written it.
    #[error("{}", texts().transfer.newer())]
    Newer,
    /// It is damaged.
    #[error("{}", texts().transfer.broken())]
    Broken,
    /// It has no question.
    #[error("{}", texts().transfer.empty())]
    Empty,
}

/// What was read from a file.
#[derive(Clone, Debug, PartialEq)]
pub struct Imported {
    /// The conversations, each with an id of its own.
    pub conversations: Vec<Conversation>,
    /// So many others of the file cannot be read.
    pub unreadable: usize,
}

/// Reads a file: one conversation in the own form, or what other programs export. Each conversation gets an id from `ids`.
///
/// # Errors
/// The file is something else, damaged, too large, or of a later version, and nothing of it can be read.
pub fn read(text: &str, mut ids: impl FnMut() -> String, now: f64) -> Result<Imported, ImportError> {
    if text.len() as u64 > LARGEST_FILE {
        return Err(ImportError::TooLarge);
    }
    let text = text.trim_start_matches('\u{feff}').trim_start();
    if !text.starts_with('[') {
        let conversation = read_one(text, ids(), now)?;
        return Ok(Imported { conversations: vec![conversation], unreadable: 0 });
    }
    // One after the other: the damage of one is none of the others.
    let all: Vec<&RawValue> = serde_json::from_str(text).map_err(|error| match error.classify() {
        serde_json::error::Category::Eof if text.len() > 2 => ImportError::Broken,
        _ => ImportError::NotOurs,
    })?;
    let mut imported = Imported { conversations: Vec::new(), unreadable: 0 };
    let mut first_error = None;
    for one in all {
        match read_one(one.get(), ids(), now) {
            Ok(conversation) => imported.conversations.push(conversation),
            // Programs keep conversations that nobody began.
            Err(ImportError::Empty) => {}
            Err(error) => {
                imported.unreadable += 1;
                first_error.get_or_insert(error);
            }
        }
    }
    if imported.conversations.is_empty() { Err(first_error.unwrap_or(ImportError::Empty)) } else { Ok(imported) }
}

/// Reads one conversation, in any of the forms.
fn read_one(text: &str, id: String, now: f64) -> Result<Conversation, ImportError> {
    let mut conversation = match read_own(text)? {
        Some(conversation) => Conversation { id, ..conversation },
        None => others::read(text, id)?,
    };
    conversation.own_answers = conversation.own_answers.map(AnswerSettings::within_limits);
    conversation.renamed = true;
    conversation.pinned = false;
    conversation.title = conversation.title.chars().filter(|letter| !letter.is_control()).take(LONGEST_TITLE).collect();
    if conversation.title.trim().is_empty() {
        conversation.title = texts().transfer.untitled().to_owned();
    }
    conversation.changed = if conversation.changed.is_finite() { conversation.changed.clamp(0.0, now) } else { now };
    Ok(conversation)
}

/// Reads a conversation in the own form; `None` if it has another one.
fn read_own(text: &str) -> Result<Option<Conversation>, ImportError> {
    /// What every version has.
    #[derive(Deserialize)]
    struct Head {
        #[serde(default)]
        form: Value,
        #[serde(default)]
        version: Value,
        #[serde(default)]
        conversation: Value,
    }
    let head: Head = serde_json::from_str(text).map_err(|error| match error.classify() {
        // It begins as JSON and does not end.
        serde_json::error::Category::Eof | serde_json::error::Category::Syntax if is_like_an_export(text) => {
            ImportError::Broken
        }
        _ => ImportError::NotOurs,
    })?;
    if head.form != FORM {
        return Ok(None);
    }
    if head.version.as_u64().is_some_and(|version| version > VERSION) {
        return Err(ImportError::Newer);
    }
    let turns = |name: &str| head.conversation.get(name).and_then(Value::as_array).map_or(0, Vec::len);
    if turns("turns") + turns("aside") > MOST_TURNS {
        return Err(ImportError::TooLarge);
    }
    let mut conversation: Conversation = serde_json::from_value(head.conversation).map_err(|_| ImportError::Broken)?;
    if conversation.turns.is_empty() {
        return Err(ImportError::Empty);
    }
    conversation.break_off(&AnswerState::Interrupted);
    for turn in conversation.all_turns_mut() {
        // Requests of another tab mean nothing here.
        turn.answer.request = None;
        turn.answer.requests.clear();
    }
    Ok(Some(conversation))
}

/// A part of it would be a conversation of some form.
fn is_like_an_export(text: &str) -> bool {
    [FORM, "\"mapping\"", "messages\""].iter().any(|name| text.contains(name))
}

fn pretty<T: Serialize>(value: &T) -> String {
    // Plain structs of text and numbers always serialize.
    serde_json::to_string_pretty(value).unwrap_or_default()
}

fn messages(conversation: &Conversation) -> Vec<Value> {
    let message = |role: &str, content: &str| json!({ "role": role, "content": content });
    let of_turn = |turn: &super::Turn| {
        let question = message("user", &turn.question);
        let answer = (!turn.answer.text.is_empty()).then(|| message("assistant", &turn.answer.text));
        [Some(question), answer]
    };
    let instructions = own_instructions(conversation).map(|instructions| message("system", instructions));
    instructions.into_iter().chain(conversation.turns.iter().flat_map(of_turn).flatten()).collect()
}

/// Those of the page belong to the device, and are not written into a conversation's file.
fn own_instructions(conversation: &Conversation) -> Option<&str> {
    conversation.own_answers.as_ref().map(|own| own.instructions.trim()).filter(|instructions| !instructions.is_empty())
}

/// Headings of the first two levels; those of an answer may be the same, which is left as it is.
fn markdown(conversation: &Conversation) -> String {
    let mut text = format!("# {}\n", conversation.title.lines().collect::<Vec<_>>().join(" "));
    if let Some(instructions) = own_instructions(conversation) {
        text.push_str(&format!("\n## {}\n\n{instructions}\n", texts().own_answers.instructions_heading()));
    }
    for turn in &conversation.turns {
        text.push_str(&format!("\n## {}\n\n{}\n", texts().chat.asked(), turn.question.trim_end()));
        if !turn.answer.text.is_empty() {
            let model = if turn.answer.model.is_empty() { String::new() } else { format!(" ({})", turn.answer.model) };
            text.push_str(&format!("\n## {}{model}\n\n{}\n", texts().chat.answered(), turn.answer.text.trim_end()));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use potluck_panel::{AnswerPart, Channel, RequestId};

    use super::*;
    use crate::state::Versioned;

    fn soup() -> Conversation {
        let mut soup = Conversation::new("mine".into());
        soup.changed = 5.0;
        for (request, question, answer) in [(1, "Soup?", "It is **hot**."), (2, "Bread?", "")] {
            soup.ask(question, RequestId(request), "tiny");
            let delta = |text: &str| AnswerPart::Text {
                index: 0,
                channel: Channel::Answer,
                delta: text.into(),
                tokens: vec![1],
                logprobs: Vec::new(),
            };
            soup.apply(RequestId(request), &delta(answer));
        }
        soup
    }

    fn parsed(form: FileForm, conversation: &Conversation) -> Value {
        serde_json::from_str(&form.write(conversation)).unwrap()
    }

    fn import(value: &Value) -> Result<Conversation, ImportError> {
        read(&value.to_string(), || "fresh".into(), 9.0).map(|mut imported| imported.conversations.remove(0))
    }

    #[test]
    fn what_is_exported_is_imported_with_all_branches() {
        let mut soup = soup();
        soup.edit(0, "Stew?", RequestId(3), "tiny");
        let mut read = import(&parsed(FileForm::Own, &soup)).unwrap();
        assert_eq!((read.id.as_str(), read.title.as_str(), read.changed), ("fresh", "Soup?", 5.0));
        assert_eq!(read.running(), None, "nothing answers it here");
        assert!(!read.doubt(RequestId(1)), "a request of this tab is another one");
        assert_eq!(read.turns[0].question, "Stew?");
        assert!(read.choose(0, Versioned::Question, 0));
        assert_eq!(read.turns[0].answer.text, "It is **hot**.");
        assert_eq!(read.turns.len(), 2);
    }

    #[test]
    fn what_cannot_be_read_is_told_in_one_sentence() {
        let whole = FileForm::Own.write(&soup());
        let failed = |text: &str| read(text, || "fresh".into(), 9.0).unwrap_err();
        for nothing in ["", "hello", "[1, 2]", "[", "{}", r#"{"form":"another","version":1}"#] {
            assert_eq!(failed(nothing), ImportError::NotOurs, "{nothing}");
        }
        for empty in ["[]", r#"{"messages":[]}"#, r#"[{"messages":[]}]"#] {
            assert_eq!(failed(empty), ImportError::Empty, "{empty}");
        }
        assert_eq!(failed(r#"[{"title":"x","mapping":{"a":"#), ImportError::Broken);
        assert_eq!(failed(&whole[..whole.len() / 2]), ImportError::Broken, "half of it");
        assert_eq!(failed(&whole.replace("\"turns\"", "\"turnips\"")), ImportError::Broken);
        assert_eq!(failed(&whole.replace("\"version\": 1", "\"version\": 2")), ImportError::Newer);
        assert_eq!(failed(&" ".repeat(LARGEST_FILE as usize + 1)), ImportError::TooLarge);
        assert_eq!(import(&parsed(FileForm::Own, &Conversation::new("x".into()))), Err(ImportError::Empty));
        let deep = format!(r#"{{"form":"{FORM}","version":1,"conversation":{}"#, "[".repeat(100_000));
        assert_eq!(failed(&deep), ImportError::Broken, "it never ends");
    }

    #[test]
    fn of_many_conversations_the_damaged_ones_are_counted() {
        let messages = |text: &str| json!({"messages": [{"role": "user", "content": text}]});
        let mut number = 0;
        let mut ids = || {
            number += 1;
            number.to_string()
        };
        let file = json!([messages("Soup?"), {"mapping": 7}, {"messages": []}, messages("Bread?"), parsed(FileForm::Own, &soup())]);
        let imported = read(&file.to_string(), &mut ids, 9.0).unwrap();
        assert_eq!(imported.unreadable, 1, "one that nobody began is none");
        let named: Vec<_> = imported.conversations.iter().map(|one| (one.id.as_str(), one.title.as_str())).collect();
        assert_eq!(named, [("1", "Imported conversation"), ("4", "Imported conversation"), ("5", "Soup?")]);
    }

    #[test]
    fn a_title_and_a_date_from_a_file_are_kept_within_limits() {
        let mut soup = soup();
        soup.title = "so\nup\u{7}".repeat(1_000);
        soup.changed = 1e300;
        soup.pinned = true;
        let read = import(&parsed(FileForm::Own, &soup)).unwrap();
        assert_eq!(read.title.chars().count(), LONGEST_TITLE);
        assert!(!read.title.contains('\n'));
        assert_eq!(read.changed, 9.0, "not later than now");
        assert!(!read.pinned, "nobody pinned it here");
    }

    #[test]
    fn others_get_the_chosen_branch() {
        let mut soup = soup();
        soup.edit(1, "Cake?", RequestId(3), "tiny");
        let messages = parsed(FileForm::Messages, &soup)["messages"].clone();
        assert_eq!(
            messages,
            json!([
                {"role": "user", "content": "Soup?"},
                {"role": "assistant", "content": "It is **hot**."},
                {"role": "user", "content": "Cake?"},
            ])
        );
        assert_eq!(
            FileForm::Markdown.write(&soup),
            "# Soup?\n\n## You\n\nSoup?\n\n## Answer (tiny)\n\nIt is **hot**.\n\n## You\n\nCake?\n"
        );
    }

    #[test]
    fn a_conversations_own_settings_travel_with_it() {
        let mut soup = soup();
        let own = AnswerSettings { instructions: "Be brief.".into(), max_tokens: 7, ..AnswerSettings::default() };
        soup.own_answers = Some(own.clone());
        assert_eq!(import(&parsed(FileForm::Own, &soup)).unwrap().own_answers, Some(own));
        assert_eq!(parsed(FileForm::Messages, &soup)["messages"][0], json!({"role": "system", "content": "Be brief."}));
        assert!(FileForm::Markdown.write(&soup).starts_with("# Soup?\n\n## Instructions\n\nBe brief.\n\n## You\n"));
        let mut file = parsed(FileForm::Own, &soup);
        file["conversation"]["own_answers"] = json!({"max_tokens": 0, "sampling": {"temperature": 1e9}});
        let own = import(&file).unwrap().own_answers.unwrap();
        assert!(own.max_tokens == 1 && own.sampling.temperature <= 5.0, "within limits");
        file["conversation"]["own_answers"] = json!("brief");
        assert_eq!(import(&file), Err(ImportError::Broken));
    }

    #[test]
    fn a_file_is_named_after_its_conversation() {
        let mut soup = soup();
        assert_eq!(FileForm::Markdown.file_name(&soup), "Soup.md");
        soup.title = "../..".into();
        assert_eq!(FileForm::Own.file_name(&soup), "potluck.potluck.json");
    }
}
