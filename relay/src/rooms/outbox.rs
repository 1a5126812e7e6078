//! What waits to be sent to one member: a queue bounded in bytes, and the end of the connection.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::extract::ws::{CloseFrame, Message};
use tokio::sync::Notify;

use crate::limits::Limits;
use crate::protocol::Control;

/// What a message costs beside its bytes, so that a million empty ones are not free.
const MESSAGE_COST: usize = 64;

/// How a connection ends.
#[derive(Clone, Debug)]
pub struct End {
    /// The last text message, if there is something to say.
    pub control: Option<Control>,
    /// WebSocket close code.
    pub code: u16,
}

impl End {
    /// The close frame that goes with it.
    pub fn close_frame(&self) -> Message {
        Message::Close(Some(CloseFrame { code: self.code, reason: "".into() }))
    }
}

/// What the writer of a connection does next.
#[derive(Debug)]
pub enum Next {
    /// Sends this.
    Send(Message),
    /// Says goodbye and stops.
    Stop(End),
}

/// The receiver does not keep up.
#[derive(Debug, PartialEq, Eq)]
pub struct Full;

#[derive(Default)]
struct State {
    queue: VecDeque<Message>,
    bytes: usize,
    end: Option<End>,
    /// The queue is not worth sending any more: the receiver does not take it.
    cut: bool,
}

/// The outgoing side of one member. Senders push and never wait; one writer takes.
pub struct Outbox {
    state: Mutex<State>,
    filled: Notify,
    cut: Notify,
    limit: usize,
    fair: usize,
    total_limit: usize,
    total: Arc<AtomicUsize>,
}

impl Outbox {
    /// An empty one; `total` counts the bytes of all outboxes together.
    pub fn new(limits: &Limits, total: Arc<AtomicUsize>) -> Self {
        Self {
            state: Mutex::default(),
            filled: Notify::new(),
            cut: Notify::new(),
            limit: limits.queue_bytes,
            fair: limits.fair_queue_bytes,
            total_limit: limits.total_queue_bytes,
            total,
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // A panic between two field updates cannot happen here, so a poisoned state is still a good one.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Queues a message. After the end it is dropped in silence.
    pub fn push(&self, message: Message) -> Result<(), Full> {
        let cost = cost(&message);
        let mut state = self.state();
        if state.end.is_some() {
            return Ok(());
        }
        let after = state.bytes + cost;
        let crowded = self.total.load(Ordering::Relaxed) + cost > self.total_limit;
        if after > self.limit || (crowded && after > self.fair) {
            return Err(Full);
        }
        state.bytes = after;
        self.total.fetch_add(cost, Ordering::Relaxed);
        state.queue.push_back(message);
        drop(state);
        self.filled.notify_one();
        Ok(())
    }

    /// Ends the connection once everything queued so far is sent.
    pub fn finish(&self, end: End) {
        self.state().end.get_or_insert(end);
        self.filled.notify_one();
    }

    /// Ends the connection now and drops what is queued.
    pub fn cut(&self, end: End) {
        let mut state = self.state();
        state.end = Some(end);
        state.cut = true;
        self.total.fetch_sub(std::mem::take(&mut state.bytes), Ordering::Relaxed);
        state.queue.clear();
        drop(state);
        self.filled.notify_one();
        self.cut.notify_one();
    }

    /// What to do next; waits while there is nothing. For one writer only.
    pub async fn next(&self) -> Next {
        loop {
            {
                let mut state = self.state();
                if let Some(message) = state.queue.pop_front() {
                    let cost = cost(&message);
                    state.bytes -= cost;
                    self.total.fetch_sub(cost, Ordering::Relaxed);
                    return Next::Send(message);
                }
                if let Some(end) = &state.end {
                    return Next::Stop(end.clone());
                }
            }
            self.filled.notified().await;
        }
    }

    /// Resolves when [`Outbox::cut`] was called: a send that hangs may be given up.
    pub async fn was_cut(&self) {
        while !self.state().cut {
            self.cut.notified().await;
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
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn frame(bytes: usize) -> Message {
        Message::Binary(vec![0; bytes].into())
    }

    fn outbox(total: &Arc<AtomicUsize>) -> Outbox {
        let limits = Limits { queue_bytes: 1000, fair_queue_bytes: 300, total_queue_bytes: 1500, ..Limits::default() };
        Outbox::new(&limits, total.clone())
    }

    #[tokio::test]
    async fn the_queue_is_bounded_in_bytes_and_gives_them_back() {
        let total = Arc::default();
        let one = outbox(&total);
        one.push(frame(900)).unwrap();
        assert_eq!(one.push(frame(100)), Err(Full));
        assert!(matches!(one.next().await, Next::Send(_)));
        one.push(frame(900)).unwrap();
        assert_eq!(total.load(Ordering::Relaxed), 964);
        drop(one);
        assert_eq!(total.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn a_crowded_relay_leaves_everyone_a_fair_share() {
        let total = Arc::default();
        let (one, two) = (outbox(&total), outbox(&total));
        one.push(frame(900)).unwrap();
        two.push(frame(200)).unwrap();
        assert_eq!(two.push(frame(500)), Err(Full), "over the total and over the fair share");
        one.cut(End { control: None, code: 1000 });
        two.push(frame(500)).unwrap();
    }

    #[tokio::test]
    async fn finish_sends_what_is_queued_and_cut_does_not() {
        let total = Arc::default();
        let end = || End { control: None, code: 1001 };
        let one = outbox(&total);
        one.push(frame(1)).unwrap();
        one.finish(end());
        one.push(frame(2)).unwrap();
        assert!(matches!(one.next().await, Next::Send(Message::Binary(b)) if b.len() == 1));
        assert!(matches!(one.next().await, Next::Stop(end) if end.code == 1001));

        let two = outbox(&total);
        two.push(frame(1)).unwrap();
        two.cut(end());
        two.was_cut().await;
        assert!(matches!(two.next().await, Next::Stop(_)));
        assert_eq!(total.load(Ordering::Relaxed), 0);
    }
}
