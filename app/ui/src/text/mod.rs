//! Words and numbers as people read them. Pure functions.

mod device;
mod lend;
mod number;
mod progress;
mod sentence;

pub use device::{default_lend, guess_kind, guess_name};
pub use lend::{lend_step, lend_steps, read_bytes};
pub use number::{bytes, count, duration_ms, parameters, percent, rate, tokens_per_second};
pub use progress::{Phase, loading_line, phase_label};
pub use sentence::{cache_name, model_size, plural, role_words, state_words};
