//! A server in a process of its own, and what it replies.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::process::{self, Out, Running};

/// Whatever hangs fails after this time.
const GUARD: Duration = Duration::from_secs(120);

/// A server in a process of its own.
pub struct Server {
    pub running: Running,
    /// Host and port.
    pub address: String,
    pub key: Option<&'static str>,
}

/// What a request brought.
pub struct Reply {
    pub status: u16,
    pub head: String,
    pub body: String,
}

impl Reply {
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error} in {}", self.body))
    }

    /// The code of an error, which has all fields.
    pub fn code(&self) -> Value {
        let error = &self.json()["error"];
        let is_whole =
            ["type", "message"].iter().all(|field| error[*field].is_string()) && error.get("param").is_some();
        assert!(is_whole, "an error has message, type, param and code: {}", self.body);
        error["code"].clone()
    }

    /// The data of its events.
    pub fn events(&self) -> Vec<&str> {
        assert!(self.head.contains("text/event-stream"), "{}", self.head);
        self.body.lines().filter_map(|line| line.strip_prefix("data: ")).collect()
    }
}

impl Server {
    pub fn start(folder: &Path, line: &[&str], key: Option<&'static str>) -> Self {
        let line = ["serve"].iter().chain(line).chain(&["--listen", "127.0.0.1:0", "--cache", "cache"]);
        let line: Vec<String> = line.map(|part| (*part).to_owned()).collect();
        let mut running = process::start(folder, &line, Out::Read);
        assert!(running.until("/v1\n"), "{}", running.err.lock().unwrap());
        let address = running.out.lock().unwrap().trim().to_owned();
        let address = address.strip_prefix("http://").and_then(|rest| rest.strip_suffix("/v1"));
        Self { address: address.expect("a base URL and nothing else").to_owned(), running, key }
    }

    /// A connection on which this was sent.
    pub fn send(&self, head: &str, body: &[u8]) -> TcpStream {
        let mut connection = TcpStream::connect(&self.address).unwrap();
        let key = self.key.map(|key| format!("Authorization: Bearer {key}\r\n")).unwrap_or_default();
        let host = if head.contains("\r\nHost:") { String::new() } else { format!("Host: {}\r\n", self.address) };
        let head = format!("{head}\r\n{host}{key}Content-Length: {}\r\nConnection: close\r\n\r\n", body.len());
        connection.write_all(head.as_bytes()).unwrap();
        connection.write_all(body).unwrap();
        connection
    }

    pub fn ask(&self, head: &str, body: &[u8]) -> Reply {
        read(self.send(head, body))
    }

    pub fn get(&self, path: &str) -> Reply {
        self.ask(&format!("GET {path} HTTP/1.1"), b"")
    }

    pub fn post(&self, path: &str, body: &Value) -> Reply {
        self.ask(&post(path), body.to_string().as_bytes())
    }

    pub fn chat(&self, more: Value) -> Reply {
        let mut body =
            json!({ "messages": [{ "role": "user", "content": "Hello!" }], "temperature": 0, "max_tokens": 8 });
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        self.post("/v1/chat/completions", &body)
    }

    /// Answers that are being written for programs.
    pub fn processing(&self) -> u64 {
        self.get("/health").json()["slots_processing"].as_u64().unwrap()
    }

    /// Waits until so many answers are being written.
    pub fn until_processing(&self, count: u64) {
        let begin = Instant::now();
        while self.processing() != count {
            assert!(begin.elapsed() < GUARD, "{} answers are being written, and not {count}", self.processing());
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

pub fn post(path: &str) -> String {
    format!("POST {path} HTTP/1.1\r\nContent-Type: application/json")
}

fn without_chunks(mut body: &str) -> String {
    let mut text = String::new();
    while let Some((length, rest)) = body.split_once("\r\n") {
        let length = usize::from_str_radix(length, 16).unwrap();
        text += &rest[..length];
        body = rest[length..].trim_start_matches("\r\n");
    }
    text
}

/// The reply on a connection.
pub fn read(mut connection: TcpStream) -> Reply {
    let mut reply = Vec::new();
    connection.read_to_end(&mut reply).unwrap();
    let reply = String::from_utf8(reply).unwrap();
    let (head, body) = reply.split_once("\r\n\r\n").unwrap_or_else(|| panic!("no HTTP: {reply}"));
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    let head = head.to_ascii_lowercase();
    let body = if head.contains("transfer-encoding: chunked") { without_chunks(body) } else { body.to_owned() };
    Reply { status, head, body }
}
