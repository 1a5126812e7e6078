//! The host renews the room's keys.

use super::super::renewing::GRACE_MILLIS;
use super::*;
use crate::room_keys::{DERIVED, TAG_LEN};
use crate::wire::Lane;

impl Room {
    /// The host renews the keys and gives them to these members.
    fn renew(&mut self, host: Route, number: u32, members: &[Route]) {
        let sessions = &mut self.members.get_mut(&host).unwrap().sessions;
        sessions.renew(number, number);
        members.iter().for_each(|route| sessions.give_renewed(*route));
        self.perform(host);
    }

    fn link(&self, number: u32) -> RoomSecret {
        self.owner.link(&RoomSecret::from_bytes(SECRET), number)
    }

    /// A host and members that came by the link, long after they met.
    fn with_members(count: u32) -> (Self, Route, Vec<Route>) {
        let mut room = Self::new();
        let host = room.enter(1, room.host_role());
        let members: Vec<Route> = (2..2 + count).map(|route| room.enter(route, room.guest_role())).collect();
        room.settle();
        // Members that enter together ask each other for a handshake that is on its way already, and repeat it.
        for _ in 0..2 {
            room.wait(MAX_RETRY_MILLIS);
        }
        for member in room.members.values_mut() {
            member.closed.clear();
        }
        (room, host, members)
    }
}

#[test]
fn a_renewal_loses_no_frame_and_who_did_not_get_the_keys_loses_its_sessions() {
    let (mut room, host, members) = Room::with_members(3);
    let [first, second, out] = members[..] else { unreachable!() };
    let words = room.members[&first].words[&second].clone();
    room.renew(host, 1, &[first, second]);
    let mut sent = Vec::new();
    for number in 0..200u32 {
        let frame = number.to_le_bytes().to_vec();
        [(first, second), (second, first)].iter().for_each(|(from, to)| room.send(*from, *to, &frame));
        sent.push(frame);
        (0..1 + number % 3).filter_map(|_| room.in_flight.pop_front()).collect::<Vec<_>>().into_iter().for_each(
            |message| {
                room.deliver(message);
            },
        );
        room.now = Millis(room.now.0 + 5.0);
        for route in [first, second] {
            room.members.get_mut(&route).unwrap().sessions.tick(room.now);
            room.perform(route);
        }
    }
    room.settle();
    for (route, other) in [(first, second), (second, first)] {
        let member = &room.members[&route];
        let from = room.members[&other].peer;
        let got: Vec<_> =
            member.frames.iter().filter(|(peer, _)| *peer == from).map(|(_, frame)| frame.clone()).collect();
        assert_eq!(got, sent, "{route:?} misses frames of {other:?}");
        assert_eq!((member.rekeyed, member.closed.as_slice()), (1, &[][..]), "{route:?}");
        assert!(member.link == Some(room.link(1)), "{route:?} has the new link");
    }
    assert_eq!(room.members[&first].words[&second], room.members[&second].words[&first]);
    assert_ne!(room.members[&first].words[&second], words, "another key has other words");
    assert!(room.up(first).contains(&(out.0, Proof::Group)), "for a moment");
    room.wait(GRACE_MILLIS);
    for _ in 0..20 {
        room.wait(MAX_RETRY_MILLIS);
    }
    assert_eq!(room.up(first), [(1, Proof::Host), (second.0, Proof::Group)]);
    assert!(room.members[&first].closed.contains(&Closed::Regrouped) && room.members[&out].link.is_none());
    room.send(first, out, b"frame");
    room.settle();
    assert!(room.members[&out].frames.iter().all(|(_, frame)| frame != b"frame"));
}

#[test]
fn a_ban_after_a_renewal_ends_sessions_at_once() {
    let (mut room, host, members) = Room::with_members(3);
    let [first, second, out] = members[..] else { unreachable!() };
    room.renew(host, 1, &members);
    room.settle();
    room.wait(MIN_PAUSE_MILLIS);
    assert_eq!(room.up(first).len(), 3);
    let sessions = &mut room.members.get_mut(&host).unwrap().sessions;
    sessions.regroup(2);
    [first, second].iter().for_each(|route| sessions.admit(*route));
    room.perform(host);
    while let Some(message) = room.in_flight.pop_front() {
        room.deliver(message);
    }
    assert!(!room.members[&first].up.contains_key(&out), "no grace for whoever is banned");
}

