//! Why bytes of a model cannot be had.

use thiserror::Error;

use crate::platform::NetError;

/// How it is known that a file was replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// Its server says so. Nothing of it was read that differs.
    Said,
    /// Bytes that were read again differ.
    Read,
}

/// Why bytes cannot be had.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum SourceError {
    /// A network error.
    #[error(transparent)]
    Net(#[from] NetError),
    /// The server refuses.
    #[error("{host} does not send the model: {reason}")]
    Status {
        /// Its host.
        host: String,
        /// The server's sentence, or its status.
        reason: String,
    },
    /// The server ignores range requests.
    #[error("{0} sends whole files only. Use a server that supports range requests.")]
    NoRanges(String),
    /// The server has too many requests, for longer than this device waits: a sentence.
    #[error("{0}")]
    Busy(String),
    /// The server wants to know who reads the file: a sentence.
    #[error("{0}")]
    Locked(String),
    /// A link leads to a web page: a sentence.
    #[error("{0}")]
    Page(String),
    /// The server does not say how long a file is.
    #[error("{0} does not say how long the file is. Use a direct link to a .gguf file.")]
    NoLength(String),
    /// The file on the server was replaced by another.
    #[error("The file at {0} changed while it was read. Open the model again to read the new one.")]
    Changed(String, Change),
    /// The bytes do not match the model's hash.
    #[error("The model from {0} does not match its hash: the file changed, or the connection corrupts it.")]
    Hash(String),
    /// The file ends too early.
    #[error("The model's file ends after {len} bytes, but byte {wanted} was needed.")]
    TooShort {
        /// Its length.
        len: u64,
        /// One past the last byte requested.
        wanted: u64,
    },
    /// Not a file of the model.
    #[error(
        "The model is split and its file {0} is missing. Use a single file, or put all files in the relay's models folder."
    )]
    NoSuchFile(u16),
    /// A file on this device cannot be read: a sentence.
    #[error("{0}")]
    File(String),
    /// The host refuses.
    #[error("The host cannot send a piece of its file: {0}")]
    Host(String),
    /// The host keeps these bytes for itself.
    #[error("The host protects its model, and keeps this part of it for itself.")]
    Kept,
    /// The host does not answer.
    #[error("The host has not sent a piece of its file for {0} seconds. Is it still there?")]
    HostSilent(u32),
}
