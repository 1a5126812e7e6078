//! WebSockets by tokio-tungstenite, HTTP by ureq on blocking threads.
//!
//! Two kinds of servers are told apart: the relay, which the person at this device chose, and the servers of model links,
//! which a room's host chose.

mod redirects;

use std::io::{self, Read};
use std::net::IpAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use futures::channel::{mpsc, oneshot};
use futures::future::LocalBoxFuture;
use futures::stream::LocalBoxStream;
use futures::{SinkExt, StreamExt};
use potluck_panel::AccessTokens;
use potluck_text::texts;
use rustls::ClientConfig;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::error::ProtocolError;
use tokio_tungstenite::tungstenite::http::header::AUTHORIZATION;
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use tokio_tungstenite::tungstenite::{self, Message};
use tokio_tungstenite::{Connector, connect_async_tls_with_config};
use ureq::unversioned::resolver::DefaultResolver;
use ureq::unversioned::transport::{ConnectProxyConnector, Connector as _, DefaultConnector, TcpConnector};

use super::fingerprint::Fingerprint;
use super::public::AllowedAddresses;
use super::relay_tls::RelayTls;
use super::relay_token::RelayToken;
use super::tls::{certificate_fault, explain, relay_config, speaks_no_tls};
use crate::links::is_public;
use crate::platform::{
    Content, HttpReply, HttpRequest, Method, NetError, OpenedReply, SameBrowser, Socket, SocketMessage, SocketSender,
    Traffic, Transport,
};

/// Timeout of a connection, of a reply's headers, and of each read of its body.
const TIMEOUT: Duration = Duration::from_secs(20);

/// Bytes of a read of a reply's body.
const READ_BYTES: usize = 64 << 10;
/// Reads of a reply's content that wait until they are asked for.
const READS_AHEAD: usize = 8;

/// Whom this program talks to.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Network {
    /// The relay's origin.
    pub relay: String,
    /// The fingerprint of the relay's certificate; without one a known authority must have signed it.
    pub relay_fingerprint: Option<Fingerprint>,
    /// With it, this device may open rooms on the relay.
    pub relay_token: Option<RelayToken>,
    /// Links to models may lead to private addresses and need no TLS.
    pub allow_private_links: bool,
    /// For links to files that a server gives only to those it knows.
    pub access_tokens: AccessTokens,
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
    token: Option<RelayToken>,
    /// An error if the TLS library does not work.
    tls: Result<Arc<ClientConfig>, String>,
    to_relay: Option<ureq::Agent>,
    to_links: ureq::Agent,
}

impl NativeTransport {
    /// For a relay, and links.
    pub fn new(network: &Network) -> Self {
        let tls = relay_config(network.relay_fingerprint);
        let to_relay = tls.as_ref().ok().map(|tls| to_relay(tls.clone()));
        let to_links = if network.allow_private_links { to_links(|_| true, false) } else { to_links(is_public, true) };
        Self {
            relay: network.relay.trim_end_matches('/').to_owned(),
            token: network.relay_token.clone(),
            tls,
            to_relay,
            to_links,
        }
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
    /// Its requests check the addresses that names resolve to, and refuse private ones.
    fn may_follow(&self, _: &str) -> bool {
        true
    }

    fn connect(&self, url: String) -> LocalBoxFuture<'static, Result<Socket, NetError>> {
        let (tls, token) = (self.tls.clone(), self.token.clone());
        Box::pin(async move {
            let tls = tls.map_err(|error| NetError::unreachable(&url, error))?;
            let config = WebSocketConfig::default().max_message_size(Some(32 << 20)).max_frame_size(Some(32 << 20));
            let mut request = url.as_str().into_client_request().map_err(|error| no_socket(&url, error))?;
            if let Some(token) = token {
                request.headers_mut().insert(AUTHORIZATION, token.header());
            }
            let dial = connect_async_tls_with_config(request, Some(config), true, Some(Connector::Rustls(tls)));
            let dialled = tokio::time::timeout(TIMEOUT, dial).await;
            let (socket, _) = dialled
                .map_err(|_| NetError::unreachable(&url, "no answer in time"))?
                .map_err(|error| no_socket(&url, error))?;
            let (mut sink, stream) = socket.split();
            let (sender, mut outgoing) = mpsc::unbounded();
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
            let answered = tokio::task::spawn_blocking(move || answer(&agent, request)).await;
            let answered = answered.unwrap_or_else(|error| Err(io::Error::other(error).into()));
            answered.map_err(|error| net_error(url, is_relays, &error))
        })
    }

