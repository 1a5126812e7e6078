//! A member with as little work as possible, so that the generator does not limit what it measures.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};

use potluck_relay_api::{
    Binary, Control, EntryProof, Nonce, PublicKey, Request, Signature, SignedEntry, Term, entry_message, nonce_at,
    room_id,
};
use ring::signature::{Ed25519KeyPair, KeyPair};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpSocket, TcpStream};

/// The keys of a room.
pub struct Keys {
    owner: Ed25519KeyPair,
    join: Ed25519KeyPair,
}

impl Keys {
    pub fn new(number: u32) -> Self {
        let pair = |kind: u8| {
            let mut seed = [kind; 32];
            seed[..4].copy_from_slice(&number.to_le_bytes());
            Ed25519KeyPair::from_seed_unchecked(&seed).unwrap()
        };
        Self { owner: pair(1), join: pair(2) }
    }

    fn id(&self) -> String {
        room_id(&public(&self.owner))
    }

    fn owner(&self, nonce: &Nonce) -> EntryProof {
        let (title, visible, join_key) = (String::new(), false, public(&self.join));
        let term = Term::default();
        let entry = SignedEntry::Owner { join_key: &join_key, title: &title, visible, term };
        let signature = sign(&self.owner, &entry_message(&self.id(), nonce, entry));
        EntryProof::Owner { key: public(&self.owner), join_key, title, visible, term, signature }
    }

    fn link(&self, nonce: &Nonce) -> EntryProof {
        EntryProof::Link {
            key: public(&self.join),
            signature: sign(&self.join, &entry_message(&self.id(), nonce, SignedEntry::Link)),
        }
    }
}

fn public(pair: &Ed25519KeyPair) -> PublicKey {
    Binary(pair.public_key().as_ref().try_into().unwrap())
}

fn sign(pair: &Ed25519KeyPair, message: &[u8]) -> Signature {
    Binary(pair.sign(message).as_ref().try_into().unwrap())
}

/// A binary message to a route, masked with zeros.
pub fn frame(route: u32, content: &[u8]) -> Vec<u8> {
    message(2, &[&route.to_be_bytes(), content].concat())
}

/// The answer to a ping.
pub fn pong() -> Vec<u8> {
    message(10, &[])
}

fn message(opcode: u8, payload: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0x80 | opcode];
    match payload.len() {
        short @ 0..126 => bytes.push(0x80 | short as u8),
        middle @ 126..0x1_0000 => {
            bytes.push(0x80 | 126);
            bytes.extend((middle as u16).to_be_bytes());
        }
        long => {
            bytes.push(0x80 | 127);
            bytes.extend((long as u64).to_be_bytes());
        }
    }
    bytes.extend([0; 4]);
    bytes.extend(payload);
    bytes
}

/// Reads messages.
pub struct Reader {
    stream: BufReader<OwnedReadHalf>,
}

impl Reader {
    async fn head(&mut self) -> io::Result<(u8, usize)> {
        let opcode = self.stream.read_u8().await? & 0x0f;
        let length = match self.stream.read_u8().await? {
            126 => usize::from(self.stream.read_u16().await?),
            127 => self.stream.read_u64().await? as usize,
            short => usize::from(short),
        };
        Ok((opcode, length))
    }

    /// The kind and length of the next message, whose content is thrown away.
    pub async fn skip(&mut self) -> Option<(u8, usize)> {
        let (opcode, length) = self.head().await.ok()?;
        let mut left = length;
        while left > 0 {
            let here = self.stream.fill_buf().await.ok()?.len().min(left);
            if here == 0 {
                return None;
            }
            self.stream.consume(here);
            left -= here;
        }
        Some((opcode, length))
    }

    async fn control(&mut self) -> io::Result<Control> {
        loop {
            let (opcode, length) = self.head().await?;
            let mut payload = vec![0; length];
            self.stream.read_exact(&mut payload).await?;
            if opcode == 1 {
                return serde_json::from_slice(&payload).map_err(io::Error::other);
            }
        }
    }
}

/// A member in its room.
pub struct Member {
    reader: Reader,
    writer: OwnedWriteHalf,
    pub route: u32,
    pub window_bytes: u64,
}

impl Member {
    pub async fn own(relay: SocketAddr, from: Ipv4Addr, keys: &Keys) -> io::Result<Self> {
        Self::enter(relay, from, &keys.id(), |nonce| keys.owner(nonce)).await
    }

    pub async fn join(relay: SocketAddr, from: Ipv4Addr, keys: &Keys) -> io::Result<Self> {
        Self::enter(relay, from, &keys.id(), |nonce| keys.link(nonce)).await
    }

    async fn enter(
        relay: SocketAddr,
        from: Ipv4Addr,
        room: &str,
        proof: impl FnOnce(&Nonce) -> EntryProof,
    ) -> io::Result<Self> {
        let socket = TcpSocket::new_v4()?;
        // So that thousands of connections from one address to one port can follow each other.
        socket.set_reuseaddr(true)?;
        socket.bind((from, 0).into())?;
        let stream: TcpStream = socket.connect(relay).await?;
        stream.set_nodelay(true)?;
        let (read, mut writer) = stream.into_split();
        let head = format!(
            "GET /rooms/{room} HTTP/1.1\r\nHost: {relay}\r\nUpgrade: websocket\r\nConnection: upgrade\r\n\
             Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
        );
        writer.write_all(head.as_bytes()).await?;
        let mut stream = BufReader::with_capacity(16 * 1024, read);
        let mut line = String::new();
        while line != "\r\n" {
            line.clear();
            stream.read_line(&mut line).await?;
        }
        let mut reader = Reader { stream };
        let Control::Challenge { nonce, .. } = reader.control().await? else {
            return Err(io::Error::other("no challenge"));
        };
        let enter = serde_json::to_vec(&Request::Enter { proof: proof(&nonce_at(&relay.to_string(), &nonce)) })?;
        writer.write_all(&message(1, &enter)).await?;
        match reader.control().await? {
            Control::Welcome { route, limits, .. } => {
                Ok(Self { reader, writer, route: route.0, window_bytes: limits.window_bytes })
            }
            other => Err(io::Error::other(format!("{other:?}"))),
        }
    }

    /// Both directions on their own.
    pub fn split(self) -> (Reader, OwnedWriteHalf) {
        (self.reader, self.writer)
    }

    /// Stays in the room until the connection ends.
    pub async fn answer_pings(self) {
        let (mut reader, mut writer) = self.split();
        while let Some((opcode, _)) = reader.skip().await {
            if opcode == 9 && writer.write_all(&pong()).await.is_err() {
                return;
            }
        }
    }
}
