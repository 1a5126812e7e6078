//! The door of a room: invites with keys of their own, seats by address, visitors, and what the owner may do about them.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use std::net::Ipv4Addr;

use common::{Invite, Keys, Member, Running, config, start};
use potluck_relay::limits::Limits;
use potluck_relay_api::{BadFrame, Control, Departure, EntryProof, Eviction, Nonce, Refusal, Request, Route};
use tokio_tungstenite::tungstenite::Message;

async fn relay(test: &str, limits: Limits) -> Running {
    start(potluck_relay::Config { limits, ..config(test) }).await
}

fn visitor(_: &Nonce) -> EntryProof {
    EntryProof::Visitor
}

/// An address of this machine for each number.
fn address(number: u8) -> Ipv4Addr {
    Ipv4Addr::new(127, 0, 1, number)
}

/// The next control message that is not about members joining or leaving.
async fn told(member: &mut Member) -> Control {
    loop {
        match member.control().await {
            Control::Join { .. } | Control::Leave { .. } => {}
            other => return other,
        }
    }
}

/// Waits until the relay has handled what a member sent, while others may come and go.
async fn settle(member: &mut Member) {
    member.ask(&Request::Ping { nonce: 5 }).await;
    assert_eq!(told(member).await, Control::Pong { nonce: 5 });
}

/// Takes seats from an address until one is refused; returns the seats and the reason.
async fn take_all(
    relay: &Running,
    from: Ipv4Addr,
    room: &str,
    proof: impl Fn(&Nonce) -> EntryProof,
) -> (Vec<Member>, Refusal) {
    let mut seats = Vec::new();
    loop {
        match relay.enter_from(from, room, &proof).await {
            Ok(member) => seats.push(member),
            Err(refusal) => return (seats, refusal),
        }
    }
}

fn bad(reason: BadFrame) -> Control {
    Control::BadFrame { reason, message: reason.sentence().into() }
}

#[tokio::test]
async fn each_invite_has_a_door_key_and_ends_alone() {
    let (relay, keys) = (relay("invites", Limits::default()).await, Keys::new(1));
    let mut host = relay.own(&keys).await;
    let id = keys.id();
    let mut one = relay.enter(&id, |nonce| keys.invite(Invite::new(1), nonce)).await;
    let mut two = relay.enter(&id, |nonce| keys.invite(Invite::new(2), nonce)).await;
    let mut full = relay.join(&keys).await;
    host.ask(&Request::Revoked { invites: vec![1] }).await;
    assert!(matches!(one.control().await, Control::Join { .. }) && matches!(one.control().await, Control::Join { .. }));
    assert_eq!(one.evicted().await, Eviction::InviteRevoked);
    let out = Control::Leave { route: one.route, reason: Departure::Evicted };
    assert!(matches!(two.control().await, Control::Join { .. }));
    assert_eq!((two.control().await, full.control().await), (out.clone(), out));
    settle(&mut host).await;
    assert_eq!(relay.refused(&id, |nonce| keys.invite(Invite::new(1), nonce)).await, Refusal::InviteRevoked);
    relay.enter(&id, |nonce| keys.invite(Invite::new(2), nonce)).await;
    relay.join(&keys).await;
    assert_eq!(relay.metric("potluck_relay_evictions_total{reason=\"put-out\"}").await, 1);
}

#[tokio::test]
async fn an_invite_of_another_owner_or_with_another_key_opens_nothing() {
    let (relay, keys, other) = (relay("forged", Limits::default()).await, Keys::new(1), Keys::new(2));
    let _host = relay.own(&keys).await;
    let id = keys.id();
    let forged = relay.refused(&id, |nonce| other.invite(Invite::new(1), nonce));
    assert_eq!(forged.await, Refusal::BadProof);
    let longer = relay.refused(&id, |nonce| match keys.invite(Invite::expired(1), nonce) {
        EntryProof::Invite { mut certificate, signature } => {
            certificate.terms.0[8] = 0xff;
            EntryProof::Invite { certificate, signature }
        }
        other => other,
    });
    assert_eq!(longer.await, Refusal::BadProof, "nobody prolongs an invite");
    let link = relay.refused(&id, |nonce| match keys.invite(Invite::new(1), nonce) {
        EntryProof::Invite { signature, .. } => EntryProof::Link { key: keys.join_key(), signature },
        other => other,
    });
    assert_eq!(link.await, Refusal::BadProof, "an invite is no link");
}

