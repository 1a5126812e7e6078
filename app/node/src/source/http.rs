//! Reads a model with HTTP range requests, verified where the server has hashes.

use std::ops::Range;
use std::rc::Rc;

use futures::future::LocalBoxFuture;
use futures::lock::Mutex;
use potluck_model::FileRange;

use super::group_reader::GroupReader;
use super::{FetchPolicy, Source, SourceError, Traffic};
use crate::backoff::Backoff;
use crate::hashes::GroupHashes;
use crate::platform::{HttpReply, HttpRequest, Platform, host_of};
use crate::relay::complaint;

/// Attempts before a request fails.
const MAX_ATTEMPTS: u32 = 6;
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
}

/// A model on a server.
pub struct HttpSource {
    platform: Platform,
    files: Vec<Remote>,
    traffic: Traffic,
}

impl HttpSource {
    /// The files of a model, in order.
    pub fn new(platform: Platform, files: Vec<HttpFile>, traffic: Traffic) -> Self {
        let files = files
            .into_iter()
            .map(|file| Remote { file, groups: Mutex::new(None), reader: GroupReader::default() })
            .collect();
        Self { platform, files, traffic }
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
            return self.get_with_retries(file, &file.url, Some(range.offset..end), arrived).await;
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
            let bytes = self.get_with_retries(&remote.file, &remote.file.url, Some(range.clone()), arrived).await?;
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
            let list = self.get_with_retries(&remote.file, url, None, &Traffic::default()).await?;
            let groups = GroupHashes::prove(&list, remote.file.bytes, root);
            *known = Some(Rc::new(groups.ok_or_else(|| SourceError::Hash(host_of(url).to_owned()))?));
        }
        Ok(known.clone())
    }

    /// Retries with back-off while the network or the server is in trouble. `arrived` counts the bytes of the present attempt.
    async fn get_with_retries(
        &self,
        file: &HttpFile,
        url: &str,
        range: Option<Range<u64>>,
        arrived: &Traffic,
    ) -> Result<Vec<u8>, SourceError> {
        for attempt in 1.. {
            arrived.restart();
            let arrived = arrived.within(&self.traffic);
            let request = HttpRequest { range: range.clone(), arrived, ..HttpRequest::get(url) };
            let (error, pause) = match self.platform.transport.request(request).await {
                Ok(reply) => match accept(file, url, range.as_ref(), reply) {
                    Ok(bytes) => return Ok(bytes),
                    Err(Refusal::Retry(error, pause)) => (error, pause),
                    Err(Refusal::Final(error)) => return Err(error),
                },
                Err(error) => (error.into(), None),
            };
            if attempt >= MAX_ATTEMPTS {
                return Err(error);
            }
            log::info!("retrying: {error}");
            self.platform.clock.sleep(pause.unwrap_or(BACKOFF.wait(attempt))).await;
        }
        Err(SourceError::NoRanges(host_of(url).to_owned()))
    }
}

fn accept(file: &HttpFile, url: &str, range: Option<&Range<u64>>, reply: HttpReply) -> Result<Vec<u8>, Refusal> {
    let host = host_of(url).to_owned();
    // The sentence goes to the room's host, who chose the link: what another server answers is none of its business.
    let reason = |reply: &HttpReply| match &file.hashes {
        Some(_) => complaint(reply),
        None => format!("status {}", reply.status),
    };
    match (reply.status, range) {
        (200, None) => Ok(reply.body),
        (206, Some(range)) if reply.body.len() as u64 == range.end - range.start => Ok(reply.body),
        // A server without range support will do if the whole file was requested.
        (200, Some(range)) if range.start == 0 && reply.body.len() as u64 == range.end => Ok(reply.body),
        (200, Some(_)) => Err(Refusal::Final(SourceError::NoRanges(host))),
        (408 | 429 | 500..=599, _) | (206, _) => {
            let pause = reply.retry_after.map(|seconds| f64::from(seconds.min(30)) * 1000.0);
            Err(Refusal::Retry(SourceError::Status { host, reason: reason(&reply) }, pause))
        }
        _ => Err(Refusal::Final(SourceError::Status { host, reason: reason(&reply) })),
    }
}

/// Why a reply is not usable.
enum Refusal {
    /// Try again, after the milliseconds the server asked for.
    Retry(SourceError, Option<f64>),
    /// Trying again is pointless.
    Final(SourceError),
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

    fn fetch_policy(&self) -> FetchPolicy {
        FetchPolicy { max_bytes: 4 << 20, parallel: 6, cache: true, beside: false }
    }
}

#[cfg(test)]
#[cfg(not(target_arch = "wasm32"))]
mod tests {
    use std::cell::Cell;

    use super::*;
    use crate::native::{Network, platform};
    use crate::platform::{NetError, Socket, Transport};

    const BYTES: u64 = 8;

    /// Its first reply breaks after three bytes.
    #[derive(Default)]
    struct BreaksOnce(Cell<bool>);

    impl Transport for BreaksOnce {
        fn connect(&self, url: String) -> LocalBoxFuture<'static, Result<Socket, NetError>> {
            Box::pin(async move { Err(NetError::unreachable(&url, "no sockets here")) })
        }

        fn request(&self, request: HttpRequest) -> LocalBoxFuture<'static, Result<HttpReply, NetError>> {
            let breaks = !self.0.replace(true);
            request.arrived.add(if breaks { 3 } else { BYTES });
            Box::pin(async move {
                match breaks {
                    true => Err(NetError::unreachable(&request.url, "the connection failed")),
                    false => Ok(HttpReply { status: 206, body: vec![7; BYTES as usize], ..HttpReply::default() }),
                }
            })
        }
    }

    #[tokio::test]
    async fn what_is_sent_again_counts_twice_on_the_line_and_once_in_the_read() {
        let transport = Rc::new(BreaksOnce::default());
        let platform = Platform { transport, ..platform(std::env::temp_dir(), &Network::default()) };
        let (line, arrived) = (Traffic::default(), Traffic::default());
        let file = HttpFile { url: "https://example.org/model.gguf".to_owned(), bytes: BYTES, hashes: None };
        let source = HttpSource::new(platform, vec![file], line.clone());
        let range = FileRange { file: 0, offset: 0, len: BYTES };
        assert_eq!(source.read_counted(range, &arrived).await, Ok(vec![7; 8]));
        assert_eq!((arrived.bytes(), line.bytes()), (8, 11), "of the first reply came three bytes");
    }
}
