//! The connection to a room: connects, reconnects with back-off, and turns messages of the relay and of tabs of this browser
//! into events.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use futures::StreamExt;
use futures::future::{AbortHandle, Abortable};
use futures::stream::{LocalBoxStream, SelectAll, once};
use potluck_plan::PeerId;
use potluck_protocol::{FrameError, decode, encode};
use potluck_swarm::{Destination, Event, RelayRoute};

use crate::backoff::Backoff;
use crate::control::{Control, EVERYONE, Request, split_route};
use crate::direct::{DirectLinks, Frames};
use crate::events::Inputs;
use crate::node::Input;
use crate::platform::{Platform, Socket, SocketMessage, SocketSender};
use crate::relay::Relay;

/// Waits between attempts to connect.
const BACKOFF: Backoff = Backoff::new(500.0, 8_000.0);

/// The state of the connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LineState {
    /// Connecting for the first time.
    Connecting,
    /// In the room.
    Connected,
    /// Lost; connecting again.
    Reconnecting {
        /// Which attempt, from 1.
        attempt: u32,
    },
    /// Closed for good, with a sentence that says why.
    Closed(String),
}

/// How the relay lists the host's room.
#[derive(Clone, Debug)]
pub struct Listing {
    /// The owner secret from `POST /rooms`.
    pub owner: String,
    /// Its title.
    pub title: String,
    /// Shown on everyone's start page.
    pub visible: bool,
}

/// The connection to a room; closed on drop.
pub struct RoomLine {
    connection: Rc<RefCell<Option<Connection>>>,
    direct_frames: Rc<Cell<u64>>,
    abort: AbortHandle,
    own_id: PeerId,
}

/// Exists while the relay is connected.
struct Connection {
    relay: Rc<dyn SocketSender>,
    links: DirectLinks,
}

/// The parameters of a connection.
pub struct LineOptions {
    /// The relay.
    pub relay: Relay,
    /// The room's id.
    pub room: String,
    /// Create the room if the relay does not know it. Set for the host; a guest may do so once it has been in the room.
    pub create: bool,
    /// The host's listing, repeated after each reconnect.
    pub listing: Option<Listing>,
}

impl RoomLine {
    /// Starts connecting. State changes arrive as [`Input::Line`], everything else as events.
    pub fn open(platform: &Platform, own_id: PeerId, options: LineOptions, inputs: Inputs) -> Self {
        let (connection, direct_frames) = (Rc::default(), Rc::default());
        let (abort, registration) = AbortHandle::new_pair();
        let connector = Connector {
            platform: platform.clone(),
            options,
            inputs,
            connection: Rc::clone(&connection),
            direct_frames: Rc::clone(&direct_frames),
        };
        let task = Abortable::new(connector.run(), registration);
        platform.spawn.spawn(Box::pin(async move {
            // Aborted means that the line was dropped on purpose.
            let _ = task.await;
        }));
        Self { connection, direct_frames, abort, own_id }
    }

    /// Sends a frame. While disconnected it is lost, like frames in flight.
    ///
    /// # Errors
    /// The frame exceeds the maximum length.
    pub fn send(&self, to: Destination, frame: &potluck_protocol::Frame) -> Result<(), FrameError> {
        let route = match to {
            Destination::Route(RelayRoute(route)) => route,
            Destination::Everyone => EVERYONE,
        };
        if let Some(connection) = self.connection.borrow_mut().as_mut() {
            connection.links.send(route, encode(self.own_id, frame)?);
        }
        Ok(())
    }

