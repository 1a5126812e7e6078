//! Where a model's bytes come from: HTTP range requests, a file on this device, or the host's file through the room.

mod chunk_cache;
mod group_reader;
mod http;
mod local;
mod permits;
mod pieces;

use std::rc::Rc;

use futures::future::LocalBoxFuture;
use potluck_engine::StagingPart;
use potluck_model::FileRange;
use thiserror::Error;

use crate::platform::{LocalFile, NetError};

pub use crate::platform::Traffic;
pub use http::{HttpFile, HttpSource};
pub use local::LocalSource;
pub(crate) use permits::{Permit, Permits};
pub use pieces::{GROUP_HASHES, PendingRequests, PieceSource};

/// The bytes of a model's files.
pub trait Source {
    /// The length of a file, if it is known before its header is read.
    fn file_len(&self, file: u16) -> Option<u64>;

    /// Reads all bytes of a range, verified where hashes exist.
    ///
    /// # Errors
    /// The bytes cannot be had, or do not match their hash.
    fn read(&self, range: FileRange) -> LocalBoxFuture<'_, Result<Vec<u8>, SourceError>>;

    /// The same; `arrived` counts the bytes of the range as they arrive. Those that are fetched again are counted from the first
    /// one again.
    ///
    /// # Errors
    /// As [`Source::read`].
    fn read_counted<'a>(
        &'a self,
        range: FileRange,
        arrived: &'a Traffic,
    ) -> LocalBoxFuture<'a, Result<Vec<u8>, SourceError>> {
        let read = self.read(range);
        Box::pin(async move {
            let bytes = read.await?;
            arrived.add(bytes.len() as u64);
            Ok(bytes)
        })
    }

    /// Gets what is needed to check the bytes of a file; else the first read does.
    ///
    /// # Errors
    /// It cannot be had, or is wrong.
    fn make_ready(&self, _file: u16) -> LocalBoxFuture<'_, Result<(), SourceError>> {
        Box::pin(std::future::ready(Ok(())))
    }

    /// Begins to read a range into a part of a staging buffer that is as long.
    ///
    /// # Errors
    /// As [`Source::read`].
    fn read_into(&self, range: FileRange, mut part: StagingPart) -> LocalBoxFuture<'_, Result<(), SourceError>> {
        let read = self.read(range);
        Box::pin(async move {
            part.write(0, &read.await?);
            Ok(())
        })
    }

    /// How to read from it.
    fn fetch_policy(&self) -> FetchPolicy;

    /// The list of the first file's group hashes, for peers that ask for [`GROUP_HASHES`]; `None` unless the source is a file
    /// on this device that others may read.
    fn group_list(&self) -> Option<Rc<dyn LocalFile>> {
        None
    }
}

/// How to read from a source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FetchPolicy {
    /// Largest read in bytes, a multiple of 4.
    pub max_bytes: u64,
    /// Reads at a time.
    pub parallel: usize,
    /// The bytes are not on this device, so they belong in the cache.
    pub cache: bool,
    /// [`Source::read_into`] reads in other threads: better many small reads than few large ones.
    pub beside: bool,
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
    /// A file on this device cannot be read.
    #[error("The file cannot be read: {0}")]
    File(String),
    /// The host refuses.
    #[error("The host cannot send a piece of its file: {0}")]
    Host(String),
    /// The host keeps these bytes for itself.
    #[error("The host protects its model, and keeps this part of it for itself.")]
    Kept,
    /// The host does not answer.
    #[error("The host has not sent a piece of its file for {0} seconds. Is its tab still open?")]
    HostSilent(u32),
}
