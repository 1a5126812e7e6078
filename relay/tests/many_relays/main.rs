//! Three relays behind HAProxy, as `relay/deploy/haproxy.cfg` sets it up, and thirty rooms: one relay is killed, one drained, one
//! freezes, and all come back. The same behind Envoy where `POTLUCK_ENVOY` names its program. `POTLUCK_ROOMS` takes other numbers of rooms.
//!
//! `-- --nocapture` shows how long rooms were silent. That depends on what else the machine does, so it is not asserted.
#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "a test may panic")]

#[path = "../common/mod.rs"]
mod common;
mod rooms;

use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use common::{Program, Running, TIMEOUT, command, connector, folder};
use rooms::{Front, Room};
use rustix::process::Signal;
use tokio::task::JoinSet;
use tokio::time::sleep;

const HAPROXY: &str = include_str!("../../deploy/haproxy.cfg");
const ENVOY: &str = include_str!("../../deploy/envoy.yaml");
const ROOMS: u16 = 30;
/// Time between two looks at what has not happened yet.
const LOOK_EVERY: Duration = Duration::from_millis(20);

fn rooms() -> u16 {
    std::env::var("POTLUCK_ROOMS").map_or(ROOMS, |rooms| rooms.parse().unwrap())
}

/// Debian keeps it where only an administrator's `PATH` leads.
fn haproxy() -> Option<Command> {
    let starts = |program: &&str| Command::new(program).arg("-v").output().is_ok();
    ["haproxy", "/usr/sbin/haproxy"].into_iter().find(starts).map(Command::new)
}

/// A program that ends with the test.
struct Ends(Child);

impl Drop for Ends {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn free_port() -> u16 {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap().port()
}

/// A relay that comes back at the same address.
struct Relay {
    data: PathBuf,
    port: u16,
    /// The ports of others that it watches.
    peers: Vec<u16>,
    program: Option<Program>,
    is_frozen: bool,
}

impl Relay {
    /// Three of them, which watch each other if they have to.
    fn three(watch: bool) -> [Self; 3] {
        let ports = [free_port(), free_port(), free_port()];
        ports.map(|port| {
            let peers = ports.into_iter().filter(|other| watch && *other != port).collect();
            let mut relay = Self { data: folder("many"), port, peers, program: None, is_frozen: false };
            relay.start();
            relay
        })
    }

    fn start(&mut self) {
        let port = self.port.to_string();
        let arguments = ["--local", "--trusted-proxy", "127.0.0.1", "--port", &port, "--data"];
        let mut command = command();
        command.args(arguments).arg(&self.data);
        command.args(self.peers.iter().map(|port| format!("--peer=127.0.0.1:{port}")));
        self.program = Some(Program::run(&mut command));
    }

    /// Stops all its threads, or lets them go on.
    fn freeze(&mut self, is_frozen: bool) {
        self.is_frozen = is_frozen;
        self.program.as_ref().unwrap().signal(if is_frozen { Signal::STOP } else { Signal::CONT });
    }

    async fn members(&self) -> u64 {
        let Some(program) = self.program.as_ref().filter(|_| !self.is_frozen) else { return 0 };
        Running::at(program.address).metric("potluck_relay_members").await
    }
}

async fn members(relays: &[Relay; 3]) -> [u64; 3] {
    [relays[0].members().await, relays[1].members().await, relays[2].members().await]
}

/// Rooms in which somebody writes all the time.
struct School {
    front: Arc<Front>,
    rooms: Vec<Arc<Room>>,
    tasks: JoinSet<()>,
}

impl School {
    fn open(front: Arc<Front>) -> Self {
        let rooms: Vec<_> = (1..=rooms()).map(|number| Arc::new(Room::new(number))).collect();
        let mut tasks = JoinSet::new();
        rooms.iter().for_each(|room| room.open(&front, &mut tasks));
        Self { front, rooms, tasks }
    }

    /// Waits until something holds.
    async fn until(&mut self, what: &str, mut holds: impl AsyncFnMut() -> bool) {
        let deadline = Instant::now() + TIMEOUT;
        while !holds().await {
            assert!(Instant::now() < deadline, "not in time: {what}");
            assert!(self.tasks.try_join_next().is_none(), "a member gave up: {what}");
            sleep(LOOK_EVERY).await;
        }
    }

    /// Waits until the relays have so many members.
    async fn until_members(&mut self, relays: &[Relay; 3], are_right: impl Fn([u64; 3]) -> bool) {
        self.until("members where they belong", async || are_right(members(relays).await)).await;
    }

    /// From now on, silence counts.
    fn begin(&self) {
        self.rooms.iter().for_each(|room| room.chat().longest = Duration::ZERO);
    }

