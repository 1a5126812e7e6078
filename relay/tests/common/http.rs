//! A client for HTTP, one request a connection.

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::timeout;

use super::TIMEOUT;

pub async fn request<S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin>(
    mut stream: S,
    method: &str,
    path: &str,
    host: &str,
    headers: &[(&str, &str)],
    body: &str,
) -> Reply {
    let mut head = format!("{method} {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n");
    for (name, value) in headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    head.push_str(&format!("Content-Length: {}\r\n\r\n{body}", body.len()));
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut bytes = Vec::new();
    timeout(TIMEOUT, stream.read_to_end(&mut bytes)).await.unwrap().unwrap();
    Reply::parse(bytes)
}

/// An HTTP answer.
pub struct Reply {
    pub status: u16,
    head: String,
    pub body: Vec<u8>,
}

impl Reply {
    fn parse(bytes: Vec<u8>) -> Self {
        let end = bytes.windows(4).position(|four| four == b"\r\n\r\n").expect("a complete head");
        let head = String::from_utf8(bytes[..end].to_vec()).unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        let mut reply = Self { status, head, body: bytes[end + 4..].to_vec() };
        if reply.header("transfer-encoding").is_some_and(|coding| coding == "chunked") {
            reply.body = unchunk(&reply.body);
        }
        reply
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().skip(1).find_map(|line| {
            let (key, value) = line.split_once(':')?;
            key.eq_ignore_ascii_case(name).then(|| value.trim())
        })
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    pub fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error} in {}", self.text()))
    }
}

fn unchunk(mut bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    loop {
        let line = bytes.windows(2).position(|two| two == b"\r\n").unwrap();
        let size = usize::from_str_radix(std::str::from_utf8(&bytes[..line]).unwrap(), 16).unwrap();
        if size == 0 {
            return out;
        }
        out.extend_from_slice(&bytes[line + 2..line + 2 + size]);
        bytes = &bytes[line + 2 + size + 2..];
    }
}
