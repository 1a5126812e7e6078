//! Loads single experts into slots while a model answers.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use potluck_engine::Engine;
use potluck_plan::{Bytes, WeightUnit};

use super::error::LoadError;
use super::jobs::cut;
use super::layout::sort_units;
use super::load::Load;
use super::pipeline::Sink;

/// Reads of a file on this device under way at a time: storage is fastest with many.
const READS: usize = 32;

/// What a load of experts took.
#[derive(Clone, Copy, Debug)]
pub struct LoadedExperts {
    /// Bytes of the experts.
    pub bytes: Bytes,
    /// Bytes that were not in the cache and came from the origin.
    pub network: Bytes,
}

/// Loads experts that have a slot: from the cache, else from the source into the cache. The staging buffers stay between
/// loads.
pub struct ExpertLoader {
    load: Load,
    /// Lengths of the blobs in the cache, once they were looked up.
    stored: RefCell<Option<BTreeMap<WeightUnit, u64>>>,
}

impl ExpertLoader {
    /// Loads with the platform, engine and source of a load that has ended.
    pub fn new(load: Load) -> Self {
        Self { load, stored: RefCell::default() }
    }

    /// The engine with the slots.
    pub fn engine(&self) -> &Engine {
        &self.load.engine
    }

    /// Bytes of an expert.
    pub fn bytes(&self, expert: WeightUnit) -> Bytes {
        self.load.units.bytes(expert)
    }

    /// Loads experts whose loads have begun ([`Engine::load_expert`]). What the cache has lost is fetched again.
    ///
    /// # Errors
    /// Bytes cannot be read, or the GPU is lost.
    pub async fn load(&self, mut experts: Vec<WeightUnit>) -> Result<LoadedExperts, LoadError> {
        let load = &self.load;
        let policy = load.source.fetch_policy();
        if policy.cache && self.stored.borrow().is_none() {
            let stored = load.copy().units().await;
            *self.stored.borrow_mut() = Some(stored);
        }
        sort_units(&mut experts, &load.units);
        let needs = |unit, tensor| load.engine.needs(unit, tensor);
        let stored = |blob| self.stored.borrow().as_ref().and_then(|stored| stored.get(&blob).copied());
        let jobs = cut(&experts, &load.units, policy.max_bytes, stored, needs);
        let bytes = Bytes(jobs.iter().map(|job| job.len).sum());
        let blobs: Vec<Rc<_>> = jobs.iter().map(|job| job.blob.clone()).collect();
        let runs = load.runs_of(jobs);
        // The origin allows fewer reads at a time.
        let ahead = if policy.cache { policy.parallel } else { READS };
        let read = load.pipeline(Sink::AsStored(&load.engine), policy.cache).run(runs, ahead).await;
        // Experts come for as long as answers do: one sample each time notices a file that was replaced meanwhile.
        let read = load.copy().of_one_version(read, 1).await?;
        if let Some(stored) = self.stored.borrow_mut().as_mut() {
            stored.extend(blobs.into_iter().map(|blob| (blob.unit, blob.kept())));
        }
        Ok(LoadedExperts { bytes, network: if policy.cache { read } else { Bytes::ZERO } })
    }
}
