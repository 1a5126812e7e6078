//! Connections to other devices: the node worker's side. The page half makes them, because a worker cannot, and hands over their
//! channels: the data channel itself where the browser can transfer it, else a port through which the page passes pieces on.

use std::cell::RefCell;
use std::rc::Rc;

use futures::StreamExt;
use futures::channel::mpsc;
use futures::stream::LocalBoxStream;
use js_sys::{ArrayBuffer, Object, Uint8Array};
use wasm_bindgen::prelude::Closure;
use wasm_bindgen::{JsCast, JsValue};
use web_sys::{MessageEvent, MessagePort, RtcDataChannel, RtcDataChannelType};

use super::js;
use super::time::pause_for;
use crate::direct::{Assembler, ConnectionId, cut};
use crate::platform::{ConnectionEvent, PeerConnections, Socket, SocketMessage, SocketSender};

/// The field with the port to the page half, in a message to the node worker.
pub(super) const CONNECTIONS_PORT: &str = "connections";
/// The fields of messages on that port: the number of a connection, and what is to be done or has happened.
pub(super) const ID: &str = "id";
pub(super) const OFFER: &str = "offer";
pub(super) const ANSWER: &str = "answer";
pub(super) const ACCEPT: &str = "accept";
pub(super) const CLOSE: &str = "close";
pub(super) const RESET: &str = "reset";
pub(super) const DESCRIPTION: &str = "description";
pub(super) const CHANNEL: &str = "channel";
pub(super) const OPEN: &str = "open";
pub(super) const ENDED: &str = "ended";

/// Between two looks at whether a channel is open: its event can be lost while it is transferred.
const LOOK_MILLIS: i32 = 50;

/// The node worker's port to the page half, once the page sent it.
#[derive(Clone, Default)]
pub(super) struct ConnectionsPort(Rc<RefCell<Option<MessagePort>>>);

impl ConnectionsPort {
    /// The page sent the port.
    pub fn set(&self, port: MessagePort) {
        *self.0.borrow_mut() = Some(port);
    }

    fn ask(&self, connection: ConnectionId, what: &str, text: &str) {
        let message = Object::new();
        js::set(&message, ID, &connection.0.into());
        js::set(&message, what, &text.into());
        if let Some(port) = &*self.0.borrow()
            && let Err(error) = port.post_message(&message)
        {
            log::warn!("no connections can be made: {}", js::error_text(&error));
        }
    }
}

impl PeerConnections for ConnectionsPort {
    fn events(&self) -> LocalBoxStream<'static, ConnectionEvent> {
        let Some(port) = self.0.borrow().clone() else { return futures::stream::empty().boxed_local() };
        self.ask(ConnectionId(0), RESET, "");
        let (happened, events) = mpsc::unbounded();
        let on_message = Closure::<dyn FnMut(MessageEvent)>::new(move |event: MessageEvent| {
            heard(&event.data(), &happened);
        });
        port.set_onmessage(Some(on_message.as_ref().unchecked_ref()));
        let kept = Listening { port, _on_message: on_message };
        let events = events.inspect(move |_| {
            let _keep = &kept;
        });
        events.boxed_local()
    }

    fn offer(&self, connection: ConnectionId) {
        self.ask(connection, OFFER, "");
    }

    fn answer(&self, connection: ConnectionId, offer: String) {
        self.ask(connection, ANSWER, &offer);
    }

    fn accept(&self, connection: ConnectionId, answer: String) {
        self.ask(connection, ACCEPT, &answer);
    }

    fn close(&self, connection: ConnectionId) {
        self.ask(connection, CLOSE, "");
    }
}

/// While it lives, the page half is heard.
struct Listening {
    port: MessagePort,
    _on_message: Closure<dyn FnMut(MessageEvent)>,
}

impl Drop for Listening {
    fn drop(&mut self) {
        self.port.set_onmessage(None);
    }
}

type Happened = mpsc::UnboundedSender<ConnectionEvent>;

