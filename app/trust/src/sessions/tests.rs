#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::collections::VecDeque;

use proptest::prelude::*;

use super::handshaking::{MAX_RETRY_MILLIS, MIN_PAUSE_MILLIS, RETRY_MILLIS};
use super::*;
use crate::handshake::tests::{counting, identity};
use crate::wire::VERSION;

/// A room with a relay that may do anything to the messages it carries.
struct Room {
    now: Millis,
    owner: OwnerKey,
    members: BTreeMap<Route, Member>,
    in_flight: VecDeque<(Route, Route, Vec<u8>)>,
}

struct Member {
    sessions: Sessions,
    peer: PeerId,
    /// Proof by route, of the sessions that are up.
    up: BTreeMap<Route, Proof>,
    /// The words of these sessions.
    words: BTreeMap<Route, SessionWords>,
    frames: Vec<(PeerId, Vec<u8>)>,
    closed: Vec<Closed>,
    /// How often a session went on under another key.
    rekeyed: u32,
    /// The link that the host gave it.
    link: Option<RoomSecret>,
    /// The host admits whoever has the link; visitors when told to.
    is_host: bool,
}

const SECRET: [u8; 16] = [9; 16];

impl Room {
    fn new() -> Self {
        let owner = OwnerKey::from_seed([7; 32]);
        Self { now: Millis(0.0), owner, members: BTreeMap::new(), in_flight: VecDeque::new() }
    }

    fn host_role(&self) -> RoomRole {
        RoomRole::Owner {
            key: self.owner.clone(),
            secret: RoomSecret::from_bytes(SECRET),
            link: 0,
            generation: 0,
            visible: true,
        }
    }

    fn guest_role(&self) -> RoomRole {
        RoomRole::Guest(RoomSecret::from_bytes(SECRET))
    }

    fn enter(&mut self, route: u32, role: RoomRole) -> Route {
        self.enter_room(route, role, self.owner.room())
    }

    fn enter_room(&mut self, route: u32, role: RoomRole, room: String) -> Route {
        let is_host = matches!(role, RoomRole::Owner { .. });
        let identity = identity();
        let peer = identity.peer();
        let mut sessions = Sessions::new(identity, room, role, counting);
        let others: Vec<Route> = self.members.keys().copied().collect();
        let owner = self.members.iter().find(|(_, member)| member.is_host).map(|(route, _)| *route);
        let route = Route(route);
        let owner_route = if is_host { Some(route) } else { owner };
        sessions.welcomed(route, owner_route, &others, self.now);
        let (up, words, frames, closed, rekeyed, link) = Default::default();
        self.members.insert(route, Member { sessions, peer, up, words, frames, closed, rekeyed, link, is_host });
        for other in others {
            self.members.get_mut(&other).unwrap().sessions.joined(route, is_host, self.now);
            self.perform(other);
        }
        self.perform(route);
        route
    }

    fn perform(&mut self, route: Route) {
        loop {
            let member = self.members.get_mut(&route).unwrap();
            let actions = member.sessions.take_actions();
            if actions.is_empty() {
                return;
            }
            for action in actions {
                match action {
                    Action::Send(to, message) => self.in_flight.push_back((route, to, message)),
                    Action::Up(other, certificate, proof, words) => {
                        member.words.insert(other, words);
                        assert_eq!(certificate.is_owner, proof == Proof::Host);
                        member.up.insert(other, proof);
                        if member.is_host && proof != Proof::Visitor {
                            member.sessions.admit(other);
                        }
                    }
                    Action::Down(other, why) => {
                        member.up.remove(&other);
                        member.closed.push(why);
                    }
                    Action::Failed(_, why) => member.closed.push(why),
                    Action::Frame(_, peer, bytes) => member.frames.push((peer, bytes)),
                    Action::Rekeyed(other, words) => {
                        member.words.insert(other, words);
                        member.rekeyed += 1;
                    }
                    Action::LinkRenewed(link) => member.link = Some(link),
                    Action::OtherVersion(_) => {}
                }
            }
        }
    }

