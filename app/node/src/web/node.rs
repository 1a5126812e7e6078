//! The program of the node worker.

use std::rc::Rc;

use potluck_panel::{ToNode, ToPage};
use wasm_bindgen::prelude::Closure;
use wasm_bindgen::{JsCast, JsValue};
use web_sys::{MessageEvent, MessagePort};

use super::connections::{CONNECTIONS_PORT, ConnectionsPort};
use super::files::PickedFile;
use super::same_browser::{DISCOVERY_PORT, DiscoveryPort};
use super::{js, logging, messages, platform};
use crate::node::{Input, Node, NodeOptions};
use crate::platform::LocalFile;

/// The worker's first message: it listens.
pub(super) const UP: &str = "up";
/// The page's liveness check.
pub(super) const PING: &str = "ping";
/// The reply to it.
pub(super) const PONG: &str = "pong";

/// Runs a node in this worker. It posts values of `ToPage` and gets `{ message, file }`, a value of `ToNode` and perhaps a file,
/// and before the first room `{ discovery }`, a port to the shared worker, and
/// `{ connections }`, a port to what makes connections to other devices.
pub fn run() {
    logging::start();
    let page = Rc::new(|message: ToPage| match messages::to_value(&message) {
        Ok(value) => say(&value),
        Err(error) => log::error!("a message to the page cannot be written: {error}"),
    });
    let discovery = DiscoveryPort::default();
    let options = NodeOptions { on_demand: true, ..NodeOptions::default() };
    let connections = ConnectionsPort::default();
    let (node, queue, inputs) = Node::new(platform(&discovery, &connections), page, options);
    let handler = Closure::<dyn FnMut(MessageEvent)>::new(move |event: MessageEvent| {
        let data = event.data();
        if data.as_string().as_deref() == Some(PING) {
            return say(&PONG.into());
        }
        if let Ok(port) = js::get(&data, DISCOVERY_PORT).dyn_into::<MessagePort>() {
            return discovery.set(port);
        }
        if let Ok(port) = js::get(&data, CONNECTIONS_PORT).dyn_into::<MessagePort>() {
            return connections.set(port);
        }
        let (command, file) = match messages::and_file::<ToNode>(&data) {
            Ok(read) => read,
            Err(error) => return log::error!("a message of the page cannot be read: {error}"),
        };
        let files = file.map(|file| Rc::new(PickedFile(file)) as Rc<dyn LocalFile>);
        inputs.send(Input::Page(command, files.into_iter().collect()));
    });
    js::worker().set_onmessage(Some(handler.as_ref().unchecked_ref()));
    // It lives as long as the worker.
    handler.forget();
    wasm_bindgen_futures::spawn_local(node.run(queue));
    say(&UP.into());
}

fn say(value: &JsValue) {
    if let Err(error) = js::worker().post_message(value) {
        log::error!("the page cannot be reached: {}", js::error_text(&error));
    }
}
