//! Reads a model with HTTP range requests, verified where the server has hashes.

mod replies;
mod samples;
#[cfg(all(test, not(target_arch = "wasm32")))]
mod tests;

use std::cell::Cell;
use std::ops::Range;
use std::rc::Rc;

use futures::future::LocalBoxFuture;
use futures::lock::Mutex;
use potluck_model::FileRange;

use self::replies::Refusal;
use super::error::{Change, SourceError};
use super::group_reader::GroupReader;
use super::reading::{FetchPolicy, Source};
use super::version::KnownVersion;
use crate::backoff::Backoff;
use crate::hashes::GroupHashes;
use crate::platform::Traffic;
use crate::platform::{HttpRequest, Platform, host_of};

/// Attempts before a request fails.
const MAX_ATTEMPTS: u32 = 6;
/// Attempts before a reply of another version counts: servers behind one name may not have the same yet.
const MAX_VERSIONS: u32 = 3;
/// Waits between attempts. The longest one lies behind the last attempt.
const BACKOFF: Backoff = Backoff::new(500.0, 16_000.0);

/// One file on a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpFile {
    /// Its URL.
    pub url: String,
    /// Its length in bytes.
    pub bytes: u64,
    /// Its BLAKE3 root and the URL of its group hashes, if the server has them.
    pub hashes: Option<([u8; 32], String)>,
}

struct Remote {
    file: HttpFile,
    /// Fetched with the first read: a visit that finds everything in the cache needs none.
    groups: Mutex<Option<Rc<GroupHashes>>>,
    reader: GroupReader,
    /// Of a file without hashes.
    version: KnownVersion,
}

impl Remote {
    fn changed(&self, change: Change) -> SourceError {
        self.version.set_changed(change);
        self.error(change)
    }

    fn error(&self, change: Change) -> SourceError {
        SourceError::Changed(host_of(&self.file.url).to_owned(), change)
    }

    /// Fails once it was replaced.
    fn check(&self) -> Result<(), SourceError> {
        self.version.changed().map_or(Ok(()), |change| Err(self.error(change)))
    }
}

/// A model on a server.
pub struct HttpSource {
    platform: Platform,
    files: Vec<Remote>,
    traffic: Traffic,
    /// The sample that is compared next, of those of all files.
    next_sample: Cell<usize>,
}

impl HttpSource {
    /// The files of a model, in order.
    pub fn new(platform: Platform, files: Vec<HttpFile>, traffic: Traffic) -> Self {
        let files = files
            .into_iter()
            .map(|file| Remote {
                file,
                groups: Mutex::new(None),
                reader: GroupReader::default(),
                version: KnownVersion::default(),
            })
            .collect();
        Self { platform, files, traffic, next_sample: Cell::new(0) }
    }

    fn remote(&self, file: u16) -> Result<&Remote, SourceError> {
        self.files.get(usize::from(file)).ok_or(SourceError::NoSuchFile(file))
    }

    async fn read_verified(&self, range: FileRange, arrived: &Traffic) -> Result<Vec<u8>, SourceError> {
        let remote = self.remote(range.file)?;
        let file = &remote.file;
        let end = range.offset.saturating_add(range.len);
        if end > file.bytes {
            return Err(SourceError::TooShort { len: file.bytes, wanted: end });
        }
        if range.len == 0 {
            return Ok(Vec::new());
        }
        let Some(groups) = self.group_hashes(remote).await? else {
            return self.get_with_retries(remote, &file.url, Some(range.offset..end), arrived).await;
        };
        let fetch = async |range| self.fetch_groups(remote, &groups, range, arrived).await;
        remote.reader.read(&groups, range.offset..end, fetch).await
    }

