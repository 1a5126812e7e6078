//! The program of the node worker.

use std::rc::Rc;

use potluck_engine::GpuOptions;
use potluck_panel::{ToNode, ToPage};
use potluck_swarm::Pooling;
use wasm_bindgen::prelude::Closure;
use wasm_bindgen::{JsCast, JsValue};
use web_sys::{File, MessageEvent, MessagePort};

use super::files::PickedFile;
use super::same_browser::{DISCOVERY_PORT, DiscoveryPort};
use super::{js, logging, platform};
use crate::node::{Input, Node, NodeOptions};
use crate::platform::LocalFile;

/// The worker's first message: it listens.
pub(super) const UP: &str = "up";
/// The page's liveness check.
pub(super) const PING: &str = "ping";
/// The reply to it.
pub(super) const PONG: &str = "pong";

/// Runs a node in this worker. Messages are JSON of `ToNode` and `ToPage` as text (64-bit numbers survive it), or
/// `{ json, file }` if a file goes along, and before the first room `{ discovery }`, a port to the shared worker.
pub fn run() {
    logging::start();
    let page = Rc::new(|message: ToPage| match serde_json::to_string(&message) {
        Ok(json) => say(&json),
        Err(error) => log::error!("a message to the page cannot be written: {error}"),
    });
    let discovery = DiscoveryPort::default();
    let pooling = Pooling::default();
    let options = NodeOptions {
        gpu: GpuOptions::default(),
        page,
        slow: 1,
        hesitation: None,
        recorded: None,
        hidden: Vec::new(),
        pooling,
        on_demand: true,
        guesses: Default::default(),
        hints: Default::default(),
    };
    let (node, queue, inputs) = Node::new(platform(&discovery), options);
    let handler = Closure::<dyn FnMut(MessageEvent)>::new(move |event: MessageEvent| {
        let (json, file) = match event.data().as_string() {
            Some(text) if text == PING => return say(PONG),
            Some(json) => (Some(json), None),
            None => {
                if let Ok(port) = js::get(&event.data(), DISCOVERY_PORT).dyn_into::<MessagePort>() {
                    return discovery.set(port);
                }
                (js::get(&event.data(), "json").as_string(), js::get(&event.data(), "file").dyn_into::<File>().ok())
            }
        };
        let command = json.and_then(|json| serde_json::from_str::<ToNode>(&json).ok());
        let Some(command) = command else { return log::error!("a message of the page cannot be read") };
        let files = file.map(|file| Rc::new(PickedFile(file)) as Rc<dyn LocalFile>);
        inputs.send(Input::Page(command, files.into_iter().collect()));
    });
    js::worker().set_onmessage(Some(handler.as_ref().unchecked_ref()));
    // It lives as long as the worker.
    handler.forget();
    wasm_bindgen_futures::spawn_local(node.run(queue));
    say(UP);
}

fn say(text: &str) {
    if let Err(error) = js::worker().post_message(&JsValue::from_str(text)) {
        log::error!("the page cannot be reached: {}", js::error_text(&error));
    }
}