    fn deliver(&mut self, (from, to, message): (Route, Route, Vec<u8>)) {
        if let Some(member) = self.members.get_mut(&to) {
            member.sessions.received(from, &message, self.now);
            self.perform(to);
        }
    }

    fn settle(&mut self) {
        while let Some(message) = self.in_flight.pop_front() {
            self.deliver(message);
        }
    }

    fn wait(&mut self, millis: f64) {
        self.now = Millis(self.now.0 + millis);
        let routes: Vec<Route> = self.members.keys().copied().collect();
        for route in routes {
            self.members.get_mut(&route).unwrap().sessions.tick(self.now);
            self.perform(route);
        }
        self.settle();
    }

    fn send(&mut self, from: Route, to: Route, frame: &[u8]) {
        if let Some(message) = self.members.get_mut(&from).unwrap().sessions.seal(to, frame) {
            self.in_flight.push_back((from, to, message));
        }
    }

    fn up(&self, route: Route) -> Vec<(u32, Proof)> {
        self.members[&route].up.iter().map(|(route, proof)| (route.0, *proof)).collect()
    }
}

#[test]
fn link_holders_meet_the_host_and_then_each_other() {
    let mut room = Room::new();
    let host = room.enter(1, room.host_role());
    let first = room.enter(2, room.guest_role());
    room.settle();
    let second = room.enter(3, room.guest_role());
    room.settle();
    assert_eq!(room.up(host), [(2, Proof::Link(0)), (3, Proof::Link(0))]);
    assert_eq!(room.up(first), [(1, Proof::Host), (3, Proof::Group)]);
    assert_eq!(room.up(second), [(1, Proof::Host), (2, Proof::Group)]);
    room.send(second, first, b"frame");
    room.settle();
    let from = room.members[&second].peer;
    assert_eq!(room.members[&first].frames, [(from, b"frame".to_vec())]);
}

#[test]
fn both_ends_of_a_session_show_the_same_words_and_no_two_sessions_do() {
    let mut room = Room::new();
    let host = room.enter(1, room.host_role());
    let guest = room.enter(2, room.guest_role());
    room.enter(3, RoomRole::Visitor);
    room.settle();
    let words = |room: &Room, of: Route, with: Route| room.members[&of].words[&with].clone();
    let first = words(&room, host, guest);
    assert_eq!(first, words(&room, guest, host));
    assert_ne!(first, words(&room, host, Route(3)));
    room.now = Millis(1_000.0);
    room.members.get_mut(&host).unwrap().sessions.end(guest, Closed::TooSlow, Millis(1_000.0));
    room.perform(host);
    room.settle();
    assert_eq!(words(&room, host, guest), words(&room, guest, host));
    assert_ne!(first, words(&room, host, guest), "the same keys, another session");
}

#[test]
fn all_meet_whoever_comes_first() {
    let mut room = Room::new();
    let (first, second) = (room.enter(1, room.guest_role()), room.enter(2, room.guest_role()));
    room.settle();
    assert!(room.up(first).is_empty(), "nobody is there who could admit");
    let host = room.enter(3, room.host_role());
    room.settle();
    room.wait(RETRY_MILLIS);
    assert_eq!(room.up(host).len(), 2);
    assert_eq!(room.up(first), [(2, Proof::Group), (3, Proof::Host)]);
    assert_eq!(room.up(second), [(1, Proof::Group), (3, Proof::Host)]);
}

