//! Formats numbers and short phrases. Pure functions; full sentences are in `potluck-text`.

mod device;
mod experts;
mod lend;
mod number;
mod progress;
mod sentence;

pub use device::{default_lend, guess_kind, guess_name, kind_name};
pub use experts::{
    call_times, calls_line, holding_line, on_demand_line, replicas_line, residency_line, shadow_line, short_line,
    trips_line, work_line,
};
pub use lend::{lend_step, lend_steps, read_bytes};
pub use number::{bytes, count, duration_ms, parameters, percent, rate, tokens_per_second};
pub use progress::loading_line;
pub use sentence::{blocks, held_by, model_size, plural};
