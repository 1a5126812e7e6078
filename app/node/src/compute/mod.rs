//! The GPU and the engine on it: opened once, and reopened when the device is lost.

mod calibrate;
mod keep_alive;
mod measure;
mod on_demand;
mod own_shadow;
mod report;
mod self_test;
mod shadows;
mod slow_down;
mod tuning;

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use futures::channel::mpsc::UnboundedSender;
use futures::future::{Either, select};
use potluck_engine::{Engine, EngineError, GiveWay, Gpu, GpuOptions, Settings, binding_limit};
use potluck_model::UnitMap;
use potluck_panel::SelfTest;
use potluck_plan::{Bytes, Computed, ConversationId, ModelId, Outcome, PooledExperts, Ticket, Work};
use potluck_swarm::Event;
use potluck_swarm::LoadRequest;

pub use calibrate::CalibrateError;
pub use measure::Measured;
pub use on_demand::{Calls, GuessOptions, ShadowOptions, ShadowSource};
pub use own_shadow::{NoShadow, OwnShadow, RoomMemory};
pub use report::adapter;
pub use self_test::Testing;

use self::keep_alive::KeepAlive;
use self::on_demand::OnDemandQueue;
pub use self::slow_down::Hesitation;
use self::slow_down::{FIRST_REPETITION, FIRST_TRIAL, SlowDown};
use self::tuning::TuningState;
use crate::backoff::Backoff;
use crate::events::Inputs;
use crate::loader::LoadError;
use crate::node::Input;
use crate::open::{Model, settings};
use crate::platform::Platform;

/// How long waiting for the GPU may block everything else on this thread.
#[cfg(not(target_arch = "wasm32"))]
const POLL_TIMEOUT: std::time::Duration = std::time::Duration::from_micros(500);
/// The same for a shadow, whose results nobody's answer waits for.
#[cfg(not(target_arch = "wasm32"))]
const SHADOW_POLL_TIMEOUT: std::time::Duration = std::time::Duration::from_micros(100);
/// How long an idle engine sleeps before it checks whether it was replaced.
#[cfg(not(target_arch = "wasm32"))]
const IDLE_MILLIS: f64 = 4.0;
/// How long opening the GPU may take, in milliseconds; everything else waits for it.
const OPEN_TIMEOUT: f64 = 20_000.0;
/// Seconds for which a measurement is valid: thirty days.
const MEASUREMENT_SECONDS: u64 = 30 * 86_400;
/// Attempts to reopen a lost device, and the waits before them: a driver that was reset needs a moment.
const REOPEN_ATTEMPTS: u32 = 4;
const REOPEN_BACKOFF: Backoff = Backoff::new(500.0, 4_000.0);

/// The engine of the model that the room uses.
struct ModelEngine {
    engine: Engine,
    model: ModelId,
    units: Rc<UnitMap>,
    settings: Settings,
}

/// The GPU of this peer.
pub struct Compute {
    platform: Platform,
    inputs: Inputs,
    options: GpuOptions,
    gpu: RefCell<Option<Gpu>>,
    /// Why there is no GPU.
    trouble: RefCell<Option<String>>,
    model_engine: RefCell<Option<ModelEngine>>,
    /// Runs work if experts come on demand.
    on_demand: RefCell<Option<OnDemandQueue>>,
    /// Number of the next part of work with experts on demand.
    next_part: Rc<Cell<u64>>,
    /// Weight bytes on the GPU.
    weight_bytes: Cell<Bytes>,
    self_test: RefCell<SelfTest>,
    measured: Cell<Option<Measured>>,
    tuning: TuningState,
    slow_down: Rc<SlowDown>,
    /// Receives the results of timed work.
    trial_results: RefCell<Option<UnboundedSender<Computed>>>,
    keep_alive: KeepAlive,
    /// Who guesses which experts come next.
    guesses: RefCell<GuessOptions>,
    /// The memory of a shadow made from the room's model.
    own_shadow: RefCell<Option<own_shadow::OwnShadow>>,
    /// A shadow model beside the engine, which has to be polled, too.
    shadow: RefCell<Option<shadows::RunningShadow>>,
    /// Hints want to know of the next tokens.
    foreseen_wanted: Cell<bool>,
}

impl Compute {
    /// No GPU yet. With `slow` above 1, for measurements, the GPU runs every piece of work that many times; with 0 it
    /// answers calls of experts with zeros. Outputs of experts wait besides as `hesitation` says.
    pub fn new(
        platform: Platform,
        inputs: Inputs,
        options: GpuOptions,
        (slow, hesitation): (u32, Option<Hesitation>),
        guesses: GuessOptions,
    ) -> Rc<Self> {
        Rc::new(Self {
            platform,
            inputs,
            options,
            gpu: RefCell::default(),
            trouble: RefCell::default(),
            model_engine: RefCell::default(),
            on_demand: RefCell::default(),
            next_part: Rc::default(),
            weight_bytes: Cell::default(),
            self_test: RefCell::default(),
            measured: Cell::default(),
            tuning: TuningState::default(),
            slow_down: Rc::new(SlowDown::new(slow, hesitation)),
            trial_results: RefCell::default(),
            keep_alive: KeepAlive::default(),
            guesses: RefCell::new(guesses),
            own_shadow: RefCell::default(),
            shadow: RefCell::default(),
            foreseen_wanted: Cell::default(),
        })
    }

