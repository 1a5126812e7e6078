//! Calibration times that are stored between visits, in the model's folder.

use potluck_plan::{Arithmetic, WeightUnit};
use potluck_protocol::CalibrationRuns;
use serde::{Deserialize, Serialize};

use super::super::{Compute, MEASUREMENT_SECONDS, ModelEngine};
use crate::blob::BlobKey;

/// The times of one device. The names of the fields are part of the file format.
#[derive(Serialize, Deserialize)]
struct StoredCalibration {
    adapter: String,
    build: String,
    /// A device that is slowed down for a measurement counts as another device.
    slow: u32,
    /// How prompts were computed.
    #[serde(default)]
    arithmetic: Arithmetic,
    unix_seconds: u64,
    /// Whether the GPU was kept busy during pauses because that made tokens faster.
    #[serde(default, rename = "warm")]
    keep_alive: bool,
    runs: CalibrationRuns,
}

impl Compute {
    async fn all_stored(&self, key: BlobKey) -> Vec<StoredCalibration> {
        let store = &self.platform.store;
        let len = store.len(key).await.unwrap_or(0);
        let json = if len > 0 { store.read(key, 0, len).await.unwrap_or_default() } else { Vec::new() };
        serde_json::from_slice(&json).unwrap_or_default()
    }

    fn is_of_this_device(&self, stored: &StoredCalibration) -> bool {
        stored.adapter == self.adapter()
            && stored.build == potluck_panel::BUILD
            && stored.slow == self.slow_down.factor()
            && stored.arithmetic == self.arithmetic()
    }

    /// How the loaded model computes prompts.
    fn arithmetic(&self) -> Arithmetic {
        self.model_engine.borrow().as_ref().map(|loaded| loaded.settings.arithmetic).unwrap_or_default()
    }

    /// The times that this device stored, if they are recent enough.
    pub(super) async fn stored_runs(&self, key: BlobKey) -> Option<CalibrationRuns> {
        let stored = self.all_stored(key).await.into_iter().find(|stored| self.is_of_this_device(stored))?;
        // Times without the LM head, for lack of memory, are taken again once the LM head is loaded.
        let has_lm_head = |loaded: &ModelEngine| {
            loaded.model == key.model
                && loaded.engine.missing().is_empty()
                && loaded.engine.reserved().contains(&WeightUnit::LmHead)
        };
        if stored.runs.decode_lm_head.is_empty() && self.model_engine.borrow().as_ref().is_some_and(has_lm_head) {
            return None;
        }
        let age = self.platform.clock.unix_seconds().saturating_sub(stored.unix_seconds);
        if age >= MEASUREMENT_SECONDS {
            return None;
        }
        self.keep_alive.set_enabled(stored.keep_alive);
        Some(stored.runs)
    }

    /// Best effort: without it the next visit times again.
    pub(super) async fn store_runs(&self, key: BlobKey, runs: CalibrationRuns) {
        let unix_seconds = self.platform.clock.unix_seconds();
        let build = potluck_panel::BUILD.to_owned();
        let mut all = self.all_stored(key).await;
        all.retain(|stored| !self.is_of_this_device(stored) && stored.build == build);
        all.push(StoredCalibration {
            adapter: self.adapter(),
            build,
            slow: self.slow_down.factor(),
            arithmetic: self.arithmetic(),
            unix_seconds,
            keep_alive: self.keep_alive.is_enabled(),
            runs,
        });
        let Ok(json) = serde_json::to_vec(&all) else { return };
        let store = &self.platform.store;
        let result = match store.delete(key).await {
            Ok(()) => store.append(key, 0, json).await,
            Err(error) => Err(error),
        };
        if let Err(error) = result {
            log::info!("the times cannot be stored: {error}");
        }
    }
}
