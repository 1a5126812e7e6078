//! `potluck-node serve` as programs meet it: over sockets, with the built-in model, and in a room.
#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "a test may panic")]

#[allow(dead_code, reason = "the other tests of the program use the rest")]
#[path = "../matrix/process.rs"]
mod process;
#[allow(dead_code, reason = "the other tests of the program use the rest")]
#[path = "../matrix/world.rs"]
mod world;

mod apis;
mod forms;
mod many;
mod server;

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use process::{Ended, Out};
use serde_json::{Value, json};
use server::{Server, post};
use world::World;

/// Positions of context.
const CONTEXT: u32 = 256;

/// A text that goes on for a while.
fn story(max_tokens: u32, stream: bool) -> Vec<u8> {
    json!({ "prompt": "Once upon a time", "temperature": 0, "max_tokens": max_tokens, "stream": stream })
        .to_string()
        .into_bytes()
}

fn built_in() -> Server {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("serve-built-in");
    _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    let model = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../public/models/potluck-small-Q4_K_M.gguf");
    Server::start(&folder, &[model.to_str().unwrap(), "--context", &CONTEXT.to_string()], None)
}

#[test]
fn programs_ask_the_built_in_model() {
    let server = built_in();
    finds_the_model_and_its_served_context(&server);
    answers_alike_in_one_piece_and_in_a_stream(&server);
    completes_text_up_to_a_stop_string(&server);
    apis::anthropics_messages(&server);
    apis::openais_responses(&server);
    apis::tools_reach_the_model(&server);
    apis::tokens_and_texts(&server);
    forms::answers_fit_their_schemas(&server);
    forms::other_forms_hold_in_each_api(&server);
    forms::calls_fit_their_functions(&server);
    forms::forms_that_cannot_be_held_to_are_refused(&server);
    many::each_client_gets_its_own_answer(&server);
    many::two_hundred_ask_at_once(&server);
    refuses_bad_input_with_a_reason(&server);
    refuses_web_pages(&server);
    notices_a_client_that_leaves(&server);
    let taken = ["serve", "none.gguf", "--listen", &server.address].map(str::to_owned);
    let second = process::start(Path::new(env!("CARGO_TARGET_TMPDIR")), &taken, Out::Read).end();
    assert!(second.code == Some(2) && second.err.contains("--listen"), "a port in use: {}", second.err);

    // Ctrl-C in the middle of a stream: its client is told.
    let mut stream = BufReader::new(server.send(&post("/v1/completions"), &story(200, true)));
    until_line(&mut stream, "data: ");
    server.running.signal("INT");
    let rest = std::io::read_to_string(stream).unwrap();
    assert!(rest.contains("event: error") && !rest.contains("[DONE]"), "an error event is the end: {rest}");
    let Ended { code, err, .. } = server.running.end();
    assert_eq!(code, Some(130), "{err}");
    assert!(!err.contains("Once upon"), "what is asked stands in no log: {err}");
}

fn finds_the_model_and_its_served_context(server: &Server) {
    for path in ["/v1/models", "/models", "/v1/models/", "/models/"] {
        let model = server.get(path).json()["data"][0].clone();
        for served in [&model["context_length"], &model["max_model_len"], &model["meta"]["n_ctx"]] {
            assert_eq!(served, &json!(CONTEXT), "{path}: {model}");
        }
        let one = server.get(&format!("/v1/models/{}", model["id"].as_str().unwrap()));
        assert_eq!((one.status, &one.json()["id"]), (200, &model["id"]));
    }
    assert_eq!(server.get("/props").json()["default_generation_settings"]["n_ctx"], CONTEXT);
    assert_eq!(server.get("/health").json()["status"], "ok");
}

