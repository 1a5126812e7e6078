//! Rooms behind a proxy: in each, a guest writes and the owner answers, and both come back as the page does.

use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use futures_util::{SinkExt, StreamExt};
use potluck_relay_api::{Control, EntryProof, Nonce, Refusal, Request, Route, nonce_at};
use tokio::net::{TcpSocket, TcpStream};
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval, sleep};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::{WebSocketStream, client_async};

use crate::common::Keys;

/// A guest writes the next line as often as this, once the one before was answered.
const LINE_EVERY: Duration = Duration::from_millis(100);
/// The waits of `app/node/src/room/connector.rs`.
const FIRST_WAIT: Duration = Duration::from_millis(500);
const LONGEST_WAIT: Duration = Duration::from_secs(8);

/// The proxy, as browsers see it.
pub struct Front {
    pub port: u16,
    pub tls: TlsConnector,
}

impl Front {
    fn host(&self) -> String {
        format!("localhost:{}", self.port)
    }

    /// A connection from an address of this machine.
    pub async fn connect(&self, from: Ipv4Addr) -> std::io::Result<TlsStream<TcpStream>> {
        let socket = TcpSocket::new_v4()?;
        socket.bind((from, 0).into())?;
        let stream = socket.connect((Ipv4Addr::LOCALHOST, self.port).into()).await?;
        stream.set_nodelay(true)?;
        self.tls.connect(ServerName::try_from("localhost").unwrap(), stream).await
    }
}

/// What was written in a room, and how regularly.
pub struct Chat {
    /// The lines that the owner saw, each once.
    pub seen: Vec<u64>,
    /// Lines that were answered.
    pub answered: u64,
    last: Instant,
    /// Longest time from one answer to the next.
    pub longest: Duration,
}

impl Chat {
    /// The owner got a line; maybe again, because its answer was lost.
    fn see(&mut self, line: u64) {
        if self.seen.last() != Some(&line) {
            self.seen.push(line);
        }
    }
}

pub struct Room {
    keys: Keys,
    /// Of its devices: limits are by address.
    from: Ipv4Addr,
    chat: Mutex<Chat>,
}

impl Room {
    pub fn new(number: u16) -> Self {
        let chat = Chat { seen: Vec::new(), answered: 0, last: Instant::now(), longest: Duration::ZERO };
        Self {
            keys: Keys::of_room(number.into()),
            from: Ipv4Addr::new(127, 1, number.to_be_bytes()[0], number.to_be_bytes()[1]),
            chat: Mutex::new(chat),
        }
    }