#[test]
fn a_visitor_meets_the_others_only_once_it_is_admitted() {
    let mut room = Room::new();
    let host = room.enter(1, room.host_role());
    let guest = room.enter(2, room.guest_role());
    let visitor = room.enter(3, RoomRole::Visitor);
    room.settle();
    room.wait(MAX_RETRY_MILLIS);
    assert_eq!(room.up(visitor), [(1, Proof::Host)]);
    assert_eq!(room.up(host), [(2, Proof::Link(0)), (3, Proof::Visitor)]);
    assert_eq!(room.up(guest), [(1, Proof::Host)]);
    room.members.get_mut(&host).unwrap().sessions.admit(visitor);
    room.perform(host);
    room.settle();
    assert_eq!(room.up(visitor), [(1, Proof::Host), (2, Proof::Group)]);
}

#[test]
fn another_secret_gets_no_session_and_no_answer() {
    let mut room = Room::new();
    let host = room.enter(1, room.host_role());
    room.enter(2, room.guest_role());
    room.settle();
    let stranger = room.enter(3, RoomRole::Guest(RoomSecret::from_bytes([8; 16])));
    let before = room.in_flight.len();
    room.settle();
    for _ in 0..20 {
        room.wait(MAX_RETRY_MILLIS);
    }
    assert!(before > 0, "it tried");
    assert!(room.up(stranger).is_empty());
    assert_eq!(room.up(host), [(2, Proof::Link(0))]);
}

#[test]
fn a_guest_cannot_play_the_host() {
    // The relay works together with a guest: it names the guest's connection as the owner's.
    let mut room = Room::new();
    let mallory = room.enter(1, room.guest_role());
    let role = room.guest_role();
    let victim = room.enter(2, role);
    let member = room.members.get_mut(&victim).unwrap();
    member.sessions.welcomed(victim, Some(mallory), &[mallory], room.now);
    let other_owner = OwnerKey::from_seed([8; 32]);
    let secret = RoomSecret::from_bytes(SECRET);
    let (identity, name) = (identity(), room.owner.room());
    let mut fake = Sessions::new(
        identity,
        name,
        RoomRole::Owner { key: other_owner, secret, link: 0, generation: 0, visible: true },
        counting,
    );
    fake.welcomed(mallory, Some(mallory), &[victim], room.now);
    room.members.get_mut(&mallory).unwrap().sessions = fake;
    room.perform(victim);
    room.settle();
    room.wait(MAX_RETRY_MILLIS);
    assert!(room.up(victim).is_empty(), "it believed {:?}", room.up(victim));
    assert!(!room.members[&victim].closed.is_empty());
}

#[test]
fn a_relay_that_swaps_two_connections_reaches_nothing() {
    let mut room = Room::new();
    let host = room.enter(1, room.host_role());
    let (one, two) = (room.enter(2, room.guest_role()), room.enter(3, room.guest_role()));
    let swap = |route: Route| {
        if route == one {
            two
        } else if route == two {
            one
        } else {
            route
        }
    };
    for _ in 0..40 {
        while let Some((from, to, message)) = room.in_flight.pop_front() {
            let (from, to) = if to == host { (swap(from), to) } else { (from, swap(to)) };
            room.deliver((from, to, message));
        }
        room.wait(100.0);
    }
    let frames: usize = room.members.values().map(|member| member.frames.len()).sum();
    assert_eq!(frames, 0);
    for (route, member) in &room.members {
        let honest = |other: &Route| room.members[other].up.contains_key(route);
        assert!(member.up.keys().all(honest), "{route:?} has a session that the other side does not know");
    }
}

#[test]
fn messages_of_other_versions_and_rubbish_are_ignored_or_told() {
    let mut room = Room::new();
    let host = room.enter(1, room.host_role());
    let guest = room.enter(2, room.guest_role());
    room.settle();
    let old = [&8u16.to_le_bytes()[..], &[0; 30]].concat();
    let member = room.members.get_mut(&guest).unwrap();
    member.sessions.received(host, &old, room.now);
    assert_eq!(member.sessions.take_actions(), [Action::OtherVersion(8)], "the host's version counts");
    let member = room.members.get_mut(&host).unwrap();
    member.sessions.received(guest, &old, room.now);
    let answer = Action::Send(guest, Kind::Again.header().to_vec());
    assert_eq!(member.sessions.take_actions(), [answer], "the guest learns the host's version");
    for rubbish in [&[][..], &[9], &VERSION.to_le_bytes(), &[12, 0, 77], &[12, 0, 1], &[12, 0, 2, 1], &[12, 0, 3]] {
        member.sessions.received(guest, rubbish, room.now);
    }
    assert_eq!(member.sessions.take_actions(), []);
    assert_eq!(room.up(host), [(2, Proof::Link(0))], "the session stands");
}

