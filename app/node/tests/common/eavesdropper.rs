//! A relay that nobody should trust: it stands in front of a real one, keeps every byte of every room, and does to the
//! messages what a test tells it to.
#![allow(dead_code, reason = "each test binary uses a part")]

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use futures::{SinkExt, StreamExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::{WebSocketStream, client_async};

/// What happens to a binary message on its way to a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Misdeed {
    Flip,
    Drop,
    Double,
    /// Exchanged with the one after it.
    Swap,
    /// An older message of the same connection comes behind it.
    Replay,
}

/// The misdeed for a message's number, if any.
pub type Decide = Box<dyn Fn(u64) -> Option<Misdeed>>;

/// What the eavesdropper knows and does.
#[derive(Default)]
pub struct Eavesdropper {
    /// Every message, text or binary, in either direction.
    pub seen: RefCell<Vec<Vec<u8>>>,
    /// Decides about each binary message by its number.
    pub misdeed: RefCell<Option<Decide>>,
    /// The relay's own messages look like those of a later relay with this version: they have more in them, and some are new.
    pub later: Cell<Option<u32>>,
    count: RefCell<u64>,
    /// What was done, for the test to check that something was.
    pub done: RefCell<Vec<Misdeed>>,
}

impl Eavesdropper {
    /// Listens on a port of its own, in front of the relay at `origin`. Returns its own origin.
    pub async fn listen(self: Rc<Self>, origin: &str) -> String {
        let relay = origin.trim_start_matches("http://").to_owned();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let host = listener.local_addr().unwrap().to_string();
        let own = format!("http://{host}");
        tokio::task::spawn_local(async move {
            while let Ok((device, _)) = listener.accept().await {
                let (relay, host, eavesdropper) = (relay.clone(), host.clone(), self.clone());
                tokio::task::spawn_local(async move { eavesdropper.carry(device, &relay, &host).await });
            }
        });
        own
    }

    /// Whether these bytes went over any wire.
    pub fn saw(&self, bytes: &[u8]) -> bool {
        let finder = memchr::memmem::Finder::new(bytes);
        self.seen.borrow().iter().any(|message| finder.find(message).is_some())
    }

    /// Entries are signed for the name that devices called, so a relay behind this one has to answer as `host`.
    async fn carry(self: Rc<Self>, mut device: TcpStream, relay: &str, host: &str) {
        let mut start = [0; 11];
        while device.peek(&mut start).await.is_ok_and(|read| read > 0 && read < start.len()) {
            tokio::task::yield_now().await;
        }
        let Ok(mut to_relay) = TcpStream::connect(relay).await else { return };
        if &start != b"GET /rooms/" {
            // Files and lists: either side may end first.
            let _ = tokio::io::copy_bidirectional(&mut device, &mut to_relay).await;
            return;
        }
        let path = Rc::new(RefCell::new(String::new()));
        let read_path = path.clone();
        let accepted = tokio_tungstenite::accept_hdr_async(
            device,
            #[allow(clippy::result_large_err, reason = "the library's signature")]
            move |request: &tokio_tungstenite::tungstenite::handshake::server::Request, response| {
                *read_path.borrow_mut() = request.uri().path().to_owned();
                Ok(response)
            },
        );
        let device = accepted.await.unwrap();
        let url = format!("ws://{host}{}", path.borrow());
        let (relay, _) = client_async(url, to_relay).await.unwrap();
        self.forward(device, relay).await;
    }

    async fn forward(&self, device: WebSocketStream<TcpStream>, relay: WebSocketStream<TcpStream>) {
        let (mut to_device, mut from_device) = device.split();
        let (mut to_relay, mut from_relay) = relay.split();
        let up = async {
            while let Some(Ok(message)) = from_device.next().await {
                self.keep(&message);
                if to_relay.send(message).await.is_err() {
                    break;
                }
            }
        };
        let down = async {
            let (mut held, mut older) = (None, Vec::new());
            while let Some(Ok(message)) = from_relay.next().await {
                self.keep(&message);
                for message in self.make_later(message).flat_map(|message| self.tamper(message, &mut held, &mut older))
                {
                    if to_device.send(message).await.is_err() {
                        return;
                    }
                }
            }
        };
        tokio::select! { () = up => {}, () = down => {} }
        // Either side may be gone already.
        let _ = to_device.close().await;
        let _ = to_relay.close().await;
    }

    fn keep(&self, message: &Message) {
        self.seen.borrow_mut().push(message.clone().into_data().to_vec());
    }

    fn make_later(&self, message: Message) -> impl Iterator<Item = Message> + use<> {
        let news = Message::Text(r#"{"type":"weather","rain":5}"#.into());
        let later = match (self.later.get(), &message) {
            (Some(version), Message::Text(text)) => {
                let mut control: serde_json::Value = serde_json::from_str(text).unwrap();
                control["moon"] = "full".into();
                if control["version"].is_number() {
                    control["version"] = version.into();
                }
                [Some(news), Some(Message::Text(control.to_string().into()))]
            }
            _ => [Some(message), None],
        };
        later.into_iter().flatten()
    }

    fn tamper(&self, message: Message, held: &mut Option<Message>, older: &mut Vec<Message>) -> Vec<Message> {
        let Message::Binary(bytes) = &message else { return vec![message] };
        let count = self.count.replace_with(|count| *count + 1);
        let misdeed = self.misdeed.borrow().as_ref().and_then(|misdeed| misdeed(count));
        let mut sent = match misdeed {
            None => vec![message.clone()],
            Some(Misdeed::Drop) => Vec::new(),
            Some(Misdeed::Double) => vec![message.clone(), message.clone()],
            Some(Misdeed::Flip) => {
                let mut bytes = bytes.to_vec();
                // Behind the route, which the relay may choose anyway.
                let at = 4 + count as usize % (bytes.len() - 4);
                bytes[at] ^= 1 << (count % 8);
                vec![Message::Binary(bytes.into())]
            }
            Some(Misdeed::Swap) => {
                self.done.borrow_mut().push(Misdeed::Swap);
                *held = Some(message.clone());
                return Vec::new();
            }
            Some(Misdeed::Replay) => {
                let old = older.get(count as usize % older.len().max(1)).cloned();
                [Some(message.clone()), old].into_iter().flatten().collect()
            }
        };
        self.done.borrow_mut().extend(misdeed);
        sent.extend(held.take());
        older.push(message);
        if older.len() > 64 {
            older.remove(0);
        }
        sent
    }
}
