//! The source of a load, with what was read from it.

use std::cell::Cell;

use potluck_model::FileRange;

use crate::platform::Traffic;
use crate::source::{Permits, Source, SourceError};

/// The source of a load.
pub(super) struct Origin<'a> {
    pub source: &'a dyn Source,
    /// Limits the reads at a time further than the runs under way do.
    pub reads: Option<Permits>,
    /// Bytes read so far.
    pub bytes: Cell<u64>,
}

impl Origin<'_> {
    pub async fn read(&self, range: FileRange, arrived: &Traffic) -> Result<Vec<u8>, SourceError> {
        let _read = match &self.reads {
            Some(reads) => Some(reads.acquire().await),
            None => None,
        };
        let bytes = self.source.read_counted(range, arrived).await?;
        self.bytes.set(self.bytes.get() + bytes.len() as u64);
        Ok(bytes)
    }
}
