//! What device callbacks tell an engine.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

/// Device events since the engine last looked.
#[derive(Clone, Copy, Debug)]
pub enum Event {
    /// A readback buffer was mapped, or mapping failed.
    Readback(usize, bool),
    /// A staging buffer was mapped again, or mapping failed.
    Staging(usize, bool),
    /// Work was answered without the device.
    Answered,
}

/// Events queued by device callbacks. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct Inbox(Arc<Mutex<VecDeque<Event>>>);

impl Inbox {
    /// Queues an event.
    pub fn push(&self, event: Event) {
        if let Ok(mut events) = self.0.lock() {
            events.push_back(event);
        }
    }

    /// Takes the oldest event.
    pub fn pop(&self) -> Option<Event> {
        self.0.lock().ok().and_then(|mut events| events.pop_front())
    }

    /// Takes the events of staging buffers, and leaves the others in their order.
    pub fn take_staging(&self) -> Vec<Event> {
        let Ok(mut events) = self.0.lock() else { return Vec::new() };
        let (staging, rest): (Vec<Event>, Vec<Event>) =
            events.drain(..).partition(|event| matches!(event, Event::Staging(..)));
        events.extend(rest);
        staging
    }
}
