//! Why a benchmark ended.

use potluck_engine::EngineError;
use thiserror::Error;

use crate::loader::LoadError;
use crate::open::OpenError;

/// Why a benchmark ended, in one sentence.
#[derive(Debug, Error)]
pub enum BenchError {
    /// There is no GPU, or it is in use.
    #[error("{0}")]
    NoGpu(String),
    /// The choice cannot be measured.
    #[error("{0}")]
    Choice(&'static str),
    /// The model cannot be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// Its weights cannot be loaded.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// The engine failed.
    #[error(transparent)]
    Engine(#[from] EngineError),
}
