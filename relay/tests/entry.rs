//! Who gets into a room: proofs, replays, strangers, visitors, owners, limits by address.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use std::net::Ipv4Addr;
use std::time::Duration;

use common::{Keys, Member, Running, TIMEOUT, config, connector, folder, fragment, ping, start};
use futures_util::SinkExt;
use potluck_relay::limits::{Limits, Rate};
use potluck_relay::net::tls::Identity;
use potluck_relay_api::{Binary, Control, Departure, EntryProof, Eviction, Nonce, Refusal, Request, Term, nonce_at};
use tokio::net::TcpStream;
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_tungstenite::client_async;
use tokio_tungstenite::tungstenite::Message;

async fn relay(test: &str, limits: Limits) -> Running {
    start(potluck_relay::Config { limits, ..config(test) }).await
}

fn visitor(_: &potluck_relay_api::Nonce) -> EntryProof {
    EntryProof::Visitor
}

/// Before, a stranger's socket got every broadcast, the host's hello with the room's key first.
#[tokio::test]
async fn a_stranger_without_the_join_key_gets_no_seat_and_no_bytes() {
    let (relay, keys, other) = (relay("stranger", Limits::default()).await, Keys::new(1), Keys::new(2));
    let mut host = relay.own(&keys).await;
    let mut guest = relay.join(&keys).await;
    assert_eq!(host.control().await, Control::Join { route: guest.route, owner: false });
    let (mut silent, _) = relay.challenged(&keys.id()).await;
    for refused in [
        relay.refused(&keys.id(), |nonce| other.link(nonce)).await,
        relay.refused(&keys.id(), |nonce| other.owner(nonce)).await,
        relay.refused(&keys.id(), |_| EntryProof::Link { key: keys.join_key(), signature: Binary([0; 64]) }).await,
    ] {
        assert_eq!(refused, Refusal::BadProof);
    }
    assert_eq!(relay.refused(&keys.id(), visitor).await, Refusal::NotListed);
    // A frame instead of a proof.
    let (mut pushy, _) = relay.challenged(&keys.id()).await;
    pushy.send_raw(Message::Binary(host.route.prepend(b"let me in").into())).await;
    assert_eq!(pushy.refused().await, Refusal::BadProof);
    host.send(guest.route, b"between us").await;
    assert_eq!(guest.frame().await.1, b"between us");
    // Nobody in the room noticed anything, and who proved nothing got nothing.
    host.settle().await;
    guest.settle().await;
    let nothing = tokio::time::timeout(Duration::from_millis(200), silent.next()).await;
    assert!(nothing.is_err(), "{nothing:?}");
    assert_eq!(relay.metric("potluck_relay_members_joined_total").await, 2);
}

#[tokio::test]
async fn a_proof_of_another_connection_is_refused() {
    let (relay, keys) = (relay("replay", Limits::default()).await, Keys::new(1));
    let _host = relay.own(&keys).await;
    let (mut first, nonce) = relay.challenged(&keys.id()).await;
    let (link, owner) = (keys.link(&nonce), keys.owner(&nonce));
    first.enter(link.clone()).await;
    first.welcomed().await;
    for proof in [link, owner] {
        assert_eq!(relay.refused(&keys.id(), |_| proof).await, Refusal::BadProof);
    }
}

/// Before, an evil relay could pass on a challenge of another one and take the seat.
#[tokio::test]
async fn a_proof_for_another_relay_is_refused() {
    let (relay, evil) = (relay("relay", Limits::default()).await, relay("evil-relay", Limits::default()).await);
    let keys = Keys::new(1);
    let _host = relay.own(&keys).await;
    let (mut member, raw) = relay.raw_challenge(&keys.id()).await;
    member.enter(keys.link(&nonce_at(&evil.address.to_string(), &raw))).await;
    assert_eq!(member.refused().await, Refusal::BadProof);
    let (mut member, raw) = relay.raw_challenge(&keys.id()).await;
    member.enter(keys.link(&nonce_at(&relay.address.to_string(), &raw))).await;
    member.welcomed().await;
}

