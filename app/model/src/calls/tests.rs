//! Each form is what a published template writes, or what its maker's documentation shows.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use potluck_plan::Channel;
use potluck_testkit::read_golden;
use proptest::prelude::*;

use super::*;
use crate::{ChatTemplate, LocalTime, Message, RenderOptions};

fn pairs(calls: Vec<ToolCall>) -> Vec<(String, String)> {
    calls.into_iter().map(|call| (call.name, call.arguments)).collect()
}

fn read(text: &str) -> Vec<(String, String)> {
    pairs(ToolCall::read(text))
}

fn rome() -> Vec<(String, String)> {
    vec![("weather".to_owned(), "{\"city\": \"Rome\"}".to_owned())]
}

const WEATHER: &str = r#"{"type": "function", "function": {"name": "weather", "parameters": {"type": "object", "properties":
    {"city": {"type": "string"}, "days": {"type": "integer"}}}}}"#;
const NOW: &str = r#"{"type": "function", "function": {"name": "now"}}"#;

#[test]
fn calls_of_common_forms_are_read() {
    assert_eq!(read(r#"{"name": "weather", "arguments": {"city": "Rome"}}"#), rome());
    assert_eq!(read(r#"[{"name": "weather", "parameters": {"city": "Rome"}}]"#), rome());
    assert_eq!(read(r#"weather {"city": "Rome"}"#), rome());
    assert_eq!(
        read(r#"{"id": "a", "type": "function", "function": {"name": "weather", "arguments": {"city": "Rome"}}}"#),
        rome()
    );
    let one = r#"{"name": "weather", "arguments": {"city": "Rome"}}"#;
    for between in ["\n", "; ", ", "] {
        assert_eq!(read(&[one, one].join(between)), [rome(), rome()].concat(), "{between:?}");
    }
    let ids = ToolCall::read(r#"[{"name": "a", "id": "x"}, {"name": "b"}]"#).into_iter().map(|call| call.id);
    assert_eq!(ids.collect::<Vec<_>>(), ["x", "call00001"]);
}

/// serde_json's values would sort the keys and round large numbers.
#[test]
fn arguments_stay_as_they_are_written() {
    let arguments =
        r#"{"to": "b", "from": "a", "id": 123456789012345678901234567890, "rate": 1.10, "all": [{"b": 1, "a": 2}]}"#;
    let expected = vec![("move".to_owned(), arguments.to_owned())];
    assert_eq!(read(&format!("{{\"name\": \"move\", \"arguments\": {arguments} }}")), expected);
    assert_eq!(read(&format!("[ {{ \"arguments\" : {arguments},\n\"name\" : \"move\"}} ]")), expected);
    assert_eq!(read(&format!("move {arguments}")), expected);
    let as_string = serde_json::to_string(arguments).unwrap();
    assert_eq!(read(&format!("{{\"name\": \"move\", \"arguments\": {as_string}}}")), expected);
    for none in
        ["{\"name\": \"now\"}", "{\"name\": \"now\", \"arguments\": null}", "{\"name\": \"now\", \"arguments\": \"\"}"]
    {
        assert_eq!(read(none), [("now".to_owned(), "{}".to_owned())], "{none}");
    }
}

#[test]
fn other_forms_are_no_calls() {
    for text in [
        "",
        "<function=weather>",
        "{\"name\": 1}",
        "{\"name\": \"a\"} and more",
        "the weather {}",
        "{\"a\"",
        "{\"name\": \"a\", \"arguments\": \"Rome\"}",
        "{\"name\": \"a\", \"arguments\": [1]}",
        "{\"name\": \"two words\"}",
        "now",
        "call:now{a:",
        "[now(a=b)]",
        "now(1)",
    ] {
        assert_eq!(read(text), [], "{text}");
    }
}

/// What a published template writes for a call of the weather in Rome, after the last of these markers.
fn written(template: &str, marker: &str) -> String {
    let path = format!("{}/tests/templates/{template}.jinja", env!("CARGO_MANIFEST_DIR"));
    let template = ChatTemplate::new(&read_golden(path.as_ref()), String::new(), String::new()).unwrap();
    let call = ToolCall { id: "call00000".to_owned(), ..ToolCall::new("weather", "{\"city\": \"Rome\"}") };
    let messages = [Message::new("user", "Hi"), Message { tool_calls: vec![call], ..Message::new("assistant", "") }];
    let now = Some(LocalTime::from_unix(0));
    let options = RenderOptions { now, add_generation_prompt: false, ..RenderOptions::default() };
    let text = template.render(&messages, &options).unwrap();
    text.rsplit_once(marker).unwrap_or_else(|| panic!("{marker} in {text}")).1.to_owned()
}

/// Behind the marker, up to where the channel of calls ends.
#[test]
fn the_form_of_each_family_is_read() {
    for (template, open, close) in [
        ("qwen2.5", "<tool_call>", "</tool_call>"),
        ("qwen3", "<tool_call>", "</tool_call>"),
        ("qwen3-coder", "<tool_call>", "</tool_call>"),
        ("qwen3.5", "<tool_call>", "</tool_call>"),
        ("nemotron-3-nano", "<tool_call>", "</tool_call>"),
        ("granite-4.0", "<tool_call>", "</tool_call>"),
        ("glm-4.6", "<tool_call>", "</tool_call>"),
        ("llama-3.1", "assistant<|end_header_id|>", "<|eot_id|>"),
        ("llama-3.2", "assistant<|end_header_id|>", "<|eot_id|>"),
        ("mistral-nemo", "[TOOL_CALLS]", "</s>"),
        ("mistral-small-3.2", "[TOOL_CALLS]", "</s>"),
        ("ministral-3", "[TOOL_CALLS]", "</s>"),
        ("gemma-4", "<|tool_call>", "<tool_call|>"),
        ("lfm2.5", "<|tool_call_start|>", "<|tool_call_end|>"),
        ("deepseek-v3.1", "<｜tool▁calls▁begin｜>", "<｜tool▁calls▁end｜>"),
        ("deepseek-r1-distill", "<｜tool▁calls▁begin｜>", "<｜tool▁calls▁end｜>"),
        ("minimax-m2", "<minimax:tool_call>", "</minimax:tool_call>"),
    ] {
        let rest = written(template, open);
        let text = rest.split(close).next().unwrap();
        let read: Vec<_> = read(text).into_iter().map(|(name, json)| (name, json.replace(": ", ":"))).collect();
        assert_eq!(read, [("weather".to_owned(), "{\"city\":\"Rome\"}".to_owned())], "{template}: {text}");
    }
}

/// Kimi K2's, where its markers are text and where each is a space; and gpt-oss's, behind its name for the channel.
#[test]
fn names_with_a_place_and_a_number_are_read() {
    let kimi =
        "<|tool_call_begin|>functions.weather:0<|tool_call_argument_begin|>{\"city\": \"Rome\"}<|tool_call_end|>";
    assert_eq!(read(kimi), rome());
    assert_eq!(read(" functions.weather:12 {\"city\": \"Rome\"} "), rome());
    assert_eq!(read("weather {\"city\": \"Rome\"}"), rome());
    assert_eq!(read("weather abc123XYZ {\"city\": \"Rome\"}"), rome(), "Mistral's id");
}

#[test]
fn values_without_quotes_have_the_type_that_was_asked_for() {
    let functions = Functions::new([WEATHER, NOW]);
    let text = "weather\n<arg_key>city</arg_key>\n<arg_value>5</arg_value>\n<arg_key>days</arg_key>\n<arg_value>5</arg_value>\nnow";
    let read = |text: &str| super::read(text, &functions).map(pairs);
    let weather = ("weather".to_owned(), "{\"city\": \"5\", \"days\": 5}".to_owned());
    let now = ("now".to_owned(), "{}".to_owned());
    assert_eq!(read(text), Some(vec![weather.clone(), now.clone()]));
    let text = "<function=weather>\n<parameter=city>\n5\n</parameter>\n<parameter=days>\n5\n</parameter>\n</function>\n<function=now>\n</function>";
    assert_eq!(read(text), Some(vec![weather, now.clone()]));
    assert_eq!(read("now"), Some(vec![now]), "without arguments, by its name");
    assert_eq!(read("never"), None);
}

#[test]
fn lists_objects_and_signs_survive_in_every_form() {
    let json = r#"{"a": "x, y}", "b": [1, true, null], "c": {"d": "\"q\""}}"#;
    let gemma = "call:f{a:<|\"|>x, y}<|\"|>,b:[1,true,null],c:{d:<|\"|>\"q\"<|\"|>}}call:now{}";
    let both = [("f".to_owned(), json.to_owned()), ("now".to_owned(), "{}".to_owned())];
    assert_eq!(read(gemma), both);
    let python = r#"[f(a="x, y}", b=[1, True, None], c={'d': "\"q\""}), now()]"#;
    assert_eq!(read(python), both);
    assert_eq!(
        read("brave_search.call(query=\"Rome\\n\")"),
        [("brave_search".to_owned(), r#"{"query": "Rome\n"}"#.to_owned())]
    );
}

/// What a stream makes of an answer that comes in these pieces.
fn streamed(pieces: &[(Channel, &str)]) -> (Vec<(String, String)>, String) {
    let mut stream = CallStream::new([WEATHER, NOW]);
    let mut parts: Vec<CallPart> = pieces.iter().flat_map(|(channel, text)| stream.push(*channel, text)).collect();
    parts.extend(stream.finish());
    let (mut calls, mut said) = (Vec::new(), String::new());
    for part in parts {
        match part {
            CallPart::Call(call) => calls.push(call),
            CallPart::Text(_, text) => said += &text,
        }
    }
    (pairs(calls), said)
}

/// The answer comes letter by letter.
fn answered(text: &str) -> (Vec<(String, String)>, String) {
    let letters: Vec<String> = text.chars().map(String::from).collect();
    streamed(&letters.iter().map(|letter| (Channel::Answer, letter.as_str())).collect::<Vec<_>>())
}

const ROME: &str = r#"{"name": "weather", "arguments": {"city": "Rome"}}"#;

#[test]
fn calls_in_their_channel_come_one_by_one_and_what_cannot_be_read_stays() {
    let two = format!("{ROME}\n{{\"name\": \"now\"}}");
    let now = vec![("now".to_owned(), "{}".to_owned())];
    let both = [rome(), now.clone()].concat();
    assert_eq!(
        streamed(&[(Channel::Answer, "I look.\n\n"), (Channel::ToolCall, &two)]),
        (both, "I look.\n\n".to_owned())
    );
    let mut stream = CallStream::new([WEATHER]);
    assert_eq!(
        stream.push(Channel::ToolCall, &two[..ROME.len()]).len(),
        1,
        "the first call need not wait for the second"
    );
    let broken = "{\"name\": \"weather\", \"arguments\": {\"city\": }}";
    assert_eq!(streamed(&[(Channel::ToolCall, broken)]), (vec![], broken.to_owned()));
    let half = format!("{ROME}\n{{\"name\": \"no");
    assert_eq!(
        streamed(&[(Channel::ToolCall, &half), (Channel::Answer, "Hi")]),
        (rome(), "\n{\"name\": \"noHi".to_owned())
    );
    let glm = "weather\n<arg_key>city</arg_key>\n<arg_value>{}Rome</arg_value>\nnow";
    let (calls, said) = streamed(&[(Channel::ToolCall, glm)]);
    assert_eq!((calls.len(), said.as_str()), (2, ""), "{calls:?}");
}

/// Qwen2.5-Coder writes the first three, Llama 3 the fourth, and models whose template has no calls the fifth.
#[test]
fn calls_written_as_text_are_found() {
    for text in [
        format!("```json\n{ROME}\n```"),
        format!("<tools>\n{ROME}\n</tools>"),
        ROME.to_owned(),
        r#"{"name": "weather", "parameters": {"city": "Rome"}}"#.to_owned(),
        format!("<tool_call>\n{ROME}\n</tool_call>"),
        format!("\n\n```\n[{ROME}]"),
        format!("<tool_call>{ROME}"),
        "<function=weather>\n<parameter=city>\nRome\n</parameter>\n</function>".to_owned(),
        format!("[TOOL_CALLS][{ROME}]"),
    ] {
        let (calls, said) = answered(&text);
        assert_eq!((calls, said.trim()), (rome(), ""), "{text}");
    }
    let text = format!("I look.\n<tool_call>\n{ROME}\n</tool_call>\n<tool_call>\n{ROME}\n</tool_call>\nDone.");
    assert_eq!(answered(&text), ([rome(), rome()].concat(), "I look.\nDone.".to_owned()));
}

#[test]
fn texts_stay_texts() {
    for text in [
        "Hi",
        "{\"answer\": 5}",
        "{\"name\": \"Anna\", \"age\": 5}",
        "```json\n{\"name\": \"Anna\"}\n```",
        "```python\nprint(5)\n```",
        "`{` opens an object.",
        "<tools>\n{\"name\": \"other\", \"arguments\": {}}\n</tools>",
        "A call is written as <tool_call>{\"name\": \"now\"}</tool_call> there.",
        "<tool_call>\nno call\n</tool_call> so",
        "<tool_call",
        "[1, 2]",
        "\n\n",
    ] {
        assert_eq!(answered(text), (vec![], text.to_owned()), "{text}");
    }
    let and_more = format!("{ROME}\nThat is a call.");
    assert_eq!(answered(&and_more), (vec![], and_more.clone()), "the whole answer must be calls");
}

#[test]
fn text_is_not_held_back_without_a_reason() {
    let mut stream = CallStream::new([WEATHER]);
    let said = |text: &str| vec![CallPart::Text(Channel::Answer, text.to_owned())];
    assert_eq!(stream.push(Channel::Answer, "```py"), said("```py"));
    assert_eq!(stream.push(Channel::Answer, " a <b"), said(" a <b"));
    assert_eq!(stream.push(Channel::Answer, " c\n<to"), said(" c\n"));
    assert_eq!(stream.push(Channel::Answer, "p>"), said("<top>"));
    assert_eq!(CallStream::new([WEATHER]).push(Channel::Answer, "{\"answer\""), said("{\"answer\""));
}

proptest! {
    /// Nothing panics, and cuts change nothing.
    #[test]
    fn any_text_is_read(
        words in prop::collection::vec(prop::sample::select(vec![
            "<tool_call>", "</tool_call>", "{", "}", "[", "]", "\"name\"", ":", "\"now\"", ",", "(", ")", "=", "'", "\\", "\n", " ", "é",
            "```", "json", "call:", "<|\"|>", "<arg_key>", "</arg_key>", "<arg_value>", "now", "<function=", ">", "[TOOL_CALLS]", "😀",
        ]), 0..40),
        channels in prop::collection::vec(prop::sample::select(vec![Channel::Answer, Channel::Answer, Channel::ToolCall]), 40),
    ) {
        let pieces: Vec<(Channel, &str)> = channels.into_iter().zip(words.iter().copied()).collect();
        streamed(&pieces);
        let whole = words.concat();
        let mut stream = CallStream::new([WEATHER, NOW]);
        let mut at_once = stream.push(Channel::Answer, &whole);
        at_once.extend(stream.finish());
        let calls = at_once.iter().filter(|part| matches!(part, CallPart::Call(_))).count();
        prop_assert_eq!(calls, answered(&whole).0.len());
        let texts: String = at_once.iter().filter_map(|part| match part {
            CallPart::Text(_, text) => Some(text.as_str()),
            CallPart::Call(_) => None,
        }).collect();
        prop_assert_eq!(texts, answered(&whole).1);
    }
}
