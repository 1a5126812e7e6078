//! Two tabs, a relay and a channel between them, each way as slow as it likes.
#![allow(clippy::unwrap_used)]

use std::collections::VecDeque;

use proptest::prelude::*;

use super::*;

const SMALL: u64 = 400;
// A channel may stand still while the relay brings everything.
const LIMITS: Limits = Limits { window: SMALL, held: 100_000 };

/// What travels to one side, and what it has read.
struct Side {
    link: Link,
    relay: VecDeque<Relayed>,
    channel: VecDeque<Out>,
    read: Vec<Vec<u8>>,
}

enum Relayed {
    Frame(Vec<u8>),
    Mark(Mark),
}

impl Side {
    fn new(number: u8) -> Self {
        Self {
            link: Link::new(Nonce([number; 16]), LIMITS),
            relay: VecDeque::new(),
            channel: VecDeque::new(),
            read: Vec::new(),
        }
    }

    fn put(&mut self, out: impl IntoIterator<Item = Out>) {
        for out in out {
            match out {
                Out::Relayed(frame) => self.relay.push_back(Relayed::Frame(frame)),
                Out::Mark(mark) => self.relay.push_back(Relayed::Mark(mark)),
                direct => self.channel.push_back(direct),
            }
        }
    }

    /// Reads the next message of the relay; gives what is to be sent back.
    fn by_relay(&mut self) -> Vec<Out> {
        let step = match self.relay.pop_front() {
            Some(Relayed::Frame(frame)) => {
                if self.link.relayed(&frame).unwrap() {
                    self.read.push(frame);
                }
                return Vec::new();
            }
            Some(Relayed::Mark(mark)) => self.link.marked(mark).unwrap(),
            None => return Vec::new(),
        };
        self.read.extend(step.frames);
        step.out
    }

    fn by_channel(&mut self) -> Vec<Out> {
        let step = match self.channel.pop_front() {
            Some(Out::Direct(frame)) => self.link.direct(frame).unwrap(),
            Some(Out::Word(word)) => self.link.told(word).unwrap(),
            _ => return Vec::new(),
        };
        self.read.extend(step.frames);
        step.out
    }
}

/// What happens next, to the side with this number.
#[derive(Clone, Copy, Debug)]
enum Happens {
    Opens(usize),
    Sends(usize, u8),
    SendsEveryone(usize, u8),
    Relay(usize),
    Channel(usize),
}

struct Pair {
    sides: [Side; 2],
    sent: [Vec<Vec<u8>>; 2],
    opened: [bool; 2],
}

impl Pair {
    fn new() -> Self {
        Self { sides: [Side::new(1), Side::new(2)], sent: Default::default(), opened: [false; 2] }
    }

    /// A frame that no other one is equal to.
    fn frame(&mut self, from: usize, length: u8) -> Vec<u8> {
        let mut frame = (self.sent[from].len() as u32).to_le_bytes().to_vec();
        frame.resize(4 + usize::from(length), from as u8);
        self.sent[from].push(frame.clone());
        frame
    }

    fn on(&mut self, happens: Happens) {
        match happens {
            Happens::Opens(side) if !std::mem::replace(&mut self.opened[side], true) => {
                let out = self.sides[side].link.opened();
                self.sides[1 - side].put(out);
            }
            Happens::Opens(_) => {}
            Happens::Sends(from, length) => {
                let frame = self.frame(from, length);
                let out = self.sides[from].link.send(frame);
                self.sides[1 - from].put(out);
            }
            Happens::SendsEveryone(from, length) => {
                let frame = self.frame(from, length);
                let out = self.sides[from].link.before_everyone(frame.len());
                self.sides[1 - from].put(out);
                self.sides[1 - from].relay.push_back(Relayed::Frame(frame.clone()));
                let out = self.sides[from].link.after_everyone(&frame);
                self.sides[1 - from].put(out);
            }
            Happens::Relay(at) => {
                let out = self.sides[at].by_relay();
                self.sides[1 - at].put(out);
            }
            Happens::Channel(at) => {
                let out = self.sides[at].by_channel();
                self.sides[1 - at].put(out);
            }
        }
        for side in &self.sides {
            let waiting: u64 =
                side.channel.iter().map(|out| if let Out::Direct(frame) = out { frame.len() as u64 } else { 0 }).sum();
            assert!(waiting <= SMALL, "{waiting} bytes wait on a channel");
        }
    }

    fn settle(&mut self) {
        while self.sides.iter().any(|side| !side.relay.is_empty() || !side.channel.is_empty()) {
            (0..2).flat_map(|side| [Happens::Relay(side), Happens::Channel(side)]).for_each(|next| self.on(next));
        }
    }

