//! The slots of a device's pool, and the reads that fill them.

use std::cell::Cell;
use std::collections::BTreeSet;

use potluck_engine::{Engine, EngineError, Keep, SlotError, SlotLoad};
use potluck_plan::{BlockIndex, ExpertId, Outcome, WeightUnit, Work};

use super::counts::Bus;
use crate::loader::{ExpertLoader, LoadError, LoadedExperts};
use crate::platform::Platform;

/// The slots of a device's pool, and what fills them.
pub(super) struct Slots {
    pub platform: Platform,
    pub loader: ExpertLoader,
    /// What all loads took.
    bus: Cell<Bus>,
}

impl Slots {
    /// Slots that this fills.
    pub fn new(platform: Platform, loader: ExpertLoader) -> Self {
        Self { platform, loader, bus: Cell::default() }
    }

    /// What all loads took so far.
    pub fn bus(&self) -> Bus {
        self.bus.get()
    }

    pub fn engine(&self) -> &Engine {
        self.loader.engine()
    }

    /// Submits work to their engine.
    ///
    /// # Errors
    /// The engine refuses it.
    pub fn submit(&self, work: Work) -> Result<(), EngineError> {
        self.platform.compute.submit(self.engine(), work)
    }

    /// True if an expert is in a slot.
    pub fn has(&self, block: BlockIndex, expert: ExpertId) -> bool {
        self.engine().is_resident(WeightUnit::Expert(block, expert))
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

    /// Keeps an expert in a slot, or begins its load; false if all slots are needed by work that waits.
    ///
    /// # Errors
    /// The GPU is lost.
    pub fn try_slot(&self, block: BlockIndex, expert: ExpertId) -> Result<bool, Outcome> {
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
            let left = if self.has(block, *expert) {
                self.engine().keep_expert(block, *expert, Keep::Evictable)
            } else {
                self.engine().drop_expert(block, *expert)
            };
            if let Err(error) = left {
                log::info!("an expert was given up: {error}");
            }
        }
    }
}

/// What an error of the engine means for work.
pub(super) fn failed(error: EngineError) -> Outcome {
    match error {
        EngineError::Lost => Outcome::DeviceLost,
        error => Outcome::Failed(error.to_string()),
    }
}
