//! Sends through the relay no more than it lets be on the way to one receiver. What is above waits here, so a slow
//! receiver delays only what is meant for it.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;

use crate::control::with_route;
use crate::parts::PartsSender;
use crate::platform::SocketSender;

/// Most bytes that wait for one receiver. Pieces of the host's file are 16 MiB at a time, and activations of a prompt a
/// few, so who leaves this much lying takes nothing.
const MAX_WAITING: u64 = 64 << 20;

/// The relay's connection, as a sender of frames.
pub struct RelaySender {
    socket: PartsSender,
    window: u64,
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
        let socket = PartsSender::new(socket, takes_parts);
        Self { socket, window, receivers: RefCell::default(), too_slow: RefCell::default(), finishes: Cell::new(false) }
    }

    /// Sends a message to a route, at once or when its receiver has taken earlier ones.
    pub fn send(&self, route: u32, message: &[u8]) {
        if !self.receivers.borrow_mut().entry(route).or_default().put(with_route(route, message)) {
            self.too_slow.borrow_mut().push(route);
        }
        self.flush(route);
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

    /// A text message to the relay itself.
    pub fn control(&self, text: String) {
        self.socket.control(text);
    }

    /// Messages wait from now on, to be sent together.
    pub fn hold(&self) {
        self.socket.hold();
    }

    /// Sends what waits since [`RelaySender::hold`].
    pub fn release(&self) {
        self.socket.release();
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
            self.socket.send(message);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::platform::SocketMessage;

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
}
