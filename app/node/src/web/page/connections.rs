//! Connections to other devices: the page half's side. It makes WebRTC connections for the node worker and hands over their data channels.
//!
//! There are no STUN or TURN servers: devices find each other in one network, and everywhere else the relay carries their messages.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use js_sys::{Array, ArrayBuffer, Object};
use wasm_bindgen::prelude::Closure;
use wasm_bindgen::{JsCast, JsValue};
use web_sys::{
    Event, MessageChannel, MessageEvent, MessagePort, RtcDataChannel, RtcDataChannelInit, RtcDataChannelType,
    RtcPeerConnection, RtcSdpType, RtcSessionDescriptionInit, Worker,
};

use super::super::connections::{
    ACCEPT, ANSWER, CHANNEL, CLOSE, CONNECTIONS_PORT, DESCRIPTION, ENDED, ID, OFFER, OPEN, RESET,
};
use super::js;
use crate::web::time::pause_for;

/// Looks at whether all addresses of this device are known: every 20 ms, for so many times at most.
const MOST_LOOKS: u32 = 100;
const LOOK_MILLIS: i32 = 20;
/// The number of the one channel, on both sides.
const CHANNEL_NUMBER: u16 = 0;

/// The connections of a node worker. Dropping them closes all.
pub(super) struct Connections {
    port: MessagePort,
    open: RefCell<BTreeMap<u32, Connection>>,
    on_message: RefCell<Option<OnMessage>>,
}

type OnMessage = Closure<dyn FnMut(MessageEvent)>;

struct Connection {
    connection: RtcPeerConnection,
    _on_state: Closure<dyn FnMut(Event)>,
    _bridge: Option<Bridge>,
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.connection.set_onconnectionstatechange(None);
        self.connection.close();
    }
}

/// Passes pieces on where a data channel cannot be transferred.
struct Bridge {
    port: MessagePort,
    channel: RtcDataChannel,
    _handlers: [Closure<dyn FnMut(MessageEvent)>; 2],
    _on_open: Closure<dyn FnMut(Event)>,
}

impl Drop for Bridge {
    fn drop(&mut self) {
        self.port.set_onmessage(None);
        self.port.close();
        self.channel.set_onmessage(None);
        self.channel.set_onopen(None);
    }
}

impl Connections {
    /// Gives the node worker a port for its wishes; `None` in browsers without WebRTC.
    pub fn serve(worker: &Worker) -> Option<Rc<Self>> {
        if js::get(&js_sys::global(), "RTCPeerConnection").is_undefined() {
            return None;
        }
        let ends = MessageChannel::new().ok()?;
        let (message, theirs) = (Object::new(), ends.port2());
        js::set(&message, CONNECTIONS_PORT, &theirs);
        worker.post_message_with_transfer(&message, &Array::of1(&theirs)).ok()?;
        let connections =
            Rc::new(Self { port: ends.port1(), open: RefCell::default(), on_message: RefCell::default() });
        let weak = Rc::downgrade(&connections);
        let on_message = Closure::<dyn FnMut(MessageEvent)>::new(move |event: MessageEvent| {
            if let Some(connections) = weak.upgrade() {
                connections.heard(&event.data());
            }
        });
        connections.port.set_onmessage(Some(on_message.as_ref().unchecked_ref()));
        *connections.on_message.borrow_mut() = Some(on_message);
        Some(connections)
    }

    fn heard(self: &Rc<Self>, data: &JsValue) {
        let Some(id) = js::get(data, ID).as_f64().map(|id| id as u32) else { return };
        let text = |what: &str| js::get(data, what).as_string();
        if text(RESET).is_some() {
            self.open.borrow_mut().clear();
        } else if text(CLOSE).is_some() {
            self.open.borrow_mut().remove(&id);
        } else if text(OFFER).is_some() {
            self.begin(id, None);
        } else if let Some(offer) = text(ANSWER) {
            self.begin(id, Some(offer));
        } else if let Some(answer) = text(ACCEPT) {
            let connection = self.open.borrow().get(&id).map(|open| open.connection.clone());
            let Some(connection) = connection else { return };
            let connections = self.clone();
            wasm_bindgen_futures::spawn_local(async move {
                let accepted = js::await_promise(
                    connection.set_remote_description(&description(RtcSdpType::Answer, &answer)).into(),
                );
                if let Err(error) = accepted.await {
                    connections.failed(id, &error);
                }
            });
        }
    }

    fn begin(self: &Rc<Self>, id: u32, offer: Option<String>) {
        if let Err(error) = self.prepare(id) {
            return self.failed(id, &error);
        }
        let connections = self.clone();
        wasm_bindgen_futures::spawn_local(async move {
            let connection = connections.open.borrow().get(&id).map(|open| open.connection.clone());
            let Some(connection) = connection else { return };
            match describe(&connection, offer).await {
                Ok(text) => connections.tell(id, DESCRIPTION, &text.into()),
                Err(error) => connections.failed(id, &error),
            }
        });
    }

