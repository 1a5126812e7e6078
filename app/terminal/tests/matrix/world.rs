//! What the program meets: models, a relay, and servers that are none.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::path::{Path, PathBuf};

use potluck_gguf::synthetic::{Architecture, Synthetic};
use potluck_relay::limits::Limits;
use potluck_relay::net::tls::Identity;
use potluck_relay::{Config, Relay};
use potluck_terminal::FileHash;

use crate::process::{self, Out, Running};

/// Everything that a command line names.
pub struct World {
    /// The folder in which the program runs, with `model.gguf` and files that are none.
    pub folder: PathBuf,
    /// A relay with the model `tiny` and a certificate of its own.
    pub relay_tls: String,
    /// The same without TLS and with a page.
    pub plain: String,
    /// A relay with a page, of which one file is not as its list says.
    pub changed: String,
    /// A relay without a page.
    pub without_page: String,
    /// Nothing listens here.
    pub nowhere: String,
    /// A web server that answers everything with a page.
    pub portal: String,
    /// It takes connections and says nothing.
    pub silent: String,
    /// It takes connections and closes them.
    pub closing: String,
    /// It expects TLS.
    pub tls_only: String,
    /// A room's link.
    pub room: String,
    /// The link of a room whose host is dead.
    pub dead_room: String,
    /// Hosts the room.
    #[allow(dead_code, reason = "it hosts until it is dropped")]
    host: Option<Running>,
}

impl World {
    /// The same with rooms.
    pub fn with_rooms(test: &str) -> Self {
        let mut world = Self::new(test);
        let (host, room) = host(&world.folder, &world.plain);
        let (dying, dead_room) = self::host(&world.folder, &world.plain);
        dying.signal("KILL");
        dying.end();
        (world.host, world.room, world.dead_room) = (Some(host), room, dead_room);
        world
    }

    /// Makes everything but rooms in a folder of a test.
    pub fn new(test: &str) -> Self {
        let folder = &Path::new(env!("CARGO_TARGET_TMPDIR")).join(test);
        _ = std::fs::remove_dir_all(folder);
        let models = folder.join("served");
        std::fs::create_dir_all(&models).unwrap();
        std::fs::create_dir_all(folder.join("models")).unwrap();
        let model = Synthetic { architecture: Architecture::Llama, blocks: 2, seed: 5, ..Synthetic::default() };
        let bytes = model.to_bytes().unwrap();
        for path in ["model.gguf", "served/tiny.gguf", "models/first.gguf"] {
            std::fs::write(folder.join(path), &bytes).unwrap();
        }
        let narrow = Synthetic { head_dim: 8, ..model };
        std::fs::write(folder.join("narrow.gguf"), narrow.to_bytes().unwrap()).unwrap();
        std::fs::write(folder.join("half.gguf"), &bytes[..bytes.len() / 2]).unwrap();
        std::fs::write(folder.join("empty.gguf"), b"").unwrap();
        std::fs::write(folder.join("page.gguf"), PAGE).unwrap();
        std::fs::write(folder.join("in-the-way"), b"no folder").unwrap();
        let identity = Identity::Own { folder: folder.join("identity") };
        let with_tls = relay(&models, folder.join("relay"), None, Some(identity));
        served_page(&folder.join("page"), b"start()");
        served_page(&folder.join("changed-page"), b"steal()");
        std::fs::write(folder.join("other-release"), sums(b"another()")).unwrap();
        let plain = relay(&models, folder.join("plain-relay"), Some(folder.join("page")), None);
        let changed = relay(&models, folder.join("changed-relay"), Some(folder.join("changed-page")), None);
        let without_page = relay(&models, folder.join("relay-without-page"), None, None);
        Self {
            folder: folder.to_owned(),
            relay_tls: with_tls.replace("http://", "https://"),
            plain,
            changed,
            without_page,
            // A port that was free a moment ago may be another test's by now; this one is nobody's.
            nowhere: "http://127.0.0.1:1".to_owned(),
            portal: server(|connection| answer(connection, &portal())),
            silent: server(|connection| {
                std::thread::sleep(std::time::Duration::from_secs(600));
                drop(connection);
            }),
            closing: server(drop),
            // A TLS server's answer to plain HTTP: a fatal alert, unexpected message.
            tls_only: server(|connection| answer(connection, &[0x15, 3, 1, 0, 2, 2, 10])),
            room: String::new(),
            dead_room: String::new(),
            host: None,
        }
    }
}

