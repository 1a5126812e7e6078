//! Groups of options that several verbs share, each with what it does to a node or a question.

mod answer;
mod device;
mod guesses;
mod model;
mod network;

pub use answer::AnswerOptions;
pub use device::{CacheOptions, Contribution, DEFAULT_BUDGET, DEFAULT_TIMEOUT, DeviceOptions};
pub use guesses::GuessArguments;
pub use model::{DEFAULT_CONTEXT, ModelOptions};
pub use network::{AccessOptions, NetworkOptions};
