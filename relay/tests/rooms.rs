//! Rooms over real sockets: joining, forwarding, bad frames, limits, restarts, shutdown.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use std::time::Duration;

use common::{Member, Running, config, start};
use potluck_relay::limits::{Limits, Rate};
use potluck_relay_api::{BadFrame, Control, Departure, EVERYONE, Eviction, Refusal, Request, Route};
use tokio_tungstenite::connect_async;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::http::HeaderValue;
use tokio_tungstenite::tungstenite::{Error, Message};

async fn relay(test: &str, limits: Limits) -> Running {
    start(potluck_relay::Config { limits, ..config(test) }).await
}

/// Two members of one room.
async fn pair(relay: &Running) -> (Member, Member) {
    let (room, _) = relay.open_room("").await;
    pair_in(relay, &room).await
}

async fn pair_in(relay: &Running, room: &str) -> (Member, Member) {
    let mut one = relay.join(room).await;
    let two = relay.join(room).await;
    assert_eq!(one.control().await, Control::Join { route: two.route });
    (one, two)
}

#[tokio::test]
async fn members_are_notified_of_each_other() {
    let relay = relay("hear", Limits::default()).await;
    let (room, _) = relay.open_room(r#"{"title":"Kitchen"}"#).await;
    let mut one = relay.join(&room).await;
    assert!(one.others.is_empty());
    let two = relay.join(&room).await;
    assert_eq!(two.others, [one.route]);
    assert_ne!(two.route, one.route);
    assert_eq!(one.control().await, Control::Join { route: two.route });
    let gone = two.route;
    drop(two);
    assert_eq!(one.control().await, Control::Leave { route: gone, reason: Departure::Closed });
    let three = relay.join(&room).await;
    assert!(three.route > gone, "routes are not used twice");
}

#[tokio::test]
async fn frames_reach_one_or_everyone_with_the_senders_route() {
    let relay = relay("frames", Limits::default()).await;
    let (mut one, mut two) = pair(&relay).await;
    one.send(two.route, b"for two").await;
    assert_eq!(two.frame().await, (one.route, b"for two".to_vec()));
    one.send(two.route, b"").await;
    assert_eq!(two.frame().await, (one.route, Vec::new()));
    two.send(EVERYONE, b"for all").await;
    assert_eq!(one.frame().await, (two.route, b"for all".to_vec()));
    // Nothing comes back to the sender: the next it hears is the answer to its ping.
    two.ask(&Request::Ping { nonce: 7 }).await;
    assert_eq!(two.control().await, Control::Pong { nonce: 7 });
    assert_eq!(relay.metric("potluck_relay_frames_forwarded_total").await, 3);
    assert_eq!(relay.metric("potluck_relay_bytes_forwarded_total").await, 11 + 4 + 11);
}

#[tokio::test]
async fn order_is_kept_and_long_frames_pass() {
    let relay = relay("order", Limits::default()).await;
    let (mut one, mut two) = pair(&relay).await;
    let long: Vec<u8> = (0..(16 << 20) - 4).map(|i| (i >> 7) as u8).collect();
    for i in 0..200u32 {
        one.send(two.route, &i.to_le_bytes()).await;
    }
    one.send(two.route, &long).await;
    for i in 0..200u32 {
        assert_eq!(two.frame().await.1, i.to_le_bytes());
    }
    assert!(two.frame().await.1 == long);
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
    one.send_raw(Message::Text("{\"type\":\"evict\",\"route\":1}".into())).await;
    assert_eq!(one.control().await, bad(BadFrame::NotControl));
    let nobody = Route(two.route.0 + 1000);
    one.send(nobody, b"x").await;
    assert_eq!(one.control().await, Control::Undeliverable { route: nobody });
    let own = one.route;
    one.send(own, b"x").await;
    assert_eq!(one.control().await, Control::Undeliverable { route: own });

    one.send(two.route, &[1; 996]).await;
    assert_eq!(two.frame().await, (own, vec![1; 996]));
    assert_eq!(relay.metric("potluck_relay_frames_dropped_total{reason=\"bad-frame\"}").await, 4);
    assert_eq!(relay.metric("potluck_relay_frames_dropped_total{reason=\"undeliverable\"}").await, 2);
}

#[tokio::test]
async fn a_thousand_random_messages_do_no_harm() {
    let relay = relay("random", Limits { frame_bytes: 100, ..Limits::default() }).await;
    let (mut one, mut two) = pair(&relay).await;
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut random = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize
    };
    let mut for_two = 0u64;
    for _ in 0..1000 {
        let mut bytes: Vec<u8> = (0..random() % 120).map(|_| random() as u8).collect();
        let route = [two.route, EVERYONE, one.route, Route(0)][random() % 4];
        if random() % 2 == 0 {
            route.write(&mut bytes);
        }
        let heard = matches!(Route::read(&bytes), Some(to) if to == two.route || to == EVERYONE) && bytes.len() <= 100;
        let text = random() % 4 == 0;
        for_two += u64::from(heard && !text);
        one.send_raw(match text {
            true => Message::Text(String::from_utf8_lossy(&bytes).chars().take(50).collect::<String>().into()),
            false => Message::Binary(bytes.into()),
        })
        .await;
    }
    for _ in 0..for_two {
        assert_eq!(two.frame().await.0, one.route);
    }
    two.ask(&Request::Ping { nonce: 3 }).await;
    assert_eq!(two.control().await, Control::Pong { nonce: 3 });
    assert_eq!(relay.metric("potluck_relay_frames_forwarded_total").await, for_two);
    assert!(for_two > 100, "many were good: {for_two}");
}

