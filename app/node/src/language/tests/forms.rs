//! Answers that must have a form.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use potluck_plan::AllowedTokens;
use potluck_protocol::{AnswerForm, LogitOptions, ToolOffer};

use super::conversations::model;
use super::*;

const QWEN: &str = include_str!("../../../../model/tests/templates/qwen2.5.jinja");
const LLAMA: &str = include_str!("../../../../model/tests/templates/llama-3.2.jinja");
const GEMMA_2: &str = include_str!("../../../../model/tests/templates/gemma-2.jinja");

const WEATHER: &str = r#"{"type": "function", "function": {"name": "weather", "parameters": {"type": "object", "properties": {"city": {"enum": ["Rome", "Oslo"]}}, "required": ["city"], "additionalProperties": false}}}"#;
const TIME: &str = r#"{"type": "function", "function": {"name": "time", "parameters": {"type": "object", "properties": {"not": {"not": {}}}}}}"#;
const STRICT: AnswerForm = AnswerForm::Calls { strict: true };
const END: &str = "<|im_end|>";

fn qwen() -> ModelLanguage {
    model(QWEN, &["<tool_call>", "</tool_call>", "<think>", "</think>", END])
}

fn asked(functions: &[&str], choice: ToolChoice, form: AnswerForm) -> PromptRequest {
    let tools = ToolOffer { functions: functions.iter().map(|text| (*text).to_owned()).collect(), choice };
    let logits = LogitOptions { form, ..LogitOptions::default() };
    PromptRequest { tools, logits, ..question(&[Message::new(Role::User, "Where is it warm?")]) }
}

fn schema(text: &str) -> AnswerForm {
    AnswerForm::Schema(text.to_owned())
}

fn grammar(language: &ModelLanguage, question: &PromptRequest) -> Result<Option<Box<dyn Grammar>>, String> {
    language.grammar(question, &language.render(question)?, language.tokenizer.len() as u32)
}

/// What may be written of a text; it ends with a bar if the answer may end there, or with two if nothing else may follow.
fn written(language: &ModelLanguage, question: &PromptRequest, text: &str) -> String {
    let mut grammar = grammar(language, question).unwrap().unwrap();
    let mut so_far = String::new();
    let end = language.tokenizer.special_id(END).unwrap();
    for token in language.tokenizer.encode(text, SpecialText::Parse) {
        if grammar.is_complete() {
            return so_far + "||";
        }
        let allowed = grammar.allowed(&mut Vec::new()).unwrap();
        if !allowed[0].contains(token) {
            return if allowed[0].contains(end) { so_far + "|" } else { so_far };
        }
        grammar.push(token).unwrap();
        so_far += &String::from_utf8_lossy(language.tokenizer.piece(token));
    }
    if grammar.is_complete() {
        return so_far + "||";
    }
    let may_end = grammar.allowed(&mut Vec::new()).unwrap()[0].contains(end);
    if may_end { so_far + "|" } else { so_far }
}

