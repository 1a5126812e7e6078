//! Why a model cannot be opened.

use potluck_gguf::GgufError;
use potluck_model::ModelError;
use potluck_text::texts;
use thiserror::Error;

use crate::language::LanguageError;
use crate::platform::NetError;
use crate::relay::RelayError;
use crate::source::SourceError;

/// Why a model cannot be opened.
#[derive(Clone, Debug, Error)]
pub enum OpenError {
    /// The relay failed.
    #[error(transparent)]
    Relay(#[from] RelayError),
    /// Its bytes cannot be read.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// Its header is not valid.
    #[error(transparent)]
    Gguf(#[from] GgufError),
    /// Its architecture is not supported.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// Its vocabulary or chat template is not valid.
    #[error(transparent)]
    Language(#[from] LanguageError),
    /// A link that the host chose leads to a private address or does not use https.
    #[error("{}", texts().weights.private_link(_0))]
    PrivateLink(String),
    /// The file on this device must be selected again.
    #[error("\"{0}\" is a file on this device. Choose it again.")]
    FileGone(String),
    /// A file on the host's disk is too large to be sent to others.
    #[error("\"{0}\" is too large to be sent from device to device. Put it in the relay's models folder.")]
    TooLarge(String),
    /// The source has other bytes than the host opened.
    #[error("\"{0}\" changed after the host opened it. The host must open it again.")]
    Changed(String),
}

impl From<NetError> for OpenError {
    fn from(error: NetError) -> Self {
        Self::Source(error.into())
    }
}
