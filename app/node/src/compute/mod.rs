//! The GPU and the engine on it: opened once, opened again when the device is lost.

mod calibrate;
mod measure;
mod tuning;
mod warmth;

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use futures::channel::mpsc::UnboundedSender;
use futures::future::{Either, select};
use potluck_engine::{AdapterKind, Capabilities, Engine, EngineError, Gpu, GpuOptions, Verdict, binding_limit};
use potluck_gguf::join;
use potluck_gguf::synthetic::Synthetic;
use potluck_model::{ModelSpec, UnitMap};
use potluck_panel::{DeviceReport, SelfTest, SelfTestState};
use potluck_plan::{Bytes, Computed, ConversationId, KvCacheType, ModelId, Outcome, Task, Ticket, Work};
use potluck_swarm::Event;

pub use calibrate::CalibrateError;
pub use measure::Measured;

use crate::events::Inputs;
use crate::loader::LoadError;
use crate::node::Input;
use crate::open::{Model, settings};
use crate::platform::Platform;

/// How long a wait for the GPU may hold up everything else on this thread.
#[cfg(not(target_arch = "wasm32"))]
const PATIENCE: std::time::Duration = std::time::Duration::from_micros(500);
/// How long an idle engine sleeps before it looks whether it was replaced.
#[cfg(not(target_arch = "wasm32"))]
const IDLE_MILLIS: f64 = 4.0;
/// Longest wait for the GPU to open, in milliseconds; everything else waits for it.
const OPEN_PATIENCE: f64 = 20_000.0;
/// Tickets from here on are repetitions of a slowed device; nobody waits for their results.
const FIRST_REPETITION: u64 = 1 << 63;
/// Tickets from here on are timed; no plan of a room has so large ones.
const FIRST_TRIAL: u64 = 1 << 62;
/// Seconds for which a measurement is kept: thirty days.
const MEASURED_SECONDS: u64 = 30 * 86_400;
/// Tries to open a device again after a loss.
const REOPEN_TRIES: u32 = 4;

struct Slot {
    engine: Engine,
    model: ModelId,
    units: Rc<UnitMap>,
    context: u32,
    state: KvCacheType,
}

/// The GPU of this peer.
pub struct Compute {
    platform: Platform,
    inputs: Inputs,
    options: GpuOptions,
    gpu: RefCell<Option<Gpu>>,
    trouble: RefCell<Option<String>>,
    slot: RefCell<Option<Slot>>,
    self_test: RefCell<SelfTest>,
    measured: Cell<Option<Measured>>,
    /// What earlier visits measured of the kernels was asked for.
    tuning_recalled: Cell<bool>,
    /// How often in a row its tuning brought nothing.
    tuning_failures: Cell<u8>,
    weights: Cell<Bytes>,
    /// Every piece of work runs so often.
    slow: u32,
    repetitions: Cell<u64>,
    /// Milliseconds between the first repetition's submit and the work's own, until its result is here.
    late: RefCell<BTreeMap<Ticket, f64>>,
    /// Where results of work that is timed go.
    trial: RefCell<Option<UnboundedSender<Computed>>>,
    warmth: warmth::Warmth,
}

impl Compute {
    /// No GPU yet. A device that is slowed for a measurement repeats its work `slow` times; usually that is 1.
    pub fn new(platform: Platform, inputs: Inputs, options: GpuOptions, slow: u32) -> Rc<Self> {
        Rc::new(Self {
            platform,
            inputs,
            options,
            gpu: RefCell::default(),
            trouble: RefCell::default(),
            slot: RefCell::default(),
            self_test: RefCell::default(),
            measured: Cell::default(),
            tuning_recalled: Cell::default(),
            tuning_failures: Cell::default(),
            weights: Cell::default(),
            slow: slow.max(1),
            repetitions: Cell::default(),
            late: RefCell::default(),
            trial: RefCell::default(),
            warmth: warmth::Warmth::default(),
        })
    }

