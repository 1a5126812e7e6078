//! A room under siege, on a relay with its default limits: `cargo bench -p potluck-relay --bench siege`, 45 seconds.
//!
//! A banned holder of an invite, a holder of an expired one and one without a key enter as often and send as much as the relay
//! lets them, each from an address of its own. They run in another process of low priority, because in reality they
//! would be other machines. Meanwhile two members of another room exchange 8 KB every 5 ms, and honest
//! visitors come to the room under siege. Quiet and siege alternate, three rounds of each.
#![allow(clippy::unwrap_used, reason = "a measurement may panic")]

#[path = "../tests/common/mod.rs"]
mod common;

use std::net::{Ipv4Addr, SocketAddr};
use std::process::{Child, Command};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use common::{Invite, Keys, Member, Running, config};
use futures_util::{SinkExt, StreamExt};
use potluck_relay::Relay;
use potluck_relay_api::{Control, EntryProof, Nonce, Request, Route, nonce_at};
use tokio::net::{TcpSocket, TcpStream};
use tokio::sync::mpsc;
use tokio::time::{sleep, timeout};
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::{WebSocketStream, client_async};

const ROUNDS: usize = 3;
const ROUND: Duration = Duration::from_secs(5);
const FRAME: [u8; 8 * 1024] = [0; 8 * 1024];
/// How long a siege lasts before it is measured.
const BEGIN: Duration = Duration::from_secs(2);
/// The argument that makes this program the attackers.
const ATTACK: &str = "attack";
/// What an honest visitor says to the host.
const HELLO: &[u8] = b"may I?";
/// What visitors send at most at once.
const FLOOD: [u8; 16 * 1024 - 4] = [0; 16 * 1024 - 4];
/// After so many hops an honest visitor comes.
const HOPS_A_VISIT: usize = 50;
/// Connections that each of the three keeps trying.
const SOCKETS: usize = 32;

/// Who lays siege.
#[derive(Clone, Copy)]
enum Visitor {
    Banned,
    Expired,
    WithoutKey,
}

impl Visitor {
    const ALL: [Self; 3] = [Self::Banned, Self::Expired, Self::WithoutKey];

    fn address(self) -> Ipv4Addr {
        Ipv4Addr::new(127, 9, 0, self as u8 + 1)
    }

    fn proof(self, keys: &Keys, nonce: &Nonce) -> EntryProof {
        match self {
            Self::Banned => keys.invite(Invite::new(1), nonce),
            Self::Expired => keys.invite(Invite::expired(2), nonce),
            Self::WithoutKey => EntryProof::Visitor,
        }
    }
}

/// What the siege did.
#[derive(Default)]
struct Done {
    tries: AtomicU64,
    entries: AtomicU64,
    frames: AtomicU64,
}

fn main() {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [what, relay, host] = arguments.as_slice()
        && what == ATTACK
    {
        return runtime.block_on(attack(relay.parse().unwrap(), Route(host.parse().unwrap())));
    }
    let relay = start_relay();
    runtime.block_on(siege(&relay));
    runtime.shutdown_background();
}

/// Runs this program as the attackers, with a low priority.
fn start_attack(relay: SocketAddr, host: Route) -> Child {
    let program = std::env::current_exe().unwrap();
    let mut command = Command::new("nice");
    command.arg("-n19").arg(program).args([ATTACK, &relay.to_string(), &host.0.to_string()]);
    command.spawn().unwrap()
}

/// Runs all of them until they have been at it for long enough.
async fn attack(relay: SocketAddr, host: Route) {
    let (keys, done) = (Arc::new(Keys::listed(1, "Kitchen")), Arc::new(Done::default()));
    for visitor in Visitor::ALL.into_iter().flat_map(|visitor| [visitor; SOCKETS]) {
        tokio::spawn(enter_and_send(relay, visitor, keys.clone(), host, done.clone()));
    }
    sleep(BEGIN + ROUND).await;
    let of = |count: &AtomicU64| count.load(Ordering::Relaxed);
    let (tries, entries, frames) = (of(&done.tries), of(&done.entries), of(&done.frames));
    println!("the siege tried to enter {tries} times, entered {entries} times and wrote {frames} frames");
}

/// A relay on threads of its own.
fn start_relay() -> Running {
    let (tell, told) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let relay = Relay::start(config("siege")).await.unwrap();
            tell.send(relay.address().port()).unwrap();
            relay.run(std::future::pending()).await;
        });
    });
    Running::at((Ipv4Addr::LOCALHOST, told.recv().unwrap()).into())
}

