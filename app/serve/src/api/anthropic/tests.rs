#![allow(clippy::unwrap_used, reason = "a test may panic")]
use potluck_panel::Role;
use potluck_swarm::Refusal;

use super::*;
use crate::api::{test_call, test_head};

fn with(more: Value) -> Value {
    let mut body = json!({ "max_tokens": 9, "messages": [{ "role": "user", "content": "Hi" }] });
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    body
}

#[test]
fn a_request_becomes_a_question_with_its_instructions_first() {
    let asked = question(&with(json!({
        "system": [{ "type": "text", "text": "Be brief." }], "stop_sequences": ["END"], "temperature": 0,
        "tools": [{ "name": "f", "input_schema": {} }], "tool_choice": { "type": "auto" }, "metadata": { "user_id": "a" },
    })))
    .unwrap();
    let roles: Vec<Role> = asked.messages.iter().map(|message| message.role).collect();
    assert_eq!((roles, asked.messages[0].content.as_str()), (vec![Role::System, Role::User], "Be brief."));
    assert_eq!((asked.max_tokens, asked.stops), (Some(9), vec!["END".to_owned()]));
    assert_eq!(
        (asked.reasoning, asked.tools.offer.functions.len()),
        (Some(ReasoningEffort::Off), 1),
        "nobody asked for thoughts"
    );
    for wrong in [
        json!({ "tool_choice": { "type": "other" } }),
        json!({ "output_config": { "format": { "type": "json_schema" } } }),
        json!({ "system": 5 }),
        json!({ "thinking": true }),
        json!({ "messages": [] }),
    ] {
        assert!(question(&with(wrong.clone())).is_err(), "{wrong}");
    }
}

#[test]
fn a_budget_of_thinking_is_an_effort() {
    let effort = |body: Value| question(&with(body)).unwrap().reasoning.unwrap();
    let budget = |tokens: u32| effort(json!({ "thinking": { "type": "enabled", "budget_tokens": tokens } }));
    assert_eq!(
        (budget(1_024), budget(10_000), budget(32_000)),
        (ReasoningEffort::Low, ReasoningEffort::Medium, ReasoningEffort::High)
    );
    assert_eq!(effort(json!({ "thinking": { "type": "disabled" } })), ReasoningEffort::Off);
    let adaptive = json!({ "thinking": { "type": "adaptive" }, "output_config": { "effort": "high" } });
    assert_eq!(effort(adaptive), ReasoningEffort::High);
}

#[test]
fn a_stream_has_numbered_blocks_and_says_its_input_first() {
    let head = &test_head("msg_1");
    let mut shape = Messages::default();
    assert_eq!(shape.begin(head), []);
    let usage = Usage { prompt: 5, cached: 3, answer: 2, reasoning: 1 };
    let mut events = shape.taken(head, Usage { answer: 0, ..usage });
    events.extend(shape.taken(head, usage));
    events.extend(shape.more(head, Channel::Reasoning, "Hm."));
    events.extend(shape.more(head, Channel::Answer, "Hi, "));
    events.extend(shape.more(head, Channel::Answer, "you"));
    events.extend(shape.end(head, &Finish::StopString("END".to_owned()), usage));
    let kinds: Vec<(&str, &Value)> = events.iter().map(|event| (event.kind(), &event.json()["index"])).collect();
    let (zero, one, none) = (&json!(0), &json!(1), &Value::Null);
    let expected = [
        ("message_start", none),
        ("content_block_start", zero),
        ("content_block_delta", zero),
        ("content_block_stop", zero),
        ("content_block_start", one),
        ("content_block_delta", one),
        ("content_block_delta", one),
        ("content_block_stop", one),
        ("message_delta", none),
        ("message_stop", none),
    ];
    assert_eq!(kinds, expected);
    let start = &events[0].json()["message"];
    assert_eq!((&start["usage"]["input_tokens"], &start["usage"]["cache_read_input_tokens"]), (&json!(2), &json!(3)));
    assert_eq!((&start["content"], &start["stop_reason"]), (&json!([]), none));
    let end = events[8].json();
    assert_eq!((&end["delta"]["stop_sequence"], &end["usage"]["output_tokens"]), (&json!("END"), &json!(2)));
}

