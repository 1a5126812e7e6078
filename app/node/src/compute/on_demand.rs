//! Experts on demand: work that ends at a router waits until the chosen experts are in slots, and goes on from there
//! (od-moe.txt 3.1). Whoever submits work sees none of this but the time it takes.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::rc::Rc;

use futures::StreamExt;
use futures::channel::{mpsc, oneshot};
use potluck_engine::{Engine, EngineError, Keep, SlotError, SlotLoad};
use potluck_panel::OnDemandReport;
use potluck_plan::{
    BlockIndex, BlockRange, Bytes, Computed, ConversationId, ExpertId, ExpertOutputs, Input, KernelClass, Outcome,
    PooledExperts, Route, Task, Ticket, WeightUnit, Work,
};

use super::Compute;
use crate::loader::{ExpertLoader, LoadError};
use crate::platform::Platform;

/// Tickets from here on are parts of work; no plan of a room has tickets this large.
const FIRST_PART: u64 = 1 << 61;

/// What experts on demand cost so far.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct OnDemandCounts {
    /// Decoded tokens.
    tokens: u64,
    /// Experts that decoded tokens used and that were in a slot.
    hits: u64,
    /// Experts that decoded tokens used and that had to be loaded.
    misses: u64,
    /// Blocks at which decoded tokens waited for a load.
    stalls: u64,
    /// Bytes loaded for decoded tokens.
    bytes: Bytes,
    /// Milliseconds for which decoded tokens waited for loads.
    wait_millis: f64,
    /// Bytes loaded for prompts.
    prefill_bytes: Bytes,
}

impl OnDemandCounts {
    /// The share of used experts that were in a slot; `None` before the first token.
    fn recall(&self) -> Option<f64> {
        let used = self.hits + self.misses;
        (used > 0).then(|| self.hits as f64 / used as f64)
    }

    fn add(&mut self, class: KernelClass, fetched: &Fetched) {
        match class {
            KernelClass::Prefill => self.prefill_bytes = self.prefill_bytes.saturating_add(fetched.bytes),
            KernelClass::Decode => {
                self.hits += fetched.hits;
                self.misses += fetched.misses;
                self.stalls += u64::from(fetched.misses > 0);
                self.bytes = self.bytes.saturating_add(fetched.bytes);
                self.wait_millis += fetched.millis;
            }
        }
    }
}

/// What one wave of experts took.
#[derive(Clone, Copy, Debug, Default)]
struct Fetched {
    hits: u64,
    misses: u64,
    bytes: Bytes,
    millis: f64,
}

/// What is asked of the driver, in order.
enum Order {
    Work(Work),
    Forget(ConversationId),
}

/// Experts of one block that fit the slots together, with the tokens that chose them.
struct Wave {
    experts: BTreeSet<ExpertId>,
    /// Tokens that chose any of them.
    tokens: Vec<usize>,
    /// For each of those tokens which ones.
    chosen: Vec<Vec<ExpertId>>,
    /// Where the outputs belong among those of all experts.
    places: Vec<usize>,
}

/// Runs work on an engine whose experts come on demand, one piece after another.
pub struct OnDemand {
    platform: Platform,
    loader: ExpertLoader,
    pool: PooledExperts,
    /// Experts of its blocks.
    experts: u32,
    next_part: Cell<u64>,
    /// Who waits for a part's result.
    parts: RefCell<BTreeMap<Ticket, oneshot::Sender<Computed>>>,
    /// Work that was cancelled before it began.
    cancelled: RefCell<BTreeSet<Ticket>>,
    queued: RefCell<BTreeSet<Ticket>>,
    counts: Cell<OnDemandCounts>,
}

/// The driver, and the way to give it work. Work under way ends when this is dropped.
pub struct OnDemandQueue {
    driver: Rc<OnDemand>,
    orders: mpsc::UnboundedSender<Order>,
}

impl Drop for OnDemandQueue {
    fn drop(&mut self) {
        self.driver.parts.borrow_mut().clear();
    }
}

