//! Frames that bypass the relay: on channels to tabs of this browser, and on connections to other devices (WebRTC). Nothing above the
//! [connection to the room](crate::room) sees a difference. The same frames come from the same routes in the same order, and only the
//! relay decides who is in the room. The frames are sealed already.
//!
//! - [`link`]: which path frames take to one member, in which order those that come are read, and what happens if a channel breaks.
//! - [`connecting`]: when to connect to another device.
//! - [`latency`]: which path is quicker, and whether a channel stalls.
//! - [`pieces`]: long messages in pieces, for connections between devices.

mod connecting;
mod latency;
mod link;
mod messages;
mod pieces;
#[cfg(test)]
mod tests;
mod unread;

use std::collections::BTreeMap;
use std::rc::Rc;

use potluck_panel::PathReport;
use potluck_plan::Millis;
use potluck_protocol::Signal;

pub use self::connecting::{Connecting, ConnectionId, Step};
pub use self::latency::Latency;
pub use self::link::{Limits, Link};
pub use self::messages::{ChannelControl, LinkOutput, Nonce, Outgoing, ProtocolViolation, RelayControl};
pub use self::pieces::{Assembler, cut};
use crate::platform::{PeerConnections, SocketMessage, SocketSender};
use crate::relay::RelaySender;

/// The links to members that a channel reaches or may reach, and the connection to the relay.
pub struct DirectLinks {
    relay: Rc<RelaySender>,
    random: fn(&mut [u8]),
    connections: Rc<dyn PeerConnections>,
    connecting: Connecting,
    members: BTreeMap<u32, Member>,
    /// What is to be said to members.
    signals: Vec<(u32, Signal)>,
}

#[derive(Default)]
struct Member {
    link: Link,
    channel: Option<Channel>,
}

struct Channel {
    sender: Rc<dyn SocketSender>,
    /// For a member on another device.
    connection: Option<Connection>,
}

struct Connection {
    id: ConnectionId,
    latency: Latency,
}

impl Drop for Channel {
    fn drop(&mut self) {
        self.sender.close();
    }
}

/// What a channel leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// A tab of this browser, which claims this route.
    Tab(u32),
    /// Another device.
    Device(ConnectionId),
}

impl DirectLinks {
    /// Starts without links; `relay` is the connection to the relay, `own` this device's route.
    pub fn new(relay: Rc<RelaySender>, random: fn(&mut [u8]), own: u32, connections: Rc<dyn PeerConnections>) -> Self {
        let mut first = [0; 4];
        random(&mut first);
        let connecting = Connecting::new(own, u32::from_le_bytes(first));
        Self { relay, random, connections, connecting, members: BTreeMap::new(), signals: Vec::new() }
    }

    /// A session with this member is up.
    pub fn met(&mut self, route: u32) {
        self.connecting.met(route);
    }

    /// Whether this device may connect to others.
    pub fn allow_connections(&mut self, allowed: bool) {
        for (route, connection) in self.connecting.allow(allowed) {
            self.connections.close(connection);
            self.break_channel(route, connection);
        }
    }

    /// What is to be said to members, since the last call.
    pub fn take_signals(&mut self) -> Vec<(u32, Signal)> {
        std::mem::take(&mut self.signals)
    }

    /// A member's word about a connection.
    pub fn signal(&mut self, from: u32, signal: Signal, now: Millis) {
        let steps = self.connecting.signal(from, signal, can_open(&self.members, from), now);
        self.perform(steps);
    }

    /// The browser has described this side of a connection.
    pub fn described(&mut self, connection: ConnectionId, description: String) {
        let step = self.connecting.described(connection, description);
        self.perform(step);
    }

    /// A connection ended.
    pub fn ended(&mut self, connection: ConnectionId, now: Millis) {
        if let Some((route, step)) = self.connecting.ended(connection, now) {
            self.perform([step]);
            self.break_channel(route, connection);
        }
    }

    /// To be called a few times a second.
    pub fn tick(&mut self, now: Millis) {
        let steps = self.connecting.tick(now, |route| can_open(&self.members, route));
        self.perform(steps);
        let (mut pings, mut stalled) = (Vec::new(), Vec::new());
        for (route, member) in &mut self.members {
            let Some(connection) = member.channel.as_mut().and_then(|channel| channel.connection.as_mut()) else {
                continue;
            };
            if member.link.is_up() {
                pings.push((*route, connection.latency.tick(now)));
                member.link.prefer(connection.latency.prefers_channel());
                if connection.latency.is_stalled(now) {
                    stalled.push(connection.id);
                }
            }
        }
        pings.into_iter().for_each(|(route, pings)| self.transmit(route, pings));
        for connection in stalled {
            log::info!("a direct connection stalls");
            self.ended(connection, now);
        }
    }