#[test]
fn a_flood_of_first_messages_is_answered_seldom() {
    let mut room = Room::new();
    let host = room.enter(1, room.host_role());
    let guest = room.enter(2, room.guest_role());
    let (_, _, hello) = room.in_flight.pop_front().unwrap();
    let member = room.members.get_mut(&host).unwrap();
    let rubbish = Kind::Finish.header();
    (0..1_000).for_each(|_| {
        member.sessions.received(guest, &hello, room.now);
        member.sessions.received(guest, &rubbish, room.now);
    });
    let answers = member.sessions.take_actions().into_iter().filter(|action| matches!(action, Action::Send(..)));
    assert_eq!(answers.count(), 1);
}

#[test]
fn only_the_host_of_a_listed_room_answers_visitors() {
    let mut room = Room::new();
    let RoomRole::Owner { key, secret, link, generation, .. } = room.host_role() else { unreachable!() };
    let host = room.enter(1, RoomRole::Owner { key, secret, link, generation, visible: false });
    let guest = room.enter(2, room.guest_role());
    room.settle();
    let visitor = room.enter(3, RoomRole::Visitor);
    room.settle();
    assert_eq!(room.up(visitor), [], "the relay let a visitor into a room that is not listed");
    // A visitor that takes another member for the host gets no answer either.
    let member = room.members.get_mut(&visitor).unwrap();
    member.sessions.welcomed(visitor, Some(guest), &[host, guest], room.now);
    room.perform(visitor);
    let asked: Vec<_> = room.in_flight.iter().map(|(_, to, _)| *to).collect();
    assert_eq!(asked, [guest]);
    room.settle();
    assert!(room.in_flight.is_empty() && room.members[&visitor].closed.is_empty(), "somebody answered");
}

#[test]
fn a_session_that_this_side_ends_comes_back() {
    let mut room = Room::new();
    let host = room.enter(1, room.host_role());
    let guest = room.enter(2, room.guest_role());
    room.settle();
    room.now = Millis(1_000.0);
    room.members.get_mut(&host).unwrap().sessions.end(guest, Closed::TooSlow, Millis(1_000.0));
    room.perform(host);
    assert_eq!(room.up(host), []);
    room.settle();
    assert_eq!(room.up(host), [(2, Proof::Link(0))]);
    assert_eq!(room.members[&host].closed, [Closed::TooSlow]);
}

/// What a relay does to a message.
#[derive(Clone, Copy, Debug)]
enum Misdeed {
    Deliver,
    Drop,
    Double,
    Last,
    Flip(usize),
    Replay(usize),
}

