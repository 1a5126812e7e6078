//! The outgoing queue of one member, bounded in bytes, and how its connection ends.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::extract::ws::{CloseFrame, Message};
use potluck_relay_api::Control;
use tokio::sync::Notify;

use crate::limits::Limits;

/// Bytes counted for a message beside its content, so that a million empty ones are not free.
const MESSAGE_COST: usize = 64;

/// How a connection ends.
#[derive(Clone, Debug)]
pub struct Closing {
    /// The last text message.
    pub control: Option<Control>,
    /// WebSocket close code.
    pub code: u16,
}

impl Closing {
    /// The close frame.
    pub fn close_frame(&self) -> Message {
        Message::Close(Some(CloseFrame { code: self.code, reason: "".into() }))
    }
}

/// What the writer of a connection does next.
#[derive(Debug)]
pub enum Action {
    /// Send this message.
    Send(Message),
    /// Close the connection.
    Close(Closing),
}

/// The receiver does not keep up: its queue is full.
#[derive(Debug, PartialEq, Eq)]
pub struct QueueFull;

#[derive(Default)]
struct State {
    queue: VecDeque<Message>,
    bytes: usize,
    closing: Option<Closing>,
    /// The queue was dropped: the receiver does not take it.
    aborted: bool,
}

/// The outgoing queue of one member. Senders push and never wait; one writer takes.
pub struct Outbox {
    state: Mutex<State>,
    filled: Notify,
    aborted: Notify,
    limit: usize,
    fair_share: usize,
    total_limit: usize,
    total: Arc<AtomicUsize>,
}

impl Outbox {
    /// An empty queue; `total` counts the bytes of all outboxes together.
    pub fn new(limits: &Limits, total: Arc<AtomicUsize>) -> Self {
        Self {
            state: Mutex::default(),
            filled: Notify::new(),
            aborted: Notify::new(),
            limit: limits.queue_bytes,
            fair_share: limits.fair_queue_bytes,
            total_limit: limits.total_queue_bytes,
            total,
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // No code panics between two field updates, so a poisoned state is still valid.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Queues a message. Once the connection is closing, messages are silently dropped.
    ///
    /// # Errors
    /// The queue is full.
    pub fn push(&self, message: Message) -> Result<(), QueueFull> {
        let cost = cost(&message);
        let mut state = self.state();
        if state.closing.is_some() {
            return Ok(());
        }
        let after = state.bytes + cost;
        let crowded = self.total.load(Ordering::Relaxed) + cost > self.total_limit;
        if after > self.limit || (crowded && after > self.fair_share) {
            return Err(QueueFull);
        }
        state.bytes = after;
        self.total.fetch_add(cost, Ordering::Relaxed);
        state.queue.push_back(message);
        drop(state);
        self.filled.notify_one();
        Ok(())
    }

    /// Closes the connection once everything queued so far is sent.
    pub fn finish(&self, closing: Closing) {
        self.state().closing.get_or_insert(closing);
        self.filled.notify_one();
    }

    /// Closes the connection now and drops the queue.
    pub fn abort(&self, closing: Closing) {
        let mut state = self.state();
        state.closing = Some(closing);
        state.aborted = true;
        self.total.fetch_sub(std::mem::take(&mut state.bytes), Ordering::Relaxed);
        state.queue.clear();
        drop(state);
        self.filled.notify_one();
        self.aborted.notify_one();
    }

    /// What to do next; waits while there is nothing to do. For one writer only.
    pub async fn next(&self) -> Action {
        loop {
            {
                let mut state = self.state();
                if let Some(message) = state.queue.pop_front() {
                    let cost = cost(&message);
                    state.bytes -= cost;
                    self.total.fetch_sub(cost, Ordering::Relaxed);
                    return Action::Send(message);
                }
                if let Some(closing) = &state.closing {
                    return Action::Close(closing.clone());
                }
            }
            self.filled.notified().await;
        }
    }

    /// Resolves after [`Outbox::abort`]: then a blocked send can be given up.
    pub async fn was_aborted(&self) {
        while !self.state().aborted {
            self.aborted.notified().await;
        }
    }
}

impl Drop for Outbox {
    fn drop(&mut self) {
        let bytes = self.state().bytes;
        self.total.fetch_sub(bytes, Ordering::Relaxed);
    }
}

fn cost(message: &Message) -> usize {
    let payload = match message {
        Message::Text(text) => text.len(),
        Message::Binary(bytes) | Message::Ping(bytes) | Message::Pong(bytes) => bytes.len(),
        Message::Close(_) => 0,
    };
    payload + MESSAGE_COST
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use super::*;

    fn frame(bytes: usize) -> Message {
        Message::Binary(vec![0; bytes].into())
    }

    fn outbox(total: &Arc<AtomicUsize>) -> Outbox {
        let limits = Limits { queue_bytes: 1000, fair_queue_bytes: 300, total_queue_bytes: 1500, ..Limits::default() };
        Outbox::new(&limits, total.clone())
    }

    #[tokio::test]
    async fn the_queue_is_bounded_in_bytes() {
        let total = Arc::default();
        let one = outbox(&total);
        one.push(frame(900)).unwrap();
        assert_eq!(one.push(frame(100)), Err(QueueFull));
        assert!(matches!(one.next().await, Action::Send(_)));
        one.push(frame(900)).unwrap();
        assert_eq!(total.load(Ordering::Relaxed), 964);
        drop(one);
        assert_eq!(total.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn a_full_relay_leaves_everyone_a_fair_share() {
        let total = Arc::default();
        let (one, two) = (outbox(&total), outbox(&total));
        one.push(frame(900)).unwrap();
        two.push(frame(200)).unwrap();
        assert_eq!(two.push(frame(500)), Err(QueueFull), "over the total and over the fair share");
        one.abort(Closing { control: None, code: 1000 });
        two.push(frame(500)).unwrap();
    }

    #[tokio::test]
    async fn finish_sends_the_queue_and_abort_drops_it() {
        let total = Arc::default();
        let closing = || Closing { control: None, code: 1001 };
        let one = outbox(&total);
        one.push(frame(1)).unwrap();
        one.finish(closing());
        one.push(frame(2)).unwrap();
        assert!(matches!(one.next().await, Action::Send(Message::Binary(b)) if b.len() == 1));
        assert!(matches!(one.next().await, Action::Close(closing) if closing.code == 1001));

        let two = outbox(&total);
        two.push(frame(1)).unwrap();
        two.abort(closing());
        two.was_aborted().await;
        assert!(matches!(two.next().await, Action::Close(_)));
        assert_eq!(total.load(Ordering::Relaxed), 0);
    }
}
