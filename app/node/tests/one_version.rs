//! All bytes of a model come from one version of its file, also where a server replaces it by another of the same length and
//! header while it is read.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use common::*;
use potluck_gguf::synthetic::{Architecture, Synthetic};
use potluck_node::native::{Network, platform};
use potluck_node::node::Input;
use potluck_node::open::{OpenError, Opener};
use potluck_node::relay::Relay;
use potluck_node::source::{PendingRequests, Traffic};
use potluck_panel::{ModelSource, NoticeLevel, ToPage};
use potluck_terminal::{NO_RELAY, Session, Setup};

const TEXT: &str = "It was a dark night";
const BUDGET: u64 = 4_000_000_000;

/// Two versions of a file: the same length, the same header, other weights.
fn versions() -> [Vec<u8>; 2] {
    let version = |seed| {
        Synthetic { architecture: Architecture::Llama, blocks: 2, seed, ..Synthetic::default() }.to_bytes().unwrap()
    };
    let [old, new] = [version(1), version(2)];
    let header = Synthetic { architecture: Architecture::Llama, blocks: 2, seed: 1, ..Synthetic::default() };
    let header = header.header().unwrap().data_offset as usize;
    assert!(old.len() == new.len() && old[..header] == new[..header] && old != new, "only weights differ");
    [old, new]
}

/// What a server says of a file's version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Says {
    Etag,
    Modified,
    Nothing,
    /// It is three servers under one name with the same bytes, which take turns for each part of the file. Two have an `ETag` of
    /// their own, one has none.
    Mirrors,
    /// The file is as new as the reply.
    Now,
}

/// What a server sends in place of the file, after so many replies.
#[derive(Clone, Copy)]
enum Instead {
    /// A page that says that it will be back soon, [`PAGES`] times for each of the next parts, [`READS`] at most.
    PageAfter(usize),
    /// Nothing where a sample is asked for that it has sent before.
    NoSampleAgain,
}

/// As often as another version may come before that counts.
const PAGES: usize = 3;
/// As many as are read at a time.
const READS: usize = 6;
/// Bytes of a sample.
const SAMPLE: usize = 4 << 10;

struct Served {
    versions: [Vec<u8>; 2],
    /// The number of the version that is sent.
    now: usize,
    /// Replies with content so far.
    replies: usize,
    /// After so many of them the second version is sent.
    swap_after: usize,
    /// Which of several servers answers, by the beginning of the part that is asked for: the turns must not depend on the order
    /// in which reads at the same time are answered.
    turns: BTreeMap<usize, usize>,
    says: Says,
    instead: Option<Instead>,
    /// Replies so far about parts for which pages are sent, by the part's beginning.
    paged: BTreeMap<usize, usize>,
    /// Parts that have been asked for and are no longer than a sample.
    samples: BTreeSet<(usize, usize)>,
    /// Replies about samples without their bytes.
    refused: usize,
}

impl Served {
    /// Counts a reply about a part, and returns what is sent in place of the file: status and content.
    fn count(&mut self, part: &Range<usize>) -> Option<(&'static str, &'static str)> {
        let start = part.start;
        let is_again = part.len() <= SAMPLE && !self.samples.insert((start, part.end));
        self.replies += 1;
        if self.replies > self.swap_after {
            self.now = 1;
        }
        let parts = self.turns.len();
        *self.turns.entry(start).or_insert(parts) += 1;
        match self.instead? {
            Instead::NoSampleAgain => {
                self.refused += usize::from(is_again);
                is_again.then_some(("404 Not Found", ""))
            }
            Instead::PageAfter(replies) => {
                let is_next = self.replies > replies && self.paged.len() < READS;
                if !is_next && !self.paged.contains_key(&start) {
                    return None;
                }
                let sent = self.paged.entry(start).or_default();
                *sent += 1;
                (*sent <= PAGES).then_some(("200 OK", "<p>Back soon."))
            }
        }
    }

    /// The header lines that name the version of a reply about a part.
    fn names(&self, start: usize) -> String {
        match self.says {
            Says::Etag => format!("ETag: \"{}\"\r\n", self.now),
            Says::Modified => format!("Last-Modified: Mon, 0{} Jun 2026 00:00:00 GMT\r\n", self.now + 1),
            Says::Nothing => String::new(),
            Says::Mirrors => match self.turns.get(&start).map_or(0, |turn| turn % 3) {
                2 => String::new(),
                mirror => format!("ETag: \"mirror {mirror}\"\r\n"),
            },
            Says::Now => format!("Last-Modified: Mon, 01 Jun 2026 00:00:{:02} GMT\r\n", self.replies % 60),
        }
    }
}

/// A server of one file on this machine.
#[derive(Clone)]
struct Server {
    url: String,
    served: Arc<Mutex<Served>>,
}

