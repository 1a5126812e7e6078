//! Tools for one device and its files, without a room: routing traces, and models in another type.

mod all_cores;
mod model_file;
mod on_cpu;
mod on_gpu;
mod requantize;
mod runner;
mod trace;

use potluck_gguf::{GgufError, TensorType, WriteError};
use potluck_model::ModelError;
use potluck_predict::TraceError;
use thiserror::Error;

pub use model_file::ModelFile;
pub use on_cpu::OnCpu;
pub use on_gpu::{OnGpu, load_unit};
pub use requantize::requantize;
pub use runner::{Appended, Recording, Runner};
pub use trace::{ShadowChoice, TraceChoice, TraceOptions, check_shadow, check_shadow_of, read_prompts, trace};

use crate::language::LanguageError;

/// Why a tool ended, in one sentence.
#[derive(Debug, Error)]
pub enum StudyError {
    /// A file cannot be opened, read or written.
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
    /// A shadow that does not fit.
    #[error("{shadow} is no shadow of {base}: {why}. Make one with `potluck-node requantize`.")]
    NoShadow {
        /// The shadow's file.
        shadow: String,
        /// The base's file.
        base: String,
        /// What differs.
        why: &'static str,
    },
    /// Prompts that cannot be used.
    #[error("{0}")]
    Prompts(String),
    /// A type that matrices cannot have.
    #[error("{0} is no type that a model can be written in: use F32, F16, Q8_0, Q6_K, Q4_K, Q4_0 or Q2_K.")]
    Type(String),
    /// The engine has no way to replace its KV cache.
    #[error("KV alignment needs --cpu: the engine cannot take over another model's KV cache.")]
    NoKvAlignment,
    /// There is no GPU, or it failed.
    #[error("{0}")]
    Gpu(String),
}

/// A tensor type by its name.
///
/// # Errors
/// It is not known.
pub fn parse_type(name: &str) -> Result<TensorType, StudyError> {
    let known = TensorType::ALL.into_iter().find(|kind| kind.to_string().eq_ignore_ascii_case(name));
    known.ok_or_else(|| StudyError::Type(name.to_owned()))
}
