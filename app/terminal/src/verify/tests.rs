//! Tests of `verify`: pages that differ in one thing each.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::collections::BTreeMap;

use futures::future::LocalBoxFuture;
use potluck_node::platform::Socket;

use super::*;

const RELAY: &str = "https://relay.example";
const HTML: &str =
    "<base href=\"./\" /><link rel=\"stylesheet\" href=\"base.css\"/><script>import init from './page.js';</script>";

/// A relay: what it answers to each path.
#[derive(Clone)]
struct Served(BTreeMap<String, HttpReply>);

impl Served {
    /// A page as it should be.
    fn page(html: &str) -> Self {
        let mut served = Self(BTreeMap::new());
        for (name, content) in [("base.css", "a {}"), ("index.html", html), ("page.js", "start()")] {
            served.put(&format!("/{name}"), content);
        }
        let list: String = ["base.css", "index.html", "page.js"]
            .map(|name| format!("{}  {name}\n", FileHash::of(&served.0[&format!("/{name}")].body)))
            .concat();
        served.put("/SHA256SUMS", &list);
        VIEWS.iter().for_each(|view| served.put(view, html));
        served.put(ROOM, &in_room(html));
        served
    }

    fn put(&mut self, path: &str, content: &str) {
        let reply = HttpReply { status: 200, body: content.into(), ..HttpReply::default() };
        self.0.insert(path.to_owned(), reply);
    }

    fn with(mut self, path: &str, content: &str) -> Self {
        self.put(path, content);
        self
    }

    fn list(&self) -> &[u8] {
        &self.0["/SHA256SUMS"].body
    }

    fn hash(&self) -> FileHash {
        FileHash::of(self.list())
    }

    async fn compare(&self, expected: &Expected) -> Result<FileHash, Failure> {
        ServedPage { relay: RELAY, transport: self, patience: Duration::from_millis(1) }.compare(expected).await
    }

    async fn differences(&self, of: &Served) -> Vec<String> {
        let page = ServedPage { relay: RELAY, transport: self, patience: Duration::from_millis(1) };
        page.files_that_differ(&FileList::read(of.list()).unwrap()).await.unwrap()
    }
}

impl Transport for Served {
    fn connect(&self, url: String) -> LocalBoxFuture<'static, Result<Socket, NetError>> {
        Box::pin(async move { Err(NetError::unreachable(&url, "no sockets here")) })
    }

    fn request(&self, request: HttpRequest) -> LocalBoxFuture<'static, Result<HttpReply, NetError>> {
        let path = request.url.strip_prefix(RELAY).expect("nothing but the relay is asked");
        let reply = self.0.get(path).cloned().unwrap_or(HttpReply { status: 404, ..HttpReply::default() });
        Box::pin(async move { Ok(reply) })
    }
}

fn files(of: &Served) -> Expected {
    Expected::Files(FileList::read(of.list()).unwrap(), of.hash())
}

#[tokio::test]
async fn the_page_of_a_release_is_the_same_however_the_release_is_given() {
    let page = Served::page(HTML);
    for expected in [Expected::Unknown, Expected::Release(page.hash()), files(&page)] {
        assert_eq!(page.compare(&expected).await, Ok(page.hash()));
    }
}

