//! Tests of `http.rs`.

use super::*;
use crate::native::{Network, platform};
use crate::platform::{Clock, HttpReply, NetError, Socket, Transport, Version};

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
            if breaks {
                return Err(NetError::unreachable(&request.url, "the connection failed"));
            }
            Ok(HttpReply { status: 206, body: vec![7; BYTES as usize], ..HttpReply::default() })
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

struct Server {
    requests: Cell<usize>,
    /// The reply to a request of this number: status, `ETag`, and the byte that the file consists of.
    reply: Box<dyn Fn(usize) -> (u16, &'static str, u8)>,
}

impl Transport for Server {
    fn connect(&self, url: String) -> LocalBoxFuture<'static, Result<Socket, NetError>> {
        Box::pin(async move { Err(NetError::unreachable(&url, "no sockets here")) })
    }

    fn request(&self, request: HttpRequest) -> LocalBoxFuture<'static, Result<HttpReply, NetError>> {
        let (status, etag, byte) = (self.reply)(self.requests.replace(self.requests.get() + 1));
        let version = Version { etag: Some(etag.to_owned()), ..Version::default() };
        let part = request.range.map_or(BYTES, |range| range.end - range.start) as usize;
        let len = if status == 206 { part } else { 3 };
        let reply =
            HttpReply { status, length: Some(len as u64), version, body: vec![byte; len], ..HttpReply::default() };
        Box::pin(async move { Ok(reply) })
    }
}

/// Time that passes only while somebody waits, and then at once.
#[derive(Default)]
pub(super) struct NoWaits(Rc<Cell<f64>>);

impl Clock for NoWaits {
    fn now(&self) -> potluck_plan::Millis {
        potluck_plan::Millis(self.0.get())
    }

    fn unix_seconds(&self) -> u64 {
        0
    }

    fn sleep(&self, millis: f64) -> LocalBoxFuture<'static, ()> {
        let (clock, end) = (self.0.clone(), self.0.get() + millis);
        Box::pin(async move { clock.set(clock.get().max(end)) })
    }
}

