//! Tests of `pieces.rs`.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use potluck_plan::Millis;

use super::*;
use crate::events::{Receiver, channel};
use crate::hashes::{GROUP_BYTES, GroupHasher};
use crate::native::{Network, platform};
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
    async fn serve(self, requests: PendingRequests, mut queue: Receiver<PieceRequest>, done: Rc<Cell<bool>>) -> usize {
        let (mut open, mut most) = (std::collections::VecDeque::new(), 0);
        while !done.get() {
            // Everything that is going to ask has asked when the loop of tasks comes round again.
            tokio::task::yield_now().await;
            while let Some(request) = futures::FutureExt::now_or_never(queue.next()) {
                open.extend(request);
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
fn read(host: Host, bytes: u64, root: [u8; 32], ranges: &[Range<u64>]) -> (Vec<Result<Vec<u8>, SourceError>>, usize) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let tasks = tokio::task::LocalSet::new();
    tasks.block_on(&runtime, async {
        let (asked, queue) = channel();
        let requests = PendingRequests::new(asked.sink());
        let platform = platform(std::env::temp_dir(), &Network::default());
        let done = Rc::new(Cell::new(false));
        let served = tokio::task::spawn_local(host.serve(requests.clone(), queue, done.clone()));
        let source = PieceSource::new(platform, requests, bytes, root, Traffic::default());
        let read =
            |range: &Range<u64>| source.read(FileRange { file: 0, offset: range.start, len: range.end - range.start });
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
        let (sender, mut queue) = channel::<PieceRequest>();
        let requests = PendingRequests::new(sender.sink());
        let clock: Rc<dyn Clock> = Rc::new(Hurried::default());
        let platform = Platform { clock, ..platform(std::env::temp_dir(), &Network::default()) };
        let source = PieceSource::new(platform, requests.clone(), 8, [0; 32], Traffic::default());
        let range = FileRange { file: 0, offset: 0, len: 8 };
        let host = async {
            let mut asked = Vec::new();
            while asked.len() < 2 {
                asked.extend(queue.next().await.map(|request| request.id));
            }
            requests.deliver(asked[0], Ok(vec![7; 8]));
        };
        let (piece, ()) = futures::join!(source.piece(range), host);
        assert_eq!(piece, Ok(vec![7; 8]), "the first request was answered, after the second");
        assert_eq!(requests.first_wait(), 20.0, "as it took ten seconds");
        assert_eq!(source.piece(range).await, Err(SourceError::HostSilent(120)), "20, 40 and 60 seconds");
    });
}
