//! The link to one room member that a channel reaches beside the relay: a member in another tab of this browser, or on another device. It
//! decides which path frames take to that member, and in which order to read the frames that arrive on two paths.
//!
//! **Trust.** Any script of this page's origin can open a channel between tabs and claim any route. So each side draws a nonce and
//! sends it twice: on the channel, and through the relay to the route that the other side claims. The relay stamps the
//! true sender's route on that copy. A side uses the channel once both nonces from the other side match and the other
//! side has sent that it is ready. From then on, a frame's origin is as certain on the channel as through the relay,
//! and frames reach nobody to whom the relay would not have delivered them.
//!
//! **Order.** Each path keeps its own order. A side that switches paths announces the switch in its last message on the
//! old path. The other side reads the old path up to that message and holds back what arrives on the new one. A side goes back to the
//! channel only when the other has read all up to its last switch, so at most one turn on the channel is ever unfinished.
//!
//! **Breaks.** A channel to another device can stall or close with frames on their way. Either side then says through the relay how
//! many frames it has received from the channel, and reads nothing more there. The other side says the same, sends the missing frames
//! again through the relay, and goes on there. Until both have done so, new frames wait.
//!
//! **Backpressure.** A member that stops consuming (its tab is frozen) gets at most [`Limits::window`] bytes on the channel.
//! The rest goes through the relay, which limits it in turn and evicts members that do not read. Only the relay decides who has left.

use std::collections::VecDeque;

use super::messages::{ChannelControl, LinkOutput, Nonce, Outgoing, ProtocolViolation, RelayControl};
use super::unread::{Held, Unread};

/// Limits on pending bytes.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Bytes on the channel that the other side has not consumed yet.
    pub window: u64,
    /// Bytes held back from one path while the other is read: a window plus what the relay queues. Only a misbehaving
    /// peer exceeds this. As many may wait while a broken channel is settled.
    pub held: u64,
}

impl Limits {
    /// Between tabs of one browser: two frames of maximum length.
    pub const TAB: Self = Self { window: 32 << 20, held: 128 << 20 };
    /// Between devices. Browsers close a data channel on which 16 MiB wait.
    pub const DEVICE: Self = Self { window: 4 << 20, held: 128 << 20 };
}

/// Number of acknowledgements per window of consumed bytes.
const ACKS_PER_WINDOW: u64 = 8;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Path {
    Relay,
    Channel,
}

/// A channel that has broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Break {
    /// The other side has yet to say what it received.
    Said,
    /// Both sides have said it. The other side's missing frames come next.
    Settled,
    /// So many of them are still to come.
    Resent(u64),
}

/// Both paths to and from one member.
pub struct Link {
    limits: Limits,
    /// This side's nonce, if the channel exists.
    nonce: Option<Nonce>,
    /// The nonce received on the channel.
    channel_nonce: Option<Nonce>,
    /// The nonce received through the relay.
    relay_nonce: Option<Nonce>,
    /// The other side reads the channel and has verified this side.
    ready: bool,
    /// Frames should take the channel.
    preferred: bool,
    sending: Path,
    /// The other side has yet to read the channel up to where this side left it.
    leaves: bool,
    /// Bytes and frames sent on the channel; the other side acknowledged the first so many of the bytes.
    sent: u64,
    sent_frames: u64,
    acknowledged: u64,
    /// The frames that are not acknowledged, with where each ends among the bytes sent.
    kept: VecDeque<(u64, Vec<u8>)>,
    broken: Option<Break>,
    /// Frames that wait for the other side to say what it received.
    waiting: VecDeque<Vec<u8>>,
    waiting_bytes: u64,
    reading: Path,
    /// The sender said that its next frames come on the channel.
    left_relay: bool,
    /// Messages that arrived on the path that is not being read.
    held: Unread,
    /// Frames that have arrived on the channel.
    received_frames: u64,
    /// Bytes read from the channel; the next field counts those that this side acknowledged.
    read: u64,
    read_acknowledged: u64,
}

impl Default for Link {
    /// A link without a channel, which sends everything through the relay.
    fn default() -> Self {
        Self {
            limits: Limits::TAB,
            nonce: None,
            channel_nonce: None,
            relay_nonce: None,
            ready: false,
            preferred: true,
            sending: Path::Relay,
            leaves: false,
            sent: 0,
            sent_frames: 0,
            acknowledged: 0,
            kept: VecDeque::new(),
            broken: None,
            waiting: VecDeque::new(),
            waiting_bytes: 0,
            reading: Path::Relay,
            left_relay: false,
            held: Unread::new(Limits::TAB.held),
            received_frames: 0,
            read: 0,
            read_acknowledged: 0,
        }
    }
}

impl Link {
    /// A channel opened to a peer that claims to be this member.
    pub fn opened(&mut self, nonce: Nonce, limits: Limits) -> Vec<Outgoing> {
        self.limits = limits;
        self.held.set_limit(limits.held);
        self.nonce = Some(nonce);
        vec![Outgoing::ChannelControl(ChannelControl::Hello(nonce)), Outgoing::RelayControl(RelayControl::Proof(nonce))]
    }

