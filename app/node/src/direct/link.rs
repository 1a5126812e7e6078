//! One member of the room that is a tab of this browser: which way frames go to it, and in which order those that come on
//! two ways are read.
//!
//! **Trust.** Anything of this page's origin can open a channel and say any route. So each side draws a number and says it on
//! the channel and, to the route that the other side claims, through the relay, which writes the true sender's route on it.
//! A channel is used once the two numbers of the other side are the same and it said that it is ready: then a frame on it is
//! as surely of its route as one of the relay's, and is read by nobody to whom the relay would not have brought it.
//!
//! **Order.** Each way keeps its own order. A side that changes its way says so as the last thing on the old one; the other
//! side reads the old way up to there and holds meanwhile what comes on the new one. What goes to everyone goes through the
//! relay; who reads the channel gets a copy there and passes over the relay's.
//!
//! **Backpressure.** A tab that takes nothing (it is frozen) gets at most [`Limits::window`] bytes; what follows goes through the
//! relay, which puts out who does not take it. Who is gone is always the relay's word.

use std::collections::VecDeque;

use super::words::{Mark, Nonce, Word};

/// Bytes that may wait somewhere.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// On the channel, not taken by the other side yet: two of the longest frames.
    pub window: u64,
    /// Of one way while the other one is read: a window and what the relay would queue. Only who breaks the rules has more.
    pub held: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self { window: 32 << 20, held: 128 << 20 }
    }
}

/// What was taken is told so often in a window.
const TOLD: u64 = 8;

/// What is to be sent to the member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Out {
    /// A frame on the channel.
    Direct(Vec<u8>),
    /// A frame through the relay.
    Relayed(Vec<u8>),
    /// On the channel.
    Word(Word),
    /// Through the relay.
    Mark(Mark),
}

/// What something that came leads to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Step {
    /// Frames that are now in turn.
    pub frames: Vec<Vec<u8>>,
    /// What is to be sent.
    pub out: Vec<Out>,
}

/// The other side breaks the rules: the channel is of no use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Broken;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Relay,
    Channel,
}

enum Item {
    Frame(Vec<u8>),
    /// This way pauses: the other one goes on.
    Turn,
}

impl Item {
    /// What it takes of [`Limits::held`]; empty ones are not free.
    fn cost(&self) -> u64 {
        match self {
            Self::Frame(frame) => frame.len() as u64 + 64,
            Self::Turn => 64,
        }
    }
}

/// The two ways to and from one member.
pub struct Link {
    nonce: Nonce,
    limits: Limits,
    /// The channel is there.
    open: bool,
    /// What the other end of the channel said it is.
    said: Option<Nonce>,
    /// What the holder of the route said it is.
    proved: Option<Nonce>,
    /// The other side reads the channel and knows who this one is.
    ready: bool,
    sending: Way,
    sent: u64,
    taken: u64,
    reading: Way,
    /// What comes through the relay comes on the channel as well.
    copies: bool,
    /// What came on the way that is not being read.
    held: VecDeque<Item>,
    held_bytes: u64,
    read: u64,
    told: u64,
}

impl Link {
    /// Everything goes through the relay.
    pub fn new(nonce: Nonce, limits: Limits) -> Self {
        Self {
            nonce,
            limits,
            open: false,
            said: None,
            proved: None,
            ready: false,
            sending: Way::Relay,
            sent: 0,
            taken: 0,
            reading: Way::Relay,
            copies: false,
            held: VecDeque::new(),
            held_bytes: 0,
            read: 0,
            told: 0,
        }
    }

    /// There is a channel to who says that it is this member.
    pub fn opened(&mut self) -> Vec<Out> {
        self.open = true;
        vec![Out::Word(Word::Hello(self.nonce)), Out::Mark(Mark::Proof(self.nonce))]
    }

    /// Sends a frame to this member alone.
    pub fn send(&mut self, frame: Vec<u8>) -> Vec<Out> {
        let mut out = self.turn(frame.len());
        match self.sending {
            Way::Relay => out.push(Out::Relayed(frame)),
            Way::Channel => {
                self.sent += frame.len() as u64;
                out.push(Out::Direct(frame));
            }
        }
        out
    }

    /// To be sent to this member before a frame of so many bytes goes to everyone through the relay.
    pub fn before_everyone(&mut self, bytes: usize) -> Vec<Out> {
        self.turn(bytes)
    }

    /// To be sent after it: who reads the channel passes over the relay's frame.
    pub fn after_everyone(&mut self, frame: &[u8]) -> Option<Out> {
        (self.sending == Way::Channel).then(|| {
            self.sent += frame.len() as u64;
            Out::Direct(frame.to_vec())
        })
    }

