//! The channel into the driver's loop, and how the parts of a node reach it: each part has events of its own, and does not know who
//! handles them.

use std::cell::Cell;
use std::rc::Rc;

use futures::channel::mpsc::{UnboundedReceiver, UnboundedSender, unbounded};

/// If more inputs wait than this, the loop cannot keep up; a warning is logged once.
const TOO_MANY: usize = 10_000;

/// Sends to a loop. The channel is unbounded, because no input may be lost, but counted, so that a loop that falls behind is
/// noticed.
pub struct Sender<I> {
    sender: UnboundedSender<I>,
    waiting: Rc<Cell<usize>>,
    max: Rc<Cell<usize>>,
}

/// The loop's end of the channel.
pub struct Receiver<I> {
    receiver: UnboundedReceiver<I>,
    waiting: Rc<Cell<usize>>,
}

/// Creates the channel.
pub fn channel<I>() -> (Sender<I>, Receiver<I>) {
    let (sender, receiver) = unbounded();
    let waiting = Rc::new(Cell::new(0));
    (Sender { sender, waiting: waiting.clone(), max: Rc::default() }, Receiver { receiver, waiting })
}

impl<I> Clone for Sender<I> {
    fn clone(&self) -> Self {
        Self { sender: self.sender.clone(), waiting: self.waiting.clone(), max: self.max.clone() }
    }
}

impl<I> Sender<I> {
    /// Queues an input. Does nothing once the loop has ended.
    pub fn send(&self, input: I) {
        if self.sender.unbounded_send(input).is_ok() {
            let waiting = self.waiting.get() + 1;
            self.waiting.set(waiting);
            if waiting > self.max.get() {
                self.max.set(waiting);
                if waiting == TOO_MANY {
                    log::warn!("{TOO_MANY} events wait to be handled: this device is too slow for the room");
                }
            }
        }
    }

    /// Where a part sends its events, which become inputs of the loop.
    pub fn sink<E: Into<I>>(&self) -> EventSink<E>
    where
        I: 'static,
    {
        let sender = self.clone();
        EventSink(Rc::new(move |event: E| sender.send(event.into())))
    }

    /// False once the loop has ended.
    pub fn is_open(&self) -> bool {
        !self.sender.is_closed()
    }

    /// The maximum number of inputs that waited at once.
    pub fn max_waiting(&self) -> usize {
        self.max.get()
    }
}

impl<I> Receiver<I> {
    /// The next input; `None` once every sender is gone.
    pub async fn next(&mut self) -> Option<I> {
        let input = futures::StreamExt::next(&mut self.receiver).await?;
        self.waiting.set(self.waiting.get().saturating_sub(1));
        Some(input)
    }
}

/// Where a part of the node sends its events.
pub struct EventSink<E>(Rc<dyn Fn(E)>);

impl<E> Clone for EventSink<E> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<E> EventSink<E> {
    /// Sends an event; it is handled later.
    pub fn send(&self, event: E) {
        (self.0)(event);
    }
}
