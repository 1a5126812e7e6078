//! A large relay: 10,000 idle members and 1,000 rooms that are talking, in plain and over TLS: `cargo bench -p potluck-relay --bench
//! crowd`, about three minutes. `-- plain` and `-- tls` measure one of them, `-- soak MINUTES` whether memory stays flat while people come
//! and go.
//!
//! Generator and relay share the machine's cores, and both need 12,000 open files. In a room that talks, one member sends 8 KiB, the other
//! answers with as much, and so on at the rate of a person who reads: `TURNS` a second.
#![allow(clippy::unwrap_used, reason = "a measurement may panic")]

mod client;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use client::{Door, Keys, Member, ROOMS_PER_ADDRESS, Relay, frame, home, pong, send};
use tokio::sync::Semaphore;
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::{MissedTickBehavior, interval, interval_at, sleep};

const IDLE_ROOMS: usize = 2_500;
const ROOM_MEMBERS: usize = 4;
const ACTIVE_ROOMS: usize = 1_000;
/// Tokens that a room writes a second, each there and back.
const TURNS: u32 = 5;
const FRAME_BYTES: usize = 8 * 1024;
/// How long it is measured, once everybody is there.
const MEASURED: Duration = Duration::from_secs(20);
/// Files that the generator keeps for itself.
const OTHER_FILES: usize = 100;
/// Connections that are being made at a time: more would wait for each other until the relay gives up.
const ARRIVALS: usize = 32;
/// Rooms of the soak, and how long a member of it stays.
const SOAK_ROOMS: usize = 500;
const STAY: Duration = Duration::from_secs(10);

fn main() {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let named: Vec<String> = std::env::args().skip(1).filter(|argument| !argument.starts_with('-')).collect();
    runtime.block_on(async {
        match named.as_slice() {
            [what, minutes] if what == "soak" => soak(minutes.parse().unwrap()).await,
            _ => {
                for (name, with_tls) in [("plain", false), ("tls", true)] {
                    if named.is_empty() || named.iter().any(|one| one == name) {
                        crowd(name, with_tls).await;
                    }
                }
            }
        }
    });
    runtime.shutdown_background();
}

/// The rooms that fit into the files that may be open.
fn idle_rooms() -> usize {
    let files = client::open_files().saturating_sub(OTHER_FILES + 2 * ACTIVE_ROOMS);
    IDLE_ROOMS.min(files / ROOM_MEMBERS)
}

async fn crowd(name: &str, with_tls: bool) {
    let relay = Relay::start(with_tls).await;
    let (door, start) = (relay.door(), Instant::now());
    let idle = idle_members(&door, idle_rooms()).await;
    let arrived = start.elapsed().as_secs_f64();
    let arriving = relay.cpu_seconds();
    sleep(Duration::from_secs(5)).await;
    let (before, memory) = (relay.cpu_seconds(), relay.resident_megabytes());
    sleep(Duration::from_secs(5)).await;
    println!(
        "{name}: {} idle members in {arrived:.1} s ({arriving:.1} s of the relay's processor): {memory:.0} MB resident, {:.0} % of a core",
        idle.len(),
        (relay.cpu_seconds() - before) / 5.0 * 100.0
    );
    let talking = Arc::new(AtomicBool::new(true));
    let mut rooms = JoinSet::new();
    for (room, (one, two)) in pairs(&door).await.into_iter().enumerate() {
        rooms.spawn(talk(one, two, room, talking.clone()));
    }
    sleep(Duration::from_secs(3)).await;
    let (cpu, begin) = (relay.cpu_seconds(), Instant::now());
    sleep(MEASURED).await;
    let share = (relay.cpu_seconds() - cpu) / begin.elapsed().as_secs_f64();
    let memory = relay.resident_megabytes();
    talking.store(false, Ordering::Relaxed);
    let mut hops: Vec<f64> = rooms.join_all().await.concat();
    hops.sort_by(f64::total_cmp);
    let at = |part: f64| hops[((hops.len() - 1) as f64 * part) as usize] * 1e3;
    println!(
        "{name}: beside {ACTIVE_ROOMS} rooms that talk: {memory:.0} MB resident, {:.0} % of a core, {:.0} frames a second; a hop takes \
         p50 {:.2} ms, p99 {:.1} ms, at most {:.0} ms; {} idle members are gone; load {}",
        share * 100.0,
        hops.len() as f64 / (MEASURED.as_secs_f64() + 3.0),
        at(0.5),
        at(0.99),
        at(1.0),
        idle.iter().filter(|task| task.is_finished()).count(),
        std::fs::read_to_string("/proc/loadavg").unwrap_or_default().split(' ').next().unwrap_or_default(),
    );
}

