//! Three relays behind HAProxy, as `relay/deploy/haproxy.cfg` sets it up, and thirty rooms: one relay is killed, one drained, one
//! freezes, all come back, and a fourth is added. The same behind Envoy where `POTLUCK_ENVOY` names its program. `POTLUCK_ROOMS` takes other numbers of rooms.
//!
//! `-- --nocapture` shows how long rooms were silent. That depends on what else the machine does, so it is not asserted.
#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "a test may panic")]

#[path = "../common/mod.rs"]
mod common;
mod proxy;
mod rooms;

use std::collections::HashMap;
use std::net::{Ipv4Addr, TcpListener};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use common::{Program, Running, TIMEOUT, command, connector, folder};
use proxy::{Proxy, envoy, haproxy};
use rooms::{Front, Room};
use rustix::process::Signal;
use tokio::task::JoinSet;
use tokio::time::sleep;

const ROOMS: u16 = 30;
/// Time between two looks at what has not happened yet.
const LOOK_EVERY: Duration = Duration::from_millis(20);

fn rooms() -> u16 {
    std::env::var("POTLUCK_ROOMS").map_or(ROOMS, |rooms| rooms.parse().unwrap())
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
    fn three(watch: bool) -> Vec<Self> {
        let ports = [free_port(), free_port(), free_port()];
        let peers = |port| ports.into_iter().filter(|other| watch && *other != port).collect();
        ports.into_iter().map(|port| Self::at(port, peers(port))).collect()
    }

    fn at(port: u16, peers: Vec<u16>) -> Self {
        let mut relay = Self { data: folder("many"), port, peers, program: None, is_frozen: false };
        relay.start();
        relay
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

async fn members(relays: &[Relay]) -> Vec<u64> {
    let mut members = Vec::new();
    for relay in relays {
        members.push(relay.members().await);
    }
    members
}

/// The relay that has each room.
async fn homes(relays: &[Relay]) -> HashMap<String, usize> {
    let mut homes = HashMap::new();
    for (index, relay) in relays.iter().enumerate() {
        let report = Running::at((Ipv4Addr::LOCALHOST, relay.port).into()).get("/operator").await.text();
        let report: serde_json::Value = serde_json::from_str(&report).unwrap();
        // Those that moved away are empty.
        let rooms = report["rooms"].as_array().unwrap().iter().filter(|room| room["members"] != 0);
        homes.extend(rooms.map(|room| (room["id"].as_str().unwrap().to_owned(), index)));
    }
    homes
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
    async fn until_members(&mut self, relays: &[Relay], are_right: impl Fn(&[u64]) -> bool) {
        self.until("members where they belong", async || are_right(&members(relays).await)).await;
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

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rooms_are_together_again_when_a_relay_dies_drains_freezes_comes_back_or_is_added() {
    let Some(program) = haproxy() else {
        println!("skipped: HAProxy is not installed");
        return;
    };
    let (data, front) = front();
    let relays = Relay::three(false);
    let proxy = Proxy::haproxy(program, &data, front.port, rooms());
    scenario(front, relays, proxy).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_same_behind_envoy() {
    let Some(program) = envoy() else {
        println!("skipped: POTLUCK_ENVOY names no program");
        return;
    };
    let (data, front) = front();
    // It leaves connections where they are when a relay comes back.
    let relays = Relay::three(true);
    let proxy = Proxy::envoy(program, &data, front.port);
    scenario(front, relays, proxy).await;
}

/// The proxy's port, and a folder with a certificate for it.
fn front() -> (PathBuf, Arc<Front>) {
    let data = folder("front");
    // It makes a certificate, here for the proxy.
    drop(Program::start(&data, &[]));
    let tls = connector(&std::fs::read(data.join("authority.pem")).unwrap());
    (data, Arc::new(Front { port: free_port(), tls }))
}

async fn scenario(front: Arc<Front>, mut relays: Vec<Relay>, mut proxy: Proxy) {
    proxy.start(&[relays[0].port, relays[1].port, relays[2].port]);
    let mut school = School::open(front.clone());
    school.together("the start").await;
    let all = 2 * u64::from(rooms());
    let elsewhere = |members: &[u64]| members.iter().sum::<u64>() == all;
    // Newcomers of the check before may still be leaving.
    school.until_members(&relays, elsewhere).await;
    let home = members(&relays).await;
    assert!(home.iter().all(|members| *members > 0), "{home:?}");
    let at_home = |members: &[u64]| members == home;

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

    school.until_members(&relays, at_home).await;
    let before = homes(&relays).await;
    school.begin();
    let others = relays.iter().filter(|relay| !relay.peers.is_empty()).map(|relay| relay.port).collect();
    relays.push(Relay::at(free_port(), others));
    proxy.add(relays[3].port);
    school.until_members(&relays, |members| members[3] > 0 && elsewhere(members)).await;
    school.together("a fourth was added").await;
    school.until_members(&relays, elsewhere).await;
    let after = homes(&relays).await;
    let moved: Vec<_> = after.iter().filter(|(room, home)| before[*room] != **home).map(|(_, home)| *home).collect();
    println!("{} of {} rooms moved to it; consistent hashing predicts a quarter", moved.len(), after.len());
    assert!(moved.iter().all(|home| *home == 3), "all others stayed: {moved:?}");
    assert!(moved.len() * 2 < after.len(), "{} of {}", moved.len(), after.len());
}
