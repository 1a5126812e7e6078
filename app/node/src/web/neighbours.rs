//! Tabs of this browser, met through a shared worker (`app/web/loaders/neighbours.js`): it knows who is in which room and
//! gives each two of one room the ends of a channel, from worker to worker.
//!
//! Whoever runs here has this page's origin. What they say of themselves is checked by [`crate::direct`].

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
use crate::platform::{Neighbours, Socket, SocketMessage, SocketSender};

/// The field of a message to the node worker that holds its port to the shared worker.
pub(super) const INTRODUCER: &str = "introducer";

/// Page half: gives a node worker a port to the shared worker, which only a page can start. Without it, as on browsers that
/// have none, everything goes through the relay.
pub(super) fn introduce(worker: &Worker) {
    // Tabs of another build may speak otherwise: they meet elsewhere.
    let introduced = SharedWorker::new(&format!("/neighbours.js?v={BUILD}")).and_then(|shared| {
        let (message, port) = (Object::new(), shared.port());
        js::set(&message, INTRODUCER, &port);
        worker.post_message_with_transfer(&message, &Array::of1(&port))
    });
    if let Err(error) = introduced {
        log::info!("other tabs of this browser are reached through the relay: {}", js::error_text(&error));
    }
}

/// The node worker's way to the shared worker.
#[derive(Clone, Default)]
pub(super) struct Introducer(Rc<RefCell<Option<MessagePort>>>);

impl Introducer {
    /// The page gave a port.
    pub fn found(&self, port: MessagePort) {
        *self.0.borrow_mut() = Some(port);
    }
}

impl Neighbours for Introducer {
    fn meet(&self, room: &str, route: u32) -> LocalBoxStream<'static, (u32, Socket)> {
        let Some(introducer) = self.0.borrow().clone() else { return futures::stream::empty().boxed_local() };
        let (met, meetings) = mpsc::unbounded();
        let on_message = Closure::<dyn FnMut(MessageEvent)>::new(move |event: MessageEvent| {
            let route = js::get(&event.data(), "route").as_f64();
            let port = js::get(&event, "ports").dyn_into::<Array>().ok().and_then(|ports| ports.get(0).dyn_into().ok());
            if let (Some(route), Some(port)) = (route, port) {
                // The stream may be gone already.
                let _ = met.unbounded_send((route as u32, channel(port)));
            }
        });
        introducer.set_onmessage(Some(on_message.as_ref().unchecked_ref()));
        let here = Object::new();
        js::set(&here, "room", &room.into());
        js::set(&here, "route", &route.into());
        say(&introducer, &here);
        let meeting = Meeting { introducer, _on_message: on_message };
        let meetings = meetings.inspect(move |_| {
            let _keeps_it_open = &meeting;
        });
        meetings.boxed_local()
    }
}

/// While it lives, this node can be met.
struct Meeting {
    introducer: MessagePort,
    _on_message: Closure<dyn FnMut(MessageEvent)>,
}

impl Drop for Meeting {
    fn drop(&mut self) {
        self.introducer.set_onmessage(None);
        say(&self.introducer, &JsValue::NULL);
    }
}

fn say(introducer: &MessagePort, message: &JsValue) {
    if let Err(error) = introducer.post_message(message) {
        log::warn!("other tabs of this browser do not hear of this one: {}", js::error_text(&error));
    }
}

/// A channel with its handler; closes when either half is dropped.
fn channel(port: MessagePort) -> Socket {
    let (sender, messages) = mpsc::unbounded();
    let ended = sender.clone();
    let on_message = Closure::<dyn FnMut(MessageEvent)>::new(move |event: MessageEvent| {
        if let Some(message) = message(&event) {
            // The receiving half may be gone already.
            let _ = sender.unbounded_send(message);
        }
    });
    // Setting the handler starts the port: what came before waited.
    port.set_onmessage(Some(on_message.as_ref().unchecked_ref()));
    let open = Rc::new(Channel { port, ended });
    let kept = (open.clone(), on_message);
    let messages = messages.inspect(move |_| {
        let _keeps_the_channel_open = &kept;
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
                // The one copy out of this program's memory goes to the other tab as it is.
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
