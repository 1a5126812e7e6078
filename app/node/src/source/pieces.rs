//! Bytes of the host's file, asked for piece by piece through the room. Asking is the credit: few requests are open at a
//! time, so that tokens never wait behind them.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;

use futures::channel::oneshot;
use futures::future::{Either, LocalBoxFuture, select};
use potluck_model::FileRange;
use potluck_protocol::PieceRequest;
use potluck_swarm::Event;

use super::{Manners, Source, SourceError, Traffic};
use crate::events::Inputs;
use crate::platform::Platform;

/// Requests open at a time.
const OPEN: usize = 4;
/// Seconds until a piece is asked for again: the host may have lost its connection.
const PATIENCE_SECONDS: u32 = 10;
/// Tries of a piece before it is given up.
const TRIES: u32 = 6;

type Waiting = HashMap<u64, oneshot::Sender<Result<Vec<u8>, String>>>;

/// Remembers who waits for which piece.
#[derive(Clone)]
pub struct PieceDesk {
    inputs: Inputs,
    waiting: Rc<RefCell<Waiting>>,
    next: Rc<Cell<u64>>,
}

impl PieceDesk {
    /// A desk that asks through these events.
    pub fn new(inputs: Inputs) -> Self {
        Self { inputs, waiting: Rc::default(), next: Rc::default() }
    }

    /// A piece has come.
    pub fn deliver(&self, id: u64, bytes: Result<Vec<u8>, String>) {
        if let Some(waiting) = self.waiting.borrow_mut().remove(&id) {
            // The load that asked may have been replaced meanwhile.
            let _ = waiting.send(bytes);
        }
    }

    fn ask(&self, range: FileRange, len: u32) -> (u64, oneshot::Receiver<Result<Vec<u8>, String>>) {
        let (sender, receiver) = oneshot::channel();
        let id = self.next.get();
        self.next.set(id + 1);
        let mut waiting = self.waiting.borrow_mut();
        waiting.retain(|_, waiting| !waiting.is_canceled());
        waiting.insert(id, sender);
        self.inputs.event(Event::PieceWanted(PieceRequest { id, file: range.file, offset: range.offset, len }));
        (id, receiver)
    }
}

/// The host's file.
pub struct PieceSource {
    platform: Platform,
    desk: PieceDesk,
    /// Length of the first file.
    bytes: u64,
    traffic: Traffic,
    open: futures::lock::Mutex<()>,
}

impl PieceSource {
    /// The host's file of `bytes` bytes.
    pub fn new(platform: Platform, desk: PieceDesk, bytes: u64, traffic: Traffic) -> Self {
        Self { platform, desk, bytes, traffic, open: futures::lock::Mutex::new(()) }
    }

    async fn piece(&self, range: FileRange) -> Result<Vec<u8>, SourceError> {
        let len = u32::try_from(range.len).unwrap_or(u32::MAX).min(PieceRequest::MAX_LEN);
        let mut failure = SourceError::HostSilent(PATIENCE_SECONDS * TRIES);
        for _ in 0..TRIES {
            let (id, receiver) = self.desk.ask(range, len);
            let patience = self.platform.clock.sleep(f64::from(PATIENCE_SECONDS) * 1000.0);
            match select(receiver, patience).await {
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
                    self.platform.clock.sleep(1000.0).await;
                }
                Either::Left((Err(_), _)) | Either::Right(_) => {
                    self.desk.waiting.borrow_mut().remove(&id);
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
            let most = u64::from(PieceRequest::MAX_LEN);
            if range.len <= most {
                return self.piece(range).await;
            }
            // Longer reads (headers) go one piece after the other, so that the number of open requests stays bounded.
            let _alone = self.open.lock().await;
            let mut bytes = Vec::new();
            while (bytes.len() as u64) < range.len {
                let offset = range.offset + bytes.len() as u64;
                let len = (range.len - bytes.len() as u64).min(most);
                bytes.extend(self.piece(FileRange { offset, len, ..range }).await?);
            }
            Ok(bytes)
        })
    }

    fn manners(&self) -> Manners {
        Manners { bytes: u64::from(PieceRequest::MAX_LEN), parallel: OPEN, keep: true }
    }
}
