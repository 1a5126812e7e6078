//! Experts into slots: which slots are kept while others load, and the reads. Work and its order are the driver's.

use std::collections::{BTreeSet, VecDeque};

use potluck_engine::{Engine, EngineError, Keep, SlotError, SlotLoad};
use potluck_plan::{BlockIndex, Bytes, ExpertId, Outcome, WeightUnit};

use super::counts::Fetched;
use super::wave::{Running, collect};
use crate::loader::{ExpertLoader, LoadError};
use crate::platform::Platform;

/// The slots of a device's pool, and what fills them.
pub(super) struct Slots {
    pub platform: Platform,
    pub loader: ExpertLoader,
}

impl Slots {
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
        running: &mut VecDeque<Running>,
        outputs: &mut [f32],
    ) -> Result<Fetched, Outcome> {
        let (there, absent): (Vec<ExpertId>, Vec<ExpertId>) =
            wave.iter().copied().partition(|expert| self.has(block, *expert));
        // Those that are there are kept before any other is evicted.
        for expert in there.iter().chain(&absent) {
            while !self.try_slot(block, *expert)? {
                let Some(part) = running.pop_front() else { return Err(failed(full(block, wave.len()))) };
                collect(part, outputs).await?;
            }
        }
        let started = self.platform.clock.now().0;
        let mut fetched = Fetched { hits: there.len() as u64, misses: absent.len() as u64, ..Fetched::default() };
        if !absent.is_empty() {
            let units = absent.iter().map(|expert| WeightUnit::Expert(block, *expert)).collect();
            let loaded = self.loader.load(units).await.map_err(|error| not_loaded(&error))?;
            (fetched.bytes, fetched.network) = (loaded.bytes, loaded.network);
        }
        fetched.millis = self.platform.clock.now().0 - started;
        Ok(fetched)
    }

    /// Loads an expert that will probably be called, if it is not there and another one may leave. Returns its bytes.
    ///
    /// # Errors
    /// It cannot be read, or the GPU is lost.
    pub async fn load_guess(&self, block: BlockIndex, expert: ExpertId) -> Result<Bytes, Outcome> {
        if self.has(block, expert) || !self.try_slot(block, expert)? {
            return Ok(Bytes::ZERO);
        }
        let one = BTreeSet::from([expert]);
        match self.loader.load(vec![WeightUnit::Expert(block, expert)]).await {
            Ok(loaded) => {
                self.release(block, &one)?;
                Ok(loaded.bytes)
            }
            Err(error) => {
                self.give_up(block, &one);
                Err(not_loaded(&error))
            }
        }
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
