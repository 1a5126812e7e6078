//! Slowing a device down for measurements: the GPU repeats every piece of work before its result counts, or outputs of experts
//! wait.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use futures::future::LocalBoxFuture;
use potluck_engine::Engine;
use potluck_plan::{Outcome, Task, Ticket, Work};

use crate::platform::Clock;

/// Tickets from here on are repetitions; nobody waits for their results.
pub const FIRST_REPETITION: u64 = 1 << 63;
/// Tickets from here on are timed; no plan of a room has tickets this large.
pub const FIRST_TRIAL: u64 = 1 << 62;

/// A wait, drawn anew each time.
pub type Hesitation = Rc<dyn Fn() -> LocalBoxFuture<'static, ()>>;

/// How many times this device runs its work, and what that adds to its times.
pub struct SlowDown {
    factor: u32,
    is_empty: bool,
    next: Cell<u64>,
    /// Milliseconds from the first repetition's submission to that of the work itself, until its result arrives.
    head_starts: RefCell<BTreeMap<Ticket, f64>>,
    /// How long outputs of experts wait, each for itself.
    hesitation: Option<Hesitation>,
    /// Work whose results are such outputs.
    of_experts: RefCell<BTreeSet<Ticket>>,
}

impl SlowDown {
    /// Every piece of work runs `factor` times; 1 is full speed. With 0, experts for others are not computed at all.
    pub fn new(factor: u32, hesitation: Option<Hesitation>) -> Self {
        Self {
            factor: factor.max(1),
            is_empty: factor == 0,
            next: Cell::default(),
            head_starts: RefCell::default(),
            hesitation,
            of_experts: RefCell::default(),
        }
    }

    /// Work is submitted: outputs of experts may have to wait.
    pub fn note(&self, work: &Work) {
        if self.hesitation.is_some() && matches!(work.task, Task::Experts { .. }) {
            self.of_experts.borrow_mut().insert(work.ticket);
        }
    }

    /// The result of this work has to wait so long.
    pub fn take_wait(&self, ticket: Ticket) -> Option<LocalBoxFuture<'static, ()>> {
        let wait = self.hesitation.as_ref()?;
        self.of_experts.borrow_mut().remove(&ticket).then(|| wait())
    }

    /// How many times every piece of work runs.
    pub fn factor(&self) -> u32 {
        self.factor
    }

    /// Zeros instead of the outputs of experts, if these are not computed.
    pub fn empty(&self, task: &Task) -> Option<Outcome> {
        let Task::Experts { normed, experts, .. } = task else { return None };
        let width = normed.len() / experts.len().max(1);
        let vectors: usize = experts.iter().map(Vec::len).sum();
        self.is_empty.then(|| Outcome::ExpertOutputs(vec![0.0; vectors * width]))
    }

    /// A ticket for work that is timed.
    pub fn trial_ticket(&self) -> Ticket {
        Ticket(FIRST_TRIAL + self.next_number())
    }

    /// Submits the repetitions of `work`; the work itself follows. Tokens may be computed again at any time: their KV cache
    /// entries are overwritten.
    pub fn repeat(&self, engine: &Engine, work: &Work, clock: &dyn Clock) {
        if self.factor > 1 {
            let head_start = self.repeat_task(engine, &work.task, clock);
            self.head_starts.borrow_mut().insert(work.ticket, head_start);
        }
    }

    /// Submits the repetitions of `task`; returns the milliseconds that took: the work that follows began that much earlier.
    pub fn repeat_task(&self, engine: &Engine, task: &Task, clock: &dyn Clock) -> f64 {
        if self.factor == 1 {
            return 0.0;
        }
        let started = clock.now().0;
        for _ in 1..self.factor {
            let again = Work { ticket: Ticket(FIRST_REPETITION + self.next_number()), task: task.clone() };
            // If this is refused, the work itself is refused too, with its own ticket.
            let _ = engine.submit(again);
        }
        clock.now().0 - started
    }

    /// Milliseconds to add to the time of finished work.
    pub fn take_head_start(&self, ticket: Ticket) -> f64 {
        self.head_starts.borrow_mut().remove(&ticket).unwrap_or(0.0)
    }

    fn next_number(&self) -> u64 {
        let number = self.next.get();
        self.next.set(number + 1);
        number
    }
}
