//! Runs work over blocks whose experts come on demand: from router to router, and what stages elsewhere call.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::rc::Rc;

use futures::channel::oneshot;
use potluck_panel::OnDemandReport;
use potluck_plan::{
    BlockIndex, BlockRange, Computed, ExpertId, ExpertOutputs, Input, KernelClass, Outcome, PooledExperts, Route, Task,
    Ticket, Work,
};

use super::counts::OnDemandCounts;
use super::slots::{Slots, failed};
use super::wave::{Wave, collect};

/// Tickets from here on are parts of work; no plan of a room has tickets this large.
const FIRST_PART: u64 = 1 << 61;

/// True if this is the ticket of a part of work.
pub(super) fn is_part(ticket: Ticket) -> bool {
    (FIRST_PART..2 * FIRST_PART).contains(&ticket.0)
}

/// Runs work on an engine whose experts come on demand, one piece after another.
pub(super) struct Driver {
    pub slots: Slots,
    pub pool: PooledExperts,
    /// Experts of its blocks.
    pub experts: u32,
    /// Counts the parts of all drivers: a result of an earlier one must not be taken for one of this.
    pub next_part: Rc<Cell<u64>>,
    /// Who waits for a part's result.
    pub parts: RefCell<BTreeMap<Ticket, oneshot::Sender<Computed>>>,
    pub counts: Cell<OnDemandCounts>,
    /// It has no stage: it computes what others call.
    pub serves: bool,
    /// Decoded rows that were called, by block.
    pub called: RefCell<BTreeMap<BlockIndex, u64>>,
    /// Experts that will probably be called, the first one first.
    pub guesses: RefCell<VecDeque<(BlockIndex, ExpertId)>>,
}

/// Experts that one hint loads at most: a quarter of the slots, and one where there are fewer.
fn most_guesses(slots: u32) -> usize {
    1.max(slots as usize / 4)
}

impl Driver {
    /// Runs a task to its end, over all pooled blocks.
    pub async fn finish(&self, mut task: Task) -> Outcome {
        loop {
            let Task::Forward { batch, class, blocks, then, .. } = &task else { return self.alone(task).await };
            let (batch, class, blocks, then) = (batch.clone(), *class, *blocks, *then);
            let outcome = self.compute(task).await;
            let (block, residual, normed, routes) = match (outcome, self.first_pooled(blocks)) {
                (Outcome::Routed { residual, normed, routes }, Some(block)) => (block, residual, normed, routes),
                (outcome, _) => {
                    // Not one whose experts are gathered elsewhere: it comes back.
                    let ends = class == KernelClass::Decode && !matches!(outcome, Outcome::Routed { .. });
                    let decoded = if ends { batch.len() as u64 } else { 0 };
                    self.count(|counts| counts.tokens += decoded);
                    return outcome;
                }
            };
            let outputs = match self.experts(block, class, &normed, &routes).await {
                Ok(outputs) => outputs,
                Err(outcome) => return outcome,
            };
            let input = Input::Experts(ExpertOutputs { block, residual, routes, outputs });
            task = Task::Forward { batch, class, input, blocks: BlockRange::new(block.0 + 1, blocks.end), then };
        }
    }

    /// Work of one piece. Experts that are called alone are given slots first.
    async fn alone(&self, task: Task) -> Outcome {
        let Task::Experts { block, class, normed, experts } = &task else { return self.compute(task).await };
        if !self.pool.blocks.contains(block) {
            return self.compute(task).await;
        }
        let route = |row: &Vec<ExpertId>| Route { experts: row.iter().map(|expert| (*expert, 1.0)).collect() };
        let routes: Vec<Route> = experts.iter().map(route).collect();
        if *class == KernelClass::Decode && self.serves {
            let mut called = self.called.borrow_mut();
            let rows = called.entry(*block).or_insert(0);
            *rows += experts.len() as u64;
            // A token passes each block once, and calls this device in most.
            let tokens = *rows;
            self.count(|counts| counts.tokens = counts.tokens.max(tokens));
        }
        match self.experts(*block, *class, normed, &routes).await {
            Ok(outputs) => Outcome::ExpertOutputs(outputs),
            Err(outcome) => outcome,
        }
    }

    /// Other experts will probably be called than was said before.
    pub fn guess(&self, experts: Vec<(BlockIndex, ExpertId)>) {
        let absent = experts
            .into_iter()
            .filter(|(block, expert)| self.pool.blocks.contains(block) && !self.slots.has(*block, *expert));
        *self.guesses.borrow_mut() = absent.take(most_guesses(self.pool.slots)).collect();
    }

