//! Two members with a relay and a channel between them. Each path may be arbitrarily slow, and the channel may lose what is on it.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::collections::VecDeque;

use proptest::prelude::*;

use super::*;

const SMALL: u64 = 400;
// The channel may stall while the relay delivers everything.
const LIMITS: Limits = Limits { window: SMALL, held: 100_000 };

/// The messages in flight to one side, and the frames it has read.
#[derive(Default)]
struct Side {
    link: Link,
    /// It has opened this channel.
    opened: bool,
    /// It can open none now.
    is_busy: bool,
    /// Channels that are over.
    earlier: u32,
    relay: VecDeque<Relayed>,
    channel: VecDeque<Outgoing>,
    read: Vec<Vec<u8>>,
}

enum Relayed {
    Frame(Vec<u8>),
    Control(RelayControl),
}

impl Side {
    fn put(&mut self, out: impl IntoIterator<Item = Outgoing>) {
        for out in out {
            match out {
                Outgoing::Relayed(frame) => self.relay.push_back(Relayed::Frame(frame)),
                Outgoing::RelayControl(control) => self.relay.push_back(Relayed::Control(control)),
                direct => self.channel.push_back(direct),
            }
        }
    }

    /// Reads the next message from the relay; returns the replies.
    fn read_relay(&mut self) -> Vec<Outgoing> {
        let output = match self.relay.pop_front() {
            Some(Relayed::Frame(frame)) => {
                if self.link.relayed(&frame).unwrap() {
                    self.read.push(frame);
                }
                LinkOutput { frames: self.link.after_relayed().unwrap(), ..LinkOutput::default() }
            }
            Some(Relayed::Control(control)) => self.link.on_relay_control(control).unwrap(),
            None => return Vec::new(),
        };
        // It may never have opened the channel that the other side gave up.
        let was_busy = std::mem::replace(&mut self.is_busy, !self.link.may_open());
        if was_busy && !self.is_busy {
            (self.opened, self.earlier) = (false, self.earlier + 1);
            self.channel.clear();
        }
        self.read.extend(output.frames);
        output.outgoing
    }

    fn read_channel(&mut self) -> Vec<Outgoing> {
        let output = match self.channel.pop_front() {
            Some(Outgoing::Direct(frame)) => self.link.direct(frame).unwrap(),
            Some(Outgoing::ChannelControl(control)) => self.link.on_channel_control(control).unwrap(),
            _ => return Vec::new(),
        };
        self.read.extend(output.frames);
        output.outgoing
    }
}

/// An event; the number selects the side.
#[derive(Clone, Copy, Debug)]
enum Event {
    Opens(usize),
    /// From here on the channel delivers nothing, whatever was on it.
    Loses,
    /// The side gives the channel up.
    Breaks(usize),
    Sends(usize, u8),
    Relay(usize),
    Channel(usize),
}

struct Pair {
    sides: [Side; 2],
    sent: [Vec<Vec<u8>>; 2],
    lost: bool,
}

impl Pair {
    fn new() -> Self {
        Self { sides: Default::default(), sent: Default::default(), lost: false }
    }

    /// A unique frame.
    fn frame(&mut self, from: usize, length: u8) -> Vec<u8> {
        let mut frame = (self.sent[from].len() as u32).to_le_bytes().to_vec();
        frame.resize(4 + usize::from(length), from as u8);
        self.sent[from].push(frame.clone());
        frame
    }

    fn on(&mut self, event: Event) {
        match event {
            Event::Opens(side) => {
                // A channel is made only where neither side has anything left of an earlier one.
                let is_due = self.sides[0].earlier == self.sides[1].earlier && self.sides[side].link.may_open();
                if is_due && !self.sides[side].opened {
                    if !self.sides[1 - side].opened {
                        self.lost = false;
                        self.sides.iter_mut().for_each(|side| side.channel.clear());
                    }
                    (self.sides[side].opened, self.sides[side].is_busy) = (true, true);
                    let nonce = Nonce([side as u8; 16]);
                    let out = self.sides[side].link.opened(nonce, LIMITS);
                    self.put(1 - side, out);
                }
            }
            Event::Loses => {
                self.lost = true;
                self.sides.iter_mut().for_each(|side| side.channel.clear());
            }
            Event::Breaks(side) => {
                let out = self.sides[side].link.broke();
                self.put(1 - side, out);
            }
            Event::Sends(from, length) => {
                let frame = self.frame(from, length);
                let out = self.sides[from].link.send(frame).unwrap();
                self.put(1 - from, out);
            }
            Event::Relay(at) => {
                let out = self.sides[at].read_relay();
                self.put(1 - at, out);
            }
            Event::Channel(at) => {
                let out = self.sides[at].read_channel();
                self.put(1 - at, out);
            }
        }
        for side in &self.sides {
            let waiting: u64 = side
                .channel
                .iter()
                .map(|out| if let Outgoing::Direct(frame) = out { frame.len() as u64 } else { 0 })
                .sum();
            assert!(waiting <= SMALL, "{waiting} bytes wait on a channel");
        }
    }