#[test]
fn calls_are_blocks_of_their_own_and_their_results_come_back() {
    let head = &test_head("msg_1");
    let mut shape = Messages::default();
    let mut events = shape.taken(head, Usage::default());
    events.extend(shape.more(head, Channel::Answer, "I look."));
    events.extend(shape.call(head, &test_call("a")));
    events.extend(shape.call(head, &test_call("b")));
    events.extend(shape.end(head, &Finish::ToolCalls, Usage::default()));
    let kinds: Vec<(&str, &Value)> = events.iter().map(|event| (event.kind(), &event.json()["index"])).collect();
    let block = |index: u64| {
        ["content_block_start", "content_block_delta", "content_block_stop"].map(|kind| (kind, json!(index)))
    };
    let blocks = [0, 1, 2].map(block).concat();
    assert_eq!(kinds[1..10], blocks.iter().map(|(kind, index)| (*kind, index)).collect::<Vec<_>>());
    assert_eq!(
        events[4].json()["content_block"],
        json!({ "type": "tool_use", "id": "a", "name": "weather", "input": {} })
    );
    assert_eq!(
        events[5].json()["delta"],
        json!({ "type": "input_json_delta", "partial_json": test_call("a").arguments })
    );
    assert_eq!((kinds[10].0, &events[10].json()["delta"]["stop_reason"]), ("message_delta", &json!("tool_use")));

    let calls = vec![test_call("a"), test_call("b")];
    let (text, reasoning, finish, usage) = ("I look.".to_owned(), String::new(), Finish::ToolCalls, Usage::default());
    let whole = Messages::default().whole(head, &Whole { text, reasoning, calls, logprobs: Vec::new(), finish, usage });
    let content = whole["content"].as_array().unwrap();
    assert_eq!((content.len(), &content[1]["input"]), (3, &json!({ "city": "Rome", "days": 1.1 })));
    let results = json!([
        { "type": "tool_result", "tool_use_id": "a", "content": [{ "type": "text", "text": "warm" }] },
        { "type": "tool_result", "tool_use_id": "b", "content": "cold", "is_error": true },
        { "type": "text", "text": "So?" },
    ]);
    let asked = question(&with(json!({ "messages": [
        { "role": "user", "content": "Hi" }, { "role": "assistant", "content": content }, { "role": "user", "content": results },
    ] })))
    .unwrap();
    let said: Vec<(Role, &str, &str)> = asked
        .messages
        .iter()
        .map(|message| (message.role, message.content.as_str(), message.tool_call_id.as_str()))
        .collect();
    let expected = [
        (Role::User, "Hi", ""),
        (Role::Assistant, "I look.", ""),
        (Role::Tool, "warm", "a"),
        (Role::Tool, "cold", "b"),
        (Role::User, "So?", ""),
    ];
    assert_eq!(said, expected);
    let read = ToolCall::read(&asked.messages[1].tool_calls);
    assert_eq!(read.iter().map(|call| call.id.as_str()).collect::<Vec<_>>(), ["a", "b"]);
    let orphan =
        json!([{ "role": "user", "content": [{ "type": "tool_result", "tool_use_id": "z", "content": "5" }] }]);
    let error = question(&with(json!({ "messages": orphan }))).unwrap_err();
    assert!(error.to_string().contains("There is no call with the id z"), "{error}");
}

#[test]
fn an_empty_answer_has_a_block_of_text() {
    let head = &test_head("msg_1");
    let usage = Usage { prompt: 5, ..Usage::default() };
    let events = Messages::default().end(head, &Finish::Length, usage);
    let kinds: Vec<&str> = events.iter().map(Event::kind).collect();
    let expected = ["message_start", "content_block_start", "content_block_stop", "message_delta", "message_stop"];
    assert_eq!(kinds, expected);
    let (text, reasoning, calls, logprobs) = Default::default();
    let whole = Whole { text, reasoning, calls, logprobs, finish: Finish::Length, usage };
    let whole = Messages::default().whole(head, &whole);
    assert_eq!(whole["content"], json!([{ "type": "text", "text": "" }]));
    assert_eq!((&whole["stop_reason"], &whole["usage"]["input_tokens"]), (&json!("max_tokens"), &json!(5)));
}

#[test]
fn errors_have_their_own_form_and_say_that_a_prompt_is_too_long() {
    let refusal = Refusal::TooManyTokens { tokens: 5_000, context: 4_096 };
    let long = ApiError::of_stop(&potluck_panel::AnswerStop::Refused(refusal.to_string())).unwrap();
    let json = error(&long);
    assert_eq!((&json["type"], &json["error"]["type"]), (&json!("error"), &json!("invalid_request_error")));
    let message = json["error"]["message"].as_str().unwrap();
    assert!(message.starts_with("prompt is too long: 5000 tokens > 4096 maximum"), "{message}");
    for (failure, kind) in [
        (ApiError::WrongKey, "authentication_error"),
        (ApiError::NoModel("tiny".to_owned()), "not_found_error"),
        (ApiError::NotReady, "overloaded_error"),
        (ApiError::ended(), "api_error"),
    ] {
        assert_eq!(error(&failure)["error"]["type"], kind);
    }
    let events = Messages::default().fail(&test_head("msg_1"), &ApiError::ended());
    assert_eq!(events[0].kind(), "error");
}