#[tokio::test]
async fn an_owner_that_comes_back_tells_again_what_it_revoked_and_the_relay_remembers_meanwhile() {
    let (relay, keys) = (relay("revoked-again", Limits::default()).await, Keys::new(1));
    let mut host = relay.own(&keys).await;
    host.ask(&Request::Revoked { invites: vec![1, 2] }).await;
    host.settle().await;
    drop(host);
    let enter = async |number| relay.refused(&keys.id(), |nonce| keys.invite(Invite::new(number), nonce)).await;
    assert_eq!(enter(1).await, Refusal::InviteRevoked);
    let mut host = relay.own(&keys).await;
    host.ask(&Request::Revoked { invites: vec![2] }).await;
    settle(&mut host).await;
    assert_eq!(enter(2).await, Refusal::InviteRevoked);
    relay.enter(&keys.id(), |nonce| keys.invite(Invite::new(1), nonce)).await;
    host.ask(&Request::Revoked { invites: (0..65).collect() }).await;
    assert_eq!(told(&mut host).await, bad(BadFrame::NotControl), "65 are too many");
    assert_eq!(enter(2).await, Refusal::InviteRevoked);
}

/// Whoever was inside by an invite that was taken back could not come back after a moment without network.
#[tokio::test]
async fn by_an_invite_that_was_taken_back_visitors_enter_whom_the_owner_may_let_in_again() {
    let (relay, keys) = (relay("taken-back", Limits::default()).await, Keys::new(1));
    let mut host = relay.own(&keys).await;
    let (id, invite) = (keys.id(), Invite::new(1));
    let mut inside = relay.enter(&id, |nonce| keys.invite(invite, nonce)).await;
    host.ask(&Request::LetIn { route: inside.route }).await;
    let mut early = relay.enter(&id, |nonce| keys.invite(invite, nonce)).await;
    host.ask(&Request::TakenBack { invites: vec![invite.number] }).await;
    settle(&mut host).await;
    early.send_raw(Message::Binary(inside.route.prepend(b"psst").into())).await;
    assert_eq!(told(&mut early).await, bad(BadFrame::NotLetIn), "it was not let in before, so it is a visitor now");
    settle(&mut inside).await;
    drop(inside);
    let mut back = relay.enter(&id, |nonce| keys.invite(invite, nonce)).await;
    assert_eq!(back.limits.frame_bytes, Limits::default().visits.frame_bytes as u64, "it is a visitor, too");
    back.send(host.route, b"it is me").await;
    while !matches!(host.next().await, Some(Message::Binary(frame)) if frame.ends_with(b"it is me")) {}
    host.ask(&Request::LetIn { route: back.route }).await;
    settle(&mut host).await;
    back.send(early.route, b"hello").await;
    while !matches!(early.next().await, Some(Message::Binary(frame)) if frame.ends_with(b"hello")) {}
    let (visits, refusal) = take_all(&relay, address(2), &id, |nonce| keys.invite(invite, nonce)).await;
    assert_eq!((visits.len(), refusal), (Limits::default().address_visitors, Refusal::TooManyVisitors));
    // Who came as a member and is a visitor now is held to a visitor's rates.
    for _ in 0..200 {
        early.send_anyway(host.route, b"flood").await;
    }
    while !matches!(early.control().await, Control::Limited { .. }) {}
}

