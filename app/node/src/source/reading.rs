//! What every source of a model's bytes can do.

use std::rc::Rc;

use futures::future::LocalBoxFuture;
use potluck_engine::StagingPart;
use potluck_model::FileRange;

use super::error::SourceError;
use crate::platform::{LocalFile, Traffic};

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

    /// Says which reads will come next, in which order; instead of what was said before. Where each request costs something, the
    /// source joins them.
    fn expect(&self, _reads: &[FileRange]) -> Expected {
        Expected::default()
    }

    /// These reads do not come any more. What was said after them still holds.
    fn forget(&self, _expected: Expected) {}

    /// Reads up to so many samples of its files again and compares them with what they were; with none, says what is known. A
    /// source that checks every byte has nothing to compare.
    ///
    /// # Errors
    /// A file was replaced meanwhile, or cannot be read.
    fn is_unchanged(&self, _samples: usize) -> LocalBoxFuture<'_, Result<(), SourceError>> {
        Box::pin(std::future::ready(Ok(())))
    }

    /// True if every byte is checked against a hash, or never stored: what the cache has under the model's id is the model's.
    fn is_hashed(&self) -> bool {
        true
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

    /// The list of the first file's group hashes, for peers that ask for [`GROUP_HASHES`](super::GROUP_HASHES); `None` unless the source is a file
    /// on this device that others may read.
    fn group_list(&self) -> Option<Rc<dyn LocalFile>> {
        None
    }
}

/// Reads that a source was told of, to take that back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Expected(pub(super) u64);

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
