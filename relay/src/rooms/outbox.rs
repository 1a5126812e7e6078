//! The outgoing queue of one member: what waits for it, what each sender has on the way to it, and how its connection
//! ends.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use axum::body::Bytes;
use axum::extract::ws::{CloseFrame, Message};
use potluck_relay_api::{Control, Eviction, Route};
use tokio::sync::Notify;
use tokio::time::{Instant, timeout_at};

use super::control_text;
use crate::limits::Limits;
use crate::quotas::{Charge, Share};

/// Bytes counted for a message beside its content, so that a million empty ones are not free.
const MESSAGE_COST: usize = 64;
/// Bytes that are written before the receiver counts as having taken them: several small frames share a system call, and
/// a report is never much later than the bytes.
const BATCH_BYTES: usize = 128 * 1024;

/// How a connection ends.
#[derive(Clone, Debug)]
pub struct Closing {
    /// The last text message.
    pub control: Option<Control>,
    /// WebSocket close code.
    pub code: u16,
}

impl Closing {
    /// How the connection of an evicted member ends.
    pub fn evicted(reason: Eviction) -> Self {
        let control = Control::Evicted { reason, message: reason.sentence().into() };
        Self { control: Some(control), code: reason.close_code() }
    }

    /// The close frame.
    pub fn close_frame(&self) -> Message {
        Message::Close(Some(CloseFrame { code: self.code, reason: "".into() }))
    }
}

/// What the writer of a connection does next.
#[derive(Debug)]
pub enum Action {
    /// Send these messages, then call [`Outbox::sent`].
    Send(Batch),
    /// Close the connection.
    Close(Closing),
}

/// Messages to be written together.
#[derive(Debug, Default)]
pub struct Batch {
    items: Vec<Item>,
    bytes: usize,
}

impl Batch {
    /// Takes the messages out, in their order.
    pub fn messages(&mut self) -> impl Iterator<Item = Message> {
        self.items.iter_mut().map(|item| std::mem::replace(&mut item.message, Message::Close(None)))
    }
}

#[derive(Debug)]
struct Item {
    message: Message,
    /// The sender of a frame, and its length.
    frame: Option<(Route, usize)>,
    /// Memory that it occupies.
    _charge: Charge,
}

/// The control messages for a member do not fit: it does not read.
#[derive(Debug, PartialEq, Eq)]
pub struct QueueFull;

/// What one sender has on the way to this member.
struct Account {
    sender: Weak<Outbox>,
    /// Bytes that were not reported as taken yet.
    on_the_way: usize,
    /// Those of them that were taken.
    taken: usize,
}

#[derive(Default)]
struct State {
    queue: VecDeque<Item>,
    control_bytes: usize,
    accounts: HashMap<Route, Account>,
    /// When what was taken has to be reported.
    report_at: Option<Instant>,
    closing: Option<Closing>,
    /// The queue was dropped: the receiver does not take it.
    aborted: bool,
}

/// The outgoing queue of one member. Senders push and never wait; one writer takes.
pub struct Outbox {
    route: Route,
    share: Arc<Share>,
    state: Mutex<State>,
    filled: Notify,
    aborted: Notify,
    window: usize,
    control_limit: usize,
    taken_delay: Duration,
}

