//! Rooms over real sockets: forwarding, bad frames, windows, rates, restarts, shutdown.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use std::time::Duration;

use common::{Keys, Member, Running, TIMEOUT, config, fragment, ping, start};
use futures_util::{SinkExt, StreamExt};
use potluck_relay::limits::{Limits, Rate};
use potluck_relay_api::{BadFrame, Control, Departure, Eviction, Refusal, Request, Route, join_parts};
use tokio_tungstenite::tungstenite::Message;

async fn relay(test: &str, limits: Limits) -> Running {
    start(potluck_relay::Config { limits, ..config(test) }).await
}

/// The owner and a guest of one room.
async fn pair(relay: &Running) -> (Member, Member) {
    pair_in(relay, &Keys::new(1)).await
}

async fn pair_in(relay: &Running, keys: &Keys) -> (Member, Member) {
    let mut one = relay.own(keys).await;
    let two = relay.join(keys).await;
    assert_eq!(one.control().await, joined(&two));
    (one, two)
}

fn joined(member: &Member) -> Control {
    Control::Join { route: member.route, owner: false }
}

#[tokio::test]
async fn members_are_notified_of_each_other() {
    let (relay, keys) = (relay("hear", Limits::default()).await, Keys::new(1));
    let mut one = relay.own(&keys).await;
    assert_eq!((one.owner, one.others.len()), (Some(one.route), 0));
    let two = relay.join(&keys).await;
    assert_eq!((two.owner, &two.others[..]), (Some(one.route), &[one.route][..]));
    assert_ne!(two.route, one.route);
    assert_eq!(one.control().await, joined(&two));
    let gone = two.route;
    drop(two);
    assert_eq!(one.control().await, Control::Leave { route: gone, reason: Departure::Closed });
    let three = relay.join(&keys).await;
    assert!(three.route > gone, "routes are not used twice");
}

#[tokio::test]
async fn a_frame_reaches_its_receiver_with_the_senders_route() {
    let relay = relay("frames", Limits::default()).await;
    let (mut one, mut two) = pair(&relay).await;
    one.send(two.route, b"for two").await;
    assert_eq!(two.frame().await, (one.route, b"for two".to_vec()));
    one.send(two.route, b"").await;
    assert_eq!(two.frame().await, (one.route, Vec::new()));
    two.settle().await;
    assert_eq!(relay.metric("potluck_relay_frames_forwarded_total").await, 2);
    assert_eq!(relay.metric("potluck_relay_bytes_forwarded_total").await, 11 + 4);
}

#[tokio::test]
async fn order_is_kept_and_long_frames_pass() {
    let relay = relay("order", Limits::default()).await;
    let (mut one, mut two) = pair(&relay).await;
    let long: Vec<u8> = (0..(16 << 20) - 4).map(|i| (i >> 7) as u8).collect();
    assert!(long.len() as u64 > 2 * one.limits.window_bytes, "longer than the window");
    let to = two.route;
    let sending = async {
        for i in 0..200u32 {
            one.send(to, &i.to_le_bytes()).await;
        }
        one.send(to, &long).await;
        one.send(to, b"end").await;
    };
    let receiving = async {
        for i in 0..200u32 {
            assert_eq!(two.frame().await.1, i.to_le_bytes());
        }
        assert!(two.frame().await.1 == long);
        assert_eq!(two.frame().await.1, b"end");
    };
    tokio::join!(sending, receiving);
}

#[tokio::test]
async fn each_part_of_a_message_reaches_its_receiver() {
    let relay = relay("parts", Limits::default()).await;
    let keys = Keys::new(1);
    let (mut one, mut two) = pair_in(&relay, &keys).await;
    let mut three = relay.join(&keys).await;
    let nobody = Route(three.route.0 + 1000);
    let parts = [(two.route, b"for two".as_slice()), (three.route, b""), (nobody, b"x"), (two.route, b"more")];
    assert_eq!(two.control().await, joined(&three));
    one.send_parts(&parts).await;
    assert_eq!(two.frame().await, (one.route, b"for two".to_vec()));
    assert_eq!(two.frame().await, (one.route, b"more".to_vec()));
    assert_eq!(three.frame().await, (one.route, Vec::new()));
    let told = [one.control().await, one.control().await];
    assert_eq!(told[1], Control::Undeliverable { route: nobody });
    assert_eq!(relay.metric("potluck_relay_frames_received_total").await, 1);
    assert_eq!(relay.metric("potluck_relay_frames_forwarded_total").await, 3);
}