#[tokio::test]
async fn every_way_to_serve_another_page_is_found() {
    let page = Served::page(HTML);
    let redirect = HttpReply { status: 302, ..HttpReply::default() };
    let endless = HttpReply { status: 200, length: Some(MAX_FILE + 1), ..HttpReply::default() };
    let replied = |path: &str, reply: HttpReply| {
        let mut served = page.clone();
        served.0.insert(path.to_owned(), reply);
        served
    };
    for (served, difference) in [
        (page.clone().with("/page.js", "steal()"), "/page.js differs"),
        (page.clone().with("/index.html", "<script src=/page.js>"), "/index.html differs"),
        (page.clone().with("/", "another page"), "/ differs"),
        (page.clone().with("/bench", "another page"), "/bench differs"),
        (page.clone().with(ROOM, "another page"), "/r/aaaaaaaaaaaaaaaaaaaaaaaaaa differs"),
        // Its files would come from /r/, where nothing is checked.
        (page.clone().with(ROOM, HTML), "/r/aaaaaaaaaaaaaaaaaaaaaaaaaa differs"),
        (
            replied("/base.css", HttpReply { status: 404, ..HttpReply::default() }),
            "/base.css is not there (status 404)",
        ),
        (replied("/base.css", redirect), "/base.css is not there (status 302)"),
        (replied("/base.css", endless), "/base.css is too long"),
    ] {
        assert_eq!(served.differences(&page).await, [difference]);
        for expected in [Expected::Unknown, Expected::Release(page.hash()), files(&page)] {
            let failure = served.compare(&expected).await.unwrap_err();
            assert_eq!(failure.code(), 1, "{difference}: {failure}");
        }
    }
}

#[tokio::test]
async fn another_list_is_another_release_and_says_which() {
    let (page, other) = (Served::page(HTML), Served::page("<p>Another page.</p>"));
    assert_eq!(other.compare(&Expected::Unknown).await, Ok(other.hash()), "it is a page of its own");
    let failure = other.compare(&Expected::Release(page.hash())).await.unwrap_err();
    assert!(failure.to_string().contains(&other.hash().to_string()), "{failure}");
    assert_eq!(
        other.differences(&page).await,
        ["/index.html differs", "/ differs", "/bench differs", "/r/aaaaaaaaaaaaaaaaaaaaaaaaaa differs"]
    );
    assert!(other.compare(&files(&page)).await.is_err());
}

#[tokio::test]
async fn a_file_that_only_the_relays_list_names_is_a_difference() {
    let page = Served::page(HTML);
    let list = String::from_utf8_lossy(page.list()).into_owned();
    let more = page.clone().with("/SHA256SUMS", &format!("{list}{}  more.js\n", FileHash::of(b"more")));
    assert_eq!(more.compare(&files(&page)).await.unwrap_err().code(), 1);
}

/// Its hash would be printed as the release's.
#[tokio::test]
async fn true_files_under_a_false_list_are_no_release() {
    let page = Served::page(HTML);
    let list = String::from_utf8_lossy(page.list())
        .replace(&FileHash::of(b"start()").to_string(), &FileHash::of(b"").to_string());
    let failure = page.clone().with("/SHA256SUMS", &list).compare(&files(&page)).await.unwrap_err();
    assert_eq!(failure.code(), 1, "{failure}");
}

#[tokio::test]
async fn a_page_that_loads_what_is_not_in_its_list_is_no_page_of_a_release() {
    for added in ["<script src=\"https://evil.example/a.js\"></script>", "<script src=/evil.js></script>"] {
        let page = Served::page(&format!("{HTML}{added}"));
        let failure = page.compare(&Expected::Unknown).await.unwrap_err();
        assert_eq!(failure.code(), 1, "{added}: {failure}");
    }
}

#[tokio::test]
async fn a_relay_without_a_list_cannot_be_checked() {
    let mut page = Served::page(HTML);
    page.0.remove("/SHA256SUMS");
    let failure = page.compare(&Expected::Unknown).await.unwrap_err();
    assert_eq!((failure.code(), failure.to_string().contains("404")), (3, true), "{failure}");
    let failure = page.with("/SHA256SUMS", HTML).compare(&Expected::Unknown).await.unwrap_err();
    assert_eq!((failure.code(), failure.to_string().contains("line 1")), (3, true), "{failure}");
}

#[tokio::test]
async fn a_slow_file_has_time_while_it_arrives_and_a_silent_one_has_not() {
    let patience = Duration::from_millis(2);
    let begin = Instant::now();
    let arrived = || begin.elapsed().as_nanos() as u64;
    let slow = while_it_moves(sleep(20 * patience), arrived, begin + patience, patience).await;
    assert_eq!(slow, Some(()));
    let silent = while_it_moves(std::future::pending::<()>(), || 0, Instant::now() + patience, patience).await;
    assert_eq!(silent, None);
}
