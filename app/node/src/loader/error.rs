//! Why a load fails.

use potluck_engine::{EngineError, LayoutError, Verdict};
use potluck_protocol::LoadFault;
use potluck_text::texts;
use thiserror::Error;

use crate::open::OpenError;
use crate::platform::StoreError;
use crate::source::SourceError;

/// Why a load failed, as a sentence for people.
#[derive(Clone, Debug, Error)]
pub enum LoadError {
    /// The model cannot be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// Its bytes cannot be read.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// The engine failed.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// A cached piece cannot be read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// This tensor has a value that is infinite or NaN.
    #[error("{}", texts().weights.not_finite(.0))]
    NotFinite(String),
    /// The GPU has other bytes of this tensor than were sent to it.
    #[error("{}", texts().weights.not_kept(.0))]
    NotKept(String),
    /// There is no GPU.
    #[error("{0}")]
    NoGpu(String),
    /// Kernels compute wrong results on this GPU.
    #[error(
        "This device's GPU computes wrong results ({}), so it cannot contribute. A newer driver may help.",
        wrong_kernels(.0)
    )]
    WrongResults(Box<Verdict>),
}

/// The kernels that are wrong and have no replacement.
fn wrong_kernels(verdict: &Verdict) -> String {
    let wrong = verdict.kernels.iter().filter(|kernel| !kernel.ok && kernel.replaced_by.is_none());
    wrong.map(|kernel| kernel.name.as_str()).collect::<Vec<_>>().join(", ")
}

impl LoadError {
    /// True if the model's bytes are at fault: trying again would not help.
    pub fn is_of_model(&self) -> bool {
        let of_source = |error: &SourceError| {
            matches!(error, SourceError::Changed(..) | SourceError::File(_) | SourceError::Hash(_))
        };
        match self {
            Self::NotFinite(_) | Self::Open(OpenError::Changed(_)) => true,
            Self::Source(error) | Self::Open(OpenError::Source(error)) => of_source(error),
            _ => false,
        }
    }

    /// The error as it is reported to the coordinator.
    pub fn fault(&self) -> LoadFault {
        let sentence = self.to_string();
        match self {
            Self::Engine(EngineError::Layout(LayoutError::TooLarge { .. })) => LoadFault::NoRoom(sentence),
            _ => LoadFault::Failed(sentence),
        }
    }
}