    fn open(&self, request: HttpRequest) -> LocalBoxFuture<'static, Result<OpenedReply, NetError>> {
        let is_relays = self.is_relays(&request.url);
        let agent = if is_relays { self.to_relay.clone() } else { Some(self.to_links.clone()) };
        Box::pin(async move {
            let url = request.url.clone();
            let agent = agent.ok_or_else(|| NetError::unreachable(&url, "TLS does not work on this device"))?;
            let (head, replied) = oneshot::channel();
            let (reads, arriving) = tokio::sync::mpsc::channel(READS_AHEAD);
            // It ends with the reply, or soon after nobody reads any more.
            tokio::task::spawn_blocking(move || stream(&agent, &request, head, &reads));
            let replied = replied.await.unwrap_or_else(|_| Err(io::Error::other("the reader ended").into()));
            let reply = replied.map_err(|error| net_error(url.clone(), is_relays, &error))?;
            let content: Box<dyn Content> = Box::new(Reads { url, arriving, left: Vec::new(), given: 0 });
            Ok((reply, content))
        })
    }
}

fn net_error(url: String, is_relays: bool, error: &ureq::Error) -> NetError {
    match error {
        ureq::Error::BadUri(_) => NetError::BadUrl(url),
        error if is_relays => relay_error(&url, error),
        error => NetError::unreachable(&url, link_reason(error)),
    }
}

/// The content of a reply that a thread reads.
struct Reads {
    url: String,
    arriving: tokio::sync::mpsc::Receiver<io::Result<Vec<u8>>>,
    /// The read that was given in part.
    left: Vec<u8>,
    given: usize,
}

impl Content for Reads {
    fn next(&mut self, most: usize) -> LocalBoxFuture<'_, Result<Vec<u8>, NetError>> {
        Box::pin(async move {
            if self.given == self.left.len() {
                self.left = match self.arriving.recv().await {
                    None => return Ok(Vec::new()),
                    Some(read) => read.map_err(|_| NetError::unreachable(&self.url, "the connection failed"))?,
                };
                self.given = 0;
            }
            let end = self.left.len().min(self.given.saturating_add(most));
            let next = self.left[self.given..end].to_vec();
            self.given = end;
            Ok(next)
        })
    }
}

fn relay_error(url: &str, error: &ureq::Error) -> NetError {
    let texts = &texts().node_relay;
    match error {
        ureq::Error::HostNotFound => NetError::unreachable(url, texts.name_unknown()),
        ureq::Error::Io(error) => match certificate_fault(error) {
            Some(sentence) => NetError::no_relay(url, sentence),
            None if speaks_no_tls(error) => NetError::no_relay(url, texts.speaks_no_tls()),
            None => NetError::unreachable(url, io_reason(error)),
        },
        // A server that waits for TLS sends an alert.
        ureq::Error::Protocol(_) if url.starts_with("http://") => NetError::no_relay(url, texts.speaks_tls()),
        error => NetError::unreachable(url, explain(error)),
    }
}

/// Says nothing of what a link led to: the sentence goes to the room's host.
fn link_reason(error: &ureq::Error) -> String {
    match error {
        ureq::Error::HostNotFound => "it has no public address, and private ones need --allow-private-links".to_owned(),
        ureq::Error::RequireHttpsOnly(_) => {
            "links must begin with https://, also where they lead on; others need --allow-private-links".to_owned()
        }
        ureq::Error::Timeout(_) => "no answer in time".to_owned(),
        ureq::Error::TooManyRedirects => "it leads on and on; open it in a browser to see where".to_owned(),
        _ => "the connection failed".to_owned(),
    }
}