    /// Both open and known to each other.
    fn met() -> Self {
        let mut pair = Self::new();
        pair.on(Happens::Opens(0));
        pair.on(Happens::Opens(1));
        pair.settle();
        pair
    }
}

fn happens() -> impl Strategy<Value = Happens> {
    let side = 0usize..2;
    prop_oneof![
        1 => side.clone().prop_map(Happens::Opens),
        4 => (side.clone(), any::<u8>()).prop_map(|(from, length)| Happens::Sends(from, length)),
        1 => (side.clone(), any::<u8>()).prop_map(|(from, length)| Happens::SendsEveryone(from, length)),
        5 => side.clone().prop_map(Happens::Relay),
        5 => side.prop_map(Happens::Channel),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn no_frame_is_lost_doubled_or_overtaken(story in prop::collection::vec(happens(), 0..200)) {
        let mut pair = Pair::new();
        for next in story {
            pair.on(next);
            for side in 0..2 {
                let read = &pair.sides[side].read;
                prop_assert_eq!(read, &pair.sent[1 - side][..read.len()].to_vec());
            }
        }
        pair.settle();
        for side in 0..2 {
            prop_assert_eq!(&pair.sides[side].read, &pair.sent[1 - side]);
        }
    }
}

#[test]
fn frames_go_directly_once_both_know_each_other_and_not_before() {
    let mut pair = Pair::new();
    pair.on(Happens::Opens(0));
    pair.on(Happens::Sends(0, 5));
    assert!(matches!(pair.sides[1].relay.back(), Some(Relayed::Frame(_))), "nobody has answered on the channel");
    let mut pair = Pair::met();
    pair.on(Happens::Sends(0, 5));
    assert!(matches!(pair.sides[1].channel.back(), Some(Out::Direct(_))), "both have proved who they are");
    assert!(matches!(pair.sides[1].relay.back(), Some(Relayed::Mark(Mark::Directly))));
}

#[test]
fn a_tab_that_takes_nothing_gets_a_window_and_the_rest_through_the_relay_until_it_takes_again() {
    let mut pair = Pair::met();
    for _ in 0..8 {
        pair.on(Happens::Sends(0, 96));
    }
    let direct = |side: &Side| side.channel.iter().filter(|out| matches!(out, Out::Direct(_))).count();
    assert_eq!(direct(&pair.sides[1]), 4, "four frames of 100 bytes are a window of {SMALL}");
    pair.settle();
    pair.on(Happens::Sends(0, 96));
    assert_eq!(direct(&pair.sides[1]), 1, "it has taken everything");
    pair.settle();
    assert_eq!(pair.sides[1].read, pair.sent[0]);
}

#[test]
fn who_says_anothers_route_is_sent_nothing_and_not_read() {
    let link = || {
        let mut link = Link::new(Nonce([9; 16]), LIMITS);
        link.opened();
        link.told(Word::Hello(Nonce([1; 16]))).unwrap();
        link
    };
    // The route's holder has proved nothing yet.
    assert_eq!(link().direct(vec![1]), Err(Broken));
    assert_eq!(link().marked(Mark::Directly), Err(Broken));
    let mut unproved = link();
    unproved.told(Word::Ready).unwrap();
    assert!(matches!(unproved.send(vec![1])[..], [Out::Relayed(_)]));
    // The channel's other end says another number than the route's holder.
    assert_eq!(link().marked(Mark::Proof(Nonce([2; 16]))), Err(Broken));
    let mut right = link();
    assert_eq!(right.marked(Mark::Proof(Nonce([1; 16]))).unwrap().out, [Out::Word(Word::Ready)]);
    assert!(matches!(right.send(vec![1])[..], [Out::Relayed(_)]), "it may not read the channel");
    right.told(Word::Ready).unwrap();
    assert!(matches!(right.send(vec![1])[..], [Out::Mark(Mark::Directly), Out::Direct(_)]));
    assert_eq!(right.told(Word::Taken(2)), Err(Broken), "nobody takes more than was sent");
}

#[test]
fn what_is_held_has_an_end() {
    let mut pair = Pair::met();
    let link = &mut pair.sides[0].link;
    assert!(link.marked(Mark::Directly).is_ok() && link.marked(Mark::ByRelay).is_ok());
    let held = (0..).take_while(|_| link.relayed(&[0; 100]).is_ok()).count() as u64;
    assert!(held < LIMITS.held / 100, "{held} frames are held for a word on the channel that never comes");
}
