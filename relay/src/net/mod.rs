//! One port for everything: plain HTTP for this machine, HTTPS for others.
//!
//! The first byte of a connection tells a TLS handshake from an HTTP request. Browsers treat `http://localhost` as
//! secure, so plain HTTP from the loopback address is served. From anywhere else it is redirected to `https://`, because
//! an insecure page cannot use the GPU.

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

pub use activity::{Activity, ActivityStream};

use crate::error::StartError;

/// First byte of a TLS handshake record.
const TLS_HANDSHAKE: u8 = 0x16;
/// Connections that finished their handshake and wait to be accepted. Small: they are accepted at once.
const ACCEPT_QUEUE: usize = 64;
/// Pause after `accept` fails, usually because file handles ran out.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// A connection after its handshake.
#[derive(Debug)]
pub enum HttpStream {
    /// Plain HTTP.
    Plain(TcpStream),
    /// HTTPS.
    Tls(Box<TlsStream<TcpStream>>),
}

/// The other end of a connection.
#[derive(Clone, Debug)]
pub struct Client {
    /// Its address.
    pub address: SocketAddr,
    /// Whether it is alive.
    pub activity: Arc<Activity>,
}

impl Connected<IncomingStream<'_, Port>> for Client {
    fn connect_info(stream: IncomingStream<'_, Port>) -> Self {
        Self { address: *stream.remote_addr(), activity: stream.io().activity().clone() }
    }
}

/// The listening port.
#[derive(Debug)]
pub struct Port {
    local: SocketAddr,
    ready: mpsc::Receiver<(Connection, SocketAddr)>,
    accepting: AbortHandle,
}

type Connection = ActivityStream<HttpStream>;

impl Port {
    /// Listens on `ip`. Without `tls` it serves plain HTTP only. Handshakes have to finish within `handshake`.
    ///
    /// # Errors
    /// The port is in use or not allowed.
    pub async fn open(
        ip: Ipv4Addr,
        port: u16,
        tls: Option<TlsAcceptor>,
        handshake: Duration,
    ) -> Result<Self, StartError> {
        let failed = |source| StartError::Listen { port, source };
        let listener = TcpListener::bind((ip, port)).await.map_err(failed)?;
        let local = listener.local_addr().map_err(failed)?;
        let (send, ready) = mpsc::channel(ACCEPT_QUEUE);
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
    type Io = Connection;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Self::Io, Self::Addr) {
        match self.ready.recv().await {
            Some(connection) => connection,
            // The accepting task lives as long as this port; without it no connection arrives any more.
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
    ready: mpsc::Sender<(Connection, SocketAddr)>,
) {
    loop {
        let Ok((stream, address)) = listener.accept().await else {
            sleep(ACCEPT_PAUSE).await;
            continue;
        };
        let (tls, ready) = (tls.clone(), ready.clone());
        // In its own task: a client that connects and sends nothing holds up nobody.
        tokio::spawn(async move {
            if let Ok(Some(stream)) = timeout(handshake, detect(stream, address, tls)).await {
                let _ = ready.send((ActivityStream::new(stream), address)).await;
            }
        });
    }
}

async fn detect(stream: TcpStream, address: SocketAddr, tls: Option<TlsAcceptor>) -> Option<HttpStream> {
    // Small frames must not wait to be coalesced.
    stream.set_nodelay(true).ok()?;
    let Some(tls) = tls else { return Some(HttpStream::Plain(stream)) };
    let mut first = [0];
    stream.peek(&mut first).await.ok().filter(|n| *n == 1)?;
    if first[0] == TLS_HANDSHAKE {
        return Some(HttpStream::Tls(Box::new(tls.accept(stream).await.ok()?)));
    }
    if address.ip().is_loopback() {
        return Some(HttpStream::Plain(stream));
    }
    redirect::to_https(stream).await;
    None
}

impl AsyncRead for HttpStream {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<std::io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_read(cx, buf),
            Self::Tls(stream) => Pin::new(stream).poll_read(cx, buf),
        }
    }
}

impl AsyncWrite for HttpStream {
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
