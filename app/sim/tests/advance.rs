//! Loading in advance: while the model does not fit, devices load the part that they will most likely get.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use potluck_protocol::{AnswerStop, MemberStatus, PlanStatus, Sharing};
use potluck_sim::{Fault, Link, SimDevice, SimModel, World, undisturbed};

const TEXT: &str = "a question";
const TOKENS: u32 = 12;

fn hash(seed: u64) -> u64 {
    let value = seed.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (value ^ (value >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9)
}

/// Numbers below a limit, from a seed.
struct Draw(u64);

impl Draw {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = hash(self.0);
        (self.0 >> 20) % limit
    }
}

fn is_up(world: &World) -> bool {
    world.view(0).room.is_some_and(|room| room.plan.status == PlanStatus::Up)
}

/// Devices that come one by one, seconds apart, until the model fits; sometimes with an additional one, or one that
/// leaves before the last comes.
fn room(seed: u64, in_advance: bool, max: usize) -> (World, SimModel, f64) {
    let mut draw = Draw(seed);
    let experts = if draw.below(4) == 0 { 6 } else { 0 };
    let model = SimModel { blocks: 6 + draw.below(9) as u16, experts, kv_bytes: 0, state_bytes: 0 };
    let share = if draw.below(3) == 0 { Sharing::Everyone } else { Sharing::Fastest };
    let block = if experts > 0 { 225 } else { 160 };
    let whole = u64::from(model.blocks) * block + 100;
    let download = download(seed);
    let mut device = |part: f64| {
        let link = Link { latency: [1.0, 5.0, 20.0][draw.below(3) as usize], jitter: 1.0, ..Link::default() };
        let budget = (whole as f64 * part * (0.75 + draw.below(50) as f64 / 100.0)) as u64 + block + 60;
        let speed = [1.0, 1.0, 0.5, 3.0][draw.below(4) as usize];
        (SimDevice { download, noise: 0.05, ..SimDevice::with_budget(budget) }.at_speed(speed).behind(link), budget)
    };
    let parts = 2 + seed % 3;
    let share_of = 1.0 / parts as f64;
    let (host, mut lent) = device(share_of);
    let mut devices = Vec::new();
    while lent < whole + 60 * (devices.len() as u64 + 1) + 160 * devices.len() as u64 {
        let (device, budget) = device(share_of);
        lent += budget;
        devices.push(device);
    }
    let mut world = World::new(seed, model.clone(), share, host);
    if !in_advance {
        world.wait_with_loading();
    }
    let mut at = 0.0;
    let (mut indices, mut there) = (Vec::new(), 0.0f64);
    devices.truncate(max);
    let last = devices.len().saturating_sub(1);
    for (index, device) in devices.into_iter().enumerate() {
        at += 500.0 + draw.below(30_000) as f64;
        if index == last && draw.below(5) == 0 && !indices.is_empty() {
            // Somebody is away for a while before the last one comes.
            let leaver = indices[draw.below(indices.len() as u64) as usize];
            world.fault(Fault::Reload(leaver, 4_000.0), at - 400.0);
            there = at + 3_600.0;
        }
        indices.push(world.add(device, at));
    }
    (world, model, there.max(at))
}

fn download(seed: u64) -> f64 {
    [40.0, 100.0, 400.0][hash(seed ^ 0xd0) as usize % 3]
}

/// Milliseconds that one block takes to download.
fn block_millis(seed: u64) -> f64 {
    let (_, model, _) = room(seed, false, 0);
    model.shape().blocks[0].weights().0 as f64 / download(seed) * 1e3
}

/// Devices needed besides the host for the model to fit.
fn needed(seed: u64) -> usize {
    let (mut world, ..) = room(seed, false, usize::MAX);
    world.run(600_000.0, |world| world.view(0).room.is_some_and(|room| room.plan.status != PlanStatus::Waiting));
    world.view(0).room.unwrap().members.len() - 1
}

/// When the model fits and when its plan is up, milliseconds.
fn times(seed: u64, in_advance: bool) -> (f64, f64) {
    let (mut world, model, _) = room(seed, in_advance, needed(seed));
    let fits = |world: &World| world.view(0).room.is_some_and(|room| room.plan.status != PlanStatus::Waiting);
    world.run(600_000.0, fits);
    let fitted = world.now();
    world.run(1_200_000.0, is_up);
    assert!(is_up(&world), "seed {seed}: {}", world.view(0).room.unwrap().plan.reason);
    let up = world.now();
    if !in_advance {
        return (fitted, up);
    }
    world.prompt(0, 1, TEXT, TOKENS, world.now());
    world.run(world.now() + 200_000.0, |world| world.answer(0, 1).is_some_and(|answer| answer.end.is_some()));
    let answer = world.answer(0, 1).unwrap();
    let prompt: Vec<u32> = TEXT.bytes().map(u32::from).collect();
    assert_eq!(answer.end, Some(AnswerStop::Length), "seed {seed}: {answer:?}");
    assert_eq!(answer.tokens, undisturbed(&model, &prompt, TOKENS as usize), "seed {seed}");
    assert_eq!(world.violation(), None, "seed {seed}");
    (fitted, up)
}

