//! Three relays behind HAProxy, as `relay/deploy/haproxy.cfg` sets it up, and thirty rooms: one relay is killed, one drained, one
//! freezes, and all come back.
//!
//! `-- --nocapture` shows how long rooms were silent. That depends on what else the machine does, so it is not asserted.
#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "a test may panic")]

#[path = "../common/mod.rs"]
mod common;
mod rooms;

use std::net::{Ipv4Addr, TcpListener};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use common::{Program, Running, TIMEOUT, command, connector, folder};
use rooms::{Front, Room};
use rustix::process::Signal;
use tokio::task::JoinSet;
use tokio::time::sleep;

const CONFIG: &str = include_str!("../../deploy/haproxy.cfg");
const ROOMS: u8 = 30;
/// Time between two looks at what has not happened yet.
const LOOK_EVERY: Duration = Duration::from_millis(20);

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
    data: std::path::PathBuf,
    port: u16,
    program: Option<Program>,
    is_frozen: bool,
}

impl Relay {
    fn new() -> Self {
        let mut relay = Self { data: folder("many"), port: free_port(), program: None, is_frozen: false };
        relay.start();
        relay
    }

    fn start(&mut self) {
        let port = self.port.to_string();
        let arguments = ["--local", "--trusted-proxy", "127.0.0.1", "--port", &port, "--data"];
        self.program = Some(Program::run(command().args(arguments).arg(&self.data)));
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
        let rooms: Vec<_> = (1..=ROOMS).map(|number| Arc::new(Room::new(number))).collect();
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

fn start_haproxy(mut haproxy: Command, data: &Path, relays: &[Relay; 3], port: u16) -> Ends {
    let mut config = CONFIG.replace(
        ":443 ssl crt /etc/haproxy/potluck.pem",
        &format!("127.0.0.1:{port} ssl crt {}", data.join("relay.pem").display()),
    );
    config = config.replace("bind :80", &format!("bind 127.0.0.1:{}", free_port()));
    // This machine may allow few open files.
    config = config.replace("maxconn 20000", "maxconn 400");
    for (number, relay) in relays.iter().enumerate() {
        config = config.replace(&format!("10.0.0.{}:8787", number + 1), &format!("127.0.0.1:{}", relay.port));
    }
    let path = data.join("haproxy.cfg");
    std::fs::write(&path, config).unwrap();
    haproxy.args(["-db", "-f"]).arg(&path).stdout(Stdio::null()).stderr(Stdio::null());
    Ends(haproxy.spawn().unwrap())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rooms_are_together_again_when_a_relay_dies_drains_freezes_or_comes_back() {
    let Some(haproxy) = haproxy() else {
        println!("skipped: HAProxy is not installed");
        return;
    };
    let data = folder("front");
    // It makes a certificate, here for the proxy.
    drop(Program::start(&data, &[]));
    let mut relays = [Relay::new(), Relay::new(), Relay::new()];
    let front = Front { port: free_port(), tls: connector(&std::fs::read(data.join("authority.pem")).unwrap()) };
    let front = Arc::new(front);
    let _haproxy = start_haproxy(haproxy, &data, &relays, front.port);
    let mut school = School::open(front.clone());
    school.together("the start").await;
    let all = 2 * u64::from(ROOMS);
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