    /// Opens the GPU; without one this peer can still be a guest or a host that lends nothing.
    pub async fn open(&self) {
        let opening = std::pin::pin!(Gpu::open(self.options.clone()));
        let trouble = match select(opening, self.platform.clock.sleep(OPEN_PATIENCE)).await {
            Either::Left((Ok(gpu), _)) => {
                *self.gpu.borrow_mut() = Some(gpu);
                None
            }
            Either::Left((Err(error), _)) => Some(error.to_string()),
            Either::Right(_) => {
                Some("This device's GPU does not answer; restart the browser or the graphics driver.".to_owned())
            }
        };
        if let Some(trouble) = &trouble {
            log::warn!("no GPU: {trouble}");
        }
        *self.trouble.borrow_mut() = trouble;
    }

    /// What the adapter tells, for others to see.
    pub fn adapter(&self) -> String {
        self.gpu.borrow().as_ref().map(|gpu| adapter(gpu.capabilities())).unwrap_or_default()
    }

    /// What one binding shows, if there is a GPU.
    pub fn binding(&self) -> Option<Bytes> {
        self.gpu.borrow().as_ref().map(|gpu| binding_limit(&gpu.capabilities().limits))
    }

    /// The engine for a model. One that has it already is kept, with all its weights and whatever runs on it, if its context
    /// and its type of keys and values are the same; from now on it keeps to the new budget.
    ///
    /// # Errors
    /// There is no GPU, or it is too small.
    pub fn engine_for(
        self: &Rc<Self>,
        model: &Model,
        (context, state): (u32, KvCacheType),
        budget: Bytes,
    ) -> Result<(Engine, Rc<UnitMap>), LoadError> {
        if let Some(slot) = self.slot.borrow().as_ref()
            && (slot.model, slot.context, slot.state) == (model.card.id, context, state)
            && !slot.engine.lost()
        {
            slot.engine.set_budget(budget);
            return Ok((slot.engine.clone(), slot.units.clone()));
        }
        self.unload();
        let gpu = self.gpu.borrow().clone().ok_or_else(|| LoadError::NoGpu(self.no_gpu()))?;
        let this = Rc::downgrade(self);
        let on_result = move |computed: Computed| {
            if let Some(this) = this.upgrade() {
                this.computed(computed);
            }
        };
        let (spec, units) = (model.spec.clone(), model.units.clone());
        let engine = Engine::new(&gpu, spec, units.clone(), settings(budget, context, state), Box::new(on_result))?;
        let units = Rc::new(units);
        let slot = Slot { engine: engine.clone(), model: model.card.id, units: units.clone(), context, state };
        *self.slot.borrow_mut() = Some(slot);
        Ok((engine, units))
    }

    /// The GPU, for an engine of the caller's own. A room's engine needs its memory: only for a peer that has none.
    ///
    /// # Errors
    /// One sentence: there is no GPU, or a room uses it.
    pub fn gpu_for_bench(&self) -> Result<Gpu, String> {
        if self.slot.borrow().is_some() {
            return Err("This device works for a room; leave the room, or open the bench in a new tab.".to_owned());
        }
        self.gpu.borrow().clone().ok_or_else(|| self.no_gpu())
    }

    /// Why there is no GPU, in one sentence.
    pub fn no_gpu(&self) -> String {
        self.trouble.borrow().clone().unwrap_or_else(|| "This device's GPU is not open yet; try again.".to_owned())
    }

    fn computed(&self, mut computed: Computed) {
        if computed.outcome == Outcome::DeviceLost {
            self.inputs.send(Input::DeviceLost);
        }
        if computed.ticket.0 >= FIRST_REPETITION {
            return;
        }
        if computed.ticket.0 >= FIRST_TRIAL {
            if let Some(trial) = self.trial.borrow().as_ref() {
                // Whoever timed may have given up.
                let _ = trial.unbounded_send(computed);
            }
            return;
        }
        computed.millis += self.late.borrow_mut().remove(&computed.ticket).unwrap_or(0.0);
        self.inputs.event(Event::Computed(computed));
    }

