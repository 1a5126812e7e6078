//! The GPU and the engine on it. [`Compute`] is where work enters and results come out; each part of it owns its state:
//!
//! - [`Device`]: the GPU, opened once, and reopened when it is lost. `room_engine`: the engine of the room's model on it.
//! - [`KernelTuning`], [`SelfTests`], [`Measurement`], `calibrate`: which kernels are fast, whether they are right, and what the device
//!   can do. [`KeepAlive`] keeps it busy between tokens.
//! - `on_demand`: experts that are loaded when a router has chosen them. [`Shadows`]: a smaller copy of the model that guesses which.

mod calibrate;
mod device;
mod event;
mod keep_alive;
mod measure;
mod on_demand;
#[cfg(not(target_arch = "wasm32"))]
mod poller;
mod report;
mod room_engine;
mod self_test;
mod shadow;
mod tuning;

use std::cell::{Cell, RefCell};
use std::rc::{Rc, Weak};

use potluck_engine::{Engine, EngineError, Gpu, GpuOptions, Settings};
use potluck_model::UnitMap;
use potluck_panel::DeviceReport;
use potluck_plan::{Bytes, Computed, ConversationId, Outcome, PooledExperts, Ticket, Work};
use potluck_protocol::CalibrationRuns;
use potluck_swarm::LoadRequest;

pub use self::calibrate::CalibrateError;
use self::calibrate::Calibrator;
pub use self::device::{Device, adapter};
pub use self::event::Event;
pub use self::keep_alive::KeepAlive;
pub use self::measure::{Measured, Measurement};
pub use self::on_demand::{Calls, GuessOptions, OnDemand, OnDemandGuesses, SharedPool};
#[cfg(not(target_arch = "wasm32"))]
pub use self::poller::Poller;
use self::room_engine::{ModelEngine, RoomEngine, give_way};
pub use self::self_test::{SelfTests, Testing};
pub use self::shadow::{NoShadow, OwnShadow, RoomMemory, ShadowOptions, ShadowSource, Shadows};
pub use self::tuning::KernelTuning;
use crate::events::EventSink;
use crate::loader::{ExpertLoader, Load, LoadError};
use crate::open::{Model, settings};
use crate::platform::{Platform, WorkPath};

/// Tickets from here on are timed; no plan of a room has tickets this large.
const FIRST_TRIAL: u64 = 1 << 62;
const _: () = assert!(Ticket::FIRST_CHECK.0 < FIRST_TRIAL);

/// The GPU of this peer, and the work on it.
pub struct Compute {
    platform: Platform,
    events: EventSink<Event>,
    /// The GPU.
    pub device: Rc<Device>,
    /// Which kernels are fast.
    pub tuning: Rc<KernelTuning>,
    /// Whether kernels compute what they should.
    pub self_tests: SelfTests,
    /// What the device can do.
    pub measurement: Measurement,
    /// Keeps the GPU busy between tokens.
    pub keep_alive: Rc<KeepAlive>,
    /// The shadow beside the room's engine.
    pub shadows: Rc<Shadows>,
    /// Experts that come on demand.
    pub on_demand: OnDemand,
    /// Has to run while the engines have work.
    #[cfg(not(target_arch = "wasm32"))]
    pub poller: Poller,
    calibrator: Calibrator,
    room: Rc<RoomEngine>,
    /// Weight bytes on the GPU.
    weight_bytes: Cell<Bytes>,
    /// The way of the room's work to the queues below, and of its results.
    path: WorkPath,
    /// Who guesses which experts come next.
    guesses: RefCell<GuessOptions>,
}

