//! Runs work over blocks whose experts come on demand: from router to router.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::rc::Rc;

use futures::channel::oneshot;
use potluck_panel::OnDemandReport;
use potluck_plan::{
    BatchToken, BlockIndex, BlockRange, Bytes, Computed, ExpertId, ExpertOutputs, Input, KernelClass, Outcome,
    PooledExperts, Position, Route, Task, Ticket, Work,
};

use super::counts::OnDemandCounts;
use super::guesses::Guesses;
use super::slots::{Slots, failed};
use super::wave::{Wave, collect};

/// Tickets from here on are parts of work; no plan of a room has tickets this large.
const FIRST_PART: u64 = 1 << 61;

/// True if this is the ticket of a part of work.
pub(super) fn is_part(ticket: Ticket) -> bool {
    (FIRST_PART..2 * FIRST_PART).contains(&ticket.0)
}

/// Where to look ahead to, and when.
#[derive(Default)]
struct Ahead {
    tokens: Vec<(Position, BlockIndex)>,
    /// Only once the outputs of the experts are here.
    after_outputs: bool,
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
    /// What is loaded ahead, if anything is.
    pub guesses: Option<Guesses>,
}

impl Driver {
    /// Runs a task to its end, over all pooled blocks.
    pub async fn finish(&self, mut task: Task) -> Outcome {
        let started = self.slots.platform.clock.now().0;
        if let Some(guesses) = &self.guesses {
            guesses.begin(&task);
        }
        loop {
            let Task::Forward { batch, class, blocks, then, .. } = &task else { return self.compute(task).await };
            let (batch, class, blocks, then) = (batch.clone(), *class, *blocks, *then);
            let outcome = self.compute(task).await;
            let (block, residual, normed, routes) = match (outcome, self.first_pooled(blocks)) {
                (Outcome::Routed { residual, normed, routes }, Some(block)) => (block, residual, normed, routes),
                (outcome, _) => {
                    let decoded = if class == KernelClass::Decode { batch.len() as u64 } else { 0 };
                    self.count(|counts| counts.tokens += decoded);
                    if let Some(guesses) = self.guesses.as_ref().filter(|_| decoded > 0) {
                        let millis = self.slots.platform.clock.now().0 - started;
                        guesses.foresight.borrow_mut().token(millis / decoded as f64);
                    }
                    return outcome;
                }
            };
            let ahead = self.ahead(block, class, &batch, &routes);
            let outputs = match self.experts(block, class, (&normed, &routes), &ahead).await {
                Ok(outputs) => outputs,
                Err(outcome) => return outcome,
            };
            let outputs = ExpertOutputs { block, residual, routes, outputs };
            if let Some(guesses) = &self.guesses
                && ahead.after_outputs
            {
                guesses.output(&batch, &outputs);
                guesses.look_ahead(&self.slots, &ahead.tokens);
            }
            let input = Input::Experts(outputs);
            task = Task::Forward { batch, class, input, blocks: BlockRange::new(block.0 + 1, blocks.end), then };
        }
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
        (normed, routes): (&[f32], &[Route]),
        ahead: &Ahead,
    ) -> Result<Vec<f32>, Outcome> {
        let width = normed.len() / routes.len().max(1);
        let pairs: usize = routes.iter().map(|route| route.experts.len()).sum();
        let mut outputs = vec![0.0; pairs * width];
        let mut running = VecDeque::new();
        for Wave { experts, tokens, chosen, places } in self.waves(block, routes)? {
            let begun = async {
                let guesses = self.guesses.as_ref();
                let fetched = self.slots.fetch(block, &experts, guesses, (&mut running, &mut outputs)).await?;
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
        if let Some(guesses) = self.guesses.as_ref().filter(|_| !ahead.after_outputs) {
            guesses.look_ahead(&self.slots, &ahead.tokens);
        }
        while let Some(part) = running.pop_front() {
            collect(part, &mut outputs).await?;
        }
        Ok(outputs)
    }

    /// A router has chosen: tells the predictor, and says for which tokens and block to look ahead.
    fn ahead(&self, block: BlockIndex, class: KernelClass, batch: &[BatchToken], routes: &[Route]) -> Ahead {
        let Some(guesses) = &self.guesses else { return Ahead::default() };
        let chosen = routes.iter().flat_map(|route| &route.experts).map(|(expert, _)| *expert).collect();
        guesses.reached(&self.slots, block, &chosen);
        if class == KernelClass::Prefill {
            guesses.observe_prompt(batch, block, routes);
            return Ahead::default();
        }
        guesses.observe(batch, block, routes);
        let same = self.pool.blocks.range(BlockIndex(block.0 + 1)..).next();
        let next = |row: &BatchToken| match (same, self.pool.blocks.first()) {
            (Some(block), _) => Some((row.position, *block)),
            (None, Some(first)) => Some((Position(row.position.0 + 1), *first)),
            (None, None) => None,
        };
        let after_outputs = guesses.foresight.borrow().wants_outputs();
        Ahead { tokens: batch.iter().filter_map(next).collect(), after_outputs }
    }

    /// Loads guesses until the driver ends; returns at once if nobody guesses.
    pub async fn load_guesses(&self) {
        if let Some(guesses) = &self.guesses {
            guesses.work(&self.slots).await;
        }
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
        let guesses = self.guesses.as_ref().map(Guesses::report);
        let (guessed, network) =
            (guesses.map_or(0, |guesses| guesses.bytes), self.guesses.as_ref().map_or(Bytes::ZERO, Guesses::network));
        OnDemandReport {
            tokens: counts.tokens,
            slots: self.pool.slots.min(self.experts),
            experts: self.experts,
            hits: counts.hits,
            misses: counts.misses,
            recall: counts.recall().unwrap_or(0.0),
            token_bytes: a_token((counts.bytes.0 + guessed) as f64),
            token_network_bytes: a_token((counts.network.0 + network.0) as f64),
            token_stalls: a_token(counts.stalls as f64),
            token_wait_ms: a_token(counts.wait_millis),
            prompt_bytes: counts.prefill_bytes.0,
            guesses,
        }
    }

    fn count(&self, add: impl FnOnce(&mut OnDemandCounts)) {
        let mut counts = self.counts.get();
        add(&mut counts);
        self.counts.set(counts);
    }
}
