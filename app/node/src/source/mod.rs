//! Where a model's bytes come from: HTTP ranges, a file of this device, or the host's file through the room.

mod edges;
mod http;
mod local;
mod pieces;

use futures::future::LocalBoxFuture;
use potluck_model::FileRange;
use thiserror::Error;

use crate::platform::NetError;

pub use http::{HttpFile, HttpSource, Traffic};
pub use local::LocalSource;
pub use pieces::{PieceDesk, PieceSource};

/// The files of a model.
pub trait Source {
    /// The length of a file, where it is known before its header is read.
    fn file_len(&self, file: u16) -> Option<u64>;

    /// Reads bytes: all of them and checked where they can be, or an error.
    fn read(&self, range: FileRange) -> LocalBoxFuture<'_, Result<Vec<u8>, SourceError>>;

    /// How to read: it is asked in pieces of at most `bytes`, `parallel` of them at a time.
    fn manners(&self) -> Manners;
}

/// How a source wants to be asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Manners {
    /// Largest piece, a multiple of 4.
    pub bytes: u64,
    /// Pieces at a time.
    pub parallel: usize,
    /// Worth keeping in the cache: it is not on this device.
    pub keep: bool,
}

/// Why bytes cannot be had.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum SourceError {
    /// The network.
    #[error(transparent)]
    Net(#[from] NetError),
    /// The server does not give them.
    #[error("{host} does not give the model's bytes: {reason}")]
    Status {
        /// Who.
        host: String,
        /// The server's sentence, or its status.
        reason: String,
    },
    /// The server ignores ranges.
    #[error("{0} sends whole files only; a server that answers ranges is needed.")]
    NoRanges(String),
    /// Other bytes than the model's hash says.
    #[error("Bytes of the model from {0} do not match its hash; the file changed or the connection alters it.")]
    Hash(String),
    /// The file ends too early.
    #[error("The model's file ends after {len} bytes, byte {wanted} was needed.")]
    TooShort {
        /// Its length.
        len: u64,
        /// One past the last byte asked for.
        wanted: u64,
    },
    /// Not a file of the model.
    #[error("The model is split, and its file number {0} is not here; use one file, or the relay's folder of models.")]
    NoSuchFile(u16),
    /// A file of this device.
    #[error("The file cannot be read: {0}")]
    File(String),
    /// The host does not give them.
    #[error("The host cannot give a piece of its file: {0}")]
    Host(String),
    /// The host does not answer.
    #[error("The host has not sent a piece of its file for {0} seconds; is its tab still open?")]
    HostSilent(u32),
}
