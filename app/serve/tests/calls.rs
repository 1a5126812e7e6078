//! A call, from a program's request over a socket to the question that the room gets, and from the text that a model writes to what the
//! program reads, in each API.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::thread::JoinHandle;

use potluck_model::ToolCall;
use potluck_panel::{
    AnswerPart, AnswerStop, Bytes, Channel, ModelCard, ModelId, ModelSource, PromptRequest, Role, Timings, ToolChoice,
};
use potluck_serve::{Access, Order, Parts, RoomState, Server};
use serde_json::{Value, json};

const CHAT: &str = "/v1/chat/completions";
const MESSAGES: &str = "/v1/messages";
const RESPONSES: &str = "/v1/responses";

fn open() -> Server {
    let address = "127.0.0.1:0".parse().unwrap();
    let server = Server::open(address, Access::new(address, None, Vec::new()).unwrap(), None).unwrap();
    let card = ModelCard {
        id: ModelId([0; 32]),
        source: ModelSource::Relay { name: "tiny".to_owned() },
        name: "tiny".to_owned(),
        architecture: "llama".to_owned(),
        quantization: "Q4_K_M".to_owned(),
        bytes: Bytes(1_000),
        parameters: 2_000,
        active_parameters: 2_000,
        blocks: 2,
        experts: 0,
        context: 4_096,
        licence: String::new(),
    };
    server.tell(RoomState { model: Some(card), context: 4_096, is_up: true });
    server
}

/// Sends a request, and reads the reply to its end.
fn post(address: SocketAddr, path: &str, body: &Value) -> JoinHandle<String> {
    let body = body.to_string();
    let length = body.len();
    let head =
        format!("POST {path} HTTP/1.1\r\nHost: {address}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n");
    std::thread::spawn(move || {
        let mut connection = TcpStream::connect(address).unwrap();
        connection.write_all((head + &body).as_bytes()).unwrap();
        let mut reply = String::new();
        connection.read_to_string(&mut reply).unwrap();
        reply
    })
}

async fn asked(server: &mut Server) -> (PromptRequest, Parts) {
    match server.order().await {
        Some(Order::Ask { prompt, parts }) => (*prompt, parts),
        other => panic!("{other:?}"),
    }
}

/// The model writes these texts, letter by letter.
fn write(parts: &Parts, texts: &[(Channel, &str)]) {
    assert!(parts.send(AnswerPart::Reading(0, 9)));
    let letters = texts.iter().flat_map(|(channel, text)| text.chars().map(|letter| (*channel, letter)));
    let mut index = 0;
    for (channel, letter) in letters {
        let part =
            AnswerPart::Text { index, channel, delta: letter.to_string(), tokens: vec![1], logprobs: Vec::new() };
        assert!(parts.send(part), "the program waits for all of it");
        index += 1;
    }
    assert!(parts.send(AnswerPart::End { pieces: index, stop: AnswerStop::Complete, timings: Timings::default() }));
}

const ARGUMENTS: &str = "{\"city\":\"Rome\"}";
const CALL: &str = "{\"name\": \"weather\", \"arguments\": {\"city\":\"Rome\"}}";

fn write_two_calls(parts: &Parts) {
    let calls = [CALL, CALL].join("\n");
    write(parts, &[(Channel::Reasoning, "Hm."), (Channel::Answer, "I look.\n"), (Channel::ToolCall, &calls)]);
}

fn schema() -> Value {
    json!({ "type": "object", "properties": { "city": { "type": "string" } }, "required": ["city"] })
}

/// Offers a function.
fn request(path: &str) -> Value {
    let (name, description) = ("weather", "Weather");
    match path {
        MESSAGES => json!({
            "max_tokens": 99, "messages": [{ "role": "user", "content": "Hi" }],
            "tools": [{ "name": name, "description": description, "input_schema": schema() }],
        }),
        RESPONSES => json!({
            "input": "Hi",
            "tools": [{ "type": "function", "name": name, "description": description, "parameters": schema() }],
        }),
        _ => {
            let function = json!({ "name": name, "description": description, "parameters": schema() });
            let messages = json!([{ "role": "user", "content": "Hi" }]);
            json!({ "messages": messages, "tools": [{ "type": "function", "function": function }] })
        }
    }
}

/// The calls in a reply in one piece, as id, name and arguments, and why the answer ended.
fn calls(path: &str, reply: &Value) -> (Vec<[String; 3]>, Value) {
    let text = |value: &Value| value.as_str().unwrap_or_else(|| panic!("{reply}")).to_owned();
    let of_type = |list: &Value, kind: &str| -> Vec<Value> {
        list.as_array().unwrap().iter().filter(|item| item["type"] == kind).cloned().collect()
    };
    match path {
        MESSAGES => {
            let call = |block: Value| [text(&block["id"]), text(&block["name"]), block["input"].to_string()];
            (of_type(&reply["content"], "tool_use").into_iter().map(call).collect(), reply["stop_reason"].clone())
        }
        RESPONSES => {
            let call = |item: Value| ["call_id", "name", "arguments"].map(|field| text(&item[field]));
            (of_type(&reply["output"], "function_call").into_iter().map(call).collect(), reply["status"].clone())
        }
        _ => {
            let choice = &reply["choices"][0];
            let call = |call: Value| {
                let function = &call["function"];
                [text(&call["id"]), text(&function["name"]), text(&function["arguments"])]
            };
            let calls = of_type(&choice["message"]["tool_calls"], "function");
            (calls.into_iter().map(call).collect(), choice["finish_reason"].clone())
        }
    }
}