#[tokio::test]
async fn parts_count_against_their_rate_and_their_receivers_window() {
    let limits = Limits { part_rate: Rate { per_second: 200.0, burst: 10.0 }, window_bytes: 100, ..Limits::default() };
    let relay = relay("part-rate", limits).await;
    let (mut one, mut two) = pair(&relay).await;
    one.send_parts(&[(two.route, b"".as_slice()); 20]).await;
    for _ in 0..20 {
        two.frame().await;
    }
    while !matches!(one.control().await, Control::Limited { wait_ms: 1.. }) {}
    // The first is longer than the window, which is allowed while nothing is on the way.
    let long = [0; 100];
    one.send_parts(&[(two.route, long.as_slice()), (two.route, b"x")]).await;
    while !matches!(one.control().await, Control::Evicted { reason: Eviction::WindowExceeded, .. }) {}
}

#[tokio::test]
async fn bad_frames_are_answered_and_the_connection_stays() {
    let relay = relay("bad", Limits { frame_bytes: 1000, ..Limits::default() }).await;
    let (mut one, mut two) = pair(&relay).await;
    let bad = |reason: BadFrame| Control::BadFrame { reason, message: reason.sentence().into() };

    one.send_raw(Message::Binary(vec![0, 0, 1].into())).await;
    assert_eq!(one.control().await, bad(BadFrame::TooShort));
    one.send_raw(Message::Binary(Vec::new().into())).await;
    assert_eq!(one.control().await, bad(BadFrame::TooShort));
    one.send(two.route, &[0; 997]).await;
    assert_eq!(one.control().await, bad(BadFrame::TooLong));
    one.send(Route::RESERVED, b"to all").await;
    assert_eq!(one.control().await, bad(BadFrame::NoReceiver));
    let cut = join_parts([(two.route, b"first".as_slice()), (two.route, b"second")]);
    one.send_raw(Message::Binary(cut[..cut.len() - 1].to_vec().into())).await;
    assert_eq!(one.control().await, bad(BadFrame::Parts));
    for text in ["{\"type\":\"evict\",\"route\":1}", "{\"type\":\"enter\",\"proof\":{\"as\":\"visitor\"}}"] {
        one.send_raw(Message::Text(text.into())).await;
        assert_eq!(one.control().await, bad(BadFrame::NotControl), "{text}");
    }
    let nobody = Route(two.route.0 + 1000);
    one.send(nobody, b"x").await;
    assert_eq!(one.control().await, Control::Undeliverable { route: nobody });
    let own = one.route;
    one.send(own, b"x").await;
    assert_eq!(one.control().await, Control::Undeliverable { route: own });

    one.send(two.route, &[1; 996]).await;
    assert_eq!(two.frame().await, (own, vec![1; 996]));
    assert_eq!(relay.metric("potluck_relay_frames_dropped_total{reason=\"bad-frame\"}").await, 7);
    assert_eq!(relay.metric("potluck_relay_frames_dropped_total{reason=\"undeliverable\"}").await, 2);
}

#[tokio::test]
async fn a_thousand_random_messages_do_no_harm() {
    let relay = relay("random", Limits { frame_bytes: 300, ..Limits::default() }).await;
    let (mut one, mut two) = pair(&relay).await;
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut random = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize
    };
    let mut for_two = 0u64;
    for _ in 0..1000 {
        let mut bytes: Vec<u8> = (0..random() % 360).map(|_| random() as u8).collect();
        let route = [two.route, two.route, Route::RESERVED, one.route, Route(0)][random() % 5];
        if random() % 2 == 0 {
            route.write(&mut bytes);
        }
        let heard = Route::read(&bytes) == Some(two.route) && bytes.len() <= 300;
        let text = random() % 4 == 0;
        for_two += u64::from(heard && !text);
        one.send_raw(if text {
            Message::Text(String::from_utf8_lossy(&bytes).chars().take(50).collect::<String>().into())
        } else {
            Message::Binary(bytes.into())
        })
        .await;
    }
    for _ in 0..for_two {
        assert_eq!(two.frame().await.0, one.route);
    }
    two.settle().await;
    assert_eq!(relay.metric("potluck_relay_frames_forwarded_total").await, for_two);
    assert!(for_two > 80, "many were good: {for_two}");
}