    /// Fetches and verifies whole groups. Bytes corrupted on the way may arrive intact the second time; bytes that are wrong on
    /// the server never do.
    async fn fetch_groups(
        &self,
        remote: &Remote,
        groups: &GroupHashes,
        range: Range<u64>,
        arrived: &Traffic,
    ) -> Result<Vec<u8>, SourceError> {
        for _ in 0..2 {
            let bytes = self.get_with_retries(remote, &remote.file.url, Some(range.clone()), arrived).await?;
            if groups.check(range.start, &bytes) {
                return Ok(bytes);
            }
        }
        Err(SourceError::Hash(host_of(&remote.file.url).to_owned()))
    }

    async fn group_hashes(&self, remote: &Remote) -> Result<Option<Rc<GroupHashes>>, SourceError> {
        let Some((root, url)) = &remote.file.hashes else { return Ok(None) };
        let mut known = remote.groups.lock().await;
        if known.is_none() {
            let list = self.get_with_retries(remote, url, None, &Traffic::default()).await?;
            let groups = GroupHashes::prove(&list, remote.file.bytes, root);
            *known = Some(Rc::new(groups.ok_or_else(|| SourceError::Hash(host_of(url).to_owned()))?));
        }
        Ok(known.clone())
    }

    /// Retries with back-off while the network or the server is in trouble. `arrived` counts the bytes of the present attempt.
    async fn get_with_retries(
        &self,
        remote: &Remote,
        url: &str,
        range: Option<Range<u64>>,
        arrived: &Traffic,
    ) -> Result<Vec<u8>, SourceError> {
        let (mut attempts, mut mismatches) = (0, 0);
        loop {
            remote.check()?;
            arrived.restart();
            let arrived = arrived.within(&self.traffic);
            let request = HttpRequest { range: range.clone(), arrived, ..HttpRequest::get(url) };
            let refusal = match self.platform.transport.request(request).await {
                Ok(reply) => match self.judge(remote, url, range.as_ref(), reply).await {
                    Ok(bytes) => return Ok(bytes),
                    Err(refusal) => refusal,
                },
                Err(error) => Refusal::Retry(error.into(), None),
            };
            let (error, pause) = match refusal {
                Refusal::Final(error) => return Err(error),
                Refusal::OtherVersion(change) => {
                    mismatches += 1;
                    if mismatches >= MAX_VERSIONS {
                        return Err(remote.changed(change));
                    }
                    (remote.error(change), BACKOFF.wait(mismatches))
                }
                Refusal::Retry(error, pause) => {
                    attempts += 1;
                    if attempts >= MAX_ATTEMPTS {
                        return Err(error);
                    }
                    (error, pause.unwrap_or(BACKOFF.wait(attempts)))
                }
            };
            log::info!("retrying: {error}");
            self.platform.clock.sleep(pause).await;
        }
    }
}

impl Source for HttpSource {
    fn file_len(&self, file: u16) -> Option<u64> {
        self.files.get(usize::from(file)).map(|remote| remote.file.bytes)
    }

    fn read(&self, range: FileRange) -> LocalBoxFuture<'_, Result<Vec<u8>, SourceError>> {
        Box::pin(async move { self.read_verified(range, &Traffic::default()).await })
    }

    fn read_counted<'a>(
        &'a self,
        range: FileRange,
        arrived: &'a Traffic,
    ) -> LocalBoxFuture<'a, Result<Vec<u8>, SourceError>> {
        Box::pin(self.read_verified(range, arrived))
    }

    fn make_ready(&self, file: u16) -> LocalBoxFuture<'_, Result<(), SourceError>> {
        Box::pin(async move { self.group_hashes(self.remote(file)?).await.map(drop) })
    }

    fn is_unchanged(&self, samples: usize) -> LocalBoxFuture<'_, Result<(), SourceError>> {
        Box::pin(self.compare(samples))
    }

    fn is_hashed(&self) -> bool {
        self.files.iter().all(|remote| remote.file.hashes.is_some())
    }

    fn fetch_policy(&self) -> FetchPolicy {
        FetchPolicy { max_bytes: 4 << 20, parallel: 6, cache: true, beside: false }
    }
}
