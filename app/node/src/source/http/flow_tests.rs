//! Tests of `parts.rs` with servers that send contents in unusual ways.

use futures::StreamExt;

use super::tests::NoWaits;
use super::*;
use crate::native::{Network, platform};
use crate::platform::{Content, HttpReply, NetError, OpenedReply, Socket, Transport, Version};
use crate::source::error::Change;

const MIB: u64 = 1 << 20;
/// Longer than what is read at once and kept.
const BYTES: u64 = 8 * MIB;

/// How a server answers a request.
#[derive(Clone, Default)]
struct Answer {
    /// What it says of itself, beside the beginning and length of the part. Without a status it sends a part.
    reply: HttpReply,
    /// It says where the part begins.
    says_start: bool,
    /// Bytes of its content, if not all that were asked for.
    sends: Option<u64>,
    /// Where its content begins, if not where it was asked to.
    from: Option<u64>,
    /// The first piece of its content gets lost if nobody waits for it any more.
    is_lost: bool,
}

struct Server {
    requests: Cell<usize>,
    largest: Cell<u64>,
    answer: Box<dyn Fn(usize) -> Answer>,
    holds_back: bool,
    /// It refuses while so many contents are open.
    most_open: usize,
    open: Rc<Cell<usize>>,
}

/// The bytes of a file: another one for each thousand.
fn byte(at: u64) -> u8 {
    (at / 1_000) as u8
}

struct Sends {
    at: u64,
    end: u64,
    lost: bool,
    open: Rc<Cell<usize>>,
}

impl Drop for Sends {
    fn drop(&mut self) {
        self.open.set(self.open.get() - 1);
    }
}

impl Content for Sends {
    fn next(&mut self, most: usize) -> LocalBoxFuture<'_, Result<Vec<u8>, NetError>> {
        let end = self.end.min(self.at + (most as u64).min(100_000));
        let bytes = (self.at..end).map(byte).collect();
        // As in a browser: the bytes have left the stream before anybody has them.
        self.at = end;
        let lost = std::mem::take(&mut self.lost);
        Box::pin(async move {
            if lost {
                futures::pending!();
            }
            Ok(bytes)
        })
    }
}

impl Transport for Server {
    fn connect(&self, url: String) -> LocalBoxFuture<'static, Result<Socket, NetError>> {
        Box::pin(async move { Err(NetError::unreachable(&url, "no sockets here")) })
    }

    fn request(&self, request: HttpRequest) -> LocalBoxFuture<'static, Result<HttpReply, NetError>> {
        let opened = self.open(request.clone());
        Box::pin(async move {
            let (reply, _) = opened.await?;
            if reply.status == 503 {
                return Ok(reply);
            }
            let range = request.range.unwrap_or(0..BYTES);
            Ok(HttpReply { body: range.map(byte).collect(), ..reply })
        })
    }

    fn open(&self, request: HttpRequest) -> LocalBoxFuture<'static, Result<OpenedReply, NetError>> {
        let number = self.requests.replace(self.requests.get() + 1);
        let is_full = self.open.get() >= self.most_open;
        self.open.set(self.open.get() + 1);
        let Answer { reply, says_start, sends, from, is_lost } = (self.answer)(number);
        let range = request.range.unwrap_or(0..BYTES);
        self.largest.set(self.largest.get().max(range.end - range.start));
        let at = from.unwrap_or(range.start);
        let length = reply.length.or(Some(range.end - range.start));
        let content =
            Sends { at, end: sends.map_or(range.end, |sends| at + sends), lost: is_lost, open: self.open.clone() };
        let status = if is_full {
            503
        } else if reply.status == 0 {
            206
        } else {
            reply.status
        };
        let reply = HttpReply { status, start: says_start.then_some(at), length, ..reply };
        Box::pin(async move { Ok((reply, Box::new(content) as Box<dyn Content>)) })
    }

    fn holds_content_back(&self) -> bool {
        self.holds_back
    }
}

fn source_of(bytes: u64, holds_back: bool, answer: impl Fn(usize) -> Answer + 'static) -> (HttpSource, Rc<Server>) {
    let (requests, largest) = (Cell::new(0), Cell::new(0));
    let (open, most_open) = (Rc::default(), usize::MAX);
    source_at(bytes, Server { requests, largest, answer: Box::new(answer), holds_back, most_open, open })
}

