//! Long work on the engine's thread (compiling, self-tests, tuning) lets others of that thread run in between: messages, results.

use std::cell::{Cell, RefCell};
use std::fmt::{Debug, Formatter};
use std::pin::Pin;

use crate::runtime::clock;
use crate::runtime::engine::Engine;

/// Milliseconds that an engine works before it lets others run.
const SLICE: f64 = 4.0;

/// Resolves after whoever shares the thread has run.
pub type GiveWay = Box<dyn Fn() -> Pin<Box<dyn Future<Output = ()>>>>;

/// How others get their turn, and when they last did.
#[derive(Default)]
pub struct Turns {
    give_way: RefCell<Option<GiveWay>>,
    last: Cell<f64>,
}

impl Debug for Turns {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Turns").field("last", &self.last).finish_non_exhaustive()
    }
}

impl Engine {
    /// From now on others run in between while this engine compiles, tests or tunes kernels. Without it they wait until it is done.
    pub fn set_give_way(&self, give_way: GiveWay) {
        *self.inner.turns.give_way.borrow_mut() = Some(give_way);
    }

    /// Lets others run if this engine has worked for a while.
    pub(crate) async fn give_way(&self) {
        let turns = &self.inner.turns;
        if clock::now() - turns.last.get() < SLICE {
            return;
        }
        let others = turns.give_way.borrow().as_ref().map(|give_way| give_way());
        if let Some(others) = others {
            others.await;
        }
        turns.last.set(clock::now());
    }
}