    /// Waits until every room has two answers more, and whoever comes finds its owner; how long rooms were silent at most.
    async fn together(&mut self, after: &str) {
        let rooms = self.rooms.clone();
        let before: Vec<u64> = rooms.iter().map(|room| room.chat().answered).collect();
        let answer = async || rooms.iter().zip(&before).all(|(room, before)| room.chat().answered >= before + 2);
        self.until(&format!("every room answers after {after}"), answer).await;
        let mut silent: Vec<Duration> = rooms.iter().map(|room| room.chat().longest).collect();
        for room in rooms {
            let front = self.front.clone();
            self.until("a newcomer finds the owner", async || room.is_found(&front).await).await;
            let seen = &room.chat().seen;
            assert!(seen.iter().copied().eq(0..seen.len() as u64), "each line came once and in its place: {seen:?}");
        }
        silent.sort();
        let (median, longest) = (silent[silent.len() / 2], silent[silent.len() - 1]);
        println!("{after}: rooms were silent for {longest:.2?} at most, half of them for {median:.2?} or less");
    }
}

/// The proxy in front of the relays, with its file's addresses and ports replaced.
fn start_proxy(mut proxy: Command, arguments: &[&str], config: String, file: &Path, relays: &[Relay; 3]) -> Ends {
    let mut config = config;
    for (number, relay) in (1..).zip(relays) {
        let (port, own) = (relay.port, format!("10.0.0.{number}"));
        config = config.replace(&format!("{own}:8787"), &format!("127.0.0.1:{port}"));
        config = config.replace(&format!("{own}, port_value: 8787"), &format!("127.0.0.1, port_value: {port}"));
    }
    std::fs::write(file, config).unwrap();
    Ends(proxy.args(arguments).arg(file).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rooms_are_together_again_when_a_relay_dies_drains_freezes_or_comes_back() {
    let Some(haproxy) = haproxy() else {
        println!("skipped: HAProxy is not installed");
        return;
    };
    let (data, front) = front();
    let relays = Relay::three(false);
    let config = HAPROXY
        .replace(
            ":443 ssl crt /etc/haproxy/potluck.pem",
            &format!("127.0.0.1:{} ssl crt {}", front.port, data.join("relay.pem").display()),
        )
        .replace("bind :80", &format!("bind 127.0.0.1:{}", free_port()))
        // This machine may allow few open files.
        .replace("maxconn 20000", &format!("maxconn {}", 100 + 10 * rooms()));
    let _haproxy = start_proxy(haproxy, &["-db", "-f"], config, &data.join("haproxy.cfg"), &relays);
    scenario(front, relays).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_same_behind_envoy() {
    let Some(envoy) = std::env::var_os("POTLUCK_ENVOY") else {
        println!("skipped: POTLUCK_ENVOY names no program");
        return;
    };
    let (data, front) = front();
    // It leaves connections where they are when a relay comes back.
    let relays = Relay::three(true);
    let config = ENVOY
        .replace(
            "address: \"::\", ipv4_compat: true, port_value: 443",
            &format!("address: 127.0.0.1, port_value: {}", front.port),
        )
        .replace("/etc/envoy/potluck.pem", &data.join("relay.pem").display().to_string());
    let arguments = ["--use-dynamic-base-id", "--concurrency", "2", "-l", "off", "-c"];
    let _envoy = start_proxy(Command::new(envoy), &arguments, config, &data.join("envoy.yaml"), &relays);
    scenario(front, relays).await;
}

/// The proxy's port, and a folder with a certificate for it.
fn front() -> (PathBuf, Arc<Front>) {
    let data = folder("front");
    // It makes a certificate, here for the proxy.
    drop(Program::start(&data, &[]));
    let tls = connector(&std::fs::read(data.join("authority.pem")).unwrap());
    (data, Arc::new(Front { port: free_port(), tls }))
}

async fn scenario(front: Arc<Front>, mut relays: [Relay; 3]) {
    let mut school = School::open(front.clone());
    school.together("the start").await;
    let all = 2 * u64::from(rooms());
    let elsewhere = |members: [u64; 3]| members.iter().sum::<u64>() == all;
    // Newcomers of the check before may still be leaving.
    school.until_members(&relays, elsewhere).await;
    let home = members(&relays).await;
    assert!(home.iter().all(|members| *members > 0), "{home:?}");
    let at_home = |members: [u64; 3]| members == home;

    school.begin();
    // Dropping it kills it.
    relays[0].program = None;
    school.until_members(&relays, elsewhere).await;
    school.together("one was killed").await;
    school.begin();
    relays[0].start();
    school.until_members(&relays, at_home).await;
    school.together("it came back").await;

    school.begin();
    let mut drained = relays[1].program.take().unwrap();
    drained.signal(Signal::TERM);
    let ended = tokio::task::spawn_blocking(move || drained.ended()).await.unwrap();
    assert!(ended.success(), "{ended}");
    school.until_members(&relays, elsewhere).await;
    school.together("one was drained").await;
    school.begin();
    relays[1].start();
    school.until_members(&relays, at_home).await;
    school.together("it came back").await;

    school.begin();
    relays[2].freeze(true);
    school.until_members(&relays, elsewhere).await;
    school.together("one froze").await;
    school.begin();
    // It still has the rooms, without anybody in them.
    relays[2].freeze(false);
    school.until_members(&relays, at_home).await;
    school.together("it went on").await;
}
