//! A relay on a free port, and clients for it.
#![allow(dead_code, reason = "no test uses all of it")]
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::collections::{HashMap, VecDeque};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::{SinkExt, StreamExt};
use potluck_relay::limits::Limits;
use potluck_relay::net::proxy::Proxies;
use potluck_relay::{Config, Relay};
use potluck_relay_api::{
    Binary, Control, EntryProof, Eviction, MemberLimits, Nonce, PublicKey, Refusal, Request, Route, Signature,
    SignedEntry, VERSION, entry_message, join_parts, nonce_at, room_id,
};
use ring::signature::{Ed25519KeyPair, KeyPair};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::crypto::ring::default_provider;
use tokio_rustls::rustls::pki_types::CertificateDer;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::{ClientConfig, RootCertStore};
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::CloseFrame;
use tokio_tungstenite::tungstenite::protocol::frame::Frame;
use tokio_tungstenite::tungstenite::protocol::frame::coding::{Data, OpCode};
use tokio_tungstenite::{WebSocketStream, client_async};

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
        hosts: Vec::new(),
        proxies: Proxies::default(),
        public_metrics: false,
        limits: Limits::default(),
    }
}

/// A relay that serves.
pub struct Running {
    pub address: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    task: JoinHandle<()>,
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
        self.stopped().await;
    }

    /// Waits until it has stopped.
    pub async fn stopped(mut self) {
        timeout(TIMEOUT, &mut self.task).await.expect("the relay stops in time").unwrap();
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

    /// Connects to a room without reading anything.
    pub async fn connect(&self, room: &str) -> Member {
        self.connect_from(Ipv4Addr::LOCALHOST, room).await
    }

    /// Connects to a room from an address of this machine.
    pub async fn connect_from(&self, from: Ipv4Addr, room: &str) -> Member {
        let stream = self.tcp_from(from).await;
        let url = format!("ws://{}/rooms/{room}", self.address);
        let (socket, _) = timeout(TIMEOUT, client_async(url, stream)).await.unwrap().unwrap();
        Member::new(socket, self.address.to_string())
    }

    /// A TCP connection from an address of this machine: all of 127.0.0.0/8 is.
    pub async fn tcp_from(&self, from: Ipv4Addr) -> TcpStream {
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind((from, 0).into()).unwrap();
        let stream = timeout(TIMEOUT, socket.connect(self.address)).await.unwrap().unwrap();
        stream.set_nodelay(true).unwrap();
        stream
    }

    /// Connects to a room and reads the challenge.
    pub async fn challenged(&self, room: &str) -> (Member, Nonce) {
        let mut member = self.connect(room).await;
        let nonce = member.challenge().await;
        (member, nonce)
    }

    /// Connects to a room and reads the challenge: its nonce as it came.
    pub async fn raw_challenge(&self, room: &str) -> (Member, Nonce) {
        let mut member = self.connect(room).await;
        let Control::Challenge { nonce, .. } = member.control().await else { panic!("a challenge") };
        (member, nonce)
    }

    /// Connects to a room, answers the challenge and reads the welcome.
    pub async fn enter(&self, room: &str, proof: impl FnOnce(&Nonce) -> EntryProof) -> Member {
        let (mut member, nonce) = self.challenged(room).await;
        member.enter(proof(&nonce)).await;
        member.welcomed().await;
        member
    }

    /// Enters as the owner, which creates the room if need be.
    pub async fn own(&self, keys: &Keys) -> Member {
        self.enter(&keys.id(), |nonce| keys.owner(nonce)).await
    }

    /// Enters with the link.
    pub async fn join(&self, keys: &Keys) -> Member {
        self.enter(&keys.id(), |nonce| keys.link(nonce)).await
    }

    /// Tries to enter and reads why not.
    pub async fn refused(&self, room: &str, proof: impl FnOnce(&Nonce) -> EntryProof) -> Refusal {
        let (mut member, nonce) = self.challenged(room).await;
        member.enter(proof(&nonce)).await;
        member.refused().await
    }
}

/// The client's side of TLS; it trusts this certificate only.
pub fn connector(certificate: &[u8]) -> TlsConnector {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(certificate).unwrap()).unwrap();
    let config = ClientConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    TlsConnector::from(Arc::new(config))
}