    fn put(&mut self, to: usize, out: impl IntoIterator<Item = Outgoing>) {
        self.sides[to].put(out);
        // Nobody listens any more on a channel that is over.
        if self.lost || self.sides[0].earlier != self.sides[1].earlier {
            self.sides[to].channel.clear();
        }
    }

    fn deliver_all(&mut self) {
        while self.sides.iter().any(|side| !side.relay.is_empty() || !side.channel.is_empty()) {
            (0..2).flat_map(|side| [Event::Relay(side), Event::Channel(side)]).for_each(|next| self.on(next));
        }
    }

    /// Two sides that have opened the channel and verified each other.
    fn verified_pair() -> Self {
        let mut pair = Self::new();
        pair.on(Event::Opens(0));
        pair.on(Event::Opens(1));
        pair.deliver_all();
        pair
    }
}

fn event() -> impl Strategy<Value = Event> {
    let side = 0usize..2;
    prop_oneof![
        2 => side.clone().prop_map(Event::Opens),
        1 => Just(Event::Loses),
        1 => side.clone().prop_map(Event::Breaks),
        4 => (side.clone(), any::<u8>()).prop_map(|(from, length)| Event::Sends(from, length)),
        5 => side.clone().prop_map(Event::Relay),
        5 => side.prop_map(Event::Channel),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn frames_are_neither_lost_nor_duplicated_nor_reordered(events in prop::collection::vec(event(), 0..200)) {
        let mut pair = Pair::new();
        for next in events {
            pair.on(next);
            for side in 0..2 {
                let read = &pair.sides[side].read;
                prop_assert_eq!(read, &pair.sent[1 - side][..read.len()].to_vec());
            }
        }
        pair.deliver_all();
        // Of a channel that delivers nothing, one side notices it first.
        pair.on(Event::Loses);
        pair.on(Event::Breaks(0));
        pair.deliver_all();
        pair.on(Event::Breaks(1));
        pair.deliver_all();
        for side in 0..2 {
            prop_assert_eq!(&pair.sides[side].read, &pair.sent[1 - side]);
        }
    }
}

#[test]
fn frames_use_the_channel_only_after_both_sides_are_verified() {
    let mut pair = Pair::new();
    pair.on(Event::Opens(0));
    pair.on(Event::Sends(0, 5));
    assert!(
        matches!(pair.sides[1].relay.back(), Some(Relayed::Frame(_))),
        "the other side has not answered on the channel"
    );
    let mut pair = Pair::verified_pair();
    pair.on(Event::Sends(0, 5));
    assert!(matches!(pair.sides[1].channel.back(), Some(Outgoing::Direct(_))), "both have proved who they are");
    assert!(matches!(pair.sides[1].relay.back(), Some(Relayed::Control(RelayControl::Directly))));
}

#[test]
fn a_stalled_tab_gets_one_window_and_the_rest_through_the_relay() {
    let mut pair = Pair::verified_pair();
    for _ in 0..8 {
        pair.on(Event::Sends(0, 96));
    }
    let direct = |side: &Side| side.channel.iter().filter(|out| matches!(out, Outgoing::Direct(_))).count();
    assert_eq!(direct(&pair.sides[1]), 4, "four frames of 100 bytes are a window of {SMALL}");
    pair.deliver_all();
    pair.on(Event::Sends(0, 96));
    assert_eq!(direct(&pair.sides[1]), 1, "it has consumed everything");
    pair.deliver_all();
    assert_eq!(pair.sides[1].read, pair.sent[0]);
}

#[test]
fn a_peer_that_claims_a_foreign_route_is_neither_sent_to_nor_read() {
    let link = || {
        let mut link = Link::default();
        link.opened(Nonce([9; 16]), LIMITS);
        link.on_channel_control(ChannelControl::Hello(Nonce([1; 16]))).unwrap();
        link
    };
    // The holder of the route has not sent its nonce yet.
    assert_eq!(link().direct(vec![1]), Err(ProtocolViolation));
    assert_eq!(link().on_relay_control(RelayControl::Directly), Err(ProtocolViolation));
    let mut unproved = link();
    unproved.on_channel_control(ChannelControl::Ready).unwrap();
    assert!(matches!(unproved.send(vec![1]).unwrap()[..], [Outgoing::Relayed(_)]));
    // The nonce on the channel differs from that of the route's holder.
    assert_eq!(link().on_relay_control(RelayControl::Proof(Nonce([2; 16]))), Err(ProtocolViolation));
    let mut right = link();
    assert_eq!(
        right.on_relay_control(RelayControl::Proof(Nonce([1; 16]))).unwrap().outgoing,
        [Outgoing::ChannelControl(ChannelControl::Ready)]
    );
    assert!(matches!(right.send(vec![1]).unwrap()[..], [Outgoing::Relayed(_)]), "it may not be reading the channel");
    right.on_channel_control(ChannelControl::Ready).unwrap();
    assert!(matches!(
        right.send(vec![1]).unwrap()[..],
        [Outgoing::RelayControl(RelayControl::Directly), Outgoing::Direct(_)]
    ));
    assert_eq!(
        right.on_channel_control(ChannelControl::Taken(2)),
        Err(ProtocolViolation),
        "more is acknowledged than was sent"
    );
}

#[test]
fn held_bytes_are_bounded() {
    let mut pair = Pair::verified_pair();
    let link = &mut pair.sides[0].link;
    assert!(
        link.on_relay_control(RelayControl::Directly).is_ok() && link.on_relay_control(RelayControl::ByRelay).is_ok()
    );
    let held = (0..).take_while(|_| link.relayed(&[0; 100]).is_ok()).count() as u64;
    assert!(held < LIMITS.held / 100, "{held} frames are held while waiting for a control message that never comes");
}

#[test]
fn what_a_broken_channel_has_not_delivered_comes_through_the_relay_before_all_that_follows() {
    let mut pair = Pair::verified_pair();
    (0..3).for_each(|_| pair.on(Event::Sends(0, 5)));
    pair.on(Event::Relay(1));
    pair.on(Event::Channel(1));
    assert_eq!(pair.sides[1].read.len(), 1, "the first of three has arrived");
    pair.on(Event::Loses);
    pair.on(Event::Breaks(0));
    pair.on(Event::Sends(0, 5));
    assert!(!pair.sides[1].relay.iter().any(|message| matches!(message, Relayed::Frame(_))), "it waits");
    pair.deliver_all();
    assert_eq!(pair.sides[1].read, pair.sent[0]);
    assert!(pair.sides.iter().all(|side| side.link.may_open()), "another channel may be tried");
}

#[test]
fn a_side_that_claims_what_it_cannot_have_received_breaks_the_protocol() {
    let mut pair = Pair::verified_pair();
    pair.on(Event::Sends(0, 5));
    let link = &mut pair.sides[0].link;
    assert_eq!(link.on_relay_control(RelayControl::Broken(2)), Err(ProtocolViolation), "one frame was sent");
    assert_eq!(link.on_relay_control(RelayControl::Resent(1)), Err(ProtocolViolation), "nothing has broken");
    assert!(link.on_relay_control(RelayControl::Broken(1)).is_ok());
    assert_eq!(link.on_relay_control(RelayControl::Broken(1)), Err(ProtocolViolation), "twice");
}

#[test]
fn what_waits_for_a_member_that_does_not_answer_is_bounded() {
    let mut pair = Pair::verified_pair();
    let link = &mut pair.sides[0].link;
    link.broke();
    let waiting = (0..).take_while(|_| link.send(vec![0; 1000]).is_ok()).count() as u64;
    assert_eq!(waiting, LIMITS.held / 1000);
}
