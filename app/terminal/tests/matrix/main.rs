//! Every verb of the command line in every failure: it ends, with its exit code and one sentence, and standard output has nothing
//! that does not belong there.
#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod files;
mod models;
mod process;
mod world;

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use process::{Ended, Out, Running};
use world::World;

/// What the program is asked to do. The rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verb {
    Run,
    Bench,
    Host,
    HostAndAsk,
    Contribute,
    Visit,
    Ask,
    Serve,
    Verify,
    Pull,
    List,
    Remove,
    Show,
    Doctor,
}

use Verb::{Ask, Bench, Contribute, Doctor, Host, HostAndAsk, List, Pull, Remove, Run, Serve, Show, Verify, Visit};

const ALL: &[Verb] =
    &[Run, Bench, Host, HostAndAsk, Contribute, Visit, Ask, Serve, Verify, Pull, List, Remove, Show, Doctor];
const OPENING: &[Verb] = &[Run, Bench, Host, HostAndAsk, Serve, Show];
const CONNECTED: &[Verb] = &[Host, HostAndAsk, Contribute, Visit, Ask];
/// With a relay.
const CALLING: &[Verb] = &[Host, HostAndAsk, Contribute, Visit, Ask, Verify];
/// With the cache alone.
const STORED: &[Verb] = &[Pull, List, Remove, Show];
const JOINING: &[Verb] = &[Contribute, Visit, Ask];

impl Verb {
    /// The command line.
    fn line(self, failure: &Failure, world: &World) -> Vec<String> {
        let question = ["--raw", "--prompt", "a", "--max-tokens", "2"];
        let in_room = |relay: &str| format!("{relay}/r/{}", room_of(&world.room));
        let relay = failure.relay.map_or(world.plain.as_str(), |relay| relay(world));
        let link = failure.link.map(|link| link(world)).or(failure.relay.map(|relay| in_room(relay(world))));
        let link = link.unwrap_or_else(|| world.room.clone());
        let model = failure.model.map_or_else(
            || "model.gguf".to_owned(),
            |model| model.replace("RELAY", relay).replace("PORTAL", &world.portal),
        );
        let (first, rest): (Vec<&str>, &[&str]) = match self {
            Run => (vec!["run", &model, "--context", "256"], &question),
            Bench => (
                vec![
                    "run",
                    &model,
                    "--context",
                    "256",
                    "--bench",
                    "--workloads",
                    "2/2",
                    "--depths",
                    "0",
                    "--runs",
                    "1",
                ],
                &[],
            ),
            Host => (vec!["host", &model, "--context", "256", "--relay", relay], &[]),
            HostAndAsk => (vec!["host", &model, "--context", "256", "--relay", relay], &question),
            Contribute => (vec!["join", &link], &[]),
            Visit => (vec!["join", &link, "--guest"], &[]),
            Ask => (vec!["join", &link, "--guest"], &question),
            Serve => (vec!["serve", &model, "--context", "256", "--listen", "127.0.0.1:0"], &[]),
            Verify => (vec!["verify", relay], &[]),
            Pull => (vec!["pull", &model], &[]),
            List => (vec!["list"], &[]),
            Remove => (vec!["rm", "tiny"], &[]),
            Show => (vec!["show", &model, "--context", "256"], &[]),
            Doctor => (vec!["doctor", "--relay", relay], &[]),
        };
        let own = ["--cache", failure.cache.unwrap_or("cache"), "--timeout", failure.timeout.unwrap_or("90")];
        let own = match self {
            // It keeps nothing.
            Verify => &own[2..],
            // They wait for nothing.
            List | Remove | Show => &own[..2],
            _ => &own[..],
        };
        let options = own.iter().chain(failure.options).copied();
        let all = first.into_iter().chain(rest.iter().copied()).chain(options);
        all.map(str::to_owned).collect()
    }
}

/// `ROOM#KEY` of a link.
fn room_of(link: &str) -> &str {
    link.split_once("/r/").unwrap().1
}