    /// Loads the next guess, if there is one. What is in use makes no room for it.
    pub async fn load_guess(&self) -> bool {
        let Some((block, expert)) = self.guesses.borrow_mut().pop_front() else { return false };
        match self.slots.load_guess(block, expert).await {
            Ok(bytes) => self.count(|counts| counts.guessed_bytes = counts.guessed_bytes.saturating_add(bytes)),
            Err(outcome) => {
                log::info!("an expert was not loaded ahead: {outcome:?}");
                self.guesses.borrow_mut().clear();
            }
        }
        true
    }

    /// The first block whose router ends a pass over these blocks.
    fn first_pooled(&self, blocks: BlockRange) -> Option<BlockIndex> {
        blocks.iter().find(|block| self.pool.blocks.contains(block))
    }

    /// The outputs of all chosen experts in router order. Experts that do not fit the slots together come in waves: while
    /// one is computed, the next one loads.
    async fn experts(
        &self,
        block: BlockIndex,
        class: KernelClass,
        normed: &[f32],
        routes: &[Route],
    ) -> Result<Vec<f32>, Outcome> {
        let width = normed.len() / routes.len().max(1);
        let pairs: usize = routes.iter().map(|route| route.experts.len()).sum();
        let mut outputs = vec![0.0; pairs * width];
        let mut running = VecDeque::new();
        for Wave { experts, tokens, chosen, places } in self.waves(block, routes)? {
            let begun = async {
                let fetched = self.slots.fetch(block, &experts, &mut running, &mut outputs).await?;
                self.count(|counts| counts.add(class, &fetched));
                let rows = tokens.iter().flat_map(|token| &normed[token * width..(token + 1) * width]);
                self.begin(Task::Experts { block, class, normed: rows.copied().collect(), experts: chosen })
            };
            let part = match begun.await {
                Ok(part) => part,
                Err(outcome) => {
                    self.slots.give_up(block, &experts);
                    return Err(outcome);
                }
            };
            // From here on the engine keeps what its work needs.
            self.slots.release(block, &experts)?;
            running.push_back((part, places));
        }
        while let Some(part) = running.pop_front() {
            collect(part, &mut outputs).await?;
        }
        Ok(outputs)
    }

    /// The experts that were chosen, at most as many at a time as there are slots, those in slots first.
    fn waves(&self, block: BlockIndex, routes: &[Route]) -> Result<Vec<Wave>, Outcome> {
        let slots = self.slots.engine().slots_for(block).map_err(|error| failed(error.into()))?;
        let chosen: BTreeSet<ExpertId> =
            routes.iter().flat_map(|route| &route.experts).map(|(expert, _)| *expert).collect();
        let (there, absent): (Vec<_>, Vec<_>) = chosen.into_iter().partition(|expert| self.slots.has(block, *expert));
        let all = [there, absent].concat();
        Ok(all.chunks((slots as usize).max(1)).map(|experts| Wave::new(experts, routes)).collect())
    }

    /// Submits a part; its result comes through the receiver.
    fn begin(&self, task: Task) -> Result<oneshot::Receiver<Computed>, Outcome> {
        let ticket = Ticket(FIRST_PART + self.next_part.get());
        self.next_part.set(self.next_part.get() + 1);
        let (part, result) = oneshot::channel();
        self.parts.borrow_mut().insert(ticket, part);
        if let Err(error) = self.slots.engine().submit(Work { ticket, task }) {
            self.parts.borrow_mut().remove(&ticket);
            return Err(failed(error));
        }
        Ok(result)
    }

    async fn compute(&self, task: Task) -> Outcome {
        match self.begin(task) {
            Ok(part) => part.await.map_or(Outcome::DeviceLost, |computed| computed.outcome),
            Err(outcome) => outcome,
        }
    }

    /// What it cost so far.
    pub fn report(&self) -> OnDemandReport {
        let counts = self.counts.get();
        let a_token = |all: f64| all / (counts.tokens.max(1)) as f64;
        OnDemandReport {
            tokens: counts.tokens,
            slots: self.pool.slots.min(self.experts),
            experts: self.experts,
            hits: counts.hits,
            misses: counts.misses,
            recall: counts.recall().unwrap_or(0.0),
            token_bytes: a_token(counts.bytes.0 as f64),
            token_network_bytes: a_token(counts.network.0 as f64),
            token_stalls: a_token(counts.stalls as f64),
            token_wait_ms: a_token(counts.wait_millis),
            prompt_bytes: counts.prefill_bytes.0,
            guessed_bytes: counts.guessed_bytes.0,
        }
    }

    fn count(&self, add: impl FnOnce(&mut OnDemandCounts)) {
        let mut counts = self.counts.get();
        add(&mut counts);
        self.counts.set(counts);
    }
}
