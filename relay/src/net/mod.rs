//! One port for everything: plain HTTP for this machine, HTTPS for others.
//!
//! The first byte of a connection tells a TLS handshake from an HTTP request. Browsers treat `http://localhost` as
//! secure, so plain HTTP from the loopback address is served. From anywhere else it is redirected to `https://`, because
//! an insecure page cannot use the GPU; only the page that helps to trust the relay ([`help`]) is served without. A trusted proxy
//! may speak plain HTTP from anywhere.

mod activity;
pub mod help;
pub mod hosts;
mod listen;
pub mod names;
pub mod proxy;
mod reach;
pub mod redirect;
pub mod tls;

use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

pub use activity::{Activity, ActivityStream};
pub use listen::listen;
use proxy::Proxies;
pub use reach::{Reach, machine_name, wanted};

use crate::metrics::Metrics;
use crate::quotas::{Exhausted, Lease, Quotas, Resource};

/// First byte of a TLS handshake record.
const TLS_HANDSHAKE: u8 = 0x16;

type Tcp = ActivityStream<TcpStream>;

/// A connection after its handshake.
#[derive(Debug)]
pub enum HttpStream {
    /// Plain HTTP.
    Plain(Tcp),
    /// HTTPS.
    Tls(Box<TlsStream<Tcp>>),
}

/// What carries a connection's bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// TCP alone, where nobody is on the way: this machine or a trusted proxy; or a relay without TLS.
    Plain,
    /// TCP alone, from another device: it is sent to HTTPS.
    Open,
    /// TLS, which ends here.
    Tls,
}

/// The other end of a connection.
#[derive(Clone, Debug)]
pub struct Client {
    /// Its address; behind a trusted proxy, the one that the proxy names.
    pub address: IpAddr,
    /// The address of this machine that it connected to.
    pub local: IpAddr,
    /// Whether a trusted proxy is in between: then each request may name another client.
    pub is_proxied: bool,
    /// What carries its bytes.
    pub transport: Transport,
    /// Whether it is alive.
    pub activity: Arc<Activity>,
    /// Its place among the connections, kept as long as anyone uses the connection. None for a proxy's.
    pub lease: Option<Arc<Lease>>,
}

/// How connections are opened.
pub struct Door {
    /// For HTTPS; without it there is plain HTTP only.
    pub tls: Option<TlsAcceptor>,
    /// The proxies that are trusted.
    pub proxies: Proxies,
    /// What an address may use.
    pub quotas: Arc<Quotas>,
    /// The counters.
    pub metrics: Arc<Metrics>,
    /// Places for connections over a limit that are told so.
    pub refusals: Arc<Semaphore>,
    /// How long the first bytes and the TLS handshake may take.
    pub handshake: Duration,
    /// How long a connection may take nothing while bytes wait for it.
    pub stall: Duration,
}

/// A connection whose handshakes are done.
pub enum Opened {
    /// It is served.
    Served(HttpStream, Client),
    /// It gets one answer that says which limit was reached, and ends.
    Refused(HttpStream, Client, Refused),
}

/// A connection over a limit.
#[derive(Debug)]
pub struct Refused {
    /// Which limit.
    pub exhausted: Exhausted,
    /// Its place among those that get an answer.
    _place: OwnedSemaphorePermit,
}

/// What a connection may do.
enum Admission {
    Leased(Option<Lease>),
    Refused(Refused),
}

impl Door {
    /// Finishes the handshakes of a connection that was accepted; `None` if it must not go on.
    pub async fn open(&self, stream: TcpStream, address: SocketAddr) -> Option<Opened> {
        timeout(self.handshake, self.shake_hands(stream, address.ip().to_canonical())).await.ok().flatten()
    }

    /// A place among the connections, or among those that are told that there is none. `None` if there are too many of these, too.
    fn admit(&self, address: IpAddr) -> Option<Admission> {
        match self.quotas.share(address).take(Resource::Connection) {
            Ok(lease) => Some(Admission::Leased(Some(lease))),
            Err(exhausted) => {
                self.metrics.connections_refused.inc();
                let place = self.refusals.clone().try_acquire_owned().ok()?;
                Some(Admission::Refused(Refused { exhausted, _place: place }))
            }
        }
    }

    async fn shake_hands(&self, mut stream: TcpStream, mut address: IpAddr) -> Option<Opened> {
        // Small frames must not wait to be coalesced.
        stream.set_nodelay(true).ok()?;
        let local = stream.local_addr().ok()?.ip().to_canonical();
        let is_proxied = self.proxies.trust(address);
        let mut admission = Admission::Leased(None);
        if !is_proxied {
            admission = self.admit(address)?;
        } else if self.proxies.send_header {
            if let Some(client) = proxy::read_header(&mut stream).await? {
                address = client;
            }
            admission = self.admit(address)?;
        }
        let is_trusted = self.tls.is_none() || is_proxied || address.is_loopback();
        let mut transport = if is_trusted { Transport::Plain } else { Transport::Open };
        let stream = match &self.tls {
            None => HttpStream::Plain(ActivityStream::new(stream, self.stall)),
            Some(tls) => {
                let mut first = [0];
                stream.peek(&mut first).await.ok().filter(|n| *n == 1)?;
                if first[0] == TLS_HANDSHAKE {
                    transport = Transport::Tls;
                    let stream = tls.accept(ActivityStream::new(stream, self.stall)).await.ok()?;
                    HttpStream::Tls(Box::new(stream))
                } else {
                    HttpStream::Plain(ActivityStream::new(stream, self.stall))
                }
            }
        };
        let activity = stream.activity().clone();
        let client = |lease: Option<Lease>| {
            let lease = lease.map(Arc::new);
            Client { address, local, is_proxied, transport, activity, lease }
        };
        Some(match admission {
            Admission::Leased(lease) => Opened::Served(stream, client(lease)),
            Admission::Refused(refused) => Opened::Refused(stream, client(None), refused),
        })
    }
}

/// Lets this program open as many connections as the system allows; how many files it may open in all, if known.
#[cfg(unix)]
pub fn raise_file_limit() -> Option<usize> {
    use rustix::process::{Resource, getrlimit, setrlimit};
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    // Without the right to raise it, the limit stays as it is.
    let _ = setrlimit(Resource::Nofile, limit);
    getrlimit(Resource::Nofile).current.and_then(|files| files.try_into().ok())
}

/// Other systems have no such limit.
#[cfg(not(unix))]
pub fn raise_file_limit() -> Option<usize> {
    None
}

impl HttpStream {
    fn activity(&self) -> &Arc<Activity> {
        match self {
            Self::Plain(stream) => stream.activity(),
            Self::Tls(stream) => stream.get_ref().0.activity(),
        }
    }
}

impl AsyncRead for HttpStream {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<std::io::Result<()>> {
        let before = buf.filled().len();
        ready!(match &mut *self {
            Self::Plain(stream) => Pin::new(stream).poll_read(cx, buf),
            Self::Tls(stream) => Pin::new(stream).poll_read(cx, buf),
        })?;
        let bytes = buf.filled().len() - before;
        Poll::Ready(if bytes > 0 { self.activity().receive(bytes) } else { Ok(()) })
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
