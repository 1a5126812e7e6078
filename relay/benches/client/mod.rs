//! A member with as little work as possible, so that the generator does not limit what it measures, and the relay it talks to.
#![allow(dead_code, reason = "no benchmark uses all of it")]

#[path = "../../tests/common/keys.rs"]
mod keys;
mod program;
#[path = "../../tests/common/tls.rs"]
mod tls;

use std::io;
use std::net::{Ipv4Addr, SocketAddr};

use potluck_relay_api::{Control, EntryProof, Nonce, Request, nonce_at};
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::net::{TcpSocket, TcpStream};
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::ServerName;

pub use keys::Keys;
pub use program::{Relay, open_files};

/// Rooms that an address may create at once, by the relay's limits.
pub const ROOMS_PER_ADDRESS: usize = 25;

/// An address of this machine of its own.
pub fn home(group: u8, number: usize) -> Ipv4Addr {
    Ipv4Addr::new(127, group, (number / 250) as u8, (number % 250 + 1) as u8)
}

/// How a member reaches the relay.
#[derive(Clone)]
pub struct Door {
    pub address: SocketAddr,
    /// Over TLS with this.
    pub tls: Option<TlsConnector>,
}

impl From<SocketAddr> for Door {
    fn from(address: SocketAddr) -> Self {
        Self { address, tls: None }
    }
}

/// The writing half of a connection.
pub type Writer = Box<dyn AsyncWrite + Send + Unpin>;

/// A binary message to a route, masked with zeros.
pub fn frame(route: u32, content: &[u8]) -> Vec<u8> {
    message(2, &[&route.to_be_bytes(), content].concat())
}

/// Writes, over TLS as well.
pub async fn send(writer: &mut Writer, bytes: &[u8]) -> io::Result<()> {
    writer.write_all(bytes).await?;
    writer.flush().await
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
    stream: BufReader<Box<dyn AsyncRead + Send + Unpin>>,
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
    writer: Writer,
    pub route: u32,
    pub window_bytes: u64,
}

impl Member {
    pub async fn own(relay: impl Into<Door>, from: Ipv4Addr, keys: &Keys) -> io::Result<Self> {
        Self::enter(relay.into(), from, &keys.id(), |nonce| keys.owner(nonce)).await
    }

    pub async fn join(relay: impl Into<Door>, from: Ipv4Addr, keys: &Keys) -> io::Result<Self> {
        Self::enter(relay.into(), from, &keys.id(), |nonce| keys.link(nonce)).await
    }

    async fn enter(
        Door { address: relay, tls }: Door,
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
        let (read, mut writer): (Box<dyn AsyncRead + Send + Unpin>, Writer) = match tls {
            None => {
                let (read, write) = stream.into_split();
                (Box::new(read), Box::new(write))
            }
            Some(tls) => {
                let name = ServerName::try_from("localhost").map_err(io::Error::other)?;
                let (read, write) = tokio::io::split(tls.connect(name, stream).await?);
                (Box::new(read), Box::new(write))
            }
        };
        let head = format!(
            "GET /rooms/{room} HTTP/1.1\r\nHost: {relay}\r\nUpgrade: websocket\r\nConnection: upgrade\r\n\
             Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
        );
        writer.write_all(head.as_bytes()).await?;
        writer.flush().await?;
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
        writer.flush().await?;
        match reader.control().await? {
            Control::Welcome { route, limits, .. } => {
                Ok(Self { reader, writer, route: route.0, window_bytes: limits.window_bytes })
            }
            other => Err(io::Error::other(format!("{other:?}"))),
        }
    }

    /// Both directions on their own.
    pub fn split(self) -> (Reader, Writer) {
        (self.reader, self.writer)
    }

    /// Stays in the room until the connection ends.
    pub async fn answer_pings(self) {
        let (mut reader, mut writer) = self.split();
        while let Some((opcode, _)) = reader.skip().await {
            if opcode == 9 && send(&mut writer, &pong()).await.is_err() {
                return;
            }
        }
    }
}
