//! Routing traces, and what predictors of experts are worth along them: recall, simulated pools of slots with Belady's optimum, and
//! schedules of groups (od-moe.txt 3). Pure: no clock, no I/O.

mod device;
mod most_recent;
mod on_demand;
mod pool;
mod recall;
mod recorded;
mod schedule;
#[cfg(test)]
mod switch_tests;
mod trace;

pub use device::{Device, token_times};
pub use most_recent::{MostRecent, Nothing};
pub use on_demand::{Guesses, ShadowTimes, on_demand};
pub use pool::{Eviction, Pool, simulate};
pub use recall::recall;
pub use recorded::Recorded;
pub use schedule::Schedule;
#[cfg(test)]
pub use trace::MAX_TRACE_BYTES;
pub use trace::{Sequence, Trace, TraceError};