impl Compute {
    /// No GPU yet.
    pub fn new(platform: Platform, events: EventSink<Event>, options: GpuOptions, guesses: GuessOptions) -> Rc<Self> {
        let (device, room) = (Rc::new(Device::new(platform.clone(), options)), Rc::<RoomEngine>::default());
        let tuning = Rc::new(KernelTuning::new(platform.clone(), device.clone()));
        let keep_alive = Rc::new(KeepAlive::new(platform.clone(), device.clone(), room.clone()));
        let measurement = Measurement::new(platform.clone(), device.clone(), tuning.clone());
        let calibrator = Calibrator::new(platform.clone(), keep_alive.clone(), room.clone());
        let shadows = Rc::new(Shadows::new(platform.clone(), device.clone(), room.clone(), events.clone()));
        shadows.set_options(guesses.shadow.clone());
        let on_demand = OnDemand::new(platform.clone());
        #[cfg(not(target_arch = "wasm32"))]
        let poller = Poller { clock: platform.clock.clone(), room: room.clone(), shadows: shadows.clone() };
        Rc::new_cyclic(|this| Self {
            path: path(&platform, this.clone(), events.clone()),
            platform,
            events,
            device,
            tuning,
            self_tests: SelfTests::default(),
            measurement,
            keep_alive,
            shadows,
            on_demand,
            #[cfg(not(target_arch = "wasm32"))]
            poller,
            calibrator,
            room,
            weight_bytes: Cell::default(),
            guesses: RefCell::new(guesses),
        })
    }

    /// Drops the device and everything on it.
    pub fn close(&self) {
        self.keep_alive.stop();
        self.unload();
        self.device.close();
        self.measurement.forget();
        self.tuning.forget();
    }

    /// What the page shows of the device.
    pub fn report(&self) -> DeviceReport {
        report::report(&self.device, self.measurement.known(), self.self_tests.report())
    }

    /// Tests the kernels again: those of the loaded model, or of a small one.
    ///
    /// # Errors
    /// A sentence: there is no GPU, or the test could not run.
    pub async fn test_again(&self) -> Result<(), String> {
        self.self_tests.run_again(&self.device, self.room.engine()).await
    }

    /// Times of two ranges of the model's blocks, stored for each adapter, build and model. Uses at most `budget` bytes.
    /// `early` receives what is known before pauses are timed, which takes longer than others should wait.
    ///
    /// # Errors
    /// [`CalibrateError`]; the planner then uses what the device declares.
    pub async fn calibrate(
        &self,
        model: &Model,
        budget: Bytes,
        early: &dyn Fn(CalibrationRuns),
    ) -> Result<CalibrationRuns, CalibrateError> {
        let has_slots = || self.on_demand.is_active();
        self.calibrator.calibrate(model, budget, &has_slots, early).await
    }

    /// The GPU, for an engine of the caller's own. A room's engine needs all of its memory, so there must be none.
    ///
    /// # Errors
    /// A sentence: there is no GPU, or a room uses it.
    pub fn gpu_for_bench(&self) -> Result<Gpu, String> {
        if self.room.is_some() {
            return Err("This device works for a room. Leave the room before you measure.".to_owned());
        }
        self.device.gpu().ok_or_else(|| self.device.no_gpu())
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
        if let Some(kept) = self.room.keep(model.card.id, &settings) {
            return Ok(kept);
        }
        self.unload();
        let gpu = self.device.gpu().ok_or_else(|| LoadError::NoGpu(self.device.no_gpu()))?;
        let this = Rc::downgrade(self);
        let on_result = move |computed: Computed| {
            if let Some(this) = this.upgrade() {
                this.computed(computed);
            }
        };
        let (spec, units) = (model.spec.clone(), model.units.clone());
        let on_result = self.platform.compute.results(Box::new(on_result));
        let engine = Engine::new(&gpu, spec, units.clone(), settings.clone(), on_result)?;
        engine.set_give_way(give_way(&self.platform));
        let units = Rc::new(units);
        self.room.set(ModelEngine { engine: engine.clone(), model: model.card.id, units: units.clone(), settings });
        Ok((engine, units))
    }

    /// Frees everything on the GPU.
    pub fn unload(&self) {
        self.on_demand.end(&PooledExperts::default());
        self.shadows.end();
        self.weight_bytes.set(Bytes::ZERO);
        self.room.destroy();
    }

