//! Reads samples of the files, and compares them with what they were.

use std::ops::Range;

use futures::{StreamExt, TryStreamExt};

use super::{HttpSource, Remote};
use crate::platform::Traffic;
use crate::source::error::{Change, SourceError};
use crate::source::version::{SAMPLES_AT_ONCE, Sample, sample_ranges};

impl HttpSource {
    /// Reads samples of the files, given their headers, and keeps them for later comparisons.
    ///
    /// # Errors
    /// The bytes cannot be had, or a file was replaced since its header was read.
    pub async fn sample(&self, headers: &[Vec<u8>]) -> Result<Vec<Vec<Sample>>, SourceError> {
        let ranges =
            |remote: &Remote, header: &[u8]| sample_ranges(header.len() as u64, remote.file.bytes, self.files.len());
        let files: Vec<(&Remote, Vec<Range<u64>>)> =
            self.files.iter().zip(headers).map(|(remote, header)| (remote, ranges(remote, header))).collect();
        let all = files.iter().flat_map(|(remote, ranges)| ranges.iter().map(move |range| (*remote, range.clone())));
        let reads = all.map(|(remote, range)| self.read_sample(remote, range));
        let read: Vec<Sample> = futures::stream::iter(reads).buffered(SAMPLES_AT_ONCE).try_collect().await?;
        let mut read = read.into_iter();
        let mut samples = Vec::new();
        for ((remote, ranges), header) in files.iter().zip(headers) {
            let of_file: Vec<Sample> = read.by_ref().take(ranges.len()).collect();
            if of_file.first().is_some_and(|first| !header.starts_with(&first.bytes)) {
                return Err(remote.changed(Change::Read));
            }
            remote.version.keep(of_file.clone());
            remote.beginning.take();
            samples.push(of_file);
        }
        Ok(samples)
    }

    async fn read_sample(&self, remote: &Remote, range: Range<u64>) -> Result<Sample, SourceError> {
        let bytes = self.get_with_retries(remote, &remote.file.url, Some(range.clone()), &Traffic::default()).await?;
        Ok(Sample { range, bytes })
    }

    /// Reads the next `count` samples again and compares them. An error that says that a file was replaced comes before one that
    /// says that another cannot be read.
    pub(super) async fn compare(&self, count: usize) -> Result<(), SourceError> {
        let links = || self.files.iter().filter(|remote| remote.file.hashes.is_none());
        links().try_for_each(Remote::check)?;
        let all: Vec<(&Remote, Sample)> = links()
            .flat_map(|remote| remote.version.samples().into_iter().map(move |sample| (remote, sample)))
            .collect();
        let (count, len) = (count.min(all.len()), all.len().max(1));
        let first = self.next_sample.replace((self.next_sample.get() + count) % len);
        let reads = (0..count).map(|index| {
            let (remote, known) = &all[(first + index) % len];
            async move {
                let now = self.read_sample(remote, known.range.clone()).await?;
                if now == *known { Ok(()) } else { Err(remote.changed(Change::Read)) }
            }
        });
        let results: Vec<Result<(), SourceError>> =
            futures::stream::iter(reads).buffer_unordered(SAMPLES_AT_ONCE).collect().await;
        links().try_for_each(Remote::check)?;
        results.into_iter().collect()
    }
}
