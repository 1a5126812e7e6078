//! Real chat templates against Hugging Face Transformers (`golden/make_templates.py`), and hostile ones.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use potluck_gguf::{Array, Metadata, Value as GgufValue};
use potluck_model::{
    ChatTemplate, LocalTime, Message, RenderOptions, SpecialText, TemplateError, Tokenizer, ToolCall, opened_reasoning,
};
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

fn text(value: &Value) -> Option<String> {
    value.as_str().map(str::to_owned)
}

/// A message in the form of OpenAI's API.
fn message(value: &Value) -> Message {
    let call = |call: &Value| ToolCall {
        id: text(&call["id"]).unwrap(),
        name: text(&call["function"]["name"]).unwrap(),
        arguments: text(&call["function"]["arguments"]).unwrap(),
    };
    Message {
        role: text(&value["role"]).unwrap(),
        content: text(&value["content"]).unwrap(),
        reasoning: text(&value["reasoning_content"]),
        tool_calls: value["tool_calls"].as_array().map(|calls| calls.iter().map(call).collect()).unwrap_or_default(),
        tool_call_id: text(&value["tool_call_id"]),
        name: text(&value["name"]),
    }
}

fn conversation(case: &Value) -> (Vec<Message>, RenderOptions) {
    let messages = case["messages"].as_array().unwrap().iter().map(message).collect();
    let tools = case["tools"].as_array().map(|tools| tools.iter().filter_map(text).collect());
    let options = RenderOptions {
        tools: tools.unwrap_or_default(),
        add_generation_prompt: case["add_generation_prompt"].as_bool().unwrap_or(true),
        thinking: case["enable_thinking"].as_bool(),
        now: Some(LocalTime { year: 2026, month: 11, day: 21, hour: 9, minute: 5, second: 7 }),
    };
    (messages, options)
}

/// How many renderings are the same, and what is wrong with the others.
fn judge(folder: &Path, golden: &str) -> (usize, Vec<String>) {
    let golden: Golden = serde_json::from_str(golden).unwrap();
    let mut wrong = Vec::new();
    let mut count = 0;
    for Rendered { template: name, title, bos, eos, text, refused } in golden.results {
        let source = std::fs::read_to_string(folder.join(format!("{name}.jinja"))).unwrap();
        let (messages, options) = conversation(&golden.cases[&title]);
        let rendered = ChatTemplate::new(&source, bos, eos).and_then(|template| template.render(&messages, &options));
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
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/templates");
    let (count, wrong) = judge(&folder, include_str!("golden/templates.json"));
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

/// Byte-level BPE without merges, with the control tokens of several families.
fn tokenizer() -> Tokenizer {
    let mut next = 0x100;
    let alphabet = (0..=255u8).map(|byte| match byte {
        0x21..=0x7e | 0xa1..=0xac | 0xae..=0xff => char::from(byte).to_string(),
        _ => {
            next += 1;
            char::from_u32(next - 1).unwrap().to_string()
        }
    });
    let mut tokens: Vec<String> = alphabet.collect();
    let control =
        ["<s>", "</s>", "<|im_start|>", "<|im_end|>", "<|start|>", "<|channel|>", "[INST]", "<think>", "]~b]"];
    tokens.extend(control.map(str::to_owned));
    let kinds = (0..tokens.len()).map(|id| if id < 256 { 1 } else { 3 }).collect();
    let mut metadata = Metadata::new();
    metadata.insert("tokenizer.ggml.model", "gpt2".into());
    metadata.insert("tokenizer.ggml.pre", "gpt-2".into());
    metadata.insert("tokenizer.ggml.tokens", tokens.into());
    metadata.insert("tokenizer.ggml.token_type", GgufValue::Array(Array::I32(kinds)));
    metadata.insert("tokenizer.ggml.merges", Vec::<String>::new().into());
    Tokenizer::from_metadata(&metadata).unwrap()
}

/// What keeps names of control tokens apart does not change what templates make of a conversation.
#[test]
fn what_is_encoded_is_what_is_rendered() {
    let golden: Golden = serde_json::from_str(include_str!("golden/templates.json")).unwrap();
    let tokenizer = tokenizer();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/templates");
    let mut wrong = Vec::new();
    for Rendered { template: name, title, bos, eos, text, .. } in golden.results {
        let Some(text) = text else { continue };
        let source = std::fs::read_to_string(folder.join(format!("{name}.jinja"))).unwrap();
        let (messages, options) = conversation(&golden.cases[&title]);
        let template = ChatTemplate::new(&source, bos, eos).unwrap();
        let found = template.encode(&tokenizer, &messages, &options).unwrap();
        if found != tokenizer.encode_prompt(&text, SpecialText::Parse) {
            wrong.push(format!("{name}, {title}:\n  {}\n  {text}", tokenizer.decode(&found)));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Qwen 3.5 and others begin the reasoning themselves, so the model's text starts behind the tag.
#[test]
fn reasoning_that_the_template_begins_belongs_to_the_answer_and_is_not_begun_twice() {
    let source = "{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}\
        {% if add_generation_prompt %}assistant: <think>\n{% endif %}";
    let template = ChatTemplate::new(source, String::new(), String::new()).unwrap();
    let (tokenizer, options) = (tokenizer(), RenderOptions::default());
    let asked = vec![Message::new("user", "hi")];
    let prompt = template.render(&asked, &options).unwrap();
    let opening = opened_reasoning(&prompt);
    assert_eq!(opening, "<think>\n");
    let begun = [asked.clone(), vec![Message::new("assistant", format!("{opening}hm"))]].concat();
    let [asked, begun] = [asked, begun].map(|messages| template.encode(&tokenizer, &messages, &options).unwrap());
    let rest = begun.strip_prefix(&asked[..]).expect("what the model has read so far stays");
    assert_eq!(
        rest,
        [b'h', b'm'].map(|letter| tokenizer.encode(&char::from(letter).to_string(), SpecialText::Literal)[0])
    );
    assert_eq!(opened_reasoning("assistant: <think>\n\n</think>\n\n"), "");
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

#[test]
fn hostile_templates_are_stopped() {
    let run =
        |source: &str| ChatTemplate::new(source, String::new(), String::new())?.render(&[], &RenderOptions::default());
    let loops = "{% for i in range(9999) %}{% for j in range(9999) %}{% endfor %}{% endfor %}";
    assert_eq!(run(loops), Err(TemplateError::Runaway));
    let writes = "{% set s = 'x' * 100000 %}{% for i in range(1000) %}{{ s }}{% endfor %}";
    assert_eq!(run(writes), Err(TemplateError::Runaway));
    let calls_itself = "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}";
    assert!(matches!(run(calls_itself), Err(TemplateError::Invalid(_))));
    assert!(matches!(run("{% if %}"), Err(TemplateError::Invalid(_))));
    assert!(matches!(run("{% include 'secrets' %}"), Err(TemplateError::Invalid(_))));
    assert!(matches!(run(&"x".repeat(2 << 20)), Err(TemplateError::Invalid(_))));
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
