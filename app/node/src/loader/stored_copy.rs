//! What the cache has of a model, and whether it is of the version that the source has.

use std::collections::{BTreeMap, BTreeSet};

use futures::future::try_join_all;
use potluck_model::FileRange;
use potluck_plan::{Bytes, ModelId, WeightUnit};
use potluck_text::texts;

use super::error::LoadError;
use super::jobs::Job;
use crate::blob::{BlobKey, BlobName};
use crate::platform::Platform;
use crate::source::{Change, Expected, Source, SourceError};

/// At how many random places stored bytes are compared with a source without hashes before a load.
const PROBES: usize = 4;
/// Most bytes that are compared at a place.
const PROBE_BYTES: u64 = 4 << 10;

/// The cached copy of a model, beside its source.
#[derive(Clone, Copy)]
pub(super) struct StoredCopy<'a> {
    pub platform: &'a Platform,
    pub model: ModelId,
    pub source: &'a dyn Source,
    /// Receives sentences for people.
    pub notice: &'a dyn Fn(String),
}

impl<'a> StoredCopy<'a> {
    /// The cached units of the model and their lengths.
    pub async fn units(self) -> BTreeMap<WeightUnit, u64> {
        match self.platform.store.units(self.model).await {
            Ok(stored) => stored,
            Err(error) => {
                (self.notice)(error.to_string());
                BTreeMap::new()
            }
        }
    }

    /// True if what is stored was of another version than the source has now, and is deleted.
    ///
    /// # Errors
    /// The source changed meanwhile.
    pub async fn gives_way(self, jobs: &[Job]) -> Result<bool, LoadError> {
        let gives_way = !self.source.is_hashed() && self.is_stale(jobs).await?;
        if gives_way {
            self.forget().await;
            (self.notice)(texts().weights.stored_copy_differs().to_owned());
        }
        Ok(gives_way)
    }

    /// Returns what was read, unless up to `samples` samples, read again, show that it is not of one version: if samples are the
    /// same before and after a read, the bytes read in between are trusted. A mixture is deleted from the cache. If the server
    /// cannot be asked now, what was read counts.
    pub async fn of_one_version(self, read: Result<Bytes, LoadError>, samples: usize) -> Result<Bytes, LoadError> {
        let read = match read {
            Ok(read) if read > Bytes::ZERO => match self.source.is_unchanged(samples).await {
                Err(error @ SourceError::Changed(..)) => Err(error.into()),
                Err(error) => {
                    log::warn!("whether the file changed meanwhile is not known: {error}");
                    Ok(read)
                }
                Ok(()) => Ok(read),
            },
            read => read,
        };
        if let Err(LoadError::Source(SourceError::Changed(_, Change::Read))) = &read {
            self.forget().await;
        }
        read
    }

    /// Gets what the files are checked with that are downloaded from. On a slow line the hashes of a large file take minutes.
    pub async fn make_ready(self, jobs: &[Job]) -> Result<(), LoadError> {
        let files: BTreeSet<u16> = jobs.iter().filter(|job| job.stored() < job.len).map(|job| job.file).collect();
        for file in files {
            self.source.make_ready(file).await?;
        }
        Ok(())
    }

    /// Tells the source which reads of jobs are to come.
    pub fn expect(self, jobs: &[Job]) -> Expecting<'a> {
        let missing = jobs.iter().filter(|job| job.stored() < job.len);
        let expected = self.source.expect(&missing.map(Job::range).collect::<Vec<_>>());
        Expecting(self.source, expected)
    }

    /// Reads a little of what is stored from the source again: true if the two differ. A source that cannot be reached is no error
    /// here: a load that needs it fails anyway.
    async fn is_stale(self, jobs: &[Job]) -> Result<bool, LoadError> {
        let stored: Vec<&Job> = jobs.iter().filter(|job| job.stored() > 0).collect();
        let probes = (0..PROBES.min(stored.len())).map(|_| {
            let [job, at] = [0, 1].map(|_| u64::from_le_bytes(self.platform.random_bytes()));
            let job = stored[(job % stored.len() as u64) as usize];
            let at = at % job.stored();
            (job, at, PROBE_BYTES.min(job.stored() - at))
        });
        let compare = async |(job, at, len): (&Job, u64, u64)| {
            let key = BlobKey { model: self.model, name: BlobName::Unit(job.blob.unit) };
            let range = FileRange { file: job.file, offset: job.offset + at, len };
            let (kept, now) =
                futures::join!(self.platform.store.read(key, job.blob_offset + at, len), self.source.read(range));
            match (kept, now) {
                (Ok(kept), Ok(now)) => Ok(kept != now),
                (_, Err(error @ SourceError::Changed(..))) => Err(LoadError::from(error)),
                _ => Ok(false),
            }
        };
        let differ = try_join_all(probes.map(compare)).await?;
        Ok(differ.contains(&true))
    }

    /// Deletes what is stored of the model.
    async fn forget(self) {
        if let Err(error) = self.platform.store.delete_model(self.model).await {
            log::warn!("the stored copy cannot be deleted: {error}");
        }
    }
}

/// Ends what a source expects when the load ends, however it ends.
pub(super) struct Expecting<'a>(&'a dyn Source, Expected);

impl Drop for Expecting<'_> {
    fn drop(&mut self) {
        self.0.forget(self.1);
    }
}