#[tokio::test]
async fn a_frame_far_over_the_limit_ends_the_connection_with_a_reason() {
    let relay = relay("far", Limits { frame_bytes: 1000, ..Limits::default() }).await;
    let (mut one, mut two) = pair(&relay).await;
    two.send(one.route, &[0; 5000]).await;
    assert_eq!(two.evicted().await, Eviction::FrameTooLong);
    assert_eq!(one.control().await, Control::Leave { route: two.route, reason: Departure::Evicted });
    assert_eq!(relay.metric("potluck_relay_evictions_total{reason=\"frame-too-long\"}").await, 1);
}

/// Before there were windows, a queue over 64 MiB evicted its receiver: any member could put out any slower one.
#[tokio::test]
async fn a_slow_receiver_slows_its_sender_and_nobody_else() {
    let limits = Limits { window_bytes: 1 << 20, ..Limits::default() };
    let relay = relay("slow", limits).await;
    let (one_keys, other_keys) = (Keys::new(1), Keys::new(2));
    let (mut one, mut slow) = pair_in(&relay, &one_keys).await;
    let mut quick = relay.join(&one_keys).await;
    assert_eq!(one.control().await, joined(&quick));
    assert_eq!(slow.control().await, joined(&quick));
    let (mut host, mut guest) = pair_in(&relay, &other_keys).await;
    // `slow` does not read. The system's buffers take some megabytes, then nothing is taken any more.
    let chunk = vec![5; 256 << 10];
    let (slow_route, quick_route) = (slow.route, quick.route);
    let blocked = async {
        loop {
            one.send(slow_route, &chunk).await;
        }
    };
    let blocked = tokio::time::timeout(Duration::from_secs(2), blocked).await;
    assert!(blocked.is_err(), "the sender waits for its window");
    for i in 0..100 {
        one.send(quick_route, &[i]).await;
        assert_eq!(quick.frame().await, (one.route, vec![i]), "to another receiver of the same sender");
        host.send(guest.route, &[i]).await;
        assert_eq!(guest.frame().await, (host.route, vec![i]), "in another room");
    }
    assert!(relay.metric("potluck_relay_queued_bytes").await <= 2 << 20, "what waits is bounded by the window");
    // Nothing was lost and nobody was evicted: it reads on.
    assert_eq!(slow.frame().await, (one.route, chunk.clone()));
    quick.settle().await;
}

#[tokio::test]
async fn a_sender_that_ignores_its_window_is_evicted_alone() {
    let limits = Limits { window_bytes: 64 << 10, close_timeout: Duration::from_secs(2), ..Limits::default() };
    let relay = relay("flood", limits).await;
    let keys = Keys::new(1);
    let (mut one, slow) = pair_in(&relay, &keys).await;
    let mut flood = relay.join(&keys).await;
    assert_eq!(one.control().await, joined(&flood));
    let (mut host, mut guest) = pair_in(&relay, &Keys::new(2)).await;
    let mut sent = 0;
    // As fast as the socket takes it; `slow` reads nothing.
    let evicted = loop {
        let frame = Message::Binary(slow.route.prepend(&[0; 60 << 10]).into());
        if futures_util::SinkExt::send(&mut flood.socket, frame).await.is_err() {
            break None;
        }
        sent += 1;
        assert!(sent < 10_000, "it is put out");
        host.send(guest.route, b"hop").await;
        assert_eq!(guest.frame().await, (host.route, b"hop".to_vec()), "another room goes on");
        let soon = tokio::time::timeout(Duration::from_millis(1), futures_util::StreamExt::next(&mut flood.socket));
        if let Ok(Some(Ok(Message::Text(text)))) = soon.await
            && let Ok(Control::Evicted { reason, .. }) = serde_json::from_str(&text)
        {
            break Some(reason);
        }
    };
    assert!(matches!(evicted, None | Some(Eviction::WindowExceeded)), "{evicted:?}");
    assert_eq!(one.control().await, Control::Leave { route: flood.route, reason: Departure::Evicted });
    assert_eq!(relay.metric("potluck_relay_evictions_total{reason=\"window-exceeded\"}").await, 1);
    assert_eq!(relay.metric("potluck_relay_evictions_total{reason=\"slow-receiver\"}").await, 0);
    relay.until_metric("potluck_relay_members", 4).await;
    // Everyone else is still there.
    one.settle().await;
    guest.settle().await;
    drop(slow);
}

