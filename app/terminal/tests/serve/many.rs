//! Many clients at once.

use std::collections::BTreeSet;

use serde_json::json;

use super::server::{Server, post, read};

const CLIENTS: usize = 10;
/// Requests of each client.
const TURNS: usize = 10;
/// Requests that are all sent before any is answered.
const AT_ONCE: usize = 200;
const SUBJECTS: [&str; 10] = [
    "a mouse",
    "the king",
    "two boys",
    "a red car",
    "my mother",
    "rain",
    "the old clock",
    "a cake",
    "a school",
    "winter",
];

fn ask_about(server: &Server, subject: &str) -> String {
    let body = json!({ "prompt": format!("This is a story about {subject}."), "temperature": 0, "max_tokens": 8 });
    let reply = server.post("/v1/completions", &body);
    assert_eq!(reply.status, 200, "{subject}: {}", reply.body);
    reply.json()["choices"][0]["text"].as_str().unwrap().to_owned()
}

/// Each answer is the one that its question gets when nobody else asks.
pub fn each_client_gets_its_own_answer(server: &Server) {
    let alone = SUBJECTS.map(|subject| ask_about(server, subject));
    let different: BTreeSet<&String> = alone.iter().collect();
    assert!(different.len() * 2 > SUBJECTS.len(), "answers that were mixed up would not be noticed: {alone:?}");
    std::thread::scope(|scope| {
        for client in 0..CLIENTS {
            let alone = &alone;
            scope.spawn(move || {
                for turn in 0..TURNS {
                    let which = (client + turn * 3) % SUBJECTS.len();
                    assert_eq!(ask_about(server, SUBJECTS[which]), alone[which], "to client {client}");
                }
            });
        }
    });
    server.until_processing(0);
}

pub fn two_hundred_ask_at_once(server: &Server) {
    let body = json!({ "prompt": "a", "temperature": 0, "max_tokens": 1 }).to_string();
    let asked: Vec<_> = (0..AT_ONCE).map(|_| server.send(&post("/v1/completions"), body.as_bytes())).collect();
    let replies: Vec<_> = asked.into_iter().map(read).collect();
    for reply in &replies {
        assert_eq!((reply.status, &reply.body.contains("text_completion")), (200, &true), "{}", reply.body);
    }
}