/// The next request, with a result of the call of this id.
fn with_result(path: &str, reply: &Value, id: &str) -> Value {
    let mut next = request(path);
    let hi = json!({ "role": "user", "content": "Hi" });
    match path {
        MESSAGES => {
            let result = json!({ "type": "tool_result", "tool_use_id": id, "content": "warm" });
            let called = json!({ "role": "assistant", "content": reply["content"] });
            next["messages"] = json!([hi, called, { "role": "user", "content": [result] }]);
        }
        RESPONSES => {
            let result = json!({ "type": "function_call_output", "call_id": id, "output": "warm" });
            let output = reply["output"].as_array().unwrap().clone();
            next["input"] = [vec![hi], output, vec![result]].concat().into();
        }
        _ => {
            let result = json!({ "role": "tool", "tool_call_id": id, "content": "warm" });
            next["messages"] = json!([hi, reply["choices"][0]["message"], result]);
        }
    }
    next
}

#[tokio::test]
async fn a_call_goes_to_the_program_and_its_result_to_the_room() {
    let mut server = open();
    for (path, reason) in [(CHAT, "tool_calls"), (MESSAGES, "tool_use"), (RESPONSES, "completed")] {
        let reply = post(server.address(), path, &request(path));
        let (prompt, parts) = asked(&mut server).await;
        let function: Value = serde_json::from_str(&prompt.tools.functions[0]).unwrap();
        let expected = json!({ "name": "weather", "description": "Weather", "parameters": schema() });
        assert_eq!((&function["function"], &prompt.tools.choice), (&expected, &ToolChoice::Free), "{path}");
        write_two_calls(&parts);
        drop(parts);
        let reply = reply.join().unwrap();
        let json: Value = serde_json::from_str(reply.split_once("\r\n\r\n").unwrap().1).unwrap();
        let (calls, end) = calls(path, &json);
        let [[first, ..], [second, ..]] = &calls[..] else { panic!("{json}") };
        assert!(end == reason && first != second, "{json}");
        assert!(calls.iter().all(|[_, name, arguments]| name == "weather" && arguments == ARGUMENTS), "{json}");

        let mut streamed = request(path);
        streamed["stream"] = json!(true);
        let streamed = post(server.address(), path, &streamed);
        let (_, parts) = asked(&mut server).await;
        write_two_calls(&parts);
        drop(parts);
        let streamed = streamed.join().unwrap();
        let quoted = json!(ARGUMENTS).to_string();
        assert!(streamed.matches(&quoted).count() >= 2 && streamed.contains(reason), "{streamed}");

        let reply = post(server.address(), path, &with_result(path, &json, second));
        let (prompt, parts) = asked(&mut server).await;
        let [_, called, result] = &prompt.messages[..] else { panic!("{path}: {:?}", prompt.messages) };
        let read = ToolCall::read(&called.tool_calls);
        assert_eq!((read.len(), &read[1].id, called.reasoning.as_str()), (2, second, "Hm."), "{path}: {called:?}");
        assert_eq!(
            (result.role, &result.tool_call_id, result.content.as_str()),
            (Role::Tool, second, "warm"),
            "{path}"
        );
        write(&parts, &[(Channel::Answer, "It is warm.")]);
        drop(parts);
        assert!(reply.join().unwrap().contains("It is warm."), "{path}");
    }
    server.close().await;
}

#[tokio::test]
async fn an_answer_that_may_have_one_call_ends_with_it() {
    let mut server = open();
    let mut body = request(CHAT);
    (body["parallel_tool_calls"], body["stream"]) = (json!(false), json!(true));
    let reply = post(server.address(), CHAT, &body);
    let (_, parts) = asked(&mut server).await;
    for index in 0..2 {
        let part = AnswerPart::Text {
            index,
            channel: Channel::ToolCall,
            delta: CALL.to_owned(),
            tokens: vec![1],
            logprobs: Vec::new(),
        };
        // Nobody may be waiting for the second one.
        _ = parts.send(part);
    }
    let reply = reply.join().unwrap();
    assert_eq!(reply.matches("\"name\":\"weather\"").count(), 1, "{reply}");
    assert!(reply.contains("\"finish_reason\":\"tool_calls\"") && reply.contains("[DONE]"), "{reply}");
    assert!(matches!(server.order().await, Some(Order::Stop(_))), "the room need not go on");
    drop(parts);
    server.close().await;
}