fn source_at(bytes: u64, server: Server) -> (HttpSource, Rc<Server>) {
    let server = Rc::new(server);
    let platform = Platform {
        transport: server.clone(),
        clock: Rc::new(NoWaits::default()),
        ..platform(std::env::temp_dir(), &Network::default())
    };
    let file = HttpFile { url: "https://example.org/model.gguf".to_owned(), bytes, hashes: None };
    (HttpSource::new(platform, vec![file], Traffic::default()), server)
}

fn source(answer: impl Fn(usize) -> Answer + 'static) -> (HttpSource, Rc<Server>) {
    source_of(BYTES, true, answer)
}

fn reads(bytes: u64) -> Vec<FileRange> {
    (0..bytes / MIB).map(|index| FileRange { file: 0, offset: index * MIB, len: MIB }).collect()
}

/// Announces all reads and makes them one after the other.
async fn read_all(source: &HttpSource) -> Result<(), SourceError> {
    let reads = reads(source.file_len(0).unwrap_or(0));
    source.expect(&reads);
    for read in reads {
        let bytes = source.read(read).await?;
        let is_right = bytes.iter().zip(read.offset..).all(|(found, at)| *found == byte(at));
        assert!(is_right && bytes.len() as u64 == read.len, "the bytes of {read:?} are others'");
    }
    Ok(())
}

fn good() -> Answer {
    Answer { says_start: true, ..Answer::default() }
}

#[tokio::test]
async fn a_connection_that_breaks_after_a_byte_is_not_made_without_end() {
    let (source, server) = source(|_| Answer { sends: Some(1), ..good() });
    let failed = read_all(&source).await;
    assert!(matches!(failed, Err(SourceError::Net(_))), "{failed:?}");
    assert_eq!(server.requests.get(), 6, "attempts, with pauses between them");
}

#[tokio::test]
async fn a_connection_that_brings_something_each_time_goes_on() {
    let (source, server) = source(|_| Answer { sends: Some(300_000), ..good() });
    assert_eq!(read_all(&source).await, Ok(()));
    assert_eq!(server.requests.get() as u64, BYTES.div_ceil(300_000), "no byte comes twice");
}

#[tokio::test]
async fn a_server_that_always_says_soon_is_asked_less_and_less() {
    for seconds in [0, 1] {
        let soon = HttpReply { status: 429, retry_after: Some(seconds), ..HttpReply::default() };
        let refusal = Answer { reply: soon, ..good() };
        let (source, server) = source(move |request| if request == 0 { good() } else { refusal.clone() });
        let reads = reads(BYTES);
        assert!(source.read(reads[0]).await.is_ok());
        let refused = source.read(reads[1]).await;
        assert!(matches!(refused, Err(SourceError::Busy(_))), "{refused:?}");
        let requests = server.requests.get();
        assert!((12..35).contains(&requests), "{requests} requests in a quarter of an hour, asked for {seconds} s");
    }
}

#[tokio::test]
async fn content_that_may_be_of_another_place_is_not_read() {
    let whole = |says_start| Answer {
        says_start,
        from: Some(0),
        reply: HttpReply { length: Some(2 * BYTES), ..HttpReply::default() },
        ..Answer::default()
    };
    let shorter =
        Answer { from: Some(0), reply: HttpReply { length: Some(MIB), ..HttpReply::default() }, ..Answer::default() };
    let parts = Answer { reply: HttpReply { is_multipart: true, ..HttpReply::default() }, ..good() };
    for (name, answer) in [
        ("the whole file, said", whole(true)),
        ("the whole file, unsaid", whole(false)),
        ("a shorter reply of an unknown place", shorter),
        ("parts with words between them", parts),
    ] {
        let (source, server) = source(move |_| answer.clone());
        let failed = read_all(&source).await;
        assert!(matches!(failed, Err(SourceError::Status { .. })), "{name}: {failed:?}");
        assert_eq!(server.requests.get(), 6, "{name}");
    }
    let (hidden, _) = source(|_| Answer::default());
    assert_eq!(read_all(&hidden).await, Ok(()), "the length tells where the place is hidden");
}