/// Members that only answer the relay's pings.
async fn idle_members(door: &Door, rooms: usize) -> Vec<JoinHandle<()>> {
    let (turnstile, mut arriving) = (Arc::new(Semaphore::new(ARRIVALS)), JoinSet::new());
    for number in 0..rooms {
        let (door, turnstile) = (door.clone(), turnstile.clone());
        arriving.spawn(async move {
            let _turn = turnstile.acquire_owned().await;
            let (keys, from) = (Keys::of_room(number as u32), home(9, number / ROOMS_PER_ADDRESS));
            let mut members = vec![Member::own(door.clone(), from, &keys).await.unwrap()];
            for _ in 1..ROOM_MEMBERS {
                members.push(Member::join(door.clone(), from, &keys).await.unwrap());
            }
            members.into_iter().map(|member| tokio::spawn(member.answer_pings())).collect::<Vec<_>>()
        });
    }
    arriving.join_all().await.into_iter().flatten().collect()
}

async fn pairs(door: &Door) -> Vec<(Member, Member)> {
    let (turnstile, mut arriving) = (Arc::new(Semaphore::new(ARRIVALS)), JoinSet::new());
    for number in 0..ACTIVE_ROOMS {
        let (door, turnstile) = (door.clone(), turnstile.clone());
        arriving.spawn(async move {
            let _turn = turnstile.acquire_owned().await;
            let (keys, from) = (Keys::of_room(1 << 24 | number as u32), home(20, number / ROOMS_PER_ADDRESS));
            let one = Member::own(door.clone(), from, &keys).await.unwrap();
            (one, Member::join(door, from, &keys).await.unwrap())
        });
    }
    arriving.join_all().await
}

/// One sends, the other answers, at a steady rate; how long each hop took, in seconds.
async fn talk(one: Member, two: Member, room: usize, going: Arc<AtomicBool>) -> Vec<f64> {
    let (to_one, to_two) = (frame(one.route, &[0; FRAME_BYTES]), frame(two.route, &[0; FRAME_BYTES]));
    let ((mut one_reads, mut one_writes), (mut two_reads, mut two_writes)) = (one.split(), two.split());
    let turn = Duration::from_secs(1) / TURNS;
    // Rooms are not in step.
    let offset = turn * (room % 100) as u32 / 100;
    let mut turns = interval_at(tokio::time::Instant::now() + offset, turn);
    turns.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut hops = Vec::new();
    while going.load(Ordering::Relaxed) {
        turns.tick().await;
        let sent = Instant::now();
        send(&mut one_writes, &to_two).await.unwrap();
        arrival(&mut two_reads, &mut two_writes).await;
        let there = Instant::now();
        send(&mut two_writes, &to_one).await.unwrap();
        arrival(&mut one_reads, &mut one_writes).await;
        hops.extend([there - sent, there.elapsed()].map(|hop| hop.as_secs_f64()));
    }
    hops
}

/// The next frame. Pings that came before it are answered.
async fn arrival(reader: &mut client::Reader, writer: &mut client::Writer) {
    loop {
        match reader.skip().await.expect("it stays in its room").0 {
            2 => return,
            9 => send(writer, &pong()).await.unwrap(),
            _ => {}
        }
    }
}

/// People come, write and go again for so many minutes, over TLS; memory and processor each minute.
async fn soak(minutes: u32) {
    let relay = Relay::start(true).await;
    let going = Arc::new(AtomicBool::new(true));
    let mut rooms = JoinSet::new();
    for number in 0..SOAK_ROOMS {
        rooms.spawn(come_and_go(relay.door(), number, going.clone()));
    }
    for minute in 1..=minutes {
        let cpu = relay.cpu_seconds();
        sleep(Duration::from_secs(60)).await;
        println!(
            "minute {minute}: {:.1} MB resident, {:.0} % of a core",
            relay.resident_megabytes(),
            (relay.cpu_seconds() - cpu) / 60.0 * 100.0
        );
    }
    going.store(false, Ordering::Relaxed);
    let visits: usize = rooms.join_all().await.into_iter().sum();
    println!("{visits} visits of {STAY:?} in {SOAK_ROOMS} rooms");
}

/// An owner who stays, and guests who come one after the other; how many there were.
async fn come_and_go(door: Door, number: usize, going: Arc<AtomicBool>) -> usize {
    let (keys, from) = (Keys::of_room(number as u32), home(30, number / ROOMS_PER_ADDRESS));
    // Not all at once.
    sleep(STAY * number as u32 / SOAK_ROOMS as u32).await;
    let owner = Member::own(door.clone(), from, &keys).await.unwrap();
    let owner_route = owner.route;
    let stays = tokio::spawn(owner.answer_pings());
    let mut visits = 0;
    while going.load(Ordering::Relaxed) {
        // One a guest, so that an address does not connect too often.
        let Ok(guest) = Member::join(door.clone(), home(40, number), &keys).await else { continue };
        let (mut reader, mut writer) = guest.split();
        let reading = async { while reader.skip().await.is_some() {} };
        let writing = async {
            let mut writes = interval(Duration::from_millis(200));
            loop {
                writes.tick().await;
                if send(&mut writer, &frame(owner_route, &[0; FRAME_BYTES])).await.is_err() {
                    return;
                }
            }
        };
        tokio::select! { () = reading => {}, () = writing => {}, () = sleep(STAY) => {} }
        visits += 1;
    }
    stays.abort();
    visits
}
