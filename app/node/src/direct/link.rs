//! The state of one room member that is a tab of this browser: which path frames take to it, and in which order frames from
//! two paths are read.
//!
//! **Trust.** Any script of this page's origin can open a channel and claim any route. So each side draws a nonce and sends it
//! twice: on the channel, and through the relay to the route that the other side claims. The relay stamps the true sender's
//! route on it. A side uses the channel once both nonces of the other side match and the other side said that it is ready.
//! From then on a frame on the channel is as surely from its route as one through the relay, and nobody reads it to whom the
//! relay would not have delivered it.
//!
//! **Order.** Each path keeps its own order. A side that switches paths says so as the last message on the old one. The other
//! side reads the old path up to that message and holds back what arrives on the new one. Broadcasts go through the relay; a
//! member that reads the channel gets a copy there and skips the relay's.
//!
//! **Backpressure.** A tab that consumes nothing (it is frozen) gets at most [`Limits::window`] bytes on the channel. The rest
//! goes through the relay, which evicts members that do not read. Only the relay decides who has left.

use std::collections::VecDeque;

use super::messages::{ChannelControl, Nonce, RelayControl};

/// How many bytes may wait.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// On the channel, not consumed by the other side yet: two frames of the maximum length.
    pub window: u64,
    /// Held back from one path while the other is read: a window plus what the relay queues. Only a peer that breaks the
    /// rules exceeds it.
    pub held: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self { window: 32 << 20, held: 128 << 20 }
    }
}

/// How often consumption is acknowledged while one window is read.
const ACKS_PER_WINDOW: u64 = 8;

/// A message to the member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outgoing {
    /// A frame on the channel.
    Direct(Vec<u8>),
    /// A frame through the relay.
    Relayed(Vec<u8>),
    /// A control message on the channel.
    ChannelControl(ChannelControl),
    /// A control message through the relay.
    RelayControl(RelayControl),
}

/// What follows from a message that arrived.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LinkOutput {
    /// Frames to read now, in order.
    pub frames: Vec<Vec<u8>>,
    /// Messages to send.
    pub outgoing: Vec<Outgoing>,
}

/// The other side broke the protocol; its channel must be closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProtocolViolation;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Path {
    Relay,
    Channel,
}

impl Path {
    fn other(self) -> Self {
        match self {
            Self::Relay => Self::Channel,
            Self::Channel => Self::Relay,
        }
    }
}

enum Held {
    Frame(Vec<u8>),
    /// The sender switched to the other path here.
    Switch,
}

impl Held {
    /// Its share of [`Limits::held`]. An empty frame also costs something, so that nobody can send them without end.
    fn cost(&self) -> u64 {
        match self {
            Self::Frame(frame) => frame.len() as u64 + 64,
            Self::Switch => 64,
        }
    }
}

/// Both paths to and from one member.
pub struct Link {
    nonce: Nonce,
    limits: Limits,
    /// The channel exists.
    open: bool,
    /// The nonce that came on the channel.
    channel_nonce: Option<Nonce>,
    /// The nonce that came through the relay.
    relay_nonce: Option<Nonce>,
    /// The other side reads the channel and has verified this side.
    ready: bool,
    sending: Path,
    /// Bytes sent on the channel, and how many of them the other side acknowledged.
    sent: u64,
    acknowledged: u64,
    reading: Path,
    /// Frames through the relay are broadcasts, of which a copy comes on the channel.
    skip_relayed: bool,
    /// What arrived on the path that is not being read.
    held: VecDeque<Held>,
    held_bytes: u64,
    /// Bytes read from the channel, and how many of them this side acknowledged.
    read: u64,
    read_acknowledged: u64,
}

impl Link {
    /// A link without a channel: everything goes through the relay.
    pub fn new(nonce: Nonce, limits: Limits) -> Self {
        Self {
            nonce,
            limits,
            open: false,
            channel_nonce: None,
            relay_nonce: None,
            ready: false,
            sending: Path::Relay,
            sent: 0,
            acknowledged: 0,
            reading: Path::Relay,
            skip_relayed: false,
            held: VecDeque::new(),
            held_bytes: 0,
            read: 0,
            read_acknowledged: 0,
        }
    }

    /// A channel opened to someone who claims to be this member.
    pub fn opened(&mut self) -> Vec<Outgoing> {
        self.open = true;
        vec![
            Outgoing::ChannelControl(ChannelControl::Hello(self.nonce)),
            Outgoing::RelayControl(RelayControl::Proof(self.nonce)),
        ]
    }

    /// Sends a frame to this member alone.
    pub fn send(&mut self, frame: Vec<u8>) -> Vec<Outgoing> {
        let mut outgoing = self.choose_path(frame.len());
        match self.sending {
            Path::Relay => outgoing.push(Outgoing::Relayed(frame)),
            Path::Channel => {
                self.sent += frame.len() as u64;
                outgoing.push(Outgoing::Direct(frame));
            }
        }
        outgoing
    }

    /// What to send to this member before a frame of `bytes` bytes is broadcast through the relay.
    pub fn before_broadcast(&mut self, bytes: usize) -> Vec<Outgoing> {
        self.choose_path(bytes)
    }

    /// What to send to this member after it: a member that reads the channel skips the relay's frame.
    pub fn after_broadcast(&mut self, frame: &[u8]) -> Option<Outgoing> {
        (self.sending == Path::Channel).then(|| {
            self.sent += frame.len() as u64;
            Outgoing::Direct(frame.to_vec())
        })
    }

