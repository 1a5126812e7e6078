#![allow(clippy::unwrap_used, reason = "a test may panic")]
use super::*;
use crate::api::{test_call, test_head};

const USAGE: Usage = Usage { prompt: 5, cached: 3, answer: 2, reasoning: 1 };

fn shape() -> Responses {
    Responses::of(&json!({ "input": "Hi", "instructions": "Be brief.", "temperature": 0 })).unwrap()
}

fn stream(finish: &Finish) -> Vec<Event> {
    let head = &test_head("resp_1");
    let mut shape = shape();
    let mut events = shape.begin(head);
    events.extend(shape.taken(head, USAGE));
    events.extend(shape.more(head, Channel::Reasoning, "Hm."));
    events.extend(shape.more(head, Channel::Answer, "Hi, "));
    events.extend(shape.more(head, Channel::Answer, "you"));
    events.extend(shape.end(head, finish, USAGE));
    events
}

#[test]
fn a_stream_numbers_its_events_and_each_names_its_item() {
    let mut events = stream(&Finish::Stop);
    assert_eq!(events.pop(), Some(Event::Done));
    let kinds: Vec<&str> = events.iter().map(Event::kind).collect();
    let expected = [
        "response.created",
        "response.in_progress",
        "response.output_item.added",
        "response.content_part.added",
        "response.reasoning_text.delta",
        "response.reasoning_text.done",
        "response.content_part.done",
        "response.output_item.done",
        "response.output_item.added",
        "response.content_part.added",
        "response.output_text.delta",
        "response.output_text.delta",
        "response.output_text.done",
        "response.content_part.done",
        "response.output_item.done",
        "response.completed",
    ];
    assert_eq!(kinds, expected);
    for (number, event) in events.iter().enumerate() {
        assert_eq!(event.json()["sequence_number"], number, "{event:?}");
    }
    let output = &events[15].json()["response"]["output"];
    for (at, item) in [(2, 0), (5, 0), (7, 0), (8, 1), (11, 1), (14, 1)] {
        let json = events[at].json();
        let id = json["item"].get("id").unwrap_or(&json["item_id"]);
        assert_eq!((&json["output_index"], id), (&json!(item), &output[item]["id"]), "{json}");
    }
    assert_eq!(events[12].json()["text"], "Hi, you");
    assert_eq!(events[14].json()["item"], output[1]);
}

#[test]
fn a_stream_ends_with_the_response_that_comes_in_one_piece() {
    for finish in [Finish::Stop, Finish::Length] {
        let whole = Whole {
            text: "Hi, you".to_owned(),
            reasoning: "Hm.".to_owned(),
            calls: Vec::new(),
            logprobs: Vec::new(),
            finish: finish.clone(),
            usage: USAGE,
        };
        let whole = shape().whole(&test_head("resp_1"), &whole);
        let events = stream(&finish);
        assert_eq!(events[15].json()["response"], whole);
        let (status, kind) = match finish {
            Finish::Length => ("incomplete", "response.incomplete"),
            _ => ("completed", "response.completed"),
        };
        assert_eq!((&whole["status"], &whole["output"][1]["status"]), (&json!(status), &json!(status)));
        assert_eq!(events[15].kind(), kind);
        assert_eq!(whole["incomplete_details"].is_null(), finish == Finish::Stop);
        assert_eq!((&whole["instructions"], &whole["temperature"]), (&json!("Be brief."), &json!(0)));
        assert_eq!(whole["usage"]["output_tokens_details"]["reasoning_tokens"], 1);
    }
}

#[test]
fn calls_are_items_with_events_of_their_own() {
    let head = &test_head("resp_1");
    let mut streamed = shape();
    let mut events = streamed.begin(head);
    events.extend(streamed.more(head, Channel::Answer, "I look."));
    events.extend(streamed.call(head, &test_call("a")));
    events.extend(streamed.call(head, &test_call("b")));
    events.extend(streamed.end(head, &Finish::ToolCalls, USAGE));
    events.pop();
    let kinds: Vec<&str> = events.iter().map(Event::kind).collect();
    let of_call = [
        "response.output_item.added",
        "response.function_call_arguments.delta",
        "response.function_call_arguments.done",
        "response.output_item.done",
    ];
    assert_eq!(kinds[8..], [&of_call[..], &of_call[..], &["response.completed"][..]].concat());
    assert_eq!((&events[8].json()["item"]["arguments"], &events[8].json()["output_index"]), (&json!(""), &json!(1)));
    assert_eq!(events[9].json()["delta"], test_call("a").arguments);
    assert_eq!(
        (&events[13].json()["item_id"], &events[14].json()["name"]),
        (&events[12].json()["item"]["id"], &json!("weather"))
    );
    let calls = vec![test_call("a"), test_call("b")];
    let (text, reasoning, finish, usage) = ("I look.".to_owned(), String::new(), Finish::ToolCalls, USAGE);
    let whole = shape().whole(head, &Whole { text, reasoning, calls, logprobs: Vec::new(), finish, usage });
    assert_eq!(events[16].json()["response"], whole, "as in one piece");
    assert_eq!(whole["output"][2]["call_id"], "b");
}

#[test]
fn an_empty_answer_has_a_message_and_a_failure_its_reason() {
    let head = &test_head("resp_1");
    let mut empty = shape();
    let events = empty.end(head, &Finish::Stop, USAGE);
    let last = events[events.len() - 2].json();
    assert_eq!(last["response"]["output"][0]["content"][0]["text"], "");
    let mut failed = shape();
    failed.begin(head);
    let events = failed.fail(head, &ApiError::ended());
    assert_eq!((events.len(), events[0].kind()), (1, "response.failed"));
    let json = events[0].json();
    assert_eq!((&json["response"]["status"], &json["sequence_number"]), (&json!("failed"), &json!(2)));
    assert_eq!(json["response"]["error"]["message"], ApiError::ended().to_string());
}

/// Each of several events has a copy, for every request that waits.
#[test]
fn a_reply_repeats_nothing_long() {
    let long = "x".repeat(1 << 20);
    let body =
        json!({ "input": "Hi", "instructions": long, "user": [long], "reasoning": { "effort": "low", "x": long } });
    let repeated = Responses::of(&body).unwrap().repeated;
    assert!(json!(repeated).to_string().len() < 400, "{}", json!(repeated).to_string().len());
    assert_eq!(repeated["reasoning"], json!({ "effort": "low", "summary": null }));
    let kept = Responses::of(&json!({ "input": "Hi", "metadata": { "a": "b" } })).unwrap();
    assert_eq!(kept.repeated["metadata"], json!({ "a": "b" }));
    let many: Map<String, Value> = (0..17).map(|index| (index.to_string(), json!(""))).collect();
    for refused in [json!({ "a": long }), json!({ "a": 1 }), json!([{ "a": "b" }]), json!(many)] {
        let error = Responses::of(&json!({ "input": "Hi", "metadata": refused })).err().unwrap();
        assert!(error.to_string().starts_with("metadata: expected at most 16 strings"), "{error}");
    }
}
