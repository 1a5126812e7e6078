//! Calibration times that are stored between visits, in the model's folder.

use std::rc::Rc;

use potluck_plan::{Arithmetic, WeightUnit};
use potluck_protocol::CalibrationRuns;
use serde::{Deserialize, Serialize};

use crate::blob::BlobKey;
use crate::compute::keep_alive::KeepAlive;
use crate::compute::measure::MEASUREMENT_SECONDS;
use crate::compute::room_engine::{ModelEngine, RoomEngine};
use crate::platform::Platform;

/// The times of one device. The names of the fields are part of the file format.
#[derive(Serialize, Deserialize)]
struct StoredCalibration {
    adapter: String,
    build: String,
    /// How prompts were computed.
    #[serde(default)]
    arithmetic: Arithmetic,
    unix_seconds: u64,
    /// Whether the GPU was kept busy during pauses because that made tokens faster.
    #[serde(default, rename = "warm")]
    keep_alive: bool,
    runs: CalibrationRuns,
}

/// The times that were stored.
pub(super) struct StoredTimes {
    pub platform: Platform,
    pub keep_alive: Rc<KeepAlive>,
    pub room: Rc<RoomEngine>,
}

impl StoredTimes {
    async fn all(&self, key: BlobKey) -> Vec<StoredCalibration> {
        let store = &self.platform.store;
        let len = store.len(key).await.unwrap_or(0);
        let json = if len > 0 { store.read(key, 0, len).await.unwrap_or_default() } else { Vec::new() };
        serde_json::from_slice(&json).unwrap_or_default()
    }

    /// The name under which this device's times are stored.
    fn timed_as(&self) -> String {
        self.platform.compute.device(self.keep_alive.device().adapter())
    }

    fn is_of_this_device(&self, stored: &StoredCalibration) -> bool {
        stored.adapter == self.timed_as()
            && stored.build == potluck_panel::BUILD
            && stored.arithmetic == self.arithmetic()
    }

    /// How the loaded model computes prompts.
    fn arithmetic(&self) -> Arithmetic {
        self.room.get().map(|loaded| loaded.settings.arithmetic).unwrap_or_default()
    }

    /// The times that this device stored, if they are recent enough.
    pub async fn get(&self, key: BlobKey) -> Option<CalibrationRuns> {
        let stored = self.all(key).await.into_iter().find(|stored| self.is_of_this_device(stored))?;
        // Times without the LM head, for lack of memory, are taken again once the LM head is loaded.
        let has_lm_head = |loaded: &ModelEngine| {
            loaded.model == key.model
                && loaded.engine.missing().is_empty()
                && loaded.engine.reserved().contains(&WeightUnit::LmHead)
        };
        if stored.runs.decode_lm_head.is_empty() && self.room.get().as_ref().is_some_and(has_lm_head) {
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
    pub async fn put(&self, key: BlobKey, runs: CalibrationRuns) {
        let unix_seconds = self.platform.clock.unix_seconds();
        let build = potluck_panel::BUILD.to_owned();
        let mut all = self.all(key).await;
        all.retain(|stored| !self.is_of_this_device(stored) && stored.build == build);
        all.push(StoredCalibration {
            adapter: self.timed_as(),
            build,
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
