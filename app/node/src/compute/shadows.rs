//! The shadow model beside this device's engine: loaded once, told what its base computes, and gone with it. It guesses for the
//! experts of this device (`on_demand`), or for those that its stage calls on others (`Event::Foreseen`).

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use futures::future::{AbortHandle, Abortable};
use potluck_engine::{Engine, Settings};
use potluck_gguf::Metadata;
use potluck_model::ModelSpec;
use potluck_plan::{Bytes, Work};
use potluck_predict::Published;
use potluck_swarm::Event;

use super::Compute;
use super::on_demand::{Listener, Shadow};
use super::slow_down::FIRST_TRIAL;
use crate::native::study::{ModelFile, check_shadow};

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
    /// Somebody wants to know of the next token.
    wanted: Cell<bool>,
    task: AbortHandle,
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
    }
}

impl Compute {
    /// Whether the shadow of the options, if there is one, belongs to this model.
    ///
    /// # Errors
    /// A sentence: it cannot be read, or is of another model.
    pub fn check_shadow(&self, name: &str, metadata: &Metadata, spec: &ModelSpec) -> Result<(), String> {
        let Some(options) = &self.guesses.shadow else { return Ok(()) };
        let shadow = ModelFile::open(&options.file).map_err(|error| error.to_string())?;
        check_shadow((name, metadata, spec), &shadow).map_err(|error| error.to_string())
    }

    /// The shadow of the options, loaded beside the room's engine if it is not there yet.
    ///
    /// # Errors
    /// A sentence: it cannot be read, or does not fit.
    pub(super) async fn shadow(&self, hearer: Hearer) -> Result<Rc<Shadow>, String> {
        let for_hints = matches!(hearer, Hearer::Hints);
        let listener: Listener = match &hearer {
            Hearer::Hints => {
                let inputs = self.inputs.clone();
                Rc::new(move |conversation, word| inputs.event(Event::Foreseen(conversation, word)))
            }
            Hearer::Own(published) => {
                let hears = published.clone();
                Rc::new(move |_, word| hears.hear(word))
            }
        };
        if let Some(running) = self.shadow.borrow().as_ref() {
            running.shadow.set_listener(listener);
            running.shadow.overtakes.set(for_hints);
            running.hearer.replace(hearer);
            return Ok(running.shadow.clone());
        }
        let options = self.guesses.shadow.as_ref().ok_or("no shadow's file was named")?;
        let gpu = self.gpu.borrow().clone().ok_or_else(|| self.no_gpu())?;
        let base = self.model_engine.borrow().as_ref().map(|base| (base.engine.clone(), base.settings.clone()));
        let (base, settings) = base.ok_or("there is no model yet")?;
        // Beside what is lent to the room.
        let settings = Settings { budget: Bytes(u64::MAX), ..settings };
        let shadow = Rc::new(Shadow::load(&gpu, options, &base, settings, listener).await?);
        shadow.overtakes.set(for_hints);
        log::info!("The shadow takes {} of GPU memory besides.", Bytes(shadow.bytes.get()));
        let (task, registration) = AbortHandle::new_pair();
        let follows = shadow.clone();
        self.platform.spawn.spawn(Box::pin(async move {
            // Whoever ends it needs no answer.
            let _ = Abortable::new(async move { follows.follow().await }, registration).await;
        }));
        let running =
            RunningShadow { shadow: shadow.clone(), hearer: RefCell::new(hearer), wanted: Cell::new(false), task };
        self.shadow.replace(Some(running));
        Ok(shadow)
    }

    /// From now on the shadow of the options, if there is one, speaks of experts that this device's stage calls on others.
    ///
    /// # Errors
    /// A sentence: it cannot be read, or does not fit.
    pub async fn shadow_for_hints(&self) -> Result<(), String> {
        if self.guesses.shadow.is_none() {
            return Ok(());
        }
        self.shadow(Hearer::Hints).await.map(drop)
    }

    /// Nobody wants a shadow any more.
    pub fn end_shadow(&self) {
        drop(self.shadow.take());
    }

    /// Whether hints want to know of the next tokens.
    pub fn foresee(&self, wanted: bool) {
        if let Some(running) = self.shadow.borrow().as_ref() {
            running.wanted.set(wanted);
        }
    }

    /// The stage's engine begins with work.
    pub(super) fn tell_shadow(&self, work: &Work) {
        if let Some(running) = self.shadow.borrow().as_ref().filter(|running| running.published().is_none())
            && work.ticket.0 < FIRST_TRIAL
        {
            running.shadow.tell(&work.task, running.wanted.get());
        }
    }
}