/// What an evicted member went on sending used to be read for two seconds as fast as it came.
#[tokio::test]
async fn who_was_evicted_and_sends_on_is_read_slowly() {
    let limits = Limits { window_bytes: 64 << 10, ..Limits::default() };
    let relay = relay("sends-on", limits).await;
    let (mut one, slow) = pair(&relay).await;
    // More than the window at once, then whatever the socket takes.
    let part = [0; 60 << 10];
    one.send_parts(&[(slow.route, part.as_slice()); 2]).await;
    let chunk = vec![0; 1 << 20];
    // A frame of 1 MiB begins, and ends with each chunk.
    let head = [0x82, 0xff, 0, 0, 0, 0, 0, 0x10, 0, 0, 0, 0, 0, 0];
    let raw = one.socket.get_mut();
    let mut taken = 0;
    let send_on = async {
        while tokio::io::AsyncWriteExt::write_all(raw, &head).await.is_ok() {
            if tokio::io::AsyncWriteExt::write_all(raw, &chunk).await.is_err() {
                break;
            }
            taken += 1;
        }
    };
    tokio::time::timeout(Duration::from_secs(10), send_on).await.expect("the connection ends");
    assert!(taken < 40, "{taken} MiB were read of a member that was put out");
}

#[tokio::test]
async fn who_takes_nothing_for_too_long_is_evicted() {
    let limits = Limits {
        stall: Duration::from_millis(300),
        close_timeout: Duration::from_millis(200),
        ping_every: Duration::from_secs(60),
        ..Limits::default()
    };
    let relay = relay("stalled", limits).await;
    let (mut one, stalled) = pair(&relay).await;
    let left = one.send_until_told(stalled.route, &vec![5; 1 << 20]).await;
    assert_eq!(left, Control::Leave { route: stalled.route, reason: Departure::Evicted });
    assert_eq!(relay.metric("potluck_relay_evictions_total{reason=\"slow-receiver\"}").await, 1);
    // The relay may still read what was sent meanwhile.
    relay.until_metric("potluck_relay_queued_bytes", 0).await;
}

/// A message that is never finished used to count nowhere: 31 of 32 MiB a connection.
#[tokio::test]
async fn unfinished_messages_count_as_memory() {
    let limits = Limits { memory_bytes: 3 << 20, fair_memory_bytes: 2 << 20, ..Limits::default() };
    let relay = relay("unfinished", limits).await;
    let keys = Keys::new(1);
    let mut host = relay.own(&keys).await;
    let mut sender = relay.join(&keys).await;
    assert_eq!(host.control().await, joined(&sender));
    // A frame of 16 MiB begins and never ends.
    let start = [&[0x82, 0xff, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0][..], &vec![0; 5 << 20]].concat();
    // It fails or blocks once the relay has closed the connection.
    let raw = sender.socket.get_mut();
    let written = tokio::io::AsyncWriteExt::write_all(raw, &start);
    let _ = tokio::time::timeout(Duration::from_secs(10), written).await;
    assert_eq!(host.control().await, Control::Leave { route: sender.route, reason: Departure::Evicted });
    assert_eq!(relay.metric("potluck_relay_evictions_total{reason=\"relay-full\"}").await, 1);
    assert_eq!(relay.metric("potluck_relay_queued_bytes").await, 0);
}

