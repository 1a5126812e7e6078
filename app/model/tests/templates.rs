//! Real chat templates against Jinja2 (`golden/make_templates.py`), and hostile ones.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use potluck_model::{ChatTemplate, LocalTime, Message, RenderOptions, TemplateError};
use serde::Deserialize;

#[derive(Deserialize)]
struct Case {
    template: String,
    title: String,
    messages: Vec<Message>,
    options: Options,
    text: Option<String>,
    refused: Option<String>,
    bos: String,
    eos: String,
}

#[derive(Deserialize)]
struct Options {
    #[serde(default = "yes")]
    add_generation_prompt: bool,
    enable_thinking: Option<bool>,
}

fn yes() -> bool {
    true
}

fn source(name: &str) -> &'static str {
    match name {
        "llama-3" => include_str!("templates/llama-3.jinja"),
        "llama-3.2" => include_str!("templates/llama-3.2.jinja"),
        "qwen2.5" => include_str!("templates/qwen2.5.jinja"),
        "qwen3" => include_str!("templates/qwen3.jinja"),
        "mistral-7b" => include_str!("templates/mistral-7b.jinja"),
        "mistral-nemo" => include_str!("templates/mistral-nemo.jinja"),
        other => panic!("no template {other}"),
    }
}

#[test]
fn published_templates_render_as_jinja2_renders_them() {
    let cases: Vec<Case> = serde_json::from_str(include_str!("golden/templates.json")).unwrap();
    assert_eq!(cases.len(), 6 * 4 * 4);
    for case in cases {
        let template = ChatTemplate::new(source(&case.template), case.bos, case.eos).unwrap();
        let options = RenderOptions {
            add_generation_prompt: case.options.add_generation_prompt,
            thinking: case.options.enable_thinking,
            now: Some(LocalTime { year: 2026, month: 11, day: 21, hour: 9, minute: 5, second: 7 }),
        };
        let expected = match case.refused {
            Some(reason) => Err(TemplateError::Refused(reason)),
            None => Ok(case.text.unwrap()),
        };
        let rendered = template.render(&case.messages, &options);
        assert_eq!(rendered, expected, "{}, {}, {:?}", case.template, case.title, options);
    }
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
