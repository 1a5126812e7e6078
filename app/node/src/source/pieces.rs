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
use potluck_swarm::Event;

use super::group_reader::GroupReader;
use super::permits::Permits;
use super::{FetchPolicy, Source, SourceError, Traffic};
use crate::events::Inputs;
use crate::hashes::GroupHashes;
use crate::platform::Platform;

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
    inputs: Inputs,
    by_id: Rc<RefCell<HashMap<u64, oneshot::Sender<Piece>>>>,
    next_id: Rc<Cell<u64>>,
    permits: Permits,
    /// Milliseconds that the last piece took.
    took: Rc<Cell<f64>>,
}

impl PendingRequests {
    /// No requests yet; they are sent as events through `inputs`.
    pub fn new(inputs: Inputs) -> Self {
        let (by_id, next_id, took) = Default::default();
        Self { inputs, by_id, next_id, permits: Permits::new(MAX_OPEN), took }
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
        self.inputs.event(Event::PieceWanted(PieceRequest { id, file: range.file, offset: range.offset, len }));
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
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use potluck_plan::Millis;

    use super::*;
    use crate::events::{InputQueue, channel};
    use crate::hashes::{GROUP_BYTES, GroupHasher};
    use crate::native::{Network, platform};
    use crate::node::Input;
    use crate::platform::Clock;

    fn file(bytes: u64) -> Vec<u8> {
        (0..bytes).map(|at| (at.wrapping_mul(2_654_435_761) >> 11) as u8).collect()
    }

    fn hashes(file: &[u8]) -> GroupHashes {
        let mut hasher = GroupHasher::new(file.len() as u64);
        hasher.push(file);
        hasher.finish().unwrap()
    }

    /// What a host has: a file and the list of hashes that it sends, honest or not.
    struct Host {
        file: Vec<u8>,
        list: Vec<u8>,
        /// What it keeps for itself.
        kept: Range<u64>,
    }

    impl Host {
        /// Answers one request after the other, always the oldest open one, once no more come, until `done`. Returns the
        /// largest number of requests that were open at once.
        async fn serve(self, requests: PendingRequests, mut queue: InputQueue, done: Rc<Cell<bool>>) -> usize {
            let (mut open, mut most) = (std::collections::VecDeque::new(), 0);
            while !done.get() {
                // Everything that is going to ask has asked when the loop of tasks comes round again.
                tokio::task::yield_now().await;
                while let Some(input) = futures::FutureExt::now_or_never(queue.next()) {
                    if let Some(Input::Event(Event::PieceWanted(request))) = input {
                        open.push_back(request);
                    }
                }
                most = most.max(open.len());
                let Some(PieceRequest { id, file, offset, len }) = open.pop_front() else { continue };
                let bytes = if file == GROUP_HASHES { &self.list } else { &self.file };
                let range = offset as usize..offset as usize + len as usize;
                let is_kept = file == 0 && offset < self.kept.end && self.kept.start < range.end as u64;
                let fault = if is_kept { PieceFault::Kept } else { PieceFault::Failed("no such bytes.".to_owned()) };
                requests.deliver(id, bytes.get(range).filter(|_| !is_kept).map(<[u8]>::to_vec).ok_or(fault));
            }
            most
        }
    }

    /// Reads these ranges at once from a host; the results, and the most requests that were open.
    fn read(
        host: Host,
        bytes: u64,
        root: [u8; 32],
        ranges: &[Range<u64>],
    ) -> (Vec<Result<Vec<u8>, SourceError>>, usize) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let tasks = tokio::task::LocalSet::new();
        tasks.block_on(&runtime, async {
            let (inputs, queue) = channel();
            let requests = PendingRequests::new(inputs);
            let platform = platform(std::env::temp_dir(), &Network::default());
            let done = Rc::new(Cell::new(false));
            let served = tokio::task::spawn_local(host.serve(requests.clone(), queue, done.clone()));
            let source = PieceSource::new(platform, requests, bytes, root, Traffic::default());
            let read = |range: &Range<u64>| {
                source.read(FileRange { file: 0, offset: range.start, len: range.end - range.start })
            };
            let results = futures::future::join_all(ranges.iter().map(read)).await;
            done.set(true);
            (results, served.await.unwrap())
        })
    }

