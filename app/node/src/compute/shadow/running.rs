//! A shadow that runs: who hears it, and how it is made.

use std::cell::RefCell;
use std::rc::Rc;

use futures::future::AbortHandle;
use potluck_engine::Engine;
use potluck_predict::Published;

use super::model::Shadow;
use super::own::OwnShadow;
use crate::loader::{Load, LoadError};

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
    pub shadow: Rc<Shadow>,
    /// Who hears it.
    pub hearer: RefCell<Hearer>,
    pub task: AbortHandle,
}

/// What a shadow is still to be made from, while its base answers.
pub(super) struct UnfinishedShadow {
    /// Reads its base.
    pub load: Load,
    pub own: OwnShadow,
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

/// Makes what a shadow lacks: its weights, and its kernels, which are tested.
pub(super) async fn finish(shadow: &Shadow, making: Option<UnfinishedShadow>) -> Result<(), LoadError> {
    if let Some(UnfinishedShadow { load, own }) = making {
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