#[tokio::test]
async fn a_proof_is_for_one_room_and_one_role() {
    let (relay, keys, other) = (relay("other", Limits::default()).await, Keys::new(1), Keys::new(2));
    let _host = relay.own(&keys).await;
    assert_eq!(relay.refused(&other.id(), |nonce| keys.owner(nonce)).await, Refusal::BadProof);
    let id = keys.id();
    let altered = relay.refused(&id, |nonce| match keys.owner(nonce) {
        EntryProof::Owner { key, title, visible, term, signature, .. } => {
            EntryProof::Owner { key, title, visible, term, signature, join_key: Binary([9; 32]) }
        }
        other => other,
    });
    assert_eq!(altered.await, Refusal::BadProof, "a relay in between cannot replace the join key");
    let as_link = relay.refused(&id, |nonce| match keys.owner(nonce) {
        EntryProof::Owner { signature, .. } => EntryProof::Link { key: keys.join_key(), signature },
        other => other,
    });
    assert_eq!(as_link.await, Refusal::BadProof);
}

#[tokio::test]
async fn only_its_owner_creates_a_room() {
    let (relay, keys) = (relay("create", Limits::default()).await, Keys::new(1));
    assert_eq!(relay.refused(&keys.id(), |nonce| keys.link(nonce)).await, Refusal::NoSuchRoom);
    assert_eq!(relay.refused(&keys.id(), visitor).await, Refusal::NoSuchRoom);
    assert_eq!(relay.request("POST", "/rooms", &[], "").await.status, 405);
    let mut malformed = relay.connect("abcd?create=1").await;
    assert_eq!(malformed.refused().await, Refusal::BadRoomId);
    assert_eq!(relay.metric("potluck_relay_rooms").await, 0);
    let _host = relay.own(&keys).await;
    assert_eq!(relay.metric("potluck_relay_rooms").await, 1);
}

/// Behind a proxy, a room's members come from another relay together.
#[tokio::test]
async fn whoever_comes_a_little_earlier_than_the_owner_waits() {
    let (relay, keys) = (relay("wait", Limits { room_wait: TIMEOUT, ..Limits::default() }).await, Keys::new(1));
    let (mut guest, nonce) = relay.challenged(&keys.id()).await;
    guest.enter(keys.link(&nonce)).await;
    let host = relay.own(&keys).await;
    guest.welcomed().await;
    assert_eq!(guest.owner, Some(host.route));
}

#[tokio::test]
async fn a_second_owner_connection_replaces_the_first() {
    let (relay, keys) = (relay("replace", Limits::default()).await, Keys::new(1));
    let mut first = relay.own(&keys).await;
    let mut guest = relay.join(&keys).await;
    assert_eq!(first.control().await, Control::Join { route: guest.route, owner: false });
    let mut second = relay.own(&keys).await;
    assert_eq!((&second.others[..], second.owner), (&[guest.route][..], Some(second.route)));
    assert_eq!(first.evicted().await, Eviction::Replaced);
    assert!(Eviction::Replaced.is_final());
    assert_eq!(guest.control().await, Control::Leave { route: first.route, reason: Departure::Evicted });
    assert_eq!(guest.control().await, Control::Join { route: second.route, owner: true });
    second.send(guest.route, b"hello again").await;
    assert_eq!(guest.frame().await, (second.route, b"hello again".to_vec()));
    assert_eq!(relay.metric("potluck_relay_rooms").await, 1);
}

/// A host whose laptop slept through it comes back as somebody with the link.
#[tokio::test]
async fn an_owner_of_an_earlier_term_does_not_come_back_as_the_owner() {
    let limits = Limits { owner_silence: Duration::ZERO, ..Limits::default() };
    let (relay, keys) = (relay("terms", limits).await, Keys::new(1));
    let mut first = relay.own(&keys).await;
    let in_term = |term| move |nonce: &Nonce| Keys::new(1).owner_in(Term(term), &Keys::new(1), nonce);
    let second = relay.enter(&keys.id(), in_term(1)).await;
    assert_eq!(second.owner, Some(second.route));
    assert_eq!(first.evicted().await, Eviction::Superseded);
    assert!(Eviction::Superseded.is_final());
    assert_eq!(relay.refused(&keys.id(), in_term(0)).await, Refusal::Superseded);
    let guest = relay.join(&keys).await;
    assert_eq!(guest.owner, Some(second.route), "the present owner was left alone");
    let mut again = relay.enter(&keys.id(), in_term(1)).await;
    assert_eq!(again.owner, Some(again.route), "in the same term an owner replaces itself, as after a reload");
    drop(second);
    let third = relay.enter(&keys.id(), in_term(7)).await;
    assert_eq!((again.evicted().await, third.owner), (Eviction::Superseded, Some(third.route)));
}

