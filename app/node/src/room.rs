//! The line to a room: dials, dials again with back-off, and turns what the relay says into events.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use futures::StreamExt;
use futures::future::{AbortHandle, Abortable};
use potluck_plan::PeerId;
use potluck_protocol::{FrameError, decode, encode};
use potluck_swarm::{Destination, Event, RelayRoute};

use crate::control::{Control, EVERYONE, Request, split_route, with_route};
use crate::events::Inputs;
use crate::node::Input;
use crate::platform::{Platform, SocketMessage, SocketSender};
use crate::relay::Relay;

/// First and longest wait between two tries, in milliseconds.
const BACK_OFF: (f64, f64) = (500.0, 8_000.0);

/// How the line stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LineState {
    /// Dialling for the first time.
    Connecting,
    /// In the room.
    Connected,
    /// Lost; trying again.
    Reconnecting {
        /// Which try.
        attempt: u32,
    },
    /// Ended for good: one sentence.
    Closed(String),
}

/// How the host's room is to be listed.
#[derive(Clone, Debug)]
pub struct Listing {
    /// The secret of `POST /rooms`.
    pub owner: String,
    /// Its name.
    pub title: String,
    /// On everyone's door.
    pub visible: bool,
}

/// The line to a room; ends when dropped.
pub struct RoomLine {
    sender: Rc<RefCell<Option<Rc<dyn SocketSender>>>>,
    abort: AbortHandle,
    me: PeerId,
}

/// What a line needs.
pub struct LineOptions {
    /// The relay.
    pub relay: Relay,
    /// The room's id.
    pub room: String,
    /// Make the room if the relay does not know it. Set for the host; a guest may once it was in.
    pub create: bool,
    /// The host's listing, said again after each connection.
    pub listing: Option<Listing>,
}

impl RoomLine {
    /// Starts dialling. States come as [`Input::Line`], everything else as events.
    pub fn open(platform: &Platform, me: PeerId, options: LineOptions, inputs: Inputs) -> Self {
        let sender = Rc::new(RefCell::new(None));
        let (abort, registration) = AbortHandle::new_pair();
        let dialler = Dialler { platform: platform.clone(), options, inputs, sender: sender.clone() };
        let task = Abortable::new(dialler.run(), registration);
        platform.spawn.spawn(Box::pin(async move {
            // Aborted means that the line was dropped: nobody wants to know.
            let _ = task.await;
        }));
        Self { sender, abort, me }
    }

    /// Sends a frame; it is lost if the line is down, as frames on the way would be.
    ///
    /// # Errors
    /// The frame is too long for any receiver.
    pub fn send(&self, to: Destination, frame: &potluck_protocol::Frame) -> Result<(), FrameError> {
        let route = match to {
            Destination::Route(RelayRoute(route)) => route,
            Destination::Everyone => EVERYONE,
        };
        let sender = self.sender.borrow().clone();
        if let Some(sender) = sender {
            sender.send(SocketMessage::Binary(with_route(route, &encode(self.me, frame)?)));
        }
        Ok(())
    }
}

impl Drop for RoomLine {
    fn drop(&mut self) {
        if let Some(sender) = self.sender.borrow_mut().take() {
            sender.close();
        }
        self.abort.abort();
    }
}

struct Dialler {
    platform: Platform,
    options: LineOptions,
    inputs: Inputs,
    sender: Rc<RefCell<Option<Rc<dyn SocketSender>>>>,
}

/// How a connection ended.
enum Ended {
    /// It broke: try again.
    Lost,
    /// Trying again makes no sense.
    Refused(String),
}

