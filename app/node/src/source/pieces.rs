//! Reads the host's file piece by piece through the room. The number of open requests is the flow control: it stays small, so
//! that tokens never queue behind pieces.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;

use futures::channel::oneshot;
use futures::future::{Either, LocalBoxFuture, select};
use potluck_model::FileRange;
use potluck_protocol::PieceRequest;
use potluck_swarm::Event;

use super::{FetchPolicy, Source, SourceError, Traffic};
use crate::events::Inputs;
use crate::platform::Platform;

/// Open requests at a time.
const PARALLEL: usize = 4;
/// Seconds until a piece is requested again: the host may have lost its connection.
const TIMEOUT_SECONDS: u32 = 10;
/// Attempts before a piece fails.
const MAX_ATTEMPTS: u32 = 6;
/// Milliseconds to wait after the host refused a piece.
const RETRY_MILLIS: f64 = 1_000.0;

type Piece = Result<Vec<u8>, String>;

/// The requests for pieces that the host has not answered yet.
#[derive(Clone)]
pub struct PendingRequests {
    inputs: Inputs,
    by_id: Rc<RefCell<HashMap<u64, oneshot::Sender<Piece>>>>,
    next_id: Rc<Cell<u64>>,
}

impl PendingRequests {
    /// No requests yet; they are sent as events through `inputs`.
    pub fn new(inputs: Inputs) -> Self {
        Self { inputs, by_id: Rc::default(), next_id: Rc::default() }
    }

    /// The answer to a request arrived.
    pub fn deliver(&self, id: u64, piece: Piece) {
        if let Some(requester) = self.by_id.borrow_mut().remove(&id) {
            // Fails if the load that requested it was replaced meanwhile.
            let _ = requester.send(piece);
        }
    }

    fn send(&self, range: FileRange, len: u32) -> (u64, oneshot::Receiver<Piece>) {
        let (sender, receiver) = oneshot::channel();
        let id = self.next_id.get();
        self.next_id.set(id + 1);
        let mut by_id = self.by_id.borrow_mut();
        by_id.retain(|_, requester| !requester.is_canceled());
        by_id.insert(id, sender);
        self.inputs.event(Event::PieceWanted(PieceRequest { id, file: range.file, offset: range.offset, len }));
        (id, receiver)
    }
}

/// The host's file, read through the room.
pub struct PieceSource {
    platform: Platform,
    requests: PendingRequests,
    /// Length of the first file.
    bytes: u64,
    traffic: Traffic,
    /// Held by a read of more than one piece.
    long_read: futures::lock::Mutex<()>,
}

impl PieceSource {
    /// The host's file, which has `bytes` bytes.
    pub fn new(platform: Platform, requests: PendingRequests, bytes: u64, traffic: Traffic) -> Self {
        Self { platform, requests, bytes, traffic, long_read: futures::lock::Mutex::new(()) }
    }

    async fn piece(&self, range: FileRange) -> Result<Vec<u8>, SourceError> {
        let len = u32::try_from(range.len).unwrap_or(u32::MAX).min(PieceRequest::MAX_LEN);
        let mut failure = SourceError::HostSilent(TIMEOUT_SECONDS * MAX_ATTEMPTS);
        for _ in 0..MAX_ATTEMPTS {
            let (id, receiver) = self.requests.send(range, len);
            let timeout = self.platform.clock.sleep(f64::from(TIMEOUT_SECONDS) * 1000.0);
            match select(receiver, timeout).await {
                Either::Left((Ok(Ok(bytes)), _)) if bytes.len() as u64 == range.len => {
                    self.traffic.add(range.len);
                    return Ok(bytes);
                }
                Either::Left((Ok(Ok(bytes)), _)) => {
                    let wanted = range.offset + range.len;
                    return Err(SourceError::TooShort { len: range.offset + bytes.len() as u64, wanted });
                }
                Either::Left((Ok(Err(sentence)), _)) => {
                    failure = SourceError::Host(sentence);
                    self.platform.clock.sleep(RETRY_MILLIS).await;
                }
                Either::Left((Err(_), _)) | Either::Right(_) => {
                    self.requests.by_id.borrow_mut().remove(&id);
                }
            }
        }
        Err(failure)
    }
}

impl Source for PieceSource {
    fn file_len(&self, file: u16) -> Option<u64> {
        (file == 0).then_some(self.bytes)
    }

    fn read(&self, range: FileRange) -> LocalBoxFuture<'_, Result<Vec<u8>, SourceError>> {
        Box::pin(async move {
            let max = u64::from(PieceRequest::MAX_LEN);
            if range.len <= max {
                return self.piece(range).await;
            }
            // Longer reads (headers) take one piece after the other, so that the number of open requests stays bounded.
            let _turn = self.long_read.lock().await;
            let mut bytes = Vec::new();
            while (bytes.len() as u64) < range.len {
                let offset = range.offset + bytes.len() as u64;
                let len = (range.len - bytes.len() as u64).min(max);
                bytes.extend(self.piece(FileRange { offset, len, ..range }).await?);
            }
            Ok(bytes)
        })
    }

    fn fetch_policy(&self) -> FetchPolicy {
        FetchPolicy { max_bytes: u64::from(PieceRequest::MAX_LEN), parallel: PARALLEL, cache: true }
    }
}
