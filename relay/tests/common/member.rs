//! A member of a room over a WebSocket.

use std::collections::{HashMap, VecDeque};

use futures_util::{SinkExt, StreamExt};
use potluck_relay_api::{
    Control, EntryProof, Eviction, MemberLimits, Nonce, Refusal, Request, Route, VERSION, join_parts, nonce_at,
};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::CloseFrame;
use tokio_tungstenite::tungstenite::protocol::frame::Frame;
use tokio_tungstenite::tungstenite::protocol::frame::coding::{Data, OpCode};

use super::TIMEOUT;

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
    pub fn new(socket: WebSocketStream<TcpStream>, host: String) -> Self {
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
        let control = self.control().await;
        self.welcome(control);
    }

    fn welcome(&mut self, control: Control) {
        match control {
            Control::Welcome { route, owner, members, limits, .. } => {
                (self.route, self.owner, self.others, self.limits) = (route, owner, members, limits);
            }
            other => panic!("a welcome, not {other:?}"),
        }
    }

    /// The member with its welcome, or why it was refused.
    pub async fn answered(mut self) -> Result<Self, Refusal> {
        match self.control().await {
            Control::Refused { reason, .. } => Err(reason),
            control => {
                self.welcome(control);
                Ok(self)
            }
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
        while !self.may_send(to, content) {
            self.receive_early().await;
        }
        self.send_anyway(to, content).await;
    }

    /// Sends a frame again and again, as the window allows it, until the relay tells something else than that it was taken.
    pub async fn send_until_told(&mut self, to: Route, content: &[u8]) -> Control {
        while self.early.is_empty() {
            if self.may_send(to, content) {
                self.send_anyway(to, content).await;
            } else {
                self.receive_early().await;
            }
        }
        self.control().await
    }

    /// Whether the window allows a frame now.
    fn may_send(&self, to: Route, content: &[u8]) -> bool {
        let on_the_way = self.on_the_way.get(&to).copied().unwrap_or_default();
        on_the_way == 0 || on_the_way + content.len() as u64 + 4 <= self.limits.window_bytes
    }

    /// Receives one message and keeps it for later, if it is one for the test.
    async fn receive_early(&mut self) {
        let message = self.receive().await.expect("the connection holds");
        self.early.extend(message);
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
