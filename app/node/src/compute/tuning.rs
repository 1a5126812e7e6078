//! Tuning of the kernels: what was measured on earlier visits, and what is measured when a model has come.

use futures::future::{Either, select};
use potluck_engine::tuning::Tuning;
use potluck_engine::{Capabilities, Engine, EngineError, Gpu};
use serde::{Deserialize, Serialize};

use super::{Compute, adapter};
use crate::blob::BlobKey;

/// Milliseconds that compiling and testing candidates may take beside a load, and measuring them after it.
const COMPILE_MILLIS: f64 = 800.0;
const MEASURE_MILLIS: f64 = 1_200.0;

/// A device is left alone after so many loads whose tuning brought nothing, and at once if it was lost meanwhile.
const MOST_FAILURES: u8 = 2;

/// What is kept between visits.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Kept {
    device: String,
    build: String,
    /// Loads in a row whose time was over before one shape was measured: compilers take too long here.
    failures: u8,
    /// [`Tuning::lines`].
    shapes: Vec<String>,
}

/// The device as far as kernels see it: after an update of the driver everything is measured anew, as far as it is told.
fn device(capabilities: &Capabilities) -> String {
    let Capabilities { driver, backend, tier, subgroup, .. } = capabilities;
    format!("{} | {driver} | {backend} {tier:?} {subgroup}", adapter(capabilities))
}

impl Kept {
    /// What was kept, if it is of this device and this build and every line of it is understood.
    fn read(json: &[u8], device: &str, build: &str) -> Option<(Tuning, u8)> {
        let kept: Kept = serde_json::from_slice(json).ok()?;
        if kept.device != device || kept.build != build {
            return None;
        }
        let tuning = Tuning::read(kept.shapes.iter().map(String::as_str)).ok()?;
        Some((tuning, kept.failures))
    }
}

impl Compute {
    /// Reads what earlier visits measured, once for each time the GPU is opened. Engines that are made afterwards use it.
    pub async fn recall_tuning(&self) {
        let Some(gpu) = self.gpu.borrow().clone() else { return };
        if self.tuning_recalled.replace(true) {
            return;
        }
        let store = &self.platform.store;
        let Some(len) = store.len(BlobKey::TUNING).await.ok().filter(|len| *len > 0) else { return };
        let Ok(json) = store.read(BlobKey::TUNING, 0, len).await else { return };
        if let Some((tuning, failures)) = Kept::read(&json, &device(gpu.capabilities()), potluck_panel::BUILD) {
            gpu.set_tuning(tuning);
            self.tuning_failures.set(failures);
        }
    }

    /// Compiles and tests what [`Compute::tune`] will measure, while weights come.
    pub async fn prepare_tuning(&self, engine: &Engine) {
        if self.may_tune(engine) {
            self.within(COMPILE_MILLIS, engine.prepare_tuning(COMPILE_MILLIS)).await;
        }
    }

    /// Measures the shapes of a model that has just come, unless it answers already, and keeps what was measured. Nothing depends on
    /// it: without it the portable kernels stay.
    pub async fn tune(&self, engine: &Engine) {
        if !self.may_tune(engine) {
            return;
        }
        let tuning = || self.gpu.borrow().as_ref().map(Gpu::tuning);
        let before = tuning();
        self.within(MEASURE_MILLIS, engine.tune(MEASURE_MILLIS)).await;
        if tuning() != before {
            self.tuning_failures.set(0);
            self.keep_tuning().await;
        } else if engine.is_untuned() && !engine.has_kv_cache() {
            self.tuning_failures.set(self.tuning_failures.get().saturating_add(1));
            self.keep_tuning().await;
        }
    }

    fn may_tune(&self, engine: &Engine) -> bool {
        self.tuning_failures.get() < MOST_FAILURES && !engine.has_kv_cache()
    }

    /// Waits for some tuning, but no longer than so many milliseconds: a browser's compiler asks nobody how long it may take. A device
    /// that is lost over it is not tuned again.
    async fn within<T>(&self, millis: f64, tuning: impl Future<Output = Result<T, EngineError>>) {
        let patience = self.platform.clock.sleep(millis);
        if let Either::Left((Err(error), _)) = select(std::pin::pin!(tuning), patience).await {
            log::warn!("the kernels were not tuned: {error}");
            self.tuning_failures.set(MOST_FAILURES);
            self.keep_tuning().await;
        }
    }

    /// Best effort: without it the next visit measures again.
    async fn keep_tuning(&self) {
        let Some(gpu) = self.gpu.borrow().clone() else { return };
        let kept = Kept {
            device: device(gpu.capabilities()),
            build: potluck_panel::BUILD.to_owned(),
            failures: self.tuning_failures.get(),
            shapes: gpu.tuning().lines(),
        };
        let Ok(json) = serde_json::to_vec(&kept) else { return };
        let store = &self.platform.store;
        let kept = match store.delete(BlobKey::TUNING).await {
            Ok(()) => store.append(BlobKey::TUNING, 0, json).await,
            Err(error) => Err(error),
        };
        if let Err(error) = kept {
            log::info!("the tuning is not kept: {error}");
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn only_what_was_measured_here_by_this_build_is_believed() {
        let line = "decode Q4_K Gated 8192x2048 1x2/32 1.250".to_owned();
        let kept = |shapes| Kept { device: "A".into(), build: "1".into(), failures: 1, shapes };
        let json = serde_json::to_vec(&kept(vec![line.clone()])).unwrap();
        let (tuning, failures) = Kept::read(&json, "A", "1").unwrap();
        assert_eq!((tuning.lines(), failures), (vec![line.clone()], 1));
        assert_eq!(Kept::read(&json, "B", "1"), None, "another device");
        assert_eq!(Kept::read(&json, "A", "2"), None, "another build");
        assert_eq!(Kept::read(&json[..json.len() - 2], "A", "1"), None, "half a file");
        assert_eq!(Kept::read(b"", "A", "1"), None);
        let broken = kept(vec![line, "decode Q4_K Gated 8192x2048 9x9/9 1.0".into()]);
        assert_eq!(Kept::read(&serde_json::to_vec(&broken).unwrap(), "A", "1"), None, "a kernel that is not there");
    }
}