#[test]
fn a_message_that_is_dropped_while_a_session_gets_another_key_is_noticed() {
    for lost in [0, 1] {
        let (mut room, host, members) = Room::with_members(2);
        let [first, second] = members[..] else { unreachable!() };
        room.renew(host, 1, &members);
        let pair = if lost == 0 { (first, second) } else { (second, first) };
        room.send(pair.0, pair.1, b"lost");
        let dropped = room
            .in_flight
            .iter()
            .rposition(|(from, to, message)| (*from, *to) == pair && message[2] == Kind::Frame as u8);
        room.in_flight.remove(dropped.unwrap());
        room.settle();
        for _ in 0..4 {
            room.wait(MIN_PAUSE_MILLIS);
        }
        let closed = [first, second].map(|route| room.members[&route].closed.clone()).concat();
        assert!(closed.contains(&Closed::Channel(OpenError::Counter)), "{lost}: {closed:?}");
        for _ in 0..8 {
            room.wait(MAX_RETRY_MILLIS);
        }
        assert!(room.up(first).contains(&(second.0, Proof::Group)), "they meet again");
    }
}

#[test]
fn the_host_knows_by_which_link_somebody_comes_and_gives_the_newest_to_whoever_it_lets_in() {
    let (mut room, host, members) = Room::with_members(1);
    room.renew(host, 1, &members);
    room.renew(host, 2, &members);
    room.settle();
    let invited = room.enter(10, invite(&room.owner.clone()));
    let [old, newest] = [(11, 0), (12, 2)].map(|(route, number)| {
        let link = room.link(number);
        room.enter(route, RoomRole::Guest(link))
    });
    let stranger = room.enter(13, RoomRole::Guest(RoomSecret::from_bytes([1; 16])));
    room.settle();
    let up: Vec<(u32, Proof)> = room.up(host).into_iter().filter(|(route, _)| *route >= 10).collect();
    let terms = [5; crate::invite::TERMS_LEN];
    assert_eq!(up, [(10, Proof::Invite(terms)), (11, Proof::Link(0)), (12, Proof::Link(2))]);
    assert!(room.up(stranger).is_empty());
    // The test's host lets in everybody.
    let link = |route: Route| room.members[&route].link.clone();
    assert_eq!((link(old), link(newest), link(invited)), (Some(room.link(2)), None, None), "an invite gives no link");
    assert!(matches!(room.members[&old].sessions.role(), RoomRole::Guest(secret) if *secret == room.link(2)));
}

#[test]
fn a_link_that_was_renewed_too_often_is_not_answered() {
    let (mut room, host, members) = Room::with_members(1);
    let newest = MAX_EARLIER_LINKS as u32 + 1;
    room.renew(host, newest, &members);
    room.settle();
    let [too_old, oldest] = [(11, 0), (12, 1)].map(|(route, number)| {
        let link = room.link(number);
        room.enter(route, RoomRole::Guest(link))
    });
    room.settle();
    assert!(room.up(too_old).is_empty());
    assert!(room.up(oldest).contains(&(1, Proof::Host)));
}

/// The relay gives four seats to an address that has an earlier link, and a seat that is left is free again.
#[test]
fn whoever_has_an_earlier_link_cannot_keep_newcomers_with_the_newest_one_out() {
    let (mut room, host, members) = Room::with_members(1);
    room.renew(host, 1, &members);
    room.settle();
    let earlier: Vec<Route> = (100..170).map(|route| room.enter(route, room.guest_role())).collect();
    let newest = room.enter(170, RoomRole::Guest(room.link(1)));
    // The host hears their first messages, and nobody hears its answers.
    let mut answered = Vec::new();
    while let Some((from, to, message)) = room.in_flight.pop_front() {
        if to == host {
            room.deliver((from, to, message));
        } else if from == host && message[2] == Kind::Reply as u8 {
            answered.push(to);
        }
    }
    let of_earlier = answered.iter().filter(|route| earlier.contains(route)).count();
    assert!(answered.contains(&newest), "{of_earlier} with the earlier link were answered");
    assert_eq!(of_earlier, 32, "as many as visitors");
}

/// Whoever was let in may send any number of them. Each cost the host the secrets and tags of seventeen links.
#[test]
fn first_messages_derive_no_links_but_one_in_a_while_that_the_room_has() {
    let (mut room, host, members) = Room::with_members(1);
    room.renew(host, 16, &members);
    room.settle();
    room.wait(MIN_PAUSE_MILLIS);
    for (tag, derived) in [([1; TAG_LEN], 0), (room.link(3).tag(), 1)] {
        let message = [&Kind::Hello.header()[..], &[Lane::Link as u8], &tag, &[0; 64]].concat();
        let before = DERIVED.get();
        (0..100).for_each(|_| room.deliver((members[0], host, message.clone())));
        assert_eq!(DERIVED.get() - before, derived, "with {tag:?}");
    }
}

