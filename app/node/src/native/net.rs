//! WebSockets by tokio-tungstenite, HTTP by ureq on blocking threads.
//!
//! Two kinds of servers are told apart: the relay, which the person at this device chose, and the servers of model links,
//! which a room's host chose.

use std::io::{self, Read};
use std::net::IpAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use futures::channel::mpsc;
use futures::future::LocalBoxFuture;
use futures::stream::LocalBoxStream;
use futures::{SinkExt, StreamExt};
use rustls::ClientConfig;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use tokio_tungstenite::{Connector, connect_async_tls_with_config};
use ureq::unversioned::resolver::DefaultResolver;
use ureq::unversioned::transport::{ConnectProxyConnector, Connector as _, DefaultConnector, TcpConnector};

use super::delay::Delay;
use super::fingerprint::Fingerprint;
use super::public::{AllowedAddresses, is_public};
use super::relay_tls::RelayTls;
use super::tls::{explain, relay_config};
use crate::platform::{
    HttpReply, HttpRequest, Method, NetError, SameBrowser, Socket, SocketMessage, SocketSender, Traffic, Transport,
};

/// Timeout of a connection, of a reply's headers, and of each read of its body.
const TIMEOUT: Duration = Duration::from_secs(20);

/// Bytes of a read of a reply's body.
const READ_BYTES: usize = 64 << 10;

/// Whom this program talks to.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Network {
    /// The relay's origin.
    pub relay: String,
    /// The fingerprint of the relay's certificate; without one a known authority must have signed it.
    pub relay_fingerprint: Option<Fingerprint>,
    /// Links to models may lead to private addresses and need no TLS.
    pub allow_private_links: bool,
    /// For measurements only: how late this device's messages leave for the relay.
    pub delay: Option<Delay>,
}

/// Discovery for programs: there is none.
pub struct NoSameBrowser;

impl SameBrowser for NoSameBrowser {
    fn discover(&self, _: &str, _: u32) -> LocalBoxStream<'static, (u32, Socket)> {
        futures::stream::empty().boxed_local()
    }
}

/// The network of this machine.
pub struct NativeTransport {
    relay: String,
    /// An error if the TLS library does not work.
    tls: Result<Arc<ClientConfig>, String>,
    to_relay: Option<ureq::Agent>,
    to_links: ureq::Agent,
    delay: Option<Delay>,
}

impl NativeTransport {
    /// For a relay, and links.
    pub fn new(network: &Network) -> Self {
        let tls = relay_config(network.relay_fingerprint);
        let to_relay = tls.as_ref().ok().map(|tls| to_relay(tls.clone()));
        let to_links = match network.allow_private_links {
            true => to_links(|_| true, false),
            false => to_links(is_public, true),
        };
        Self { relay: network.relay.trim_end_matches('/').to_owned(), tls, to_relay, to_links, delay: network.delay }
    }

    fn is_relays(&self, url: &str) -> bool {
        url.strip_prefix(&self.relay).is_some_and(|path| path.is_empty() || path.starts_with('/'))
    }
}

/// Makes requests to the relay. Redirects are not followed: they would lead away from the relay.
fn to_relay(tls: Arc<ClientConfig>) -> ureq::Agent {
    let config = ureq::Agent::config_builder()
        .http_status_as_error(false)
        .max_redirects(0)
        .timeout_connect(Some(TIMEOUT))
        .timeout_recv_response(Some(TIMEOUT))
        .timeout_per_read(Some(TIMEOUT))
        .max_idle_connections_per_host(8)
        .build();
    let connector = ().chain(ConnectProxyConnector::default()).chain(TcpConnector::default()).chain(RelayTls(tls));
    ureq::Agent::with_parts(config, connector, DefaultResolver::default())
}

/// Makes requests to the servers of links. With `public`, only over TLS and without a proxy, which would resolve names itself.
fn to_links(allowed: fn(IpAddr) -> bool, public: bool) -> ureq::Agent {
    let mut config = ureq::Agent::config_builder()
        .http_status_as_error(false)
        .https_only(public)
        .timeout_connect(Some(TIMEOUT))
        .timeout_recv_response(Some(TIMEOUT))
        .timeout_per_read(Some(TIMEOUT))
        .max_idle_connections_per_host(8);
    if public {
        config = config.proxy(None);
    }
    ureq::Agent::with_parts(config.build(), DefaultConnector::default(), AllowedAddresses(allowed))
}

