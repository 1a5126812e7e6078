//! What would help, found in steps: the same as if all of it were looked for at once.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::cell::Cell;
use std::cmp::Reverse;

use potluck_plan::random::Random;
use potluck_plan::{Bytes, PeerId};
use potluck_planner::{
    AccessLink, Device, Effort, Gain, Help, HelpSearch, Link, Links, Room, Sharing, Step, TAU, plan, what_would_help,
};
use potluck_testkit::{RoomFixture, dense_shape, device, moe_shape};

/// Rooms that are drawn.
const ROOMS: u64 = 150;
const NEWCOMER: PeerId = PeerId([0xff; 16]);

/// Few devices or many, with too little memory or plenty, and their lines.
fn drawn(random: &mut Random) -> (RoomFixture, Vec<Link>) {
    let blocks = 1 + random.below(4);
    let shape = if random.below(2) == 0 { dense_shape(blocks) } else { moe_shape(blocks) };
    let scale = [100, 300, 900][random.below(3)];
    let most = if random.below(4) == 0 { 11 } else { 5 };
    let devices = 1 + random.below(most) as u8;
    let (mut links, mut lines) = (Links::default(), Vec::new());
    let devices = (0..devices).map(|id| {
        let budget = 30 + random.below(scale) as u64;
        let mut device = device(id, budget, 1e5 * (1.0 + 9.0 * random.unit()));
        let link = Link { latency_millis: 0.2 + 4.0 * random.unit(), bandwidth: 10.0 + 100.0 * random.unit() };
        links.set_access(device.peer, AccessLink { up: link, down: link });
        lines.push(link);
        if random.below(2) == 0 {
            links.set_spread(device.peer, 0.1 + 0.5 * random.unit());
        }
        device.presence.departures = random.below(3) as u32;
        device
    });
    let devices = devices.collect();
    (RoomFixture::new(shape, devices).with_links(links), lines)
}

/// All of it at once, in other words than the planner's, with the number of plans that were looked for.
fn at_once(room: &Room<'_>, lines: &[Link]) -> (Vec<Help>, usize) {
    let asked = Cell::new(0);
    let effort = Effort { steps: room.effort.steps / (11 * (room.devices.len().min(8) as u64 + 1)), ..room.effort };
    let millis = |devices: &[Device], links: &Links| {
        asked.set(asked.get() + 1);
        Some(plan(&Room { devices, links, effort, ..room.clone() }).ok()?.prediction.token_millis)
    };
    let now = millis(room.devices, room.links);
    let everything = room.layers.iter().map(|layer| layer.memory.0).sum::<u64>() + room.overhead.0;
    let least = |most: u64, with: &dyn Fn(u64) -> Option<f64>| {
        let better = |bytes| with(bytes).filter(|millis| now.is_none_or(|now| *millis < TAU * now));
        let (mut low, mut best) = (0, (most, better(most)?));
        for _ in 0..10 {
            let bytes = low + (best.0 - low) / 2;
            match better(bytes) {
                Some(millis) => best = (bytes, millis),
                None => low = bytes,
            }
        }
        let gain = now.map_or(Gain::Fits, |now| Gain::Saves { millis: now - best.1 });
        Some((Bytes(best.0), gain))
    };
    let mut found = Vec::new();
    let mut by_speed: Vec<&Device> = room.devices.iter().collect();
    by_speed.sort_by(|a, b| a.speed.decode.total_cmp(&b.speed.decode).then(a.peer.cmp(&b.peer)));
    let usual = Device { peer: NEWCOMER, ..by_speed[by_speed.len() / 2].clone() };
    let mut lines = lines[1..].to_vec();
    lines.sort_by(|a, b| a.latency_millis.total_cmp(&b.latency_millis));
    let usual_line = lines.get(lines.len() / 2).copied().unwrap_or(Link::NONE);
    let mut links = room.links.clone();
    links.set_access(NEWCOMER, AccessLink { up: usual_line, down: usual_line });
    let with_another = |budget: u64| {
        let mut devices = room.devices.to_vec();
        devices.push(Device { budget: Bytes(budget), ..usual.clone() });
        millis(&devices, &links)
    };
    if let Some((budget, gain)) = least(everything, &with_another) {
        found.push((budget, Help::AnotherDevice { budget, gain }));
    }
    let mut places: Vec<usize> = (0..room.devices.len()).collect();
    places.sort_by_key(|place| {
        let device = &room.devices[*place];
        (device.peer != room.coordinator, Reverse(device.budget), device.peer)
    });
    for place in places.into_iter().take(8) {
        let with_more = |extra: u64| {
            let mut devices = room.devices.to_vec();
            devices[place].budget.0 += extra;
            millis(&devices, room.links)
        };
        if let Some((extra, gain)) = least(everything.saturating_sub(room.devices[place].budget.0), &with_more) {
            found.push((extra, Help::MoreMemory { peer: room.devices[place].peer, extra, gain }));
        }
    }
    found.sort_by_key(|(bytes, _)| *bytes);
    (found.into_iter().map(|(_, help)| help).collect(), asked.get())
}

#[test]
fn steps_find_what_is_found_at_once_and_look_for_one_plan_each() {
    let mut random = Random::new(7);
    let (mut fits, mut saves) = (0, 0);
    for seed in 0..ROOMS {
        let (fixture, lines) = drawn(&mut random);
        let sharing = [Sharing::Fastest, Sharing::Everyone, Sharing::Experts][random.below(3)];
        let room = fixture.room(sharing);
        let (expected, plans) = at_once(&room, &lines);
        let (mut search, mut steps) = (HelpSearch::new(&room), 0);
        let found = loop {
            steps += 1;
            match search.step(&room) {
                Step::GoesOn(next) => search = next,
                Step::Ends(found) => break found,
            }
        };
        assert_eq!(found, expected, "room {seed}");
        assert_eq!(steps, plans, "room {seed}: a step looks for one plan");
        assert_eq!(what_would_help(&room), expected, "room {seed}");
        let gain = |help: &Help| match help {
            Help::AnotherDevice { gain, .. } | Help::MoreMemory { gain, .. } => *gain,
        };
        fits += usize::from(found.iter().any(|help| gain(help) == Gain::Fits));
        saves += usize::from(found.iter().any(|help| gain(help) != Gain::Fits));
    }
    assert!(fits > 20 && saves > 20, "{fits} models were made to fit and {saves} rooms quicker: too few to tell");
}

#[test]
fn nothing_helps_a_room_without_devices() {
    let fixture = RoomFixture::new(dense_shape(2), Vec::new());
    let room = fixture.room(Sharing::Fastest);
    let Step::Ends(found) = HelpSearch::new(&room).step(&room) else { panic!("there is nothing to ask") };
    assert_eq!(found, []);
}
