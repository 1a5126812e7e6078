//! The channel into the driver's loop.

use std::cell::Cell;
use std::rc::Rc;

use futures::channel::mpsc::{UnboundedReceiver, UnboundedSender, unbounded};
use potluck_swarm::Event;

use crate::node::Input;

/// If more inputs wait than this, the loop cannot keep up; a warning is logged once.
const TOO_MANY: usize = 10_000;

/// Sends to the driver's loop. The channel is unbounded, because no input may be lost, but counted, so that a loop that falls
/// behind is noticed.
#[derive(Clone)]
pub struct Inputs {
    sender: UnboundedSender<Input>,
    waiting: Rc<Cell<usize>>,
    max: Rc<Cell<usize>>,
}

/// The loop's end of the channel.
pub struct InputQueue {
    receiver: UnboundedReceiver<Input>,
    waiting: Rc<Cell<usize>>,
}

/// Creates the channel.
pub fn channel() -> (Inputs, InputQueue) {
    let (sender, receiver) = unbounded();
    let waiting = Rc::new(Cell::new(0));
    (Inputs { sender, waiting: waiting.clone(), max: Rc::default() }, InputQueue { receiver, waiting })
}

impl Inputs {
    /// Queues an input. Does nothing once the loop has ended.
    pub fn send(&self, input: Input) {
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

    /// Queues an event for the state machine.
    pub fn event(&self, event: Event) {
        self.send(Input::Event(event));
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

impl InputQueue {
    /// The next input; `None` once every sender is gone.
    pub async fn next(&mut self) -> Option<Input> {
        let input = futures::StreamExt::next(&mut self.receiver).await?;
        self.waiting.set(self.waiting.get().saturating_sub(1));
        Some(input)
    }
}
