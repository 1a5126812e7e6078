//! Reads any bytes of a file whose bytes can be checked in whole groups only.

use std::ops::Range;

use super::chunk_cache::{ChunkCache, Lookup};
use super::error::SourceError;
use crate::hashes::{GROUP_BYTES, GroupHashes};

/// The groups of one file that reads share.
#[derive(Default)]
pub struct GroupReader {
    cache: ChunkCache,
}

impl GroupReader {
    /// Reads some bytes, at least one. `fetch` gets whole groups and checks them; groups at the ends may be shared with
    /// neighbouring reads.
    ///
    /// # Errors
    /// The error of `fetch`.
    pub async fn read(
        &self,
        groups: &GroupHashes,
        wanted: Range<u64>,
        fetch: impl AsyncFn(Range<u64>) -> Result<Vec<u8>, SourceError>,
    ) -> Result<Vec<u8>, SourceError> {
        let Range { start, end } = wanted;
        let around = groups.around(start, end - start);
        let (first, last) = (start / GROUP_BYTES, (end - 1) / GROUP_BYTES);
        let whole = start == around.start && end == around.end;
        let front = (!whole).then(|| self.cache.lookup(first));
        let back = (!whole && last != first).then(|| self.cache.lookup(last));
        let mut missing = around.clone();
        if let Some(Lookup::Cached(_)) = &front {
            missing.start = ((first + 1) * GROUP_BYTES).min(missing.end);
        }
        if let Some(Lookup::Cached(_)) = &back {
            missing.end = (last * GROUP_BYTES).max(missing.start);
        }
        let middle = if missing.is_empty() { Vec::new() } else { fetch(missing.clone()).await? };
        // Share what was fetched before waiting for other reads; otherwise two reads could wait for each other.
        let front = front.and_then(|lookup| lookup.fulfil(missing.start, &middle));
        let back = back.and_then(|lookup| lookup.fulfil(missing.start, &middle));
        let mut bytes = Vec::with_capacity((around.end - around.start) as usize);
        if let Some(group) = front {
            match group.await {
                Ok(group) => bytes.extend_from_slice(&group),
                // The read that fetched it gave up.
                Err(_) => bytes.extend(fetch(around.start..missing.start).await?),
            }
        }
        bytes.extend_from_slice(&middle);
        if let Some(group) = back {
            match group.await {
                Ok(group) => bytes.extend_from_slice(&group),
                Err(_) => bytes.extend(fetch(missing.end..around.end).await?),
            }
        }
        bytes.truncate((end - around.start) as usize);
        bytes.drain(..(start - around.start) as usize);
        Ok(bytes)
    }
}
