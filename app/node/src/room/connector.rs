//! Connects to the relay, enters the room and listens, again and again until the room is closed.

use std::rc::Rc;

use futures::StreamExt;
use futures::stream::{LocalBoxStream, SelectAll, once};
use potluck_relay_api::{
    Binary, Control, EntryProof, Eviction, Nonce, Refusal, Request, SignedEntry, VERSION, entry_message, nonce_at,
};
use potluck_swarm::Event as MemberEvent;
use potluck_text::texts;
use potluck_trust::RoomRole;

use super::event::{Event, LineState};
use super::members::{Members, Welcome};
use super::options::{LineOptions, Listing};
use crate::backoff::Backoff;
use crate::direct::Origin;
use crate::events::EventSink;
use crate::platform::{ConnectionEvent, NetError, Platform, Socket, SocketMessage, SocketSender};

/// Waits between attempts to connect.
const BACKOFF: Backoff = Backoff::new(500.0, 8_000.0);

pub(super) struct Connector {
    platform: Platform,
    options: LineOptions,
    events: EventSink<Event>,
    members: Rc<Members>,
}

/// What arrives while the relay is connected.
enum Incoming {
    FromRelay(SocketMessage),
    RelayClosed,
    /// A channel to a tab of this browser that claims this route.
    SameBrowser(u32, Socket),
    /// About a connection to another device.
    Connection(ConnectionEvent),
    /// A message on such a channel, or on such a connection.
    FromChannel(Origin, SocketMessage),
}

type Streams = SelectAll<LocalBoxStream<'static, Incoming>>;

/// Why a connection ended.
enum ConnectionEnd {
    /// It broke, as this says: connect again.
    Lost(String),
    /// Requests reach the relay and sockets do not: connect again.
    SocketsRefused,
    /// The relay refuses, so connecting again is pointless.
    Refused(String),
    /// Somebody else hosts the room, and the state machine knows: this peer comes back in another role.
    NotTheHost,
}

impl Connector {
    pub fn new(platform: Platform, options: LineOptions, events: EventSink<Event>, members: Rc<Members>) -> Self {
        Self { platform, options, events, members }
    }

    pub async fn run(self) {
        let (mut attempt, mut was_in) = (0, false);
        self.state(LineState::Connecting);
        loop {
            let url = self.options.relay.room_url(&self.options.room);
            let ended = match self.platform.transport.connect(url).await {
                Ok(socket) => {
                    let ended = self.listen(socket, was_in).await;
                    if self.members.is_leaving() {
                        return;
                    }
                    if self.members.disconnect() {
                        (attempt, was_in) = (0, true);
                        self.member(MemberEvent::Disconnected);
                    }
                    ended
                }
                // Where this peer was in the room, the relay may be itself again later.
                Err(error @ (NetError::NoRelay { .. } | NetError::BadUrl(_))) if !was_in => {
                    ConnectionEnd::Refused(error.to_string())
                }
                Err(NetError::SocketsRefused { .. }) => ConnectionEnd::SocketsRefused,
                Err(error) => {
                    log::info!("the relay does not answer: {error}");
                    ConnectionEnd::Lost(error.reason().to_owned())
                }
            };
            attempt += 1;
            self.state(match ended {
                ConnectionEnd::Refused(sentence) => return self.state(LineState::Closed(sentence)),
                ConnectionEnd::NotTheHost => return,
                ConnectionEnd::Lost(cause) => LineState::Reconnecting { attempt, cause },
                ConnectionEnd::SocketsRefused => LineState::SocketsRefused { attempt },
            });
            self.platform.clock.sleep(BACKOFF.wait(attempt)).await;
        }
    }

    async fn listen(&self, socket: Socket, was_in: bool) -> ConnectionEnd {
        let Socket { sender: relay, messages } = socket;
        let mut incoming = Streams::new();
        let closed = once(async { Incoming::RelayClosed });
        incoming.push(messages.map(Incoming::FromRelay).chain(closed).boxed_local());
        while let Some(message) = incoming.next().await {
            match message {
                Incoming::FromRelay(SocketMessage::Binary(bytes)) => self.members.relayed(&bytes),
                Incoming::FromRelay(SocketMessage::Text(text)) => match serde_json::from_str(&text) {
                    Ok(control) => {
                        if let Some(ended) = self.control(control, &relay, &mut incoming, was_in) {
                            return ended;
                        }
                    }
                    Err(_) => log::warn!("a text message that is not part of the relay's protocol was ignored"),
                },
                Incoming::RelayClosed => break,
                Incoming::SameBrowser(route, socket) => self.channel(Origin::Tab(route), socket, &mut incoming),
                Incoming::Connection(ConnectionEvent::Opened(connection, socket)) => {
                    self.channel(Origin::Device(connection), socket, &mut incoming);
                }
                Incoming::Connection(ConnectionEvent::Described(connection, description)) => {
                    self.members.described(connection, description);
                }
                Incoming::Connection(ConnectionEvent::Ended(connection)) => self.members.connection_ended(connection),
                Incoming::FromChannel(origin, message) => self.members.on_channel(origin, message),
            }
            if let Some(sentence) = self.members.take_fault() {
                return ConnectionEnd::Refused(sentence);
            }
        }
        ConnectionEnd::Lost(texts().node_relay.closed().to_owned())
    }

    fn channel(&self, origin: Origin, socket: Socket, incoming: &mut Streams) {
        self.members.channel_opened(origin, socket.sender);
        incoming.push(socket.messages.map(move |message| Incoming::FromChannel(origin, message)).boxed_local());
    }