    /// Chooses the path for the next bytes.
    fn choose_path(&mut self, bytes: usize) -> Vec<Outgoing> {
        let in_flight = self.sent - self.acknowledged;
        let fits = in_flight + bytes as u64 <= self.limits.window;
        match self.sending {
            // Half of the window must be free first; otherwise a slow tab would make the link switch back and forth.
            Path::Relay if self.is_verified() && self.ready && fits && in_flight <= self.limits.window / 2 => {
                self.sending = Path::Channel;
                vec![Outgoing::RelayControl(RelayControl::Directly)]
            }
            Path::Channel if !fits => {
                self.sending = Path::Relay;
                vec![Outgoing::ChannelControl(ChannelControl::ByRelay), Outgoing::RelayControl(RelayControl::ByRelay)]
            }
            _ => Vec::new(),
        }
    }

    /// Compares the two nonces of the other side.
    fn check_nonces(&self) -> Result<LinkOutput, ProtocolViolation> {
        match (self.channel_nonce, self.relay_nonce) {
            (Some(on_channel), Some(by_relay)) if on_channel != by_relay => Err(ProtocolViolation),
            _ if self.is_verified() => {
                let ready = Outgoing::ChannelControl(ChannelControl::Ready);
                Ok(LinkOutput { outgoing: vec![ready], ..LinkOutput::default() })
            }
            _ => Ok(LinkOutput::default()),
        }
    }

    fn is_verified(&self) -> bool {
        self.open && self.channel_nonce.is_some() && self.channel_nonce == self.relay_nonce
    }

    /// True if a frame that came through the relay is to be read now. Otherwise it is held back, or is a copy.
    ///
    /// # Errors
    /// More is held back than a correct peer can send.
    pub fn relayed(&mut self, frame: &[u8]) -> Result<bool, ProtocolViolation> {
        match (self.skip_relayed, self.reading) {
            (true, _) => Ok(false),
            (false, Path::Relay) => Ok(true),
            (false, Path::Channel) => self.hold(Held::Frame(frame.to_vec())).map(|()| false),
        }
    }

    /// A control message came through the relay.
    ///
    /// # Errors
    /// It is not valid in this state.
    pub fn on_relay_control(&mut self, control: RelayControl) -> Result<LinkOutput, ProtocolViolation> {
        match control {
            RelayControl::Proof(nonce) if self.relay_nonce.is_none() => {
                self.relay_nonce = Some(nonce);
                return self.check_nonces();
            }
            // Whoever sends this has heard that this side is ready.
            RelayControl::Directly if !self.skip_relayed && self.is_verified() => {
                self.skip_relayed = true;
                return self.switched_away_from(Path::Relay);
            }
            RelayControl::ByRelay if self.skip_relayed => self.skip_relayed = false,
            _ => return Err(ProtocolViolation),
        }
        Ok(LinkOutput::default())
    }

    /// A control message came on the channel.
    ///
    /// # Errors
    /// It is not valid in this state, or the other end is not the member it claims to be.
    pub fn on_channel_control(&mut self, control: ChannelControl) -> Result<LinkOutput, ProtocolViolation> {
        match control {
            ChannelControl::Hello(nonce) if self.channel_nonce.is_none() => {
                self.channel_nonce = Some(nonce);
                return self.check_nonces();
            }
            ChannelControl::Ready if self.channel_nonce.is_some() => self.ready = true,
            ChannelControl::ByRelay if self.is_verified() => return self.switched_away_from(Path::Channel),
            ChannelControl::Taken(bytes) if (self.acknowledged..=self.sent).contains(&bytes) => {
                self.acknowledged = bytes;
            }
            _ => return Err(ProtocolViolation),
        }
        Ok(LinkOutput::default())
    }

    /// A frame came on the channel.
    ///
    /// # Errors
    /// More is held back than a correct peer can send, or the other end is not the member it claims to be.
    pub fn direct(&mut self, frame: Vec<u8>) -> Result<LinkOutput, ProtocolViolation> {
        // A correct peer sends frames only after it heard that this side is ready.
        if !self.is_verified() {
            return Err(ProtocolViolation);
        }
        if self.reading == Path::Relay {
            return self.hold(Held::Frame(frame)).map(|()| LinkOutput::default());
        }
        let outgoing = self.count_read(&frame);
        Ok(LinkOutput { frames: vec![frame], outgoing: outgoing.into_iter().collect() })
    }

    fn hold(&mut self, held: Held) -> Result<(), ProtocolViolation> {
        self.held_bytes += held.cost();
        self.held.push_back(held);
        if self.held_bytes > self.limits.held { Err(ProtocolViolation) } else { Ok(()) }
    }

    /// Counts a frame read from the channel, and acknowledges from time to time.
    fn count_read(&mut self, frame: &[u8]) -> Option<Outgoing> {
        self.read += frame.len() as u64;
        (self.read - self.read_acknowledged >= self.limits.window / ACKS_PER_WINDOW).then(|| {
            self.read_acknowledged = self.read;
            Outgoing::ChannelControl(ChannelControl::Taken(self.read))
        })
    }

    /// The sender left `path`: read the other one now, or once everything before this message was read.
    fn switched_away_from(&mut self, path: Path) -> Result<LinkOutput, ProtocolViolation> {
        let mut output = LinkOutput::default();
        if path != self.reading {
            return self.hold(Held::Switch).map(|()| output);
        }
        // Everything held is from the other path; it is read up to where the sender left that one again.
        self.reading = path.other();
        while let Some(held) = self.held.pop_front() {
            self.held_bytes -= held.cost();
            match held {
                Held::Frame(frame) => {
                    if self.reading == Path::Channel {
                        output.outgoing.extend(self.count_read(&frame));
                    }
                    output.frames.push(frame);
                }
                Held::Switch => {
                    self.reading = path;
                    break;
                }
            }
        }
        Ok(output)
    }
}
