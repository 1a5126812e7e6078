//! Reads the host's file piece by piece through the room, and checks every group of it against the model's id, which is the
//! file's BLAKE3 root. The number of open requests is the flow control: it stays small, so that tokens never queue behind
//! pieces.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::ops::Range;
use std::rc::Rc;

use futures::channel::oneshot;
use futures::future::{Either, LocalBoxFuture, select};
use futures::lock::Mutex;
use futures::{StreamExt, TryStreamExt};
use potluck_model::FileRange;
use potluck_protocol::{PieceFault, PieceRequest};

use super::error::SourceError;
use super::group_reader::GroupReader;
use super::permits::Permits;
use super::reading::{FetchPolicy, Source};
use crate::events::EventSink;
use crate::hashes::GroupHashes;
use crate::platform::Platform;
use crate::platform::Traffic;

/// The index by which [`PieceRequest::file`] means the list of the first file's group hashes, 32 bytes each, instead of a
/// file. No split has as many files.
pub const GROUP_HASHES: u16 = 0x8000;

/// Open requests of this node at a time, of all loads together: what the host answers at once and this node has to take.
const MAX_OPEN: usize = 4;
/// Seconds until a piece is requested again, at first: the host may have lost its connection. On a slow line its pieces take as
/// long, so the second wait is twice as long, the third three times.
const FIRST_WAIT_SECONDS: u32 = 10;
/// The longest first wait, on a line whose last piece took half as long.
const LONGEST_FIRST_WAIT_SECONDS: u32 = 120;
/// Requests before a silent host fails a piece.
const MAX_REQUESTS: u32 = 3;
/// Refusals before a piece fails.
const MAX_REFUSALS: u32 = 6;
/// What a host says that is asked for too much.
const TOO_MUCH: &str = "this device asks for too much at once.";
/// Milliseconds to wait after the host refused a piece.
const RETRY_MILLIS: f64 = 1_000.0;

type Piece = Result<Vec<u8>, PieceFault>;

/// The requests for pieces that the host has not answered yet.
#[derive(Clone)]
pub struct PendingRequests {
    to_host: EventSink<PieceRequest>,
    by_id: Rc<RefCell<HashMap<u64, oneshot::Sender<Piece>>>>,
    next_id: Rc<Cell<u64>>,
    permits: Permits,
    /// Milliseconds that the last piece took.
    took: Rc<Cell<f64>>,
}

impl PendingRequests {
    /// No requests yet; they go out through `to_host`.
    pub fn new(to_host: EventSink<PieceRequest>) -> Self {
        let (by_id, next_id, took) = Default::default();
        Self { to_host, by_id, next_id, permits: Permits::new(MAX_OPEN), took }
    }

    /// The answer to a request arrived.
    pub fn deliver(&self, id: u64, piece: Piece) {
        if let Some(requester) = self.by_id.borrow_mut().remove(&id) {
            // Fails if the load that requested it was replaced meanwhile.
            let _ = requester.send(piece);
        }
    }

    /// An id for the requests of a piece, and what is answered to them.
    fn open(&self) -> (u64, oneshot::Receiver<Piece>) {
        let (sender, receiver) = oneshot::channel();
        let id = self.next_id.get();
        self.next_id.set(id + 1);
        let mut by_id = self.by_id.borrow_mut();
        by_id.retain(|_, requester| !requester.is_canceled());
        by_id.insert(id, sender);
        (id, receiver)
    }

    fn send(&self, id: u64, range: FileRange, len: u32) {
        self.to_host.send(PieceRequest { id, file: range.file, offset: range.offset, len });
    }

    /// Seconds until a piece is requested again.
    fn first_wait(&self) -> f64 {
        (2.0 * self.took.get() / 1000.0).clamp(FIRST_WAIT_SECONDS.into(), LONGEST_FIRST_WAIT_SECONDS.into())
    }
}

/// The host's file, read through the room.
pub struct PieceSource {
    platform: Platform,
    requests: PendingRequests,
    bytes: u64,
    root: [u8; 32],
    traffic: Traffic,
    /// Asked for with the first read: a visit that finds everything in the cache needs none.
    groups: Mutex<Option<Rc<GroupHashes>>>,
    reader: GroupReader,
}

impl PieceSource {
    /// The host's file, which has `bytes` bytes and the BLAKE3 hash `root`.
    pub fn new(platform: Platform, requests: PendingRequests, bytes: u64, root: [u8; 32], traffic: Traffic) -> Self {
        Self { platform, requests, bytes, root, traffic, groups: Mutex::new(None), reader: GroupReader::default() }
    }

