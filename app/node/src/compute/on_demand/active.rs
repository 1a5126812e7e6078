//! The driver of experts on demand, while there is one.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use potluck_panel::OnDemandReport;
use potluck_plan::{BlockIndex, Computed, ConversationId, ExpertId, PooledExperts, Ticket, Work};

use super::guesses::Calls;
use super::queue::{OnDemandQueue, QueueOptions};
use crate::loader::ExpertLoader;
use crate::platform::Platform;

/// A pool, and how many experts share its slots.
pub struct SharedPool {
    /// The pool.
    pub pool: PooledExperts,
    /// Experts that share its slots.
    pub experts: u32,
}

/// Runs work if experts come on demand.
pub struct OnDemand {
    platform: Platform,
    queue: RefCell<Option<OnDemandQueue>>,
    /// Number of the next part of work, of all drivers.
    next_part: Rc<Cell<u64>>,
}

impl OnDemand {
    pub(in crate::compute) fn new(platform: Platform) -> Self {
        Self { platform, queue: RefCell::default(), next_part: Rc::default() }
    }

    /// Experts come on demand.
    pub fn is_active(&self) -> bool {
        self.queue.borrow().is_some()
    }

    /// From now on experts of these blocks come on demand; of none if the pool has no blocks. What was counted of the same
    /// pool goes on, also where others call them now or guess. `deliver` receives results.
    pub(in crate::compute) fn set(
        &self,
        loader: ExpertLoader,
        SharedPool { pool, experts }: SharedPool,
        calls: Calls,
        deliver: Rc<dyn Fn(Computed)>,
    ) {
        self.end(&pool);
        if let Some(queue) = self.queue.borrow().as_ref() {
            return queue.set_calls(calls, experts);
        }
        if pool.blocks.is_empty() {
            return;
        }
        let (platform, next_part) = (self.platform.clone(), self.next_part.clone());
        let options = QueueOptions { platform, loader, pool, experts, calls, next_part, deliver };
        *self.queue.borrow_mut() = Some(OnDemandQueue::start(options));
    }

    /// Ends the driver unless it has this pool: the slots of another one are laid out anew.
    pub fn end(&self, unless: &PooledExperts) {
        // Dropped after the borrow has ended: it delivers results.
        let ended = self.queue.borrow_mut().take_if(|queue| !queue.has(unless));
        drop(ended);
    }

    /// What experts on demand cost so far; `None` if this device holds all of its experts.
    pub fn report(&self) -> Option<OnDemandReport> {
        self.queue.borrow().as_ref().map(OnDemandQueue::report)
    }

    /// Experts will probably be called: they load beside the work.
    pub fn load_ahead(&self, experts: Vec<(BlockIndex, ExpertId)>) {
        if let Some(queue) = self.queue.borrow().as_ref() {
            queue.load_ahead(experts);
        }
    }

    /// Takes work, unless no experts come on demand: then it comes back.
    pub(in crate::compute) fn submit(&self, work: Work) -> Option<Work> {
        let queue = self.queue.borrow();
        let Some(queue) = queue.as_ref() else { return Some(work) };
        queue.submit(work);
        None
    }

    /// Drops work that has not begun; false if no experts come on demand.
    pub(in crate::compute) fn cancel(&self, ticket: Ticket) -> bool {
        self.queue.borrow().as_ref().map(|queue| queue.cancel(ticket)).is_some()
    }

    /// Frees the KV cache of a conversation after the work that was queued before; false if no experts come on demand.
    pub(in crate::compute) fn forget(&self, conversation: ConversationId) -> bool {
        self.queue.borrow().as_ref().map(|queue| queue.forget(conversation)).is_some()
    }

    /// A result of the engine, given back unless it is of a part of work.
    pub(in crate::compute) fn without_parts(&self, computed: Computed) -> Option<Computed> {
        OnDemandQueue::without_parts(self.queue.borrow().as_ref(), computed)
    }
}
