//! The shadow model beside this device's engine: loaded once, told what its base computes, and gone with it. It guesses for the
//! experts of this device (`on_demand`), or for those that its stage calls on others, and the tokens that it expects are
//! drafts of its host's answers (`Event::Foreseen`).

use std::cell::RefCell;
use std::rc::Rc;

use futures::future::{AbortHandle, Abortable};
use potluck_engine::{Engine, EngineError, Settings};
#[cfg(not(target_arch = "wasm32"))]
use potluck_gguf::Metadata;
#[cfg(not(target_arch = "wasm32"))]
use potluck_model::ModelSpec;
use potluck_panel::ShadowReport;
use potluck_plan::{Bytes, Work};
use potluck_predict::{Published, ShadowWord};
use potluck_swarm::Event;

use super::Compute;
use super::on_demand::{GuessOptions, Listener, Shadow, ShadowOptions, ShadowSource};
use super::own_shadow::{NoShadow, OwnShadow, RoomMemory};
use super::slow_down::FIRST_TRIAL;
use crate::loader::{Load, LoadError};
#[cfg(not(target_arch = "wasm32"))]
use crate::native::study::{ModelFile, check_shadow, load_unit};
use crate::node::Input;
use crate::open::Model;

/// Who hears a shadow.
#[derive(Clone)]
pub(super) enum Hearer {
    /// Hints to others, which hold the experts.
    Hints,
    /// Guesses of this device: they read what is published here.
    Own(Published),
}

/// A shadow that follows its base. Dropping this ends it.
pub(super) struct RunningShadow {
    shadow: Rc<Shadow>,
    /// Who hears it.
    hearer: RefCell<Hearer>,
    task: AbortHandle,
}

/// What a shadow is still to be made from, while its base answers.
struct Making {
    /// Reads its base.
    load: Load,
    own: OwnShadow,
}

impl RunningShadow {
    /// Where it is heard, if this device's own guesses read that.
    pub fn published(&self) -> Option<Published> {
        match &*self.hearer.borrow() {
            Hearer::Own(published) => Some(published.clone()),
            Hearer::Hints => None,
        }
    }

    pub fn engine(&self) -> &Engine {
        self.shadow.engine()
    }
}

impl Drop for RunningShadow {
    fn drop(&mut self) {
        self.task.abort();
        // Guesses may hold it for longer than its memory is wanted.
        self.engine().destroy();
    }
}

impl Compute {
    /// Whether the shadow's file of the options, if there is one, belongs to this model.
    ///
    /// # Errors
    /// A sentence: it cannot be read, or is of another model.
    #[cfg(not(target_arch = "wasm32"))]
    pub fn check_shadow(&self, name: &str, metadata: &Metadata, spec: &ModelSpec) -> Result<(), String> {
        let options = self.guesses.borrow().shadow.clone();
        let Some(ShadowSource::File(file)) = options.map(|options| options.source) else { return Ok(()) };
        let shadow = ModelFile::open(&file).map_err(|error| error.to_string())?;
        check_shadow((name, metadata, spec), &shadow).map_err(|error| error.to_string())
    }

    /// Who guesses from the next load on.
    pub fn set_guesses(&self, options: GuessOptions) {
        self.guesses.replace(options);
    }

    /// Makes room for a shadow made from the room's model: returns what it takes of what this device lends.
    ///
    /// # Errors
    /// Why there is none. One that was there ends.
    pub fn plan_own_shadow(&self, model: &Model, options: &ShadowOptions, room: RoomMemory) -> Result<Bytes, NoShadow> {
        let gpu = self.gpu.borrow().clone();
        let gpu = gpu.ok_or_else(|| NoShadow::Failed(self.no_gpu()));
        let planned = gpu.and_then(|gpu| OwnShadow::plan(model, options, gpu.capabilities(), room));
        let bytes = planned.as_ref().map(OwnShadow::bytes).map_err(Clone::clone);
        match planned {
            Ok(planned) => drop(self.own_shadow.replace(Some(planned))),
            Err(_) => self.forget_own_shadow(),
        }
        bytes
    }

    /// No shadow is made from the room's model any more.
    pub fn forget_own_shadow(&self) {
        if self.own_shadow.take().is_some() {
            self.end_shadow();
        }
    }

    /// The shadow of the options, beside the room's engine; reserved if it is not there yet. `load` reads its base.
    ///
    /// # Errors
    /// A sentence: it cannot be read, or does not fit.
    pub(super) async fn shadow(self: &Rc<Self>, hearer: Hearer, load: Load) -> Result<Rc<Shadow>, String> {
        let for_hints = matches!(hearer, Hearer::Hints);
        let listener: Listener = match &hearer {
            Hearer::Hints => {
                let inputs = self.inputs.clone();
                Rc::new(move |conversation, word| inputs.event(Event::Foreseen(conversation, word)))
            }
            Hearer::Own(published) => {
                let (hears, inputs) = (published.clone(), self.inputs.clone());
                Rc::new(move |conversation, word| {
                    // The tokens that it expects are drafts. What they use only this device's guesses want to know.
                    if !matches!(word, ShadowWord::Chose(..)) {
                        inputs.event(Event::Foreseen(conversation, word.clone()));
                    }
                    hears.hear(word);
                })
            }
        };
        if let Some(running) = self.shadow.borrow().as_ref() {
            running.shadow.set_listener(listener);
            running.shadow.overtakes.set(for_hints);
            running.hearer.replace(hearer);
            return Ok(running.shadow.clone());
        }
        let (shadow, making) = self.new_shadow(listener, load).await?;
        shadow.engine().set_give_way(self.give_way());
        shadow.overtakes.set(for_hints);
        let shadow = Rc::new(shadow);
        log::info!("The shadow takes {} of GPU memory for its weights.", Bytes(shadow.bytes));
        let (task, registration) = AbortHandle::new_pair();
        let (compute, follows) = (Rc::downgrade(self), shadow.clone());
        self.platform.spawn.spawn(Box::pin(async move {
            let run = async move {
                match finish(&follows, making).await {
                    Ok(()) => follows.follow().await,
                    // It ends this task, too.
                    Err(error) => compute.upgrade().into_iter().for_each(|compute| compute.lose_shadow(&error)),
                }
            };
            // Whoever ends it needs no answer.
            let _ = Abortable::new(run, registration).await;
        }));
        let running = RunningShadow { shadow: shadow.clone(), hearer: RefCell::new(hearer), task };
        self.shadow.replace(Some(running));
        Ok(shadow)
    }