    #[test]
    fn pieces_of_any_range_are_read_and_few_requests_are_open() {
        let bytes = 40 * GROUP_BYTES + 1_000;
        let file = file(bytes);
        let hashes = hashes(&file);
        let host = Host { file: file.clone(), list: hashes.list(), kept: 0..0 };
        let mut ranges = vec![0..bytes, 0..1, bytes - 5..bytes, 65_530..65_540, 3 * GROUP_BYTES..3 * GROUP_BYTES];
        ranges.extend((0..30).map(|at| at * 80_000..at * 80_000 + 80_000));
        let (results, most) = read(host, bytes, hashes.root(), &ranges);
        for (range, result) in ranges.into_iter().zip(results) {
            assert_eq!(result.unwrap(), file[range.start as usize..range.end as usize], "{range:?}");
        }
        assert!((2..=MAX_OPEN).contains(&most), "{most} requests were open at once");
    }

    #[test]
    fn what_the_host_keeps_is_refused_at_once_and_the_rest_is_read() {
        let bytes = 5 * GROUP_BYTES;
        let file = file(bytes);
        let hashes = hashes(&file);
        let host = Host { file: file.clone(), list: hashes.list(), kept: 2 * GROUP_BYTES..3 * GROUP_BYTES };
        let ranges = [0..2 * GROUP_BYTES, GROUP_BYTES..2 * GROUP_BYTES + 1, 3 * GROUP_BYTES..bytes];
        let (results, _) = read(host, bytes, hashes.root(), &ranges);
        let of = |range: Range<u64>| Ok(file[range.start as usize..range.end as usize].to_vec());
        assert_eq!(results, [of(ranges[0].clone()), Err(SourceError::Kept), of(ranges[2].clone())]);
    }

    #[test]
    fn wrong_bytes_of_a_host_are_refused_wherever_they_are() {
        let bytes = 5 * GROUP_BYTES;
        let honest = file(bytes);
        let hashes = hashes(&honest);
        for wrong in [0, GROUP_BYTES, bytes - 1] {
            let mut file = honest.clone();
            file[wrong as usize] ^= 1;
            // The list of the honest file, then that of the file which is sent.
            for list in [hashes.list(), self::hashes(&file).list()] {
                let (results, _) = read(
                    Host { file: file.clone(), list, kept: 0..0 },
                    bytes,
                    hashes.root(),
                    std::slice::from_ref(&(wrong..wrong + 1)),
                );
                assert_eq!(results, [Err(super::wrong())], "byte {wrong}");
            }
        }
    }

    /// A clock on which a minute is over as soon as every task has had its turn some times.
    #[derive(Default)]
    struct Hurried(Rc<Cell<f64>>);

    impl Clock for Hurried {
        fn now(&self) -> Millis {
            Millis(self.0.get())
        }

        fn unix_seconds(&self) -> u64 {
            0
        }

        fn sleep(&self, millis: f64) -> LocalBoxFuture<'static, ()> {
            let (now, until) = (self.0.clone(), self.0.get() + millis);
            Box::pin(async move {
                for _ in 0..20 {
                    tokio::task::yield_now().await;
                }
                now.set(now.get().max(until));
            })
        }
    }

    /// On a slow line each answer comes after the piece was requested again.
    #[test]
    fn a_late_answer_counts_and_is_waited_for_longer_the_next_time() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let tasks = tokio::task::LocalSet::new();
        tasks.block_on(&runtime, async {
            let (inputs, mut queue) = channel();
            let requests = PendingRequests::new(inputs);
            let clock: Rc<dyn Clock> = Rc::new(Hurried::default());
            let platform = Platform { clock, ..platform(std::env::temp_dir(), &Network::default()) };
            let source = PieceSource::new(platform, requests.clone(), 8, [0; 32], Traffic::default());
            let range = FileRange { file: 0, offset: 0, len: 8 };
            let host = async {
                let mut asked = Vec::new();
                while asked.len() < 2 {
                    if let Some(Input::Event(Event::PieceWanted(PieceRequest { id, .. }))) = queue.next().await {
                        asked.push(id);
                    }
                }
                requests.deliver(asked[0], Ok(vec![7; 8]));
            };
            let (piece, ()) = futures::join!(source.piece(range), host);
            assert_eq!(piece, Ok(vec![7; 8]), "the first request was answered, after the second");
            assert_eq!(requests.first_wait(), 20.0, "as it took ten seconds");
            assert_eq!(source.piece(range).await, Err(SourceError::HostSilent(120)), "20, 40 and 60 seconds");
        });
    }
}