    /// Another channel may be opened now.
    pub fn may_open(&self) -> bool {
        self.nonce.is_none() && self.broken.is_none()
    }

    /// The other end is the member, and reads the channel.
    pub fn is_up(&self) -> bool {
        self.is_verified() && self.ready && self.broken.is_none()
    }

    /// Frames go on the channel.
    pub fn is_direct(&self) -> bool {
        self.sending == Path::Channel
    }

    /// Whether frames should take the channel.
    pub fn prefer(&mut self, channel: bool) {
        self.preferred = channel;
    }

    /// Sends a frame to this member only.
    ///
    /// # Errors
    /// The other side does not say what it received of a broken channel, and too much waits for that.
    pub fn send(&mut self, frame: Vec<u8>) -> Result<Vec<Outgoing>, ProtocolViolation> {
        if self.broken == Some(Break::Said) {
            self.waiting_bytes += frame.len() as u64;
            self.waiting.push_back(frame);
            return if self.waiting_bytes > self.limits.held { Err(ProtocolViolation) } else { Ok(Vec::new()) };
        }
        let mut outgoing = self.choose_path(frame.len());
        match self.sending {
            Path::Relay => outgoing.push(Outgoing::Relayed(frame)),
            Path::Channel => {
                self.sent += frame.len() as u64;
                self.sent_frames += 1;
                self.kept.push_back((self.sent, frame.clone()));
                outgoing.push(Outgoing::Direct(frame));
            }
        }
        Ok(outgoing)
    }

    /// Chooses the path for the next bytes.
    fn choose_path(&mut self, bytes: usize) -> Vec<Outgoing> {
        let fits = self.sent - self.acknowledged + bytes as u64 <= self.limits.window;
        match self.sending {
            Path::Relay if self.is_up() && self.preferred && fits && !self.leaves => {
                self.sending = Path::Channel;
                vec![Outgoing::RelayControl(RelayControl::Directly)]
            }
            Path::Channel if !fits || !self.preferred => {
                (self.sending, self.leaves) = (Path::Relay, true);
                vec![Outgoing::ChannelControl(ChannelControl::ByRelay), Outgoing::RelayControl(RelayControl::ByRelay)]
            }
            _ => Vec::new(),
        }
    }

    /// Compares the other side's two nonces.
    fn check_nonces(&self) -> Result<LinkOutput, ProtocolViolation> {
        match (self.channel_nonce, self.relay_nonce) {
            (Some(on_channel), Some(by_relay)) if on_channel != by_relay => Err(ProtocolViolation),
            _ if self.is_verified() => Ok(Outgoing::ChannelControl(ChannelControl::Ready).into()),
            _ => Ok(LinkOutput::default()),
        }
    }

    fn is_verified(&self) -> bool {
        self.nonce.is_some() && self.channel_nonce.is_some() && self.channel_nonce == self.relay_nonce
    }

    /// True if a frame from the relay should be read now. Otherwise it is held back.
    ///
    /// # Errors
    /// A correct peer sends no frame this way now, or not as many.
    pub fn relayed(&mut self, frame: &[u8]) -> Result<bool, ProtocolViolation> {
        if let Some(Break::Resent(left @ 1..)) = &mut self.broken {
            *left -= 1;
            return Ok(true);
        }
        match (self.left_relay, self.reading) {
            (true, _) => Err(ProtocolViolation),
            (false, Path::Relay) => Ok(true),
            (false, Path::Channel) => self.held.push(Held::Frame(frame.to_vec())).map(|()| false),
        }
    }