const INDEX: &[u8] = b"<!doctype html><script src=\"/page.js\"></script>";

/// A page for a relay, whose list says that its program is `start()`.
fn served_page(folder: &Path, program: &[u8]) {
    std::fs::create_dir_all(folder).unwrap();
    std::fs::write(folder.join("index.html"), INDEX).unwrap();
    std::fs::write(folder.join("page.js"), program).unwrap();
    std::fs::write(folder.join("SHA256SUMS"), sums(b"start()")).unwrap();
}

/// The list of a page with this program.
fn sums(program: &[u8]) -> String {
    format!("{}  index.html\n{}  page.js\n", FileHash::of(INDEX), FileHash::of(program))
}

const PAGE: &[u8] = b"<!doctype html><title>Sign in</title><p>Welcome to this hotel.</p>";

fn portal() -> Vec<u8> {
    let length = PAGE.len();
    let head =
        format!("HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n");
    [head.as_bytes(), PAGE].concat()
}

/// A server in a thread.
fn server(serve: fn(TcpStream)) -> String {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for connection in listener.incoming().flatten() {
            std::thread::spawn(move || serve(connection));
        }
    });
    format!("http://{address}")
}

/// Answers the first request, and closes once the client has read that: a socket that is closed with bytes unread resets the
/// connection, and the answer is lost.
fn answer(mut connection: TcpStream, with: &[u8]) {
    let mut request = [0; 4096];
    _ = connection.read(&mut request);
    _ = connection.write_all(with);
    _ = connection.shutdown(Shutdown::Write);
    while matches!(connection.read(&mut request), Ok(1..)) {}
}

fn relay(models: &Path, cache: PathBuf, page: Option<PathBuf>, identity: Option<Identity>) -> String {
    let config = Config {
        ip: Ipv4Addr::LOCALHOST.into(),
        port: 0,
        page,
        models: vec![models.to_path_buf()],
        origin: Default::default(),
        cache,
        identity,
        machine: Default::default(),
        hosts: Vec::new(),
        proxies: Default::default(),
        peers: Vec::new(),
        access: Default::default(),
        public_metrics: false,
        limits: Limits::default(),
    };
    let (sender, receiver) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let relay = Relay::start(config).await.unwrap();
            sender.send(format!("http://{}", relay.address())).unwrap();
            relay.run(std::future::pending()).await;
        });
    });
    receiver.recv().unwrap()
}

/// A host in a process of its own, and the link of its room.
pub fn host(folder: &Path, relay: &str) -> (Running, String) {
    let (host, mut links) = host_with(folder, relay, &[], 1);
    (host, links.remove(0))
}

/// The same with more options, which make it print so many links.
pub fn host_with(folder: &Path, relay: &str, more: &[&str], links: usize) -> (Running, Vec<String>) {
    let line = ["host", "model.gguf", "--relay", relay, "--context", "256", "--cache", "cache"];
    let line: Vec<String> = line.iter().chain(more).map(|part| (*part).to_owned()).collect();
    let mut host = process::start(folder, &line, Out::Read);
    // On a loaded machine the relay may answer after the plan is up.
    assert!(host.until("ms per token") && host.until_times("/r/", links), "{}", host.err.lock().unwrap());
    let printed: Vec<String> = host.out.lock().unwrap().lines().map(str::to_owned).collect();
    assert!(printed.len() == links && printed.iter().all(|link| link.contains("/r/")), "{printed:?}");
    (host, printed)
}