impl Transport for NativeTransport {
    fn connect(&self, url: String) -> LocalBoxFuture<'static, Result<Socket, NetError>> {
        let (tls, delay) = (self.tls.clone(), self.delay);
        Box::pin(async move {
            let tls = tls.map_err(|error| NetError::unreachable(&url, error))?;
            let config = WebSocketConfig::default().max_message_size(Some(32 << 20)).max_frame_size(Some(32 << 20));
            let dial = connect_async_tls_with_config(&url, Some(config), true, Some(Connector::Rustls(tls)));
            let dialled = tokio::time::timeout(TIMEOUT, dial).await;
            let (socket, _) = dialled
                .map_err(|_| NetError::unreachable(&url, "no answer in time"))?
                .map_err(|error| NetError::unreachable(&url, explain(&error)))?;
            let (mut sink, stream) = socket.split();
            let (sender, outgoing) = mpsc::unbounded();
            let mut outgoing = match delay {
                Some(delay) => delay.apply(outgoing),
                None => outgoing.boxed(),
            };
            tokio::task::spawn_local(async move {
                while let Some(message) = outgoing.next().await {
                    if sink.send(message).await.is_err() {
                        break;
                    }
                }
                // Already broken if this fails.
                let _ = sink.close().await;
            });
            let messages = stream.take_while(|message| std::future::ready(message.is_ok())).filter_map(|message| {
                std::future::ready(match message {
                    Ok(Message::Text(text)) => Some(SocketMessage::Text(text.to_string())),
                    Ok(Message::Binary(bytes)) => Some(SocketMessage::Binary(bytes.into())),
                    _ => None,
                })
            });
            Ok(Socket { sender: Rc::new(Sender(sender)), messages: Box::pin(messages) })
        })
    }

    fn request(&self, request: HttpRequest) -> LocalBoxFuture<'static, Result<HttpReply, NetError>> {
        let is_relays = self.is_relays(&request.url);
        let agent = if is_relays { self.to_relay.clone() } else { Some(self.to_links.clone()) };
        Box::pin(async move {
            let url = request.url.clone();
            let agent = agent.ok_or_else(|| NetError::unreachable(&url, "TLS does not work on this device"))?;
            let reason = if is_relays { relay_reason } else { link_reason };
            let answered = tokio::task::spawn_blocking(move || answer(&agent, request)).await;
            let answered = answered.unwrap_or_else(|error| Err(io::Error::other(error).into()));
            answered.map_err(|error| match error {
                ureq::Error::BadUri(_) => NetError::BadUrl(url),
                error => NetError::unreachable(&url, reason(&error)),
            })
        })
    }
}

fn relay_reason(error: &ureq::Error) -> String {
    explain(error)
}

/// Says nothing of what a link led to: the sentence goes to the room's host.
fn link_reason(error: &ureq::Error) -> String {
    match error {
        ureq::Error::HostNotFound => "it has no public address, and private ones need --allow-private-links".to_owned(),
        ureq::Error::RequireHttpsOnly(_) => {
            "links must begin with https://, also where they lead on; others need --allow-private-links".to_owned()
        }
        ureq::Error::Timeout(_) => "no answer in time".to_owned(),
        ureq::Error::TooManyRedirects => "it leads on and on".to_owned(),
        _ => "the connection failed".to_owned(),
    }
}

fn answer(agent: &ureq::Agent, request: HttpRequest) -> Result<HttpReply, ureq::Error> {
    let HttpRequest { method, url, range, body, arrived } = &request;
    let mut reply = match method {
        Method::Post => agent.post(url).content_type("application/json").send(body.as_deref().unwrap_or_default()),
        Method::Get | Method::Head => {
            let mut builder = if *method == Method::Head { agent.head(url) } else { agent.get(url) };
            if let Some(range) = range {
                builder = builder.header("range", format!("bytes={}-{}", range.start, range.end.saturating_sub(1)));
            }
            builder.call()
        }
    }?;
    let number = |name: &str| reply.headers().get(name)?.to_str().ok()?.parse::<u64>().ok();
    let length = number("content-length");
    let retry_after = number("retry-after").and_then(|seconds| u32::try_from(seconds).ok());
    let status = reply.status().as_u16();
    let limit = request.limit(status);
    let too_long = length.is_some_and(|length| length > limit);
    let body = match method {
        Method::Head => Vec::new(),
        _ if too_long => Vec::new(),
        _ => read_counted(reply.body_mut().with_config().limit(limit.saturating_add(1)).reader(), arrived)?,
    };
    Ok(HttpReply { status, length, retry_after, body })
}

