//! One device and its files, without a room: routing traces, and models in another type.

mod all_cores;
mod command;
mod on_cpu;
mod on_gpu;
mod requantize;
mod runner;
#[cfg(test)]
mod tests;
mod trace;

use potluck_engine::EngineError;
use potluck_gguf::{GgufError, WriteError};
use potluck_model::ModelError;
use potluck_node::LanguageError;
use potluck_node::native::ModelFileError;
use thiserror::Error;

use crate::routing::TraceError;

pub use command::{RequantizeArguments, TraceArguments};

/// Why a study ended, in one sentence.
#[derive(Debug, Error)]
pub enum StudyError {
    /// A model's file cannot be used.
    #[error(transparent)]
    ModelFile(#[from] ModelFileError),
    /// A file cannot be written.
    #[error("{0}")]
    File(String),
    /// Not a GGUF file, or one that cannot be converted.
    #[error(transparent)]
    Gguf(#[from] GgufError),
    /// The new file cannot be written.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// The model cannot run here.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// Its tokenizer cannot be used.
    #[error(transparent)]
    Language(#[from] LanguageError),
    /// The trace cannot be written.
    #[error(transparent)]
    Trace(#[from] TraceError),
    /// Nothing to trace.
    #[error("{0} has no experts, or blocks with different numbers of them: there is no routing to trace.")]
    NoExperts(String),
    /// Prompts that cannot be used.
    #[error("{0}")]
    Prompts(String),
    /// The engine has no way to replace its KV cache.
    #[error("KV alignment needs --cpu: the engine cannot take over another model's KV cache.")]
    NoKvAlignment,
    /// The engine failed.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// The GPU failed.
    #[error("{0}")]
    Gpu(String),
}
