//! Runs work over blocks whose experts come on demand: from router to router, and what stages elsewhere call.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::rc::Rc;

use futures::channel::oneshot;
use potluck_engine::Keep;
use potluck_panel::CallTimes;
use potluck_plan::{
    BatchToken, BlockIndex, BlockRange, Computed, ExpertId, ExpertOutputs, ExpertRoute, Input, KernelClass, Outcome,
    PooledExperts, Position, Task, Ticket, Work,
};

use super::ahead::{Key, LoadEnd, LoadsAhead};
use super::counts::{Fetched, OnDemandCounts};
use super::fetch::Fetch;
use super::guesses::Guesses;
use super::slots::{Slots, failed};
use super::wave::{Wave, collect};

/// Tickets from here on are parts of work; no plan of a room has tickets this large.
const FIRST_PART: u64 = 1 << 61;
const _: () = assert!(Ticket::FIRST_CHECK.0 < FIRST_PART);

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

/// Hidden vectors, and the experts that are chosen for each.
struct Chosen<'a> {
    normed: &'a [f32],
    routes: &'a [ExpertRoute],
}

/// Runs work on an engine whose experts come on demand, one piece after another.
pub(super) struct Driver {
    pub slots: Rc<Slots>,
    /// What loads beside the work.
    pub ahead: LoadsAhead,
    pub pool: PooledExperts,
    /// Experts that share its slots; another plan may name the device for others.
    pub experts: Cell<u32>,
    /// Counts the parts of all drivers: a result of an earlier one must not be taken for one of this.
    pub next_part: Rc<Cell<u64>>,
    /// Who waits for a part's result.
    pub parts: RefCell<BTreeMap<Ticket, oneshot::Sender<Computed>>>,
    pub counts: Cell<OnDemandCounts>,
    /// What this device's own predictor loads ahead, if it has one.
    pub guesses: RefCell<Option<Rc<Guesses>>>,
    /// It has no stage: it computes what others call.
    pub serves: Cell<bool>,
    /// Calls that went to the engine at once, and when.
    pub at_once: RefCell<BTreeMap<Ticket, f64>>,
    /// Decoded rows that were called, by block.
    pub called: RefCell<BTreeMap<BlockIndex, u64>>,
    /// Experts of which a stage elsewhere said that it will probably call them; true once that has loaded them.
    pub hinted: RefCell<BTreeMap<Key, bool>>,
}

impl Driver {
    pub fn now(&self) -> f64 {
        self.slots.platform.clock.now().0
    }

    /// This device's own guesses, if it has any now.
    pub fn guesses(&self) -> Option<Rc<Guesses>> {
        self.guesses.borrow().clone()
    }

    /// Runs a task, which was queued at a moment, to its end, over all pooled blocks.
    pub async fn finish(&self, mut task: Task, queued: f64) -> Outcome {
        let started = self.now();
        if let Some(guesses) = self.guesses() {
            guesses.begin(&task);
        }
        loop {
            let Task::Forward { batch, class, blocks, then, biases, .. } = &task else {
                return self.alone(task, queued).await;
            };
            let (batch, class, blocks, then, biases) = (batch.clone(), *class, *blocks, *then, biases.clone());
            let outcome = self.compute(task).await;
            let (block, residual, normed, routes) = match (outcome, self.first_pooled(blocks)) {
                (Outcome::Routed { residual, normed, routes }, Some(block)) => (block, residual, normed, routes),
                (outcome, _) => {
                    // Not one whose experts are gathered elsewhere: it comes back.
                    let ends = class == KernelClass::Decode && !matches!(outcome, Outcome::Routed { .. });
                    let decoded = if ends { batch.len() as u64 } else { 0 };
                    self.count(|counts| counts.tokens += decoded);
                    if let Some(guesses) = self.guesses().filter(|_| ends) {
                        guesses.decoded(&batch, then, self.now() - started);
                    }
                    return outcome;
                }
            };
            let ahead = self.look_ahead(block, class, &batch, &routes);
            let outputs = match self
                .experts(block, class, &Chosen { normed: &normed, routes: &routes }, &ahead, self.now())
                .await
            {
                Ok(outputs) => outputs,
                Err(outcome) => return outcome,
            };
            let outputs = ExpertOutputs { block, residual, routes, outputs };
            if let Some(guesses) = self.guesses()
                && ahead.after_outputs
            {
                guesses.output(&batch, &outputs);
                guesses.look_ahead(&self.ahead, &ahead.tokens);
            }
            let input = Input::Experts(outputs);
            let blocks = BlockRange::new(block.0 + 1, blocks.end);
            task = Task::Forward { batch, class, input, blocks, then, biases };
        }
    }