    /// A piece, also if the host refuses it now and then.
    async fn piece(&self, range: FileRange) -> Result<Vec<u8>, SourceError> {
        let len = u32::try_from(range.len).unwrap_or(u32::MAX).min(PieceRequest::MAX_LEN);
        let _permit = self.requests.permits.acquire().await;
        let began = self.platform.clock.now().0;
        let mut refusals = 0;
        loop {
            match self.answer(range, len).await? {
                Ok(bytes) if bytes.len() as u64 == range.len => {
                    self.requests.took.set(self.platform.clock.now().0 - began);
                    self.traffic.add(range.len);
                    return Ok(bytes);
                }
                Ok(bytes) => {
                    let wanted = range.offset + range.len;
                    return Err(SourceError::TooShort { len: range.offset + bytes.len() as u64, wanted });
                }
                Err(PieceFault::Kept) => return Err(SourceError::Kept),
                Err(fault) => {
                    refusals += 1;
                    if refusals == MAX_REFUSALS {
                        return Err(SourceError::Host(match fault {
                            PieceFault::Failed(sentence) => sentence,
                            PieceFault::TooMuch | PieceFault::Kept => TOO_MUCH.to_owned(),
                        }));
                    }
                    self.platform.clock.sleep(RETRY_MILLIS).await;
                }
            }
        }
    }

    /// What the host answers to the request of a piece, which is sent again where it is silent. These requests have one id: a late
    /// answer to the first is as good as one to the last.
    async fn answer(&self, range: FileRange, len: u32) -> Result<Piece, SourceError> {
        let (id, mut answer) = self.requests.open();
        let mut waited = 0.0;
        for request in 1..=MAX_REQUESTS {
            self.requests.send(id, range, len);
            let seconds = self.requests.first_wait() * f64::from(request);
            match select(&mut answer, self.platform.clock.sleep(seconds * 1000.0)).await {
                Either::Left((Ok(piece), _)) => return Ok(piece),
                // Nobody answers any more.
                Either::Left((Err(_), _)) => break,
                Either::Right(_) => waited += seconds,
            }
        }
        Err(SourceError::HostSilent(waited as u32))
    }

    /// Bytes of a file, or of the list of hashes, in as many pieces as they need.
    async fn pieces(&self, file: u16, range: Range<u64>) -> Result<Vec<u8>, SourceError> {
        let max = u64::from(PieceRequest::MAX_LEN);
        let offsets = range.clone().step_by(max as usize);
        let pieces = offsets.map(|offset| {
            let len = max.min(range.end - offset);
            self.piece(FileRange { file, offset, len })
        });
        let bytes = Vec::with_capacity((range.end - range.start) as usize);
        let append = async |mut bytes: Vec<u8>, piece: Vec<u8>| {
            bytes.extend(piece);
            Ok(bytes)
        };
        futures::stream::iter(pieces).buffered(MAX_OPEN).try_fold(bytes, append).await
    }

    async fn group_hashes(&self) -> Result<Rc<GroupHashes>, SourceError> {
        let mut known = self.groups.lock().await;
        if let Some(groups) = known.as_ref() {
            return Ok(groups.clone());
        }
        let list = self.pieces(GROUP_HASHES, 0..GroupHashes::list_bytes(self.bytes)).await?;
        let groups = Rc::new(GroupHashes::prove(&list, self.bytes, &self.root).ok_or_else(wrong)?);
        *known = Some(groups.clone());
        Ok(groups)
    }

    /// Gets whole groups and checks them. The connection is sealed, so wrong bytes are the host's, whose disk may have
    /// misread them.
    async fn checked(&self, groups: &GroupHashes, range: Range<u64>) -> Result<Vec<u8>, SourceError> {
        for _ in 0..2 {
            let bytes = self.pieces(0, range.clone()).await?;
            if groups.check(range.start, &bytes) {
                return Ok(bytes);
            }
        }
        Err(wrong())
    }
}

fn wrong() -> SourceError {
    SourceError::Hash("the host's disk".to_owned())
}

impl Source for PieceSource {
    fn file_len(&self, file: u16) -> Option<u64> {
        (file == 0).then_some(self.bytes)
    }

    fn read(&self, range: FileRange) -> LocalBoxFuture<'_, Result<Vec<u8>, SourceError>> {
        Box::pin(async move {
            if range.file != 0 {
                return Err(SourceError::NoSuchFile(range.file));
            }
            let end = range.offset.saturating_add(range.len);
            if end > self.bytes {
                return Err(SourceError::TooShort { len: self.bytes, wanted: end });
            }
            if range.len == 0 {
                return Ok(Vec::new());
            }
            let groups = self.group_hashes().await?;
            self.reader.read(&groups, range.offset..end, async |range| self.checked(&groups, range).await).await
        })
    }

    fn make_ready(&self, _file: u16) -> LocalBoxFuture<'_, Result<(), SourceError>> {
        Box::pin(async move { self.group_hashes().await.map(drop) })
    }

    fn fetch_policy(&self) -> FetchPolicy {
        FetchPolicy { max_bytes: u64::from(PieceRequest::MAX_LEN), parallel: MAX_OPEN, cache: true, beside: false }
    }
}

#[cfg(test)]
#[cfg(not(target_arch = "wasm32"))]
mod tests;
