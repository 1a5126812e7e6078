//! Real chat templates against Hugging Face Transformers (`golden/make_templates.py`).
#![allow(clippy::unwrap_used, reason = "a test may panic")]

#[path = "common/conversations.rs"]
mod conversations;
#[path = "common/vocabulary.rs"]
mod vocabulary;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use conversations::conversation;
use potluck_model::{Channels, ChatTemplate, Message, RenderOptions, SpecialText, TemplateError, Tokenizer};
use potluck_testkit::{gunzip, read_golden};
use serde::Deserialize;
use serde_json::Value;

#[derive(Deserialize)]
struct Golden {
    cases: BTreeMap<String, Value>,
    results: Vec<Rendered>,
}

#[derive(Deserialize)]
struct Rendered {
    template: String,
    title: String,
    bos: String,
    eos: String,
    text: Option<String>,
    refused: Option<String>,
}

/// Templates that put HTML escapes into a prompt by accident: a text that is `safe` escapes what is added to it (decision 0049).
const DIFFERENT: [(&str, &str); 3] = [
    ("meetkai-functionary-medium-v3.1", "tools"),
    ("meetkai-functionary-medium-v3.1", "a tool's answer"),
    ("meetkai-functionary-medium-v3.1", "after a tool's answer"),
];

/// The folder of the published templates.
fn published() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/templates")
}

fn source(folder: &Path, name: &str) -> String {
    read_golden(&folder.join(format!("{name}.jinja")))
}

/// How many renderings are the same, and what is wrong with the others.
fn judge(folder: &Path, golden: &str) -> (usize, Vec<String>) {
    let golden: Golden = serde_json::from_str(golden).unwrap();
    let mut wrong = Vec::new();
    let mut count = 0;
    for Rendered { template: name, title, bos, eos, text, refused } in golden.results {
        let (messages, options) = conversation(&golden.cases[&title]);
        let rendered = ChatTemplate::new(&source(folder, &name), bos, eos)
            .and_then(|template| template.render(&messages, &options));
        if DIFFERENT.contains(&(&name, &title)) {
            continue;
        }
        match (rendered, text, refused) {
            (Ok(found), Some(expected), _) if found == expected => count += 1,
            (Err(_), None, Some(_)) => count += 1,
            (found, expected, refused) => {
                let expected = expected.or(refused).unwrap_or_default();
                wrong.push(format!("{name}, {title}:\n  {found:?}\n     {expected:?}"));
            }
        }
    }
    (count, wrong)
}

#[test]
fn published_templates_render_as_transformers_renders_them() {
    let (count, wrong) = judge(&published(), &gunzip(include_bytes!("golden/templates.json.gz")));
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(count >= 20 * 11, "only {count} renderings of 20 templates");
}

/// All templates of llama.cpp, of which some are in no shape to be rendered:
/// `make_templates.py FOLDER FOLDER/all.json`, then `POTLUCK_TEMPLATES=FOLDER cargo test -- --ignored`.
#[test]
#[ignore = "needs llama.cpp's templates in $POTLUCK_TEMPLATES"]
fn all_templates_of_llama_cpp_render_as_transformers_renders_them() {
    let folder = PathBuf::from(std::env::var("POTLUCK_TEMPLATES").expect("POTLUCK_TEMPLATES names a folder"));
    let (count, wrong) = judge(&folder, &std::fs::read_to_string(folder.join("all.json")).unwrap());
    assert!(wrong.is_empty(), "{count} are right, {} wrong\n{}", wrong.len(), wrong.join("\n"));
}

