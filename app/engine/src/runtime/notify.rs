//! How device callbacks reach the engine: natively they queue an event for the next `poll`; on the web they also wake
//! the engine.

use std::sync::{Arc, Mutex};
use std::task::Waker;

use crate::runtime::events::{Event, Inbox};
#[cfg(target_arch = "wasm32")]
use crate::runtime::poll_kick;

/// An engine as callbacks of a browser see it.
#[cfg(target_arch = "wasm32")]
pub trait Woken {
    /// Handles device events, starts waiting work and delivers results.
    fn deliver(&self);
    /// Encodes steps that are expected.
    fn encode_next(&self);
    /// What a loop that sends poll kicks does next.
    fn next_kick(&self, by: poll_kick::LoopId) -> poll_kick::Next;
    /// Submits nothing, which makes the browser look for finished work.
    fn kick(&self);
}

/// Queues events, wakes waiting tasks, and on the web has the events handled.
#[derive(Clone)]
pub struct Notify {
    inbox: Inbox,
    waiting: Arc<Mutex<Vec<Waker>>>,
    #[cfg(target_arch = "wasm32")]
    engine: std::rc::Weak<dyn Woken>,
}

impl Notify {
    /// Creates the notifier of an engine.
    #[cfg(not(target_arch = "wasm32"))]
    pub fn new(inbox: Inbox) -> Self {
        Self { inbox, waiting: Arc::default() }
    }

    /// Creates the notifier of an engine, which it wakes.
    #[cfg(target_arch = "wasm32")]
    pub fn new(inbox: Inbox, engine: std::rc::Weak<dyn Woken>) -> Self {
        Self { inbox, waiting: Arc::default(), engine }
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

    /// Sends poll kicks to the browser, as long as they are worth it.
    #[cfg(target_arch = "wasm32")]
    pub fn kick(&self, by: poll_kick::LoopId) {
        let (looks, kicks) = (self.engine.clone(), self.engine.clone());
        let look = move || looks.upgrade().map_or(poll_kick::Next::Stop, |engine| engine.next_kick(by));
        let kick = move || {
            if let Some(engine) = kicks.upgrade() {
                engine.kick();
            }
        };
        poll_kick::until_stopped(look, kick);
    }

    /// Encodes steps that are expected in a later turn, once the computed result is on its way.
    #[cfg(target_arch = "wasm32")]
    pub fn encode_next(&self) {
        let engine = self.engine.clone();
        wasm_bindgen_futures::spawn_local(async move {
            let Ok(channel) = web_sys::MessageChannel::new() else { return };
            poll_kick::turn(&channel).await;
            channel.port1().close();
            if let Some(engine) = engine.upgrade() {
                engine.encode_next();
            }
        });
    }

    /// Queues an event.
    pub fn event(&self, event: Event) {
        self.inbox.push(event);
        self.wake();
        #[cfg(target_arch = "wasm32")]
        if let Some(engine) = self.engine.upgrade() {
            // Never call the engine from inside the call that caused the event: it may still be borrowed.
            wasm_bindgen_futures::spawn_local(async move { engine.deliver() });
        }
    }
}
