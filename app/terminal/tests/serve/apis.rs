//! The other APIs, over the same socket.

use serde_json::{Value, json};

use super::server::{Reply, Server};

/// Names of the events of a stream and their JSON. Each name must be the type, too.
fn events(reply: &Reply) -> Vec<(String, Value)> {
    let names = reply.body.lines().filter_map(|line| line.strip_prefix("event: "));
    let data = reply.events().into_iter().filter(|data| *data != "[DONE]");
    let events: Vec<(String, Value)> =
        names.map(str::to_owned).zip(data.map(|data| serde_json::from_str(data).unwrap())).collect();
    assert!(events.iter().all(|(name, json)| json["type"] == **name), "{}", reply.body);
    events
}

/// The text of all events of this name, at this place in their JSON.
fn text(events: &[(String, Value)], name: &str, pointer: &str) -> String {
    let of_name = events.iter().filter(|(this, _)| this == name);
    of_name.map(|(_, json)| json.pointer(pointer).unwrap().as_str().unwrap()).collect()
}

pub fn anthropics_messages(server: &Server) {
    let body = |stream: bool, content: &str| {
        json!({
            "model": "", "max_tokens": 40, "temperature": 0, "stream": stream, "system": [{ "type": "text", "text": "Be kind." }],
            "messages": [{ "role": "user", "content": [{ "type": "text", "text": content }] }],
        })
    };
    let whole = server.post("/v1/messages?beta=true", &body(false, "Hello!"));
    assert_eq!(whole.status, 200, "{}", whole.body);
    let whole = whole.json();
    let said = whole["content"][0]["text"].as_str().unwrap();
    assert!(!said.is_empty() && whole["stop_reason"] == "end_turn", "{whole}");
    let input =
        |usage: &Value| usage["input_tokens"].as_u64().unwrap() + usage["cache_read_input_tokens"].as_u64().unwrap();
    assert!(input(&whole["usage"]) > 0, "{whole}");

    let stream = server.post("/v1/messages", &body(true, "Hello!"));
    let events = events(&stream);
    assert_eq!(events[0].0, "message_start");
    assert_eq!(
        input(&events[0].1["message"]["usage"]),
        input(&whole["usage"]),
        "the input is known at the beginning: {}",
        stream.body
    );
    assert_eq!(text(&events, "content_block_delta", "/delta/text"), said, "{}", stream.body);
    assert_eq!(events.last().unwrap().0, "message_stop");

    let long = server.post("/v1/messages", &body(true, &"a ".repeat(400)));
    let error = long.json();
    assert_eq!(
        (long.status, &error["type"], &error["error"]["type"]),
        (400, &json!("error"), &json!("invalid_request_error"))
    );
    assert!(error["error"]["message"].as_str().unwrap().starts_with("prompt is too long"), "{error}");
    let counted = server.post("/v1/messages/count_tokens?beta=true", &body(false, "Hello!"));
    assert_eq!(counted.json()["input_tokens"].as_u64(), Some(input(&whole["usage"])), "{}", counted.body);
    let nowhere = server.post("/v1/messages/batches", &json!({}));
    assert_eq!((nowhere.status, &nowhere.json()["error"]["type"]), (404, &json!("not_found_error")));
}

pub fn openais_responses(server: &Server) {
    let body = |stream: bool, most: u32| {
        let mut body = json!({ "input": "Hello!", "instructions": "Be kind.", "temperature": 0 });
        (body["max_output_tokens"], body["stream"]) = (json!(most), json!(stream));
        body
    };
    let whole = server.post("/v1/responses", &body(false, 40));
    assert_eq!(whole.status, 200, "{}", whole.body);
    let whole = whole.json();
    let said = whole["output"][0]["content"][0]["text"].as_str().unwrap();
    assert!(!said.is_empty() && whole["status"] == "completed", "{whole}");

    let stream = server.post("/v1/responses", &body(true, 40));
    let events = events(&stream);
    assert_eq!(text(&events, "response.output_text.delta", "/delta"), said, "{}", stream.body);
    let (name, last) = events.last().unwrap();
    assert_eq!(
        (name.as_str(), &last["response"]["output"][0]["content"]),
        ("response.completed", &whole["output"][0]["content"])
    );
    let short = server.post("/v1/responses", &body(false, 2)).json();
    assert_eq!(
        (&short["status"], &short["incomplete_details"]["reason"]),
        (&json!("incomplete"), &json!("max_output_tokens"))
    );
    let stored = server.post("/v1/responses", &json!({ "input": "And?", "previous_response_id": whole["id"] }));
    assert_eq!((stored.status, stored.code()), (400, json!("unsupported_value")));
}