type Reply = ureq::http::Response<ureq::Body>;

fn send(agent: &ureq::Agent, request: &HttpRequest) -> Result<Reply, ureq::Error> {
    let HttpRequest { method, url, body, .. } = request;
    match method {
        Method::Post => agent.post(url).content_type("application/json").send(body.as_deref().unwrap_or_default()),
        Method::Get => redirects::get(agent, request),
    }
}

fn head_of(reply: &Reply) -> HttpReply {
    HttpReply::read(reply.status().as_u16(), |name| Some(reply.headers().get(name)?.to_str().ok()?.to_owned()))
}

fn answer(agent: &ureq::Agent, request: HttpRequest) -> Result<HttpReply, ureq::Error> {
    let mut reply = send(agent, &request)?;
    let head = head_of(&reply);
    let limit = request.limit(head.status);
    let body = match head.length {
        Some(length) if length > limit => Vec::new(),
        _ => read_counted(reply.body_mut().with_config().limit(limit.saturating_add(1)).reader(), &request.arrived)?,
    };
    Ok(HttpReply { body, ..head })
}

/// Hands on a reply, then its content read by read, while somebody takes them.
fn stream(
    agent: &ureq::Agent,
    request: &HttpRequest,
    head: oneshot::Sender<Result<HttpReply, ureq::Error>>,
    reads: &tokio::sync::mpsc::Sender<io::Result<Vec<u8>>>,
) {
    let (mut reply, replied) = match send(agent, request) {
        Ok(reply) => {
            let replied = head_of(&reply);
            (reply, replied)
        }
        Err(error) => return drop(head.send(Err(error))),
    };
    let (status, limit) = (replied.status, request.limit(replied.status));
    if head.send(Ok(replied)).is_err() || !matches!(status, 200 | 206) {
        return;
    }
    let mut reader = reply.body_mut().with_config().limit(limit.saturating_add(1)).reader();
    loop {
        let mut read = vec![0; READ_BYTES];
        let read = match reader.read(&mut read) {
            Ok(0) => return,
            Ok(len) => {
                read.truncate(len);
                Ok(read)
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => Err(error),
        };
        let ends = read.is_err();
        if reads.blocking_send(read).is_err() || ends {
            return;
        }
    }
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

/// Why there is no WebSocket: trouble that may pass, or a server that is not the relay.
fn no_socket(url: &str, error: tungstenite::Error) -> NetError {
    let texts = &texts().node_relay;
    if let Some(sentence) = certificate_fault(&error) {
        return NetError::no_relay(url, sentence);
    }
    if speaks_no_tls(&error) {
        return NetError::no_relay(url, texts.speaks_no_tls());
    }
    match error {
        tungstenite::Error::Http(reply) => match reply.status().as_u16() {
            // A proxy on the way, which does not reach the relay for now.
            408 | 429 | 500..=504 => NetError::unreachable(url, texts.proxy(reply.status().as_u16())),
            status => NetError::no_relay(url, texts.web_server(status)),
        },
        // A server that waits for TLS closes the connection or sends an alert.
        tungstenite::Error::Protocol(ProtocolError::HttparseError(_)) => NetError::no_relay(url, texts.speaks_tls()),
        tungstenite::Error::Url(_) | tungstenite::Error::HttpFormat(_) => NetError::BadUrl(url.to_owned()),
        tungstenite::Error::Io(error) => NetError::unreachable(url, io_reason(&error)),
        tungstenite::Error::Protocol(_) | tungstenite::Error::ConnectionClosed => {
            NetError::unreachable(url, texts.closed())
        }
        error => NetError::unreachable(url, explain(&error)),
    }
}

/// An error of the operating system as people read it: "connection refused".
fn io_reason(error: &io::Error) -> String {
    let text = error.to_string();
    match error.kind() {
        io::ErrorKind::UnexpectedEof => texts().node_relay.closed().to_owned(),
        _ if text.contains("lookup address") => texts().node_relay.name_unknown().to_owned(),
        _ => text.split_once(" (os error").map_or(text.clone(), |(reason, _)| reason.to_lowercase()),
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
mod tests;
