//! Bytes by HTTP ranges, checked where the server has hashes.

use std::cell::Cell;
use std::rc::Rc;

use futures::future::LocalBoxFuture;
use futures::lock::Mutex;
use potluck_model::FileRange;

use super::edges::{Edge, Edges};
use super::{Manners, Source, SourceError};
use crate::hashes::{GROUP_BYTES, GroupHashes};
use crate::platform::{HttpReply, HttpRequest, Platform, host_of};
use crate::relay::complaint;

/// Tries of a piece before it is given up.
const TRIES: u32 = 6;
/// First wait between two tries, in milliseconds; it doubles.
const FIRST_WAIT: f64 = 500.0;

/// Bytes that came over the network since the node started.
#[derive(Clone, Debug, Default)]
pub struct Traffic(Rc<Cell<u64>>);

impl Traffic {
    /// Counts bytes.
    pub fn add(&self, bytes: u64) {
        self.0.set(self.0.get() + bytes);
    }

    /// All bytes.
    pub fn bytes(&self) -> u64 {
        self.0.get()
    }
}

/// One file behind an address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpFile {
    /// Its address.
    pub url: String,
    /// Its length.
    pub bytes: u64,
    /// BLAKE3 root and the address of its group hashes, if the server has them.
    pub hashes: Option<([u8; 32], String)>,
}

struct Remote {
    file: HttpFile,
    /// Fetched with the first piece: a second visit that finds all in the cache needs none.
    groups: Mutex<Option<Rc<GroupHashes>>>,
    edges: Edges,
}

/// A model behind addresses.
pub struct HttpSource {
    platform: Platform,
    files: Vec<Remote>,
    traffic: Traffic,
}

impl HttpSource {
    /// The files of a model in their order.
    pub fn new(platform: Platform, files: Vec<HttpFile>, traffic: Traffic) -> Self {
        let files =
            files.into_iter().map(|file| Remote { file, groups: Mutex::new(None), edges: Edges::default() }).collect();
        Self { platform, files, traffic }
    }

    async fn checked(&self, range: FileRange) -> Result<Vec<u8>, SourceError> {
        let remote = self.files.get(usize::from(range.file)).ok_or(SourceError::NoSuchFile(range.file))?;
        let file = &remote.file;
        let end = range.offset.saturating_add(range.len);
        if end > file.bytes {
            return Err(SourceError::TooShort { len: file.bytes, wanted: end });
        }
        if range.len == 0 {
            return Ok(Vec::new());
        }
        let Some(groups) = self.groups(remote).await? else {
            return self.patiently(&file.url, Some(range.offset..end)).await;
        };
        self.in_groups(remote, &groups, range.offset, end).await
    }

    /// Bytes `start..end`, checked in whole groups. The groups at both ends may be shared with neighbouring reads.
    async fn in_groups(
        &self,
        remote: &Remote,
        groups: &GroupHashes,
        start: u64,
        end: u64,
    ) -> Result<Vec<u8>, SourceError> {
        let around = groups.around(start, end - start);
        let (first, last) = (start / GROUP_BYTES, (end - 1) / GROUP_BYTES);
        let whole = start == around.start && end == around.end;
        let front = (!whole).then(|| remote.edges.look(first));
        let back = (!whole && last != first).then(|| remote.edges.look(last));
        let mut fetch = around.clone();
        if let Some(Edge::Known(_)) = &front {
            fetch.start = ((first + 1) * GROUP_BYTES).min(fetch.end);
        }
        if let Some(Edge::Known(_)) = &back {
            fetch.end = (last * GROUP_BYTES).max(fetch.start);
        }
        let middle = match fetch.is_empty() {
            true => Vec::new(),
            false => self.fetch(remote, groups, fetch.clone()).await?,
        };
        // Promises are kept before anything is waited for, so nobody waits in a circle.
        let front = front.and_then(|edge| edge.keep(fetch.start, &middle));
        let back = back.and_then(|edge| edge.keep(fetch.start, &middle));
        let mut bytes = Vec::with_capacity((around.end - around.start) as usize);
        if let Some(group) = front {
            match group.await {
                Ok(group) => bytes.extend_from_slice(&group),
                // Whoever fetched it gave up; we do not.
                Err(_) => bytes.extend(self.fetch(remote, groups, around.start..fetch.start).await?),
            }
        }
        bytes.extend_from_slice(&middle);
        if let Some(group) = back {
            match group.await {
                Ok(group) => bytes.extend_from_slice(&group),
                Err(_) => bytes.extend(self.fetch(remote, groups, fetch.end..around.end).await?),
            }
        }
        bytes.truncate((end - around.start) as usize);
        bytes.drain(..(start - around.start) as usize);
        Ok(bytes)
    }

