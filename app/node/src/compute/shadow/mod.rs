//! The shadow model beside this device's engine: loaded once, told what its base computes, and gone with it. It guesses for the
//! experts of this device (`on_demand`), or for those that its stage calls on others, and the tokens that it expects are
//! drafts of its host's answers ([`Event::Foreseen`]).

mod base_work;
mod engine;
mod following;
mod model;
mod options;
mod own;
mod running;

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use futures::future::{AbortHandle, Abortable};
use potluck_engine::{EngineError, Settings};
#[cfg(not(target_arch = "wasm32"))]
use potluck_gguf::Metadata;
#[cfg(not(target_arch = "wasm32"))]
use potluck_model::ModelSpec;
use potluck_panel::ShadowReport;
use potluck_plan::{Bytes, Ticket, Work};
use potluck_predict::{Published, ShadowWord};

pub(super) use self::model::Shadow;
use self::model::{Listener, ShadowModel};
pub use self::options::{ShadowOptions, ShadowSource};
pub use self::own::{NoShadow, OwnShadow, RoomMemory};
use self::running::{Hearer, RunningShadow, UnfinishedShadow, finish};
use super::device::Device;
use super::event::Event;
use super::room_engine::{ModelEngine, RoomEngine, give_way};
use crate::events::EventSink;
use crate::loader::{Load, LoadError};
#[cfg(not(target_arch = "wasm32"))]
use crate::native::{ModelFile, check_shadow, load_unit};
use crate::open::Model;
use crate::platform::Platform;

/// The shadow of this device's engine, if it has one.
pub struct Shadows {
    platform: Platform,
    device: Rc<Device>,
    room: Rc<RoomEngine>,
    events: EventSink<Event>,
    /// Which shadow is wanted.
    options: RefCell<Option<ShadowOptions>>,
    /// The memory of a shadow made from the room's model.
    own: RefCell<Option<OwnShadow>>,
    running: RefCell<Option<RunningShadow>>,
    /// Hints want to know of the next tokens.
    foreseen_wanted: Cell<bool>,
}

impl Shadows {
    pub(super) fn new(platform: Platform, device: Rc<Device>, room: Rc<RoomEngine>, events: EventSink<Event>) -> Self {
        let (options, own, running, foreseen_wanted) = Default::default();
        Self { platform, device, room, events, options, own, running, foreseen_wanted }
    }

    /// Whether the shadow's file of the options, if there is one, belongs to this model.
    ///
    /// # Errors
    /// A sentence: it cannot be read, or is of another model.
    #[cfg(not(target_arch = "wasm32"))]
    pub fn check_file(&self, name: &str, metadata: &Metadata, spec: &ModelSpec) -> Result<(), String> {
        let options = self.options.borrow().clone();
        let Some(ShadowSource::File(file)) = options.map(|options| options.source) else { return Ok(()) };
        let shadow = ModelFile::open(&file).map_err(|error| error.to_string())?;
        check_shadow((name, metadata, spec), &shadow).map_err(|error| error.to_string())
    }

    /// Which shadow is wanted from the next load on.
    pub(super) fn set_options(&self, options: Option<ShadowOptions>) {
        self.options.replace(options);
    }

    /// Makes room for a shadow made from the room's model: returns what it takes of what this device lends.
    ///
    /// # Errors
    /// Why there is none. One that was there ends.
    pub fn plan_own(&self, model: &Model, options: &ShadowOptions, room: RoomMemory) -> Result<Bytes, NoShadow> {
        let gpu = self.device.gpu().ok_or_else(|| NoShadow::Failed(self.device.no_gpu()));
        let planned = gpu.and_then(|gpu| OwnShadow::plan(model, options, gpu.capabilities(), room));
        let bytes = planned.as_ref().map(OwnShadow::bytes).map_err(Clone::clone);
        match planned {
            Ok(planned) => drop(self.own.replace(Some(planned))),
            Err(_) => self.forget_own(),
        }
        bytes
    }

    /// No shadow is made from the room's model any more.
    pub fn forget_own(&self) {
        if self.own.take().is_some() {
            self.end();
        }
    }

    /// The shadow of the options, beside the room's engine; reserved if it is not there yet. `load` reads its base.
    ///
    /// # Errors
    /// A sentence: it cannot be read, or does not fit.
    async fn start(self: &Rc<Self>, hearer: Hearer, load: Load) -> Result<Rc<Shadow>, String> {
        let for_hints = matches!(hearer, Hearer::Hints);
        let listener: Listener = match &hearer {
            Hearer::Hints => {
                let events = self.events.clone();
                Rc::new(move |conversation, word| events.send(Event::Foreseen(conversation, word)))
            }
            Hearer::Own(published) => {
                let (hears, events) = (published.clone(), self.events.clone());
                Rc::new(move |conversation, word| {
                    // The tokens that it expects are drafts. What they use only this device's guesses want to know.
                    if !matches!(word, ShadowWord::Chose(..)) {
                        events.send(Event::Foreseen(conversation, word.clone()));
                    }
                    hears.hear(word);
                })
            }
        };
        if let Some(running) = self.running.borrow().as_ref() {
            running.shadow.set_listener(listener);
            running.shadow.overtakes.set(for_hints);
            running.hearer.replace(hearer);
            return Ok(running.shadow.clone());
        }
        let (shadow, making) = self.new_shadow(listener, load).await?;
        shadow.engine().set_give_way(give_way(&self.platform));
        shadow.overtakes.set(for_hints);
        let shadow = Rc::new(shadow);
        log::info!("The shadow takes {} of GPU memory for its weights.", Bytes(shadow.bytes()));
        let (task, registration) = AbortHandle::new_pair();
        let (shadows, follows) = (Rc::downgrade(self), shadow.clone());
        self.platform.spawn.spawn(Box::pin(async move {
            let run = async move {
                match finish(&follows, making).await {
                    Ok(()) => follows.follow().await,
                    // It ends this task, too.
                    Err(error) => shadows.upgrade().into_iter().for_each(|shadows| shadows.lose(&error)),
                }
            };
            // Whoever ends it needs no answer.
            let _ = Abortable::new(run, registration).await;
        }));
        let running = RunningShadow { shadow: shadow.clone(), hearer: RefCell::new(hearer), task };
        self.running.replace(Some(running));
        Ok(shadow)
    }

