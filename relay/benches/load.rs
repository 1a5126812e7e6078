//! Load on a relay over loopback, about a minute: `cargo bench -p potluck-relay`.
//!
//! It starts the program itself and shares the machine's cores with it. Members come from many addresses of 127.0.0.0/8,
//! so that the limits of an address do not apply, as they would not to people in many homes. `POTLUCK_RELAY` names another program to
//! measure, also where there is no cargo. `-- idle`, `-- throughput` and `-- hop` measure one part only.
#![allow(clippy::unwrap_used, reason = "a measurement may panic")]

mod client;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use client::{Keys, Member, ROOMS_PER_ADDRESS, Relay, frame, home, pong};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::time::{sleep, timeout};

/// A row of numbers between two stages, the usual content of a frame.
const FRAME_BYTES: usize = 8 * 1024;
const IDLE_ROOMS: usize = 2500;
const ROOM_MEMBERS: usize = 4;
/// Files that the generator keeps for itself.
const OTHER_FILES: usize = 100;

async fn pair(relay: SocketAddr, group: u8, number: usize) -> io::Result<(Member, Member)> {
    let keys = Keys::of_room(u32::from(group) << 24 | number as u32);
    let from = home(group, number / ROOMS_PER_ADDRESS);
    let one = Member::own(relay, from, &keys).await?;
    let two = Member::join(relay, from, &keys).await?;
    Ok((one, two))
}

fn main() {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let named: Vec<String> = std::env::args().skip(1).filter(|argument| !argument.starts_with('-')).collect();
    let is_wanted = |part: &str| named.is_empty() || named.iter().any(|name| name == part);
    runtime.block_on(async {
        if is_wanted("idle") {
            idle().await;
        }
        if is_wanted("throughput") {
            throughput().await;
        }
        if is_wanted("hop") {
            let relay = Relay::start(false).await;
            let alone = hop(&relay, 1, 10).await;
            latency(&alone).await;
            hostile(&relay, alone).await;
        }
    });
    runtime.shutdown_background();
}

async fn idle() {
    let relay = Relay::start(false).await;
    let empty = relay.resident_megabytes();
    let rooms = IDLE_ROOMS.min(client::open_files().saturating_sub(OTHER_FILES) / ROOM_MEMBERS);
    let start = Instant::now();
    let mut tasks = Vec::new();
    for number in 0..rooms {
        let (keys, from) = (Keys::of_room(number as u32), home(9, number / ROOMS_PER_ADDRESS));
        let mut members = vec![Member::own(relay.address, from, &keys).await.unwrap()];
        for _ in 1..ROOM_MEMBERS {
            members.push(Member::join(relay.address, from, &keys).await.unwrap());
        }
        tasks.extend(members.into_iter().map(|member| tokio::spawn(member.answer_pings())));
    }
    let took = start.elapsed().as_secs_f64();
    sleep(Duration::from_secs(5)).await;
    let gone = tasks.iter().filter(|task| task.is_finished()).count();
    let cpu = relay.cpu_seconds();
    sleep(Duration::from_secs(4)).await;
    println!(
        "idle: {} members in {rooms} rooms (joined in {took:.1} s, {gone} gone): {:.0} MB resident, {empty:.0} MB before; \
         {:.0} % of a core",
        rooms * ROOM_MEMBERS,
        relay.resident_megabytes(),
        (relay.cpu_seconds() - cpu) / 4.0 * 100.0,
    );
}

/// Keeps half a window on the way to a receiver that counts what it got, for `time`.
async fn stream(sender: Member, receiver: Member, received: Arc<AtomicU64>, time: Duration) {
    // What was received but not reported yet fits into the other half.
    let window = sender.window_bytes / 2;
    let bytes = frame(receiver.route, &[0; FRAME_BYTES]);
    let got = AtomicU64::new(0);
    let (mut reader, _keep) = receiver.split();
    let (mut reports, mut writer) = sender.split();
    let receiving = async {
        while let Some((opcode, length)) = reader.skip().await {
            if opcode == 2 {
                got.fetch_add(length as u64, Ordering::Relaxed);
                received.fetch_add(1, Ordering::Relaxed);
            }
        }
    };
    let sending = async {
        let (start, mut sent) = (Instant::now(), 0_u64);
        while start.elapsed() < time {
            if sent - got.load(Ordering::Relaxed) > window {
                sleep(Duration::from_millis(1)).await;
                continue;
            }
            writer.write_all(&bytes).await.unwrap();
            sent += (FRAME_BYTES + 4) as u64;
        }
    };
    let ignoring = async { while reports.skip().await.is_some() {} };
    tokio::select! { () = sending => {}, () = receiving => {}, () = ignoring => {} }
}

async fn throughput() {
    for pairs in [8, 24, 64] {
        let relay = Relay::start(false).await;
        let (received, time) = (Arc::new(AtomicU64::new(0)), Duration::from_secs(5));
        let mut tasks = Vec::new();
        for number in 0..pairs {
            let (one, two) = pair(relay.address, 20, number).await.unwrap();
            tasks.push(tokio::spawn(stream(one, two, received.clone(), time)));
        }
        sleep(Duration::from_secs(1)).await;
        let (start, before, cpu) = (Instant::now(), received.load(Ordering::Relaxed), relay.cpu_seconds());
        sleep(Duration::from_secs(3)).await;
        let frames = (received.load(Ordering::Relaxed) - before) as f64;
        let (wall, cpu) = (start.elapsed().as_secs_f64(), relay.cpu_seconds() - cpu);
        println!(
            "throughput: {pairs} pairs: {:.0} frames of 8 KB a second ({:.0} MB/s); the relay took {:.0} % of a core, \
             {:.1} µs a frame",
            frames / wall,
            frames / wall * FRAME_BYTES as f64 / 1e6,
            cpu / wall * 100.0,
            cpu / frames * 1e6,
        );
        for task in tasks {
            let _ = task.await;
        }
    }
}