    fn control(
        &self,
        control: Control,
        relay: &Rc<dyn SocketSender>,
        incoming: &mut Streams,
        was_in: bool,
    ) -> Option<ConnectionEnd> {
        match control {
            Control::Leave { route, .. } | Control::Undeliverable { route } => self.members.left(route.0),
            Control::Taken { route, bytes } => self.members.taken(route.0, bytes),
            _ if self.members.is_leaving() => {}
            // An honest relay asks once, and welcomes once.
            Control::Challenge { .. } | Control::Welcome { .. } if self.members.is_connected() => {
                return Some(ConnectionEnd::Lost("it violates the protocol".to_owned()));
            }
            Control::Challenge { version, nonce } if version == VERSION => {
                self.enter(&nonce_at(self.options.relay.host(), &nonce), relay.as_ref())
            }
            Control::Challenge { .. } | Control::Welcome { version: ..VERSION, .. } => {
                return Some(ConnectionEnd::Refused(texts().node_relay.other_version().to_owned()));
            }
            Control::Welcome { route, owner, members, limits, .. } => {
                let members: Vec<u32> = members.into_iter().map(|route| route.0).collect();
                let (owner, window) = (owner.map(|route| route.0), limits.window_bytes);
                let takes_parts = limits.parts_per_second > 0;
                self.state(LineState::Connected);
                self.member(MemberEvent::Connected);
                let welcome = Welcome { own: route.0, owner, members: &members, window, takes_parts };
                self.members.connect(relay.clone(), &welcome, &self.platform);
                incoming.push(self.platform.connections.events().map(Incoming::Connection).boxed_local());
                let tabs = self.platform.same_browser.discover(&self.options.room, route.0);
                incoming.push(tabs.map(|(route, socket)| Incoming::SameBrowser(route, socket)).boxed_local());
            }
            Control::Join { route, owner } => self.members.joined(route.0, owner),
            Control::BadFrame { message, .. } => log::error!("the relay dropped a frame: {message}"),
            Control::Limited { wait_ms } => {
                log::warn!("the relay stops reading for {wait_ms} ms: this device sends too fast")
            }
            Control::Refused { reason: Refusal::Superseded, .. }
            | Control::Evicted { reason: Eviction::Superseded, .. } => {
                self.member(MemberEvent::Superseded);
                return Some(ConnectionEnd::NotTheHost);
            }
            Control::Refused { reason: Refusal::HostPresent, .. } => {
                self.member(MemberEvent::HostPresent);
                return Some(ConnectionEnd::NotTheHost);
            }
            // Whoever took over and is replaced in the same term takes part in the room.
            Control::Evicted { reason: Eviction::Replaced, .. } if !self.options.term.is_first() => {
                self.member(MemberEvent::Replaced);
                return Some(ConnectionEnd::NotTheHost);
            }
            Control::Refused { reason, message } => {
                // A relay that restarts forgets its rooms until their owners are back, and one that is full may have
                // room a little later. When many return at once, the relay still counts seats of closed connections. And it learns
                // of earlier links only when the owner has come back.
                let comes_back = was_in
                    && matches!(
                        reason,
                        Refusal::NoSuchRoom | Refusal::BadProof | Refusal::RoomFull | Refusal::TooManySeats
                    );
                return Some(if comes_back || reason.is_temporary() {
                    ConnectionEnd::Lost(message.trim_end_matches('.').to_owned())
                } else {
                    ConnectionEnd::Refused(message)
                });
            }
            Control::Evicted { reason, message } if reason.is_final() => {
                if reason == Eviction::Replaced {
                    self.member(MemberEvent::Replaced);
                }
                return Some(ConnectionEnd::Refused(message));
            }
            Control::Evicted { message, .. } => {
                self.events.send(Event::Notice(message));
                return Some(ConnectionEnd::Lost(texts().node_relay.closed().to_owned()));
            }
            Control::Shutdown { message } => log::info!("{message}"),
            Control::Pong { nonce } => self.members.lease_renewed(nonce),
            Control::Unknown => {}
        }
        None
    }

    /// Proves to the relay that this peer may enter.
    fn enter(&self, nonce: &Nonce, relay: &dyn SocketSender) {
        let room = &self.options.room;
        let role = self.members.role();
        let proof = match &role {
            RoomRole::Owner { key, secret, link, .. } => {
                let Listing { title, visible } = self.options.listing.clone();
                let join_key = Binary(key.link(secret, *link).join_public());
                let term = self.options.term;
                let entry = SignedEntry::Owner { join_key: &join_key, title: &title, visible, term };
                let signature = Binary(key.sign(&entry_message(room, nonce, entry)));
                EntryProof::Owner { key: Binary(key.public()), join_key, title, visible, term, signature }
            }
            RoomRole::Guest(secret) => {
                let signature = Binary(secret.sign(&entry_message(room, nonce, SignedEntry::Link)));
                EntryProof::Link { key: Binary(secret.join_public()), signature }
            }
            RoomRole::Invited(invite) => {
                let signature = Binary(invite.door.sign(&entry_message(room, nonce, SignedEntry::Invite)));
                EntryProof::Invite { certificate: invite.certificate(), signature }
            }
            RoomRole::Visitor => EntryProof::Visitor,
        };
        match serde_json::to_string(&Request::Enter { proof }) {
            Ok(text) => relay.send(SocketMessage::Text(text)),
            Err(error) => log::error!("the entry could not be written: {error}"),
        }
    }

    fn state(&self, state: LineState) {
        self.events.send(Event::Line(state));
    }

    fn member(&self, event: MemberEvent) {
        self.events.send(Event::Member(event));
    }
}
