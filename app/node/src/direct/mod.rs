//! Frames between tabs of one browser, past the relay: a channel from worker to worker takes less than half of its time.
//! Nobody above the [line to the room](crate::room) sees a difference: the same frames come from the same routes in the same
//! order, and who is in the room is the relay's word.

mod link;
#[cfg(test)]
mod tests;
mod words;

use std::collections::BTreeMap;
use std::rc::Rc;

pub use self::link::{Broken, Limits, Link, Out, Step};
pub use self::words::{Mark, Nonce, Word};
use crate::control::{EVERYONE, with_route};
use crate::platform::{SocketMessage, SocketSender};

/// The members of a room that are, or may be, tabs of this browser, beside the connection to the relay.
pub struct DirectLinks {
    relay: Rc<dyn SocketSender>,
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
    /// None yet; `relay` sends through the relay.
    pub fn new(relay: Rc<dyn SocketSender>, random: fn(&mut [u8])) -> Self {
        Self { relay, random, members: BTreeMap::new() }
    }

    /// Sends a frame to a member, or to [`EVERYONE`].
    pub fn send(&mut self, route: u32, frame: Vec<u8>) {
        if route == EVERYONE {
            return self.send_everyone(&frame);
        }
        match self.members.get_mut(&route) {
            Some(member) => {
                let out = member.link.send(frame);
                self.put(route, out);
            }
            None => self.relay.send(SocketMessage::Binary(with_route(route, &frame))),
        }
    }

    fn send_everyone(&mut self, frame: &[u8]) {
        let routes: Vec<u32> = self.members.keys().copied().collect();
        for route in &routes {
            let out = self.members.get_mut(route).map(|member| member.link.before_everyone(frame.len()));
            self.put(*route, out.into_iter().flatten());
        }
        self.relay.send(SocketMessage::Binary(with_route(EVERYONE, frame)));
        for route in routes {
            let out = self.members.get_mut(&route).and_then(|member| member.link.after_everyone(frame));
            self.put(route, out);
        }
    }

    /// There is a channel to who says that it has this route. Of two for one route the first counts.
    pub fn opened(&mut self, route: u32, channel: Rc<dyn SocketSender>) {
        let member = self.member(route);
        if member.channel.is_some() {
            return channel.close();
        }
        member.channel = Some(channel);
        let out = member.link.opened();
        self.put(route, out);
    }

    /// The frames that are in turn after something came from this route through the relay.
    pub fn relayed<'a>(&mut self, route: u32, message: &'a [u8]) -> Frames<'a> {
        let stepped = match (Mark::read(message), self.members.get_mut(&route)) {
            (Some(mark), _) => self.member(route).link.marked(mark),
            (None, None) => return Frames::One(message),
            (None, Some(member)) => match member.link.relayed(message) {
                Ok(true) => return Frames::One(message),
                Ok(false) => return Frames::Many(Vec::new()),
                Err(broken) => Err(broken),
            },
        };
        Frames::Many(self.stepped(route, stepped))
    }

    /// The frames that are in turn after something came on the channel of this route.
    pub fn heard(&mut self, route: u32, message: SocketMessage) -> Vec<Vec<u8>> {
        // Something on a channel that was closed meanwhile.
        let Some(member) = self.members.get_mut(&route) else { return Vec::new() };
        let stepped = match message {
            SocketMessage::Binary(frame) => member.link.direct(frame),
            SocketMessage::Text(text) => match Word::read(&text) {
                Some(word) => member.link.told(word),
                None => Err(Broken),
            },
        };
        self.stepped(route, stepped)
    }

    /// The relay says that nobody has this route any more.
    pub fn left(&mut self, route: u32) {
        self.members.remove(&route);
    }

    fn stepped(&mut self, route: u32, stepped: Result<Step, Broken>) -> Vec<Vec<u8>> {
        match stepped {
            Ok(step) => {
                self.put(route, step.out);
                step.frames
            }
            Err(Broken) => {
                log::warn!("the channel to route {route} does not keep to the rules and is closed");
                self.members.remove(&route);
                Vec::new()
            }
        }
    }

    fn put(&self, route: u32, out: impl IntoIterator<Item = Out>) {
        let channel = self.members.get(&route).and_then(|member| member.channel.as_ref());
        let on_channel = |message| channel.inspect(|channel| channel.send(message));
        for out in out {
            match out {
                Out::Direct(frame) => drop(on_channel(SocketMessage::Binary(frame))),
                Out::Word(word) => drop(on_channel(SocketMessage::Text(word.write()))),
                Out::Relayed(frame) => self.relay.send(SocketMessage::Binary(with_route(route, &frame))),
                Out::Mark(mark) => self.relay.send(SocketMessage::Binary(with_route(route, &mark.write()))),
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

/// Frames of one member that are in turn.
pub enum Frames<'a> {
    /// The one that came.
    One(&'a [u8]),
    /// Others, or none.
    Many(Vec<Vec<u8>>),
}