#[tokio::test]
async fn nobody_takes_over_from_an_owner_that_is_heard() {
    let limits = Limits { owner_silence: Duration::from_secs(60), ..Limits::default() };
    let (relay, keys) = (relay("present", limits).await, Keys::new(1));
    let in_term = |term| move |nonce: &Nonce| Keys::new(1).owner_in(Term(term), &Keys::new(1), nonce);
    let first = relay.own(&keys).await;
    assert_eq!(relay.refused(&keys.id(), in_term(1)).await, Refusal::HostPresent);
    let mut guest = relay.join(&keys).await;
    drop(first);
    assert!(matches!(guest.control().await, Control::Leave { .. }));
    let second = relay.enter(&keys.id(), in_term(1)).await;
    assert_eq!(second.owner, Some(second.route), "the seat is vacant");
}

#[tokio::test]
async fn a_new_join_key_ends_the_old_link() {
    let relay = relay("renew", Limits::default()).await;
    let (old, other) = (Keys::new(1), Keys::new(2));
    let _host = relay.own(&old).await;
    let renewed = relay.enter(&old.id(), |nonce| old.owner_with(&other, nonce)).await;
    assert_eq!(relay.refused(&old.id(), |nonce| old.link(nonce)).await, Refusal::BadProof);
    let _guest = relay.enter(&old.id(), |nonce| old.link_of(&other, nonce)).await;
    drop(renewed);
}

#[tokio::test]
async fn visitors_may_enter_while_the_room_is_listed() {
    let limits = Limits { members: 4, reserved_seats: 2, ..Limits::default() };
    let (relay, keys) = (relay("visitors", limits).await, Keys::listed(1, "Kitchen"));
    let mut host = relay.own(&keys).await;
    let _visitor = relay.enter(&keys.id(), visitor).await;
    assert_eq!(relay.refused(&keys.id(), visitor).await, Refusal::RoomFull, "the last seats are for the link");
    let _guests: [Member; 2] = [relay.join(&keys).await, relay.join(&keys).await];
    assert_eq!(relay.refused(&keys.id(), |nonce| keys.link(nonce)).await, Refusal::RoomFull);
    let mut again = relay.own(&keys).await;
    for _ in 0..3 {
        assert!(matches!(host.control().await, Control::Join { .. }));
    }
    assert_eq!(host.evicted().await, Eviction::Replaced);
    again.ask(&Request::Listing { title: "Kitchen".into(), visible: false }).await;
    again.settle().await;
    assert_eq!(relay.refused(&keys.id(), visitor).await, Refusal::NotListed);
}

#[tokio::test]
async fn who_has_not_entered_yet_counts() {
    let limits = Limits { entry: TIMEOUT, address_members: 3, ..Limits::default() };
    let (relay, keys) = (relay("entry-count", limits).await, Keys::new(1));
    let _silent = [relay.challenged(&keys.id()).await, relay.challenged(&keys.id()).await];
    let _host = relay.own(&keys).await;
    let mut one_more = relay.connect(&keys.id()).await;
    assert_eq!(one_more.refused().await, Refusal::TooManyConnections);
    let mut elsewhere = relay.connect_from(Ipv4Addr::new(127, 0, 0, 2), &keys.id()).await;
    let nonce = elsewhere.challenge().await;
    elsewhere.enter(keys.link(&nonce)).await;
    elsewhere.welcomed().await;
}

#[tokio::test]
async fn who_does_not_enter_in_time_is_refused_and_no_longer_counts() {
    let limits = Limits { entry: Duration::from_millis(300), address_members: 1, ..Limits::default() };
    let (relay, room) = (relay("entry-time", limits).await, Keys::new(1).id());
    let (mut silent, _) = relay.challenged(&room).await;
    assert_eq!(silent.refused().await, Refusal::NoEntry);
    drop(silent);
    relay.until_metric("potluck_relay_members", 0).await;
    // Its address gets another challenge, no refusal.
    relay.challenged(&room).await;
}

#[tokio::test]
async fn an_entry_is_short() {
    let (relay, keys) = (relay("entry-long", Limits::default()).await, Keys::new(1));
    let (mut member, _) = relay.challenged(&keys.id()).await;
    let long = Message::Text("x".repeat(1 << 20).into());
    // The relay closes the connection before it has read all of it.
    let _ = member.socket.send(long).await;
    assert!(!matches!(member.next().await, Some(Message::Text(_))));
    assert_eq!(relay.metric("potluck_relay_queued_bytes").await, 0);
}