/// The built-in model's template knows no tools, and the model none, either: what it reads of them is seen in the length of its prompt,
/// and in how an answer begins that must be a call. `potluck-serve`'s tests have answers with calls.
pub fn tools_reach_the_model(server: &Server) {
    let tools = json!([{ "type": "function", "function": { "name": "now", "description": "The time" } }, { "type": "web_search" }]);
    let length = |more: Value| {
        let reply = server.chat(more);
        assert_eq!(reply.status, 200, "{}", reply.body);
        reply.json()["usage"]["prompt_tokens"].as_u64().unwrap()
    };
    let (without, with) = (length(json!({})), length(json!({ "tools": tools })));
    assert!(with > without + 20, "{with} tokens with a function, {without} without");
    assert_eq!(length(json!({ "tools": tools, "tool_choice": "none" })), without);

    let choice = json!({ "type": "function", "function": { "name": "now" } });
    let demanded = server.chat(json!({ "tools": tools, "tool_choice": choice }));
    assert_eq!(demanded.status, 200, "{}", demanded.body);
    let message = demanded.json()["choices"][0]["message"].clone();
    let called = message["tool_calls"][0]["function"]["name"] == "now";
    let said = message["content"].as_str().unwrap_or_default();
    assert!(
        called || said.contains("{\"name\": \"now\""),
        "an answer that cannot be read as a call is text: {message}"
    );

    let call = json!({ "id": "a", "type": "function", "function": { "name": "now", "arguments": "{}" } });
    let turns = |id: &str| {
        json!([
            { "role": "user", "content": "Hi" }, { "role": "assistant", "content": null, "tool_calls": [call] },
            { "role": "tool", "tool_call_id": id, "content": "noon" },
        ])
    };
    let answered = server.chat(json!({ "messages": turns("a") }));
    assert_eq!(answered.status, 200, "{}", answered.body);
    let orphan = server.chat(json!({ "messages": turns("b") }));
    assert_eq!((orphan.status, &orphan.json()["error"]["param"]), (400, &json!("messages[2].tool_call_id")));
}

pub fn tokens_and_texts(server: &Server) {
    let tokens = |body: Value| server.post("/tokenize", &body).json()["tokens"].clone();
    let plain = tokens(json!({ "content": "Once upon a time" }));
    assert!(plain.as_array().unwrap().len() > 2, "{plain}");
    assert_eq!(server.post("/v1/detokenize/", &json!({ "tokens": plain })).json()["content"], "Once upon a time");
    let pieces = tokens(json!({ "content": "Once upon a time", "with_pieces": true }));
    let joined: String = pieces.as_array().unwrap().iter().map(|one| one["piece"].as_str().unwrap()).collect();
    assert_eq!((joined.as_str(), &pieces[0]["id"]), ("Once upon a time", &plain[0]));

    let messages = json!([{ "role": "user", "content": "Hello!" }]);
    let rendered = server.post("/apply-template", &json!({ "messages": messages })).json();
    let rendered = rendered["prompt"].as_str().unwrap();
    assert!(rendered.contains("Hello!") && rendered.len() > "Hello!".len(), "{rendered}");
    let counted = server.post("/tokenize", &json!({ "messages": messages })).json();
    let asked = server.post("/v1/chat/completions", &json!({ "messages": messages, "max_tokens": 1 })).json();
    assert_eq!(counted["count"], asked["usage"]["prompt_tokens"], "{rendered}");
    assert_eq!(tokens(json!({ "content": rendered })), counted["tokens"], "control tokens are read");

    for (path, wrong, field) in [
        ("/tokenize", json!({}), "content"),
        ("/detokenize", json!({ "tokens": [1, -1] }), "tokens"),
        ("/detokenize", json!({ "tokens": [4_000_000_000u32] }), "tokens"),
        ("/apply-template", json!({ "messages": [] }), "messages"),
    ] {
        let reply = server.post(path, &wrong);
        assert_eq!((reply.status, &reply.json()["error"]["param"]), (400, &json!(field)), "{path} {}", reply.body);
    }
    let metrics = server.get("/metrics");
    let count = |name: &str| {
        let line = metrics.body.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        line.unwrap_or_else(|| panic!("{name} is missing:\n{}", metrics.body)).parse::<u64>().unwrap()
    };
    assert!(count("llamacpp:tokens_predicted_total") > 0 && count("potluck:answers_total") > 0, "{}", metrics.body);
    assert_eq!(count("llamacpp:requests_deferred"), 0);
}
