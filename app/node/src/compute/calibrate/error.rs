//! Why a device has no times.

use potluck_engine::EngineError;
use thiserror::Error;

/// Why a device has no times.
#[derive(Debug, Error)]
pub enum CalibrateError {
    /// There is no GPU.
    #[error("{0}")]
    NoGpu(String),
    /// The GPU's memory is in use.
    #[error("this device's GPU is busy with another model")]
    Busy,
    /// Overhead and speed cannot be separated.
    #[error("fewer than two blocks of the model fit on this device")]
    TooFewBlocks,
    /// The engine failed.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// A piece of work failed, in one sentence.
    #[error("{0}")]
    Failed(String),
}
