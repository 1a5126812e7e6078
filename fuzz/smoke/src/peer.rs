//! What members, visitors and strangers send to the peers of a room.

use std::fmt::Debug;
use std::sync::LazyLock;

use potluck_gguf::WriteError;
use potluck_plan::{DeviceId, Millis, PeerId};
use potluck_protocol::{Frame, Sharing, UnixSeconds, decode, encode};
use potluck_sim::{Recording, SimDevice, SimModel, World};
use potluck_swarm::{Action, Event, Peer, Proof, RelayRoute};

/// Frames of one input that are read.
const MAX_FRAMES: usize = 8;
/// Actions that one frame may cause. A room of four devices announces, plans and answers with fewer.
const MAX_ACTIONS: usize = 200;
/// Bytes that one frame may make the peer send: a probe of a fast link has half of them.
const MAX_SENT: usize = 256 << 10;
/// Somebody who found the room in a list and whom nobody let in.
const VISITOR: Sender = Sender { route: RelayRoute(900), peer: PeerId([200; 16]) };
/// Ticks after the frames, and milliseconds between them: long enough that whoever is silent is given up.
const TICKS: usize = 4;
const TICK_MILLIS: f64 = 6_000.0;

/// Devices of the rooms, in the order in which they enter.
const HOST: usize = 0;
const FIRST_WORKER: usize = 1;
const LAST_WORKER: usize = 3;
const ASKER: usize = 4;
/// Times to ask, in milliseconds: standbys are planned in between, which takes a host most of its time in every execution.
const BEFORE_STANDBYS: f64 = 1_000.0;
const AFTER_STANDBYS: f64 = 3_000.0;

#[derive(Clone, Copy, PartialEq)]
struct Sender {
    route: RelayRoute,
    peer: PeerId,
}

/// A peer in a room, and who can send to it.
struct Victim {
    recording: Recording,
    is_host: bool,
    /// The other members. The first of a guest's or worker's is the host.
    others: Vec<Sender>,
}

/// Hosts, workers and an asker of a room that shares blocks, and of one that shares experts, both in the middle of an answer.
static VICTIMS: LazyLock<Vec<Victim>> = LazyLock::new(|| {
    let blocks = || {
        let model = SimModel { blocks: 6, experts: 0, kv_bytes: 0, state_bytes: 0 };
        // The host lends nothing, so others hold the last stage and send it logits.
        (World::new(1, model, Sharing::Everyone, SimDevice::default()), 620)
    };
    let experts = || {
        let model = SimModel { blocks: 3, experts: 8, kv_bytes: 0, state_bytes: 0 };
        (World::new(1, model, Sharing::Fastest, SimDevice::with_budget(530)), 250)
    };
    let rooms: [&dyn Fn() -> (World, u64); 2] = [&blocks, &experts];
    let of_room = |room: &dyn Fn() -> (World, u64)| {
        let mut all = victims(room(), &[HOST], BEFORE_STANDBYS);
        all.extend(victims(room(), &[FIRST_WORKER, LAST_WORKER, ASKER], AFTER_STANDBYS));
        all
    };
    rooms.into_iter().flat_map(of_room).collect()
});

/// Records devices of a room in which a question is asked at a time.
fn victims((mut world, budget): (World, u64), recorded: &[usize], asked: f64) -> Vec<Victim> {
    for worker in FIRST_WORKER..=LAST_WORKER {
        world.add(SimDevice::with_budget(budget), 5.0 * worker as f64);
    }
    let asker = world.add(SimDevice::default(), 20.0);
    recorded.iter().for_each(|index| world.record(*index));
    world.prompt(asker, 1, "how do bees find home?", 60, asked);
    world.run(20_000.0, |world| world.answer(asker, 1).is_some_and(|answer| answer.tokens.len() > 3));
    recorded.iter().map(|index| Victim::new(world.recording(*index), *index == HOST)).collect()
}

impl Victim {
    fn new(recording: Recording, is_host: bool) -> Self {
        let met = |(event, _): &(Event, Millis)| match event {
            Event::PeerConnected { route, peer, proof, .. } => {
                Some((*proof != Proof::Host, Sender { route: *route, peer: *peer }))
            }
            _ => None,
        };
        let mut others: Vec<_> = recording.events().iter().filter_map(met).collect();
        others.sort_by_key(|(is_not_host, _)| *is_not_host);
        Self { recording, is_host, others: others.into_iter().map(|(_, sender)| sender).collect() }
    }

    /// Members, a visitor, and pairs of connection and sender that no session has.
    fn sender(&self, which: u8) -> Sender {
        let which = usize::from(which) % (self.others.len() + 3);
        let (first, last) = (self.others[0], self.others[self.others.len() - 1]);
        match which.checked_sub(self.others.len()) {
            None => self.others[which],
            Some(0) => VISITOR,
            Some(1) => Sender { peer: first.peer, ..VISITOR },
            Some(_) => Sender { peer: first.peer, ..last },
        }
    }

    /// After so many of its events, with a visitor at the door.
    fn at(&self, point: usize) -> (Peer, Millis) {
        let mut peer = self.recording.replay(point);
        let now = point.checked_sub(1).map_or(Millis(0.0), |last| self.recording.events()[last].1);
        let Sender { route, peer: visitor } = VISITOR;
        let met = Event::PeerConnected {
            route,
            peer: visitor,
            device: DeviceId([200; 32]),
            proof: Proof::Visitor,
            at: UnixSeconds(0),
        };
        peer.on(met, now);
        (peer, now)
    }
}

