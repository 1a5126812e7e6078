//! Kernel tuning: recalls what earlier visits measured, and measures after a model was loaded.

use std::cell::Cell;
use std::rc::Rc;

use futures::future::{Either, LocalBoxFuture, select};
use potluck_engine::tuning::Tuning;
use potluck_engine::{Capabilities, Engine, EngineError, Gpu};
use serde::{Deserialize, Serialize};

use super::device::{Device, adapter};
use crate::blob::BlobKey;
use crate::loader::Tuner;
use crate::platform::Platform;

/// Milliseconds that compiling and testing candidates may take during a load, and measuring them after it.
const COMPILE_MILLIS: f64 = 800.0;
const MEASURE_MILLIS: f64 = 1_200.0;

/// Tuning is given up after this many loads in a row in which it achieved nothing, and at once if the device was lost.
const MAX_FAILURES: u8 = 2;

/// What is known of the fastest kernels since the GPU was opened.
pub struct KernelTuning {
    platform: Platform,
    device: Rc<Device>,
    /// The results of earlier visits were read.
    recalled: Cell<bool>,
    /// Loads in a row in which tuning achieved nothing.
    failures: Cell<u8>,
}

impl KernelTuning {
    /// Nothing is known yet.
    pub(super) fn new(platform: Platform, device: Rc<Device>) -> Self {
        Self { platform, device, recalled: Cell::default(), failures: Cell::default() }
    }

    /// The GPU was closed: the next one reads the results again.
    pub(super) fn forget(&self) {
        self.recalled.set(false);
    }
}

/// The tuning as it is stored between visits.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct StoredTuning {
    device: String,
    build: String,
    /// Loads in a row in which time ran out before one shape was measured: the compiler is too slow here.
    failures: u8,
    /// [`Tuning::lines`].
    shapes: Vec<String>,
}

/// Identifies the device as far as kernels depend on it. A new driver version, where it is known, means a new measurement.
fn device(capabilities: &Capabilities) -> String {
    let Capabilities { driver, backend, tier, subgroup, .. } = capabilities;
    format!("{} | {driver} | {backend} {tier:?} {subgroup}", adapter(capabilities))
}

impl StoredTuning {
    /// Parses stored tuning, if it is of this device and build and every line is valid.
    fn read(json: &[u8], device: &str, build: &str) -> Option<(Tuning, u8)> {
        let stored: StoredTuning = serde_json::from_slice(json).ok()?;
        if stored.device != device || stored.build != build {
            return None;
        }
        let tuning = Tuning::read(stored.shapes.iter().map(String::as_str)).ok()?;
        Some((tuning, stored.failures))
    }
}

impl KernelTuning {
    /// Reads what earlier visits measured, once each time the GPU is opened. Engines created afterwards use it.
    pub async fn recall(&self) {
        let Some(gpu) = self.device.gpu() else { return };
        if self.recalled.replace(true) {
            return;
        }
        let store = &self.platform.store;
        let Some(len) = store.len(BlobKey::TUNING).await.ok().filter(|len| *len > 0) else { return };
        let Ok(json) = store.read(BlobKey::TUNING, 0, len).await else { return };
        if let Some((tuning, failures)) = StoredTuning::read(&json, &device(gpu.capabilities()), potluck_panel::BUILD) {
            gpu.set_tuning(tuning);
            self.failures.set(failures);
        }
    }

    /// What was measured is stored.
    async fn tune_and_store(&self, engine: &Engine) {
        if !self.may_tune(engine) {
            return;
        }
        let tuning = || self.device.gpu().as_ref().map(Gpu::tuning);
        let before = tuning();
        self.within(MEASURE_MILLIS, engine.tune(MEASURE_MILLIS)).await;
        if tuning() != before {
            self.failures.set(0);
            self.store().await;
        } else if engine.is_untuned() && !engine.has_kv_cache() && !engine.is_asked() {
            self.failures.set(self.failures.get().saturating_add(1));
            self.store().await;
        }
    }

    fn may_tune(&self, engine: &Engine) -> bool {
        self.failures.get() < MAX_FAILURES && !engine.has_kv_cache()
    }

    /// Waits for some tuning for at most `millis` milliseconds: a browser's compiler has no time limit. A device that is lost
    /// meanwhile is not tuned again.
    async fn within<T>(&self, millis: f64, tuning: impl Future<Output = Result<T, EngineError>>) {
        let timeout = self.platform.clock.sleep(millis);
        if let Either::Left((Err(error), _)) = select(std::pin::pin!(tuning), timeout).await {
            log::warn!("the kernels were not tuned: {error}");
            self.failures.set(MAX_FAILURES);
            self.store().await;
        }
    }

    /// Best effort: without it the next visit measures again.
    async fn store(&self) {
        let Some(gpu) = self.device.gpu() else { return };
        let stored = StoredTuning {
            device: device(gpu.capabilities()),
            build: potluck_panel::BUILD.to_owned(),
            failures: self.failures.get(),
            shapes: gpu.tuning().lines(),
        };
        let Ok(json) = serde_json::to_vec(&stored) else { return };
        let store = &self.platform.store;
        let result = match store.delete(BlobKey::TUNING).await {
            Ok(()) => store.append(BlobKey::TUNING, 0, json).await,
            Err(error) => Err(error),
        };
        if let Err(error) = result {
            log::info!("the tuning cannot be stored: {error}");
        }
    }
}

impl Tuner for KernelTuning {
    fn prepare_tuning<'a>(&'a self, engine: &'a Engine) -> LocalBoxFuture<'a, ()> {
        Box::pin(async move {
            if self.may_tune(engine) {
                self.within(COMPILE_MILLIS, engine.prepare_tuning(COMPILE_MILLIS)).await;
            }
        })
    }

    fn tune<'a>(&'a self, engine: &'a Engine) -> LocalBoxFuture<'a, ()> {
        Box::pin(self.tune_and_store(engine))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use super::*;

    #[test]
    fn only_tuning_of_this_device_and_build_is_used() {
        let line = "decode Q4_K Gated 8192x2048 1x4/32 1.250".to_owned();
        let stored = |shapes| StoredTuning { device: "A".into(), build: "1".into(), failures: 1, shapes };
        let json = serde_json::to_vec(&stored(vec![line.clone()])).unwrap();
        let (tuning, failures) = StoredTuning::read(&json, "A", "1").unwrap();
        assert_eq!((tuning.lines(), failures), (vec![line.clone()], 1));
        assert_eq!(StoredTuning::read(&json, "B", "1"), None, "another device");
        assert_eq!(StoredTuning::read(&json, "A", "2"), None, "another build");
        assert_eq!(StoredTuning::read(&json[..json.len() - 2], "A", "1"), None, "a truncated file");
        assert_eq!(StoredTuning::read(b"", "A", "1"), None);
        let broken = stored(vec![line, "decode Q4_K Gated 8192x2048 9x9/9 1.0".into()]);
        assert_eq!(StoredTuning::read(&serde_json::to_vec(&broken).unwrap(), "A", "1"), None, "an unknown kernel");
    }
}