    /// How frames reach a member.
    pub fn path(&self, route: u32) -> PathReport {
        let Some(member) = self.members.get(&route) else { return PathReport::default() };
        let connection = member.channel.as_ref().and_then(|channel| channel.connection.as_ref());
        let (direct_ms, relay_ms) = connection.map_or((None, None), |connection| connection.latency.round_trips());
        PathReport { direct: member.link.is_direct(), direct_ms, relay_ms }
    }

    /// So many bytes of work go to a member.
    pub fn works_with(&mut self, route: u32, bytes: usize) {
        self.connecting.works_with(route, bytes);
    }

    /// Sends a frame to a member.
    pub fn send(&mut self, route: u32, frame: Vec<u8>) {
        match self.members.get_mut(&route) {
            Some(member) => match member.link.send(frame) {
                Ok(outgoing) => self.transmit(route, outgoing),
                Err(ProtocolViolation) => self.violated(route),
            },
            None => self.relay.send(route, &frame),
        }
    }

    /// A channel opened. Closes a second channel to the same member.
    pub fn opened(&mut self, origin: Origin, sender: Rc<dyn SocketSender>, now: Millis) {
        let (route, connection, limits) = match origin {
            Origin::Tab(route) => (Some(route), None, Limits::TAB),
            Origin::Device(id) => {
                let connection = Connection { id, latency: Latency::default() };
                (self.connecting.opened(id, now), Some(connection), Limits::DEVICE)
            }
        };
        let mut nonce = [0; 16];
        (self.random)(&mut nonce);
        let Some(route) = route else { return sender.close() };
        let member = self.members.entry(route).or_default();
        if !member.link.may_open() {
            return sender.close();
        }
        // A tab is nearer than the relay; of a device that is not known yet.
        member.link.prefer(connection.is_none());
        member.channel = Some(Channel { sender, connection });
        let outgoing = member.link.opened(Nonce(nonce), limits);
        self.transmit(route, outgoing);
    }