/// Before, a ping between two fragments began the count anew, and a stranger could send as much as a member.
#[tokio::test]
async fn pings_do_not_lengthen_an_entry() {
    let limits = Limits { entry: TIMEOUT, ..Limits::default() };
    let (relay, keys) = (relay("entry-fragments", limits).await, Keys::new(1));
    let (mut member, _) = relay.challenged(&keys.id()).await;
    let socket = &mut member.socket;
    let mut taken = 0;
    while taken < 100 && socket.send(fragment(taken == 0, 1 << 10)).await.is_ok() && ping(socket, b"here").await {
        taken += 1;
    }
    assert_eq!(taken, 7, "KiB were taken of a stranger; its heads make the eighth too long");
    assert_eq!(relay.metric("potluck_relay_queued_bytes").await, 0);
}

#[tokio::test]
async fn who_pings_before_it_enters_may_enter() {
    let limits = Limits { entry: TIMEOUT, ..Limits::default() };
    let (relay, keys) = (relay("entry-pings", limits).await, Keys::new(1));
    let (mut member, nonce) = relay.challenged(&keys.id()).await;
    for i in 0..1000 {
        assert!(ping(&mut member.socket, &[7; 125]).await, "closed after {i} pings");
    }
    assert_eq!(relay.metric("potluck_relay_queued_bytes").await, 0);
    member.enter(keys.owner(&nonce)).await;
    member.welcomed().await;
}

/// A record of TLS is longer than the ping in it; what it adds is no message and must not remain.
#[tokio::test]
async fn pings_over_tls_do_not_add_up() {
    let data = folder("entry-tls");
    let identity = Some(Identity::Own { folder: data.clone() });
    let limits = Limits { entry: TIMEOUT, ..Limits::default() };
    let relay = start(potluck_relay::Config { identity, limits, ..config("entry-tls") }).await;
    let certificate = std::fs::read(data.join("authority.pem")).unwrap();
    let stream = TcpStream::connect(relay.address).await.unwrap();
    let stream = connector(&certificate).connect(ServerName::try_from("localhost").unwrap(), stream).await.unwrap();
    let url = format!("wss://localhost:{}/rooms/{}", relay.address.port(), Keys::new(1).id());
    let (mut socket, _) = client_async(url, stream).await.unwrap();
    for i in 0..1000 {
        assert!(ping(&mut socket, b"").await, "closed after {i} pings");
    }
    assert_eq!(relay.metric("potluck_relay_queued_bytes").await, 0);
    // Nor does TLS hide anything.
    let mut taken = 0;
    while taken < 100 && socket.send(fragment(taken == 0, 1 << 10)).await.is_ok() && ping(&mut socket, b"").await {
        taken += 1;
    }
    assert_eq!(taken, 7, "KiB were taken of a stranger; its heads make the eighth too long");
}

/// Before, `?create=1` passed by the rate of new rooms.
#[tokio::test]
async fn rooms_and_connections_of_an_address_are_limited() {
    let few = Rate { per_second: 0.001, burst: 1.0 };
    let many = Rate { per_second: 0.001, burst: 3.0 };
    let relay = relay("rates", Limits { join_rate: many, room_rate: few, ..Limits::default() }).await;
    let (one, two) = (Keys::new(1), Keys::new(2));
    let _host = relay.own(&one).await;
    assert_eq!(relay.refused(&two.id(), |nonce| two.owner(nonce)).await, Refusal::TooManyRooms);
    let _guest = relay.join(&one).await;
    let mut late = relay.connect(&one.id()).await;
    assert_eq!(late.refused().await, Refusal::TooManyConnections);
    // Another address has its own limits.
    let mut other = relay.connect_from(Ipv4Addr::new(127, 0, 0, 2), &two.id()).await;
    let nonce = other.challenge().await;
    other.enter(two.owner(&nonce)).await;
    other.welcomed().await;
}

#[tokio::test]
async fn a_full_relay_refuses_another_room() {
    let relay = relay("full", Limits { rooms: 1, ..Limits::default() }).await;
    let (one, two) = (Keys::new(1), Keys::new(2));
    let _host = relay.own(&one).await;
    assert_eq!(relay.refused(&two.id(), |nonce| two.owner(nonce)).await, Refusal::RelayFull);
    let _guest = relay.join(&one).await;
    assert_eq!(relay.metric("potluck_relay_members_refused_total").await, 1);
}

#[tokio::test]
async fn a_relay_that_stops_refuses_who_has_not_entered_yet() {
    let mut relay = relay("entry-stop", Limits::default()).await;
    let (mut member, _) = relay.challenged(&Keys::new(1).id()).await;
    relay.ask_to_stop();
    assert_eq!(member.refused().await, Refusal::ShuttingDown);
    drop(member);
    relay.stopped().await;
}