/// The last message of a handshake that began under the older secret comes late.
#[test]
fn a_handshake_under_the_older_secret_makes_no_session_any_more() {
    for renews in [false, true] {
        let (mut room, host, members) = Room::with_members(2);
        let [first, out] = members[..] else { unreachable!() };
        let now = room.now;
        room.members.get_mut(&out).unwrap().sessions.begin(first, now);
        room.perform(out);
        // The messages of the handshake, but for the last one.
        for _ in 0..2 {
            let message = room.in_flight.pop_front().unwrap();
            room.deliver(message);
        }
        let finish = room.in_flight.pop_front().unwrap();
        assert_eq!((finish.0, finish.1, finish.2[2]), (out, first, Kind::Finish as u8));
        if renews {
            room.renew(host, 1, &[first]);
        } else {
            let sessions = &mut room.members.get_mut(&host).unwrap().sessions;
            sessions.regroup(1);
            sessions.admit(first);
            room.perform(host);
        }
        let ups = |room: &Room| room.members[&first].words.clone();
        let before = ups(&room);
        while let Some(message) = room.in_flight.pop_front() {
            room.deliver(message);
        }
        room.deliver(finish);
        assert_eq!(ups(&room), before, "renews: {renews}");
    }
}

#[test]
fn only_the_host_renews_anything() {
    let (mut room, _, members) = Room::with_members(2);
    let [first, second] = members[..] else { unreachable!() };
    for (kind, secret) in [(Kind::Renewed, &[3; 32][..]), (Kind::GroupSecret, &[3; 32]), (Kind::Link, &[3; 16])] {
        let session = room.members.get_mut(&first).unwrap().sessions.links.get_mut(&second).unwrap().session.as_mut();
        let message = session.unwrap().channel.seal(kind, secret).unwrap();
        room.deliver((first, second, message));
    }
    room.settle();
    let member = &room.members[&second];
    assert!(member.link.is_none() && member.closed.is_empty() && member.up.contains_key(&first));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    /// Renewals one after another, at any moment, over links with any delays: nothing is lost between those who stay.
    #[test]
    fn renewals_in_quick_succession_end_no_session(steps in proptest::collection::vec((0..12usize, 0..400u32), 1..80)) {
        let (mut room, host, members) = Room::with_members(3);
        let (mut number, mut sent) = (0, BTreeMap::<(Route, Route), Vec<Vec<u8>>>::new());
        let mut last = room.now.0;
        for (what, wait) in steps {
            let pair = (members[what % 3], members[(what + 1 + what / 6) % 3]);
            if what < 11 || room.now.0 - last < GRACE_MILLIS {
                let frame = number_frame(&sent);
                room.send(pair.0, pair.1, &frame);
                sent.entry(pair).or_default().push(frame);
            } else {
                number += 1;
                last = room.now.0;
                room.renew(host, number, &members);
            }
            // One message of some pair arrives; each pair keeps its order.
            if let Some((from, to, message)) = room.in_flight.pop_front() {
                room.deliver((from, to, message));
            }
            room.now = Millis(room.now.0 + f64::from(wait));
            if wait > 300 {
                room.settle();
            }
            for route in members.iter().copied().chain([host]) {
                room.members.get_mut(&route).unwrap().sessions.tick(room.now);
                room.perform(route);
            }
            room.settle();
        }
        room.settle();
        for _ in 0..4 {
            room.wait(MIN_PAUSE_MILLIS);
        }
        for ((from, to), frames) in sent {
            let peer = room.members[&from].peer;
            let got: Vec<_> =
                room.members[&to].frames.iter().filter(|(sender, _)| *sender == peer).map(|(_, frame)| frame.clone()).collect();
            prop_assert_eq!(got, frames, "{:?} to {:?}", from, to);
        }
        for route in &members {
            prop_assert_eq!(room.members[route].closed.as_slice(), &[][..], "{:?}", route);
            prop_assert_eq!(room.up(*route).len(), 3);
        }
    }
}

fn number_frame(sent: &BTreeMap<(Route, Route), Vec<Vec<u8>>>) -> Vec<u8> {
    (sent.values().map(Vec::len).sum::<usize>() as u64).to_le_bytes().to_vec()
}
