//! Sends what one event causes as few WebSocket messages: the calls of a block's experts go to many devices at once, and
//! each message has its price, here and at the relay.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use potluck_relay_api::{MAX_PARTS, Route, join_parts};

use crate::platform::{SocketMessage, SocketSender};

/// Longer messages go alone: copying them would cost more than a message.
const MAX_PART_BYTES: usize = 64 << 10;
/// Most bytes in one message of parts, so that the relay forwards the first ones while the last are on their way.
const MAX_BYTES: usize = 256 << 10;

/// The relay's socket. While it is held, messages wait and are joined.
pub struct PartsSender {
    socket: Rc<dyn SocketSender>,
    /// The relay takes several messages in one.
    takes_parts: bool,
    held: Cell<bool>,
    waiting: RefCell<Vec<Vec<u8>>>,
}

impl PartsSender {
    pub fn new(socket: Rc<dyn SocketSender>, takes_parts: bool) -> Self {
        Self { socket, takes_parts, held: Cell::new(false), waiting: RefCell::default() }
    }

    /// Sends a message that begins with its route, now or on [`PartsSender::release`].
    pub fn send(&self, message: Vec<u8>) {
        if self.held.get() {
            self.waiting.borrow_mut().push(message);
        } else {
            self.socket.send(SocketMessage::Binary(message));
        }
    }

    /// A text message to the relay itself.
    pub fn control(&self, text: String) {
        self.socket.send(SocketMessage::Text(text));
    }

    /// Ends the connection.
    pub fn close(&self) {
        self.socket.close();
    }

    /// Messages wait from now on.
    pub fn hold(&self) {
        self.held.set(self.takes_parts);
    }

    /// Sends what waits, in its order.
    pub fn release(&self) {
        self.held.set(false);
        let waiting = std::mem::take(&mut *self.waiting.borrow_mut());
        let (mut together, mut bytes) = (Vec::new(), 0);
        for message in waiting {
            let is_long = message.len() > MAX_PART_BYTES;
            if is_long || together.len() == MAX_PARTS || bytes + message.len() > MAX_BYTES {
                self.send_together(std::mem::take(&mut together));
                bytes = 0;
            }
            if is_long {
                self.socket.send(SocketMessage::Binary(message));
            } else {
                bytes += message.len();
                together.push(message);
            }
        }
        self.send_together(together);
    }

    fn send_together(&self, mut messages: Vec<Vec<u8>>) {
        let message = match messages.len() {
            0 => return,
            1 => messages.swap_remove(0),
            _ => join_parts(messages.iter().filter_map(|message| Route::split(message))),
        };
        self.socket.send(SocketMessage::Binary(message));
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]

    use potluck_relay_api::split_parts;

    use super::*;
    use crate::control::with_route;

    #[derive(Default)]
    struct Sent(RefCell<Vec<Vec<u8>>>);

    impl SocketSender for Sent {
        fn send(&self, message: SocketMessage) {
            if let SocketMessage::Binary(bytes) = message {
                self.0.borrow_mut().push(bytes);
            }
        }

        fn close(&self) {}
    }

    /// The route and length of each message, and of each part of one.
    fn read(sent: &Sent) -> Vec<Vec<(u32, usize)>> {
        let parts = |message: &Vec<u8>| match Route::split(message).unwrap() {
            (Route::PARTS, body) => {
                split_parts(body).unwrap().iter().map(|(route, frame)| (route.0, frame.len())).collect()
            }
            (route, frame) => vec![(route.0, frame.len())],
        };
        sent.0.borrow().iter().map(parts).collect()
    }

    #[test]
    fn what_is_sent_while_held_goes_as_one_message() {
        let sent = Rc::new(Sent::default());
        let sender = PartsSender::new(sent.clone(), true);
        sender.send(with_route(9, &[0; 5]));
        sender.hold();
        (1..4).for_each(|route| sender.send(with_route(route, &[0; 10])));
        assert_eq!(read(&sent), [[(9, 5)]]);
        sender.release();
        sender.send(with_route(9, &[0; 5]));
        assert_eq!(read(&sent), [vec![(9, 5)], vec![(1, 10), (2, 10), (3, 10)], vec![(9, 5)]]);
    }

    #[test]
    fn long_messages_go_alone_and_nothing_overtakes() {
        let sent = Rc::new(Sent::default());
        let sender = PartsSender::new(sent.clone(), true);
        sender.hold();
        [(1, 10), (2, 10), (1, MAX_PART_BYTES), (1, 10)]
            .iter()
            .for_each(|&(route, len)| sender.send(with_route(route, &vec![0; len])));
        sender.release();
        assert_eq!(read(&sent), [vec![(1, 10), (2, 10)], vec![(1, MAX_PART_BYTES)], vec![(1, 10)]]);
    }

    #[test]
    fn a_message_has_no_more_parts_and_bytes_than_allowed() {
        let sent = Rc::new(Sent::default());
        let sender = PartsSender::new(sent.clone(), true);
        sender.hold();
        (0..MAX_PARTS + 1).for_each(|_| sender.send(with_route(1, b"x")));
        (0..5).for_each(|_| sender.send(with_route(2, &[0; MAX_PART_BYTES - 4])));
        sender.release();
        let counts: Vec<usize> = read(&sent).iter().map(Vec::len).collect();
        assert_eq!(counts, [MAX_PARTS, 1 + 3, 2]);
    }

    #[test]
    fn an_older_relay_gets_single_messages() {
        let sent = Rc::new(Sent::default());
        let sender = PartsSender::new(sent.clone(), false);
        sender.hold();
        (1..3).for_each(|route| sender.send(with_route(route, b"x")));
        assert_eq!(read(&sent), [[(1, 1)], [(2, 1)]]);
    }
}
