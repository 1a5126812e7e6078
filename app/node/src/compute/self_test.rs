//! The self-test of the kernels, as the page shows it.

use std::cell::RefCell;
use std::collections::BTreeSet;

use potluck_engine::{Engine, Gpu, Verdict};
use potluck_gguf::synthetic::Synthetic;
use potluck_gguf::{TensorType, join};
use potluck_model::{ModelSpec, UnitMap};
use potluck_panel::{SelfTest, SelfTestState};
use potluck_plan::{Bytes, Computed, KvCacheType};

use super::device::Device;
use crate::open::settings;

/// The last self-test.
#[derive(Default)]
pub struct SelfTests(RefCell<SelfTest>);

impl SelfTests {
    /// Tests the kernels again: those of the loaded model's engine, or of a small one.
    ///
    /// # Errors
    /// A sentence: there is no GPU, or the test could not run.
    pub(super) async fn run_again(&self, device: &Device, engine: Option<Engine>) -> Result<(), String> {
        let _testing = self.begin();
        let verdict = match engine {
            Some(engine) => engine.self_test().await,
            None => {
                let gpu = device.gpu().ok_or_else(|| device.no_gpu())?;
                let (engine, units) = small_engine(&gpu, &usual_model(), |_| {})?;
                let all = units.units().collect();
                let verdict = async {
                    engine.reserve(&all)?;
                    engine.prepare().await?;
                    engine.self_test().await
                }
                .await;
                engine.destroy();
                verdict
            }
        };
        self.ended(&verdict.map_err(|error| error.to_string())?);
        Ok(())
    }

    /// What the page shows of it.
    pub(super) fn report(&self) -> SelfTest {
        self.0.borrow().clone()
    }

    /// True if the kernels passed a self-test here.
    pub fn have_passed(&self) -> bool {
        matches!(self.0.borrow().state, SelfTestState::Passed | SelfTestState::Replaced)
    }

    /// A self-test begins. If the guard is dropped before [`SelfTests::ended`], none counts as run.
    pub fn begin(&self) -> Testing<'_> {
        *self.0.borrow_mut() = SelfTest { state: SelfTestState::Running, ..SelfTest::default() };
        Testing(&self.0)
    }

    /// A self-test ended.
    pub fn ended(&self, verdict: &Verdict) {
        let state = match (verdict.usable, verdict.fallback) {
            (false, _) => SelfTestState::Failed,
            (true, true) => SelfTestState::Replaced,
            (true, false) => SelfTestState::Passed,
        };
        let wrong = |replaced: bool| {
            let kernels =
                verdict.kernels.iter().filter(move |kernel| !kernel.ok && kernel.replaced_by.is_some() == replaced);
            kernels.map(|kernel| kernel.name.clone()).collect()
        };
        let tested = u32::try_from(verdict.kernels.len()).unwrap_or(u32::MAX);
        *self.0.borrow_mut() = SelfTest { state, tested, replaced: wrong(true), failed: wrong(false) };
    }
}

/// A running self-test.
pub struct Testing<'a>(&'a RefCell<SelfTest>);

impl Drop for Testing<'_> {
    fn drop(&mut self) {
        let mut test = self.0.borrow_mut();
        if test.state == SelfTestState::Running {
            *test = SelfTest::default();
        }
    }
}

/// A small model with the weight types of most published files.
fn usual_model() -> Synthetic {
    Synthetic {
        embedding: TensorType::Q6_K,
        head: TensorType::Q8_0,
        ..Synthetic::default().with_type(TensorType::Q4_K)
    }
}

/// An engine for a small model without weights.
///
/// # Errors
/// A sentence: the engine cannot be created.
pub(super) fn probe(gpu: &Gpu, on_result: impl Fn(Computed) + 'static) -> Result<Engine, String> {
    let (engine, _) = small_engine(gpu, &Synthetic::default(), on_result)?;
    engine.reserve(&BTreeSet::new()).map_err(|error| error.to_string())?;
    Ok(engine)
}

/// An engine for a small model, which has reserved nothing.
fn small_engine(
    gpu: &Gpu,
    model: &Synthetic,
    on_result: impl Fn(Computed) + 'static,
) -> Result<(Engine, UnitMap), String> {
    let sentence = |error: &dyn std::error::Error| error.to_string();
    let header = model.header().map_err(|error| sentence(&error))?;
    let model = join([header]).map_err(|error| sentence(&error))?;
    let (spec, units) = ModelSpec::from_gguf(&model).map_err(|error| sentence(&error))?;
    let settings = settings(Bytes(u64::MAX), 64, KvCacheType::F32);
    let engine = Engine::new(gpu, spec, units.clone(), settings, Box::new(on_result));
    Ok((engine.map_err(|error| sentence(&error))?, units))
}