async fn siege(relay: &Running) {
    let (keys, neighbours) = (Arc::new(Keys::listed(1, "Kitchen")), Keys::new(2));
    let mut host = relay.own(&keys).await;
    host.ask(&Request::Revoked { invites: vec![1] }).await;
    let (mut one, mut two) = (relay.own(&neighbours).await, relay.join(&neighbours).await);
    let route = host.route;
    let (heard, mut hellos) = mpsc::unbounded_channel();
    tokio::spawn(lend_an_ear(host, heard));

    let (mut quiet, mut loud) = (Vec::new(), Vec::new());
    let (mut honest_quiet, mut honest_loud) = (Vec::new(), Vec::new());
    let mut homes = 0;
    for _ in 0..ROUNDS {
        for (is_loud, hops, visits) in [(false, &mut quiet, &mut honest_quiet), (true, &mut loud, &mut honest_loud)] {
            let attackers = is_loud.then(|| start_attack(relay.address, route));
            sleep(BEGIN).await;
            let start = Instant::now();
            while start.elapsed() < ROUND {
                hops.push(hop(&mut one, &mut two).await);
                if hops.len() % HOPS_A_VISIT == 0 {
                    homes += 1;
                    visits.push(visit(relay, homes, &keys, route, &mut hellos).await);
                }
                sleep(Duration::from_millis(5)).await;
            }
            if let Some(mut attackers) = attackers {
                attackers.wait().unwrap();
            }
        }
    }
    report("another room's hop of 8 KB, µs", &mut quiet, &mut loud, 1e6);
    report("an honest visitor, from its connection to the host's ear, ms", &mut honest_quiet, &mut honest_loud, 1e3);
}

/// The host reads what comes and lets in who asks.
async fn lend_an_ear(mut host: Member, heard: mpsc::UnboundedSender<Route>) {
    while let Some(message) = host.next().await {
        if let Message::Binary(bytes) = message
            && bytes.ends_with(HELLO)
        {
            let route = Route::read(&bytes).unwrap();
            let _ = heard.send(route);
            host.ask(&Request::LetIn { route }).await;
        }
    }
}

async fn hop(one: &mut Member, two: &mut Member) -> f64 {
    let sent = Instant::now();
    one.send(two.route, &FRAME).await;
    two.frame().await;
    sent.elapsed().as_secs_f64()
}

/// Seconds until the host has heard a visitor that never came before.
async fn visit(
    relay: &Running,
    number: u32,
    keys: &Keys,
    host: Route,
    hellos: &mut mpsc::UnboundedReceiver<Route>,
) -> f64 {
    let [.., high, low] = number.to_be_bytes();
    let from = Ipv4Addr::new(127, 10, high, low);
    let came = Instant::now();
    let mut visitor =
        relay.enter_from(from, &keys.id(), |_| EntryProof::Visitor).await.expect("room for an honest visitor");
    visitor.send(host, HELLO).await;
    let heard = timeout(Duration::from_secs(30), hellos.recv()).await.expect("the host hears it");
    assert_eq!(heard, Some(visitor.route));
    came.elapsed().as_secs_f64()
}

/// Enters and sends, again and again, as fast as the relay lets it.
async fn enter_and_send(relay: SocketAddr, visitor: Visitor, keys: Arc<Keys>, host: Route, done: Arc<Done>) {
    loop {
        done.tries.fetch_add(1, Ordering::Relaxed);
        let Some(socket) = enter(relay, visitor, &keys).await else {
            sleep(Duration::from_millis(20)).await;
            continue;
        };
        done.entries.fetch_add(1, Ordering::Relaxed);
        let (mut sending, mut receiving) = socket.split();
        let flood = async {
            while sending.send(Message::Binary(host.prepend(&FLOOD).into())).await.is_ok() {
                done.frames.fetch_add(1, Ordering::Relaxed);
            }
        };
        let ignore = async { while receiving.next().await.is_some() {} };
        tokio::join!(flood, ignore);
    }
}

/// A socket that the relay let in, however it was let in.
async fn enter(relay: SocketAddr, visitor: Visitor, keys: &Keys) -> Option<WebSocketStream<TcpStream>> {
    let socket = TcpSocket::new_v4().ok()?;
    socket.bind((visitor.address(), 0).into()).ok()?;
    let stream = socket.connect(relay).await.ok()?;
    let (mut socket, _) = client_async(format!("ws://{relay}/rooms/{}", keys.id()), stream).await.ok()?;
    let Control::Challenge { nonce, .. } = control(&mut socket).await? else { return None };
    let proof = visitor.proof(keys, &nonce_at(&relay.to_string(), &nonce));
    let request = serde_json::to_string(&Request::Enter { proof }).ok()?;
    socket.send(Message::Text(request.into())).await.ok()?;
    matches!(control(&mut socket).await?, Control::Welcome { .. }).then_some(socket)
}

async fn control(socket: &mut WebSocketStream<TcpStream>) -> Option<Control> {
    match socket.next().await?.ok()? {
        Message::Text(text) => serde_json::from_str(&text).ok(),
        _ => None,
    }
}

fn report(what: &str, quiet: &mut [f64], loud: &mut [f64], unit: f64) {
    let of = |times: &mut [f64]| {
        times.sort_by(f64::total_cmp);
        let at = |part: f64| times[((times.len() - 1) as f64 * part) as usize] * unit;
        (at(0.5), at(0.99), at(1.0))
    };
    let ((q50, q99, q100), (l50, l99, l100)) = (of(quiet), of(loud));
    println!("{what}: quiet p50 {q50:.0}, p99 {q99:.0}, worst {q100:.0} ({} times)", quiet.len());
    println!(
        "{what}: siege p50 {l50:.0}, p99 {l99:.0}, worst {l100:.0} ({} times), p99 {:.2} times",
        loud.len(),
        l99 / q99
    );
}
