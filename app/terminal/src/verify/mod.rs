//! `potluck-node verify RELAY`: compares the page that a relay serves with a release.

mod addresses;
mod list;

use std::path::PathBuf;
use std::pin::pin;
use std::time::Duration;

use potluck_node::native::{Fingerprint, NativeTransport, Network};
use potluck_node::platform::{HttpReply, HttpRequest, NetError, Transport};
use potluck_relay_api::base::in_room;
use potluck_text::texts;
use tokio::time::{Instant, sleep, sleep_until};

use self::addresses::{addresses, file_of};
pub use self::list::FileHash;
use self::list::{FileList, INDEX};
use crate::failure::Failure;
use crate::options::DEFAULT_TIMEOUT;
use crate::output::{Progress, print, progress, say};
use crate::printable::Printable;
use crate::signals::Stop;
use crate::values::parse_relay;

/// Where the relay has the list of the page's files.
const LIST: &str = "SHA256SUMS";
/// Where the relay shows the page besides `index.html`.
const VIEWS: [&str; 2] = ["/", "/bench"];
/// A room that nobody has opened: the page with another base.
const ROOM: &str = "/r/aaaaaaaaaaaaaaaaaaaaaaaaaa";
/// No list is longer.
const MAX_LIST: usize = 256 << 10;
/// No file of a page is longer. A reply that is longer is not read to its end.
const MAX_FILE: u64 = 64 << 20;
/// However slowly the files arrive, they take no longer than this.
const MAX_TIME: Duration = Duration::from_secs(3_600);
/// Time between two calls of a relay that does not answer.
const AGAIN: Duration = Duration::from_secs(1);

/// Options of `verify`.
#[derive(Clone, Debug, PartialEq, clap::Args)]
pub struct VerifyOptions {
    /// The relay's address, with http:// or https://
    #[arg(value_name = "RELAY", value_parser = parse_relay)]
    pub relay: String,
    /// The release's hash, as published with it: the SHA-256 of its file SHA256SUMS
    #[arg(long, value_name = "HEX", conflicts_with = "sums")]
    pub release: Option<FileHash>,
    /// The release's file SHA256SUMS. With it, each file that differs is named
    #[arg(long, value_name = "FILE")]
    pub sums: Option<PathBuf>,
    /// SHA-256 fingerprint of the relay's certificate authority, or of its certificate, as the relay shows it. Needed if no public
    /// authority vouches for the relay
    #[arg(long, value_name = "HEX")]
    pub relay_fingerprint: Option<Fingerprint>,
    /// Give up after this many seconds without progress
    #[arg(long, value_name = "SECONDS", default_value_t = DEFAULT_TIMEOUT, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    pub timeout: u64,
}

/// What the page is compared with.
enum Expected {
    /// Nothing but the relay's own list.
    Unknown,
    /// The hash of a release's list.
    Release(FileHash),
    /// A release's list and its hash.
    Files(FileList, FileHash),
}

/// Compares, prints each difference, and at the end the release's hash to standard output.
///
/// # Errors
/// The page differs, or cannot be compared.
pub(crate) async fn verify(options: &VerifyOptions, stop: &Stop) -> Result<(), Failure> {
    let expected = expected(options)?;
    let network =
        Network { relay: options.relay.clone(), relay_fingerprint: options.relay_fingerprint, ..Network::default() };
    let transport = NativeTransport::new(&network);
    let patience = Duration::from_secs(options.timeout);
    let page = ServedPage { relay: &options.relay, transport: &transport, patience };
    let mut stop = stop.clone();
    let hash = tokio::select! {
        biased;
        signal = stop.stopped() => return Err(Failure::Stopped(signal)),
        () = sleep(MAX_TIME) => {
            return Err(Failure::Room(texts().verify.too_slow(&options.relay, MAX_TIME.as_secs())));
        }
        compared = page.compare(&expected) => compared?,
    };
    print(&Printable::lines(&format!("{hash}\n")))
}

fn expected(options: &VerifyOptions) -> Result<Expected, Failure> {
    let texts = &texts().verify;
    Ok(match (&options.sums, options.release) {
        (Some(path), _) => {
            let shown = path.display().to_string();
            let bytes =
                std::fs::read(path).map_err(|error| Failure::Usage(texts.unreadable(&shown, error.to_string())))?;
            let list = FileList::read(&bytes).map_err(|fault| Failure::Usage(texts.no_sums(&shown, fault)))?;
            Expected::Files(list, FileHash::of(&bytes))
        }
        (None, Some(hash)) => Expected::Release(hash),
        (None, None) => Expected::Unknown,
    })
}

/// The page that a relay serves.
struct ServedPage<'a> {
    relay: &'a str,
    transport: &'a dyn Transport,
    patience: Duration,
}

