//! A relay on a free port, and clients for it.
#![allow(dead_code, reason = "no test uses all of it")]
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::{SinkExt, StreamExt};
use potluck_relay::limits::Limits;
use potluck_relay::{Config, Relay};
use potluck_relay_api::{Control, Request, Route};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::CloseFrame;
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async};

/// How long anything may take before a test fails instead of hanging.
pub const TIMEOUT: Duration = Duration::from_secs(60);

/// A folder of its own for each test, emptied first.
pub fn folder(test: &str) -> PathBuf {
    static NUMBER: AtomicUsize = AtomicUsize::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{test}-{}-{number}", std::process::id()));
    let _ = std::fs::remove_dir_all(&path);
    std::fs::create_dir_all(&path).unwrap();
    path
}

/// A relay for this machine only, without page and models.
pub fn config(test: &str) -> Config {
    Config {
        ip: Ipv4Addr::LOCALHOST,
        port: 0,
        page: None,
        models: Vec::new(),
        cache: folder(test).join("cache"),
        identity: None,
        addresses: Vec::new(),
        limits: Limits::default(),
    }
}

/// A relay that serves.
pub struct Running {
    pub address: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    task: JoinHandle<std::io::Result<()>>,
}

pub async fn start(config: Config) -> Running {
    let relay = Relay::start(config).await.unwrap();
    let address = (Ipv4Addr::LOCALHOST, relay.address().port()).into();
    let (stop, stopped) = oneshot::channel();
    let task = tokio::spawn(relay.run(async { drop(stopped.await) }));
    Running { address, stop: Some(stop), task }
}

impl Running {
    /// Asks it to stop and waits until it has.
    pub async fn stop(mut self) {
        self.ask_to_stop();
        timeout(TIMEOUT, &mut self.task).await.expect("the relay stops in time").unwrap().unwrap();
    }

    pub fn ask_to_stop(&mut self) {
        let _ = self.stop.take().unwrap().send(());
    }

    pub async fn get(&self, path: &str) -> Reply {
        self.request("GET", path, &[], "").await
    }

    pub async fn get_with(&self, path: &str, headers: &[(&str, &str)]) -> Reply {
        self.request("GET", path, headers, "").await
    }

    /// One HTTP request over a connection of its own.
    pub async fn request(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Reply {
        let stream = TcpStream::connect(self.address).await.unwrap();
        request(stream, method, path, &self.address.to_string(), headers, body).await
    }

    /// The value of a metric, by its name with labels.
    pub async fn metric(&self, name: &str) -> u64 {
        let text = self.get("/metrics").await.text();
        let line = text.lines().find(|line| line.strip_prefix(name).is_some_and(|rest| rest.starts_with(' ')));
        line.unwrap_or_else(|| panic!("{name} in\n{text}")).rsplit(' ').next().unwrap().parse().unwrap()
    }

    /// Opens a room: its id and its owner secret.
    pub async fn open_room(&self, body: &str) -> (String, String) {
        let reply = self.request("POST", "/rooms", &[], body).await;
        assert_eq!(reply.status, 201, "{}", reply.text());
        let json = reply.json();
        (json["id"].as_str().unwrap().to_owned(), json["owner"].as_str().unwrap().to_owned())
    }

    /// Connects to a room without reading the answer.
    pub async fn connect(&self, room: &str) -> Member {
        let url = format!("ws://{}/rooms/{room}", self.address);
        let (socket, _) = timeout(TIMEOUT, connect_async(url)).await.unwrap().unwrap();
        Member { socket, route: Route(0), others: Vec::new() }
    }

    /// Joins a room: connects and reads the welcome.
    pub async fn join(&self, room: &str) -> Member {
        let mut member = self.connect(room).await;
        match member.control().await {
            Control::Welcome { route, members, .. } => (member.route, member.others) = (route, members),
            other => panic!("a welcome, not {other:?}"),
        }
        member
    }
}

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

/// A member's side of a connection.
pub struct Member {
    pub socket: WebSocketStream<MaybeTlsStream<TcpStream>>,
    pub route: Route,
    pub others: Vec<Route>,
}

impl Member {
    /// The next message that is no ping; `None` after the connection ended.
    pub async fn next(&mut self) -> Option<Message> {
        loop {
            match timeout(TIMEOUT, self.socket.next()).await.expect("a message in time")? {
                Ok(Message::Ping(_) | Message::Pong(_)) => {}
                Ok(message) => return Some(message),
                Err(_) => return None,
            }
        }
    }

    /// The next message, which has to be a control message.
    pub async fn control(&mut self) -> Control {
        match self.next().await {
            Some(Message::Text(text)) => serde_json::from_str(&text).unwrap(),
            other => panic!("control, not {other:?}"),
        }
    }

    /// The next message, which has to be a frame: the sender's route and the rest.
    pub async fn frame(&mut self) -> (Route, Vec<u8>) {
        match self.next().await {
            Some(Message::Binary(bytes)) => (Route::read(&bytes).unwrap(), bytes[4..].to_vec()),
            other => panic!("a frame, not {other:?}"),
        }
    }

    /// The next message, which has to end the connection: the close code.
    pub async fn closed(&mut self) -> u16 {
        match self.next().await {
            Some(Message::Close(Some(CloseFrame { code, .. }))) => code.into(),
            other => panic!("a close, not {other:?}"),
        }
    }

    pub async fn send(&mut self, to: Route, content: &[u8]) {
        self.send_raw(Message::Binary(to.prepend(content).into())).await;
    }

    pub async fn ask(&mut self, request: &Request) {
        self.send_raw(Message::Text(serde_json::to_string(request).unwrap().into())).await;
    }

    pub async fn send_raw(&mut self, message: Message) {
        timeout(TIMEOUT, self.socket.send(message)).await.unwrap().unwrap();
    }
}
