//! Requests over HTTP, and how much of a reply is read.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use futures::future::LocalBoxFuture;
use potluck_panel::AccessToken;
use potluck_plan::Millis;

use super::NetError;

/// Maximum length of a reply whose length is not known before: lists of models and of hashes. The longest list, of a file of
/// 128 GiB, has this.
const MAX_REPLY: u64 = 64 << 20;
/// Maximum length of a reply that is an error.
const MAX_ERROR: u64 = 64 << 10;

/// The method of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// Read it.
    Get,
    /// Send JSON to it.
    Post,
}

/// Counts bytes as they arrive, on any thread, and knows how long their server lets this device wait.
#[derive(Clone, Debug, Default)]
pub struct Traffic {
    own: Arc<AtomicU64>,
    /// What else counts them.
    all: Option<Arc<AtomicU64>>,
    /// When the wait ends, in milliseconds of this device's clock.
    waits_until: Arc<AtomicU64>,
}

impl Traffic {
    /// The same count, whose bytes `all` counts too.
    #[must_use]
    pub fn within(&self, all: &Traffic) -> Self {
        Self { own: self.own.clone(), all: Some(all.own.clone()), waits_until: all.waits_until.clone() }
    }

    /// Nothing is asked of a server before then: it has too much to do.
    pub fn wait_until(&self, end: Millis) {
        self.waits_until.fetch_max(end.0.max(0.0).ceil() as u64, Ordering::Relaxed);
    }

    /// Nobody waits until then any more. A wait for another server goes on.
    pub fn end_wait(&self, end: Millis) {
        let end = end.0.max(0.0).ceil() as u64;
        // Fails if another wait is told.
        let _ = self.waits_until.compare_exchange(end, 0, Ordering::Relaxed, Ordering::Relaxed);
    }

    /// Seconds until the server is asked again; none if nothing waits for that.
    pub fn waits(&self, now: Millis) -> Option<u32> {
        let left = self.waits_until.load(Ordering::Relaxed) as f64 - now.0;
        (left > 0.0).then(|| (left / 1000.0).ceil() as u32)
    }

    /// Adds bytes.
    pub fn add(&self, bytes: u64) {
        for count in std::iter::once(&self.own).chain(&self.all) {
            count.fetch_add(bytes, Ordering::Relaxed);
        }
    }

    /// What has arrived.
    pub fn bytes(&self) -> u64 {
        self.own.load(Ordering::Relaxed)
    }

    /// Its bytes come once more, from the first one.
    pub fn restart(&self) {
        self.own.store(0, Ordering::Relaxed);
    }
}

/// A request.
#[derive(Clone, Debug)]
pub struct HttpRequest {
    /// The method.
    pub method: Method,
    /// The absolute URL.
    pub url: String,
    /// The byte range; all bytes if `None`.
    pub range: Option<Range<u64>>,
    /// JSON, for [`Method::Post`].
    pub body: Option<String>,
    /// Who asks, for a server that wants to know. It does not follow a redirect to another server.
    pub access: Option<AccessToken>,
    /// Counts the content as it arrives.
    pub arrived: Traffic,
}

impl HttpRequest {
    /// Reads a whole resource.
    pub fn get(url: impl Into<String>) -> Self {
        Self {
            method: Method::Get,
            url: url.into(),
            range: None,
            body: None,
            access: None,
            arrived: Traffic::default(),
        }
    }

    /// Sends JSON.
    pub fn post(url: impl Into<String>, body: String) -> Self {
        Self { method: Method::Post, body: Some(body), ..Self::get(url) }
    }

    /// Most bytes of a reply with this status that are read. A server that sends more than was asked for sends the whole file,
    /// or never ends: of such a reply nothing is used.
    pub fn limit(&self, status: u16) -> u64 {
        match (status, &self.range) {
            (200 | 206, Some(range)) => range.end.saturating_sub(range.start),
            (200..300, None) => MAX_REPLY,
            _ => MAX_ERROR,
        }
    }
}

/// The reply to a request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HttpReply {
    /// The status, 200 to 599.
    pub status: u16,
    /// `Content-Length`, if it is readable.
    pub length: Option<u64>,
    /// The first byte of the part that it sends, from `Content-Range`.
    pub start: Option<u64>,
    /// Seconds that the server asks to wait.
    pub retry_after: Option<u32>,
    /// Its content is a web page.
    pub is_page: bool,
    /// Its content is several parts, with words between them.
    pub is_multipart: bool,
    /// What it says of the file's version.
    pub version: Version,
    /// The time by the server's clock, as it writes it.
    pub date: Option<String>,
    /// The content.
    pub body: Vec<u8>,
}

