//! The one channel into the driver's loop.

use std::cell::Cell;
use std::rc::Rc;

use futures::channel::mpsc::{UnboundedReceiver, UnboundedSender, unbounded};
use potluck_swarm::Event;

use crate::node::Input;

/// More waiting inputs than this mean that the loop cannot keep up; it is said once.
const MANY: usize = 10_000;

/// Sends to the driver's loop. The channel has no bound (nothing in it may be lost), but it is counted: a loop that falls
/// behind is seen.
#[derive(Clone)]
pub struct Inputs {
    sender: UnboundedSender<Input>,
    waiting: Rc<Cell<usize>>,
    most: Rc<Cell<usize>>,
}

/// The loop's end of the channel.
pub struct InputQueue {
    receiver: UnboundedReceiver<Input>,
    waiting: Rc<Cell<usize>>,
}

/// Both ends.
pub fn channel() -> (Inputs, InputQueue) {
    let (sender, receiver) = unbounded();
    let waiting = Rc::new(Cell::new(0));
    (Inputs { sender, waiting: waiting.clone(), most: Rc::default() }, InputQueue { receiver, waiting })
}

impl Inputs {
    /// Queues an input; does nothing once the loop has ended.
    pub fn send(&self, input: Input) {
        if self.sender.unbounded_send(input).is_ok() {
            let waiting = self.waiting.get() + 1;
            self.waiting.set(waiting);
            if waiting > self.most.get() {
                self.most.set(waiting);
                if waiting == MANY {
                    log::warn!("{MANY} events wait to be handled: this device is too slow for the room");
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

    /// The most inputs that ever waited at once.
    pub fn most_waiting(&self) -> usize {
        self.most.get()
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
