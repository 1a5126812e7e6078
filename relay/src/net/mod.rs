//! One port for everything: plain HTTP for this machine, HTTPS for the others.
//!
//! The first byte of a connection tells a TLS handshake from an HTTP request. Browsers count `http://localhost` as
//! secure, so plain HTTP from the loopback address is served; from anywhere else it is sent to `https://` at the same
//! address, because there the page could not use the GPU.

mod activity;
pub mod addresses;
mod redirect;
pub mod tls;

use std::net::{Ipv4Addr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::extract::connect_info::Connected;
use axum::serve::{IncomingStream, Listener};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::task::AbortHandle;
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

pub use activity::{Activity, Watched};

use crate::error::StartError;

/// First byte of a TLS handshake record.
const TLS_HANDSHAKE: u8 = 0x16;
/// Connections that are through with their handshake and wait to be taken. Small: they are taken at once.
const WAITING: usize = 64;
/// Pause after the system refuses a connection, usually for lack of file handles.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// A connection after its handshake.
#[derive(Debug)]
pub enum Wire {
    /// Plain HTTP.
    Plain(TcpStream),
    /// HTTPS.
    Tls(Box<TlsStream<TcpStream>>),
}

/// Who is at the other end of a connection.
#[derive(Clone, Debug)]
pub struct Peer {
    /// Its address.
    pub address: SocketAddr,
    /// Its signs of life.
    pub activity: Arc<Activity>,
}

impl Connected<IncomingStream<'_, Port>> for Peer {
    fn connect_info(stream: IncomingStream<'_, Port>) -> Self {
        Self { address: *stream.remote_addr(), activity: stream.io().activity().clone() }
    }
}

/// The listening port.
#[derive(Debug)]
pub struct Port {
    local: SocketAddr,
    ready: mpsc::Receiver<(TcpWire, SocketAddr)>,
    accepting: AbortHandle,
}

type TcpWire = Watched<Wire>;

impl Port {
    /// Listens on `ip`. Without `tls` only plain HTTP is spoken. Handshakes have to finish within `handshake`.
    pub async fn open(
        ip: Ipv4Addr,
        port: u16,
        tls: Option<TlsAcceptor>,
        handshake: Duration,
    ) -> Result<Self, StartError> {
        let failed = |source| StartError::Listen { port, source };
        let listener = TcpListener::bind((ip, port)).await.map_err(failed)?;
        let local = listener.local_addr().map_err(failed)?;
        let (send, ready) = mpsc::channel(WAITING);
        let accepting = tokio::spawn(accept(listener, tls, handshake, send)).abort_handle();
        Ok(Self { local, ready, accepting })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.local
    }
}

impl Drop for Port {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

impl Listener for Port {
    type Io = TcpWire;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Self::Io, Self::Addr) {
        match self.ready.recv().await {
            Some(connection) => connection,
            // The accepting task lives as long as this port; if it is gone nobody comes any more.
            None => std::future::pending().await,
        }
    }

    fn local_addr(&self) -> std::io::Result<Self::Addr> {
        Ok(self.local)
    }
}

async fn accept(
    listener: TcpListener,
    tls: Option<TlsAcceptor>,
    handshake: Duration,
    ready: mpsc::Sender<(TcpWire, SocketAddr)>,
) {
    loop {
        let Ok((stream, address)) = listener.accept().await else {
            sleep(ACCEPT_PAUSE).await;
            continue;
        };
        let (tls, ready) = (tls.clone(), ready.clone());
        // In a task of its own: who connects and says nothing keeps nobody waiting.
        tokio::spawn(async move {
            if let Ok(Some(wire)) = timeout(handshake, greet(stream, address, tls)).await {
                let _ = ready.send((Watched::new(wire), address)).await;
            }
        });
    }
}

async fn greet(stream: TcpStream, address: SocketAddr, tls: Option<TlsAcceptor>) -> Option<Wire> {
    // Small frames must not wait for company.
    stream.set_nodelay(true).ok()?;
    let Some(tls) = tls else { return Some(Wire::Plain(stream)) };
    let mut first = [0];
    stream.peek(&mut first).await.ok().filter(|n| *n == 1)?;
    if first[0] == TLS_HANDSHAKE {
        return Some(Wire::Tls(Box::new(tls.accept(stream).await.ok()?)));
    }
    if address.ip().is_loopback() {
        return Some(Wire::Plain(stream));
    }
    redirect::to_https(stream).await;
    None
}

impl AsyncRead for Wire {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<std::io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_read(cx, buf),
            Self::Tls(stream) => Pin::new(stream).poll_read(cx, buf),
        }
    }
}

impl AsyncWrite for Wire {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<std::io::Result<usize>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_write(cx, buf),
            Self::Tls(stream) => Pin::new(stream).poll_write(cx, buf),
        }
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[std::io::IoSlice<'_>],
    ) -> Poll<std::io::Result<usize>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_write_vectored(cx, bufs),
            Self::Tls(stream) => Pin::new(stream).poll_write_vectored(cx, bufs),
        }
    }

    fn is_write_vectored(&self) -> bool {
        match self {
            Self::Plain(stream) => stream.is_write_vectored(),
            Self::Tls(stream) => stream.is_write_vectored(),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_flush(cx),
            Self::Tls(stream) => Pin::new(stream).poll_flush(cx),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_shutdown(cx),
            Self::Tls(stream) => Pin::new(stream).poll_shutdown(cx),
        }
    }
}