fn answers_alike_in_one_piece_and_in_a_stream(server: &Server) {
    let whole = server.chat(json!({ "user": "someone", "unknown": [1] }));
    assert_eq!(whole.status, 200, "{}", whole.body);
    let whole = whole.json();
    let text = whole["choices"][0]["message"]["content"].as_str().unwrap();
    assert!(!text.is_empty(), "{whole}");
    assert_eq!(whole["choices"][0]["message"]["role"], "assistant");
    let usage = &whole["usage"];
    assert!(usage["prompt_tokens"].as_u64() > Some(0) && usage["completion_tokens"].as_u64() <= Some(8), "{usage}");

    let stream = server.chat(json!({ "stream": true, "stream_options": { "include_usage": true } }));
    let events = stream.events();
    assert_eq!(events.last(), Some(&"[DONE]"), "{}", stream.body);
    let chunks: Vec<Value> =
        events[..events.len() - 1].iter().map(|data| serde_json::from_str(data).unwrap()).collect();
    let (usage, chunks) = chunks.split_last().unwrap();
    assert_eq!((&usage["choices"], &usage["usage"]["prompt_tokens"]), (&json!([]), &whole["usage"]["prompt_tokens"]));
    let choices: Vec<&Value> = chunks.iter().map(|chunk| &chunk["choices"][0]).collect();
    let streamed: String = choices.iter().filter_map(|choice| choice["delta"]["content"].as_str()).collect();
    assert_eq!(streamed, text, "{}", stream.body);
    assert!(chunks.iter().all(|chunk| chunk["id"] == chunks[0]["id"]), "one id: {}", stream.body);
    let roles: Vec<bool> = choices.iter().map(|choice| choice["delta"].get("role").is_some()).collect();
    assert!(roles[0] && !roles[1..].contains(&true), "a role in the first chunk alone: {}", stream.body);
    assert_eq!(choices.last().unwrap()["finish_reason"], whole["choices"][0]["finish_reason"]);
}

fn completes_text_up_to_a_stop_string(server: &Server) {
    let body = json!({ "prompt": "Once upon a time", "temperature": 0, "max_tokens": 12 });
    let all = server.post("/completions/", &body).json();
    let text = all["choices"][0]["text"].as_str().unwrap();
    assert_eq!(
        (&all["choices"][0]["finish_reason"], &all["usage"]["completion_tokens"]),
        (&json!("length"), &json!(12))
    );
    let stop = text.split_whitespace().nth(2).unwrap();
    let mut stopped = body.clone();
    stopped["stop"] = json!([stop]);
    let stopped = server.post("/v1/completions", &stopped).json();
    let choice = &stopped["choices"][0];
    assert_eq!(choice["text"].as_str().unwrap(), &text[..text.find(stop).unwrap()], "before {stop:?} in {text:?}");
    assert_eq!(choice["finish_reason"], "stop");
}

fn refuses_bad_input_with_a_reason(server: &Server) {
    for (more, field) in [
        (json!({ "messages": [] }), "messages"),
        (json!({ "messages": [{ "role": "wizard", "content": "a" }] }), "messages[0].role"),
        (json!({ "temperature": "hot" }), "temperature"),
        (json!({ "n": 9 }), "n"),
        (json!({ "logit_bias": { "5": 101 } }), "logit_bias"),
        (json!({ "top_logprobs": 3 }), "top_logprobs"),
        (json!({ "tool_choice": "required" }), "tool_choice"),
    ] {
        let reply = server.chat(more.clone());
        assert_eq!((reply.status, &reply.json()["error"]["param"]), (400, &json!(field)), "{more}: {}", reply.body);
        reply.code();
    }
    for broken in [&b"{"[..], b"", b"\xff\xfe", b"[]"] {
        let reply = server.ask(&post("/v1/chat/completions"), broken);
        assert_eq!(reply.status, 400, "{broken:?}: {}", reply.body);
        reply.code();
    }
    let other = server.chat(json!({ "model": "gpt-4o" }));
    assert_eq!((other.status, other.code()), (404, json!("model_not_found")));
    let long = json!([{ "role": "user", "content": "a ".repeat(400) }]);
    for stream in [false, true] {
        let reply = server.chat(json!({ "messages": long, "stream": stream }));
        assert_eq!((reply.status, reply.code()), (400, json!("context_length_exceeded")), "{}", reply.body);
        let error = &reply.json()["error"];
        assert_eq!(error["n_ctx"], CONTEXT, "{error}");
        assert!(error["n_prompt_tokens"].as_u64() > Some(u64::from(CONTEXT)), "{error}");
    }
    let huge = vec![b' '; 100 << 20];
    let reply = server.ask(&post("/v1/chat/completions"), &huge);
    assert_eq!((reply.status, reply.code()), (413, json!("request_too_large")));
    let nowhere = server.post("/v1/embeddings", &json!({}));
    assert_eq!((nowhere.status, nowhere.code()), (404, json!("unknown_url")));
    let method = server.get("/v1/chat/completions");
    assert_eq!((method.status, method.code()), (405, json!("method_not_allowed")));
    assert!(method.head.contains("allow: post"), "{}", method.head);
}