/// A ping between two fragments used to take those before it out of the count, although the relay still held them.
#[tokio::test]
async fn pings_do_not_hide_an_unfinished_message() {
    let limits = Limits { memory_bytes: 3 << 20, fair_memory_bytes: 2 << 20, ..Limits::default() };
    let relay = relay("fragments", limits).await;
    let keys = Keys::new(1);
    let mut host = relay.own(&keys).await;
    let mut sender = relay.join(&keys).await;
    assert_eq!(host.control().await, joined(&sender));
    let socket = &mut sender.socket;
    let mut taken = 0;
    // It fails or blocks once the relay has closed the connection.
    let written = async {
        while taken < 5 && socket.send(fragment(taken == 0, 1 << 20)).await.is_ok() && ping(socket, b"here").await {
            taken += 1;
        }
    };
    let _ = tokio::time::timeout(Duration::from_secs(10), written).await;
    assert!(taken < 3, "{taken} MiB were taken of a message that does not end");
    assert_eq!(host.control().await, Control::Leave { route: sender.route, reason: Departure::Evicted });
    assert_eq!(relay.metric("potluck_relay_evictions_total{reason=\"relay-full\"}").await, 1);
    assert_eq!(relay.metric("potluck_relay_queued_bytes").await, 0);
}

/// Nothing but pings finishes no message, so each has to return what it was counted with.
#[tokio::test]
async fn pings_do_not_add_up() {
    let limits = Limits {
        memory_bytes: 32 << 10,
        fair_memory_bytes: 16 << 10,
        frame_rate: Rate { per_second: 1e6, burst: 1e6 },
        ping_every: Duration::from_secs(60),
        ..Limits::default()
    };
    let relay = relay("pings", limits).await;
    let mut member = relay.own(&Keys::new(1)).await;
    let longest = [7; 125];
    for i in 0..3000 {
        // All lengths, for each has a size of its own.
        assert!(ping(&mut member.socket, &longest[..i % 126]).await, "put out after {i} pings");
    }
    assert_eq!(relay.metric("potluck_relay_queued_bytes").await, 0);
    member.settle().await;
}

/// Each ping has a pong, which waits in memory that nothing else counts. Beyond a limit only the newest is kept.
#[tokio::test]
async fn who_pings_and_reads_nothing_does_not_fill_the_memory() {
    const PINGS: usize = 300_000;
    let fast = Rate { per_second: 1e9, burst: 1e9 };
    // It takes nothing while it sends, which takes long on a busy machine. A ping of the relay's own would find the buffer full,
    // but the last pong may wait for one.
    let (stall, ping_every) = (TIMEOUT, Duration::from_secs(10));
    let limits = Limits { frame_rate: fast, frame_bytes: 16 << 10, stall, ping_every, ..Limits::default() };
    let relay = relay("pongs", limits).await;
    let mut member = relay.own(&Keys::new(1)).await;
    for _ in 0..PINGS {
        member.socket.feed(Message::Ping(vec![7; 125].into())).await.unwrap();
    }
    member.socket.send(Message::Ping(b"last".to_vec().into())).await.unwrap();
    let mut pongs = 0;
    loop {
        match member.socket.next().await.expect("the connection stays").unwrap() {
            Message::Pong(payload) if payload == "last" => break,
            Message::Pong(_) => pongs += 1,
            _ => {}
        }
    }
    // The network's own buffers hold some of 39 MB.
    assert!(pongs < PINGS / 2, "{pongs} of {PINGS} pongs were kept");
}

#[tokio::test]
async fn a_dead_connection_is_noticed() {
    let limits = Limits {
        ping_every: Duration::from_millis(50),
        missed_pings: 4,
        close_timeout: Duration::from_millis(100),
        ..Limits::default()
    };
    let (relay, keys) = (relay("dead", limits).await, Keys::new(1));
    let mut alive = relay.own(&keys).await;
    // It reads nothing after its welcome, so it answers no ping. The other one reads all the time.
    let (dead, join) = tokio::join!(relay.join(&keys), alive.control());
    assert_eq!(join, joined(&dead));
    assert_eq!(alive.control().await, Control::Leave { route: dead.route, reason: Departure::Silent });
    // Else it would be the next, while the counter is asked for.
    drop(alive);
    assert_eq!(relay.metric("potluck_relay_evictions_total{reason=\"silent\"}").await, 1);
}

