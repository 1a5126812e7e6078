//! Reads a model with HTTP range requests, verified where the server has hashes.

mod first;
#[cfg(all(test, not(target_arch = "wasm32")))]
mod flow_tests;
mod lanes;
mod line;
mod parts;
mod replies;
mod samples;
#[cfg(all(test, not(target_arch = "wasm32")))]
mod tests;

use std::cell::{Cell, RefCell};
use std::ops::Range;
use std::rc::Rc;

use futures::future::LocalBoxFuture;
use futures::lock::Mutex;
use potluck_model::FileRange;

use self::line::Attempts;
use self::parts::{FULL, Parts};
use self::replies::Refusal;
use super::error::{Change, SourceError};
use super::group_reader::GroupReader;
use super::reading::{Expected, FetchPolicy, Source};
use super::version::KnownVersion;
use crate::hashes::GroupHashes;
use crate::platform::{HttpRequest, Platform, Traffic, host_of};

pub(super) use self::line::Line;
pub(super) use self::replies::asks_to_wait;

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
    /// Its first bytes, which came with its length.
    beginning: RefCell<Vec<u8>>,
}

impl Remote {
    fn new(file: HttpFile) -> Self {
        Self {
            file,
            groups: Mutex::new(None),
            reader: GroupReader::default(),
            version: KnownVersion::default(),
            beginning: RefCell::default(),
        }
    }

    fn changed(&self, change: Change) -> SourceError {
        self.version.set_changed(change);
        self.error(change)
    }

    fn error(&self, change: Change) -> SourceError {
        SourceError::Changed(host_of(&self.file.url).to_owned(), change)
    }

    fn has_sent_parts(&self) -> bool {
        !self.version.samples().is_empty() || !self.beginning.borrow().is_empty()
    }

    /// Fails once it was replaced.
    fn check(&self) -> Result<(), SourceError> {
        self.version.changed().map_or(Ok(()), |change| Err(self.error(change)))
    }
}

/// A model on a server.
pub struct HttpSource {
    line: Line,
    files: Vec<Remote>,
    /// The reads that are to come, joined.
    parts: Parts,
    /// The sample that is compared next, of those of all files.
    next_sample: Cell<usize>,
}

impl HttpSource {
    /// The files of a model, in order.
    pub fn new(platform: Platform, files: Vec<HttpFile>, traffic: Traffic) -> Self {
        let line = Line::new(platform, traffic, files.iter().all(|file| file.hashes.is_none()));
        let files = files.into_iter().map(Remote::new).collect();
        Self { line, files, parts: Parts::default(), next_sample: Cell::new(0) }
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
            if let Some(bytes) = remote.beginning(range.offset, range.len) {
                return Ok(bytes);
            }
            return match self.part_of(range) {
                Some(part) => self.read_part(remote, &part, range, arrived).await,
                None => self.get_with_retries(remote, &file.url, Some(range.offset..end), arrived).await,
            };
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

    /// Tries again while the network or the server is in trouble. `arrived` counts the bytes of the present attempt.
    async fn get_with_retries(
        &self,
        remote: &Remote,
        url: &str,
        range: Option<Range<u64>>,
        arrived: &Traffic,
    ) -> Result<Vec<u8>, SourceError> {
        let (mut attempts, mut full) = (Attempts::default(), 0);
        loop {
            remote.check()?;
            arrived.restart();
            let request = HttpRequest { range: range.clone(), arrived: arrived.clone(), ..HttpRequest::get(url) };
            let refusal = match self.line.request(request).await {
                Ok((reply, sent)) => match self.judge(remote, url, range.as_ref(), reply).await {
                    Ok(bytes) => {
                        self.line.works(sent);
                        return Ok(bytes);
                    }
                    Err(refusal) => refusal,
                },
                Err(error) => Refusal::Retry(error.into()),
            };
            full += u32::from(matches!(refusal, Refusal::Full(_)));
            self.wait(remote, &mut attempts, url, refusal).await?;
            if full >= FULL && !self.line.is_limited() {
                self.parts.go_alone();
            }
        }
    }

    /// Waits until another attempt makes sense.
    async fn wait(
        &self,
        remote: &Remote,
        attempts: &mut Attempts,
        url: &str,
        refusal: Refusal,
    ) -> Result<(), SourceError> {
        let waited = attempts.wait(&self.line, url, refusal).await;
        if let Err(SourceError::Changed(_, change)) = &waited {
            remote.version.set_changed(*change);
        }
        waited
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

    fn expect(&self, reads: &[FileRange]) -> Expected {
        self.parts.expect(if self.is_hashed() { &[] } else { reads })
    }

    fn forget(&self, expected: Expected) {
        self.parts.forget(expected);
    }

    fn is_hashed(&self) -> bool {
        self.files.iter().all(|remote| remote.file.hashes.is_some())
    }

    fn fetch_policy(&self) -> FetchPolicy {
        FetchPolicy { max_bytes: 4 << 20, parallel: 6, cache: true, beside: false }
    }
}