impl Compute {
    /// From now on experts of these blocks come on demand; of none if the pool has no blocks. What was counted of the same
    /// pool goes on.
    pub fn set_on_demand(self: &Rc<Self>, loader: ExpertLoader, pool: PooledExperts) {
        let is_same = self.on_demand.borrow().as_ref().is_some_and(|queue| queue.driver.pool == pool);
        if is_same {
            return;
        }
        self.on_demand.borrow_mut().take();
        if pool.blocks.is_empty() {
            return;
        }
        let driver = Rc::new(OnDemand {
            platform: self.platform.clone(),
            experts: loader.experts(&pool.blocks),
            loader,
            pool,
            next_part: Cell::default(),
            parts: RefCell::default(),
            cancelled: RefCell::default(),
            queued: RefCell::default(),
            counts: Cell::default(),
        });
        let (orders, received) = mpsc::unbounded();
        *self.on_demand.borrow_mut() = Some(OnDemandQueue { driver: driver.clone(), orders });
        let this = Rc::downgrade(self);
        self.platform.spawn.spawn(Box::pin(async move {
            driver
                .run(received, |computed| {
                    if let Some(this) = this.upgrade() {
                        this.deliver(computed);
                    }
                })
                .await;
        }));
    }

    /// What experts on demand cost so far; `None` if this device holds all of its experts.
    pub fn on_demand_report(&self) -> Option<OnDemandReport> {
        self.on_demand.borrow().as_ref().map(|queue| queue.driver.report())
    }
}

impl OnDemandQueue {
    /// Queues work; false if the driver has ended.
    pub fn submit(&self, work: Work) -> bool {
        let ticket = work.ticket;
        self.driver.queued.borrow_mut().insert(ticket);
        self.orders.unbounded_send(Order::Work(work)).is_ok()
    }

    /// Frees the KV cache of a conversation after the work that was queued before.
    pub fn forget(&self, conversation: ConversationId) {
        // Without a driver there is no engine either.
        let _ = self.orders.unbounded_send(Order::Forget(conversation));
    }

    /// Drops work that has not begun.
    pub fn cancel(&self, ticket: Ticket) {
        if self.driver.queued.borrow().contains(&ticket) {
            self.driver.cancelled.borrow_mut().insert(ticket);
        }
    }

    /// A result of the engine; given back if it is not of this driver.
    pub fn take(&self, computed: Computed) -> Option<Computed> {
        let part = self.driver.parts.borrow_mut().remove(&computed.ticket);
        match part {
            Some(part) => {
                // Nobody waits if the work was given up.
                let _ = part.send(computed);
                None
            }
            None => {
                Some(computed).filter(|computed| computed.ticket.0 < FIRST_PART || computed.ticket.0 >= 2 * FIRST_PART)
            }
        }
    }
}

impl OnDemand {
    async fn run(&self, mut orders: mpsc::UnboundedReceiver<Order>, deliver: impl Fn(Computed)) {
        while let Some(order) = orders.next().await {
            match order {
                Order::Forget(conversation) => self.engine().forget(conversation),
                Order::Work(Work { ticket, task }) => {
                    self.queued.borrow_mut().remove(&ticket);
                    let is_cancelled = self.cancelled.borrow_mut().remove(&ticket);
                    let started = self.platform.clock.now().0;
                    let outcome = if is_cancelled { Outcome::Cancelled } else { self.finish(task).await };
                    deliver(Computed { ticket, outcome, millis: self.platform.clock.now().0 - started });
                }
            }
        }
    }

    fn engine(&self) -> &Engine {
        self.loader.engine()
    }