impl Server {
    fn start(says: Says, swap_after: usize) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/model.gguf", listener.local_addr().unwrap());
        let served = Served {
            versions: versions(),
            now: 0,
            replies: 0,
            swap_after,
            turns: BTreeMap::new(),
            says,
            instead: None,
            paged: BTreeMap::new(),
            samples: BTreeSet::new(),
            refused: 0,
        };
        let served = Arc::new(Mutex::new(served));
        let shared = served.clone();
        std::thread::spawn(move || {
            for socket in listener.incoming() {
                let (socket, served) = (socket.unwrap(), shared.clone());
                std::thread::spawn(move || while answer_one(&socket, &served).is_some() {});
            }
        });
        Self { url, served }
    }

    fn replace(&self) {
        self.served.lock().unwrap().now = 1;
    }

    fn send_instead(self, what: Instead) -> Self {
        self.served.lock().unwrap().instead = Some(what);
        self
    }

    fn replies(&self) -> usize {
        self.served.lock().unwrap().replies
    }

    fn source(&self) -> ModelSource {
        ModelSource::Link { url: self.url.clone() }
    }
}

/// Answers a request; `None` at the end of the connection.
fn answer_one(mut socket: &TcpStream, served: &Mutex<Served>) -> Option<()> {
    let mut lines = BufReader::new(socket).lines();
    let first = lines.next()?.ok()?;
    let mut range = None;
    for line in lines.by_ref() {
        let line = line.ok()?.to_ascii_lowercase();
        if line.is_empty() {
            break;
        }
        if let Some(bytes) = line.strip_prefix("range: bytes=") {
            let (start, end) = bytes.split_once('-')?;
            range = Some(start.parse::<usize>().ok()?..end.parse::<usize>().ok()? + 1);
        }
    }
    let is_head = first.starts_with("HEAD");
    let mut served = served.lock().unwrap();
    let part = range.clone().unwrap_or(0..served.versions[0].len());
    let instead = if is_head { None } else { served.count(&part) };
    if let Some((status, page)) = instead {
        let head = format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\nETag: \"page\"\r\n\r\n{page}", page.len());
        drop(served);
        return socket.write_all(head.as_bytes()).ok();
    }
    let (bytes, names) = (&served.versions[served.now], served.names(part.start));
    let head = match &range {
        Some(range) => format!(
            "HTTP/1.1 206 Partial Content\r\nContent-Range: bytes {}-{}/{}\r\nContent-Length: {}\r\n{names}\r\n",
            range.start,
            range.end - 1,
            bytes.len(),
            range.len()
        ),
        None => format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n{names}\r\n", bytes.len()),
    };
    let content = if is_head { Vec::new() } else { bytes[part].to_vec() };
    drop(served);
    socket.write_all(head.as_bytes()).ok()?;
    socket.write_all(&content).ok()
}

fn network() -> Network {
    Network { relay: NO_RELAY.to_owned(), allow_private_links: true, ..Network::default() }
}

/// What came of hosting a link: an answer, or the sentence of a failure; and what else was said.
async fn outcome(server: &Server, cache: &Path) -> (Result<Vec<u32>, String>, Vec<String>) {
    let mut session = Session::start(Setup { name: "alone".to_owned(), ..Setup::in_folder(&network(), cache) });
    session.send(Input::Alone(command(server.source()), BUDGET, Vec::new()));
    let mut said = Vec::new();
    while !is_up(&session.status, 1) {
        if let ToPage::Notice(notice) = session.next().await.unwrap() {
            if notice.level == NoticeLevel::Error {
                return (Err(notice.sentence), said);
            }
            said.push(notice.sentence);
        }
    }
    (Ok(answer(&mut session, question(1, TEXT, 8), |_| {}).await), said)
}

/// The answers of the two versions.
async fn expected() -> [Vec<u32>; 2] {
    let folder = folder("versions");
    let [old, new] = versions();
    let write = |name: &str, bytes: Vec<u8>| -> PathBuf {
        std::fs::write(folder.join(name), bytes).unwrap();
        folder.join(name)
    };
    let answers = [alone(&write("old.gguf", old), TEXT, 8).await, alone(&write("new.gguf", new), TEXT, 8).await];
    assert_ne!(answers[0], answers[1], "the test tells the versions apart");
    answers
}

#[test]
fn a_file_that_is_replaced_at_any_moment_gives_one_version_or_one_sentence() {
    test(async {
        let answers = expected().await;
        let undisturbed = Server::start(Says::Nothing, usize::MAX);
        assert_eq!(outcome(&undisturbed, &folder("cache")).await.0, Ok(answers[0].clone()));
        let all = undisturbed.replies();
        // Between header and samples, among the samples, before the weights, among them, before the samples that come after them,
        // and before the last reply.
        let moments = [1, 4, all / 3, all / 2, all - 12, all - 1];
        for (says, moments) in
            [(Says::Etag, &moments[2..4]), (Says::Modified, &moments[3..4]), (Says::Nothing, &moments[..])]
        {
            for &moment in moments {
                let cache = folder("cache");
                let server = Server::start(says, moment);
                let (outcome_now, _) = outcome(&server, &cache).await;
                match &outcome_now {
                    Ok(tokens) => assert!(answers.contains(tokens), "a mixture, {says:?} after {moment} of {all}"),
                    Err(sentence) => assert!(sentence.contains("changed while it was read"), "{sentence}"),
                }
                // Opened again, the new version is read, whatever of the old one was stored.
                server.replace();
                let (again, _) = outcome(&server, &cache).await;
                assert_eq!(again, Ok(answers[1].clone()), "{says:?} after {moment} of {all}");
            }
        }
    });
}

