//! Frames between tabs of one browser that bypass the relay: a channel between workers takes less than half of the
//! relay's time. Nothing above the [connection to the room](crate::room) sees a difference. The same frames come from
//! the same routes in the same order, and only the relay decides who is in the room. The frames are sealed already.

mod link;
mod messages;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::rc::Rc;

pub use self::link::{Limits, Link};
pub use self::messages::{ChannelControl, LinkOutput, Nonce, Outgoing, ProtocolViolation, RelayControl};
use crate::platform::{SocketMessage, SocketSender};
use crate::relay::RelaySender;

/// The links to members that are or may be tabs of this browser, and the connection to the relay.
pub struct DirectLinks {
    relay: Rc<RelaySender>,
    random: fn(&mut [u8]),
    members: BTreeMap<u32, Member>,
}

struct Member {
    link: Link,
    channel: Option<Rc<dyn SocketSender>>,
}

impl Drop for Member {
    fn drop(&mut self) {
        if let Some(channel) = &self.channel {
            channel.close();
        }
    }
}

impl DirectLinks {
    /// Starts without links; `relay` is the connection to the relay.
    pub fn new(relay: Rc<RelaySender>, random: fn(&mut [u8])) -> Self {
        Self { relay, random, members: BTreeMap::new() }
    }

    /// Sends a frame to a member.
    pub fn send(&mut self, route: u32, frame: Vec<u8>) {
        match self.members.get_mut(&route) {
            Some(member) => {
                let outgoing = member.link.send(frame);
                self.transmit(route, outgoing);
            }
            None => self.relay.send(route, &frame),
        }
    }

    /// A channel opened to a peer that claims this route. Closes a second channel for the same route.
    pub fn opened(&mut self, route: u32, channel: Rc<dyn SocketSender>) {
        let member = self.member(route);
        if member.channel.is_some() {
            return channel.close();
        }
        member.channel = Some(channel);
        let outgoing = member.link.opened();
        self.transmit(route, outgoing);
    }

    /// Handles a message from this route through the relay; returns the frames to read now.
    pub fn relayed<'a>(&mut self, route: u32, message: &'a [u8]) -> Frames<'a> {
        let result = match (RelayControl::read(message), self.members.get_mut(&route)) {
            (Some(control), _) => self.member(route).link.on_relay_control(control),
            (None, None) => return Frames::One(message),
            (None, Some(member)) => match member.link.relayed(message) {
                Ok(true) => return Frames::One(message),
                Ok(false) => return Frames::Many(Vec::new()),
                Err(violation) => Err(violation),
            },
        };
        Frames::Many(self.finish(route, result))
    }

    /// Handles a message from this route's channel; returns the frames to read now.
    pub fn on_channel(&mut self, route: u32, message: SocketMessage) -> Vec<Vec<u8>> {
        // The channel may have been closed in the meantime.
        let Some(member) = self.members.get_mut(&route) else { return Vec::new() };
        let result = match message {
            SocketMessage::Binary(frame) => member.link.direct(frame),
            SocketMessage::Text(text) => match ChannelControl::read(&text) {
                Some(control) => member.link.on_channel_control(control),
                None => Err(ProtocolViolation),
            },
        };
        self.finish(route, result)
    }

    /// The relay reported that this route is gone.
    pub fn left(&mut self, route: u32) {
        self.members.remove(&route);
    }

    fn finish(&mut self, route: u32, result: Result<LinkOutput, ProtocolViolation>) -> Vec<Vec<u8>> {
        match result {
            Ok(LinkOutput { frames, outgoing }) => {
                self.transmit(route, outgoing);
                frames
            }
            Err(ProtocolViolation) => {
                log::warn!("the channel to route {route} broke the protocol and is closed");
                self.members.remove(&route);
                Vec::new()
            }
        }
    }

    fn transmit(&self, route: u32, outgoing: impl IntoIterator<Item = Outgoing>) {
        let channel = self.members.get(&route).and_then(|member| member.channel.as_ref());
        let on_channel = |message| channel.inspect(|channel| channel.send(message));
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

    fn member(&mut self, route: u32) -> &mut Member {
        self.members.entry(route).or_insert_with(|| {
            let mut nonce = [0; 16];
            (self.random)(&mut nonce);
            Member { link: Link::new(Nonce(nonce), Limits::default()), channel: None }
        })
    }
}

/// The frames of a member to read now, in order.
pub enum Frames<'a> {
    /// Exactly the frame that arrived.
    One(&'a [u8]),
    /// Other frames, or none.
    Many(Vec<Vec<u8>>),
}
