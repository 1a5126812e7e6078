//! The relay's connection as a sender of frames. It sends no more than the relay lets be on the way to one receiver: what is above
//! waits here, so a slow receiver delays only what is meant for it. And it sends together what belongs together
//! ([`RelaySender::hold`]).

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;

use potluck_plan::Millis;
use potluck_relay_api::{Request, Route};

use super::parts::join;
use crate::platform::{SocketMessage, SocketSender};

/// Most bytes that wait for one receiver. Pieces of the host's file are 16 MiB at a time, and activations of a prompt a
/// few, so who leaves this much lying takes nothing.
const MAX_WAITING: u64 = 64 << 20;

/// How long the relay is not asked to evict somebody who has not taken what was sent to it last, in milliseconds.
const LAST_WORD_MILLIS: f64 = 2_000.0;

/// The relay's connection, as a sender of frames.
pub struct RelaySender {
    socket: Rc<dyn SocketSender>,
    window: u64,
    /// The relay takes several messages in one.
    takes_parts: bool,
    /// Messages that wait to go together, while somebody holds them.
    held: RefCell<Option<Vec<Vec<u8>>>>,
    receivers: RefCell<BTreeMap<u32, Receiver>>,
    too_slow: RefCell<Vec<u32>>,
    /// The connection ends once nothing waits.
    finishes: Cell<bool>,
}

#[derive(Default)]
struct Receiver {
    /// Bytes that the relay has not reported as taken.
    on_the_way: u64,
    waiting: VecDeque<Vec<u8>>,
    waiting_bytes: u64,
    /// What the relay is asked once nothing waits, or at this time.
    last: Option<(Request, Millis)>,
}

impl Receiver {
    /// The next message, if it may go: one that fits into the window, or a longer one on its own.
    fn next(&mut self, window: u64) -> Option<Vec<u8>> {
        let len = self.waiting.front()?.len() as u64;
        if self.on_the_way > 0 && self.on_the_way + len > window {
            return None;
        }
        self.on_the_way += len;
        self.waiting_bytes -= len;
        self.waiting.pop_front()
    }

    /// False if too much waits already: then all of it is dropped.
    fn put(&mut self, message: Vec<u8>) -> bool {
        self.waiting_bytes += message.len() as u64;
        self.waiting.push_back(message);
        let fits = self.waiting_bytes <= MAX_WAITING;
        if !fits {
            self.waiting.clear();
            self.waiting_bytes = 0;
        }
        fits
    }
}

impl RelaySender {
    /// `window` is in bytes, routes included. `takes_parts`: the relay takes several messages in one.
    pub fn new(socket: Rc<dyn SocketSender>, window: u64, takes_parts: bool) -> Self {
        Self {
            socket,
            window,
            takes_parts,
            held: RefCell::default(),
            receivers: RefCell::default(),
            too_slow: RefCell::default(),
            finishes: Cell::new(false),
        }
    }

    /// Sends a message to a route, at once or when its receiver has taken earlier ones.
    pub fn send(&self, route: u32, message: &[u8]) {
        if !self.receivers.borrow_mut().entry(route).or_default().put(Route(route).prepend(message)) {
            self.too_slow.borrow_mut().push(route);
        }
        self.flush(route);
    }

    /// Asks the relay for something.
    pub fn ask(&self, request: &Request) {
        match serde_json::to_string(request) {
            Ok(text) => self.socket.send(SocketMessage::Text(text)),
            Err(error) => log::error!("a request to the relay could not be written: {error}"),
        }
    }

    /// Asks the relay for something after all that was sent to a route, which may wait here for its receiver; at the latest after
    /// [`LAST_WORD_MILLIS`], because it may take nothing.
    pub fn ask_after(&self, route: u32, request: Request, now: Millis) {
        match self.receivers.borrow_mut().get_mut(&route).filter(|receiver| !receiver.waiting.is_empty()) {
            Some(receiver) => receiver.last = Some((request, Millis(now.0 + LAST_WORD_MILLIS))),
            None => self.ask(&request),
        }
    }

    /// Sends requests that have waited for their receivers for long enough. Called a few times a second.
    pub fn tick(&self, now: Millis) {
        for receiver in self.receivers.borrow_mut().values_mut() {
            if let Some((request, _)) = receiver.last.take_if(|(_, due)| due.0 <= now.0) {
                self.ask(&request);
            }
        }
    }

