//! WebSockets by tokio-tungstenite, HTTP by ureq on blocking threads.

use std::rc::Rc;
use std::time::Duration;

use futures::channel::mpsc;
use futures::future::LocalBoxFuture;
use futures::stream::LocalBoxStream;
use futures::{SinkExt, StreamExt};
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use tokio_tungstenite::{Connector, connect_async_tls_with_config};

use super::tls::any_certificate;
use crate::platform::{
    HttpReply, HttpRequest, Method, NetError, SameBrowser, Socket, SocketMessage, SocketSender, Transport,
};

/// Timeout of a connection and of a reply's headers.
const TIMEOUT: Duration = Duration::from_secs(20);
/// Maximum length of a reply; pieces of weights are far smaller.
const MAX_REPLY: u64 = 1 << 30;

/// Discovery for programs: there is none.
pub struct NoSameBrowser;

impl SameBrowser for NoSameBrowser {
    fn discover(&self, _: &str, _: u32) -> LocalBoxStream<'static, (u32, Socket)> {
        futures::stream::empty().boxed_local()
    }
}

/// The network of this machine.
pub struct NativeTransport {
    agent: ureq::Agent,
    insecure: bool,
}

impl NativeTransport {
    /// `insecure` accepts any TLS certificate.
    pub fn new(insecure: bool) -> Self {
        let tls = ureq::tls::TlsConfig::builder().disable_verification(insecure).build();
        let config = ureq::Agent::config_builder()
            .tls_config(tls)
            .http_status_as_error(false)
            .timeout_connect(Some(TIMEOUT))
            .timeout_recv_response(Some(TIMEOUT))
            .max_idle_connections_per_host(8)
            .build();
        Self { agent: config.into(), insecure }
    }
}

impl Transport for NativeTransport {
    fn connect(&self, url: String) -> LocalBoxFuture<'static, Result<Socket, NetError>> {
        let insecure = self.insecure;
        Box::pin(async move {
            let connector = match insecure {
                true => Some(Connector::Rustls(any_certificate().map_err(|error| NetError::unreachable(&url, error))?)),
                false => None,
            };
            let config = WebSocketConfig::default().max_message_size(Some(32 << 20)).max_frame_size(Some(32 << 20));
            let dial = connect_async_tls_with_config(&url, Some(config), true, connector);
            let dialled = tokio::time::timeout(TIMEOUT, dial).await;
            let (socket, _) = dialled
                .map_err(|_| NetError::unreachable(&url, "no answer in time"))?
                .map_err(|error| NetError::unreachable(&url, error))?;
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
        let agent = self.agent.clone();
        Box::pin(async move {
            let url = request.url.clone();
            let answered = tokio::task::spawn_blocking(move || answer(&agent, request)).await;
            answered.map_err(|error| NetError::unreachable(&url, error)).flatten()
        })
    }
}

fn answer(agent: &ureq::Agent, request: HttpRequest) -> Result<HttpReply, NetError> {
    let HttpRequest { method, url, range, body } = request;
    let sent = match method {
        Method::Post => agent.post(&url).content_type("application/json").send(body.unwrap_or_default()),
        Method::Get | Method::Head => {
            let mut builder = if method == Method::Head { agent.head(&url) } else { agent.get(&url) };
            if let Some(range) = &range {
                builder = builder.header("range", format!("bytes={}-{}", range.start, range.end.saturating_sub(1)));
            }
            builder.call()
        }
    };
    let mut reply = sent.map_err(|error| match error {
        ureq::Error::BadUri(_) => NetError::BadUrl(url.clone()),
        error => NetError::unreachable(&url, error),
    })?;
    let number = |name: &str| reply.headers().get(name)?.to_str().ok()?.parse::<u64>().ok();
    let length = number("content-length");
    let retry_after = number("retry-after").and_then(|seconds| u32::try_from(seconds).ok());
    let status = reply.status().as_u16();
    let body = match method {
        Method::Head => Vec::new(),
        _ => {
            let body = reply.body_mut().with_config().limit(MAX_REPLY).read_to_vec();
            body.map_err(|error| NetError::unreachable(&url, error))?
        }
    };
    Ok(HttpReply { status, length, retry_after, body })
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