    pub fn chat(&self) -> MutexGuard<'_, Chat> {
        self.chat.lock().unwrap()
    }

    /// Its owner, and then its guest, for as long as the test lasts.
    pub fn open(self: &Arc<Self>, front: &Arc<Front>, tasks: &mut JoinSet<()>) {
        let (room, to) = (self.clone(), front.clone());
        tasks.spawn(async move { room.host(&to).await });
        let (room, to) = (self.clone(), front.clone());
        tasks.spawn(async move { room.visit(&to).await });
    }

    async fn host(&self, front: &Front) {
        let mut waits = Waits::default();
        loop {
            if let Ok(mut seat) = Seat::take(front, self, |nonce| self.keys.owner(nonce)).await {
                waits = Waits::default();
                while let Some(message) = seat.next().await {
                    let Message::Binary(frame) = message else { continue };
                    self.chat().see(number(&frame[4..]));
                    // If this is lost with the connection, the guest asks again.
                    let _ = seat.socket.send(Message::Binary(frame)).await;
                }
            }
            waits.wait().await;
        }
    }

    async fn visit(&self, front: &Front) {
        let mut waits = Waits::default();
        loop {
            match Seat::take(front, self, |nonce| self.keys.link(nonce)).await {
                Ok(seat) => {
                    waits = Waits::default();
                    self.write(seat).await;
                }
                Err(Some(reason)) => {
                    assert!(reason == Refusal::NoSuchRoom || reason.is_temporary(), "{reason:?} ends it");
                }
                Err(None) => {}
            }
            waits.wait().await;
        }
    }

    /// Writes a line, waits for its answer, writes the next one.
    async fn write(&self, mut seat: Seat) {
        let mut every = interval(LINE_EVERY);
        every.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut asked = None;
        loop {
            tokio::select! {
                message = seat.next() => match message {
                    Some(Message::Binary(frame)) if Some(number(&frame[4..])) == asked => {
                        asked = None;
                        let (mut chat, now) = (self.chat(), Instant::now());
                        chat.longest = chat.longest.max(now - chat.last);
                        chat.last = now;
                        chat.answered += 1;
                    }
                    Some(_) => {}
                    None => return,
                },
                _ = every.tick() => if let (Some(owner), None) = (seat.owner, asked) {
                    let line = self.chat().answered;
                    asked = Some(line);
                    let frame = owner.prepend(&line.to_le_bytes());
                    if seat.socket.send(Message::Binary(frame.into())).await.is_err() {
                        return;
                    }
                },
            }
        }
    }

    /// Whether somebody who opens the link now finds the owner.
    pub async fn is_found(&self, front: &Front) -> bool {
        let seat = Seat::take(front, self, |nonce| self.keys.link(nonce)).await;
        seat.is_ok_and(|seat| seat.owner.is_some())
    }
}

fn number(bytes: &[u8]) -> u64 {
    u64::from_le_bytes(bytes.try_into().unwrap())
}

/// Waits that double.
#[derive(Default)]
struct Waits(u32);

impl Waits {
    async fn wait(&mut self) {
        sleep((FIRST_WAIT * 2u32.pow(self.0)).min(LONGEST_WAIT)).await;
        self.0 = (self.0 + 1).min(8);
    }
}

/// A place in a room.
struct Seat {
    socket: WebSocketStream<TlsStream<TcpStream>>,
    owner: Option<Route>,
}

impl Seat {
    /// Enters; else why it was refused, if it was told.
    async fn take(
        front: &Front,
        room: &Room,
        proof: impl FnOnce(&Nonce) -> EntryProof,
    ) -> Result<Self, Option<Refusal>> {
        let stream = front.connect(room.from).await.map_err(|_| None)?;
        let url = format!("ws://{}/rooms/{}", front.host(), room.keys.id());
        let (socket, _) = client_async(url, stream).await.map_err(|_| None)?;
        let mut seat = Self { socket, owner: None };
        let mut proof = Some(proof);
        loop {
            let Some(Message::Text(text)) = seat.socket.next().await.and_then(Result::ok) else { return Err(None) };
            match serde_json::from_str(&text).unwrap() {
                Control::Challenge { nonce, .. } => {
                    let proof = proof.take().unwrap()(&nonce_at(&front.host(), &nonce));
                    let entry = serde_json::to_string(&Request::Enter { proof }).unwrap();
                    seat.socket.send(Message::Text(entry.into())).await.map_err(|_| None)?;
                }
                Control::Welcome { owner, .. } => {
                    seat.owner = owner;
                    return Ok(seat);
                }
                Control::Refused { reason, .. } => return Err(Some(reason)),
                Control::Shutdown { .. } => return Err(None),
                other => panic!("a challenge or a welcome, not {other:?}"),
            }
        }
    }

    /// The next message; `None` after the connection ended.
    async fn next(&mut self) -> Option<Message> {
        let message = self.socket.next().await?.ok()?;
        if let Message::Text(text) = &message {
            match serde_json::from_str(text).unwrap() {
                Control::Join { route, owner: true } => self.owner = Some(route),
                Control::Leave { route, .. } if self.owner == Some(route) => self.owner = None,
                _ => {}
            }
        }
        Some(message)
    }
}