/// What goes wrong. The columns.
struct Failure {
    /// Its name in a report.
    name: &'static str,
    /// For which verbs it can happen.
    verbs: &'static [Verb],
    /// What the command line has besides.
    options: &'static [&'static str],
    model: Option<&'static str>,
    relay: Option<fn(&World) -> &str>,
    link: Option<fn(&World) -> String>,
    cache: Option<&'static str>,
    timeout: Option<&'static str>,
    out: Out,
    /// Once this is printed, this signal comes.
    signal: Option<(&'static str, &'static str)>,
    /// Its exit code.
    code: i32,
    /// What its sentence says. Nothing: there is no sentence.
    says: &'static [&'static str],
}

const NONE: Failure = Failure {
    name: "",
    verbs: ALL,
    options: &[],
    model: None,
    relay: None,
    link: None,
    cache: None,
    timeout: None,
    out: Out::Read,
    signal: None,
    code: 1,
    says: &[],
};

/// Something that the person at the terminal has to write otherwise.
const fn usage(name: &'static str, verbs: &'static [Verb], says: &'static [&'static str]) -> Failure {
    Failure { name, verbs, code: 2, says, ..NONE }
}

/// A model that cannot be used.
const fn model(name: &'static str, model: &'static str, code: i32, says: &'static [&'static str]) -> Failure {
    Failure { name, verbs: OPENING, model: Some(model), code, says, ..NONE }
}