/// What keeps names of control tokens apart does not change what templates make of a conversation.
#[test]
fn what_is_encoded_is_what_is_rendered() {
    let golden: Golden = serde_json::from_str(&gunzip(include_bytes!("golden/templates.json.gz"))).unwrap();
    // Of several families.
    let control =
        ["<s>", "</s>", "<|im_start|>", "<|im_end|>", "<|start|>", "<|channel|>", "[INST]", "<think>", "]~b]"];
    let tokenizer = Tokenizer::from_metadata(&vocabulary::metadata(&vocabulary::control(&control))).unwrap();
    let folder = published();
    let mut wrong = Vec::new();
    for Rendered { template: name, title, bos, eos, text, .. } in golden.results {
        let Some(text) = text else { continue };
        let (messages, options) = conversation(&golden.cases[&title]);
        let template = ChatTemplate::new(&source(&folder, &name), bos, eos).unwrap();
        let channels = Channels::new(&tokenizer, &template);
        let found = template.encode(&tokenizer, &channels, &messages, &options).unwrap();
        if found != tokenizer.encode_prompt(&text, SpecialText::Parse) {
            wrong.push(format!("{name}, {title}:\n  {}\n  {text}", tokenizer.decode(&found)));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn chatml_is_what_a_file_without_template_gets() {
    let template = ChatTemplate::chatml().unwrap();
    let messages = [Message::new("system", "Kind."), Message::new("user", "Hi\n")];
    let text = template.render(&messages, &RenderOptions::default()).unwrap();
    assert_eq!(text, "<|im_start|>system\nKind.<|im_end|>\n<|im_start|>user\nHi\n<|im_end|>\n<|im_start|>assistant\n");
    let closed = RenderOptions { add_generation_prompt: false, ..RenderOptions::default() };
    assert!(template.render(&messages, &closed).unwrap().ends_with("Hi\n<|im_end|>\n"));
}

/// Lists cannot be changed in the sandbox, so templates make a new one for each message.
#[test]
fn a_long_conversation_is_collected_message_by_message() {
    let source = "{% set ns = namespace(all=[], text='') %}{% for m in messages %}{% set ns.all = ns.all + [m] %}\
        {% set ns.text = ns.text + m.content %}{% endfor %}{{ ns.all | length }} {{ ns.text | length }}";
    let template = ChatTemplate::new(source, String::new(), String::new()).unwrap();
    let messages = vec![Message::new("user", "x".repeat(64)); 3000];
    assert_eq!(template.render(&messages, &RenderOptions::default()).unwrap(), "3000 192000");
}

/// Some look at all messages for each message.
#[test]
fn no_published_template_runs_too_long_for_a_conversation_of_two_thousand_messages() {
    let message = |index| Message::new(if index % 2 == 0 { "user" } else { "assistant" }, "x".repeat(256));
    let messages: Vec<Message> = (0..2_047).map(message).collect();
    let mut rendered = 0;
    for entry in std::fs::read_dir(published()).unwrap() {
        let path = entry.unwrap().path();
        let path = if path.extension().is_some_and(|end| end == "gz") { path.with_extension("") } else { path };
        let template = ChatTemplate::new(&read_golden(&path), String::new(), String::new()).unwrap();
        match template.render(&messages, &RenderOptions::default()) {
            Ok(text) => rendered += usize::from(text.len() > 256 * 1_024),
            Err(error) => assert_ne!(error, TemplateError::Runaway, "{}", path.display()),
        }
    }
    assert!(rendered > 20, "{rendered} templates rendered the conversation");
}

#[test]
fn filters_and_methods_are_pythons() {
    let source = "{{ {'a': [1, '<é>']} | tojson }}|{{ [1] | tojson(indent=2) }}|{{ ' x '.strip() }}|\
                  {{ 'a b'.split(' ')[-1] }}|{{ 'abc'.startswith('ab') }}|{{ messages[::-1][0].content }}";
    let template = ChatTemplate::new(source, String::new(), String::new()).unwrap();
    let messages = [Message::new("user", "first"), Message::new("user", "last")];
    let text = template.render(&messages, &RenderOptions::default()).unwrap();
    assert_eq!(text, "{\"a\": [1, \"<é>\"]}|[\n  1\n]|x|b|True|last");
}