    /// How many frames came directly from other tabs of this browser.
    pub fn direct_frames(&self) -> u64 {
        self.direct_frames.get()
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

struct Connector {
    platform: Platform,
    options: LineOptions,
    inputs: Inputs,
    connection: Rc<RefCell<Option<Connection>>>,
    direct_frames: Rc<Cell<u64>>,
}

/// What arrives while the relay is connected.
enum Incoming {
    FromRelay(SocketMessage),
    RelayClosed,
    /// A channel to a tab of this browser that claims this route.
    SameBrowser(u32, Socket),
    /// A message on such a channel.
    FromTab(u32, SocketMessage),
}

/// Why a connection ended.
enum Ended {
    /// It broke: connect again.
    Lost,
    /// The relay refuses, so connecting again is pointless.
    Refused(String),
}

impl Connector {
    async fn run(self) {
        let mut attempt = 0;
        let welcomed = Cell::new(false);
        self.state(LineState::Connecting);
        loop {
            let create = self.options.create || welcomed.get();
            let url = self.options.relay.room_url(&self.options.room, create);
            let ended = match self.platform.transport.connect(url).await {
                Ok(socket) => {
                    let welcomed_before = welcomed.replace(false);
                    let relay = socket.sender.clone();
                    let links = DirectLinks::new(relay.clone(), self.platform.random);
                    *self.connection.borrow_mut() = Some(Connection { relay, links });
                    let ended = self.listen(socket.messages, &welcomed).await;
                    self.connection.borrow_mut().take();
                    if welcomed.get() {
                        attempt = 0;
                        self.inputs.event(Event::Disconnected);
                    } else {
                        welcomed.set(welcomed_before);
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
            self.platform.clock.sleep(BACKOFF.wait(attempt)).await;
        }
    }

    async fn listen(&self, messages: LocalBoxStream<'static, SocketMessage>, in_room: &Cell<bool>) -> Ended {
        let mut incoming = SelectAll::new();
        let closed = once(async { Incoming::RelayClosed });
        incoming.push(messages.map(Incoming::FromRelay).chain(closed).boxed_local());
        while let Some(message) = incoming.next().await {
            match message {
                Incoming::FromRelay(SocketMessage::Binary(bytes)) => self.on_relay_message(&bytes),
                Incoming::FromRelay(SocketMessage::Text(text)) => match serde_json::from_str(&text) {
                    Ok(Control::Welcome { route, members, .. }) => {
                        in_room.set(true);
                        self.send_listing();
                        self.state(LineState::Connected);
                        let members = members.into_iter().map(|route| RelayRoute(route.0)).collect();
                        self.inputs.event(Event::Connected { members });
                        let tabs = self.platform.same_browser.discover(&self.options.room, route.0);
                        incoming.push(tabs.map(|(route, socket)| Incoming::SameBrowser(route, socket)).boxed_local());
                    }
                    Ok(control) => {
                        if let Some(ended) = self.control(control) {
                            return ended;
                        }
                    }
                    Err(_) => log::warn!("a text message that is not part of the relay's protocol was ignored"),
                },
                Incoming::RelayClosed => break,
                Incoming::SameBrowser(route, socket) => {
                    self.links(|links| links.opened(route, socket.sender));
                    incoming.push(socket.messages.map(move |message| Incoming::FromTab(route, message)).boxed_local());
                }
                Incoming::FromTab(route, message) => self.on_tab_message(route, message),
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
            Control::Limited { wait_ms } => {
                log::warn!("the relay stops reading for {wait_ms} ms: this device sends too fast")
            }
            Control::Refused { reason, message } => {
                // A relay that restarts or is full may accept this peer a little later.
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

    fn on_relay_message(&self, message: &[u8]) {
        let Some((route, message)) = split_route(message) else { return };
        match self.links(|links| links.relayed(route, message)) {
            Some(Frames::One(frame)) => self.frame(route, frame),
            Some(Frames::Many(frames)) => frames.iter().for_each(|frame| self.frame(route, frame)),
            None => {}
        }
    }

    fn on_tab_message(&self, route: u32, message: SocketMessage) {
        let is_frame = matches!(message, SocketMessage::Binary(_));
        self.direct_frames.update(|frames| frames + u64::from(is_frame));
        let frames = self.links(|links| links.on_channel(route, message)).unwrap_or_default();
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

    /// `None` once disconnected.
    fn links<T>(&self, work: impl FnOnce(&mut DirectLinks) -> T) -> Option<T> {
        self.connection.borrow_mut().as_mut().map(|connection| work(&mut connection.links))
    }

    fn send_listing(&self) {
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