/// The times of hops from one member to another, in microseconds, sorted: 8 KB every 5 ms.
async fn hop(relay: &Relay, number: usize, seconds: u64) -> Vec<f64> {
    let (one, two) = pair(relay.address, 40, number).await.unwrap();
    let bytes = frame(two.route, &[0; FRAME_BYTES]);
    let (mut reader, mut answers) = two.split();
    let (mut ignored, mut writer) = one.split();
    let ignoring = tokio::spawn(async move { while ignored.skip().await.is_some() {} });
    let mut times = Vec::new();
    let start = Instant::now();
    while start.elapsed() < Duration::from_secs(seconds) {
        sleep(Duration::from_millis(5)).await;
        let sent = Instant::now();
        writer.write_all(&bytes).await.unwrap();
        while reader.skip().await.expect("the hop's receiver stays in its room").0 != 2 {
            answers.write_all(&pong()).await.unwrap();
        }
        times.push(sent.elapsed().as_secs_f64() * 1e6);
    }
    ignoring.abort();
    times.sort_by(f64::total_cmp);
    times
}

fn percentile(times: &[f64], part: f64) -> f64 {
    times[((times.len() - 1) as f64 * part) as usize]
}

/// The same bytes over a plain connection, for comparison.
async fn latency(through_relay: &[f64]) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mut one = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
    let (mut two, _) = listener.accept().await.unwrap();
    one.set_nodelay(true).unwrap();
    let mut bytes = vec![0; FRAME_BYTES];
    let mut times = Vec::new();
    for _ in 0..1000 {
        sleep(Duration::from_millis(5)).await;
        let sent = Instant::now();
        one.write_all(&bytes).await.unwrap();
        two.read_exact(&mut bytes).await.unwrap();
        times.push(sent.elapsed().as_secs_f64() * 1e6);
    }
    times.sort_by(f64::total_cmp);
    let (plain, relayed) = (percentile(&times, 0.5), percentile(through_relay, 0.5));
    println!("hop: p50 {relayed:.0} µs, {plain:.0} µs without a relay: {:.0} µs added", relayed - plain);
}

/// 100 slow readers with a sender each, 1,000 half-open connections, and a flood, all at once.
async fn hostile(relay: &Relay, alone: Vec<f64>) {
    let going = Arc::new(AtomicBool::new(true));
    let address = relay.address;
    let mut tasks = Vec::new();
    for number in 0..100 {
        let going = going.clone();
        tasks.push(tokio::spawn(async move {
            while going.load(Ordering::Relaxed) {
                // It reads nothing; its sender fills the window and waits. Both come back when they are put out.
                let Ok((one, slow)) = pair(address, 50, number).await else { continue };
                let bytes = frame(slow.route, &[0; FRAME_BYTES]);
                let count = one.window_bytes as usize / (FRAME_BYTES + 4);
                let (mut reader, mut writer) = one.split();
                for _ in 0..count {
                    let _ = writer.write_all(&bytes).await;
                }
                let put_out = async { while reader.skip().await.is_some() {} };
                let _ = timeout(Duration::from_secs(12), put_out).await;
                drop(slow);
            }
        }));
    }
    for number in 0..1000 {
        let going = going.clone();
        tasks.push(tokio::spawn(async move {
            while going.load(Ordering::Relaxed) {
                let socket = TcpSocket::new_v4().unwrap();
                socket.bind((home(60, number / 50), 0).into()).unwrap();
                if let Ok(mut stream) = socket.connect(address).await {
                    let _ = stream.write_all(b"GET / HTTP/1.1\r\nHost: ").await;
                    let _ = timeout(Duration::from_secs(20), stream.read(&mut [0])).await;
                }
                sleep(Duration::from_millis(200)).await;
            }
        }));
    }
    // One member that ignores every window, and comes back whenever it is put out.
    let flooding = going.clone();
    tasks.push(tokio::spawn(async move {
        let mut number = 0;
        while flooding.load(Ordering::Relaxed) {
            number += 1;
            let Ok((flood, slow)) = pair(address, 70, number).await else { continue };
            let bytes = frame(slow.route, &vec![0; 1 << 20]);
            let mut writer = flood.split().1;
            while writer.write_all(&bytes).await.is_ok() {}
            sleep(Duration::from_millis(100)).await;
        }
    }));
    sleep(Duration::from_secs(2)).await;
    let hostile = hop(relay, 2, 10).await;
    going.store(false, Ordering::Relaxed);
    let of = |times: &[f64]| (percentile(times, 0.5), percentile(times, 0.99));
    let ((quiet50, quiet99), (loud50, loud99)) = (of(&alone), of(&hostile));
    println!(
        "hostile: 100 slow readers, 1,000 half-open connections and a flood: another room's hop p50 {loud50:.0} µs, \
         p99 {loud99:.0} µs; alone {quiet50:.0} and {quiet99:.0} µs ({:.1} times); {:.0} MB resident",
        loud99 / quiet99,
        relay.resident_megabytes(),
    );
    for task in tasks {
        task.abort();
    }
}