    /// Submits work; what the engine refuses at once comes back as a failure, like the rest.
    pub fn submit(self: &Rc<Self>, work: Work) {
        let ticket = work.ticket;
        self.repeat(&work);
        let engine = self.slot.borrow().as_ref().map(|slot| slot.engine.clone());
        let submitted = match engine {
            Some(engine) => {
                let submitted = engine.submit(work);
                self.stay_warm();
                submitted
            }
            None => Err(EngineError::Lost),
        };
        if let Err(error) = submitted {
            let outcome = match error {
                EngineError::Lost => Outcome::DeviceLost,
                error => Outcome::Failed(error.to_string()),
            };
            self.inputs.event(Event::Computed(Computed { ticket, outcome, millis: 0.0 }));
        }
    }

    /// Runs work for nothing as often as this device is slowed; the work itself follows. Rows may be computed again at any
    /// time: their state is written anew.
    fn repeat(&self, work: &Work) {
        let engine = self.slot.borrow().as_ref().map(|slot| slot.engine.clone());
        if let Some(engine) = engine.filter(|_| self.slow > 1) {
            let late = self.repeat_on(&engine, &work.task);
            self.late.borrow_mut().insert(work.ticket, late);
        }
    }

    /// Milliseconds that it took to submit the repetitions: the work that follows began so much earlier.
    fn repeat_on(&self, engine: &Engine, task: &Task) -> f64 {
        if self.slow == 1 {
            return 0.0;
        }
        let started = self.platform.clock.now().0;
        for _ in 1..self.slow {
            let repetition = self.repetitions.get();
            self.repetitions.set(repetition + 1);
            let again = Work { ticket: Ticket(FIRST_REPETITION + repetition), task: task.clone() };
            // What is refused here is refused again with its own ticket.
            let _ = engine.submit(again);
        }
        self.platform.clock.now().0 - started
    }

    /// Frees a conversation's state.
    pub fn forget(&self, conversation: ConversationId) {
        if let Some(slot) = self.slot.borrow().as_ref() {
            slot.engine.forget(conversation);
        }
    }

    /// Weight bytes on the GPU.
    pub fn weights(&self) -> Bytes {
        self.weights.get()
    }

    /// A load has brought the weights to so many bytes.
    pub fn holds(&self, weights: Bytes) {
        self.weights.set(weights);
    }

    /// Frees everything on the GPU.
    pub fn unload(&self) {
        self.weights.set(Bytes::ZERO);
        if let Some(slot) = self.slot.borrow_mut().take() {
            slot.engine.destroy();
        }
    }

    /// True if the device was open and is gone, whether an engine uses it or not.
    pub fn lost(&self) -> bool {
        self.gpu.borrow().as_ref().is_some_and(Gpu::lost)
    }

    /// Drops the device and everything on it.
    pub fn close(&self) {
        self.end_warming();
        self.unload();
        self.gpu.borrow_mut().take();
        self.measured.set(None);
        self.tuning_recalled.set(false);
    }

    /// Opens the device again after [`Compute::close`], patiently: a driver that was reset needs a moment.
    pub async fn reopen(&self) {
        for attempt in 0..REOPEN_TRIES {
            // Only the last try's is told.
            self.trouble.borrow_mut().take();
            self.platform.clock.sleep(500.0 * f64::from(2u32.pow(attempt))).await;
            self.open().await;
            if self.gpu.borrow().is_some() {
                return;
            }
        }
    }

    /// Natively: waits a moment for the engine's oldest work and hands out results. True while something is under way.
    #[cfg(not(target_arch = "wasm32"))]
    pub fn poll(&self) -> bool {
        let engine = self.slot.borrow().as_ref().map(|slot| slot.engine.clone());
        engine.is_some_and(|engine| {
            engine.poll_for(PATIENCE);
            engine.pending() > 0
        })
    }

    /// Natively: waits until the engine has work, or a few milliseconds.
    #[cfg(not(target_arch = "wasm32"))]
    pub async fn busy(&self) {
        let idle = self.platform.clock.sleep(IDLE_MILLIS);
        let engine = self.slot.borrow().as_ref().map(|slot| slot.engine.clone());
        let Some(engine) = engine else { return idle.await };
        select(std::pin::pin!(engine.busy()), idle).await;
    }