impl Dialler {
    async fn run(self) {
        let mut attempt = 0;
        let welcomed = Cell::new(false);
        self.state(LineState::Connecting);
        loop {
            let create = self.options.create || welcomed.get();
            let url = self.options.relay.room_url(&self.options.room, create);
            let ended = match self.platform.transport.connect(url).await {
                Ok(socket) => {
                    let before = welcomed.replace(false);
                    *self.sender.borrow_mut() = Some(socket.sender.clone());
                    let ended = self.listen(socket.messages, &welcomed).await;
                    self.sender.borrow_mut().take();
                    if welcomed.get() {
                        attempt = 0;
                        self.inputs.event(Event::Disconnected);
                    } else {
                        welcomed.set(before);
                    }
                    ended
                }
                Err(error) => {
                    log::info!("the relay does not answer: {error}");
                    Ended::Lost
                }
            };
            if let Ended::Refused(sentence) = ended {
                return self.state(LineState::Closed(sentence));
            }
            attempt += 1;
            self.state(LineState::Reconnecting { attempt });
            self.platform.clock.sleep(back_off(attempt)).await;
        }
    }

    async fn listen(
        &self,
        mut messages: impl futures::Stream<Item = SocketMessage> + Unpin,
        in_room: &Cell<bool>,
    ) -> Ended {
        while let Some(message) = messages.next().await {
            match message {
                SocketMessage::Binary(bytes) => self.frame(&bytes),
                SocketMessage::Text(text) => match Control::parse(&text) {
                    Some(Control::Welcome { members }) => {
                        in_room.set(true);
                        self.list();
                        self.state(LineState::Connected);
                        let members = members.into_iter().map(RelayRoute).collect();
                        self.inputs.event(Event::Connected { members });
                    }
                    Some(control) => {
                        if let Some(ended) = self.control(control) {
                            return ended;
                        }
                    }
                    None => log::warn!("a text message that is not of the relay's protocol was ignored"),
                },
            }
        }
        Ended::Lost
    }

    fn control(&self, control: Control) -> Option<Ended> {
        match control {
            Control::Join { route } => self.inputs.event(Event::RouteJoined(RelayRoute(route))),
            Control::Leave { route } | Control::Undeliverable { route } => {
                self.inputs.event(Event::RouteLeft(RelayRoute(route)));
            }
            Control::BadFrame { message } => log::error!("the relay dropped a frame: {message}"),
            Control::Limited { wait_ms } => log::warn!("the relay waits {wait_ms} ms: this device sends too fast"),
            Control::Refused { reason, message } => {
                // A relay that stops or is full for a moment may take us in a little later.
                return Some(match reason.as_str() {
                    "shutting-down" | "too-many-connections" => Ended::Lost,
                    _ => Ended::Refused(message),
                });
            }
            Control::Evicted { message } => {
                self.inputs.send(Input::Notice(message));
                return Some(Ended::Lost);
            }
            Control::Shutdown { message } => log::info!("{message}"),
            Control::Welcome { .. } | Control::Unknown => {}
        }
        None
    }

    fn frame(&self, message: &[u8]) {
        let Some((route, frame)) = split_route(message) else { return };
        match decode(frame) {
            Ok((from, frame)) => self.inputs.event(Event::Frame { route: RelayRoute(route), from, frame }),
            Err(error) => {
                log::warn!("a frame of route {route} was dropped: {error}");
                self.inputs.send(Input::BadFrame(error));
            }
        }
    }

    fn list(&self) {
        let (Some(listing), Some(sender)) = (&self.options.listing, self.sender.borrow().clone()) else { return };
        let Listing { owner, title, visible } = listing.clone();
        if let Ok(text) = serde_json::to_string(&Request::Listing { owner, title, visible }) {
            sender.send(SocketMessage::Text(text));
        }
    }

    fn state(&self, state: LineState) {
        self.inputs.send(Input::Line(state));
    }
}

/// Milliseconds before the n-th try, from 1.
fn back_off(attempt: u32) -> f64 {
    let (first, longest) = BACK_OFF;
    (first * f64::from(2u32.saturating_pow(attempt.saturating_sub(1).min(16)))).min(longest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_the_longest() {
        let waits: Vec<f64> = (1..=7).map(back_off).collect();
        assert_eq!(waits, [500.0, 1_000.0, 2_000.0, 4_000.0, 8_000.0, 8_000.0, 8_000.0]);
    }
}