    async fn new_shadow(&self, listener: Listener, load: Load) -> Result<(Shadow, Option<Making>), String> {
        let options = self.guesses.borrow().shadow.clone().ok_or("no shadow was asked for")?;
        let gpu = self.gpu.borrow().clone().ok_or_else(|| self.no_gpu())?;
        let base = self.model_engine.borrow().as_ref().map(|base| (base.engine.clone(), base.settings.clone()));
        let (base, of_base) = base.ok_or("there is no model yet")?;
        match &options.source {
            #[cfg(not(target_arch = "wasm32"))]
            ShadowSource::File(file) => {
                let file = ModelFile::open(file).map_err(|error| error.to_string())?;
                let (spec, units) = file.spec().map_err(|error| error.to_string())?;
                // Beside what is lent to the room.
                let settings = Settings { budget: Bytes(u64::MAX), ..of_base };
                let shadow = Shadow::new(&gpu, (spec, units.clone()), &options, &base, settings, listener)?;
                for unit in shadow.engine().missing() {
                    load_unit(shadow.engine(), &file, &units, unit).map_err(|error| error.to_string())?;
                    tokio::task::yield_now().await;
                }
                shadow.engine().close_staging();
                Ok((shadow, None))
            }
            ShadowSource::Own(_) => {
                let own = self.own_shadow.borrow().clone().ok_or("there is no memory for it")?;
                let settings = match options.alignment.kv {
                    // What it takes over has to be stored alike.
                    Some(_) => Settings { kv_cache: of_base.kv_cache, ..own.settings.clone() },
                    None => own.settings.clone(),
                };
                let model = (own.spec.clone(), own.units.clone());
                let shadow = Shadow::new(&gpu, model, &options, &base, settings, listener)?;
                Ok((shadow, Some(Making { load, own })))
            }
        }
    }

    /// The shadow failed. Its memory is free, and answers go on.
    fn lose_shadow(&self, error: &LoadError) {
        self.end_shadow();
        self.inputs.send(match error {
            // It is made again when the GPU is back.
            LoadError::Engine(EngineError::Lost) => Input::DeviceLost,
            error => Input::ShadowFailed(error.to_string()),
        });
    }

    /// From now on the shadow of the options, if there is one, speaks of experts that this device's stage calls on others.
    ///
    /// # Errors
    /// A sentence: it cannot be read, or does not fit.
    pub async fn shadow_for_hints(self: &Rc<Self>, load: Load) -> Result<(), String> {
        if !self.has_shadow() {
            return Ok(());
        }
        self.shadow(Hearer::Hints, load).await.map(drop)
    }

    /// A shadow was asked for, and there is memory for it.
    pub(super) fn has_shadow(&self) -> bool {
        let options = self.guesses.borrow();
        match options.shadow.as_ref().map(|options| &options.source) {
            None => false,
            Some(ShadowSource::Own(_)) => self.own_shadow.borrow().is_some(),
            #[cfg(not(target_arch = "wasm32"))]
            Some(ShadowSource::File(_)) => true,
        }
    }

    /// The shadow made from the room's model, once it is being made.
    pub fn shadow_report(&self) -> Option<ShadowReport> {
        let bytes = self.own_shadow.borrow().as_ref()?.bytes();
        let ready = self.shadow.borrow().as_ref()?.shadow.is_ready();
        Some(ShadowReport { bytes: bytes.0, ready })
    }

    /// Nobody wants a shadow any more.
    pub fn end_shadow(&self) {
        drop(self.shadow.take());
    }

    /// Whether hints want to know of the next tokens.
    pub fn foresee(&self, wanted: bool) {
        self.foreseen_wanted.set(wanted);
    }

    /// The stage's engine begins with work.
    pub(super) fn tell_shadow(&self, work: &Work) {
        if let Some(running) = self.shadow.borrow().as_ref().filter(|running| running.published().is_none())
            && work.ticket.0 < FIRST_TRIAL
        {
            running.shadow.tell(&work.task, self.foreseen_wanted.get());
        }
    }
}

/// Makes what a shadow lacks: its weights, and its kernels, which are tested.
async fn finish(shadow: &Shadow, making: Option<Making>) -> Result<(), LoadError> {
    if let Some(Making { load, own }) = making {
        let began = load.platform.clock.now();
        load.requantize(shadow.engine(), &own.units).await?;
        log::info!("The shadow was made in {:.0} ms.", load.platform.clock.now().0 - began.0);
        shadow.engine().prepare().await?;
        let verdict = shadow.engine().self_test().await?;
        if !verdict.usable {
            return Err(LoadError::WrongResults(Box::new(verdict)));
        }
    }
    shadow.ready();
    Ok(())
}
