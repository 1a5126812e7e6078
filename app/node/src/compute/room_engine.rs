//! The engine of the model that the room uses.

use std::cell::RefCell;
use std::rc::Rc;

use potluck_engine::{Engine, GiveWay, Settings};
use potluck_model::UnitMap;
use potluck_plan::ModelId;

use crate::platform::Platform;

/// How long waiting for the GPU may block everything else on this thread.
#[cfg(not(target_arch = "wasm32"))]
pub(super) const POLL_TIMEOUT: std::time::Duration = std::time::Duration::from_micros(500);

/// An engine with what it was made for.
#[derive(Clone)]
pub(super) struct ModelEngine {
    pub engine: Engine,
    pub model: ModelId,
    pub units: Rc<UnitMap>,
    pub settings: Settings,
}

/// The engine of the room's model, while there is one.
#[derive(Default)]
pub(super) struct RoomEngine(RefCell<Option<ModelEngine>>);

impl RoomEngine {
    pub fn is_some(&self) -> bool {
        self.0.borrow().is_some()
    }

    pub fn engine(&self) -> Option<Engine> {
        self.0.borrow().as_ref().map(|loaded| loaded.engine.clone())
    }

    /// The engine, with what it was made for.
    pub fn get(&self) -> Option<ModelEngine> {
        self.0.borrow().clone()
    }

    /// The engine for a model, if there is one with these settings except for its budget, which it is given now.
    pub fn keep(&self, model: ModelId, settings: &Settings) -> Option<(Engine, Rc<UnitMap>)> {
        let kept = self.get().filter(|existing| {
            existing.model == model
                && existing.settings == (Settings { budget: existing.settings.budget, ..settings.clone() })
                && !existing.engine.lost()
        })?;
        kept.engine.set_budget(settings.budget);
        Some((kept.engine, kept.units))
    }

    pub fn set(&self, engine: ModelEngine) {
        self.0.replace(Some(engine));
    }

    /// Frees everything that it has on the GPU.
    pub fn destroy(&self) {
        if let Some(loaded) = self.0.take() {
            loaded.engine.destroy();
        }
    }
}

/// Lets what else this thread has to do run: messages, ticks, results.
pub(super) fn give_way(_platform: &Platform) -> GiveWay {
    #[cfg(not(target_arch = "wasm32"))]
    return Box::new(|| Box::pin(tokio::task::yield_now()));
    #[cfg(target_arch = "wasm32")]
    {
        let clock = _platform.clock.clone();
        Box::new(move || clock.sleep(0.0))
    }
}