    /// Opens the GPU. Without one this peer can still be a guest, or a host that contributes nothing.
    pub async fn open(&self) {
        let opening = std::pin::pin!(Gpu::open(self.options.clone()));
        let trouble = match select(opening, self.platform.clock.sleep(OPEN_TIMEOUT)).await {
            Either::Left((Ok(gpu), _)) => {
                *self.gpu.borrow_mut() = Some(gpu);
                None
            }
            Either::Left((Err(error), _)) => Some(error.to_string()),
            Either::Right(_) => {
                Some("This device's GPU does not answer. Restart the browser or the graphics driver.".to_owned())
            }
        };
        if let Some(trouble) = &trouble {
            log::warn!("no GPU: {trouble}");
        }
        *self.trouble.borrow_mut() = trouble;
    }

    /// Drops the device and everything on it.
    pub fn close(&self) {
        self.stop_keep_alive();
        self.unload();
        self.gpu.borrow_mut().take();
        self.measured.set(None);
        self.tuning.forget();
    }

    /// Opens the device again after [`Compute::close`], with several attempts.
    pub async fn reopen(&self) {
        for attempt in 1..=REOPEN_ATTEMPTS {
            // Only the last attempt's trouble is shown.
            self.trouble.borrow_mut().take();
            self.platform.clock.sleep(REOPEN_BACKOFF.wait(attempt)).await;
            self.open().await;
            if self.gpu.borrow().is_some() {
                return;
            }
        }
    }

    /// True if the device was open and is lost, whether or not an engine uses it.
    pub fn lost(&self) -> bool {
        self.gpu.borrow().as_ref().is_some_and(Gpu::lost)
    }

    /// The adapter's name, for others to see.
    pub fn adapter(&self) -> String {
        self.gpu.borrow().as_ref().map(|gpu| adapter(gpu.capabilities())).unwrap_or_default()
    }

    /// The largest storage buffer binding, if there is a GPU.
    pub fn binding(&self) -> Option<Bytes> {
        self.gpu.borrow().as_ref().map(|gpu| binding_limit(&gpu.capabilities().limits))
    }

    /// Why there is no GPU, in one sentence.
    pub fn no_gpu(&self) -> String {
        self.trouble.borrow().clone().unwrap_or_else(|| "This device's GPU is not open yet. Try again.".to_owned())
    }

    /// The GPU, for an engine of the caller's own. A room's engine needs all of its memory, so there must be none.
    ///
    /// # Errors
    /// A sentence: there is no GPU, or a room uses it.
    pub fn gpu_for_bench(&self) -> Result<Gpu, String> {
        if self.model_engine.borrow().is_some() {
            return Err("This device works for a room. Leave the room, or open the bench in a new tab.".to_owned());
        }
        self.gpu.borrow().clone().ok_or_else(|| self.no_gpu())
    }