fn refuses_web_pages(server: &Server) {
    let page = server.ask(&format!("{}\r\nOrigin: https://evil.example", post("/v1/chat/completions")), b"{}");
    assert_eq!((page.status, page.code()), (403, json!("forbidden")));
    assert!(!page.head.contains("access-control"), "{}", page.head);
    let rebound = server.ask("GET /v1/models HTTP/1.1\r\nHost: evil.example:8788", b"");
    assert_eq!(rebound.status, 403);
}

/// Two ask for the same text. One leaves before anything is written to it, and the other one's text goes on for a while after that.
fn notices_a_client_that_leaves(server: &Server) {
    let leaving = server.send(&post("/v1/completions"), &story(200, false));
    server.until_processing(1);
    let mut staying = BufReader::new(server.send(&post("/v1/completions"), &story(200, true)));
    until_line(&mut staying, "data: ");
    let pieces = Arc::new(AtomicUsize::new(0));
    let reader = std::thread::spawn({
        let pieces = pieces.clone();
        move || {
            let mut last = String::new();
            for line in staying.lines().map(Result::unwrap).filter(|line| line.starts_with("data: ")) {
                pieces.fetch_add(1, Ordering::Relaxed);
                last = line;
            }
            last == "data: [DONE]"
        }
    });
    assert_eq!(server.processing(), 2, "both are being answered");
    drop(leaving);
    server.until_processing(1);
    let before = pieces.load(Ordering::Relaxed);
    assert!(reader.join().unwrap(), "the other answer is complete");
    let later = pieces.load(Ordering::Relaxed) - before;
    assert!(later > 10, "only {later} pieces came after the other answer had ended: it may have been complete");
    server.until_processing(0);
}

/// Reads up to a line that begins like this.
fn until_line(from: &mut impl BufRead, begin: &str) {
    let mut line = String::new();
    while !line.starts_with(begin) {
        line.clear();
        assert!(from.read_line(&mut line).unwrap() > 0, "it ended before {begin:?}");
    }
}

#[test]
fn programs_ask_a_room_with_a_key_until_its_host_ends_it() {
    let world = World::new("serve-room");
    let (host, links) = world::host_with(&world.folder, &world.plain, &["--invite", "chat"], 2);
    // The invite is enough to ask.
    assert_ne!(links[0], links[1]);
    std::fs::write(world.folder.join("link"), &links[1]).unwrap();
    std::fs::write(world.folder.join("key"), "secret\n").unwrap();
    let line = ["--link-file", "link", "--api-key-file", "key", "--name", "Editor"];
    let mut server = Server::start(&world.folder, &line, Some("secret"));
    assert_eq!(server.get("/v1/models").json()["data"][0]["context_length"], CONTEXT);
    let answer = server.post("/v1/completions", &json!({ "prompt": "a", "max_tokens": 3, "temperature": 0 }));
    assert_eq!((answer.status, &answer.json()["usage"]["completion_tokens"]), (200, &json!(3)), "{}", answer.body);

    let hello = json!({ "messages": [{ "role": "user", "content": "Hello!" }], "max_tokens": 1 });
    let counted = server.post("/v1/messages/count_tokens", &hello);
    let asked = server.post("/v1/chat/completions", &hello).json();
    assert_eq!(counted.json()["input_tokens"], asked["usage"]["prompt_tokens"], "the host counts: {}", counted.body);
    let text = server.post("/tokenize", &json!({ "content": "Hello!" }));
    assert_eq!((text.status, text.code()), (501, json!("not_implemented")), "the tokenizer is with the host");

    for key in [None, Some("wrong")] {
        server.key = key;
        let reply = server.get("/v1/models");
        assert_eq!((reply.status, reply.code()), (401, json!("invalid_api_key")));
    }
    let large = vec![b' '; 8 << 20];
    assert_eq!(
        server.ask(&post("/v1/chat/completions"), &large).status,
        401,
        "a refusal can be read after a large body"
    );
    let health = server.get("/health");
    assert_eq!(health.status, 200, "whoever watches over programs has no key");
    assert!(health.json().get("slots_processing").is_none(), "and does not learn who works when: {}", health.body);
    server.key = Some("secret");

    let mut stream = BufReader::new(server.send(&post("/v1/completions"), &story(200, true)));
    until_line(&mut stream, "data: ");
    host.signal("TERM");
    let rest = std::io::read_to_string(stream).unwrap();
    // The answer may just have been complete.
    assert!(rest.contains("event: error") != rest.contains("[DONE]"), "an error event, and no silence: {rest}");
    assert_eq!(host.end().code, Some(143));
    let Ended { code, err, .. } = server.running.end();
    assert_eq!(code, Some(3), "{err}");
}