    /// Chooses the way for the next bytes.
    fn turn(&mut self, bytes: usize) -> Vec<Out> {
        let under_way = self.sent - self.taken;
        let fits = under_way + bytes as u64 <= self.limits.window;
        match self.sending {
            // Not before half of it was taken, or a tab that takes too little would be sent back and forth.
            Way::Relay if self.verified() && self.ready && fits && under_way <= self.limits.window / 2 => {
                self.sending = Way::Channel;
                vec![Out::Mark(Mark::Directly)]
            }
            Way::Channel if !fits => {
                self.sending = Way::Relay;
                vec![Out::Word(Word::ByRelay), Out::Mark(Mark::ByRelay)]
            }
            _ => Vec::new(),
        }
    }

    /// Something was said of who the other side is.
    fn known(&self) -> Result<Step, Broken> {
        match (self.said, self.proved) {
            (Some(said), Some(proved)) if said != proved => Err(Broken),
            _ if self.verified() => Ok(Step { out: vec![Out::Word(Word::Ready)], ..Step::default() }),
            _ => Ok(Step::default()),
        }
    }

    fn verified(&self) -> bool {
        self.open && self.said.is_some() && self.said == self.proved
    }

    /// Whether a frame that came through the relay is in turn at once; otherwise it is held, or a copy.
    ///
    /// # Errors
    /// More is held than anybody may send.
    pub fn relayed(&mut self, frame: &[u8]) -> Result<bool, Broken> {
        match (self.copies, self.reading) {
            (true, _) => Ok(false),
            (false, Way::Relay) => Ok(true),
            (false, Way::Channel) => self.hold(Item::Frame(frame.to_vec())).map(|()| false),
        }
    }

    /// A mark came through the relay.
    ///
    /// # Errors
    /// It makes no sense.
    pub fn marked(&mut self, mark: Mark) -> Result<Step, Broken> {
        match mark {
            Mark::Proof(nonce) if self.proved.is_none() => {
                self.proved = Some(nonce);
                return self.known();
            }
            // Who says this has heard that this side is ready.
            Mark::Directly if !self.copies && self.verified() => {
                self.copies = true;
                return self.turned(Way::Relay);
            }
            Mark::ByRelay if self.copies => self.copies = false,
            _ => return Err(Broken),
        }
        Ok(Step::default())
    }

    /// A word came on the channel.
    ///
    /// # Errors
    /// It makes no sense, or the channel's other end is not who it says it is.
    pub fn told(&mut self, word: Word) -> Result<Step, Broken> {
        match word {
            Word::Hello(nonce) if self.said.is_none() => {
                self.said = Some(nonce);
                return self.known();
            }
            Word::Ready if self.said.is_some() => self.ready = true,
            Word::ByRelay if self.verified() => return self.turned(Way::Channel),
            Word::Taken(bytes) if (self.taken..=self.sent).contains(&bytes) => self.taken = bytes,
            _ => return Err(Broken),
        }
        Ok(Step::default())
    }

    /// A frame came on the channel.
    ///
    /// # Errors
    /// More is held than anybody may send, or the channel's other end is not who it says it is.
    pub fn direct(&mut self, frame: Vec<u8>) -> Result<Step, Broken> {
        // Nobody sends any before it has heard that this side is ready.
        if !self.verified() {
            return Err(Broken);
        }
        if self.reading == Way::Relay {
            return self.hold(Item::Frame(frame)).map(|()| Step::default());
        }
        let out = self.take(&frame);
        Ok(Step { frames: vec![frame], out: out.into_iter().collect() })
    }

    fn hold(&mut self, item: Item) -> Result<(), Broken> {
        self.held_bytes += item.cost();
        self.held.push_back(item);
        if self.held_bytes > self.limits.held { Err(Broken) } else { Ok(()) }
    }

    /// A frame of the channel is read.
    fn take(&mut self, frame: &[u8]) -> Option<Out> {
        self.read += frame.len() as u64;
        (self.read - self.told >= self.limits.window / TOLD).then(|| {
            self.told = self.read;
            Out::Word(Word::Taken(self.read))
        })
    }

    /// A way says that the other one goes on: now, or once it is being read up to there.
    fn turned(&mut self, way: Way) -> Result<Step, Broken> {
        let mut step = Step::default();
        if way != self.reading {
            return self.hold(Item::Turn).map(|()| step);
        }
        // All that is held is of the other way: it is in turn up to where that way pauses again.
        self.reading = other(way);
        while let Some(item) = self.held.pop_front() {
            self.held_bytes -= item.cost();
            match item {
                Item::Frame(frame) => {
                    if self.reading == Way::Channel {
                        step.out.extend(self.take(&frame));
                    }
                    step.frames.push(frame);
                }
                Item::Turn => {
                    self.reading = way;
                    break;
                }
            }
        }
        Ok(step)
    }
}

fn other(way: Way) -> Way {
    match way {
        Way::Relay => Way::Channel,
        Way::Channel => Way::Relay,
    }
}