impl HttpReply {
    /// A reply without its content.
    pub fn read(status: u16, header: impl Fn(&str) -> Option<String>) -> Self {
        let content_type = header("content-type").unwrap_or_default().to_ascii_lowercase();
        Self {
            status,
            length: header("content-length").and_then(|length| length.trim().parse().ok()),
            start: header("content-range").and_then(|range| first_byte(&range)),
            retry_after: wait_asked(&header),
            is_page: content_type.starts_with("text/html"),
            is_multipart: content_type.starts_with("multipart/"),
            date: header("date"),
            version: Version::read(header),
            body: Vec::new(),
        }
    }
}

/// 0 of "bytes 0-7/100".
fn first_byte(range: &str) -> Option<u64> {
    range.trim().strip_prefix("bytes")?.trim_start().split('-').next()?.parse().ok()
}

/// Seconds from `Retry-After`, or from a `RateLimit` that says when its window ends. A `Retry-After` that is a date says nothing:
/// clocks differ.
fn wait_asked(header: impl Fn(&str) -> Option<String>) -> Option<u32> {
    let seconds = |text: &str| text.trim().parse::<f64>().ok().filter(|seconds| (0.0..1e6).contains(seconds));
    let of_window = || {
        let limit = header("ratelimit")?;
        let end = limit.split([';', ',']).find_map(|part| part.trim().strip_prefix("t="))?;
        seconds(end)
    };
    let asked = header("retry-after").and_then(|text| seconds(&text)).or_else(of_window)?;
    Some(asked.ceil() as u32)
}

/// The content of a reply while it arrives. Dropped, it ends the download.
pub trait Content {
    /// The bytes that come next, at least one and at most `most`; none at the end.
    ///
    /// # Errors
    /// The connection broke.
    fn next(&mut self, most: usize) -> LocalBoxFuture<'_, Result<Vec<u8>, NetError>>;
}

/// A reply, and its content while it arrives.
pub type OpenedReply = (HttpReply, Box<dyn Content>);

/// Content that has arrived.
pub struct Arrived {
    bytes: Vec<u8>,
    read: usize,
}

impl Arrived {
    /// These bytes.
    pub fn new(bytes: Vec<u8>) -> Self {
        Self { bytes, read: 0 }
    }
}

impl Content for Arrived {
    fn next(&mut self, most: usize) -> LocalBoxFuture<'_, Result<Vec<u8>, NetError>> {
        let end = self.bytes.len().min(self.read.saturating_add(most));
        let next = self.bytes[self.read..end].to_vec();
        self.read = end;
        Box::pin(std::future::ready(Ok(next)))
    }
}

/// What a reply says about its file's version. Browsers hide most headers of other sites, unless a site exposes them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Version {
    /// A strong `ETag`. A weak one says nothing of single bytes.
    pub etag: Option<String>,
    /// `Last-Modified`.
    pub modified: Option<String>,
    /// The length of the whole file, from `Content-Range`.
    pub total: Option<u64>,
}

impl Version {
    /// Reads it from a reply's headers.
    pub fn read(header: impl Fn(&str) -> Option<String>) -> Self {
        let total = header("content-range").and_then(|range| range.rsplit('/').next()?.trim().parse().ok());
        let etag = header("etag").map(|etag| etag.trim().to_owned()).filter(|etag| etag.starts_with('"'));
        Self { etag, modified: header("last-modified"), total }
    }

    /// Fills in what only the other one says.
    pub fn learn(&mut self, other: &Self) {
        let text = |mine: &mut Option<String>, others: &Option<String>| *mine = mine.take().or_else(|| others.clone());
        text(&mut self.etag, &other.etag);
        text(&mut self.modified, &other.modified);
        self.total = self.total.or(other.total);
    }