    /// Tests the kernels again, those of the loaded model or of a small one.
    ///
    /// # Errors
    /// One sentence.
    pub async fn test_again(&self) -> Result<(), String> {
        let _testing = self.testing();
        let loaded = self.slot.borrow().as_ref().map(|slot| slot.engine.clone());
        let verdict = match loaded {
            Some(engine) => engine.self_test().await,
            None => {
                let gpu = self.gpu.borrow().clone().ok_or_else(|| self.no_gpu())?;
                let probe = probe(&gpu, |_| {})?;
                let verdict = match probe.prepare().await {
                    Ok(()) => probe.self_test().await,
                    Err(error) => Err(error),
                };
                probe.destroy();
                verdict
            }
        };
        self.tested(&verdict.map_err(|error| error.to_string())?);
        Ok(())
    }

    /// The kernels were tested here and may be used.
    pub fn is_tested(&self) -> bool {
        matches!(self.self_test.borrow().state, SelfTestState::Passed | SelfTestState::Replaced)
    }

    /// A self-test begins; if it has told nothing when the guard goes, none was run.
    pub fn testing(&self) -> Testing<'_> {
        *self.self_test.borrow_mut() = SelfTest { state: SelfTestState::Running, ..SelfTest::default() };
        Testing(&self.self_test)
    }

    /// A self-test ended.
    pub fn tested(&self, verdict: &Verdict) {
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
        *self.self_test.borrow_mut() = SelfTest { state, tested, replaced: wrong(true), failed: wrong(false) };
    }

    /// What the page shows of the device.
    pub fn report(&self) -> DeviceReport {
        let gpu = self.gpu.borrow();
        let self_test = self.self_test.borrow().clone();
        let bandwidth = self.measured.get().map_or(0.0, |measured| measured.bandwidth);
        let Some(gpu) = gpu.as_ref() else {
            return DeviceReport { self_test, trouble: self.trouble.borrow().clone(), ..DeviceReport::default() };
        };
        let capabilities = gpu.capabilities();
        let has = |feature: &str| {
            let same = |name: &String| name.replace('_', "-").eq_ignore_ascii_case(feature);
            capabilities.features.iter().any(same)
        };
        DeviceReport {
            webgpu: true,
            adapter: adapter(capabilities),
            shader_f16: has("shader-f16"),
            subgroups: capabilities.lanes.is_some() || has("subgroup") || has("subgroups"),
            max_binding: capabilities.limits.max_storage_buffer_binding_size,
            max_buffer: capabilities.limits.max_buffer_size,
            software: capabilities.kind == AdapterKind::Software,
            bandwidth,
            self_test,
            trouble: None,
        }
    }
}

/// A self-test that runs.
pub struct Testing<'a>(&'a RefCell<SelfTest>);

impl Drop for Testing<'_> {
    fn drop(&mut self) {
        let mut test = self.0.borrow_mut();
        if test.state == SelfTestState::Running {
            *test = SelfTest::default();
        }
    }
}

/// An engine for a small model without weights.
fn probe(gpu: &Gpu, on_result: impl Fn(Computed) + 'static) -> Result<Engine, String> {
    let sentence = |error: &dyn std::error::Error| error.to_string();
    let header = Synthetic::default().header().map_err(|error| sentence(&error))?;
    let model = join([header]).map_err(|error| sentence(&error))?;
    let (spec, units) = ModelSpec::from_gguf(&model).map_err(|error| sentence(&error))?;
    let engine = Engine::new(gpu, spec, units, settings(Bytes(u64::MAX), 64, KvCacheType::F32), Box::new(on_result));
    let engine = engine.map_err(|error| sentence(&error))?;
    engine.reserve(&BTreeSet::new()).map_err(|error| sentence(&error))?;
    Ok(engine)
}

/// Vendor and name in few words.
pub fn adapter(capabilities: &Capabilities) -> String {
    let (vendor, name) = (capabilities.vendor.trim(), capabilities.name.trim());
    match (vendor, name) {
        ("", "") => capabilities.backend.clone(),
        (vendor, "") => vendor.to_owned(),
        // Natively the vendor is a number, and many names begin with it.
        (vendor, name) if vendor.starts_with("0x") || name.to_lowercase().starts_with(&vendor.to_lowercase()) => {
            name.to_owned()
        }
        (vendor, name) => format!("{vendor} {name}").trim().to_owned(),
    }
}
