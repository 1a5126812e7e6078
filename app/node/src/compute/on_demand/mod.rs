//! Experts on demand: work that ends at a router waits until the chosen experts are in slots, and goes on from there
//! (od-moe.txt 3.1). Whoever submits work sees none of this but the time it takes.
//!
//! From the ground up: [`slots`] reads experts into slots; [`ahead`] does so beside the work, for [`guesses`] of this device or hints of
//! others; [`fetch`] does so for work that waits; [`driver`] runs work from router to router, [`calls`] what stages elsewhere call;
//! [`queue`] is the way of work to the driver, and [`active`] has the queue while there is one.

mod active;
mod ahead;
mod calls;
mod counts;
mod driver;
mod fetch;
mod guesses;
mod predictors;
mod queue;
mod report;
#[cfg(not(target_arch = "wasm32"))]
mod routers;
mod slots;
mod wave;

pub use self::active::{OnDemand, SharedPool};
pub use self::guesses::{Calls, OnDemandGuesses};
pub use self::predictors::GuessOptions;