    /// The engine for a model. If one exists with the same context and KV cache type, it is kept with its weights and its work
    /// under way, and gets the new budget.
    ///
    /// # Errors
    /// There is no GPU, or it is too small.
    pub fn engine_for(
        self: &Rc<Self>,
        model: &Model,
        request: &LoadRequest,
    ) -> Result<(Engine, Rc<UnitMap>), LoadError> {
        let &LoadRequest { context, kv_cache, arithmetic, budget, .. } = request;
        let eviction = self.guesses.borrow().eviction;
        let settings = Settings { arithmetic, eviction, ..settings(budget, context, kv_cache) };
        if let Some(existing) = self.model_engine.borrow().as_ref()
            && existing.model == model.card.id
            && existing.settings == (Settings { budget: existing.settings.budget, ..settings.clone() })
            && !existing.engine.lost()
        {
            existing.engine.set_budget(settings.budget);
            return Ok((existing.engine.clone(), existing.units.clone()));
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
        let engine = Engine::new(&gpu, spec, units.clone(), settings.clone(), Box::new(on_result))?;
        engine.set_give_way(self.give_way());
        let units = Rc::new(units);
        *self.model_engine.borrow_mut() =
            Some(ModelEngine { engine: engine.clone(), model: model.card.id, units: units.clone(), settings });
        Ok((engine, units))
    }

    /// Lets what else this thread has to do run: messages, ticks, results.
    fn give_way(&self) -> GiveWay {
        #[cfg(not(target_arch = "wasm32"))]
        return Box::new(|| Box::pin(tokio::task::yield_now()));
        #[cfg(target_arch = "wasm32")]
        {
            let clock = self.platform.clock.clone();
            Box::new(move || clock.sleep(0.0))
        }
    }

    /// Frees everything on the GPU.
    pub fn unload(&self) {
        self.end_on_demand(&PooledExperts::default());
        self.end_shadow();
        self.weight_bytes.set(Bytes::ZERO);
        if let Some(loaded) = self.model_engine.borrow_mut().take() {
            loaded.engine.destroy();
        }
    }

    /// Weight bytes on the GPU.
    pub fn weight_bytes(&self) -> Bytes {
        self.weight_bytes.get()
    }

    /// A load has ended with this many weight bytes on the GPU.
    pub fn set_weight_bytes(&self, bytes: Bytes) {
        self.weight_bytes.set(bytes);
    }

    /// Submits work. What the engine refuses comes back as a failed result.
    pub fn submit(self: &Rc<Self>, work: Work) {
        let ticket = work.ticket;
        self.slow_down.note(&work);
        if let Some(outcome) = self.slow_down.empty(&work.task) {
            return self.deliver(Computed { ticket, outcome, millis: 0.0 });
        }
        self.tell_shadow(&work);
        if let Some(on_demand) = self.on_demand.borrow().as_ref() {
            if !on_demand.submit(work) {
                self.deliver(Computed { ticket, outcome: Outcome::DeviceLost, millis: 0.0 });
            }
            return self.extend_keep_alive();
        }
        let submitted = match self.engine() {
            Some(engine) => {
                self.slow_down.repeat(&engine, &work, self.platform.clock.as_ref());
                let submitted = engine.submit(work);
                self.extend_keep_alive();
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

    /// Drops work that has not begun: nobody waits for its result.
    pub fn cancel(&self, ticket: Ticket) {
        if let Some(on_demand) = self.on_demand.borrow().as_ref() {
            return on_demand.cancel(ticket);
        }
        if let Some(engine) = self.engine() {
            engine.cancel(ticket);
        }
    }

    fn computed(&self, computed: Computed) {
        if let Some(computed) = self.without_parts(computed) {
            self.deliver(computed);
        }
    }

    fn deliver(&self, mut computed: Computed) {
        if computed.outcome == Outcome::DeviceLost {
            self.inputs.send(Input::DeviceLost);
        }
        if computed.ticket.0 >= FIRST_REPETITION {
            return;
        }
        if computed.ticket.0 >= FIRST_TRIAL {
            if let Some(results) = self.trial_results.borrow().as_ref() {
                // Fails if the trial was given up.
                let _ = results.unbounded_send(computed);
            }
            return;
        }
        computed.millis += self.slow_down.take_head_start(computed.ticket);
        let inputs = self.inputs.clone();
        match self.slow_down.take_wait(computed.ticket) {
            None => inputs.event(Event::Computed(computed)),
            Some(wait) => self.platform.spawn.spawn(Box::pin(async move {
                wait.await;
                inputs.event(Event::Computed(computed));
            })),
        }
    }

    /// Frees a conversation's KV cache.
    pub fn forget(&self, conversation: ConversationId) {
        if let Some(on_demand) = self.on_demand.borrow().as_ref() {
            return on_demand.forget(conversation);
        }
        if let Some(loaded) = self.model_engine.borrow().as_ref() {
            loaded.engine.forget(conversation);
        }
    }

    /// Native only: waits a moment for the engine's oldest work and delivers results. True while work is under way.
    #[cfg(not(target_arch = "wasm32"))]
    pub fn poll(&self) -> bool {
        let shadow = self.shadow_engine();
        let base = self.engine().is_some_and(|engine| {
            engine.poll_for(POLL_TIMEOUT);
            engine.pending() > 0
        });
        shadow.is_some_and(|shadow| {
            shadow.poll_for(SHADOW_POLL_TIMEOUT);
            shadow.pending() > 0
        }) || base
    }

    /// Native only: waits until the engine has work, or a few milliseconds.
    #[cfg(not(target_arch = "wasm32"))]
    pub async fn busy(&self) {
        let idle = self.platform.clock.sleep(IDLE_MILLIS);
        let Some(engine) = self.engine() else { return idle.await };
        let shadow = self.shadow_engine();
        let shadow_busy = async {
            match shadow {
                Some(shadow) => shadow.busy().await,
                None => std::future::pending().await,
            }
        };
        let (busy, shadow_busy) = (std::pin::pin!(engine.busy()), std::pin::pin!(shadow_busy));
        select(select(busy, shadow_busy), idle).await;
    }

    #[cfg(not(target_arch = "wasm32"))]
    fn shadow_engine(&self) -> Option<Engine> {
        self.shadow.borrow().as_ref().map(|running| running.engine().clone())
    }

    fn engine(&self) -> Option<Engine> {
        self.model_engine.borrow().as_ref().map(|loaded| loaded.engine.clone())
    }
}