fn heard(data: &JsValue, happened: &Happened) {
    let Some(id) = js::get(data, ID).as_f64() else { return };
    let connection = ConnectionId(id as u32);
    let tell = |event| {
        // Fails if the stream was dropped.
        let _ = happened.unbounded_send(event);
    };
    if let Some(description) = js::get(data, DESCRIPTION).as_string() {
        tell(ConnectionEvent::Described(connection, description));
    } else if js::get(data, ENDED).is_truthy() {
        tell(ConnectionEvent::Ended(connection));
    } else {
        let channel = js::get(data, CHANNEL);
        let wire = match channel.dyn_into::<MessagePort>() {
            Ok(port) => Wire::Port(port),
            Err(channel) => Wire::Channel(channel.unchecked_into()),
        };
        open(connection, wire, happened.clone());
    }
}

/// What carries pieces.
#[derive(Clone)]
enum Wire {
    Channel(RtcDataChannel),
    Port(MessagePort),
}

/// Listens on a channel, and tells when it is open.
fn open(connection: ConnectionId, wire: Wire, happened: Happened) {
    let (sender, messages) = mpsc::unbounded();
    let channel = Rc::new(Channel { wire: wire.clone(), ended: sender.clone() });
    let socket = RefCell::new(Some(Socket { sender: channel, messages: messages.boxed_local() }));
    let opened = Rc::new(move || {
        if let Some(socket) = socket.take() {
            // Fails if the stream was dropped.
            let _ = happened.unbounded_send(ConnectionEvent::Opened(connection, socket));
        }
    });
    let (mut assembler, port_opened) = (Assembler::default(), opened.clone());
    let on_message = Closure::<dyn FnMut(MessageEvent)>::new(move |event: MessageEvent| {
        let data = event.data();
        if data.as_string().as_deref() == Some(OPEN) {
            return port_opened();
        }
        let Ok(buffer) = data.dyn_into::<ArrayBuffer>() else { return };
        match assembler.push(&Uint8Array::new(&buffer).to_vec()) {
            // Fails if the receiving half was dropped.
            Ok(Some(message)) => drop(sender.unbounded_send(message)),
            Ok(None) => {}
            // Nothing more is read, so pings stay without an answer, and the link gives the channel up.
            Err(_) => sender.close_channel(),
        }
    });
    let handler = Some(on_message.as_ref().unchecked_ref());
    match &wire {
        Wire::Port(port) => port.set_onmessage(handler),
        Wire::Channel(channel) => {
            channel.set_binary_type(RtcDataChannelType::Arraybuffer);
            channel.set_onmessage(handler);
            let channel = channel.clone();
            wasm_bindgen_futures::spawn_local(async move {
                while channel_state(&channel) == "connecting" {
                    pause_for(LOOK_MILLIS).await;
                }
                if channel_state(&channel) == "open" {
                    opened();
                }
            });
        }
    }
    // How long events may come only the browser knows.
    on_message.forget();
}

fn channel_state(channel: &RtcDataChannel) -> String {
    js::get(channel, "readyState").as_string().unwrap_or_default()
}

struct Channel {
    wire: Wire,
    ended: mpsc::UnboundedSender<SocketMessage>,
}

impl Channel {
    fn piece(&self, bytes: &[u8]) -> Result<(), JsValue> {
        match &self.wire {
            Wire::Channel(channel) => channel.send_with_u8_array(bytes),
            Wire::Port(port) => {
                let buffer = Uint8Array::from(bytes).buffer();
                port.post_message_with_transferable(&buffer, &js_sys::Array::of1(&buffer))
            }
        }
    }
}

impl SocketSender for Channel {
    fn send(&self, message: SocketMessage) {
        let sent = cut(&message).iter().try_for_each(|piece| self.piece(piece));
        if let Err(error) = sent {
            // The other side misses a piece, so nothing more may follow.
            log::info!("a message to another device was not sent: {}", js::error_text(&error));
            self.close();
        }
    }

    fn close(&self) {
        match &self.wire {
            Wire::Channel(channel) => {
                channel.set_onmessage(None);
                channel.close();
            }
            Wire::Port(port) => {
                port.set_onmessage(None);
                port.close();
            }
        }
        self.ended.close_channel();
    }
}