#[test]
fn servers_that_name_the_same_bytes_differently_send_one_version() {
    test(async {
        let answers = expected().await;
        for says in [Says::Mirrors, Says::Now] {
            let server = Server::start(says, usize::MAX);
            assert_eq!(outcome(&server, &folder("cache")).await.0, Ok(answers[0].clone()), "{says:?}");
        }
    });
}

#[test]
fn a_page_in_place_of_the_file_is_no_version_of_it() {
    test(async {
        let answers = expected().await;
        let undisturbed = Server::start(Says::Etag, usize::MAX);
        assert_eq!(outcome(&undisturbed, &folder("cache")).await.0, Ok(answers[0].clone()));
        let half = Instead::PageAfter(undisturbed.replies() / 2);
        let server = Server::start(Says::Etag, usize::MAX).send_instead(half);
        assert_eq!(outcome(&server, &folder("cache")).await.0, Ok(answers[0].clone()));
        let paged = server.served.lock().unwrap().paged.clone();
        // How many different parts are still to come depends on how busy the machine is.
        assert!(!paged.is_empty() && paged.values().all(|replies| *replies > PAGES), "{paged:?}");
    });
}

#[test]
fn a_load_that_has_every_byte_needs_its_server_no_more() {
    test(async {
        let answers = expected().await;
        // Samples are read again when all bytes are there. How many replies come before depends on how busy the machine is.
        let server = Server::start(Says::Etag, usize::MAX).send_instead(Instead::NoSampleAgain);
        assert_eq!(outcome(&server, &folder("cache")).await.0, Ok(answers[0].clone()));
        assert!(server.served.lock().unwrap().refused > 0, "the server was asked for a sample again");
    });
}

#[test]
fn a_visit_after_the_file_was_replaced_does_not_use_what_is_stored() {
    test(async {
        let answers = expected().await;
        let (server, cache) = (Server::start(Says::Nothing, usize::MAX), folder("cache"));
        assert_eq!(outcome(&server, &cache).await.0, Ok(answers[0].clone()));
        server.replace();
        assert_eq!(outcome(&server, &cache).await.0, Ok(answers[1].clone()));
    });
}

fn opener() -> Opener {
    let platform = platform(folder("cache"), &network());
    let requests = PendingRequests::new(potluck_node::events::channel::<potluck_protocol::PieceRequest>().0.sink());
    Opener { relay: Relay::new(platform.clone(), NO_RELAY), platform, traffic: Traffic::default(), requests }
}

#[test]
fn host_and_worker_do_not_compute_with_two_versions() {
    test(async {
        let server = Server::start(Says::Nothing, usize::MAX);
        let (model, _) = opener().open(&server.source(), &[], |_, _| {}).await.unwrap();
        assert!(opener().open_card(&model.card, &[]).await.is_ok());
        server.replace();
        let refused = opener().open_card(&model.card, &[]).await;
        assert!(matches!(refused, Err(OpenError::Changed(_))), "{:?}", refused.err());
    });
}

#[test]
fn a_stored_copy_that_differs_from_its_source_is_loaded_again() {
    test(async {
        let answers = expected().await;
        let (server, cache) = (Server::start(Says::Nothing, usize::MAX), folder("cache"));
        assert_eq!(outcome(&server, &cache).await.0, Ok(answers[0].clone()));
        let mut folders = std::fs::read_dir(&cache).unwrap().map(|entry| entry.unwrap().path());
        let model = folders.find(|path| path.is_dir() && !path.ends_with("locks") && !path.ends_with("0".repeat(64)));
        for blob in std::fs::read_dir(model.unwrap()).unwrap().map(|entry| entry.unwrap().path()) {
            let name = blob.file_name().unwrap().to_string_lossy().into_owned();
            if ["embedding", "head", "mixer", "dense"].iter().any(|unit| name.starts_with(unit)) {
                let other: Vec<u8> = std::fs::read(&blob).unwrap().iter().map(|byte| byte ^ 1).collect();
                std::fs::write(&blob, other).unwrap();
            }
        }
        let (again, said) = outcome(&server, &cache).await;
        assert_eq!(again, Ok(answers[0].clone()));
        assert!(said.iter().any(|sentence| sentence.contains("stored copy")), "{said:?}");
    });
}
