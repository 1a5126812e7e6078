//! Answers that must have a form: the built-in model has never seen a schema, and its answers fit all the same.

use serde_json::{Value, json};

use super::server::Server;

/// A schema, and whether a value fits it.
type Case = (Value, fn(&Value) -> bool);

fn is_short_text(value: &Value, most: usize) -> bool {
    value.as_str().is_some_and(|text| text.chars().count() <= most)
}

fn cases() -> [Case; 4] {
    let person = json!({
        "type": "object", "additionalProperties": false, "required": ["name", "age", "tags"],
        "properties": {
            "name": { "type": "string", "maxLength": 12 },
            "age": { "type": "integer", "minimum": 0, "maximum": 150 },
            "tags": { "type": "array", "items": { "enum": ["red", "green", "blue"] }, "maxItems": 2 },
        },
    });
    let colours = json!({ "type": "object", "additionalProperties": false, "required": ["colour"], "properties": { "colour": { "enum": ["red", "green"] } } });
    let either = json!({ "anyOf": [{ "type": "boolean" }, { "type": "object", "additionalProperties": false, "required": ["why"], "properties": { "why": { "type": "string", "pattern": "^[a-z ]{1,10}$" } } }] });
    let chain = json!({
        "$ref": "#/$defs/link",
        "$defs": { "link": { "type": "object", "additionalProperties": false, "required": ["letter", "next"], "properties": {
            "letter": { "enum": ["a", "b"] }, "next": { "anyOf": [{ "type": "null" }, { "$ref": "#/$defs/end" }] } } },
            "end": { "type": "object", "additionalProperties": false, "required": ["last"], "properties": { "last": { "type": "boolean" } } } },
    });
    [
        (person, |value| {
            let tags = value["tags"].as_array().unwrap();
            value.as_object().unwrap().len() == 3
                && is_short_text(&value["name"], 12)
                && value["age"].as_u64().is_some_and(|age| age <= 150)
                && tags.len() <= 2
                && tags.iter().all(|tag| tag == "red" || tag == "green" || tag == "blue")
        }),
        (colours, |value| value == &json!({ "colour": "red" }) || value == &json!({ "colour": "green" })),
        (either, |value| value.is_boolean() || is_short_text(&value["why"], 10) && value["why"] != ""),
        (chain, |value| {
            (value["letter"] == "a" || value["letter"] == "b")
                && (value["next"].is_null() || value["next"]["last"].is_boolean())
        }),
    ]
}

fn format(schema: &Value) -> Value {
    json!({ "type": "json_schema", "json_schema": { "name": "answer", "strict": true, "schema": schema } })
}

pub fn answers_fit_their_schemas(server: &Server) {
    for (schema, fits) in cases() {
        for (seed, temperature) in [(1, 0.0), (2, 1.0), (3, 1.5)] {
            let more = json!({ "response_format": format(&schema), "seed": seed, "temperature": temperature, "max_tokens": 100 });
            let reply = server.chat(more);
            assert_eq!(reply.status, 200, "{}", reply.body);
            let choice = reply.json()["choices"][0].clone();
            assert_eq!(choice["finish_reason"], "stop", "{choice}");
            let text = choice["message"]["content"].as_str().unwrap();
            let value: Value = serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"));
            assert!(fits(&value), "seed {seed}: {text} does not fit {schema}");
        }
    }
    // In a stream, with log-probabilities: those of tokens that may come, together no more than one.
    let (schema, fits) = &cases()[1];
    let more = json!({ "response_format": format(schema), "stream": true, "logprobs": true, "top_logprobs": 20, "max_tokens": 60 });
    let reply = server.chat(more);
    let events = reply.events();
    let chunks =
        events.iter().filter(|data| **data != "[DONE]").map(|data| serde_json::from_str::<Value>(data).unwrap());
    let (mut text, mut scored) = (String::new(), 0);
    for chunk in chunks {
        text += chunk["choices"][0]["delta"]["content"].as_str().unwrap_or_default();
        for token in chunk["choices"][0]["logprobs"]["content"].as_array().into_iter().flatten() {
            let top = token["top_logprobs"].as_array().unwrap();
            let sum: f64 = top.iter().map(|top| top["logprob"].as_f64().unwrap().exp()).sum();
            assert!(top.len() == 20 || (0.999..1.001).contains(&sum), "{token}");
            scored += 1;
        }
    }
    assert!(fits(&serde_json::from_str(&text).unwrap()) && scored > 3, "{text}, {scored} scored");
}