/// Reads everything; `arrived` counts it meanwhile.
fn read_counted(mut reader: impl Read, arrived: &Traffic) -> io::Result<Vec<u8>> {
    let (mut bytes, mut buffer) = (Vec::new(), vec![0; READ_BYTES]);
    loop {
        match reader.read(&mut buffer) {
            Ok(0) => return Ok(bytes),
            Ok(read) => {
                arrived.add(read as u64);
                bytes.extend_from_slice(&buffer[..read]);
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

struct Sender(mpsc::UnboundedSender<Message>);

impl SocketSender for Sender {
    fn send(&self, message: SocketMessage) {
        let message = match message {
            SocketMessage::Text(text) => Message::text(text),
            SocketMessage::Binary(bytes) => Message::binary(bytes),
        };
        // Fails if the connection broke, which the receiving half reports.
        let _ = self.0.unbounded_send(message);
    }

    fn close(&self) {
        self.0.close_channel();
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use std::io::Write;
    use std::net::{Ipv4Addr, TcpListener};

    use super::*;

    /// Answers every request on this address with this text.
    fn server(ip: &str, reply: String) -> u16 {
        let listener = TcpListener::bind((ip, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        std::thread::spawn(move || {
            for socket in listener.incoming() {
                let mut socket = socket.unwrap();
                let _ = socket.read(&mut [0; 4096]);
                let _ = socket.write_all(reply.as_bytes());
            }
        });
        port
    }

    fn get(agent: &ureq::Agent, url: &str) -> Result<HttpReply, ureq::Error> {
        answer(agent, HttpRequest::get(url))
    }

    #[test]
    fn a_link_leads_to_no_private_address_whatever_its_form() {
        let port =
            server("127.0.0.1", "HTTP/1.1 200 OK\r\ncontent-length: 6\r\nconnection: close\r\n\r\nsecret".into());
        let private = to_links(is_public, false);
        for host in ["localhost", "127.0.0.1", "2130706433", "0x7f.1", "0.0.0.0", "[::1]", "[::ffff:127.0.0.1]"] {
            let refused = get(&private, &format!("http://{host}:{port}/"));
            assert!(matches!(refused, Err(ureq::Error::HostNotFound)), "{host}: {refused:?}");
        }
        let reply = get(&to_links(|_| true, false), &format!("http://127.0.0.1:{port}/")).unwrap();
        assert_eq!(reply.body, b"secret", "with --allow-private-links it does");
    }

    #[test]
    fn every_redirect_is_checked_again() {
        let secret =
            server("127.0.0.2", "HTTP/1.1 200 OK\r\ncontent-length: 6\r\nconnection: close\r\n\r\nsecret".into());
        let location = format!("location: http://127.0.0.2:{secret}/");
        let reply = format!("HTTP/1.1 302 Found\r\n{location}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
        let port = server("127.0.0.1", reply);
        // 127.0.0.1 stands for a public address here.
        let agent = to_links(|address| address == Ipv4Addr::new(127, 0, 0, 1), false);
        let refused = get(&agent, &format!("http://127.0.0.1:{port}/"));
        assert!(matches!(refused, Err(ureq::Error::HostNotFound)), "{refused:?}");
        let followed = get(&to_links(|_| true, false), &format!("http://127.0.0.1:{port}/")).unwrap();
        assert_eq!(followed.body, b"secret");
    }

    #[test]
    fn a_link_needs_tls_and_its_errors_tell_nothing() {
        let refused = get(&to_links(|_| true, true), "http://127.0.0.1:9/secret/path").unwrap_err();
        assert!(matches!(refused, ureq::Error::RequireHttpsOnly(_)), "{refused:?}");
        for error in [refused, ureq::Error::HostNotFound, io::Error::other("10.0.0.7 refused").into()] {
            let sentence = link_reason(&error);
            assert!(!sentence.contains("secret") && !sentence.contains("10.0.0.7"), "{sentence}");
        }
    }

    #[test]
    fn a_server_that_sends_more_than_was_asked_for_is_not_read() {
        let whole = "x".repeat(1 << 20);
        let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\nconnection: close\r\n\r\n", whole.len());
        let port = server("127.0.0.1", head + &whole);
        let request = HttpRequest { range: Some(0..16), ..HttpRequest::get(format!("http://127.0.0.1:{port}/")) };
        let reply = answer(&to_links(|_| true, false), request).unwrap();
        assert_eq!((reply.status, reply.body.len()), (200, 0));
    }

    #[test]
    fn bytes_are_counted_before_the_reply_is_complete() {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let url = format!("http://{}/", listener.local_addr().unwrap());
        let (rest, wait) = std::sync::mpsc::channel::<()>();
        let arrived = Traffic::default();
        let request = HttpRequest { arrived: arrived.clone(), ..HttpRequest::get(url) };
        std::thread::scope(|scope| {
            // If the test fails, the server ends too.
            let rest = rest;
            let reply = scope.spawn(|| answer(&to_links(|_| true, false), request));
            let (mut socket, _) = listener.accept().unwrap();
            let _ = socket.read(&mut [0; 4096]);
            socket.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\nconnection: close\r\n\r\nhalf ").unwrap();
            let server = scope.spawn(move || {
                if wait.recv().is_ok() {
                    socket.write_all(b"whole").unwrap();
                }
            });
            while arrived.bytes() < 5 {
                assert!(!reply.is_finished(), "the reply must not end without its second half");
                std::thread::yield_now();
            }
            assert_eq!(arrived.bytes(), 5, "the first half");
            rest.send(()).unwrap();
            server.join().unwrap();
            assert_eq!(reply.join().unwrap().unwrap().body, b"half whole");
            assert_eq!(arrived.bytes(), 10, "both halves");
        });
    }

    #[test]
    fn only_the_relays_own_addresses_are_the_relays() {
        let network = Network { relay: "https://relay.example".into(), ..Network::default() };
        let transport = NativeTransport::new(&network);
        assert!(transport.is_relays("https://relay.example/models/a.gguf"));
        for other in ["https://relay.example.evil/x", "https://relay.example@evil/x", "http://relay.example/x"] {
            assert!(!transport.is_relays(other), "{other}");
        }
    }
}
