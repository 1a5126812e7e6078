//! Experts into slots: which slots are kept while others load, and the reads. Work and its order are the driver's.

use std::cell::Cell;
use std::collections::{BTreeSet, VecDeque};

use potluck_engine::{Engine, EngineError, Keep, SlotError, SlotLoad};
use potluck_plan::{BlockIndex, ExpertId, Outcome, WeightUnit};

use super::ahead::LoadsAhead;
use super::counts::{Bus, Fetched};
use super::guesses::Guesses;
use super::wave::{Running, collect};
use crate::loader::{ExpertLoader, LoadError, LoadedExperts};
use crate::platform::Platform;

/// Milliseconds that an expert waits for a slot which other work in the engine still needs.
const PATIENCE_MILLIS: f64 = 1_000.0;

/// The slots of a device's pool, and what fills them.
pub(super) struct Slots {
    pub platform: Platform,
    pub loader: ExpertLoader,
    /// What loads beside the work.
    pub ahead: LoadsAhead,
    /// What all loads took.
    bus: Cell<Bus>,
}

impl Slots {
    /// Slots that this fills.
    pub fn new(platform: Platform, loader: ExpertLoader, ahead: LoadsAhead) -> Self {
        Self { platform, loader, ahead, bus: Cell::default() }
    }

    /// What all loads took so far.
    pub fn bus(&self) -> Bus {
        self.bus.get()
    }

    pub fn engine(&self) -> &Engine {
        self.loader.engine()
    }

    /// True if an expert is in a slot.
    pub fn has(&self, block: BlockIndex, expert: ExpertId) -> bool {
        self.engine().is_resident(WeightUnit::Expert(block, expert))
    }

    /// Gives every expert of a wave a slot and its bytes. They stay until they are released. If earlier work still needs the
    /// slots, its outputs are collected first.
    ///
    /// # Errors
    /// What became of the work: there are too few slots, or an expert cannot be read.
    pub async fn fetch(
        &self,
        block: BlockIndex,
        wave: &BTreeSet<ExpertId>,
        guesses: Option<&Guesses>,
        (running, outputs): (&mut VecDeque<Running>, &mut [f32]),
    ) -> Result<Fetched, Outcome> {
        let (there, absent): (Vec<ExpertId>, Vec<ExpertId>) =
            wave.iter().copied().partition(|expert| self.has(block, *expert));
        let (late, missing): (Vec<ExpertId>, Vec<ExpertId>) =
            absent.iter().copied().partition(|expert| self.ahead.claim((block, *expert)));
        // The load of one that is there may not have ended yet, and would let it go.
        for expert in &there {
            self.ahead.claim((block, *expert));
        }
        let began = self.platform.clock.now().0;
        // Those that are there are kept before any other is evicted.
        for expert in there.iter().chain(&absent) {
            while !self.try_slot(block, *expert)? {
                match (running.pop_front(), guesses) {
                    (Some(part), _) => collect(part, outputs).await?,
                    // A load ahead makes room once it is there.
                    (None, _) if self.ahead.one_ended().await => {}
                    // So do guesses for later blocks.
                    (None, Some(guesses)) if guesses.release_all(self) => {}
                    // Calls that went to the engine at once keep theirs until it gets to them.
                    (None, _) if self.platform.clock.now().0 - began < PATIENCE_MILLIS => {
                        self.platform.clock.sleep(1.0).await;
                    }
                    (None, _) => return Err(failed(full(block, wave.len()))),
                }
            }
        }
        let started = self.platform.clock.now().0;
        let (hits, misses, slots_millis) = (there.len() as u64, absent.len() as u64, started - began);
        let mut fetched = Fetched { hits, misses, slots_millis, ..Fetched::default() };
        self.load(block, &missing, guesses.filter(|_| late.is_empty()), &mut fetched).await?;
        for expert in &late {
            self.ahead.ended((block, *expert)).await;
        }
        // What could not be loaded ahead is loaded as if nobody had tried.
        let lost: Vec<ExpertId> = late.into_iter().filter(|expert| !self.has(block, *expert)).collect();
        for expert in &lost {
            if !self.try_slot(block, *expert)? {
                return Err(failed(full(block, wave.len())));
            }
        }
        self.load(block, &lost, None, &mut fetched).await?;
        fetched.millis = if fetched.misses > 0 { self.platform.clock.now().0 - started } else { 0.0 };
        Ok(fetched)
    }

    /// Reads experts that have slots into these.
    ///
    /// # Errors
    /// Bytes cannot be read, or the GPU is lost.
    pub async fn read(&self, experts: Vec<WeightUnit>) -> Result<LoadedExperts, LoadError> {
        let count = experts.len() as u64;
        self.change_bus(|bus, now| bus.begin(now));
        let loaded = self.loader.load(experts).await;
        self.change_bus(|bus, now| bus.end(now, if loaded.is_ok() { count } else { 0 }));
        loaded
    }

    fn change_bus(&self, change: impl FnOnce(&mut Bus, f64)) {
        let mut bus = self.bus.get();
        change(&mut bus, self.platform.clock.now().0);
        self.bus.set(bus);
    }

    /// Loads experts that have slots. What that took is measured where nothing else was waited for.
    async fn load(
        &self,
        block: BlockIndex,
        experts: &[ExpertId],
        measure: Option<&Guesses>,
        fetched: &mut Fetched,
    ) -> Result<(), Outcome> {
        if experts.is_empty() {
            return Ok(());
        }
        let started = self.platform.clock.now().0;
        let units = experts.iter().map(|expert| WeightUnit::Expert(block, *expert)).collect();
        let loaded = self.read(units).await.map_err(|error| not_loaded(&error))?;
        fetched.bytes = fetched.bytes.saturating_add(loaded.bytes);
        fetched.network = fetched.network.saturating_add(loaded.network);
        if let Some(guesses) = measure {
            let millis = self.platform.clock.now().0 - started;
            guesses.foresight.borrow_mut().measured(loaded.bytes, millis);
        }
        Ok(())
    }

    /// Keeps an expert in a slot, or begins its load; false if all slots are needed by work that waits.
    fn try_slot(&self, block: BlockIndex, expert: ExpertId) -> Result<bool, Outcome> {
        match self.engine().load_expert(block, expert, Keep::Kept) {
            Ok(SlotLoad::Present | SlotLoad::Begun) => Ok(true),
            Err(EngineError::Slot(SlotError::Full { .. })) => Ok(false),
            Err(error) => Err(failed(error)),
        }
    }

    /// Others may take the slots of a wave once the work that was submitted has used them.
    ///
    /// # Errors
    /// The GPU is lost.
    pub fn release(&self, block: BlockIndex, wave: &BTreeSet<ExpertId>) -> Result<(), Outcome> {
        let kept = wave.iter().try_for_each(|id| self.engine().keep_expert(block, *id, Keep::Evictable));
        kept.map_err(failed)
    }

    /// A wave failed: frees the slots without bytes, and lets the others go.
    pub fn give_up(&self, block: BlockIndex, wave: &BTreeSet<ExpertId>) {
        for expert in wave {
            let left = match self.has(block, *expert) {
                true => self.engine().keep_expert(block, *expert, Keep::Evictable),
                false => self.engine().drop_expert(block, *expert),
            };
            if let Err(error) = left {
                log::info!("an expert was given up: {error}");
            }
        }
    }
}

fn full(block: BlockIndex, slots: usize) -> EngineError {
    EngineError::Slot(SlotError::Full { block, slots: slots as u32 })
}

/// What an error of the engine means for work.
pub(super) fn failed(error: EngineError) -> Outcome {
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
