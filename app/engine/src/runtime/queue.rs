//! Work on its way: what waits, what the device computes, and what is answered.

use std::collections::{BTreeSet, HashMap, VecDeque};

use potluck_plan::{Computed, ConversationId, Outcome, Task, Ticket, Work};

use crate::runtime::pieces::Joining;
use crate::runtime::result_kind::Kind;
use crate::runtime::usage::Working;

/// Submitted work that is not answered yet.
#[derive(Debug)]
pub struct Pending {
    pub ticket: Ticket,
    pub readback: usize,
    pub bytes: u64,
    pub kind: Kind,
    pub started: f64,
    /// Marks the adapter as busy until it is dropped.
    #[expect(dead_code, reason = "it is there to be dropped")]
    pub working: Working,
    /// What its time is kept under; `None`: it gets no poll kicks.
    #[cfg(target_arch = "wasm32")]
    pub step: Option<crate::runtime::step_times::StepKind>,
    /// The last submit of the work.
    #[cfg_attr(target_arch = "wasm32", expect(dead_code, reason = "only natively is a submit waited for"))]
    pub submission: wgpu::SubmissionIndex,
}

#[cfg(target_arch = "wasm32")]
impl Pending {
    /// As poll kicks see it.
    pub fn as_oldest(&self) -> crate::runtime::poll_kick::Oldest {
        crate::runtime::poll_kick::Oldest { kind: self.step, started: self.started }
    }
}

/// Every piece of work is in one place: it waits, is in flight, or is answered.
#[derive(Debug, Default)]
pub struct Queue {
    waiting: VecDeque<Work>,
    pending: VecDeque<Pending>,
    /// Partial results of work that was cut into pieces.
    joining: HashMap<Ticket, Joining>,
    /// Results ready for delivery.
    answers: VecDeque<Computed>,
}

impl Queue {
    /// Queues work behind others.
    pub fn wait(&mut self, work: Work) {
        self.waiting.push_back(work);
    }

    /// Queues work that was cut into pieces, whose results are joined.
    pub fn wait_for_pieces(&mut self, ticket: Ticket, pieces: Vec<Task>) {
        self.joining.insert(ticket, Joining::new(pieces.len()));
        self.waiting.extend(pieces.into_iter().map(|task| Work { ticket, task }));
    }

    /// Work that waits, in order.
    pub fn waiting(&self) -> impl Iterator<Item = &Work> {
        self.waiting.iter()
    }

    /// Conversations that waiting work goes on with.
    pub fn conversations(&self) -> BTreeSet<ConversationId> {
        let of = |work: &Work| match &work.task {
            Task::Forward { batch, .. } => batch.iter().map(|token| token.conversation).collect(),
            Task::Continue { row, .. } => vec![row.conversation],
            Task::Experts { .. } => Vec::new(),
        };
        self.waiting.iter().flat_map(of).collect()
    }

    /// The work that is next.
    pub fn next(&self) -> Option<&Work> {
        self.waiting.front()
    }

    /// Takes the work that is next.
    pub fn take_next(&mut self) -> Option<Work> {
        self.waiting.pop_front()
    }

    /// Whether any work waits.
    pub fn has_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Answers work that waits as cancelled; false if none did.
    pub fn cancel(&mut self, ticket: Ticket) -> bool {
        let before = self.waiting.len();
        self.waiting.retain(|work| work.ticket != ticket);
        let dropped = before - self.waiting.len();
        (0..dropped).for_each(|_| self.answer(ticket, Outcome::Cancelled, 0.0));
        dropped > 0
    }

    /// Work was submitted.
    pub fn begin(&mut self, pending: Pending) {
        self.pending.push_back(pending);
    }

    /// Work in flight that is expected first.
    pub fn oldest(&self) -> Option<&Pending> {
        self.pending.front()
    }

    /// Takes the work in flight whose result is in this readback buffer.
    pub fn take_pending(&mut self, readback: usize) -> Option<Pending> {
        let at = self.pending.iter().position(|pending| pending.readback == readback)?;
        self.pending.remove(at)
    }

    /// Whether any work is in flight.
    pub fn has_pending(&self) -> bool {
        !self.pending.is_empty()
    }

    /// Records the result of a work, or of one piece of it.
    pub fn answer(&mut self, ticket: Ticket, outcome: Outcome, millis: f64) {
        let (outcome, millis) = match self.joining.get_mut(&ticket) {
            None => (outcome, millis),
            Some(joining) => {
                let Some(whole) = joining.add(outcome, millis) else { return };
                self.joining.remove(&ticket);
                whole
            }
        };
        self.answers.push_back(Computed { ticket, outcome, millis });
    }

    /// Takes the results that are ready.
    pub fn take_answers(&mut self) -> VecDeque<Computed> {
        std::mem::take(&mut self.answers)
    }

    /// Fails everything because the device is lost.
    pub fn fail_all(&mut self) {
        while let Some(pending) = self.pending.pop_front() {
            self.answer(pending.ticket, Outcome::DeviceLost, 0.0);
        }
        while let Some(work) = self.waiting.pop_front() {
            self.answer(work.ticket, Outcome::DeviceLost, 0.0);
        }
    }

    /// Pieces of work that are not delivered yet.
    pub fn len(&self) -> usize {
        self.pending.len() + self.waiting.len() + self.answers.len()
    }
}