    /// What is sent while the guard lives goes together, in its order, when it is dropped.
    pub fn hold(self: &Rc<Self>) -> HoldGuard {
        if self.takes_parts {
            self.held.borrow_mut().get_or_insert_default();
        }
        HoldGuard(self.clone())
    }

    fn release(&self) {
        let held = self.held.take().unwrap_or_default();
        join(held).into_iter().for_each(|message| self.socket.send(SocketMessage::Binary(message)));
    }

    /// Receivers for which messages were dropped since the last call: their sessions cannot go on.
    pub fn take_too_slow(&self) -> Vec<u32> {
        std::mem::take(&mut self.too_slow.borrow_mut())
    }

    /// The relay reports what a receiver took.
    pub fn taken(&self, route: u32, bytes: u64) {
        if let Some(receiver) = self.receivers.borrow_mut().get_mut(&route) {
            receiver.on_the_way = receiver.on_the_way.saturating_sub(bytes);
        }
        self.flush(route);
        self.close_if_done();
    }

    /// A route is gone, and everything that was meant for it.
    pub fn left(&self, route: u32) {
        self.receivers.borrow_mut().remove(&route);
        self.close_if_done();
    }

    /// Ends the connection.
    pub fn close(&self) {
        self.socket.close();
    }

    /// Ends the connection once everything has gone that waits for slow receivers. True if something does.
    pub fn finish(&self) -> bool {
        self.finishes.set(true);
        self.close_if_done();
        self.has_waiting()
    }

    fn has_waiting(&self) -> bool {
        self.receivers.borrow().values().any(|receiver| !receiver.waiting.is_empty())
    }

    fn close_if_done(&self) {
        if self.finishes.get() && !self.has_waiting() {
            self.socket.close();
        }
    }

    fn flush(&self, route: u32) {
        let mut receivers = self.receivers.borrow_mut();
        let Some(receiver) = receivers.get_mut(&route) else { return };
        while let Some(message) = receiver.next(self.window) {
            match &mut *self.held.borrow_mut() {
                Some(held) => held.push(message),
                None => self.socket.send(SocketMessage::Binary(message)),
            }
        }
        if receiver.waiting.is_empty()
            && let Some((request, _)) = receiver.last.take()
        {
            self.ask(&request);
        }
    }
}

/// While this lives, messages wait; then they go together.
pub struct HoldGuard(Rc<RelaySender>);