    /// Runs a task to its end, over all pooled blocks.
    async fn finish(&self, mut task: Task) -> Outcome {
        loop {
            let Task::Forward { batch, class, blocks, then, .. } = &task else { return self.compute(task).await };
            let (batch, class, blocks, then) = (batch.clone(), *class, *blocks, *then);
            let outcome = self.compute(task).await;
            let (block, residual, normed, routes) = match (outcome, self.first_pooled(blocks)) {
                (Outcome::Routed { residual, normed, routes }, Some(block)) => (block, residual, normed, routes),
                (outcome, _) => {
                    let decoded = if class == KernelClass::Decode { batch.len() as u64 } else { 0 };
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
                let fetched = self.fetch(block, &experts, &mut running, &mut outputs).await?;
                self.count(|counts| counts.add(class, &fetched));
                let rows = tokens.iter().flat_map(|token| &normed[token * width..(token + 1) * width]);
                self.begin(Task::Experts { block, class, normed: rows.copied().collect(), experts: chosen })
            };
            let part = match begun.await {
                Ok(part) => part,
                Err(outcome) => {
                    self.give_up(block, &experts);
                    return Err(outcome);
                }
            };
            // From here on the engine keeps what its work needs.
            let kept = experts.iter().try_for_each(|id| self.engine().keep_expert(block, *id, Keep::Evictable));
            kept.map_err(failed)?;
            running.push_back((part, places));
        }
        while let Some(part) = running.pop_front() {
            collect(part, &mut outputs).await?;
        }
        Ok(outputs)
    }

    /// The experts that were chosen, at most as many at a time as there are slots, those in slots first.
    fn waves(&self, block: BlockIndex, routes: &[Route]) -> Result<Vec<Wave>, Outcome> {
        let slots = self.engine().slots_for(block).map_err(|error| failed(error.into()))?;
        let chosen: BTreeSet<ExpertId> =
            routes.iter().flat_map(|route| &route.experts).map(|(expert, _)| *expert).collect();
        let is_there = |expert: &ExpertId| self.engine().is_resident(WeightUnit::Expert(block, *expert));
        let (there, absent): (Vec<_>, Vec<_>) = chosen.into_iter().partition(is_there);
        let all = [there, absent].concat();
        Ok(all.chunks((slots as usize).max(1)).map(|experts| Wave::new(experts, routes)).collect())
    }

    /// Gives every expert of a wave a slot and its bytes. They stay until they are made evictable again.
    async fn fetch(
        &self,
        block: BlockIndex,
        wave: &BTreeSet<ExpertId>,
        running: &mut VecDeque<Running>,
        outputs: &mut [f32],
    ) -> Result<Fetched, Outcome> {
        let unit = |expert: &ExpertId| WeightUnit::Expert(block, *expert);
        let (there, absent): (Vec<ExpertId>, Vec<ExpertId>) =
            wave.iter().copied().partition(|expert| self.engine().is_resident(unit(expert)));
        // Those that are there are kept before any other is evicted.
        for expert in there.iter().chain(&absent) {
            while !self.try_slot(block, *expert)? {
                // Earlier work still needs the slots.
                let Some(part) = running.pop_front() else { return Err(failed(full(block, wave.len()))) };
                collect(part, outputs).await?;
            }
        }
        let started = self.platform.clock.now().0;
        let mut fetched = Fetched { hits: there.len() as u64, misses: absent.len() as u64, ..Fetched::default() };
        if !absent.is_empty() {
            let loaded = self.loader.load(absent.iter().map(unit).collect()).await;
            fetched.bytes = loaded.map_err(|error| not_loaded(&error))?;
        }
        fetched.millis = self.platform.clock.now().0 - started;
        Ok(fetched)
    }

    /// Keeps an expert in a slot, or begins its load; false if all slots are needed by work that waits.
    fn try_slot(&self, block: BlockIndex, expert: ExpertId) -> Result<bool, Outcome> {
        match self.engine().load_expert(block, expert, Keep::Kept) {
            Ok(SlotLoad::Present | SlotLoad::Begun) => Ok(true),
            Err(EngineError::Slot(SlotError::Full { .. })) => Ok(false),
            Err(error) => Err(failed(error)),
        }
    }

    /// A wave failed: frees the slots without bytes, and lets the others go.
    fn give_up(&self, block: BlockIndex, wave: &BTreeSet<ExpertId>) {
        for expert in wave {
            let left = match self.engine().is_resident(WeightUnit::Expert(block, *expert)) {
                true => self.engine().keep_expert(block, *expert, Keep::Evictable),
                false => self.engine().drop_expert(block, *expert),
            };
            if let Err(error) = left {
                log::info!("an expert was given up: {error}");
            }
        }
    }

    /// Submits a part; its result comes through the receiver.
    fn begin(&self, task: Task) -> Result<oneshot::Receiver<Computed>, Outcome> {
        let ticket = Ticket(FIRST_PART + self.next_part.get());
        self.next_part.set(self.next_part.get() + 1);
        let (part, result) = oneshot::channel();
        self.parts.borrow_mut().insert(ticket, part);
        if let Err(error) = self.engine().submit(Work { ticket, task }) {
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

    fn report(&self) -> OnDemandReport {
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
            token_stalls: a_token(counts.stalls as f64),
            token_wait_ms: a_token(counts.wait_millis),
            prompt_bytes: counts.prefill_bytes.0,
        }
    }

    fn count(&self, add: impl FnOnce(&mut OnDemandCounts)) {
        let mut counts = self.counts.get();
        add(&mut counts);
        self.counts.set(counts);
    }
}

impl Wave {
    fn new(experts: &[ExpertId], routes: &[Route]) -> Self {
        let experts: BTreeSet<ExpertId> = experts.iter().copied().collect();
        let mut wave = Self { experts, tokens: Vec::new(), chosen: Vec::new(), places: Vec::new() };
        let mut place = 0;
        for (token, route) in routes.iter().enumerate() {
            let mut chosen = Vec::new();
            for (expert, _) in &route.experts {
                if wave.experts.contains(expert) {
                    chosen.push(*expert);
                    wave.places.push(place);
                }
                place += 1;
            }
            if !chosen.is_empty() {
                wave.tokens.push(token);
                wave.chosen.push(chosen);
            }
        }
        wave
    }
}

/// A wave in the engine, and where its outputs belong.
type Running = (oneshot::Receiver<Computed>, Vec<usize>);

/// Waits for a wave and puts its outputs where they belong.
async fn collect((part, places): Running, outputs: &mut [f32]) -> Result<(), Outcome> {
    let vectors = match part.await.map_or(Outcome::DeviceLost, |computed| computed.outcome) {
        Outcome::ExpertOutputs(vectors) => vectors,
        lost @ (Outcome::DeviceLost | Outcome::Cancelled | Outcome::Failed(_)) => return Err(lost),
        _ => return Err(Outcome::Failed("The experts gave no outputs.".to_owned())),
    };
    let width = vectors.len() / places.len().max(1);
    for (vector, place) in vectors.chunks_exact(width.max(1)).zip(places) {
        outputs[place * width..(place + 1) * width].copy_from_slice(vector);
    }
    Ok(())
}

fn full(block: BlockIndex, slots: usize) -> EngineError {
    EngineError::Slot(SlotError::Full { block, slots: slots as u32 })
}

fn failed(error: EngineError) -> Outcome {
    match error {
        EngineError::Lost => Outcome::DeviceLost,
        error => Outcome::Failed(error.to_string()),
    }
}

fn not_loaded(error: &LoadError) -> Outcome {
    match error {
        LoadError::Engine(EngineError::Lost) => Outcome::DeviceLost,
        error => Outcome::Failed(format!("An expert cannot be loaded. {error}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn route(experts: &[u16]) -> Route {
        Route { experts: experts.iter().map(|id| (ExpertId(*id), 0.5)).collect() }
    }

    #[test]
    fn a_wave_names_only_its_experts_and_tokens_and_knows_their_places() {
        let routes = [route(&[3, 1]), route(&[2, 0]), route(&[1, 2])];
        let wave = Wave::new(&[ExpertId(1), ExpertId(3)], &routes);
        assert_eq!(wave.tokens, [0, 2]);
        assert_eq!(wave.chosen, [vec![ExpertId(3), ExpertId(1)], vec![ExpertId(1)]]);
        assert_eq!(wave.places, [0, 1, 4]);
    }

    #[test]
    fn recall_is_the_share_of_experts_that_were_there() {
        let mut counts = OnDemandCounts::default();
        assert_eq!(counts.recall(), None);
        let fetched = Fetched { hits: 3, misses: 1, bytes: Bytes(100), millis: 2.0 };
        counts.add(KernelClass::Decode, &fetched);
        counts.add(KernelClass::Decode, &Fetched { misses: 0, bytes: Bytes::ZERO, ..fetched });
        counts.add(KernelClass::Prefill, &fetched);
        assert_eq!((counts.recall(), counts.stalls), (Some(6.0 / 7.0), 1));
        assert_eq!((counts.bytes, counts.prefill_bytes), (Bytes(100), Bytes(100)));
    }
}
