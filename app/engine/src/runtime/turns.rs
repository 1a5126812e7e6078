//! Long work on the engine's thread (compiling, self-tests, tuning) lets others of that thread run in between: messages, results.

use std::cell::{Cell, RefCell};
use std::fmt::{Debug, Formatter};
use std::pin::Pin;

use crate::runtime::clock;

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

impl Turns {
    /// From now on others run by way of this.
    pub fn set(&self, give_way: GiveWay) {
        *self.give_way.borrow_mut() = Some(give_way);
    }

    /// Lets others run if they have not for a while.
    pub async fn give_way(&self) {
        if clock::now() - self.last.get() < SLICE {
            return;
        }
        let others = self.give_way.borrow().as_ref().map(|give_way| give_way());
        if let Some(others) = others {
            others.await;
        }
        self.last.set(clock::now());
    }
}