    /// Work of one piece. Experts that are called alone are given slots first.
    async fn alone(&self, task: Task, queued: f64) -> Outcome {
        let Task::Experts { block, class, normed, experts, sum } = &task else { return self.compute(task).await };
        if !self.pool.blocks.contains(block) {
            return self.compute(task).await;
        }
        // Who loads on demand computes a token's experts as they come, and is asked for each of them.
        if sum.is_some() {
            return Outcome::Failed("experts that are loaded on demand have no sum".to_owned());
        }
        let route = |row: &Vec<ExpertId>| ExpertRoute { experts: row.iter().map(|expert| (*expert, 1.0)).collect() };
        let routes: Vec<ExpertRoute> = experts.iter().map(route).collect();
        if *class == KernelClass::Decode && self.serves.get() {
            self.called(*block, experts);
        }
        match self.experts(*block, *class, &Chosen { normed, routes: &routes }, &Ahead::default(), queued).await {
            Ok(outputs) => Outcome::ExpertOutputs(outputs),
            Err(outcome) => outcome,
        }
    }

    /// Loads beside the work what was guessed or hinted, until the driver ends.
    pub async fn load_ahead(&self) {
        let ended = |key: Key, how, fetched: Fetched| match self.guesses() {
            Some(guesses) => guesses.ended(&self.ahead, key, how, fetched),
            None => {
                self.count(|counts| counts.add_hinted(&fetched));
                if let (LoadEnd::Loaded { .. }, Some(loaded)) = (how, self.hinted.borrow_mut().get_mut(&key)) {
                    *loaded = true;
                }
                if matches!(how, LoadEnd::Loaded { claimed: false }) {
                    // Fails only for experts in no slot.
                    let _ = self.slots.engine().keep_expert(key.0, key.1, Keep::Evictable);
                }
            }
        };
        self.ahead.run(ended).await;
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
        chosen: &Chosen<'_>,
        ahead: &Ahead,
        queued: f64,
    ) -> Result<Vec<f32>, Outcome> {
        let &Chosen { normed, routes } = chosen;
        let began = self.now();
        let mut times = CallTimes { queued: began - queued, ..CallTimes::default() };
        let width = normed.len() / routes.len().max(1);
        let pairs: usize = routes.iter().map(|route| route.experts.len()).sum();
        let mut outputs = vec![0.0; pairs * width];
        let mut running = VecDeque::new();
        for Wave { experts, tokens, chosen, places } in self.waves(block, routes)? {
            let begun = async {
                let guesses = self.guesses();
                let fetch = Fetch { ahead: &self.ahead, guesses: guesses.as_deref() };
                let fetched = fetch.wave(block, &experts, &mut running, &mut outputs).await?;
                self.count(|counts| counts.add(class, &fetched));
                times.slots_wait += fetched.slots_millis;
                times.reads_wait += fetched.millis;
                let rows = tokens.iter().flat_map(|token| &normed[token * width..(token + 1) * width]);
                self.begin(Task::Experts { block, class, normed: rows.copied().collect(), experts: chosen, sum: None })
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
        if let Some(guesses) = self.guesses().filter(|_| !ahead.after_outputs) {
            guesses.look_ahead(&self.ahead, &ahead.tokens);
        }
        let submitted = self.now();
        while let Some(part) = running.pop_front() {
            collect(part, &mut outputs).await?;
        }
        if class == KernelClass::Decode {
            let ended = self.now();
            times.engine = ended - submitted;
            times.rest = (submitted - began - times.slots_wait - times.reads_wait).max(0.0);
            self.count(|counts| counts.add_call(&times));
        }
        Ok(outputs)
    }

    /// A router has chosen: tells the predictor, and says for which tokens and block to look ahead.
    fn look_ahead(&self, block: BlockIndex, class: KernelClass, batch: &[BatchToken], routes: &[ExpertRoute]) -> Ahead {
        let Some(guesses) = self.guesses() else { return Ahead::default() };
        if class == KernelClass::Prefill {
            guesses.release_all(&self.ahead);
            guesses.observe_prompt(batch, block, routes);
            return Ahead::default();
        }
        let chosen = routes.iter().flat_map(|route| &route.experts).map(|(expert, _)| *expert).collect();
        guesses.reached(&self.ahead, block, &chosen);
        guesses.observe(batch, block, routes);
        let foresight = guesses.foresight.borrow();
        let (blocks, at) = (self.pool.blocks.len(), self.pool.blocks.range(..block).count());
        let lead = usize::from(guesses.lead).clamp(1, (blocks - 1).max(1));
        let places = (at + 1..=at + lead).filter_map(|place| {
            let of = self.pool.blocks.iter().nth(place % blocks)?;
            Some(batch.iter().map(move |row| (Position(row.position.0 + (place / blocks) as u32), *of)))
        });
        let tokens = places.flatten().filter(|(position, block)| !foresight.is_asked(*position, *block)).collect();
        Ahead { tokens, after_outputs: foresight.wants_outputs() }
    }

    /// The experts that were chosen, at most as many at a time as there are slots, those in slots first.
    fn waves(&self, block: BlockIndex, routes: &[ExpertRoute]) -> Result<Vec<Wave>, Outcome> {
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
        if let Err(error) = self.slots.submit(Work { ticket, task }) {
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

    pub fn count(&self, add: impl FnOnce(&mut OnDemandCounts)) {
        let mut counts = self.counts.get();
        add(&mut counts);
        self.counts.set(counts);
    }
}
