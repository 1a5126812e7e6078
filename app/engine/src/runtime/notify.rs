//! How device callbacks reach the engine: natively they queue an event for the next `poll`; on the web they also wake
//! the engine.

use std::sync::{Arc, Mutex};
use std::task::Waker;

use crate::runtime::core::{Event, Inbox};

/// Queues events, wakes waiting tasks, and on the web has the events handled.
#[derive(Clone)]
pub struct Notify {
    inbox: Inbox,
    waiting: Arc<Mutex<Vec<Waker>>>,
    #[cfg(target_arch = "wasm32")]
    engine: std::rc::Weak<crate::runtime::engine::Inner>,
}

impl Notify {
    /// Creates the notifier of an engine.
    pub fn new(inbox: Inbox, _engine: &std::rc::Weak<crate::runtime::engine::Inner>) -> Self {
        Self {
            inbox,
            waiting: Arc::default(),
            #[cfg(target_arch = "wasm32")]
            engine: _engine.clone(),
        }
    }

    /// Wakes a task at the next event.
    pub fn wake_on_event(&self, waker: &Waker) {
        if let Ok(mut waiting) = self.waiting.lock()
            && !waiting.iter().any(|other| other.will_wake(waker))
        {
            waiting.push(waker.clone());
        }
    }

    /// Wakes all waiting tasks.
    pub fn wake(&self) {
        if let Ok(mut waiting) = self.waiting.lock() {
            waiting.drain(..).for_each(Waker::wake);
        }
    }

    /// Sends poll kicks to the browser until a piece of work is answered.
    #[cfg(target_arch = "wasm32")]
    pub fn kick(&self, ticket: potluck_plan::Ticket) {
        crate::runtime::poll_kick::kick(self.engine.clone(), ticket);
    }

    /// Encodes the expected step in a separate turn.
    #[cfg(target_arch = "wasm32")]
    pub fn encode_next(&self) {
        crate::runtime::encode_ahead::encode_later(self.engine.clone());
    }

    /// Queues an event.
    pub fn event(&self, event: Event) {
        if let Ok(mut inbox) = self.inbox.lock() {
            inbox.push_back(event);
        }
        self.wake();
        #[cfg(target_arch = "wasm32")]
        if let Some(engine) = self.engine.upgrade() {
            // Never call the engine from inside the call that caused the event: it may still be borrowed.
            wasm_bindgen_futures::spawn_local(async move { engine.deliver() });
        }
    }
}