#[tokio::test]
async fn who_sends_too_fast_waits_and_loses_nothing() {
    let limits = Limits { frame_rate: Rate { per_second: 200.0, burst: 10.0 }, ..Limits::default() };
    let relay = relay("fast", limits).await;
    let (mut one, mut two) = pair(&relay).await;
    for i in 0..30u8 {
        one.send(two.route, &[i]).await;
    }
    for i in 0..30u8 {
        assert_eq!(two.frame().await, (one.route, vec![i]));
    }
    assert!(matches!(one.control().await, Control::Limited { wait_ms: 1.. }));
    assert!(relay.metric("potluck_relay_senders_limited_total").await > 0);
}

#[tokio::test]
async fn only_visible_rooms_with_their_owner_in_them_are_listed() {
    let relay = relay("listed", Limits::default()).await;
    let (hidden, keys) = (Keys::new(2), Keys::listed(1, "Kitchen"));
    let _hidden = relay.own(&hidden).await;
    let mut host = relay.own(&keys).await;
    let listed = relay.get("/rooms").await.json();
    assert_eq!(listed["rooms"].as_array().unwrap().len(), 1);
    assert_eq!(listed["rooms"][0]["id"], keys.id());
    assert_eq!(listed["rooms"][0]["title"], "Kitchen");
    assert_eq!(listed["rooms"][0]["members"], 1);

    let mut guest = relay.join(&keys).await;
    assert_eq!(host.control().await, joined(&guest));
    let hide = Request::Listing { title: "Kitchen".into(), visible: false };
    guest.ask(&hide).await;
    assert!(matches!(guest.control().await, Control::BadFrame { reason: BadFrame::NotControl, .. }));
    assert_eq!(relay.get("/rooms").await.json()["rooms"].as_array().unwrap().len(), 1, "only the owner may");
    host.ask(&hide).await;
    host.settle().await;
    assert_eq!(relay.get("/rooms").await.json()["rooms"], serde_json::json!([]));

    let gone = host.route;
    drop(host);
    assert_eq!(guest.control().await, Control::Leave { route: gone, reason: Departure::Closed });
    let host = relay.own(&keys).await;
    assert_eq!(guest.control().await, Control::Join { route: host.route, owner: true });
    assert_eq!(relay.get("/rooms").await.json()["rooms"][0]["members"], 2, "visible again");
    let gone = host.route;
    drop(host);
    assert_eq!(guest.control().await, Control::Leave { route: gone, reason: Departure::Closed });
    assert_eq!(relay.get("/rooms").await.json()["rooms"], serde_json::json!([]), "nobody would let anyone in");
}

#[tokio::test]
async fn a_room_is_created_again_after_a_restart_by_its_owner() {
    let mut before = relay("restart", Limits::default()).await;
    let keys = Keys::listed(1, "Kitchen");
    let (mut host, mut guest) = pair_in(&before, &keys).await;
    before.ask_to_stop();
    for member in [&mut host, &mut guest] {
        assert!(matches!(member.control().await, Control::Shutdown { .. }));
        assert_eq!(member.closed().await, 1001);
    }

    let after = relay("restarted", Limits::default()).await;
    assert_eq!(after.refused(&keys.id(), |nonce| keys.link(nonce)).await, Refusal::NoSuchRoom);
    let (_host, _guest) = pair_in(&after, &keys).await;
    assert_eq!(after.get("/rooms").await.json()["rooms"][0]["members"], 2, "listed at once");
}

#[tokio::test]
async fn queued_frames_are_sent_before_the_shutdown() {
    let mut relay = relay("goodbye", Limits::default()).await;
    let (mut one, mut two) = pair(&relay).await;
    for i in 0..50u8 {
        one.send(two.route, &[i]).await;
    }
    one.settle().await;
    relay.ask_to_stop();
    for i in 0..50u8 {
        assert_eq!(two.frame().await.1, [i]);
    }
    assert!(matches!(two.control().await, Control::Shutdown { .. }));
    assert_eq!(two.closed().await, 1001);
}