#[tokio::test]
async fn a_frame_far_over_the_limit_ends_the_connection_with_a_reason() {
    let relay = relay("far", Limits { frame_bytes: 1000, ..Limits::default() }).await;
    let (mut one, mut two) = pair(&relay).await;
    let gone = two.route;
    two.send(one.route, &[0; 5000]).await;
    let reason = Eviction::FrameTooLong;
    assert_eq!(two.control().await, Control::Evicted { reason, message: reason.sentence().into() });
    assert_eq!(two.closed().await, 1009);
    assert_eq!(one.control().await, Control::Leave { route: gone, reason: Departure::Evicted });
    assert_eq!(relay.metric("potluck_relay_evictions_total{reason=\"frame-too-long\"}").await, 1);
}

#[tokio::test]
async fn a_slow_receiver_is_evicted_and_nobody_waits_for_it() {
    let mebibyte = vec![5; 1 << 20];
    let limits = Limits { queue_bytes: 8 << 20, close_timeout: Duration::from_millis(200), ..Limits::default() };
    let relay = relay("slow", limits).await;
    let (room, _) = relay.open_room("").await;
    let (mut one, mut slow) = pair_in(&relay, &room).await;
    let mut quick = relay.join(&room).await;
    assert_eq!(one.control().await, Control::Join { route: quick.route });
    assert_eq!(slow.control().await, Control::Join { route: quick.route });
    // `slow` does not read from here on. The system's buffers take some megabytes, then the relay's queue fills.
    let (slow_route, from) = (slow.route, one.route);
    let mut sent = 0;
    let left = loop {
        one.send(slow_route, &mebibyte).await;
        one.send(quick.route, &[sent]).await;
        assert_eq!(quick.next_frame_or_leave().await, Ok((from, vec![sent])));
        sent += 1;
        one.ask(&Request::Ping { nonce: 0 }).await;
        match one.control().await {
            Control::Pong { .. } => assert!(sent < 200, "the queue is bounded"),
            other => break other,
        }
    };
    assert_eq!(left, Control::Leave { route: slow_route, reason: Departure::Evicted });
    assert_eq!(relay.metric("potluck_relay_evictions_total{reason=\"slow-receiver\"}").await, 1);
}

impl Member {
    /// A frame, or the leave that may come just before it.
    async fn next_frame_or_leave(&mut self) -> Result<(Route, Vec<u8>), String> {
        match self.next().await {
            Some(Message::Text(text)) if text.contains("\"leave\"") => Ok(self.frame().await),
            Some(Message::Binary(bytes)) => Ok((Route::read(&bytes).unwrap(), bytes[4..].to_vec())),
            other => Err(format!("{other:?}")),
        }
    }
}