    async fn new_shadow(&self, listener: Listener, load: Load) -> Result<(Shadow, Option<UnfinishedShadow>), String> {
        let options = self.options.borrow().clone().ok_or("no shadow was asked for")?;
        let gpu = self.device.gpu().ok_or_else(|| self.device.no_gpu())?;
        let ModelEngine { engine: base, settings: of_base, .. } = self.room.get().ok_or("there is no model yet")?;
        match &options.source {
            #[cfg(not(target_arch = "wasm32"))]
            ShadowSource::File(file) => {
                let file = ModelFile::open(file).map_err(|error| error.to_string())?;
                let (spec, units) = file.spec().map_err(|error| error.to_string())?;
                // Beside what is lent to the room.
                let settings = Settings { budget: Bytes(u64::MAX), ..of_base };
                let model = ShadowModel { spec, units: units.clone(), settings };
                let shadow = Shadow::new(&gpu, model, &options, &base, listener)?;
                for unit in shadow.engine().missing() {
                    load_unit(shadow.engine(), &file, &units, unit).map_err(|error| error.to_string())?;
                    tokio::task::yield_now().await;
                }
                shadow.engine().close_staging();
                Ok((shadow, None))
            }
            ShadowSource::Own(_) => {
                let own = self.own.borrow().clone().ok_or("there is no memory for it")?;
                let settings = match options.alignment.kv {
                    // What it takes over has to be stored alike.
                    Some(_) => Settings { kv_cache: of_base.kv_cache, ..own.settings.clone() },
                    None => own.settings.clone(),
                };
                let model = ShadowModel { spec: own.spec.clone(), units: own.units.clone(), settings };
                let shadow = Shadow::new(&gpu, model, &options, &base, listener)?;
                Ok((shadow, Some(UnfinishedShadow { load, own })))
            }
        }
    }

    /// The shadow failed. Its memory is free, and answers go on.
    fn lose(&self, error: &LoadError) {
        self.end();
        self.events.send(match error {
            // It is made again when the GPU is back.
            LoadError::Engine(EngineError::Lost) => Event::DeviceLost,
            error => Event::ShadowFailed(error.to_string()),
        });
    }

    /// From now on the shadow of the options, if there is one, speaks of experts that this device's stage calls on others.
    ///
    /// # Errors
    /// A sentence: it cannot be read, or does not fit.
    pub async fn start_for_hints(self: &Rc<Self>, load: Load) -> Result<(), String> {
        if !self.is_wanted() {
            return Ok(());
        }
        self.start(Hearer::Hints, load).await.map(drop)
    }

    /// A shadow for experts of this device, and where it publishes what it chooses.
    pub(super) async fn start_for_own(self: &Rc<Self>, load: Load) -> Option<(Rc<Shadow>, Published)> {
        // Guesses that hear it already go on if the pool stays.
        let heard = self.running.borrow().as_ref().and_then(RunningShadow::published);
        let published = heard.unwrap_or_default();
        let loaded = self.start(Hearer::Own(published.clone()), load).await;
        let shadow = loaded.map_err(|sentence| self.events.send(Event::ShadowFailed(sentence))).ok()?;
        Some((shadow, published))
    }

    /// A shadow was asked for, and there is memory for it.
    pub(super) fn is_wanted(&self) -> bool {
        match self.options.borrow().as_ref().map(|options| &options.source) {
            None => false,
            Some(ShadowSource::Own(_)) => self.own.borrow().is_some(),
            #[cfg(not(target_arch = "wasm32"))]
            Some(ShadowSource::File(_)) => true,
        }
    }

    /// The shadow made from the room's model, once it is being made.
    pub fn report(&self) -> Option<ShadowReport> {
        let bytes = self.own.borrow().as_ref()?.bytes();
        let ready = self.running.borrow().as_ref()?.shadow.is_ready();
        Some(ShadowReport { bytes: bytes.0, ready })
    }

    /// Nobody wants a shadow any more.
    pub fn end(&self) {
        drop(self.running.take());
    }

    /// Its engine has to be polled.
    #[cfg(not(target_arch = "wasm32"))]
    pub(super) fn engine(&self) -> Option<potluck_engine::Engine> {
        self.running.borrow().as_ref().map(|running| running.engine().clone())
    }

    /// Whether hints want to know of the next tokens.
    pub fn foresee(&self, wanted: bool) {
        self.foreseen_wanted.set(wanted);
    }

    /// The stage's engine begins with work.
    pub(super) fn tell(&self, work: &Work) {
        if let Some(running) = self.running.borrow().as_ref().filter(|running| running.published().is_none())
            && work.ticket < Ticket::FIRST_CHECK
        {
            running.shadow.tell(&work.task, self.foreseen_wanted.get());
        }
    }
}