    /// Makes the connection and its channel, and hands the channel over: it can be transferred only in the task that creates it.
    fn prepare(self: &Rc<Self>, id: u32) -> Result<(), JsValue> {
        let connection = RtcPeerConnection::new()?;
        let options = RtcDataChannelInit::new();
        options.set_negotiated(true);
        options.set_id(CHANNEL_NUMBER);
        let channel = connection.create_data_channel_with_data_channel_dict("frames", &options);
        let message = Object::new();
        js::set(&message, ID, &id.into());
        js::set(&message, CHANNEL, &channel);
        let bridge = match self.port.post_message_with_transferable(&message, &Array::of1(&channel)) {
            Ok(()) => None,
            Err(_) => Some(self.bridge(id, channel)?),
        };
        let (weak, changed) = (Rc::downgrade(self), connection.clone());
        let on_state = Closure::<dyn FnMut(Event)>::new(move |_: Event| {
            let state = js::get(&changed, "connectionState").as_string().unwrap_or_default();
            if let (Some(connections), "failed" | "closed") = (weak.upgrade(), state.as_str()) {
                connections.tell(id, ENDED, &JsValue::TRUE);
            }
        });
        connection.set_onconnectionstatechange(Some(on_state.as_ref().unchecked_ref()));
        let open = Connection { connection, _on_state: on_state, _bridge: bridge };
        self.open.borrow_mut().insert(id, open);
        Ok(())
    }

    /// Hands over a port in place of the channel.
    fn bridge(&self, id: u32, channel: RtcDataChannel) -> Result<Bridge, JsValue> {
        let ends = MessageChannel::new()?;
        let (port, theirs) = (ends.port1(), ends.port2());
        channel.set_binary_type(RtcDataChannelType::Arraybuffer);
        let (out, back) = (channel.clone(), port.clone());
        let from_worker = Closure::<dyn FnMut(MessageEvent)>::new(move |event: MessageEvent| {
            if let Ok(piece) = event.data().dyn_into::<ArrayBuffer>() {
                // It fails if the channel has closed, which the missing pings tell.
                let _ = out.send_with_array_buffer(&piece);
            }
        });
        let from_channel = Closure::<dyn FnMut(MessageEvent)>::new(move |event: MessageEvent| {
            let piece = event.data();
            let _ = back.post_message_with_transferable(&piece, &Array::of1(&piece));
        });
        let opened = port.clone();
        let on_open = Closure::<dyn FnMut(Event)>::new(move |_: Event| {
            let _ = opened.post_message(&OPEN.into());
        });
        port.set_onmessage(Some(from_worker.as_ref().unchecked_ref()));
        channel.set_onmessage(Some(from_channel.as_ref().unchecked_ref()));
        channel.set_onopen(Some(on_open.as_ref().unchecked_ref()));
        let message = Object::new();
        js::set(&message, ID, &id.into());
        js::set(&message, CHANNEL, &theirs);
        self.port.post_message_with_transferable(&message, &Array::of1(&theirs))?;
        Ok(Bridge { port, channel, _handlers: [from_worker, from_channel], _on_open: on_open })
    }

    fn failed(&self, id: u32, error: &JsValue) {
        log::info!("no direct connection: {}", js::error_text(error));
        self.open.borrow_mut().remove(&id);
        self.tell(id, ENDED, &JsValue::TRUE);
    }

    fn tell(&self, id: u32, what: &str, value: &JsValue) {
        let message = Object::new();
        js::set(&message, ID, &id.into());
        js::set(&message, what, value);
        if let Err(error) = self.port.post_message(&message) {
            log::warn!("the node worker hears nothing of a connection: {}", js::error_text(&error));
        }
    }
}

impl Drop for Connections {
    fn drop(&mut self) {
        self.port.set_onmessage(None);
        self.port.close();
    }
}

fn description(kind: RtcSdpType, text: &str) -> RtcSessionDescriptionInit {
    let description = RtcSessionDescriptionInit::new(kind);
    description.set_sdp(text);
    description
}

/// The description of this side, with all of its addresses: an offer, or the answer to one.
async fn describe(connection: &RtcPeerConnection, offer: Option<String>) -> Result<String, JsValue> {
    let own = match offer {
        None => js::await_promise(connection.create_offer().into()).await?,
        Some(offer) => {
            let theirs = description(RtcSdpType::Offer, &offer);
            js::await_promise(connection.set_remote_description(&theirs).into()).await?;
            js::await_promise(connection.create_answer().into()).await?
        }
    };
    js::await_promise(connection.set_local_description(own.unchecked_ref()).into()).await?;
    let is_complete = || js::get(connection, "iceGatheringState").as_string().as_deref() == Some("complete");
    for _ in 0..MOST_LOOKS {
        if is_complete() {
            break;
        }
        pause_for(LOOK_MILLIS).await;
    }
    let text = js::get(&js::get(connection, "localDescription"), "sdp").as_string();
    text.ok_or_else(|| js_sys::Error::new("the browser describes nothing").into())
}
