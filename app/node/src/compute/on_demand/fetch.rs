//! Chosen experts into slots: which slots are kept while others load. Work and its order are the driver's.

use std::collections::{BTreeSet, VecDeque};

use potluck_engine::{EngineError, SlotError};
use potluck_plan::{BlockIndex, ExpertId, Outcome, WeightUnit};

use super::ahead::LoadsAhead;
use super::counts::Fetched;
use super::guesses::Guesses;
use super::slots::failed;
use super::wave::{RunningWave, collect};
use crate::loader::LoadError;

/// Milliseconds that an expert waits for a slot which other work in the engine still needs.
const PATIENCE_MILLIS: f64 = 1_000.0;

/// Gives chosen experts their slots, beside loads ahead and guesses.
pub(super) struct Fetch<'a> {
    pub ahead: &'a LoadsAhead,
    pub guesses: Option<&'a Guesses>,
}

impl Fetch<'_> {
    /// Gives every expert of a wave a slot and its bytes. They stay until they are released. If earlier work still needs the
    /// slots, its outputs are collected first.
    ///
    /// # Errors
    /// What became of the work: there are too few slots, or an expert cannot be read.
    pub async fn wave(
        &self,
        block: BlockIndex,
        experts: &BTreeSet<ExpertId>,
        running: &mut VecDeque<RunningWave>,
        outputs: &mut [f32],
    ) -> Result<Fetched, Outcome> {
        let (slots, guesses) = (&self.ahead.slots, self.guesses);
        let (there, absent): (Vec<ExpertId>, Vec<ExpertId>) =
            experts.iter().copied().partition(|expert| slots.has(block, *expert));
        let (late, missing): (Vec<ExpertId>, Vec<ExpertId>) =
            absent.iter().copied().partition(|expert| self.ahead.claim((block, *expert)));
        // The load of one that is there may not have ended yet, and would let it go.
        for expert in &there {
            self.ahead.claim((block, *expert));
        }
        let began = slots.platform.clock.now().0;
        // Those that are there are kept before any other is evicted.
        for expert in there.iter().chain(&absent) {
            while !slots.try_slot(block, *expert)? {
                match (running.pop_front(), guesses) {
                    (Some(part), _) => collect(part, outputs).await?,
                    // A load ahead makes room once it is there.
                    (None, _) if self.ahead.one_ended().await => {}
                    // So do guesses for later blocks.
                    (None, Some(guesses)) if guesses.release_all(self.ahead) => {}
                    // Calls that went to the engine at once keep theirs until it gets to them.
                    (None, _) if slots.platform.clock.now().0 - began < PATIENCE_MILLIS => {
                        slots.platform.clock.sleep(1.0).await;
                    }
                    (None, _) => return Err(failed(full(block, experts.len()))),
                }
            }
        }
        let started = slots.platform.clock.now().0;
        let (hits, misses, slots_millis) = (there.len() as u64, absent.len() as u64, started - began);
        let mut fetched = Fetched { hits, misses, slots_millis, ..Fetched::default() };
        self.load(block, &missing, guesses.filter(|_| late.is_empty()), &mut fetched).await?;
        for expert in &late {
            self.ahead.ended((block, *expert)).await;
        }
        // What could not be loaded ahead is loaded as if nobody had tried.
        let lost: Vec<ExpertId> = late.into_iter().filter(|expert| !slots.has(block, *expert)).collect();
        for expert in &lost {
            if !slots.try_slot(block, *expert)? {
                return Err(failed(full(block, experts.len())));
            }
        }
        self.load(block, &lost, None, &mut fetched).await?;
        fetched.millis = if fetched.misses > 0 { slots.platform.clock.now().0 - started } else { 0.0 };
        Ok(fetched)
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
        let slots = &self.ahead.slots;
        let started = slots.platform.clock.now().0;
        let units = experts.iter().map(|expert| WeightUnit::Expert(block, *expert)).collect();
        let loaded = slots.read(units).await.map_err(|error| not_loaded(&error))?;
        fetched.bytes = fetched.bytes.saturating_add(loaded.bytes);
        fetched.network = fetched.network.saturating_add(loaded.network);
        if let Some(guesses) = measure {
            let millis = slots.platform.clock.now().0 - started;
            guesses.foresight.borrow_mut().measured(loaded.bytes, millis);
        }
        Ok(())
    }
}

fn full(block: BlockIndex, slots: usize) -> EngineError {
    EngineError::Slot(SlotError::Full { block, slots: slots as u32 })
}

fn not_loaded(error: &LoadError) -> Outcome {
    match error {
        LoadError::Engine(EngineError::Lost) => Outcome::DeviceLost,
        error => Outcome::Failed(format!("An expert cannot be loaded. {error}")),
    }
}
