//! Phrases of several texts and numbers. Pure functions; the texts are in `potluck-text`.

mod device;
mod experts;
mod lend;
mod period;
mod sentence;

pub use potluck_text::{bytes, count, duration_ms, loading_line, percent, rate, tokens_per_second};

pub use device::{default_lend, guess_kind, guess_name, kind_name};
pub use experts::{
    call_times, calls_line, holding_line, on_demand_line, replicas_line, residency_line, shadow_line, short_line,
    trips_line, work_line,
};
pub use lend::{lend_step, lend_steps, read_bytes};
pub use period::period_text;
pub use sentence::{blocks, blocks_of, held_by, model_size};