#[tokio::test]
async fn a_dead_connection_is_noticed() {
    let limits = Limits {
        ping_every: Duration::from_millis(50),
        missed_pings: 4,
        close_timeout: Duration::from_millis(100),
        ..Limits::default()
    };
    let relay = relay("dead", limits).await;
    let (room, _) = relay.open_room("").await;
    // It never reads, so it answers no ping.
    let dead = relay.connect(&room).await;
    let mut alive = relay.join(&room).await;
    let [dead_route] = alive.others[..] else { panic!("one other") };
    assert_eq!(alive.control().await, Control::Leave { route: dead_route, reason: Departure::Silent });
    assert_eq!(relay.metric("potluck_relay_evictions_total{reason=\"silent\"}").await, 1);
    drop(dead);
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
async fn a_refused_member_gets_the_reason() {
    let limits = Limits { members: 1, rooms: 1, ..Limits::default() };
    let relay = relay("refused", limits).await;
    let (room, _) = relay.open_room("").await;
    let _in = relay.join(&room).await;
    let cases = [
        ("aaaaaaaaaaaaaaaa".to_owned(), Refusal::NoSuchRoom, 4404),
        ("UPPER".to_owned(), Refusal::BadRoomId, 4400),
        (room, Refusal::RoomFull, 4503),
        ("aaaaaaaaaaaaaaaa?create=1".to_owned(), Refusal::RelayFull, 4503),
    ];
    for (room, reason, code) in cases {
        let mut member = relay.connect(&room).await;
        assert_eq!(member.control().await, Control::Refused { reason, message: reason.sentence().into() });
        assert_eq!(member.closed().await, code);
    }
    assert_eq!(relay.metric("potluck_relay_members_refused_total").await, 4);
}

#[tokio::test]
async fn too_many_connections_and_rooms_from_one_address_are_refused() {
    let rate = Rate { per_second: 0.001, burst: 1.0 };
    let relay = relay("rates", Limits { join_rate: rate, room_rate: rate, ..Limits::default() }).await;
    let (room, _) = relay.open_room("").await;
    let reply = relay.request("POST", "/rooms", &[], "").await;
    assert_eq!(reply.status, 429);
    assert!(reply.header("retry-after").unwrap().parse::<u64>().unwrap() > 900);
    assert_eq!(reply.json()["error"], "too-many-rooms");
    let _one = relay.join(&room).await;
    let mut two = relay.connect(&room).await;
    assert!(matches!(two.control().await, Control::Refused { reason: Refusal::TooManyConnections, .. }));
    assert_eq!(two.closed().await, 4429);
}

#[tokio::test]
async fn only_visible_rooms_with_somebody_in_them_are_listed() {
    let relay = relay("listed", Limits::default()).await;
    let (_hidden, _) = relay.open_room(r#"{"title":"Hidden"}"#).await;
    let (room, owner) = relay.open_room(r#"{"title":"Kitchen","visible":true}"#).await;
    assert_eq!(relay.get("/rooms").await.json()["rooms"], serde_json::json!([]));
    let mut host = relay.join(&room).await;
    let listed = relay.get("/rooms").await.json();
    assert_eq!(listed["rooms"][0]["id"], room);
    assert_eq!(listed["rooms"][0]["title"], "Kitchen");
    assert_eq!(listed["rooms"][0]["members"], 1);
    assert!(listed["rooms"][0].get("owner").is_none());

    let hide = |owner: &str| Request::Listing { owner: owner.into(), title: "Kitchen".into(), visible: false };
    host.ask(&hide("wrong")).await;
    assert!(matches!(host.control().await, Control::BadFrame { reason: BadFrame::NotControl, .. }));
    host.ask(&hide(&owner)).await;
    host.ask(&Request::Ping { nonce: 1 }).await;
    assert_eq!(host.control().await, Control::Pong { nonce: 1 });
    assert_eq!(relay.get("/rooms").await.json()["rooms"], serde_json::json!([]));
}

#[tokio::test]
async fn a_room_can_be_recreated_after_a_restart_by_its_owner() {
    let mut before = relay("restart", Limits::default()).await;
    let (room, owner) = before.open_room(r#"{"title":"Kitchen","visible":true}"#).await;
    let mut host = before.join(&room).await;
    let mut guest = before.join(&room).await;
    assert_eq!(host.control().await, Control::Join { route: guest.route });
    before.ask_to_stop();
    for member in [&mut host, &mut guest] {
        assert!(matches!(member.control().await, Control::Shutdown { .. }));
        assert_eq!(member.closed().await, 1001);
    }

    let after = relay("restarted", Limits::default()).await;
    let mut refused = after.connect(&room).await;
    assert!(matches!(refused.control().await, Control::Refused { reason: Refusal::NoSuchRoom, .. }));
    let mut guest = after.join(&format!("{room}?create=1")).await;
    let mut host = after.join(&format!("{room}?create=1")).await;
    assert_eq!(guest.control().await, Control::Join { route: host.route });
    assert_eq!(host.others, [guest.route]);
    assert_eq!(after.get("/rooms").await.json()["rooms"], serde_json::json!([]), "a recreated room is not listed");
    host.ask(&Request::Listing { owner, title: "Kitchen".into(), visible: true }).await;
    host.ask(&Request::Ping { nonce: 1 }).await;
    assert_eq!(host.control().await, Control::Pong { nonce: 1 });
    assert_eq!(after.get("/rooms").await.json()["rooms"][0]["members"], 2);
}

#[tokio::test]
async fn queued_frames_are_sent_before_the_shutdown() {
    let mut relay = relay("goodbye", Limits::default()).await;
    let (mut one, mut two) = pair(&relay).await;
    for i in 0..50u8 {
        one.send(two.route, &[i]).await;
    }
    one.ask(&Request::Ping { nonce: 1 }).await;
    assert_eq!(one.control().await, Control::Pong { nonce: 1 });
    relay.ask_to_stop();
    for i in 0..50u8 {
        assert_eq!(two.frame().await.1, [i]);
    }
    assert!(matches!(two.control().await, Control::Shutdown { .. }));
    assert_eq!(two.closed().await, 1001);
}

#[tokio::test]
async fn pages_of_other_sites_are_refused() {
    let relay = relay("origin", Limits::default()).await;
    let own = format!("http://{}", relay.address);
    for (origin, status) in [("https://evil.example", 403), ("null", 403), (own.as_str(), 201)] {
        let reply = relay.request("POST", "/rooms", &[("Origin", origin)], "").await;
        assert_eq!(reply.status, status, "{origin}");
    }
    let mut request = format!("ws://{}/rooms/abcd?create=1", relay.address).into_client_request().unwrap();
    request.headers_mut().insert("origin", HeaderValue::from_static("https://evil.example"));
    match connect_async(request).await {
        Err(Error::Http(response)) => assert_eq!(response.status(), 403),
        other => panic!("a refusal, not {other:?}"),
    }
    assert_eq!(relay.request("POST", "/rooms", &[], "[1]").await.status, 400);
}