fn source(reply: impl Fn(usize) -> (u16, &'static str, u8) + 'static) -> (HttpSource, Rc<Server>) {
    let server = Rc::new(Server { requests: Cell::new(0), reply: Box::new(reply) });
    let platform = Platform {
        transport: server.clone(),
        clock: Rc::new(NoWaits::default()),
        ..platform(std::env::temp_dir(), &Network::default())
    };
    let file = HttpFile { url: "https://example.org/model.gguf".to_owned(), bytes: BYTES, hashes: None };
    (HttpSource::new(platform, vec![file], Traffic::default()), server)
}

async fn read(source: &HttpSource) -> Result<Vec<u8>, SourceError> {
    source.read(FileRange { file: 0, offset: 0, len: 4 }).await
}

fn changed(change: Change) -> SourceError {
    SourceError::Changed("example.org".to_owned(), change)
}

#[tokio::test]
async fn a_server_that_has_another_version_is_asked_again_before_that_counts() {
    let (lagging, _) = source(|request| if matches!(request, 1 | 2) { (206, "\"b\"", 8) } else { (206, "\"a\"", 7) });
    for _ in 0..3 {
        assert_eq!(read(&lagging).await, Ok(vec![7; 4]));
    }
    let (replaced, server) = source(|request| if request == 0 { (206, "\"a\"", 7) } else { (206, "\"b\"", 8) });
    assert_eq!(read(&replaced).await, Ok(vec![7; 4]));
    assert_eq!(read(&replaced).await, Err(changed(Change::Read)));
    let requests = server.requests.get();
    assert_eq!(read(&replaced).await, Err(changed(Change::Read)));
    assert_eq!(server.requests.get(), requests, "from then on nothing is asked for");
}

#[tokio::test]
async fn names_that_differ_are_no_change_where_the_bytes_do_not() {
    let (mirrors, server) = source(|request| (206, ["\"a\"", "\"b\"", "\"c\""][request % 3], 7));
    for _ in 0..20 {
        assert_eq!(read(&mirrors).await, Ok(vec![7; 4]));
    }
    assert!(server.requests.get() < 30, "a name is compared once");
}

#[tokio::test]
async fn what_is_no_part_of_a_file_says_nothing_of_its_version() {
    for status in [200, 404, 503] {
        let (source, server) =
            source(
                move |request| {
                    if (1..100).contains(&request) { (status, "\"page\"", 9) } else { (206, "\"a\"", 7) }
                },
            );
        assert_eq!(read(&source).await, Ok(vec![7; 4]));
        let failed = read(&source).await;
        assert!(!matches!(failed, Ok(_) | Err(SourceError::Changed(..))), "{status}: {failed:?}");
        server.requests.set(100);
        assert_eq!(read(&source).await, Ok(vec![7; 4]), "after {status}");
    }
    // Further requests to a server that never sent a range are pointless.
    let (whole, server) = source(|_| (200, "\"a\"", 7));
    assert!(matches!(read(&whole).await, Err(SourceError::NoRanges(_))));
    assert_eq!(server.requests.get(), 1);
}

#[tokio::test]
async fn a_file_that_ends_earlier_has_changed_by_what_its_server_says() {
    let (shorter, _) = source(|request| if request == 0 { (206, "\"a\"", 7) } else { (416, "\"b\"", 9) });
    assert_eq!(read(&shorter).await, Ok(vec![7; 4]));
    assert_eq!(read(&shorter).await, Err(changed(Change::Said)), "nothing was read that differs");
}

#[tokio::test]
async fn a_server_that_refuses_is_asked_less_and_less_and_not_for_ever() {
    let (refuses, server) = source(|request| if request == 0 { (206, "\"a\"", 7) } else { (429, "", 9) });
    assert_eq!(read(&refuses).await, Ok(vec![7; 4]));
    let refused = read(&refuses).await;
    assert!(matches!(refused, Err(SourceError::Busy(_))), "{refused:?}");
    let requests = server.requests.get();
    assert!((12..35).contains(&requests), "{requests} requests in a quarter of an hour");
    let (broken, server) = source(|request| if request == 0 { (206, "\"a\"", 7) } else { (503, "", 9) });
    assert_eq!(read(&broken).await, Ok(vec![7; 4]));
    let failed = read(&broken).await;
    assert!(matches!(failed, Err(SourceError::Status { .. })), "{failed:?}: it does not say that it is busy");
    assert_eq!(server.requests.get(), 1 + 6);
}

#[tokio::test]
async fn a_refusal_while_samples_are_compared_is_no_change() {
    // The file has another name from the second reply on; while that is looked into, the server refuses.
    let (renamed, server) = source(|request| match request {
        0 => (206, "\"a\"", 7),
        2 | 4 | 6 | 8 => (429, "", 9),
        _ => (206, "\"b\"", 7),
    });
    assert_eq!(read(&renamed).await, Ok(vec![7; 4]));
    assert_eq!(read(&renamed).await, Ok(vec![7; 4]), "after {} requests", server.requests.get());
    assert_eq!(server.requests.get(), 11);
}

#[tokio::test]
async fn a_window_that_ends_is_waited_for() {
    let (source, server) = source(|request| if (1..9).contains(&request) { (429, "", 9) } else { (206, "\"a\"", 7) });
    for _ in 0..3 {
        assert_eq!(read(&source).await, Ok(vec![7; 4]));
    }
    assert_eq!(server.requests.get(), 3 + 8);
}

/// A network that fails for some requests, and may say that it hides refusals.
struct Fails {
    requests: Cell<usize>,
    hides: bool,
}

impl Transport for Fails {
    fn connect(&self, url: String) -> LocalBoxFuture<'static, Result<Socket, NetError>> {
        Box::pin(async move { Err(NetError::unreachable(&url, "no sockets here")) })
    }

    fn request(&self, request: HttpRequest) -> LocalBoxFuture<'static, Result<HttpReply, NetError>> {
        let fails = (1..10).contains(&self.requests.replace(self.requests.get() + 1));
        Box::pin(async move {
            if fails {
                return Err(NetError::unreachable(&request.url, "Failed to fetch"));
            }
            Ok(HttpReply { status: 206, body: vec![7; 4], ..HttpReply::default() })
        })
    }

    fn hides_refusals(&self) -> bool {
        self.hides
    }
}

#[tokio::test]
async fn where_refusals_are_hidden_a_broken_connection_may_be_one() {
    for hides in [false, true] {
        let transport = Rc::new(Fails { requests: Cell::new(0), hides });
        let platform = Platform {
            transport,
            clock: Rc::new(NoWaits::default()),
            ..platform(std::env::temp_dir(), &Network::default())
        };
        let file = HttpFile { url: "https://example.org/model.gguf".to_owned(), bytes: BYTES, hashes: None };
        let source = HttpSource::new(platform, vec![file], Traffic::default());
        assert_eq!(read(&source).await, Ok(vec![7; 4]));
        assert_eq!(read(&source).await.is_ok(), hides, "ten requests fail after one that worked");
    }
}