    /// Handles a message from this route through the relay; returns the frames to read now.
    pub fn relayed<'a>(&mut self, route: u32, message: &'a [u8], now: Millis) -> Frames<'a> {
        let control = RelayControl::read(message);
        let result = match (control, self.members.get_mut(&route)) {
            (Some(RelayControl::Ping(_) | RelayControl::Pong(_)), None) => return Frames::Many(Vec::new()),
            (Some(RelayControl::Ping(number)), Some(_)) => {
                Ok(Outgoing::RelayControl(RelayControl::Pong(number)).into())
            }
            (Some(RelayControl::Pong(number)), Some(member)) => {
                if let Some(latency) = member.latency() {
                    latency.relay_pong(number, now);
                }
                Ok(LinkOutput::default())
            }
            (Some(RelayControl::Broken(_)), Some(member)) if member.is_tab() => Err(ProtocolViolation),
            (Some(control), _) => self.members.entry(route).or_default().link.on_relay_control(control),
            (None, None) => return Frames::One(message),
            (None, Some(member)) => match member.link.relayed(message) {
                Ok(true) => match member.link.after_relayed() {
                    Ok(further) if further.is_empty() => return Frames::One(message),
                    Ok(further) => {
                        let frames = [message.to_vec()].into_iter().chain(further).collect();
                        Ok(LinkOutput { frames, ..LinkOutput::default() })
                    }
                    Err(violation) => Err(violation),
                },
                Ok(false) => return Frames::Many(Vec::new()),
                Err(violation) => Err(violation),
            },
        };
        let frames = self.finish(route, result);
        if matches!(control, Some(RelayControl::Broken(_)))
            && let Some(connection) = self.connecting.open_connection(route)
        {
            self.ended(connection, now);
        }
        Frames::Many(frames)
    }

    /// Handles a message from a channel; returns the member's route and the frames to read now.
    pub fn on_channel(&mut self, origin: Origin, message: SocketMessage, now: Millis) -> Option<(u32, Vec<Vec<u8>>)> {
        // The channel may have been closed in the meantime.
        let (&route, member) = self.members.iter_mut().find(|(route, member)| member.hears(**route, origin))?;
        let result = match message {
            SocketMessage::Binary(frame) => member.link.direct(frame),
            SocketMessage::Text(text) => match ChannelControl::read(&text) {
                Some(ChannelControl::Ping(number, _)) => {
                    Ok(Outgoing::ChannelControl(ChannelControl::Pong(number)).into())
                }
                Some(ChannelControl::Pong(number)) => {
                    if let Some(latency) = member.latency() {
                        latency.channel_pong(number, now);
                    }
                    Ok(LinkOutput::default())
                }
                Some(control) => member.link.on_channel_control(control),
                None => Err(ProtocolViolation),
            },
        };
        Some((route, self.finish(route, result)))
    }

    /// The relay reported that this route is gone.
    pub fn left(&mut self, route: u32) {
        let step = self.connecting.left(route);
        self.perform(step);
        self.members.remove(&route);
    }

    fn finish(&mut self, route: u32, result: Result<LinkOutput, ProtocolViolation>) -> Vec<Vec<u8>> {
        match result {
            Ok(LinkOutput { frames, outgoing }) => {
                self.transmit(route, outgoing);
                frames
            }
            Err(ProtocolViolation) => {
                self.violated(route);
                Vec::new()
            }
        }
    }

    fn violated(&mut self, route: u32) {
        log::warn!("the channel to route {route} broke the protocol and is closed");
        self.left(route);
    }

    /// The channel of this connection is not used any more: what was sent on it and has not arrived goes through the relay.
    fn break_channel(&mut self, route: u32, connection: ConnectionId) {
        let Some(member) = self.members.get_mut(&route) else { return };
        if member.hears(route, Origin::Device(connection)) {
            let outgoing = member.link.broke();
            member.channel = None;
            self.transmit(route, outgoing);
        }
    }

    fn perform(&mut self, steps: impl IntoIterator<Item = Step>) {
        for step in steps {
            match step {
                Step::Offer(connection) => self.connections.offer(connection),
                Step::Answer(connection, offer) => self.connections.answer(connection, offer),
                Step::Accept(connection, answer) => self.connections.accept(connection, answer),
                Step::Close(connection) => self.connections.close(connection),
                Step::Signal(route, signal) => self.signals.push((route, signal)),
            }
        }
    }

    fn transmit(&self, route: u32, outgoing: impl IntoIterator<Item = Outgoing>) {
        let channel = self.members.get(&route).and_then(|member| member.channel.as_ref());
        let on_channel = |message| channel.inspect(|channel| channel.sender.send(message));
        let by_relay = |bytes: &[u8]| self.relay.send(route, bytes);
        for message in outgoing {
            match message {
                Outgoing::Direct(frame) => drop(on_channel(SocketMessage::Binary(frame))),
                Outgoing::ChannelControl(control) => drop(on_channel(SocketMessage::Text(control.write()))),
                Outgoing::Relayed(frame) => by_relay(&frame),
                Outgoing::RelayControl(control) => by_relay(&control.write()),
            }
        }
    }
}

impl Member {
    fn latency(&mut self) -> Option<&mut Latency> {
        Some(&mut self.channel.as_mut()?.connection.as_mut()?.latency)
    }

    /// Its channel leads to a tab of this browser.
    fn is_tab(&self) -> bool {
        self.channel.as_ref().is_some_and(|channel| channel.connection.is_none())
    }

    /// Its channel is this one.
    fn hears(&self, route: u32, origin: Origin) -> bool {
        let Some(channel) = &self.channel else { return false };
        match (origin, &channel.connection) {
            (Origin::Tab(claimed), None) => claimed == route,
            (Origin::Device(id), Some(connection)) => connection.id == id,
            _ => false,
        }
    }
}

impl Drop for DirectLinks {
    fn drop(&mut self) {
        self.connecting.allow(false).into_iter().for_each(|(_, connection)| self.connections.close(connection));
    }
}

/// A channel to this member could be used.
fn can_open(members: &BTreeMap<u32, Member>, route: u32) -> bool {
    members.get(&route).is_none_or(|member| member.channel.is_none() && member.link.may_open())
}

/// The frames of a member to read now, in order.
pub enum Frames<'a> {
    /// Exactly the frame that arrived.
    One(&'a [u8]),
    /// Other frames, or none.
    Many(Vec<Vec<u8>>),
}