/// A relay that cannot be used.
const fn relay(name: &'static str, relay: fn(&World) -> &str, says: &'static [&'static str]) -> Failure {
    Failure { name, verbs: CALLING, relay: Some(relay), timeout: Some("5"), code: 3, says, ..NONE }
}

/// Something that `doctor` finds. What it is stands on standard output.
const fn doctor(name: &'static str, options: &'static [&'static str], relay: fn(&World) -> &str, code: i32) -> Failure {
    let says: &[&str] = &["Something is wrong", "\"bad\""];
    Failure { name, verbs: &[Doctor], options, relay: Some(relay), timeout: Some("60"), code, says, ..NONE }
}

/// A page that is not that of a release.
const fn page(name: &'static str, relay: fn(&World) -> &str, code: i32, says: &'static [&'static str]) -> Failure {
    Failure { name, verbs: &[Verify], relay: Some(relay), code, says, ..NONE }
}

/// A room that cannot be entered.
const fn room(name: &'static str, link: fn(&World) -> String, says: &'static [&'static str]) -> Failure {
    Failure { name, verbs: JOINING, link: Some(link), timeout: Some("10"), code: 3, says, ..NONE }
}

const fn stopped(
    name: &'static str,
    verbs: &'static [Verb],
    after: &'static str,
    signal: &'static str,
    code: i32,
) -> Failure {
    Failure { name, verbs, signal: Some((after, signal)), code, ..NONE }
}

fn with_tls(origin: &str) -> String {
    origin.replace("http://", "https://")
}

#[rustfmt::skip]
fn failures() -> Vec<Failure> {
    vec![
        Failure { options: &["--frobnicate"], ..usage("an option that there is not", ALL, &["--frobnicate", "--help"]) },
        Failure { options: &["--max-tokens", "many"], ..usage("a value that is none", &[Run, HostAndAsk, Ask], &["many", "--max-tokens"]) },
        Failure { options: &["--timeout", "0"], ..usage("a timeout of nothing", ALL, &["--timeout"]) },
        Failure { relay: Some(|_| "ftp://localhost"), ..usage("a relay by FTP", CALLING, &["http"]) },
        Failure { relay: Some(|_| "http://localhost:99999"), ..usage("a port that there is not", CALLING, &["expected"]) },
        Failure { link: Some(|_| "http://localhost/elsewhere".into()), ..usage("a link to no room", JOINING, &["a room's link"]) },
        Failure { link: Some(|_| "-".into()), ..usage("a link from an input that has none", JOINING, &["not a room link"]) },
        Failure { link: Some(|world| format!("{}&fp=12", world.room)), ..usage("a damaged fingerprint", JOINING, &["64 hexadecimal digits"]) },
        Failure { model: Some("modle.gguf"), ..usage("a typo in a file's name", OPENING, &["no file modle.gguf", "Did you mean model.gguf?"]) },
        Failure { model: Some("\u{1b}]52;c;aGk=\u{7}\u{9b}2J\u{202e}.gguf"), ..usage("a name that commands the terminal", OPENING, &["There is no file"]) },
        Failure { model: Some("models/"), ..usage("a folder", OPENING, &["is a folder", "models/first.gguf"]) },
        Failure { model: Some("/dev/null"), ..usage("a device", OPENING, &["/dev/null"]) },
        model("an empty file", "empty.gguf", 1, &["empty.gguf is empty"]),
        model("a web page", "page.gguf", 1, &["GGUF"]),
        model("half a file", "half.gguf", 1, &["truncated"]),
        Failure { verbs: &[Host, HostAndAsk], options: &["--allow-private-links"], ..model("a link to a web page", "PORTAL/model.gguf", 1, &["GGUF"]) },
        Failure { verbs: &[Run, Bench, Pull, Show], ..model("one's own link to a web page", "PORTAL/model.gguf", 1, &["GGUF"]) },
        Failure { verbs: &[Pull], ..model("a file where a link is expected", "model.gguf", 2, &["is not a link", "hf.co/OWNER/REPO"]) },
        Failure { verbs: &[Run, Bench, Host, HostAndAsk, Pull, Show], ..model("a link to nothing", "https://no-such-host.invalid/a.gguf", 1, &["no-such-host.invalid"]) },
        Failure { verbs: &[Host, HostAndAsk], ..model("a name that the relay lacks", "tniy", 1, &["no model called \"tniy\"", "It has tiny"]) },
        Failure { verbs: &[Host, HostAndAsk], relay: Some(|world| &world.nowhere), ..model("the model of a relay that is not there", "tiny", 3, &["refused"]) },
        Failure { verbs: &[Host], options: &["--protect"], ..model("the relay's model, protected", "tiny", 2, &["--protect"]) },
        Failure { name: "a KV cache type that the heads are too narrow for", verbs: OPENING, model: Some("narrow.gguf"), options: &["--kv", "q8_0"], code: 1, says: &["q8_0"], ..NONE },
        Failure { name: "too little memory", verbs: &[Run, Serve], options: &["--budget", "1M"], code: 1, says: &["more it fits"], ..NONE },
        Failure { name: "an adapter that there is not", verbs: &[Run, Bench, Contribute, Serve], options: &["--gpu", "nosuch"], code: 1, says: &["\"nosuch\"", "This device has"], ..NONE },
        Failure { model: Some("llama3.2"), ..usage("a name of another program", &[Run, Bench, Show], &["no stored model is called so", "pull LINK"]) },
        Failure { options: &["-p"], ..usage("an option of another program", ALL, &["-p", "--help lists the options"]) },
        usage("a model that is not stored", &[Remove], &["No stored model is called tiny", "potluck-node list"]),
        Failure { name: "models stored where a file is", verbs: STORED, model: Some("PORTAL/model.gguf"), cache: Some("in-the-way"), code: 1, says: &["in-the-way"], ..NONE },
        Failure { name: "a cache where a file is", verbs: CONNECTED, cache: Some("in-the-way"), code: 1, says: &["in-the-way"], ..NONE },
        doctor("a GPU that there is not, examined", &["--gpu", "nosuch"], |world| &world.plain, 1),
        doctor("nothing listens, examined", &[], |world| &world.nowhere, 3),
        doctor("a captive portal, examined", &[], |world| &world.portal, 3),
        doctor("a server that says nothing, examined", &[], |world| &world.silent, 3),
        Failure { cache: Some("in-the-way"), ..doctor("a cache where a file is, examined", &[], |world| &world.plain, 1) },
        relay("nothing listens", |world| &world.nowhere, &["has not answered for 5 s", "refused"]),
        relay("no such name", |_| "http://no-such-host.invalid", &["no-such-host.invalid", "has not answered for 5 s"]),
        Failure { verbs: CONNECTED, ..relay("a captive portal", |world| &world.portal, &["cannot be used as a relay", "status 200"]) },
        relay("a server that says nothing", |world| &world.silent, &["has not answered for 5 s"]),
        relay("a server that closes", |world| &world.closing, &["has not answered for 5 s"]),
        relay("http where TLS is spoken", |world| &world.tls_only, &["cannot be used as a relay", "https://"]),
        page("a captive portal instead of a page", |world| &world.portal, 3, &["The file list of", "line 1"]),
        page("a relay without a page", |world| &world.without_page, 3, &["no list", "status 503"]),
        page("a file that was changed", |world| &world.changed, 1, &["/page.js differs", "does not match its own list"]),
        page("another certificate", |world| &world.relay_tls, 3, &["--relay-fingerprint"]),
        Failure { options: &["--release", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"], ..page("another release", |world| &world.plain, 1, &["another release"]) },
        Failure { options: &["--sums", "other-release"], ..page("the list of another release", |world| &world.plain, 1, &["/page.js differs", "differs from the release"]) },
        Failure { options: &["--release", "ba78"], ..usage("half a hash", &[Verify], &["64 hexadecimal digits", "--release"]) },
        Failure { options: &["--sums", "nowhere"], ..usage("a list that is not there", &[Verify], &["nowhere cannot be read"]) },
        Failure { options: &["--sums", "page.gguf"], ..usage("a list that is none", &[Verify], &["page.gguf is not a release's list", "line 1"]) },
        room("no such room", |world| format!("{}/r/nosuchroom234567nosuchroom#CQkJCQkJCQkJCQkJCQkJCQ", world.plain), &["room"]),
        room("half a link", |world| world.room.split_at(world.room.len() - 5).0.to_owned(), &["link"]),
        room("TLS where there is none", |world| with_tls(&world.room), &["cannot be used as a relay", "http://"]),
        room("a certificate that nobody signed", |world| format!("{}/r/{}", world.relay_tls, room_of(&world.room)), &["--relay-fingerprint"]),
        room("another fingerprint", |world| format!("{}/r/{}&fp={}", world.relay_tls, room_of(&world.room), "ab".repeat(32)), &["another fingerprint"]),
        Failure { name: "the model of a relay with a certificate that nobody signed", verbs: &[Host], model: Some("tiny"), relay: Some(|world| &world.relay_tls), code: 3, says: &["--relay-fingerprint"], ..NONE },
        Failure { verbs: &[Ask], ..room("a dead host", |world| world.dead_room.clone(), &["host"]) },
        Failure { name: "a full disk", verbs: &[Run, Bench, Host, HostAndAsk, Ask, Serve, Verify, Show, Doctor], out: Out::Full, code: 1, says: &["cannot be written", "No space left"], ..NONE },
        Failure { name: "a closed pipe", verbs: &[Run, Bench, Host, HostAndAsk, Ask, Serve, Verify, Show, Doctor], out: Out::Closed, code: 141, ..NONE },
        Failure { options: &["--max-tokens", "200"], ..stopped("Ctrl-C while it opens or answers", &[Run], "Opening", "INT", 130) },
        stopped("Ctrl-C while programs may ask", &[Serve], "/v1", "INT", 130),
        Failure { options: &["--listen", "192.0.2.1:80", "--api-key", "k"], ..usage("an address that this machine lacks", &[Serve], &["192.0.2.1:80", "--listen"]) },
        Failure { options: &["--listen", "0.0.0.0:0"], ..usage("an address that others reach, without a key", &[Serve], &["--api-key-file"]) },
        stopped("Ctrl-C in a room", &[Host], "/r/", "INT", 130),
        stopped("Ctrl-C of who computes", &[Contribute], "Connecting", "INT", 130),
        stopped("a request to end", &[Host], "/r/", "TERM", 143),
        Failure { relay: Some(|world| &world.nowhere), ..stopped("Ctrl-C while the relay is called", CALLING, "does not answer", "INT", 130) },
    ]
}

/// What is wrong with an end.
fn faults(verb: Verb, failure: &Failure, Ended { code, out, err }: &Ended) -> Vec<String> {
    let mut faults = Vec::new();
    match code {
        None => faults.push("it did not end".to_owned()),
        Some(code) if *code != failure.code => faults.push(format!("exit code {code} instead of {}", failure.code)),
        Some(_) => {}
    }
    let lines: Vec<&str> = err.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    if lines.iter().any(|line| line.contains("panicked") || line.contains("backtrace")) {
        faults.push("it panicked".to_owned());
    }
    // What a room does may come again ("Waiting for the host"), and so may a load. What fails is said once.
    let sentences: Vec<&str> = lines.iter().copied().filter(|line| line.ends_with('.')).collect();
    let is_repeated = sentences.windows(2).any(|pair| pair[0] == pair[1]);
    let is_end_repeated = sentences.split_last().is_some_and(|(end, before)| before.contains(end));
    if is_repeated || is_end_repeated {
        faults.push("it said something twice".to_owned());
    }
    let last = lines.iter().rev().take(2).rev().copied().collect::<Vec<_>>().join("\n");
    for part in failure.says {
        if !last.contains(part) {
            faults.push(format!("its sentence lacks {part:?}"));
        }
    }
    let words = ["Reload", "this tab", "browser", "the page"];
    faults.extend(words.iter().filter(|word| err.contains(**word)).map(|word| format!("{word:?} in a terminal")));
    // A name, a reason or an answer that reaches the terminal as a command may write its clipboard.
    if out.chars().chain(err.chars()).any(|letter| letter.is_control() && !matches!(letter, '\n' | '\t')) {
        faults.push("it printed a control character".to_owned());
    }
    // A host's link is what it was asked for, as is the address of what is served. Verify prints the hash at the end only.
    let is_clean = verb == Doctor
        || out.is_empty()
        || (matches!(verb, Host | HostAndAsk | Run | Serve) && out.trim().lines().count() == 1);
    if !is_clean {
        faults.push("it printed something else than an answer or a link".to_owned());
    }
    faults
}

#[test]
fn every_verb_ends_in_every_failure_with_its_code_and_a_sentence() {
    let world = World::with_rooms("matrix");
    let failures = failures();
    let cells: Vec<(Verb, &Failure)> =
        failures.iter().flat_map(|failure| failure.verbs.iter().map(move |verb| (*verb, failure))).collect();
    let next = AtomicUsize::new(0);
    let work = || {
        let mut wrong = Vec::new();
        while let Some((verb, failure)) = cells.get(next.fetch_add(1, Ordering::Relaxed)) {
            let line = verb.line(failure, &world);
            let mut running = process::start(&world.folder, &line, failure.out);
            if let Some((after, signal)) = failure.signal {
                running.until(after);
                running.signal(signal);
            }
            let ended = running.end();
            let faults = faults(*verb, failure, &ended);
            if !faults.is_empty() {
                let Ended { out, err, .. } = &ended;
                wrong.push(format!(
                    "{verb:?} with {}: {}\n  {}\n--- out\n{out}\n--- err\n{err}",
                    failure.name,
                    faults.join(", "),
                    line.join(" ")
                ));
            }
        }
        wrong
    };
    let wrong: Vec<String> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..8).map(|_| scope.spawn(work)).collect();
        workers.into_iter().flat_map(|worker| worker.join().unwrap()).collect()
    });
    assert!(wrong.is_empty(), "{} of {} cells:\n\n{}", wrong.len(), cells.len(), wrong.join("\n\n"));
}

/// Starts a command line.
fn start(world: &World, line: &[&str]) -> Running {
    let line: Vec<String> = line.iter().copied().chain(["--cache", "cache"]).map(str::to_owned).collect();
    process::start(&world.folder, &line, Out::Read)
}

#[test]
fn a_long_prompt_shows_how_much_of_it_is_read_and_a_cut_answer_says_so() {
    let world = World::new("prompt");
    let prompt = "once upon a time ".repeat(220);
    let line = ["run", "model.gguf", "--raw", "--prompt", &prompt, "--max-tokens", "2", "--context", "2048"];
    let Ended { code, out, err } = start(&world, &line).end();
    assert_eq!(code, Some(0), "{err}");
    assert!(!out.trim().is_empty());
    let reading: Vec<&str> = err.lines().filter(|line| line.contains("Reading the prompt")).collect();
    assert!(reading.iter().any(|line| line.contains("tok/s")), "{err}");
    assert!(reading.len() <= 12, "a line for each tenth: {err}");
    let cut = err.lines().last().unwrap_or_default();
    assert!(cut.contains("cut at 2 tokens") && cut.contains("--max-tokens"), "{err}");
    let prompt = "once upon a time ".repeat(7);
    let line = ["run", "model.gguf", "--raw", "--prompt", &prompt, "--max-tokens", "500", "--context", "64"];
    let filled = start(&world, &line).end();
    assert!(filled.err.contains("context of 64 tokens"), "{}", filled.err);
}

#[test]
fn who_asks_hears_that_the_host_ended_the_room() {
    let world = World::new("ended");
    let (host, link) = world::host(&world.folder, &world.plain);
    let line = ["join", &link, "--guest", "--raw", "--prompt", "a", "--max-tokens", "200"];
    let mut asking = start(&world, &line);
    asking.until("ms per token");
    host.signal("TERM");
    assert_eq!(host.end().code, Some(143));
    let Ended { code, err, .. } = asking.end();
    // The answer may just have been complete.
    assert!(code == Some(3) && err.contains("ended this room") || code == Some(0), "{code:?}: {err}");
}

#[test]
fn of_two_hosts_of_one_room_the_first_ends() {
    let world = World::new("twice");
    let line = ["host", "model.gguf", "--relay", &world.plain, "--context", "256", "--room-keys", "room.json"];
    let mut first = start(&world, &line);
    assert!(first.until("ms per token"));
    let mut second = start(&world, &line);
    let Ended { code, err, .. } = first.end();
    assert_eq!(code, Some(3), "{err}");
    assert!(second.until("/r/"));
    second.signal("INT");
    assert_eq!(second.end().code, Some(130));
}

#[test]
fn a_second_ctrl_c_ends_at_once() {
    let world = World::new("at-once");
    let mut host = start(&world, &["host", "model.gguf", "--relay", &world.silent]);
    assert!(host.until("Connecting to the relay"));
    host.signal("INT");
    host.signal("INT");
    assert_eq!(host.end().code, Some(130));
}

#[test]
fn verify_prints_the_hash_of_the_page_that_it_compared() {
    let world = World::new("verify");
    let folder = world.folder.clone();
    let verify = |relay: &str, options: &[&str]| {
        let line: Vec<String> = ["verify", relay].iter().chain(options).map(|part| (*part).to_owned()).collect();
        process::start(&folder, &line, Out::Read).end()
    };
    let Ended { code, out, err } = verify(&world.plain, &[]);
    assert_eq!((code, out.trim().len()), (Some(0), 64), "{err}");
    assert!(err.contains("That alone proves nothing"), "{err}");
    for options in [["--release", out.trim()], ["--sums", "page/SHA256SUMS"]] {
        let Ended { code, out: again, err } = verify(&world.plain, &options);
        assert_eq!((code, again.as_str()), (Some(0), out.as_str()), "{options:?}: {err}");
        assert!(err.contains("serves the 2 files of this release"), "{err}");
        let Ended { code, out, err } = verify(&world.changed, &options);
        assert_eq!((code, out.as_str()), (Some(1), ""), "{options:?}: {err}");
        assert!(err.contains("/page.js differs") && err.contains("Do not open it."), "{err}");
    }
}

#[test]
fn a_run_without_a_question_says_how_to_ask_one() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("no-question");
    std::fs::create_dir_all(&folder).unwrap();
    let line = ["run", "model.gguf", "--cache", "cache"].map(str::to_owned);
    let ended = process::start(&folder, &line, Out::Read).end();
    assert!(ended.code == Some(2) && ended.err.contains("--prompt"), "{:?} {}", ended.code, ended.err);
}