impl ServedPage<'_> {
    /// The release's hash, if everything is as expected.
    async fn compare(&self, expected: &Expected) -> Result<FileHash, Failure> {
        let texts = &texts().verify;
        let reply = self.read(&format!("/{LIST}")).await?;
        if reply.status != 200 {
            return Err(Failure::Room(texts.no_list(self.relay, reply.status)));
        }
        let no_list = |fault: String| Failure::Room(texts.bad_list(self.relay, fault));
        if is_too_long(&reply) || reply.body.len() > MAX_LIST {
            return Err(no_list(texts.bad_length().to_owned()));
        }
        let served = FileList::read(&reply.body).map_err(no_list)?;
        let hash = FileHash::of(&reply.body);
        if let Expected::Release(release) = expected
            && *release != hash
        {
            return Err(Failure::Failed(texts.other_release(self.relay, hash.to_string())));
        }
        let list = if let Expected::Files(list, _) = expected { list } else { &served };
        let mut faults: Vec<String> =
            served.0.keys().filter(|name| !list.has(name)).map(|name| texts.extra(name)).collect();
        if matches!(expected, Expected::Files(_, release) if *release != hash) {
            faults.push(texts.differs(format!("/{LIST}")));
        }
        faults.extend(self.files_that_differ(list).await?);
        let files = list.0.len() as u64;
        if !faults.is_empty() {
            faults.iter().for_each(say);
            let sentence = match expected {
                Expected::Unknown => texts.not_its_own(self.relay),
                Expected::Release(_) | Expected::Files(..) => texts.not_the_release(self.relay),
            };
            return Err(Failure::Failed(sentence));
        }
        say(match expected {
            Expected::Unknown => texts.consistent(self.relay, files),
            Expected::Release(_) | Expected::Files(..) => texts.same(self.relay, files),
        });
        Ok(hash)
    }

    /// Fetches every file of a list, and the page wherever the relay shows it.
    async fn files_that_differ(&self, list: &FileList) -> Result<Vec<String>, Failure> {
        let files = list.0.iter().map(|(name, hash)| (format!("/{name}"), *hash));
        let index = list.0.get(INDEX).into_iter();
        let views = index.flat_map(|hash| VIEWS.iter().chain([&ROOM]).map(move |view| ((*view).to_owned(), *hash)));
        let paths: Vec<(String, FileHash)> = files.chain(views).collect();
        let (texts, mut faults) = (&texts().verify, Vec::new());
        let in_folder = self.relay.matches('/').count() > 2;
        let mut room = None;
        for (done, (path, hash)) in paths.iter().enumerate() {
            let hash = room.as_ref().filter(|_| path == ROOM).unwrap_or(hash);
            let line = texts.checking(done as u64, paths.len() as u64);
            progress(&Progress { step: self.relay, share: Some(done as f64 / paths.len() as f64), line });
            let reply = self.read(path).await?;
            if reply.status != 200 {
                faults.push(texts.missing(path, reply.status));
            } else if is_too_long(&reply) {
                faults.push(texts.too_long(path));
            } else if FileHash::of(&reply.body) != *hash {
                faults.push(texts.differs(path));
            } else if path.ends_with(INDEX) {
                let html = String::from_utf8_lossy(&reply.body);
                let is_outside =
                    |address: &&str| file_of(address, in_folder).is_none_or(|file| !file.is_empty() && !list.has(file));
                faults.extend(addresses(&html).into_iter().filter(is_outside).map(|address| texts.outside(address)));
            } else if VIEWS.contains(&path.as_str()) {
                room = Some(FileHash::of(in_room(&String::from_utf8_lossy(&reply.body)).as_bytes()));
            }
        }
        Ok(faults)
    }

    /// Reads a path of the relay, again and again until it answers or patience ends. Redirects are answers: nobody follows them.
    async fn read(&self, path: &str) -> Result<HttpReply, Failure> {
        let (url, terminal) = (format!("{}{path}", self.relay), &texts().terminal);
        let late = Instant::now() + self.patience;
        let mut cause = None;
        let give_up = |cause: Option<String>| {
            let cause = cause.unwrap_or_else(|| terminal.nothing_heard().to_owned());
            Failure::Room(terminal.no_relay(self.relay, cause, self.patience.as_secs()))
        };
        loop {
            let request = HttpRequest::get(&url);
            let arrived = request.arrived.clone();
            let reply = self.transport.request(request);
            let answered = while_it_moves(reply, || arrived.bytes(), late, self.patience).await;
            match answered {
                None => return Err(give_up(cause)),
                Some(Ok(reply)) => return Ok(reply),
                Some(Err(NetError::Unreachable { reason, .. })) => {
                    if cause.as_ref() != Some(&reason) {
                        say(terminal.relay_silent(&reason));
                    }
                    cause = Some(reason);
                }
                Some(Err(error)) => return Err(Failure::Room(error.to_string())),
            }
            if Instant::now() + AGAIN >= late {
                return Err(give_up(cause));
            }
            sleep(AGAIN).await;
        }
    }
}

/// More than [`MAX_FILE`] was announced or sent. What was announced as longer was not read.
fn is_too_long(reply: &HttpReply) -> bool {
    reply.length.is_some_and(|length| length > MAX_FILE) || reply.body.len() as u64 > MAX_FILE
}

/// Waits for `work` until `late`, and longer while bytes arrive; `None` if nothing arrives for `patience`.
async fn while_it_moves<T>(
    work: impl Future<Output = T>,
    arrived: impl Fn() -> u64,
    mut late: Instant,
    patience: Duration,
) -> Option<T> {
    let mut work = pin!(work);
    let mut before = 0;
    loop {
        tokio::select! {
            done = &mut work => return Some(done),
            () = sleep_until(late) => {
                let now = arrived();
                if now == before {
                    return None;
                }
                (before, late) = (now, Instant::now() + patience);
            }
        }
    }
}

#[cfg(test)]
mod tests;