/// A fragment of a binary message that goes on: the first one, or a later one.
pub fn fragment(is_first: bool, bytes: usize) -> Message {
    let kind = if is_first { Data::Binary } else { Data::Continue };
    Message::Frame(Frame::message(vec![0; bytes], OpCode::Data(kind), false))
}

/// Sends a ping and waits for its pong: the relay has read everything before it. False if the connection ended.
pub async fn ping<S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin>(
    socket: &mut WebSocketStream<S>,
    payload: &[u8],
) -> bool {
    let answered = async {
        socket.send(Message::Ping(payload.to_vec().into())).await.ok()?;
        loop {
            if let Message::Pong(answer) = socket.next().await?.ok()? {
                assert_eq!(answer, payload, "the pong to another ping");
                return Some(());
            }
        }
    };
    timeout(TIMEOUT, answered).await.expect("a pong or the end in time").is_some()
}

/// The keys of a room, and how its owner lists it.
pub struct Keys {
    owner: Ed25519KeyPair,
    join: Ed25519KeyPair,
    pub title: String,
    pub visible: bool,
}

impl Keys {
    /// The same keys for the same seed.
    pub fn new(seed: u8) -> Self {
        Self { owner: key_pair(seed), join: key_pair(seed ^ 0x80), title: String::new(), visible: false }
    }

    pub fn listed(seed: u8, title: &str) -> Self {
        Self { title: title.into(), visible: true, ..Self::new(seed) }
    }

    pub fn id(&self) -> String {
        room_id(&public(&self.owner))
    }

    pub fn owner(&self, nonce: &Nonce) -> EntryProof {
        self.owner_with(self, nonce)
    }

    /// The owner registers the join key of another room's keys.
    pub fn owner_with(&self, link: &Self, nonce: &Nonce) -> EntryProof {
        let (title, visible, join_key) = (self.title.clone(), self.visible, public(&link.join));
        let entry = SignedEntry::Owner { join_key: &join_key, title: &title, visible };
        let signature = sign(&self.owner, &entry_message(&self.id(), nonce, entry));
        EntryProof::Owner { key: public(&self.owner), join_key, title, visible, signature }
    }

    pub fn link(&self, nonce: &Nonce) -> EntryProof {
        self.link_of(self, nonce)
    }

    /// Somebody has the join key of another room's keys.
    pub fn link_of(&self, link: &Self, nonce: &Nonce) -> EntryProof {
        let signature = sign(&link.join, &entry_message(&self.id(), nonce, SignedEntry::Link));
        EntryProof::Link { signature }
    }
}

fn key_pair(seed: u8) -> Ed25519KeyPair {
    Ed25519KeyPair::from_seed_unchecked(&[seed; 32]).unwrap()
}

fn public(pair: &Ed25519KeyPair) -> PublicKey {
    Binary(pair.public_key().as_ref().try_into().unwrap())
}

