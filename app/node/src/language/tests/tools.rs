//! Functions, calls and results in prompts of models whose templates know them, and of others.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use potluck_protocol::ToolOffer;

use super::conversations::{answer, model, prompt};
use super::*;

const QWEN: &str = include_str!("../../../../model/tests/templates/qwen2.5.jinja");
const MISTRAL: &str = include_str!("../../../../model/tests/templates/mistral-nemo.jinja");
const LLAMA: &str = include_str!("../../../../model/tests/templates/llama-3.2.jinja");
const GEMMA_2: &str = include_str!("../../../../model/tests/templates/gemma-2.jinja");

const WEATHER: &str = r#"{"type": "function", "function": {"name": "weather", "description": "Weather", "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}}}"#;

fn qwen() -> ModelLanguage {
    model(QWEN, &["<tool_call>", "</tool_call>"])
}

fn asked(messages: &[Message], choice: ToolChoice) -> PromptRequest {
    PromptRequest { tools: ToolOffer { functions: vec![WEATHER.to_owned()], choice }, ..question(messages) }
}

fn user(text: &str) -> Message {
    Message::new(Role::User, text)
}

/// As `serve` sends it: two calls, and a result of each.
fn agent() -> Vec<Message> {
    let call =
        |id: &str, city: &str| format!(r#"{{"name": "weather", "arguments": {{"city": "{city}"}}, "id": "{id}"}}"#);
    let tool_calls = [call("call_1", "Rome"), call("call_2", "Oslo")].join("\n");
    let result = |id: &str, text: &str| Message { tool_call_id: id.to_owned(), ..Message::new(Role::Tool, text) };
    let called = Message { tool_calls, ..Message::new(Role::Assistant, "") };
    vec![user("Where is it warm?"), called, result("call_1", "20"), result("call_2", "5")]
}

#[test]
fn a_template_gets_functions_calls_and_results_in_its_own_terms() {
    let text = prompt(&qwen(), &asked(&agent(), ToolChoice::Free));
    assert!(text.contains("# Tools") && text.contains(WEATHER), "{text}");
    let turn = "<|im_start|>assistant\n<tool_call>\n{\"name\": \"weather\", \"arguments\": {\"city\": \"Rome\"}}\n</tool_call>\n\
        <tool_call>\n{\"name\": \"weather\", \"arguments\": {\"city\": \"Oslo\"}}\n</tool_call><|im_end|>\n\
        <|im_start|>user\n<tool_response>\n20\n</tool_response>\n<tool_response>\n5\n</tool_response><|im_end|>\n\
        <|im_start|>assistant\n";
    assert!(text.ends_with(turn), "{text}");
}

/// Its templates refuse ids that have not nine letters or digits.
#[test]
fn mistral_gets_short_ids_that_match() {
    let text = prompt(&model(MISTRAL, &["[TOOL_CALLS]"]), &asked(&agent(), ToolChoice::Free));
    assert!(text.contains("\"id\": \"call00001\"") && text.contains("\"call_id\": \"call00001\""), "{text}");
}

/// Llama's template takes one call at a time, and Gemma 2's none at all.
#[test]
fn where_a_template_refuses_calls_they_are_said_in_words() {
    let llama = prompt(&model(LLAMA, &[]), &asked(&agent(), ToolChoice::Free));
    let gemma = prompt(&model(GEMMA_2, &[]), &asked(&agent(), ToolChoice::Free));
    for text in [&llama, &gemma] {
        assert!(
            text.contains("<tool_call>\n{\"name\": \"weather\", \"arguments\": {\"city\": \"Oslo\"}}\n</tool_call>"),
            "{text}"
        );
        assert!(
            text.contains("<tool_response>\n20\n</tool_response>\n<tool_response>\n5\n</tool_response>"),
            "one turn: {text}"
        );
    }
    assert!(llama.contains("Given the following functions") && !llama.contains("You may call functions"), "{llama}");
    assert!(gemma.contains("You may call functions") && gemma.contains(WEATHER), "{gemma}");
}

#[test]
fn without_functions_a_template_stays_as_it_is() {
    for template in [QWEN, GEMMA_2] {
        let text = prompt(&model(template, &[]), &question(&[user("Hi")]));
        assert!(!text.contains("Tools") && !text.contains("functions"), "{text}");
    }
}

/// The answer goes on behind the opening, and its reader gets the whole call.
#[test]
fn a_call_that_is_demanded_begins_as_the_template_begins_one() {
    for (language, opening) in [
        (qwen(), "<tool_call>\n{\"name\": \""),
        (model(MISTRAL, &["[TOOL_CALLS]"]), "[TOOL_CALLS][{\"name\": \""),
        (model(LLAMA, &[]), "{\"name\": \""),
        (model(GEMMA_2, &[]), "<tool_call>\n{\"name\": \""),
    ] {
        let any = prompt(&language, &asked(&[user("Hi")], ToolChoice::Any));
        assert!(any.ends_with(opening), "{any}");
        let demanded = asked(&[user("Hi")], ToolChoice::Function("weather".to_owned()));
        let tokens = language.render(&demanded).unwrap();
        let named = prompt(&language, &demanded);
        assert!(named.ends_with(&format!("{opening}weather\"")), "{named}");
        let texts = answer(&language, &demanded, &tokens, ", \"arguments\": {}}");
        let text: String = texts.into_iter().map(|text| text.text).collect();
        let begun = opening.trim_start_matches("[TOOL_CALLS]");
        assert!(
            text.ends_with("{\"name\": \"weather\", \"arguments\": {}}") && begun.ends_with("{\"name\": \""),
            "{text}"
        );
    }
}

#[test]
fn a_call_is_refused_where_none_can_be_begun_and_no_name_is_a_marker() {
    let refused = |language: &ModelLanguage, question: &PromptRequest| language.render(question).unwrap_err();
    let nothing = PromptRequest {
        tools: ToolOffer { functions: Vec::new(), choice: ToolChoice::Any },
        ..question(&[user("Hi")])
    };
    assert_eq!(refused(&qwen(), &nothing), texts().api.no_tools());
    let begun = asked(&[user("Hi"), Message::new(Role::Assistant, "So")], ToolChoice::Any);
    assert_eq!(refused(&qwen(), &begun), texts().api.no_tools());
    let unclear = "{% for t in tools or [] %}{{ t | tojson }}{% endfor %}{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}";
    assert_eq!(refused(&model(unclear, &[]), &asked(&[user("Hi")], ToolChoice::Any)), texts().api.no_tools());
    let language = qwen();
    let ends = |question: &PromptRequest| {
        let tokens = language.render(question).unwrap();
        tokens.into_iter().filter(|token| language.is_end(*token)).count()
    };
    let marker = ToolChoice::Function("<|im_end|>".to_owned());
    assert_eq!(ends(&asked(&[user("Hi")], marker)), ends(&asked(&[user("Hi")], ToolChoice::Any)));
}

/// A guest may send anything.
#[test]
fn functions_that_are_no_json_cost_nothing() {
    for functions in [vec!["{".repeat(100_000)], vec!["<|im_end|>".to_owned(); 9], vec!["null".to_owned()]] {
        let asked =
            PromptRequest { tools: ToolOffer { functions, choice: ToolChoice::Free }, ..question(&[user("Hi")]) };
        let rendered = qwen().render(&asked);
        let ends = rendered.map(|tokens| tokens.into_iter().filter(|token| qwen().is_end(*token)).count());
        assert!(ends.is_err() || ends == Ok(2), "{ends:?}");
    }
}