fn misdeeds() -> impl Strategy<Value = Vec<Misdeed>> {
    let misdeed = prop_oneof![
        8 => Just(Misdeed::Deliver),
        1 => Just(Misdeed::Drop),
        1 => Just(Misdeed::Double),
        1 => Just(Misdeed::Last),
        1 => any::<usize>().prop_map(Misdeed::Flip),
        1 => any::<usize>().prop_map(Misdeed::Replay),
    ];
    proptest::collection::vec(misdeed, 1..120)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]
    #[test]
    fn a_hostile_relay_changes_no_frame_and_an_honest_one_brings_all_back(misdeeds in misdeeds()) {
        let mut room = Room::new();
        let routes = [room.enter(1, room.host_role()), room.enter(2, room.guest_role()), room.enter(3, room.guest_role())];
        let (mut sent, mut seen) = (Vec::new(), Vec::new());
        for (number, misdeed) in misdeeds.into_iter().enumerate() {
            let (from, to) = (routes[number % 3], routes[(number + 1 + number / 3 % 2) % 3]);
            let frame = (number as u64).to_le_bytes();
            sent.push((room.members[&from].peer, to, frame.to_vec()));
            room.send(from, to, &frame);
            let Some((from, to, mut message)) = room.in_flight.pop_front() else { continue };
            seen.push((from, to, message.clone()));
            match misdeed {
                Misdeed::Deliver => room.deliver((from, to, message)),
                Misdeed::Drop => {}
                Misdeed::Double => {
                    room.deliver((from, to, message.clone()));
                    room.deliver((from, to, message));
                }
                Misdeed::Last => room.in_flight.push_back((from, to, message)),
                Misdeed::Flip(bit) => {
                    let bit = bit % (message.len() * 8);
                    message[bit / 8] ^= 1 << (bit % 8);
                    room.deliver((from, to, message));
                }
                Misdeed::Replay(which) => {
                    room.deliver((from, to, message));
                    let old = seen[which % seen.len()].clone();
                    room.deliver(old);
                }
            }
            room.now = Millis(room.now.0 + 50.0);
        }
        for (route, member) in &room.members {
            let mut after = std::collections::BTreeMap::new();
            for (peer, frame) in &member.frames {
                let place = sent.iter().position(|one| one == &(*peer, *route, frame.clone()));
                prop_assert!(place.is_some(), "a frame that nobody sent");
                prop_assert!(after.insert(*peer, place).is_none_or(|before| before < place), "out of order or twice");
            }
        }
        // Every side says something now and then, so a broken session is noticed.
        for _ in 0..8 {
            for (from, to) in [(0, 1), (1, 0), (0, 2), (2, 0), (1, 2), (2, 1)] {
                room.send(routes[from], routes[to], b"beat");
            }
            room.settle();
            room.wait(MAX_RETRY_MILLIS);
        }
        let up = routes.map(|route| room.up(route));
        prop_assert!(up.iter().all(|up| up.len() == 2), "a session did not come back: {up:?}, closed {:?}", routes.map(|route| room.members[&route].closed.clone()));
    }
}

fn invite(by: &OwnerKey) -> RoomRole {
    RoomRole::Invited(by.invite([5; crate::invite::TERMS_LEN]))
}

#[test]
fn an_invited_guest_proves_its_invite_to_the_host_and_meets_the_others_once_it_is_admitted() {
    let mut room = Room::new();
    let host = room.enter(1, room.host_role());
    let guest = room.enter(2, room.guest_role());
    room.settle();
    let owner = room.owner.clone();
    let invited = room.enter(3, invite(&owner));
    room.settle();
    assert_eq!(room.up(host), [(2, Proof::Link(0)), (3, Proof::Invite([5; crate::invite::TERMS_LEN]))]);
    assert_eq!(room.up(invited), [(1, Proof::Host), (2, Proof::Group)]);
    assert_eq!(room.up(guest), [(1, Proof::Host), (3, Proof::Group)]);
}

#[test]
fn an_invite_of_somebody_else_or_with_other_terms_opens_no_session() {
    let mut room = Room::new();
    let host = room.enter(1, room.host_role());
    room.enter(2, invite(&OwnerKey::from_seed([8; 32])));
    let RoomRole::Invited(mut altered) = invite(&room.owner) else { return };
    altered.terms[0] ^= 1;
    room.enter(3, RoomRole::Invited(altered));
    room.settle();
    assert!(room.up(host).is_empty());
}