    /// Weight bytes on the GPU.
    pub fn weight_bytes(&self) -> Bytes {
        self.weight_bytes.get()
    }

    /// A load has ended with this many weight bytes on the GPU.
    pub fn set_weight_bytes(&self, bytes: Bytes) {
        self.weight_bytes.set(bytes);
    }

    /// Who guesses from the next load on.
    pub fn set_guesses(&self, options: GuessOptions) {
        self.shadows.set_options(options.shadow.clone());
        self.guesses.replace(options);
    }

    /// Guesses for experts of a model in this pool; `None` if nobody guesses, or if what the predictor needs cannot be read. `load`
    /// reads the model.
    pub async fn guesses(&self, model: &Model, pool: &PooledExperts, load: Load) -> Option<OnDemandGuesses> {
        let options = self.guesses.borrow().clone();
        options.start(&self.shadows, model, pool, load).await
    }

    /// From now on experts of the pool come on demand; of none if it has no blocks.
    pub fn set_on_demand(self: &Rc<Self>, loader: ExpertLoader, pool: SharedPool, calls: Calls) {
        let this = Rc::downgrade(self);
        let deliver: Rc<dyn Fn(Computed)> = Rc::new(move |computed| {
            if let Some(this) = this.upgrade() {
                this.deliver(computed);
            }
        });
        self.on_demand.set(loader, pool, calls, deliver);
    }

    /// Submits work. What the engine refuses comes back as a failed result.
    pub fn submit(&self, work: Work) {
        (self.path.submit)(work);
    }

    /// Work has come to where it waits for the engine.
    fn accept(&self, work: Work) {
        let ticket = work.ticket;
        self.shadows.tell(&work);
        let Some(work) = self.on_demand.submit(work) else { return self.keep_alive.extend() };
        let submitted = match self.room.engine() {
            Some(engine) => {
                let submitted = self.platform.compute.submit(&engine, work);
                self.keep_alive.extend();
                submitted
            }
            None => Err(EngineError::Lost),
        };
        if let Err(error) = submitted {
            let outcome = match error {
                EngineError::Lost => Outcome::DeviceLost,
                error => Outcome::Failed(error.to_string()),
            };
            (self.path.results)(Computed { ticket, outcome, millis: 0.0 });
        }
    }

    /// Drops work that has not begun: nobody waits for its result.
    pub fn cancel(&self, ticket: Ticket) {
        if self.on_demand.cancel(ticket) {
            return;
        }
        if let Some(engine) = self.room.engine() {
            engine.cancel(ticket);
        }
    }

    fn computed(&self, computed: Computed) {
        if let Some(computed) = self.on_demand.without_parts(computed) {
            self.deliver(computed);
        }
    }

    fn deliver(&self, computed: Computed) {
        if computed.outcome == Outcome::DeviceLost {
            self.events.send(Event::DeviceLost);
        }
        if computed.ticket.0 >= FIRST_TRIAL {
            return self.calibrator.deliver(computed);
        }
        (self.path.results)(computed);
    }

    /// Frees a conversation's KV cache.
    pub fn forget(&self, conversation: ConversationId) {
        if self.on_demand.forget(conversation) {
            return;
        }
        if let Some(engine) = self.room.engine() {
            engine.forget(conversation);
        }
    }
}

impl Drop for Compute {
    fn drop(&mut self) {
        self.keep_alive.stop();
    }
}

/// The way of a room's work to a device, and of its results to the node.
fn path(platform: &Platform, compute: Weak<Compute>, events: EventSink<Event>) -> WorkPath {
    let submit = Rc::new(move |work| {
        if let Some(compute) = compute.upgrade() {
            compute.accept(work);
        }
    });
    let results = Rc::new(move |computed| events.send(Event::Computed(computed)));
    platform.compute.room(WorkPath { submit, results })
}