impl Outbox {
    /// An empty queue for the member `route` of the address that `share` stands for.
    pub fn new(route: Route, limits: &Limits, share: Arc<Share>) -> Self {
        Self {
            route,
            share,
            state: Mutex::default(),
            filled: Notify::new(),
            aborted: Notify::new(),
            window: limits.window_bytes,
            control_limit: limits.control_bytes,
            taken_delay: limits.taken_delay,
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // No code panics between two field updates, so a poisoned state is still valid.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Queues a control message or a ping. Once the connection is closing, messages are silently dropped.
    ///
    /// # Errors
    /// The receiver does not read what the relay tells it.
    pub fn push(&self, message: Message) -> Result<(), QueueFull> {
        let bytes = cost(&message);
        let mut state = self.state();
        if state.closing.is_some() {
            return Ok(());
        }
        let mut charge = self.share.charge();
        if state.control_bytes + bytes > self.control_limit || charge.grow(bytes).is_err() {
            return Err(QueueFull);
        }
        state.control_bytes += bytes;
        state.queue.push_back(Item { message, frame: None, _charge: charge });
        drop(state);
        self.filled.notify_one();
        Ok(())
    }

    /// Queues a frame of `from`, whose own queue is `sender`.
    ///
    /// # Errors
    /// Why the *sender* has to be evicted: it sends more than its window or than the relay's memory holds.
    pub fn push_frame(&self, from: Route, sender: &Arc<Self>, frame: Bytes) -> Result<(), Eviction> {
        let bytes = frame.len();
        let mut state = self.state();
        if state.closing.is_some() {
            return Ok(());
        }
        let mut charge = sender.share.charge();
        charge.grow(bytes + MESSAGE_COST).map_err(|_| Eviction::RelayFull)?;
        let account = state.accounts.entry(from).or_insert_with(|| Account {
            sender: Arc::downgrade(sender),
            on_the_way: 0,
            taken: 0,
        });
        // One message may be longer than the window, while nothing else is on the way.
        if account.on_the_way > 0 && account.on_the_way + bytes > self.window {
            return Err(Eviction::WindowExceeded);
        }
        account.on_the_way += bytes;
        state.queue.push_back(Item { message: Message::Binary(frame), frame: Some((from, bytes)), _charge: charge });
        drop(state);
        self.filled.notify_one();
        Ok(())
    }

    /// Forgets what a member that left had on the way to this one.
    pub fn forget(&self, sender: Route) {
        self.state().accounts.remove(&sender);
    }

    /// Whether frames wait here.
    pub fn has_frames(&self) -> bool {
        self.state().accounts.values().any(|account| account.on_the_way > account.taken)
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
        state.queue.clear();
        drop(state);
        self.filled.notify_one();
        self.aborted.notify_one();
    }

    /// What to do next; waits while there is nothing to do. For one writer only.
    pub async fn next(&self) -> Action {
        loop {
            let report_at = {
                let mut state = self.state();
                let batch = take_batch(&mut state);
                if !batch.items.is_empty() {
                    return Action::Send(batch);
                }
                if let Some(closing) = &state.closing {
                    return Action::Close(closing.clone());
                }
                state.report_at
            };
            match report_at {
                None => self.filled.notified().await,
                Some(at) => {
                    if timeout_at(at, self.filled.notified()).await.is_err() {
                        self.report(|_| true);
                    }
                }
            }
        }
    }

    /// The receiver took these messages: reports it to their senders, at once when much was taken, else a little later.
    pub fn sent(&self, batch: Batch) {
        let mut state = self.state();
        let mut frames = false;
        for (from, bytes) in batch.items.iter().filter_map(|item| item.frame) {
            frames = true;
            if let Some(account) = state.accounts.get_mut(&from) {
                account.taken += bytes;
            }
        }
        if !frames {
            return;
        }
        let now = Instant::now();
        let is_due = *state.report_at.get_or_insert(now + self.taken_delay) <= now;
        drop(state);
        drop(batch);
        self.report(|taken| is_due || taken >= self.window / 4);
    }

    /// Reports what was taken to the senders for whom `is_due` says so.
    fn report(&self, is_due: impl Fn(usize) -> bool) {
        let mut reports = Vec::new();
        {
            let mut state = self.state();
            let mut is_left = false;
            for account in state.accounts.values_mut().filter(|account| account.taken > 0) {
                if is_due(account.taken) {
                    let bytes = std::mem::take(&mut account.taken);
                    account.on_the_way -= bytes;
                    reports.push((account.sender.clone(), bytes as u64));
                } else {
                    is_left = true;
                }
            }
            if !is_left {
                state.report_at = None;
            }
        }
        // With the lock released: the sender's queue has one of its own, and may be reporting to this one.
        for (sender, bytes) in reports {
            if let Some(sender) = sender.upgrade()
                && sender.push(control_text(&Control::Taken { route: self.route, bytes })).is_err()
            {
                sender.abort(Closing::evicted(Eviction::SlowReceiver));
            }
        }
    }

    /// Resolves after [`Outbox::abort`]: then a blocked send can be given up.
    pub async fn was_aborted(&self) {
        while !self.state().aborted {
            self.aborted.notified().await;
        }
    }
}

fn take_batch(state: &mut State) -> Batch {
    let mut batch = Batch::default();
    while batch.bytes < BATCH_BYTES
        && let Some(item) = state.queue.pop_front()
    {
        let bytes = cost(&item.message);
        if item.frame.is_none() {
            state.control_bytes -= bytes;
        }
        batch.bytes += bytes;
        batch.items.push(item);
    }
    batch
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
    use std::net::{IpAddr, Ipv4Addr};

    use super::*;
    use crate::quotas::Quotas;

    const SENDER: Route = Route(1);
    const RECEIVER: Route = Route(2);

    struct Pair {
        quotas: Arc<Quotas>,
        sender: Arc<Outbox>,
        receiver: Arc<Outbox>,
    }

    fn pair() -> Pair {
        let limits = Limits { window_bytes: 1000, control_bytes: 300, ..Limits::default() };
        let limits = Limits { memory_bytes: 2500, fair_memory_bytes: 2200, ..limits };
        let quotas = Quotas::new(Arc::new(limits.clone()));
        let outbox = |route, last| {
            let share = quotas.share(IpAddr::V4(Ipv4Addr::new(10, 0, 0, last)));
            Arc::new(Outbox::new(route, &limits, share))
        };
        Pair { sender: outbox(SENDER, 1), receiver: outbox(RECEIVER, 2), quotas }
    }

    impl Pair {
        fn push(&self, bytes: usize) -> Result<(), Eviction> {
            self.receiver.push_frame(SENDER, &self.sender, vec![0; bytes].into())
        }

        /// The receiver takes what is queued; the number of messages.
        async fn take(&self) -> usize {
            let Action::Send(mut batch) = self.receiver.next().await else { panic!("messages") };
            let count = batch.messages().count();
            self.receiver.sent(batch);
            count
        }

        /// The bytes that the sender's next report names.
        async fn report(&self) -> u64 {
            let Action::Send(mut batch) = self.sender.next().await else { panic!("a report") };
            let text = batch.messages().next().unwrap().into_text().unwrap();
            let Ok(Control::Taken { route: RECEIVER, bytes }) = serde_json::from_str(&text) else { panic!("{text}") };
            bytes
        }
    }

    #[tokio::test]
    async fn a_sender_may_have_a_window_on_the_way() {
        let pair = pair();
        pair.push(600).unwrap();
        pair.push(400).unwrap();
        assert_eq!(pair.push(1), Err(Eviction::WindowExceeded));
        assert_eq!(pair.take().await, 2);
        assert_eq!(pair.report().await, 1000, "a quarter is reported at once");
        pair.push(1000).unwrap();
    }

    #[tokio::test]
    async fn a_longer_message_passes_while_nothing_is_on_the_way() {
        let pair = pair();
        pair.push(1500).unwrap();
        assert_eq!(pair.push(1), Err(Eviction::WindowExceeded));
        pair.take().await;
        assert_eq!(pair.report().await, 1500);
        pair.push(1).unwrap();
        assert_eq!(pair.push(1500), Err(Eviction::WindowExceeded), "one byte is on the way");
    }

    #[tokio::test]
    async fn a_little_is_reported_a_little_later() {
        let pair = pair();
        pair.push(10).unwrap();
        pair.push(20).unwrap();
        let start = Instant::now();
        pair.take().await;
        tokio::select! {
            _ = pair.receiver.next() => panic!("nothing is left to send"),
            bytes = pair.report() => assert_eq!(bytes, 30),
        }
        assert!(start.elapsed() >= Limits::default().taken_delay - Duration::from_millis(1));
        assert!(!pair.receiver.has_frames());
    }

    #[tokio::test]
    async fn one_sender_does_not_fill_the_window_of_another() {
        let pair = pair();
        pair.push(1000).unwrap();
        pair.receiver.push_frame(Route(3), &pair.receiver, vec![0; 900].into()).unwrap();
        pair.receiver.forget(SENDER);
        pair.push(500).unwrap();
    }

    #[tokio::test]
    async fn a_full_memory_evicts_the_sender_and_a_flood_of_controls_its_reader() {
        let pair = pair();
        pair.push(2000).unwrap();
        let other = Arc::new(Outbox::new(Route(4), &Limits::default(), pair.sender.share.clone()));
        assert_eq!(other.push_frame(SENDER, &pair.sender, vec![0; 500].into()), Err(Eviction::RelayFull));
        pair.receiver.abort(Closing { control: None, code: 1000 });
        assert_eq!(pair.quotas.memory(), 0);
        let ping = || Message::Ping(vec![0; 80].into());
        assert_eq!(pair.sender.push(ping()), Ok(()));
        assert_eq!(pair.sender.push(ping()), Ok(()));
        assert_eq!(pair.sender.push(ping()), Err(QueueFull));
    }

    #[tokio::test]
    async fn finish_sends_the_queue_and_abort_drops_it() {
        let closing = || Closing { control: None, code: 1001 };
        let pair = pair();
        pair.push(1).unwrap();
        pair.receiver.finish(closing());
        pair.push(2).unwrap();
        assert_eq!(pair.take().await, 1);
        assert!(matches!(pair.receiver.next().await, Action::Close(closing) if closing.code == 1001));

        pair.sender.push(Message::Ping(Bytes::new())).unwrap();
        pair.sender.abort(closing());
        pair.sender.was_aborted().await;
        assert!(matches!(pair.sender.next().await, Action::Close(_)));
    }
}