/// The link that was passed on too far opens nothing any more, and who was inside by it comes back.
#[tokio::test]
async fn a_renewed_link_opens_the_room_and_earlier_ones_only_for_those_whom_the_owner_may_let_in_again() {
    let (relay, keys) = (relay("renewed", Limits::default()).await, Keys::new(1));
    let (second, third) = (Keys::new(2), Keys::new(3));
    let mut host = relay.own(&keys).await;
    let id = keys.id();
    let mut inside = relay.join(&keys).await;
    host.ask(&Request::LetIn { route: inside.route }).await;
    let mut early = relay.join(&keys).await;
    let links = |join: &Keys, for_returning: &[&Keys], for_nobody: &[&Keys]| Request::Links {
        join_key: join.join_key(),
        for_returning: for_returning.iter().map(|keys| keys.join_key()).collect(),
        for_nobody: for_nobody.iter().map(|keys| keys.join_key()).collect(),
    };
    host.ask(&links(&second, &[&keys], &[])).await;
    settle(&mut host).await;
    inside.send(early.route, b"still here").await;
    while !matches!(early.next().await, Some(Message::Binary(frame)) if frame.ends_with(b"still here")) {}
    early.send_raw(Message::Binary(inside.route.prepend(b"psst").into())).await;
    assert_eq!(told(&mut early).await, bad(BadFrame::NotLetIn), "it was not let in before, so it is a visitor now");
    drop(inside);
    let back = relay.enter(&id, |nonce| keys.link(nonce)).await;
    assert_eq!(back.limits.frame_bytes, Limits::default().visits.frame_bytes as u64, "by the earlier link, a visitor");
    let newcomer = relay.enter(&id, |nonce| keys.link_of(&second, nonce)).await;
    assert_eq!(newcomer.limits.frame_bytes, Limits::default().frame_bytes as u64, "by the new link, a member");
    assert_eq!(relay.refused(&id, |nonce| keys.link_of(&third, nonce)).await, Refusal::BadProof);
    // Nobody comes back by the first link any more.
    host.ask(&links(&third, &[&second], &[&keys])).await;
    settle(&mut host).await;
    assert_eq!(relay.refused(&id, |nonce| keys.link(nonce)).await, Refusal::LinkRenewed);
    while !matches!(early.control().await, Control::Evicted { reason: Eviction::LinkRenewed, .. }) {}
    // The relay keeps it while the owner is away, and an owner that comes back brings its newest key.
    drop(host);
    assert_eq!(relay.refused(&id, |nonce| keys.link(nonce)).await, Refusal::LinkRenewed);
    let mut host = relay.enter(&id, |nonce| keys.owner_with(&third, nonce)).await;
    assert_eq!(relay.refused(&id, |nonce| keys.link(nonce)).await, Refusal::LinkRenewed);
    relay.enter(&id, |nonce| keys.link_of(&third, nonce)).await;
    let many: Vec<Keys> = (10..27).map(Keys::new).collect();
    host.ask(&links(&third, &many.iter().collect::<Vec<_>>(), &[])).await;
    assert_eq!(told(&mut host).await, bad(BadFrame::NotControl), "seventeen are too many");
    assert!(Refusal::LinkRenewed.sentence() == Eviction::LinkRenewed.sentence() && Eviction::LinkRenewed.is_final());
}

#[tokio::test]
async fn nobody_mutes_the_owner() {
    let (relay, keys) = (relay("mute-owner", Limits::default()).await, Keys::new(1));
    let mut host = relay.own(&keys).await;
    let mut guest = relay.join(&keys).await;
    guest.ask(&Request::Mute { route: host.route }).await;
    guest.settle().await;
    host.send(guest.route, b"hello").await;
    assert_eq!(guest.frame().await, (host.route, b"hello".to_vec()));
}

#[tokio::test]
async fn who_was_let_in_by_an_invite_stays_when_it_ends() {
    let (relay, keys) = (relay("let-in-stays", Limits::default()).await, Keys::new(1));
    let mut host = relay.own(&keys).await;
    let mut guest = relay.enter(&keys.id(), |nonce| keys.invite(Invite::new(1), nonce)).await;
    host.ask(&Request::LetIn { route: guest.route }).await;
    host.ask(&Request::Revoked { invites: vec![1] }).await;
    settle(&mut host).await;
    guest.settle().await;
}

#[tokio::test]
async fn the_owner_puts_a_member_out_after_its_last_word_to_it() {
    let (relay, keys) = (relay("put-out", Limits::default()).await, Keys::new(1));
    let mut host = relay.own(&keys).await;
    let (mut guest, mut other) = (relay.join(&keys).await, relay.join(&keys).await);
    host.send(guest.route, b"you are out").await;
    host.ask(&Request::PutOut { route: guest.route }).await;
    assert!(matches!(guest.control().await, Control::Join { .. }));
    assert_eq!(guest.frame().await, (host.route, b"you are out".to_vec()));
    assert_eq!(guest.evicted().await, Eviction::PutOut);
    assert_eq!(other.control().await, Control::Leave { route: guest.route, reason: Departure::Evicted });
    assert!(Eviction::PutOut.is_final() && Eviction::InviteRevoked.is_final());
}

#[tokio::test]
async fn only_the_owner_decides_at_the_door() {
    let (relay, keys) = (relay("owner-only", Limits::default()).await, Keys::listed(1, "Kitchen"));
    let mut host = relay.own(&keys).await;
    let mut guest = relay.join(&keys).await;
    let mut visit = relay.enter(&keys.id(), visitor).await;
    assert!(matches!(guest.control().await, Control::Join { .. }));
    let route = visit.route;
    for request in [
        Request::PutOut { route: host.route },
        Request::PutOut { route },
        Request::LetIn { route },
        Request::Revoked { invites: vec![1] },
        Request::TakenBack { invites: vec![1] },
        Request::Links { join_key: keys.join_key(), for_returning: Vec::new(), for_nobody: Vec::new() },
    ] {
        guest.ask(&request).await;
        assert_eq!(guest.control().await, bad(BadFrame::NotControl), "{request:?}");
    }
    visit.ask(&Request::LetIn { route }).await;
    assert_eq!(visit.control().await, bad(BadFrame::NotControl));
    host.ask(&Request::PutOut { route: host.route }).await;
    assert_eq!(told(&mut host).await, bad(BadFrame::NotControl), "an owner leaves by itself");
}