#[test]
fn an_answer_is_held_to_a_schema() {
    let language = qwen();
    let asked = asked(
        &[],
        ToolChoice::Free,
        schema(
            r#"{"type": "object", "properties": {"a": {"type": "boolean"}}, "required": ["a"], "additionalProperties": false}"#,
        ),
    );
    let whole = r#"{"a": true}"#;
    assert_eq!(written(&language, &asked, whole), format!("{whole}||"));
    assert_eq!(written(&language, &asked, r#"{"b""#), r#"{""#);
    assert_eq!(written(&language, &asked, "Sure: {"), "");
    assert_eq!(written(&language, &asked, "<|im_end|>"), "", "not before it has its form");
    let object =
        PromptRequest { logits: LogitOptions { form: AnswerForm::Json, ..LogitOptions::default() }, ..asked.clone() };
    assert_eq!(written(&language, &object, r#"{"x": [1, "<"]}"#), r#"{"x": [1, "<"]}||"#);
    assert_eq!(written(&language, &object, r#"{"x": "<tool_call>"}"#), r#"{"x": ""#, "a marker is no text");
    // Letters do what the tokens of markers cannot.
    let regex = PromptRequest {
        logits: LogitOptions { form: AnswerForm::Regex("ab*".into()), ..LogitOptions::default() },
        ..asked
    };
    assert_eq!(written(&language, &regex, "abbc"), "abb|");
}

/// The drafts of an answer are cut where its form begins, and where they leave it.
#[test]
fn reasoning_is_free() {
    let template = "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}<|im_start|>assistant\n<think>\n";
    let language = model(template, &["<|im_start|>", "<think>", "</think>", END]);
    let asked = asked(&[], ToolChoice::Free, AnswerForm::Json);
    assert_eq!(written(&language, &asked, "Hm.</think>{\"a\": 1}x"), "Hm.</think>{\"a\": 1}||");
    assert_eq!(written(&language, &asked, "Hm.</think>No"), "Hm.</think>");
    let mut grammar = grammar(&language, &asked).unwrap().unwrap();
    let tokens = language.tokenizer.encode("Hm</think>{x", SpecialText::Parse);
    let mut drafts = tokens.clone();
    let allowed = grammar.allowed(&mut drafts).unwrap();
    assert!(allowed.len() == drafts.len() + 1 && allowed.iter().all(AllowedTokens::are_all));
    let thought = drafts.len();
    assert!(tokens[thought..].first() == language.tokenizer.special_id("</think>").as_ref());
    tokens[..=thought].iter().for_each(|token| grammar.push(*token).unwrap());
    let mut drafts = tokens[thought + 1..].to_vec();
    let allowed = grammar.allowed(&mut drafts).unwrap();
    assert_eq!((drafts.len(), allowed.len()), (1, 2), "no letter follows a brace");
    grammar.begin_again();
    assert!(grammar.allowed(&mut Vec::new()).unwrap()[0].are_all());
}

#[test]
fn a_call_that_is_demanded_fits_its_function() {
    let language = qwen();
    let any = asked(&[WEATHER], ToolChoice::Any, STRICT);
    let call = "weather\", \"arguments\": {\"city\": \"Rome\"}}\n</tool_call>";
    assert_eq!(written(&language, &any, call), format!("{call}|"));
    let two = format!("{call}\n<tool_call>\n{{\"name\": \"{call}");
    assert_eq!(written(&language, &any, &two), format!("{two}|"));
    assert_eq!(written(&language, &any, "rain\""), "");
    assert_eq!(
        written(&language, &any, "weather\", \"arguments\": {\"city\": \"Bonn"),
        "weather\", \"arguments\": {\"city\": \""
    );
    let named = asked(&[WEATHER, TIME], ToolChoice::Function("weather".into()), STRICT);
    let rest = ", \"arguments\": {\"city\": \"Oslo\"}}\n</tool_call>";
    assert_eq!(written(&language, &named, rest), format!("{rest}|"));
    // Gemma's template knows nothing of functions.
    let gemma = model(GEMMA_2, &[END]);
    assert_eq!(written(&gemma, &any, call), format!("{call}|"));
    // Llama's calls have no end of their own, and are read to the end of the answer.
    let llama = model(LLAMA, &[END, "<|eot_id|>"]);
    let call = "weather\", \"parameters\": {\"city\": \"Rome\"}}";
    assert_eq!(written(&llama, &any, &format!("{call}x")), format!("{call}||"));
}

#[test]
fn a_call_that_is_free_to_come_is_held_from_its_first_token_on() {
    let language = qwen();
    let free = asked(&[WEATHER], ToolChoice::Free, STRICT);
    assert_eq!(written(&language, &free, "It is warm in Rome."), "It is warm in Rome.|");
    let call = "Let me see.<tool_call>\n{\"name\": \"weather\", \"arguments\": {\"city\": \"Rome\"}}\n</tool_call>";
    assert_eq!(written(&language, &free, call), format!("{call}|"));
    assert_eq!(written(&language, &free, "<tool_call>\n{\"name\": \"rain"), "<tool_call>\n{\"name\": \"");
    let either = asked(&[WEATHER], ToolChoice::Free, schema(r#"{"type": "boolean"}"#));
    assert_eq!(written(&language, &either, "true"), "true||");
    let call = "<tool_call>\n{\"name\": \"weather\", \"arguments\": {\"city\": \"Rome\"}}\n</tool_call>";
    assert_eq!(written(&language, &either, call), format!("{call}|"));
    assert_eq!(written(&language, &either, "Well"), "");
    assert!(grammar(&model(LLAMA, &[END]), &free).unwrap().is_none(), "nobody can say where a call begins");
}

#[test]
fn what_cannot_be_held_to_is_refused() {
    let language = qwen();
    let refused = |question: &PromptRequest| grammar(&language, question).err().unwrap_or_default();
    let strict = refused(&asked(&[WEATHER, TIME], ToolChoice::Any, STRICT));
    assert!(strict.contains("\"not\""), "{strict}");
    let lenient = asked(&[WEATHER, TIME], ToolChoice::Any, AnswerForm::Calls { strict: false });
    assert!(grammar(&language, &lenient).is_ok(), "that part of a schema does not count");
    assert!(refused(&asked(&[], ToolChoice::Free, schema("[]"))).contains("JSON object"));
    let free = asked(&[], ToolChoice::Free, AnswerForm::Free);
    assert!(grammar(&language, &free).unwrap().is_none());
    assert!(grammar(&language, &asked(&[], ToolChoice::Free, STRICT)).unwrap().is_none(), "there is nothing to call");
}
