//! Same-browser discovery through a shared worker (`app/web/loaders/same_browser.js`): it knows which node is in which room,
//! and gives each two nodes of one room the ends of a channel, from worker to worker.
//!
//! Every script here has this page's origin. [`crate::direct`] verifies what nodes claim.

use std::cell::RefCell;
use std::rc::Rc;

use futures::StreamExt;
use futures::channel::mpsc;
use futures::stream::LocalBoxStream;
use js_sys::{Array, Object, Uint8Array};
use potluck_panel::BUILD;
use wasm_bindgen::prelude::Closure;
use wasm_bindgen::{JsCast, JsValue};
use web_sys::{MessageEvent, MessagePort, SharedWorker, Worker};

use super::js;
use super::net::message;
use crate::platform::{SameBrowser, Socket, SocketMessage, SocketSender};

/// The field with the port to the shared worker, in a message to the node worker.
pub(super) const DISCOVERY_PORT: &str = "discovery";

/// Page half: gives a node worker a port to the shared worker, which only a page can start. In browsers without shared workers
/// everything goes through the relay.
pub(super) fn connect(worker: &Worker) {
    // Tabs of another build may use another protocol, so they get a shared worker of their own.
    let connected = SharedWorker::new(&format!("same_browser.js?v={BUILD}")).and_then(|shared| {
        let (message, port) = (Object::new(), shared.port());
        js::set(&message, DISCOVERY_PORT, &port);
        worker.post_message_with_transfer(&message, &Array::of1(&port))
    });
    if let Err(error) = connected {
        log::info!("other tabs of this browser are reached through the relay: {}", js::error_text(&error));
    }
}

/// The node worker's port to the shared worker, once the page sent it.
#[derive(Clone, Default)]
pub(super) struct DiscoveryPort(Rc<RefCell<Option<MessagePort>>>);

impl DiscoveryPort {
    /// The page sent the port.
    pub fn set(&self, port: MessagePort) {
        *self.0.borrow_mut() = Some(port);
    }
}

impl SameBrowser for DiscoveryPort {
    fn discover(&self, room: &str, route: u32) -> LocalBoxStream<'static, (u32, Socket)> {
        let Some(port) = self.0.borrow().clone() else { return futures::stream::empty().boxed_local() };
        let (found, channels) = mpsc::unbounded();
        let on_message = Closure::<dyn FnMut(MessageEvent)>::new(move |event: MessageEvent| {
            let route = js::get(&event.data(), "route").as_f64();
            let port = js::get(&event, "ports").dyn_into::<Array>().ok().and_then(|ports| ports.get(0).dyn_into().ok());
            if let (Some(route), Some(port)) = (route, port) {
                // Fails if the stream was dropped.
                let _ = found.unbounded_send((route as u32, channel(port)));
            }
        });
        port.set_onmessage(Some(on_message.as_ref().unchecked_ref()));
        let here = Object::new();
        js::set(&here, "room", &room.into());
        js::set(&here, "route", &route.into());
        post(&port, &here);
        let announcement = Announcement { port, _on_message: on_message };
        let channels = channels.inspect(move |_| {
            let _keep = &announcement;
        });
        channels.boxed_local()
    }
}

/// While it lives, other nodes can find this one.
struct Announcement {
    port: MessagePort,
    _on_message: Closure<dyn FnMut(MessageEvent)>,
}

impl Drop for Announcement {
    fn drop(&mut self) {
        self.port.set_onmessage(None);
        post(&self.port, &JsValue::NULL);
    }
}

fn post(port: &MessagePort, message: &JsValue) {
    if let Err(error) = port.post_message(message) {
        log::warn!("other tabs of this browser cannot find this one: {}", js::error_text(&error));
    }
}

/// A channel as a socket; it closes when either half is dropped.
fn channel(port: MessagePort) -> Socket {
    let (sender, messages) = mpsc::unbounded();
    let ended = sender.clone();
    let on_message = Closure::<dyn FnMut(MessageEvent)>::new(move |event: MessageEvent| {
        if let Some(message) = message(&event) {
            // Fails if the receiving half was dropped.
            let _ = sender.unbounded_send(message);
        }
    });
    // Setting the handler starts the port; earlier messages have waited in it.
    port.set_onmessage(Some(on_message.as_ref().unchecked_ref()));
    let open = Rc::new(Channel { port, ended });
    let kept = (open.clone(), on_message);
    let messages = messages.inspect(move |_| {
        let _keep = &kept;
    });
    Socket { sender: open, messages: messages.boxed_local() }
}

struct Channel {
    port: MessagePort,
    ended: mpsc::UnboundedSender<SocketMessage>,
}

impl SocketSender for Channel {
    fn send(&self, message: SocketMessage) {
        let sent = match message {
            SocketMessage::Text(text) => self.port.post_message(&text.into()),
            SocketMessage::Binary(bytes) => {
                // One copy out of the WebAssembly memory; the buffer itself is transferred to the other tab.
                let buffer = Uint8Array::from(bytes.as_slice()).buffer();
                self.port.post_message_with_transferable(&buffer, &Array::of1(&buffer))
            }
        };
        if let Err(error) = sent {
            log::warn!("a message to another tab was not sent: {}", js::error_text(&error));
        }
    }

    fn close(&self) {
        self.port.set_onmessage(None);
        self.port.close();
        self.ended.close_channel();
    }
}

impl Drop for Channel {
    fn drop(&mut self) {
        self.close();
    }
}