#[tokio::test]
async fn a_visitor_writes_to_the_owner_only_until_it_is_let_in() {
    let (relay, keys) = (relay("visitor-only", Limits::default()).await, Keys::listed(1, "Kitchen"));
    let mut host = relay.own(&keys).await;
    let mut guest = relay.join(&keys).await;
    let mut visit = relay.enter(&keys.id(), visitor).await;
    visit.send(host.route, b"let me in").await;
    visit.send_raw(Message::Binary(guest.route.prepend(b"psst").into())).await;
    assert_eq!(visit.control().await, bad(BadFrame::NotLetIn));
    let parts = potluck_relay_api::join_parts([(guest.route, b"psst".as_slice()), (Route(1), b"psst")]);
    visit.send_raw(Message::Binary(parts.into())).await;
    assert_eq!(visit.control().await, bad(BadFrame::NotLetIn));
    assert_eq!(visit.control().await, bad(BadFrame::NotLetIn), "nor does it learn who is there");
    assert!(matches!(guest.control().await, Control::Join { .. }));
    guest.settle().await;
    assert!(
        matches!(host.control().await, Control::Join { .. }) && matches!(host.control().await, Control::Join { .. })
    );
    assert_eq!(host.frame().await, (visit.route, b"let me in".to_vec()));
    host.ask(&Request::LetIn { route: visit.route }).await;
    host.settle().await;
    visit.send(guest.route, b"hello").await;
    assert_eq!(guest.frame().await, (visit.route, b"hello".to_vec()));
    visit.send(guest.route, &vec![7; 1 << 20]).await;
    assert_eq!(guest.frame().await.1.len(), 1 << 20, "it is a member now");
}

/// Before, a visitor without any key could send the host as much as a member could.
#[tokio::test]
async fn a_visitor_sends_short_messages_and_few() {
    let (relay, keys) = (relay("visitor-rates", Limits::default()).await, Keys::listed(1, "Kitchen"));
    let mut host = relay.own(&keys).await;
    let mut visit = relay.enter(&keys.id(), visitor).await;
    let limits = Limits::default().visits;
    assert_eq!(visit.limits.frame_bytes, limits.frame_bytes as u64);
    visit.send_raw(Message::Binary(host.route.prepend(&vec![0; limits.frame_bytes]).into())).await;
    assert_eq!(visit.control().await, bad(BadFrame::TooLong));
    for message in 0..4 * limits.frame_rate.burst as usize {
        visit.send_anyway(host.route, &[message as u8]).await;
    }
    assert!(matches!(visit.control().await, Control::Limited { .. }), "no more than its burst at once");
    let mut long = relay.enter(&keys.id(), visitor).await;
    long.send_raw(Message::Binary(host.route.prepend(&vec![0; 1 << 20]).into())).await;
    assert_eq!(long.evicted().await, Eviction::FrameTooLong);
    settle_frames(&mut host).await;
}

/// As [`settle`], whatever frames come meanwhile.
async fn settle_frames(member: &mut Member) {
    member.ask(&Request::Ping { nonce: 6 }).await;
    while !matches!(member.next().await, Some(Message::Text(text)) if text.contains("pong")) {}
}

#[tokio::test]
async fn a_receiver_mutes_a_route_and_nobody_else_notices() {
    let (relay, keys) = (relay("mute", Limits::default()).await, Keys::new(1));
    let mut host = relay.own(&keys).await;
    let (mut loud, mut quiet) = (relay.join(&keys).await, relay.join(&keys).await);
    for unknown in 0..1000 {
        quiet.ask(&Request::Mute { route: Route(unknown) }).await;
    }
    quiet.ask(&Request::Mute { route: loud.route }).await;
    quiet.settle().await;
    assert!(matches!(loud.control().await, Control::Join { .. }));
    loud.send_anyway(quiet.route, b"LOUD").await;
    assert_eq!(loud.control().await, Control::Undeliverable { route: quiet.route });
    quiet.settle().await;
    loud.send(host.route, b"hello").await;
    assert!(
        matches!(host.control().await, Control::Join { .. }) && matches!(host.control().await, Control::Join { .. })
    );
    assert_eq!(host.frame().await, (loud.route, b"hello".to_vec()));
    quiet.send(loud.route, b"enough").await;
    assert_eq!(loud.frame().await, (quiet.route, b"enough".to_vec()), "the other way is open");
}