/// Any frames from anybody, at any time, to a peer of a room: it stays in its room unless its host says otherwise, a visitor
/// stays outside, and no frame causes more than a bounded number of actions. The first byte chooses the peer, the next two
/// how far its room is; then come parts: the sender, the length in two bytes, a frame.
///
/// # Panics
/// If that does not hold.
pub fn peer(data: &[u8]) {
    let [which, high, low, parts @ ..] = data else { return };
    let victim = &VICTIMS[usize::from(*which) % VICTIMS.len()];
    let frames = frames(victim, parts);
    if frames.is_empty() {
        return;
    }
    let point = usize::from(u16::from_be_bytes([*high, *low])) % (victim.recording.events().len() + 1);
    let (mut peer, now) = victim.at(point);
    let before = peer.view().membership;
    let from_host = !victim.is_host && frames.iter().any(|(sender, _)| *sender == victim.others[0]);
    for (Sender { route, peer: from }, frame) in frames {
        let cause = frame.clone();
        bounded(&peer.on(Event::Frame { route, from, frame }, now), &cause);
    }
    assert!(from_host || peer.view().membership == before, "strangers and members put a peer out of its room");
    assert!(!victim.is_host || point == 0 || peer.view().coordinator, "the host hosts no more");
    for tick in 1..=TICKS {
        bounded(&peer.on(Event::Tick, Millis(now.0 + TICK_MILLIS * tick as f64)), &"a tick");
    }
    let members = peer.view().room.map_or(0, |room| room.members.len());
    assert!(from_host || members <= victim.others.len() + 2, "{members} members");
}

/// The frames that are any, with who sends them.
fn frames(victim: &Victim, mut parts: &[u8]) -> Vec<(Sender, Frame)> {
    let mut frames = Vec::new();
    while let [sender, low, high, rest @ ..] = parts {
        let (frame, after) = rest.split_at(usize::from(u16::from_le_bytes([*low, *high])).min(rest.len()));
        parts = after;
        // What is no frame does not reach a peer.
        frames.extend(decode(frame).ok().map(|frame| (victim.sender(*sender), frame)));
        if frames.len() == MAX_FRAMES {
            break;
        }
    }
    frames
}

fn bounded(actions: &[Action], cause: &impl Debug) {
    assert!(actions.len() <= MAX_ACTIONS, "{} actions for {cause:?}", actions.len());
    let mut sent = 0;
    for action in actions {
        match action {
            Action::Send { frame, .. } => sent += encode(frame).map_or(0, |bytes| bytes.len()),
            Action::Admitted(peer) => assert_ne!(*peer, VISITOR.peer, "nobody let the visitor in: {cause:?}"),
            Action::WakeAt(at) => assert!(at.0.is_finite(), "a wake-up that never comes: {cause:?}"),
            _ => {}
        }
    }
    assert!(sent <= MAX_SENT, "{sent} bytes for {cause:?}");
}

/// What the peers received, at the time and some of it later, from who sent it and from others.
pub fn seeds() -> Result<Vec<Vec<u8>>, WriteError> {
    let mut seeds = Vec::new();
    for (which, victim) in VICTIMS.iter().enumerate() {
        let events = victim.recording.events();
        let received = events.iter().enumerate().filter_map(|(point, (event, _))| match event {
            Event::Frame { route, from, frame } => {
                let sender = Sender { route: *route, peer: *from };
                let sender = victim.others.iter().position(|other| *other == sender)?;
                Some((point, sender, encode(frame).ok()?))
            }
            _ => None,
        });
        let received: Vec<_> = received.collect();
        for (at, (point, ..)) in received.iter().enumerate() {
            // At its time, a frame alone; and with those before it, at the end.
            for (point, frames) in [(*point, &received[at..=at]), (events.len(), &received[at.saturating_sub(3)..=at])]
            {
                let mut seed = vec![which as u8];
                seed.extend((point as u16).to_be_bytes());
                for (_, sender, frame) in frames {
                    let changed = if at % 4 == 3 { sender + at } else { *sender };
                    seed.push(changed as u8);
                    seed.extend((frame.len() as u16).to_le_bytes());
                    seed.extend(frame);
                }
                seeds.push(seed);
            }
        }
    }
    Ok(seeds)
}

#[cfg(test)]
mod tests {
    use potluck_swarm::Membership;

    use super::*;

    #[test]
    fn victims_are_in_their_rooms_and_seeds_reach_them() {
        for (which, victim) in VICTIMS.iter().enumerate() {
            let (peer, _) = victim.at(victim.recording.events().len());
            assert_eq!(peer.view().membership, Membership::Inside, "victim {which}");
            assert!(peer.view().room.is_some_and(|room| room.plan.plan.is_some()), "victim {which} has a plan");
            assert!(!victim.others.is_empty(), "victim {which} has others");
        }
        let seeds = seeds().expect("no file is written");
        let kinds = seeds.iter().flat_map(|seed| frames(&VICTIMS[usize::from(seed[0])], &seed[3..]));
        let kinds: std::collections::BTreeSet<String> = kinds
            .map(|(_, frame)| format!("{frame:?}").chars().take_while(|letter| letter.is_alphanumeric()).collect())
            .collect();
        for kind in
            ["Hello", "Prepare", "Commit", "Forward", "LogitsResult", "ExpertCall", "ExpertResult", "Answer", "Prompt"]
        {
            assert!(kinds.contains(kind), "no seed is a {kind}; there are {kinds:?}");
        }
    }
}