pub fn other_forms_hold_in_each_api(server: &Server) {
    let (schema, fits) = &cases()[1];
    let parsed = |text: &Value| serde_json::from_str::<Value>(text.as_str().unwrap()).unwrap();
    let body = json!({ "input": "Hello!", "max_output_tokens": 60, "text": { "format": { "type": "json_schema", "name": "x", "schema": schema } } });
    let responses = server.post("/v1/responses", &body).json();
    assert!(fits(&parsed(&responses["output"][0]["content"][0]["text"])), "{responses}");
    let messages = json!([{ "role": "user", "content": "Hello!" }]);
    let body = json!({ "model": "", "max_tokens": 60, "messages": messages, "output_config": { "format": { "type": "json_schema", "schema": schema } } });
    let anthropic = server.post("/v1/messages", &body).json();
    assert!(fits(&parsed(&anthropic["content"][0]["text"])), "{anthropic}");
    let said = |more: Value| server.chat(more).json()["choices"][0]["message"]["content"].clone();
    assert!(
        ["yes", "no"].map(Value::from).contains(&said(json!({ "guided_choice": ["yes", "no"], "temperature": 1 })))
    );
    let grammar = said(json!({ "grammar": "start: \"<\" /[ab]{2}/ \">\"" }));
    assert!(["<aa>", "<ab>", "<ba>", "<bb>"].map(Value::from).contains(&grammar), "{grammar}");
    let grammar = said(json!({ "grammar": "root ::= \"<\" pair{2} \">\"\npair ::= [ab] # GBNF" }));
    assert!(["<aa>", "<ab>", "<ba>", "<bb>"].map(Value::from).contains(&grammar), "{grammar}");
    let body = json!({ "prompt": "The number is ", "max_tokens": 20, "guided_regex": "[0-9]{3}" });
    let number = server.post("/v1/completions", &body).json()["choices"][0]["text"].clone();
    assert!(number.as_str().is_some_and(|text| text.len() == 3 && text.parse::<u16>().is_ok()), "{number}");
    let object =
        json!({ "response_format": { "type": "json_object" }, "temperature": 1, "seed": 5, "max_tokens": 150 });
    let object = server.chat(object).json();
    let choice = &object["choices"][0];
    let is_cut = choice["finish_reason"] == "length" && choice["message"]["content"].as_str().unwrap().starts_with('{');
    assert!(is_cut || parsed(&choice["message"]["content"]).is_object(), "{object}");
}

/// The built-in model's context holds no more than a small function.
pub fn calls_fit_their_functions(server: &Server) {
    let parameters = json!({ "const": { "a": 1 } });
    let tool = json!({ "type": "function", "function": { "name": "f", "strict": true, "parameters": parameters } });
    let named = json!({ "type": "function", "function": { "name": "f" } });
    for (seed, choice) in [(1, json!("required")), (2, named), (3, json!("required"))] {
        let more = json!({ "messages": [{ "role": "user", "content": "Hi" }], "tools": [tool], "tool_choice": choice, "temperature": 0.5, "seed": seed, "max_tokens": 40, "parallel_tool_calls": false });
        let reply = server.chat(more).json();
        let choice = &reply["choices"][0];
        assert_eq!(choice["finish_reason"], "tool_calls", "{reply}");
        let function = &choice["message"]["tool_calls"][0]["function"];
        let arguments: Value = serde_json::from_str(function["arguments"].as_str().unwrap()).unwrap();
        assert!(function["name"] == "f" && arguments == json!({ "a": 1 }), "{reply}");
    }
}

pub fn forms_that_cannot_be_held_to_are_refused(server: &Server) {
    let wide: Value =
        (0..2_000).map(|index| (format!("k{index}"), json!({}))).collect::<serde_json::Map<_, _>>().into();
    for (more, part) in [
        (json!({ "response_format": format(&json!({ "type": "object", "not": {} })) }), "not"),
        (json!({ "response_format": format(&json!({ "$ref": "https://example.com/a" })) }), "example.com"),
        (json!({ "response_format": format(&json!({ "type": "object", "properties": wide })) }), "values"),
        (json!({ "guided_regex": "(" }), "form"),
        (json!({ "grammar": "begin: \"a\"" }), "start"),
        (json!({ "grammar": "root ::= other" }), "names other"),
    ] {
        let reply = server.chat(more.clone());
        assert_eq!(reply.status, 400, "{more}: {}", reply.body);
        assert!(reply.json()["error"]["message"].as_str().unwrap().contains(part), "{}", reply.body);
    }
    // Every token that the form needs is banned: the answer ends with an error, and the server goes on.
    let banned: Value = (0..1_024).map(|id| (id.to_string(), json!(-100))).collect::<serde_json::Map<_, _>>().into();
    let reply = server.chat(json!({ "guided_choice": ["yes"], "logit_bias": banned }));
    assert!(reply.status >= 500 && reply.body.contains("bans every token"), "{}", reply.body);
    assert_eq!(server.chat(json!({})).status, 200);
}