#[tokio::test]
async fn an_address_takes_some_seats_of_a_room_and_leaves_the_others() {
    let limits = Limits { members: 8, address_seats: 3, ..Limits::default() };
    let (relay, keys) = (relay("seats", limits).await, Keys::new(1));
    let _host = relay.own(&keys).await;
    let (seats, refusal) = take_all(&relay, address(1), &keys.id(), |nonce| keys.link(nonce)).await;
    assert_eq!((seats.len(), refusal), (3, Refusal::TooManySeats));
    relay.enter_from(address(2), &keys.id(), |nonce| keys.link(nonce)).await.unwrap();
}

#[tokio::test]
async fn a_class_behind_one_router_fits() {
    let (relay, keys) = (relay("class", Limits::default()).await, Keys::new(1));
    let _teacher = relay.own(&keys).await;
    let mut class = Vec::new();
    for _ in 0..32 {
        class.push(relay.join(&keys).await);
    }
}

/// Before, every invite of a room held the same door key: a banned or expired holder took all 63 free seats, and the next honest
/// visitor was refused. Each works here as long as it gets anything, at the relay's default limits.
#[tokio::test]
async fn who_is_banned_expired_or_without_a_key_takes_no_room_from_others() {
    let relay = relay("siege", Limits::default()).await;
    let (keys, neighbour) = (Keys::listed(1, "Kitchen"), Keys::new(2));
    let (mut host, mut next_door) = (relay.own(&keys).await, relay.own(&neighbour).await);
    let mut neighbour_guest = relay.join(&neighbour).await;
    let id = keys.id();
    let (banned, expired) = (Invite::new(1), Invite::expired(2));

    // The banned one took what it could before its ban: an address' part of the room.
    let (mut taken, refusal) = take_all(&relay, address(1), &id, |nonce| keys.invite(banned, nonce)).await;
    assert_eq!((taken.len(), refusal), (Limits::default().address_seats, Refusal::TooManySeats));
    host.ask(&Request::Revoked { invites: vec![banned.number] }).await;
    settle(&mut host).await;
    while let Control::Join { .. } | Control::Leave { .. } = taken[0].control().await {}
    let (none, refusal) = take_all(&relay, address(1), &id, |nonce| keys.invite(banned, nonce)).await;
    assert_eq!((none.len(), refusal), (0, Refusal::InviteRevoked));

    // The expired one and the one without a key get a few visitors' seats, and write to the host as visitors do.
    let (mut expired, refusal) = take_all(&relay, address(2), &id, |nonce| keys.invite(expired, nonce)).await;
    assert_eq!((expired.len(), refusal), (Limits::default().address_visitors, Refusal::TooManyVisitors));
    let (mut keyless, refusal) = take_all(&relay, address(3), &id, visitor).await;
    assert_eq!((keyless.len(), refusal), (Limits::default().address_visitors, Refusal::TooManyVisitors));
    for flood in expired.iter_mut().chain(&mut keyless) {
        for _ in 0..200 {
            flood.send_anyway(host.route, b"flood").await;
        }
        while !matches!(flood.control().await, Control::Limited { .. }) {}
    }

    // The relay still serves another room, and an honest visitor and a guest with its own key can enter.
    next_door.send(neighbour_guest.route, b"as ever").await;
    assert_eq!(neighbour_guest.frame().await.1, b"as ever");
    let mut honest = relay.enter_from(address(4), &id, visitor).await.unwrap();
    honest.send(host.route, b"may I?").await;
    while !matches!(host.next().await, Some(Message::Binary(frame)) if frame.ends_with(b"may I?")) {}
    host.ask(&Request::LetIn { route: honest.route }).await;
    let mut guest = relay.enter_from(address(5), &id, |nonce| keys.invite(Invite::new(3), nonce)).await.unwrap();
    settle_frames(&mut host).await;
    honest.send(guest.route, b"hello").await;
    while !matches!(guest.next().await, Some(Message::Binary(frame)) if frame.ends_with(b"hello")) {}
    // And the owner has had enough of the others.
    for flood in expired.iter().chain(&keyless) {
        host.ask(&Request::PutOut { route: flood.route }).await;
    }
    settle_frames(&mut host).await;
    for flood in expired.iter_mut().chain(&mut keyless) {
        while !matches!(told(flood).await, Control::Evicted { reason: Eviction::PutOut, .. }) {}
    }
}
