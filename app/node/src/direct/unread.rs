//! What has arrived on the path that is not being read.

use std::collections::VecDeque;

use super::messages::ProtocolViolation;

pub(super) enum Held {
    Frame(Vec<u8>),
    /// The sender switched to the other path here.
    Switch,
}

impl Held {
    /// Its share of the limit. Even an empty frame has a cost, so that a peer cannot send an endless number of them.
    fn cost(&self) -> u64 {
        match self {
            Self::Frame(frame) => frame.len() as u64 + 64,
            Self::Switch => 64,
        }
    }
}

/// Messages in the order in which they came, up to a limit.
pub(super) struct Unread {
    held: VecDeque<Held>,
    bytes: u64,
    limit: u64,
}

impl Unread {
    /// `limit` in bytes.
    pub fn new(limit: u64) -> Self {
        Self { held: VecDeque::new(), bytes: 0, limit }
    }

    /// From now on, in bytes.
    pub fn set_limit(&mut self, limit: u64) {
        self.limit = limit;
    }

    /// Keeps a message.
    ///
    /// # Errors
    /// More is held than a correct peer sends.
    pub fn push(&mut self, held: Held) -> Result<(), ProtocolViolation> {
        self.bytes += held.cost();
        self.held.push_back(held);
        if self.bytes > self.limit { Err(ProtocolViolation) } else { Ok(()) }
    }

    /// The next message.
    pub fn pop(&mut self) -> Option<Held> {
        let held = self.held.pop_front()?;
        self.bytes -= held.cost();
        Some(held)
    }
}