impl Drop for HoldGuard {
    fn drop(&mut self) {
        self.0.release();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Default)]
    struct Sent(RefCell<Vec<(u8, usize)>>, Cell<bool>);

    impl SocketSender for Sent {
        fn send(&self, message: SocketMessage) {
            if let SocketMessage::Binary(bytes) = message {
                self.0.borrow_mut().push((bytes[3], bytes.len()));
            }
        }

        fn close(&self) {
            self.1.set(true);
        }
    }

    #[test]
    fn a_slow_receiver_delays_only_its_own_messages() {
        let sent = Rc::new(Sent::default());
        let relay = RelaySender::new(sent.clone(), 100, false);
        (0..3).for_each(|_| relay.send(1, &[0; 46]));
        relay.send(2, &[0; 46]);
        assert_eq!(*sent.0.borrow(), [(1, 50), (1, 50), (2, 50)]);
        relay.taken(1, 50);
        assert_eq!(sent.0.borrow().last(), Some(&(1, 50)), "the third follows once one was taken");
        assert_eq!(sent.0.borrow().len(), 4);
    }

    #[test]
    fn a_message_longer_than_the_window_goes_alone() {
        let sent = Rc::new(Sent::default());
        let relay = RelaySender::new(sent.clone(), 100, false);
        relay.send(1, &[0; 496]);
        relay.send(1, &[0; 6]);
        assert_eq!(*sent.0.borrow(), [(1, 500)]);
        relay.taken(1, 500);
        assert_eq!(*sent.0.borrow(), [(1, 500), (1, 10)]);
    }

    #[test]
    fn what_waits_for_a_receiver_is_bounded_and_whose_messages_were_dropped_is_told() {
        let sent = Rc::new(Sent::default());
        let relay = RelaySender::new(sent.clone(), 100, false);
        let mebibyte = vec![0; (1 << 20) - 4];
        (0..65).for_each(|_| relay.send(1, &mebibyte));
        relay.send(2, &mebibyte);
        assert_eq!(relay.take_too_slow(), [0; 0], "one is on the way, and 64 MiB wait");
        relay.send(1, &mebibyte);
        assert_eq!(relay.take_too_slow(), [1]);
        relay.taken(1, 1 << 20);
        assert_eq!(sent.0.borrow().len(), 2, "nothing is left of it");
    }

    /// A visitor that was refused, but had something else on the way, was put out before it read why.
    #[test]
    fn nobody_is_put_out_before_the_last_word_to_it() {
        #[derive(Default)]
        struct Order(RefCell<Vec<String>>);
        impl SocketSender for Order {
            fn send(&self, message: SocketMessage) {
                self.0.borrow_mut().push(match message {
                    SocketMessage::Binary(bytes) => format!("{} bytes", bytes.len()),
                    SocketMessage::Text(text) => text,
                });
            }

            fn close(&self) {}
        }
        let put_out = || Request::PutOut { route: Route(1) };
        let asked = |order: &Order| order.0.borrow().iter().position(|message| message.contains("put-out"));
        let new = || {
            let order = Rc::new(Order::default());
            (order.clone(), RelaySender::new(order, 100, false))
        };
        let (order, relay) = new();
        relay.send(1, &[0; 96]);
        relay.send(1, b"No.");
        relay.ask_after(1, put_out(), Millis(0.0));
        assert_eq!((order.0.borrow().len(), asked(&order)), (1, None), "the last word waits");
        relay.taken(1, 100);
        assert_eq!((order.0.borrow()[1].as_str(), asked(&order)), ("7 bytes", Some(2)));

        let (order, relay) = new();
        relay.ask_after(1, put_out(), Millis(0.0));
        assert_eq!(asked(&order), Some(0), "nothing waits");

        let (order, relay) = new();
        (0..2).for_each(|_| relay.send(1, &[0; 96]));
        relay.ask_after(1, put_out(), Millis(0.0));
        relay.tick(Millis(LAST_WORD_MILLIS - 1.0));
        assert_eq!(asked(&order), None);
        relay.tick(Millis(LAST_WORD_MILLIS));
        assert_eq!(asked(&order), Some(1), "it takes nothing");
        relay.tick(Millis(2.0 * LAST_WORD_MILLIS));
        assert_eq!(order.0.borrow().len(), 2, "it is asked once");
    }

    #[test]
    fn a_connection_finishes_once_slow_receivers_have_taken_or_left_what_waits() {
        let sent = Rc::new(Sent::default());
        let relay = RelaySender::new(sent.clone(), 100, false);
        for route in [1, 2] {
            (0..3).for_each(|_| relay.send(route, &[0; 96]));
        }
        assert!(relay.finish(), "two messages wait for each");
        relay.taken(1, 100);
        relay.taken(1, 100);
        assert_eq!(sent.0.borrow().iter().filter(|(route, _)| *route == 1).count(), 3);
        assert!(!sent.1.get(), "something waits for the other one");
        relay.left(2);
        assert!(sent.1.get());
    }

    #[test]
    fn a_connection_for_which_nothing_waits_finishes_at_once() {
        let sent = Rc::new(Sent::default());
        let relay = RelaySender::new(sent.clone(), 100, false);
        relay.send(1, &[0; 96]);
        assert!(!relay.finish());
        assert!(sent.1.get());
    }

    #[test]
    fn a_route_that_left_is_forgotten() {
        let sent = Rc::new(Sent::default());
        let relay = RelaySender::new(sent.clone(), 10, false);
        relay.send(1, &[0; 10]);
        relay.send(1, &[0; 10]);
        relay.left(1);
        relay.taken(1, 14);
        assert_eq!(sent.0.borrow().len(), 1);
    }

    #[test]
    fn what_is_sent_while_held_goes_as_one_message() {
        for (takes_parts, expected) in
            [(true, vec![(9, 9), (254, 4 + 3 * 18), (9, 9)]), (false, vec![(9, 9), (1, 14), (2, 14), (3, 14), (9, 9)])]
        {
            let sent = Rc::new(Sent::default());
            let relay = Rc::new(RelaySender::new(sent.clone(), 100, takes_parts));
            relay.send(9, &[0; 5]);
            relay.taken(9, 9);
            let held = relay.hold();
            (1..4).for_each(|route| relay.send(route, &[0; 10]));
            assert_eq!(sent.0.borrow().len(), if takes_parts { 1 } else { 4 });
            drop(held);
            relay.send(9, &[0; 5]);
            assert_eq!(*sent.0.borrow(), expected);
        }
    }
}
