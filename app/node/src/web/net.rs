//! The network of a browser's worker: its WebSockets, and the door to HTTP.

use std::cell::RefCell;
use std::rc::Rc;

use futures::StreamExt;
use futures::channel::{mpsc, oneshot};
use futures::future::{Either, LocalBoxFuture, select};
use js_sys::{ArrayBuffer, Uint8Array};
use potluck_relay_api::path;
use wasm_bindgen::JsCast;
use wasm_bindgen::prelude::Closure;
use web_sys::{BinaryType, Event, MessageEvent, WebSocket};

use super::http::Http;
use super::js;
use super::time::WorkerClock;
use crate::platform::{
    Clock, Content, HttpReply, HttpRequest, NetError, OpenedReply, Socket, SocketMessage, SocketSender, Transport,
    host_of,
};

/// Timeout for a WebSocket to open.
const DIAL_TIMEOUT: f64 = 20_000.0;

/// The network of a browser.
#[derive(Default)]
pub struct WebTransport {
    http: Rc<Http>,
}

/// Why a socket did not open, which browsers do not tell: whether a request reaches the relay.
async fn why_refused(http: &Http, url: &str) -> NetError {
    let host = host_of(url);
    let scheme = if url.starts_with("wss:") { "https" } else { "http" };
    let health = HttpRequest::get(format!("{scheme}://{host}{}", path::HEALTH));
    match http.reply(&health).await {
        Ok(reply) if reply.status == 200 => NetError::SocketsRefused { host: host.to_owned() },
        _ => NetError::unreachable(url, "the connection was refused"),
    }
}

/// A WebSocket with its handlers; closed on drop.
struct Handlers {
    socket: WebSocket,
    _message: Closure<dyn FnMut(MessageEvent)>,
    _open: Closure<dyn FnMut(Event)>,
    _close: Closure<dyn FnMut(Event)>,
}

impl Drop for Handlers {
    fn drop(&mut self) {
        self.socket.set_onmessage(None);
        self.socket.set_onopen(None);
        self.socket.set_onclose(None);
        // Closing twice is allowed.
        let _ = self.socket.close();
    }
}

/// The message of an event on a socket or a channel; `None` for types that are never sent.
pub(super) fn message(event: &MessageEvent) -> Option<SocketMessage> {
    let data = event.data();
    match data.as_string() {
        Some(text) => Some(SocketMessage::Text(text)),
        None => {
            data.dyn_into::<ArrayBuffer>().ok().map(|buffer| SocketMessage::Binary(Uint8Array::new(&buffer).to_vec()))
        }
    }
}

impl Transport for WebTransport {
    fn connect(&self, url: String) -> LocalBoxFuture<'static, Result<Socket, NetError>> {
        let http = self.http.clone();
        Box::pin(async move {
            let socket = WebSocket::new(&url).map_err(|_| NetError::BadUrl(url.clone()))?;
            socket.set_binary_type(BinaryType::Arraybuffer);
            let (sender, messages) = mpsc::unbounded();
            let (opened, open) = oneshot::channel();
            let opened = Rc::new(RefCell::new(Some(opened)));
            let on_message = {
                let sender = sender.clone();
                Closure::new(move |event: MessageEvent| {
                    if let Some(message) = message(&event) {
                        // Fails if the receiving half was dropped.
                        let _ = sender.unbounded_send(message);
                    }
                })
            };
            let on_open = {
                let opened = opened.clone();
                Closure::new(move |_: Event| {
                    if let Some(opened) = opened.borrow_mut().take() {
                        let _ = opened.send(());
                    }
                })
            };
            // A failed handshake closes too: dropping `opened` ends the wait.
            let on_close = Closure::new(move |_: Event| {
                opened.borrow_mut().take();
                sender.close_channel();
            });
            socket.set_onmessage(Some(on_message.as_ref().unchecked_ref()));
            socket.set_onopen(Some(on_open.as_ref().unchecked_ref()));
            socket.set_onclose(Some(on_close.as_ref().unchecked_ref()));
            let handlers = Handlers { socket: socket.clone(), _message: on_message, _open: on_open, _close: on_close };
            match select(open, WorkerClock.sleep(DIAL_TIMEOUT)).await {
                Either::Left((Ok(()), _)) => {}
                Either::Left((Err(_), _)) => return Err(why_refused(&http, &url).await),
                Either::Right(_) => return Err(NetError::unreachable(&url, "no answer in time")),
            }
            let messages = messages.inspect(move |_| {
                let _keeps_the_socket_open = &handlers;
            });
            Ok(Socket { sender: Rc::new(Sender(socket)), messages: messages.boxed_local() })
        })
    }

    fn request(&self, request: HttpRequest) -> LocalBoxFuture<'static, Result<HttpReply, NetError>> {
        let http = self.http.clone();
        Box::pin(
            async move { http.reply(&request).await.map_err(|failure| NetError::unreachable(&request.url, failure)) },
        )
    }

    fn open(&self, request: HttpRequest) -> LocalBoxFuture<'static, Result<OpenedReply, NetError>> {
        let http = self.http.clone();
        Box::pin(async move {
            let opened = http.open(&request).await.map_err(|failure| NetError::unreachable(&request.url, failure));
            let (reply, content) = opened?;
            Ok((reply, Box::new(content) as Box<dyn Content>))
        })
    }

    /// Chromium does. Firefox fetches all of a reply, and of WebKit it is not known. Only Chromium has this property, in pages that
    /// can have a GPU.
    fn holds_content_back(&self) -> bool {
        !js::get(&js::get(&js::worker(), "navigator"), "userAgentData").is_undefined()
    }

    fn hides_refusals(&self) -> bool {
        true
    }
}

struct Sender(WebSocket);

impl SocketSender for Sender {
    fn send(&self, message: SocketMessage) {
        let sent = match &message {
            SocketMessage::Text(text) => self.0.send_with_str(text),
            SocketMessage::Binary(bytes) => self.0.send_with_u8_array(bytes),
        };
        if let Err(error) = sent {
            log::warn!("a message was not sent: {}", js::error_text(&error));
        }
    }

    fn close(&self) {
        // Closing twice is allowed.
        let _ = self.0.close();
    }
}