fn sign(pair: &Ed25519KeyPair, message: &[u8]) -> Signature {
    Binary(pair.sign(message).as_ref().try_into().unwrap())
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

/// A member's side of a connection. It keeps its windows, as a member has to.
pub struct Member {
    /// The relay's name.
    host: String,
    pub socket: WebSocketStream<TcpStream>,
    pub route: Route,
    pub owner: Option<Route>,
    pub others: Vec<Route>,
    pub limits: MemberLimits,
    /// Bytes on the way, by receiver.
    on_the_way: HashMap<Route, u64>,
    /// Messages that came while it waited for a window.
    early: VecDeque<Message>,
}

impl Member {
    fn new(socket: WebSocketStream<TcpStream>, host: String) -> Self {
        Self {
            host,
            socket,
            route: Route(0),
            owner: None,
            others: Vec::new(),
            limits: MemberLimits::default(),
            on_the_way: HashMap::new(),
            early: VecDeque::new(),
        }
    }

    /// The next message that is no ping and no report; `None` after the connection ended.
    pub async fn next(&mut self) -> Option<Message> {
        loop {
            if let Some(early) = self.early.pop_front() {
                return Some(early);
            }
            let message = self.receive().await?;
            self.early.extend(message);
        }
    }

    /// Receives one message, which may be nothing for the test; `None` after the connection ended.
    async fn receive(&mut self) -> Option<Option<Message>> {
        let message = timeout(TIMEOUT, self.socket.next()).await.expect("a message in time")?.ok()?;
        if let Message::Text(text) = &message
            && let Ok(Control::Taken { route, bytes }) = serde_json::from_str(text)
        {
            let on_the_way = self.on_the_way.get_mut(&route).expect("a report for what was sent");
            *on_the_way = on_the_way.checked_sub(bytes).expect("no more was taken than sent");
            return Some(None);
        }
        Some(Some(message).filter(|message| !matches!(message, Message::Ping(_) | Message::Pong(_))))
    }

    /// The next message, which has to be a control message.
    pub async fn control(&mut self) -> Control {
        match self.next().await {
            Some(Message::Text(text)) => serde_json::from_str(&text).unwrap(),
            other => panic!("control, not {other:?}"),
        }
    }

    /// The nonce that an entry signs here.
    pub async fn challenge(&mut self) -> Nonce {
        match self.control().await {
            Control::Challenge { version: VERSION, nonce } => nonce_at(&self.host, &nonce),
            other => panic!("a challenge, not {other:?}"),
        }
    }

    pub async fn enter(&mut self, proof: EntryProof) {
        self.ask(&Request::Enter { proof }).await;
    }

    pub async fn welcomed(&mut self) {
        match self.control().await {
            Control::Welcome { route, owner, members, limits, .. } => {
                (self.route, self.owner, self.others, self.limits) = (route, owner, members, limits);
            }
            other => panic!("a welcome, not {other:?}"),
        }
    }

    /// The refusal that comes next, with its close code.
    pub async fn refused(&mut self) -> Refusal {
        match self.control().await {
            Control::Refused { reason, message } => {
                assert_eq!(message, reason.sentence());
                assert_eq!(self.closed().await, reason.close_code());
                reason
            }
            other => panic!("a refusal, not {other:?}"),
        }
    }

    /// The eviction that comes next, with its close code.
    pub async fn evicted(&mut self) -> Eviction {
        match self.control().await {
            Control::Evicted { reason, message } => {
                assert_eq!(message, reason.sentence());
                assert_eq!(self.closed().await, reason.close_code());
                reason
            }
            other => panic!("an eviction, not {other:?}"),
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

    /// Sends a frame once the window allows it.
    pub async fn send(&mut self, to: Route, content: &[u8]) {
        let bytes = content.len() as u64 + 4;
        while {
            let on_the_way = *self.on_the_way.entry(to).or_default();
            on_the_way > 0 && on_the_way + bytes > self.limits.window_bytes
        } {
            let message = self.receive().await.expect("the connection holds");
            self.early.extend(message);
        }
        self.send_anyway(to, content).await;
    }

    /// Sends a frame whatever the window allows.
    pub async fn send_anyway(&mut self, to: Route, content: &[u8]) {
        *self.on_the_way.entry(to).or_default() += content.len() as u64 + 4;
        self.send_raw(Message::Binary(to.prepend(content).into())).await;
    }

    /// Sends several frames in one message, whatever the window allows.
    pub async fn send_parts(&mut self, parts: &[(Route, &[u8])]) {
        for (to, content) in parts {
            *self.on_the_way.entry(*to).or_default() += content.len() as u64 + 4;
        }
        self.send_raw(Message::Binary(join_parts(parts.iter().copied()).into())).await;
    }

    pub async fn ask(&mut self, request: &Request) {
        self.send_raw(Message::Text(serde_json::to_string(request).unwrap().into())).await;
    }

    /// Waits until the relay has handled everything that this member sent.
    pub async fn settle(&mut self) {
        self.ask(&Request::Ping { nonce: 77 }).await;
        assert_eq!(self.control().await, Control::Pong { nonce: 77 });
    }

    pub async fn send_raw(&mut self, message: Message) {
        timeout(TIMEOUT, self.socket.send(message)).await.unwrap().unwrap();
    }
}