/// Over a thousand rooms: the wait for the plan from the moment at which the model fits. A device's progress report
/// may be a second old, and a partly loaded block counts as missing: the choice may be wrong by that much.
#[test]
fn the_room_is_up_sooner_and_never_much_later() {
    let (mut all_with, mut all_without, mut sooner, mut worst) = (0.0, 0.0, 0, f64::MIN);
    for seed in 0..1_000 {
        let ((fits, without), (_, with)) = (times(seed, false), times(seed, true));
        let (with, without) = (with - fits, without - fits);
        let later = with - without;
        let max = 1_000.0 + block_millis(seed);
        assert!(
            later <= max,
            "seed {seed}: up {with:.0} ms after the model fitted, {without:.0} without; allowed {max:.0}"
        );
        sooner += u32::from(later < -0.1 * without);
        worst = worst.max(later);
        all_with += with;
        all_without += without;
    }
    let share = all_with / all_without;
    println!(
        "{share:.2} of the wait, {sooner} of 1,000 rooms up sooner by a tenth or more, at worst {worst:.0} ms later"
    );
    assert!(share < 0.9 && sooner > 400, "{share:.2} of the wait, {sooner} rooms up sooner");
}

fn seats(world: &World) -> Vec<(MemberStatus, Option<String>, u64)> {
    let members = &world.view(0).room.unwrap().members;
    members.iter().map(|member| (member.status, member.standby.clone(), member.used.0)).collect()
}

#[test]
fn devices_show_what_they_load_in_advance_and_drop_what_the_plan_does_not_need() {
    let slow = SimDevice { download: 50.0, ..SimDevice::with_budget(400) };
    let mut world = World::new(1, SimModel::dense(6), Sharing::Fastest, slow);
    world.add(slow, 10.0);
    world.run(8_000.0, |_| false);
    let loads = (MemberStatus::Loading, Some("Loads its part in advance.".to_owned()));
    let told: Vec<_> = seats(&world).into_iter().map(|(status, sentence, _)| (status, sentence)).collect();
    assert_eq!(told, [loads.clone(), loads]);
    world.run(30_000.0, |_| false);
    let told = seats(&world);
    assert!(told.iter().all(|(status, ..)| *status == MemberStatus::Spare), "{told:?}");
    assert!(
        told.iter().all(|(_, sentence, _)| sentence.as_deref() == Some("Has loaded its part in advance.")),
        "{told:?}"
    );
    // Two blocks with an end, or two blocks: neither device has memory for more.
    assert!(told.iter().all(|(_, _, used)| (320..=370).contains(used)), "{told:?}");
    // A device comes that can hold the whole model.
    world.add(SimDevice { download: 5_000.0, ..SimDevice::with_budget(3_000).at_speed(8.0) }, 30_000.0);
    world.run(40_000.0, |_| false);
    assert!(is_up(&world));
    let told = seats(&world);
    assert_eq!(told[..2], vec![(MemberStatus::Spare, None, 0); 2], "nothing of it is held any more: {told:?}");
    assert_eq!(world.violation(), None);
}

/// A lone device is timed before it loads, so that whoever comes next does not wait for that.
#[test]
fn a_device_is_timed_before_it_loads_in_advance() {
    let slow = SimDevice { download: 5.0, ..SimDevice::with_budget(620) };
    let mut world = World::new(1, SimModel::dense(6), Sharing::Fastest, slow);
    world.run(10_000.0, |_| false);
    assert_eq!(seats(&world)[0].1.as_deref(), Some("Loads its part in advance."));
    world.add(SimDevice { download: 5_000.0, ..slow }, 10_000.0);
    world.run(30_000.0, |world| world.view(0).room.unwrap().plan.status != PlanStatus::Waiting);
    assert!(world.now() < 11_000.0, "the plan waited until {:.0} ms", world.now());
}

/// A room that has become too small keeps what it holds, and a device that comes back finds it so.
#[test]
fn a_room_that_became_too_small_keeps_what_it_holds() {
    let device = SimDevice { download: 50.0, ..SimDevice::with_budget(620) };
    let mut world = World::new(1, SimModel::dense(6), Sharing::Fastest, device);
    let other = world.add(device, 10.0);
    world.run(60_000.0, is_up);
    assert!(is_up(&world));
    let (at, held) = (world.now() + 3_000.0, seats(&world)[0].2);
    world.fault(Fault::Reload(other, 20_000.0), at);
    world.run(at + 10_000.0, |_| false);
    assert!(!is_up(&world), "one device is too small");
    assert!(seats(&world)[0].2 >= held, "{:?}", seats(&world));
    let back = at + 20_000.0;
    world.run(back + 60_000.0, |world| world.now() > back && is_up(world));
    // Its own part is in its storage: ten times as fast as downloading it.
    assert!(world.now() - back < 4_000.0, "up {:.0} ms after it came back", world.now() - back);
}