    /// To be called after each frame from the relay: what can be read now that the missing frames have been.
    ///
    /// # Errors
    /// Something is held that a correct peer does not send.
    pub fn after_relayed(&mut self) -> Result<Vec<Vec<u8>>, ProtocolViolation> {
        if self.broken == Some(Break::Resent(0)) { self.begin_anew() } else { Ok(Vec::new()) }
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
            RelayControl::Broken(received) if matches!(self.broken, None | Some(Break::Said)) => {
                return self.settle(received);
            }
            RelayControl::Resent(frames) if self.broken == Some(Break::Settled) => {
                self.left_relay = false;
                self.broken = Some(Break::Resent(frames));
                return self.after_relayed().map(|frames| LinkOutput { frames, ..LinkOutput::default() });
            }
            _ => return Err(ProtocolViolation),
        }
        Ok(LinkOutput::default())
    }

    /// Handles a control message from the channel.
    ///
    /// # Errors
    /// The message is not valid in this state, or the other end is not the member it claims to be.
    pub fn on_channel_control(&mut self, control: ChannelControl) -> Result<LinkOutput, ProtocolViolation> {
        if self.broken.is_some() {
            return Ok(LinkOutput::default());
        }
        match control {
            ChannelControl::Hello(nonce) if self.channel_nonce.is_none() => {
                self.channel_nonce = Some(nonce);
                return self.check_nonces();
            }
            ChannelControl::Ready if self.channel_nonce.is_some() => self.ready = true,
            ChannelControl::ByRelay if self.is_verified() => return self.switched_away_from(Path::Channel),
            ChannelControl::Taken(bytes) if (self.acknowledged..=self.sent).contains(&bytes) => {
                self.acknowledged = bytes;
                while self.kept.front().is_some_and(|(end, _)| *end <= bytes) {
                    self.kept.pop_front();
                }
            }
            ChannelControl::ReadAll if self.leaves => self.leaves = false,
            _ => return Err(ProtocolViolation),
        }
        Ok(LinkOutput::default())
    }

    /// Handles a frame from the channel.
    ///
    /// # Errors
    /// The held bytes exceed what a correct peer can send, or the other end is not the member it claims to be.
    pub fn direct(&mut self, frame: Vec<u8>) -> Result<LinkOutput, ProtocolViolation> {
        // It comes again through the relay.
        if self.broken.is_some() {
            return Ok(LinkOutput::default());
        }
        // A correct peer sends frames only after this side's ready message.
        if !self.is_verified() {
            return Err(ProtocolViolation);
        }
        self.received_frames += 1;
        if self.reading == Path::Relay {
            return self.held.push(Held::Frame(frame)).map(|()| LinkOutput::default());
        }
        let outgoing = self.count_read(&frame);
        Ok(LinkOutput { frames: vec![frame], outgoing: outgoing.into_iter().collect() })
    }

    /// The channel stalls, or it closed. Without a channel nothing happens.
    pub fn broke(&mut self) -> Vec<Outgoing> {
        if self.nonce.is_none() || self.broken.is_some() {
            return Vec::new();
        }
        self.broken = Some(Break::Said);
        vec![Outgoing::RelayControl(RelayControl::Broken(self.received_frames))]
    }

    /// The other side says how many frames it has received from the broken channel.
    fn settle(&mut self, received: u64) -> Result<LinkOutput, ProtocolViolation> {
        let acknowledged = self.sent_frames - self.kept.len() as u64;
        let missing = self.sent_frames.checked_sub(received).ok_or(ProtocolViolation)?;
        if received < acknowledged {
            return Err(ProtocolViolation);
        }
        let mut outgoing = Vec::new();
        if self.broken.is_none() {
            outgoing.push(Outgoing::RelayControl(RelayControl::Broken(self.received_frames)));
        }
        self.broken = Some(Break::Settled);
        self.sending = Path::Relay;
        outgoing.push(Outgoing::RelayControl(RelayControl::Resent(missing)));
        let kept = std::mem::take(&mut self.kept).into_iter().map(|(_, frame)| frame);
        let resent = kept.skip((received - acknowledged) as usize);
        outgoing.extend(resent.chain(std::mem::take(&mut self.waiting)).map(Outgoing::Relayed));
        self.waiting_bytes = 0;
        Ok(LinkOutput { outgoing, ..LinkOutput::default() })
    }

    /// All that the broken channel has left undone is done: returns the frames that came through the relay meanwhile.
    fn begin_anew(&mut self) -> Result<Vec<Vec<u8>>, ProtocolViolation> {
        let mut ended = std::mem::replace(self, Self { preferred: self.preferred, ..Self::default() });
        let mut frames = Vec::new();
        while let Some(next) = ended.held.pop() {
            match next {
                Held::Frame(frame) if ended.reading == Path::Channel => frames.push(frame),
                _ => return Err(ProtocolViolation),
            }
        }
        Ok(frames)
    }

    /// Counts a frame read from the channel, and acknowledges at intervals.
    fn count_read(&mut self, frame: &[u8]) -> Option<Outgoing> {
        self.read += frame.len() as u64;
        (self.read - self.read_acknowledged >= self.limits.window / ACKS_PER_WINDOW).then(|| self.acknowledge())
    }

    fn acknowledge(&mut self) -> Outgoing {
        self.read_acknowledged = self.read;
        Outgoing::ChannelControl(ChannelControl::Taken(self.read))
    }

    /// The sender left `path`: switch to the other one, now or after reading all earlier messages.
    fn switched_away_from(&mut self, path: Path) -> Result<LinkOutput, ProtocolViolation> {
        let mut output = LinkOutput::default();
        if path != self.reading {
            return self.held.push(Held::Switch).map(|()| output);
        }
        // All held messages came from the other path; read them up to the point where the sender left that path again.
        self.leave(path, &mut output);
        while let Some(held) = self.held.pop() {
            match held {
                Held::Frame(frame) => {
                    if self.reading == Path::Channel {
                        output.outgoing.extend(self.count_read(&frame));
                    }
                    output.frames.push(frame);
                }
                Held::Switch => {
                    self.leave(self.reading, &mut output);
                    break;
                }
            }
        }
        Ok(output)
    }

    /// Reads the other path from now on. The sender comes back to the channel only when it knows that all was read there.
    fn leave(&mut self, path: Path, output: &mut LinkOutput) {
        self.reading = match path {
            Path::Relay => Path::Channel,
            Path::Channel => Path::Relay,
        };
        if path == Path::Channel && self.broken.is_none() {
            let read_all = Outgoing::ChannelControl(ChannelControl::ReadAll);
            output.outgoing.extend([self.acknowledge(), read_all]);
        }
    }
}