#[test]
fn whoever_is_put_out_of_the_group_has_no_sessions_with_its_members_any_more() {
    let mut room = Room::new();
    let host = room.enter(1, room.host_role());
    let [first, second, banned] = [2, 3, 4].map(|route| {
        let route = room.enter(route, room.guest_role());
        room.settle();
        route
    });
    assert_eq!(room.up(banned).len(), 3);
    // Long after the first handshakes.
    room.wait(MAX_RETRY_MILLIS);
    let sessions = &mut room.members.get_mut(&host).unwrap().sessions;
    sessions.regroup(1);
    [first, second].iter().for_each(|route| sessions.admit(*route));
    room.perform(host);
    room.settle();
    for _ in 0..20 {
        room.wait(MIN_PAUSE_MILLIS);
    }
    let links = [(1, Proof::Host), (3, Proof::Group)];
    assert_eq!(room.up(first), links, "the others meet again");
    assert_eq!(room.up(second), [(1, Proof::Host), (2, Proof::Group)]);
    room.send(first, banned, b"frame");
    room.settle();
    assert!(room.members[&banned].frames.is_empty());
}

/// It still has the old group secret, to which the host does not answer.
#[test]
fn a_visitor_who_was_let_in_finds_the_host_again_after_a_ban_that_it_missed() {
    let mut room = Room::new();
    let host = room.enter(1, room.host_role());
    let visitor = room.enter(2, RoomRole::Visitor);
    room.settle();
    let sessions = &mut room.members.get_mut(&host).unwrap().sessions;
    sessions.admit(visitor);
    room.perform(host);
    room.settle();
    let (back, now) = (Route(3), room.now);
    let mut away = room.members.remove(&visitor).unwrap();
    away.up.clear();
    let sessions = &mut room.members.get_mut(&host).unwrap().sessions;
    sessions.left(visitor);
    sessions.regroup(1);
    sessions.joined(back, false, now);
    away.sessions.welcomed(back, Some(host), &[host], now);
    room.members.insert(back, away);
    room.perform(back);
    room.settle();
    room.wait(RETRY_MILLIS);
    assert!(room.up(host).contains(&(3, Proof::Visitor)), "as the one who was let in: {:?}", room.up(host));
    let sessions = &mut room.members.get_mut(&host).unwrap().sessions;
    sessions.admit(back);
    room.perform(host);
    room.settle();
    assert_eq!(room.up(back), [(1, Proof::Host)]);
}

/// Each handshake costs the host two multiplications on the curve. Visitors need no secret to ask for one.
#[test]
fn a_crowd_of_visitors_gets_few_answers_and_keeps_nobody_else_out() {
    let mut room = Room::new();
    let host = room.enter(1, room.host_role());
    let visitors: Vec<Route> = (2..202).map(|route| room.enter(route, RoomRole::Visitor)).collect();
    let hellos: Vec<_> = room.in_flight.drain(..).collect();
    let mut answers = 0;
    for millis in 0..1_000 {
        room.now = Millis(f64::from(millis) * 10.0);
        let member = room.members.get_mut(&host).unwrap();
        hellos.iter().for_each(|(from, _, hello)| member.sessions.received(*from, hello, room.now));
        answers += member.sessions.take_actions().len();
    }
    assert!(answers <= 400, "{answers} answers in ten seconds to {} visitors", visitors.len());
    // Amid it somebody comes by the link, and somebody by an invite.
    let guest = room.enter(300, room.guest_role());
    let owner = room.owner.clone();
    let invited = room.enter(301, invite(&owner));
    room.settle();
    assert_eq!((room.up(guest)[0], room.up(invited)[0]), ((1, Proof::Host), (1, Proof::Host)));
    // And an honest visitor.
    let honest = room.enter(302, RoomRole::Visitor);
    for _ in 0..10 {
        let member = room.members.get_mut(&host).unwrap();
        hellos.iter().for_each(|(from, _, hello)| member.sessions.received(*from, hello, room.now));
        member.sessions.take_actions();
        room.settle();
        room.wait(RETRY_MILLIS);
    }
    assert_eq!(room.up(honest), [(1, Proof::Host)]);
}

mod renewing;
