//! The line to a room: dials, dials again with back-off, and turns what the relay and tabs of this browser say into events.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use futures::StreamExt;
use futures::future::{AbortHandle, Abortable};
use futures::stream::{LocalBoxStream, SelectAll, once};
use potluck_plan::PeerId;
use potluck_protocol::{FrameError, decode, encode};
use potluck_swarm::{Destination, Event, RelayRoute};

use crate::control::{Control, EVERYONE, Request, split_route};
use crate::direct::{DirectLinks, Frames};
use crate::events::Inputs;
use crate::node::Input;
use crate::platform::{Platform, Socket, SocketMessage, SocketSender};
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
    connection: Rc<RefCell<Option<Connection>>>,
    direct: Rc<Cell<u64>>,
    abort: AbortHandle,
    me: PeerId,
}

/// What there is while the relay is connected.
struct Connection {
    relay: Rc<dyn SocketSender>,
    links: DirectLinks,
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
        let (connection, direct) = (Rc::default(), Rc::default());
        let (abort, registration) = AbortHandle::new_pair();
        let dialler = Dialler {
            platform: platform.clone(),
            options,
            inputs,
            connection: Rc::clone(&connection),
            direct: Rc::clone(&direct),
        };
        let task = Abortable::new(dialler.run(), registration);
        platform.spawn.spawn(Box::pin(async move {
            // Aborted means that the line was dropped: nobody wants to know.
            let _ = task.await;
        }));
        Self { connection, direct, abort, me }
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
        if let Some(connection) = self.connection.borrow_mut().as_mut() {
            connection.links.send(route, encode(self.me, frame)?);
        }
        Ok(())
    }

    /// Frames that came straight from other tabs of this browser.
    pub fn direct_frames(&self) -> u64 {
        self.direct.get()
    }
}

impl Drop for RoomLine {
    fn drop(&mut self) {
        if let Some(connection) = self.connection.borrow_mut().take() {
            connection.relay.close();
        }
        self.abort.abort();
    }
}

struct Dialler {
    platform: Platform,
    options: LineOptions,
    inputs: Inputs,
    connection: Rc<RefCell<Option<Connection>>>,
    direct: Rc<Cell<u64>>,
}

/// What comes while the relay is connected.
enum Incoming {
    Relay(SocketMessage),
    /// The relay's connection ended.
    Ended,
    /// A channel to a tab of this browser that says it has this route.
    Neighbour(u32, Socket),
    /// A message on it.
    Direct(u32, SocketMessage),
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
                    let relay = socket.sender.clone();
                    let links = DirectLinks::new(relay.clone(), self.platform.random);
                    *self.connection.borrow_mut() = Some(Connection { relay, links });
                    let ended = self.listen(socket.messages, &welcomed).await;
                    self.connection.borrow_mut().take();
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

    async fn listen(&self, messages: LocalBoxStream<'static, SocketMessage>, in_room: &Cell<bool>) -> Ended {
        let mut incoming = SelectAll::new();
        let ended = once(async { Incoming::Ended });
        incoming.push(messages.map(Incoming::Relay).chain(ended).boxed_local());
        while let Some(came) = incoming.next().await {
            match came {
                Incoming::Relay(SocketMessage::Binary(bytes)) => self.relayed(&bytes),
                Incoming::Relay(SocketMessage::Text(text)) => match serde_json::from_str(&text) {
                    Ok(Control::Welcome { route, members, .. }) => {
                        in_room.set(true);
                        self.list();
                        self.state(LineState::Connected);
                        let members = members.into_iter().map(|route| RelayRoute(route.0)).collect();
                        self.inputs.event(Event::Connected { members });
                        let neighbours = self.platform.neighbours.meet(&self.options.room, route.0);
                        incoming
                            .push(neighbours.map(|(route, socket)| Incoming::Neighbour(route, socket)).boxed_local());
                    }
                    Ok(control) => {
                        if let Some(ended) = self.control(control) {
                            return ended;
                        }
                    }
                    Err(_) => log::warn!("a text message that is not of the relay's protocol was ignored"),
                },
                Incoming::Ended => break,
                Incoming::Neighbour(route, socket) => {
                    self.links(|links| links.opened(route, socket.sender));
                    incoming.push(socket.messages.map(move |message| Incoming::Direct(route, message)).boxed_local());
                }
                Incoming::Direct(route, message) => self.heard(route, message),
            }
        }
        Ended::Lost
    }

    fn control(&self, control: Control) -> Option<Ended> {
        match control {
            Control::Join { route } => self.inputs.event(Event::RouteJoined(RelayRoute(route.0))),
            Control::Leave { route, .. } | Control::Undeliverable { route } => {
                self.links(|links| links.left(route.0));
                self.inputs.event(Event::RouteLeft(RelayRoute(route.0)));
            }
            Control::BadFrame { message, .. } => log::error!("the relay dropped a frame: {message}"),
            Control::Limited { wait_ms } => log::warn!("the relay waits {wait_ms} ms: this device sends too fast"),
            Control::Refused { reason, message } => {
                // A relay that stops or is full for a moment may take us in a little later.
                return Some(if reason.is_temporary() { Ended::Lost } else { Ended::Refused(message) });
            }
            Control::Evicted { message, .. } => {
                self.inputs.send(Input::Notice(message));
                return Some(Ended::Lost);
            }
            Control::Shutdown { message } => log::info!("{message}"),
            Control::Welcome { .. } | Control::Pong { .. } | Control::Unknown => {}
        }
        None
    }

    fn relayed(&self, message: &[u8]) {
        let Some((route, message)) = split_route(message) else { return };
        match self.links(|links| links.relayed(route, message)) {
            Some(Frames::One(frame)) => self.frame(route, frame),
            Some(Frames::Many(frames)) => frames.iter().for_each(|frame| self.frame(route, frame)),
            None => {}
        }
    }

    fn heard(&self, route: u32, message: SocketMessage) {
        let is_frame = matches!(message, SocketMessage::Binary(_));
        self.direct.update(|frames| frames + u64::from(is_frame));
        let frames = self.links(|links| links.heard(route, message)).unwrap_or_default();
        frames.iter().for_each(|frame| self.frame(route, frame));
    }

    fn frame(&self, route: u32, frame: &[u8]) {
        match decode(frame) {
            Ok((from, frame)) => self.inputs.event(Event::Frame { route: RelayRoute(route), from, frame }),
            Err(error) => {
                log::warn!("a frame of route {route} was dropped: {error}");
                self.inputs.send(Input::BadFrame(error));
            }
        }
    }

    /// `None` once the line was dropped.
    fn links<T>(&self, work: impl FnOnce(&mut DirectLinks) -> T) -> Option<T> {
        self.connection.borrow_mut().as_mut().map(|connection| work(&mut connection.links))
    }

    fn list(&self) {
        let connection = self.connection.borrow();
        let (Some(listing), Some(connection)) = (&self.options.listing, connection.as_ref()) else { return };
        let Listing { owner, title, visible } = listing.clone();
        if let Ok(text) = serde_json::to_string(&Request::Listing { owner, title, visible }) {
            connection.relay.send(SocketMessage::Text(text));
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