    /// Whether the two may be of one version: nothing that both say differs. The time counts only where an `ETag` is missing.
    pub fn may_be(&self, other: &Self) -> bool {
        let agree = |mine: &Option<String>, others: &Option<String>| Some(mine.as_ref()? == others.as_ref()?);
        let totals = self.total.zip(other.total).is_none_or(|(mine, others)| mine == others);
        totals && agree(&self.etag, &other.etag).or_else(|| agree(&self.modified, &other.modified)).unwrap_or(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_is_read_than_was_asked_for() {
        let whole = HttpRequest::get("https://example.org/model.gguf");
        let part = HttpRequest { range: Some(65_536..131_072), ..whole.clone() };
        for status in [200, 206] {
            assert_eq!(part.limit(status), 65_536, "a whole file instead of a part is not read");
        }
        assert_eq!(whole.limit(200), MAX_REPLY);
        for status in [404, 416, 503] {
            assert_eq!((whole.limit(status), part.limit(status)), (MAX_ERROR, MAX_ERROR));
        }
    }

    fn version(headers: &[(&str, &str)]) -> Version {
        Version::read(|name| headers.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned()))
    }

    #[test]
    fn versions_differ_where_what_both_say_differs() {
        let first = version(&[("etag", "\"a\""), ("last-modified", "Mon"), ("content-range", "bytes 0-7/100")]);
        assert_eq!((first.etag.as_deref(), first.total), (Some("\"a\""), Some(100)));
        for (other, same) in [
            (version(&[("etag", "\"a\""), ("last-modified", "Tue")]), true),
            (version(&[("etag", "\"b\""), ("last-modified", "Mon")]), false),
            (version(&[("etag", "W/\"b\""), ("last-modified", "Mon")]), true),
            (version(&[("last-modified", "Tue")]), false),
            (version(&[("content-range", "bytes 8-15/101")]), false),
            (version(&[("content-range", "bytes 8-15/*")]), true),
            (Version::default(), true),
        ] {
            assert_eq!(first.may_be(&other), same, "{other:?}");
        }
    }

    #[test]
    fn a_wait_is_read_where_servers_say_it() {
        for (headers, seconds) in [
            (vec![("retry-after", "120")], Some(120)),
            (vec![("retry-after", " 0.5 ")], Some(1)),
            (vec![("retry-after", "Wed, 21 Oct 2026 07:28:00 GMT")], None),
            (vec![("retry-after", "-5")], None),
            (vec![("retry-after", "inf")], None),
            (vec![("ratelimit", "\"resolvers\";r=0;t=57")], Some(57)),
            (vec![("ratelimit", "limit=100, remaining=0, reset=9")], None),
            (vec![("ratelimit", "\"api\";r=0;t=57"), ("retry-after", "9")], Some(9)),
            (vec![], None),
        ] {
            let header =
                |name: &str| headers.iter().find(|(known, _)| *known == name).map(|(_, text)| text.to_string());
            assert_eq!(HttpReply::read(429, header).retry_after, seconds, "{headers:?}");
        }
    }

    #[test]
    fn a_reply_says_where_its_part_begins_and_whether_it_is_a_page() {
        let reply = |name: &str, text: &str| HttpReply::read(206, |asked| (asked == name).then(|| text.to_owned()));
        assert_eq!(reply("content-range", "bytes 8-15/100").start, Some(8));
        assert_eq!(reply("content-range", "bytes */100").start, None);
        assert!(reply("content-type", "Text/HTML; charset=utf-8").is_page);
        assert!(!reply("content-type", "application/octet-stream").is_page);
        assert!(reply("content-type", "multipart/byteranges; boundary=x").is_multipart);
    }

    #[test]
    fn a_wait_is_known_to_everything_on_the_line_until_it_ends() {
        let line = Traffic::default();
        let read = Traffic::default().within(&line);
        assert_eq!(read.waits(Millis(0.0)), None);
        line.wait_until(Millis(2_500.0));
        assert_eq!((read.waits(Millis(1_000.0)), line.waits(Millis(2_500.0))), (Some(2), None));
    }

    #[test]
    fn the_end_of_one_wait_is_not_the_end_of_another() {
        let line = Traffic::default();
        line.wait_until(Millis(1_000.0));
        line.wait_until(Millis(9_000.0));
        line.end_wait(Millis(1_000.0));
        assert_eq!(line.waits(Millis(0.0)), Some(9), "another server's wait goes on");
        line.end_wait(Millis(9_000.0));
        assert_eq!(line.waits(Millis(0.0)), None);
    }

    #[test]
    fn what_arrives_twice_is_counted_once_but_for_the_line() {
        let (read, line) = (Traffic::default(), Traffic::default());
        let request = read.within(&line);
        request.add(5);
        read.restart();
        request.add(7);
        assert_eq!((read.bytes(), request.bytes(), line.bytes()), (7, 7, 12));
    }

    #[test]
    fn nothing_is_read_of_a_range_that_ends_before_it_starts() {
        let ranges = [Range { start: 7, end: 7 }, Range { start: 7, end: 3 }];
        for range in ranges {
            assert_eq!(HttpRequest { range: Some(range), ..HttpRequest::get("https://example.org/") }.limit(206), 0);
        }
    }
}