#[tokio::test]
async fn a_read_that_is_given_up_shifts_no_byte_of_the_next_one() {
    let (source, server) = source(|request| Answer { is_lost: request == 0, ..good() });
    let reads = reads(BYTES);
    source.expect(&reads);
    let given_up = futures::poll!(source.read(reads[0]));
    assert!(given_up.is_pending(), "its first bytes are on their way: {given_up:?}");
    for read in reads {
        let bytes = source.read(read).await.unwrap_or_else(|error| panic!("{read:?}: {error}"));
        assert!(bytes.iter().zip(read.offset..).all(|(found, at)| *found == byte(at)), "{read:?} is shifted");
    }
    assert!(server.requests.get() > 1, "the content of the read that was given up is gone");
}

#[tokio::test]
async fn another_version_between_two_requests_is_a_change() {
    let named = |etag: &str, total| HttpReply {
        version: Version { etag: Some(etag.to_owned()), total: Some(total), ..Version::default() },
        ..HttpReply::default()
    };
    let long = 20 * MIB;
    for (place, bytes, sends) in [
        ("between two parts", long, None),
        ("after a break between two reads", BYTES, Some(MIB)),
        ("after a break within a read", BYTES, Some(MIB + MIB / 2)),
    ] {
        for (name, then) in [("ETag", named("\"b\"", bytes)), ("total", named("\"a\"", bytes + 1))] {
            let (source, server) = source_of(bytes, true, move |request| match request {
                0 => Answer { reply: named("\"a\"", bytes), sends, ..good() },
                _ => Answer { reply: then.clone(), ..good() },
            });
            let failed = read_all(&source).await;
            let is_change = matches!(failed, Err(SourceError::Changed(_, Change::Said)));
            assert!(is_change, "another {name} {place}: {failed:?}");
            let requests = server.requests.get();
            assert!(read_all(&source).await.is_err(), "{name}: nothing more is read");
            assert_eq!(server.requests.get(), requests, "{name}: nor asked for");
        }
    }
}

#[tokio::test]
async fn a_network_that_holds_nothing_back_gets_smaller_parts() {
    let all: Vec<FileRange> =
        (0..20).map(|index| FileRange { file: 0, offset: index * 4 * MIB, len: 4 * MIB }).collect();
    for (holds_back, most) in [(true, 64 * MIB), (false, 16 * MIB)] {
        // No time passes, so the line is fast, and parts are as large as may be from the second one on.
        let (source, server) = source_of(80 * MIB, holds_back, |_| good());
        source.expect(&all);
        for read in &all {
            assert!(source.read(*read).await.is_ok(), "{read:?}");
        }
        assert_eq!(server.largest.get(), most, "holds back: {holds_back}");
    }
}

#[tokio::test]
async fn the_end_of_one_load_leaves_the_reads_of_another() {
    let (source, server) = source(|_| good());
    let reads = reads(BYTES);
    let former = source.expect(&reads);
    source.expect(&reads);
    source.forget(former);
    for read in reads {
        assert!(source.read(read).await.is_ok(), "{read:?}");
    }
    assert_eq!(server.requests.get(), 1, "the reads are still joined");
}

/// Pieces that come by turns from three places far apart, as those of experts do, and a small one beside each.
fn reads_of_three_places() -> Vec<FileRange> {
    let read = |offset, len| FileRange { file: 0, offset, len };
    let by_turns = (0..8).flat_map(|turn| (0..3).map(move |place| read(place * 10 * MIB + turn * MIB, MIB)));
    by_turns.flat_map(|large| [large, read(40 * MIB + large.offset / 4, 1_000)]).collect()
}

#[tokio::test]
async fn a_server_that_allows_few_connections_is_read_over_one() {
    for most_open in [1, 2, 3] {
        let (source, server) = source_at(
            64 * MIB,
            Server {
                requests: Cell::new(0),
                largest: Cell::new(0),
                answer: Box::new(|_| good()),
                holds_back: true,
                most_open,
                open: Rc::default(),
            },
        );
        let reads = reads_of_three_places();
        source.expect(&reads);
        let all = reads.iter().map(|read| source.read(*read));
        let all: Vec<_> = futures::stream::iter(all).buffered(6).collect().await;
        for (read, bytes) in reads.iter().zip(all) {
            let bytes = bytes.unwrap_or_else(|error| panic!("{most_open} connections, {read:?}: {error}"));
            assert!(bytes.iter().zip(read.offset..).all(|(found, at)| *found == byte(at)), "{read:?} is shifted");
        }
        let requests = server.requests.get();
        assert!(requests <= reads.len() + 8, "{requests} requests where {most_open} connections are allowed");
    }
}