    /// Whole groups, checked. A piece that was altered on its way may arrive whole the second time; one that is wrong on
    /// the server never does.
    async fn fetch(
        &self,
        remote: &Remote,
        groups: &GroupHashes,
        range: std::ops::Range<u64>,
    ) -> Result<Vec<u8>, SourceError> {
        for _ in 0..2 {
            let bytes = self.patiently(&remote.file.url, Some(range.clone())).await?;
            if groups.check(range.start, &bytes) {
                return Ok(bytes);
            }
        }
        Err(SourceError::Hash(host_of(&remote.file.url).to_owned()))
    }

    async fn groups(&self, remote: &Remote) -> Result<Option<Rc<GroupHashes>>, SourceError> {
        let Some((root, url)) = &remote.file.hashes else { return Ok(None) };
        let mut known = remote.groups.lock().await;
        if known.is_none() {
            let list = self.patiently(url, None).await?;
            let groups = GroupHashes::prove(&list, remote.file.bytes, root);
            *known = Some(Rc::new(groups.ok_or_else(|| SourceError::Hash(host_of(url).to_owned()))?));
        }
        Ok(known.clone())
    }

    /// Asks again with growing waits while the network or the server is in trouble.
    async fn patiently(&self, url: &str, range: Option<std::ops::Range<u64>>) -> Result<Vec<u8>, SourceError> {
        let mut wait = FIRST_WAIT;
        for attempt in 1.. {
            let request = HttpRequest { range: range.clone(), ..HttpRequest::get(url) };
            let (error, pause) = match self.platform.transport.request(request).await {
                Ok(reply) => match self.accept(url, range.as_ref(), reply) {
                    Ok(bytes) => return Ok(bytes),
                    Err(Denied::ForNow(error, pause)) => (error, pause),
                    Err(Denied::Always(error)) => return Err(error),
                },
                Err(error) => (error.into(), None),
            };
            if attempt >= TRIES {
                return Err(error);
            }
            log::info!("asking again: {error}");
            self.platform.clock.sleep(pause.unwrap_or(wait)).await;
            wait *= 2.0;
        }
        Err(SourceError::NoRanges(host_of(url).to_owned()))
    }

    fn accept(&self, url: &str, range: Option<&std::ops::Range<u64>>, reply: HttpReply) -> Result<Vec<u8>, Denied> {
        self.traffic.add(reply.body.len() as u64);
        let host = host_of(url).to_owned();
        match (reply.status, range) {
            (200, None) => Ok(reply.body),
            (206, Some(range)) if reply.body.len() as u64 == range.end - range.start => Ok(reply.body),
            // A server without ranges is of use where the whole file was asked for.
            (200, Some(range)) if range.start == 0 && reply.body.len() as u64 == range.end => Ok(reply.body),
            (200, Some(_)) => Err(Denied::Always(SourceError::NoRanges(host))),
            (408 | 429 | 500..=599, _) | (206, _) => {
                let pause = reply.retry_after.map(|seconds| f64::from(seconds.min(30)) * 1000.0);
                Err(Denied::ForNow(SourceError::Status { host, reason: complaint(&reply) }, pause))
            }
            _ => Err(Denied::Always(SourceError::Status { host, reason: complaint(&reply) })),
        }
    }
}

enum Denied {
    ForNow(SourceError, Option<f64>),
    Always(SourceError),
}

impl Source for HttpSource {
    fn file_len(&self, file: u16) -> Option<u64> {
        self.files.get(usize::from(file)).map(|remote| remote.file.bytes)
    }

    fn read(&self, range: FileRange) -> LocalBoxFuture<'_, Result<Vec<u8>, SourceError>> {
        Box::pin(self.checked(range))
    }

    fn manners(&self) -> Manners {
        Manners { bytes: 4 << 20, parallel: 6, keep: true }
    }
}
