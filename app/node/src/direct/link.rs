//! The link to one room member in another tab of this browser. It decides which path frames take to that member, and in
//! which order to read the frames that arrive on two paths.
//!
//! **Trust.** Any script of this page's origin can open a channel and claim any route. So each side draws a nonce and
//! sends it twice: on the channel, and through the relay to the route that the other side claims. The relay stamps the
//! true sender's route on that copy. A side uses the channel once both nonces from the other side match and the other
//! side has sent that it is ready. From then on, a frame's origin is as certain on the channel as through the relay,
//! and frames reach nobody to whom the relay would not have delivered them.
//!
//! **Order.** Each path keeps its own order. A side that switches paths announces the switch in its last message on the
//! old path. The other side reads the old path up to that message and holds back what arrives on the new one.
//!
//! **Backpressure.** A tab that stops consuming (it is frozen) gets at most [`Limits::window`] bytes on the channel.
//! The rest goes through the relay, which limits it in turn and evicts members that do not read. Only the relay decides who has left.

use std::collections::VecDeque;

use super::messages::{ChannelControl, LinkOutput, Nonce, Outgoing, ProtocolViolation, RelayControl};

/// Limits on pending bytes.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Bytes on the channel that the other side has not consumed yet: two frames of maximum length.
    pub window: u64,
    /// Bytes held back from one path while the other is read: a window plus what the relay queues. Only a misbehaving
    /// peer exceeds this.
    pub held: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self { window: 32 << 20, held: 128 << 20 }
    }
}

/// Number of acknowledgements per window of consumed bytes.
const ACKS_PER_WINDOW: u64 = 8;

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

enum HeldMessage {
    Frame(Vec<u8>),
    /// The sender switched to the other path here.
    Switch,
}

impl HeldMessage {
    /// Its share of [`Limits::held`]. Even an empty frame has a cost, so that a peer cannot send an endless number of
    /// them.
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
    /// The nonce received on the channel.
    channel_nonce: Option<Nonce>,
    /// The nonce received through the relay.
    relay_nonce: Option<Nonce>,
    /// The other side reads the channel and has verified this side.
    ready: bool,
    sending: Path,
    /// Bytes sent on the channel; the next field counts those that the other side acknowledged.
    sent: u64,
    acknowledged: u64,
    reading: Path,
    /// The sender said that its next frames come on the channel.
    left_relay: bool,
    /// Messages that arrived on the path that is not being read.
    held: VecDeque<HeldMessage>,
    held_bytes: u64,
    /// Bytes read from the channel; the next field counts those that this side acknowledged.
    read: u64,
    read_acknowledged: u64,
}

impl Link {
    /// A link without a channel, which sends everything through the relay.
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
            left_relay: false,
            held: VecDeque::new(),
            held_bytes: 0,
            read: 0,
            read_acknowledged: 0,
        }
    }

    /// A channel opened to a peer that claims to be this member.
    pub fn opened(&mut self) -> Vec<Outgoing> {
        self.open = true;
        vec![
            Outgoing::ChannelControl(ChannelControl::Hello(self.nonce)),
            Outgoing::RelayControl(RelayControl::Proof(self.nonce)),
        ]
    }

    /// Sends a frame to this member only.
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

    /// Chooses the path for the next bytes.
    fn choose_path(&mut self, bytes: usize) -> Vec<Outgoing> {
        let in_flight = self.sent - self.acknowledged;
        let fits = in_flight + bytes as u64 <= self.limits.window;
        match self.sending {
            // Require half of the window to be free; otherwise a slow tab would make the link flap between the paths.
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

    /// Compares the other side's two nonces.
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

    /// True if a frame from the relay should be read now. Otherwise it is held back.
    ///
    /// # Errors
    /// A correct peer sends no frame this way now, or not as many.
    pub fn relayed(&mut self, frame: &[u8]) -> Result<bool, ProtocolViolation> {
        match (self.left_relay, self.reading) {
            (true, _) => Err(ProtocolViolation),
            (false, Path::Relay) => Ok(true),
            (false, Path::Channel) => self.hold(HeldMessage::Frame(frame.to_vec())).map(|()| false),
        }
    }

    /// Handles a control message from the relay.
    ///
    /// # Errors
    /// The message is not valid in this state.
    pub fn on_relay_control(&mut self, control: RelayControl) -> Result<LinkOutput, ProtocolViolation> {
        match control {
            RelayControl::Proof(nonce) if self.relay_nonce.is_none() => {
                self.relay_nonce = Some(nonce);
                return self.check_nonces();
            }
            // Only a peer that received this side's ready message sends this.
            RelayControl::Directly if !self.left_relay && self.is_verified() => {
                self.left_relay = true;
                return self.switched_away_from(Path::Relay);
            }
            RelayControl::ByRelay if self.left_relay => self.left_relay = false,
            _ => return Err(ProtocolViolation),
        }
        Ok(LinkOutput::default())
    }

    /// Handles a control message from the channel.
    ///
    /// # Errors
    /// The message is not valid in this state, or the other end is not the member it claims to be.
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

    /// Handles a frame from the channel.
    ///
    /// # Errors
    /// The held bytes exceed what a correct peer can send, or the other end is not the member it claims to be.
    pub fn direct(&mut self, frame: Vec<u8>) -> Result<LinkOutput, ProtocolViolation> {
        // A correct peer sends frames only after this side's ready message.
        if !self.is_verified() {
            return Err(ProtocolViolation);
        }
        if self.reading == Path::Relay {
            return self.hold(HeldMessage::Frame(frame)).map(|()| LinkOutput::default());
        }
        let outgoing = self.count_read(&frame);
        Ok(LinkOutput { frames: vec![frame], outgoing: outgoing.into_iter().collect() })
    }

    fn hold(&mut self, held: HeldMessage) -> Result<(), ProtocolViolation> {
        self.held_bytes += held.cost();
        self.held.push_back(held);
        if self.held_bytes > self.limits.held { Err(ProtocolViolation) } else { Ok(()) }
    }

    /// Counts a frame read from the channel, and acknowledges at intervals.
    fn count_read(&mut self, frame: &[u8]) -> Option<Outgoing> {
        self.read += frame.len() as u64;
        (self.read - self.read_acknowledged >= self.limits.window / ACKS_PER_WINDOW).then(|| {
            self.read_acknowledged = self.read;
            Outgoing::ChannelControl(ChannelControl::Taken(self.read))
        })
    }

    /// The sender left `path`: switch to the other one, now or after reading all earlier messages.
    fn switched_away_from(&mut self, path: Path) -> Result<LinkOutput, ProtocolViolation> {
        let mut output = LinkOutput::default();
        if path != self.reading {
            return self.hold(HeldMessage::Switch).map(|()| output);
        }
        // All held messages came from the other path; read them up to the point where the sender left that path again.
        self.reading = path.other();
        while let Some(held) = self.held.pop_front() {
            self.held_bytes -= held.cost();
            match held {
                HeldMessage::Frame(frame) => {
                    if self.reading == Path::Channel {
                        output.outgoing.extend(self.count_read(&frame));
                    }
                    output.frames.push(frame);
                }
                HeldMessage::Switch => {
                    self.reading = path;
                    break;
                }
            }
        }
        Ok(output)
    }
}
