//! Plans while devices come, go, change and fail: nobody waits longer than needed, and answers stay the undisturbed ones.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use potluck_plan::PeerId;
use potluck_protocol::{AnswerStop, MemberStatus, PlanStatus, Sharing};
use potluck_sim::{Fault, SimDevice, SimModel, World, undisturbed};

const TEXT: &str = "a question that is a little longer than one chunk of sixty-four positions, so that chunks overlap";
const TOKENS: u32 = 24;
/// With a long answer it takes two pages of KV cache, so that it has room on two plans at once.
const SHORT: &str = "how do bees find home?";
const LONG: u32 = 100;

fn hash(seed: u64) -> u64 {
    let value = seed.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (value ^ (value >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9)
}

fn answered(world: &World, index: usize, request: u32) -> bool {
    world.answer(index, request).is_some_and(|answer| answer.end.is_some())
}

fn assert_undisturbed(world: &World, index: usize, request: u32, text: &str, tokens: u32, event_log: &str) {
    let (model, prompt) = (&SimModel::dense(6), text.bytes().map(u32::from).collect::<Vec<_>>());
    let answer = world.answer(index, request).unwrap_or_else(|| panic!("{event_log}: no answer"));
    assert_eq!(answer.end, Some(AnswerStop::Length), "{event_log}: the answer must end by length: {answer:?}");
    assert_eq!(
        answer.tokens,
        undisturbed(model, &prompt, tokens as usize),
        "{event_log}: the answer must be undisturbed"
    );
}

fn stages(world: &World) -> usize {
    let plan = &world.view(0).room.unwrap().plan;
    if plan.status == PlanStatus::Up { plan.plan.as_ref().map_or(0, |plan| plan.stages.len()) } else { 0 }
}

/// A person moves the budget slider: a large budget at first, and a smaller one a moment later, while the first plan
/// loads.
#[test]
fn budgets_that_shrink_while_a_plan_is_prepared_come_up() {
    for seed in 0..300u64 {
        let hash = hash(seed);
        // The engines take a little more than the model's sizes say.
        let device = SimDevice { padding: hash >> 50 & 15, ..SimDevice::with_budget(460) };
        let mut world = World::new(seed, SimModel::dense(6), Sharing::Everyone, device);
        for index in 1..3 {
            let joins = 200.0 + (hash >> (8 * index)) as f64 % 400.0;
            let shrinks = joins + 20.0 + (hash >> (11 * index)) as f64 % 900.0;
            world.add(SimDevice { budget: Some(2_000), ..device }, joins);
            world.fault(Fault::SetBudget(index, 460), shrinks);
        }
        world.run(60_000.0, |_| false);
        let room = world.view(0).room.unwrap();
        let lent: Vec<_> = room.members.iter().map(|member| (member.lent, member.status)).collect();
        assert_eq!(stages(&world), 3, "seed {seed}: three stages must come up: {:?} {lent:?}", room.plan);
        world.prompt(1, 1, TEXT, TOKENS, 60_000.0);
        world.run(120_000.0, |world| answered(world, 1, 1));
        assert_undisturbed(&world, 1, 1, TEXT, TOKENS, &format!("seed {seed}"));
    }
}

/// A load that never ends must not block the room, also if a byte arrives now and then: its device is asked again, and starts
/// over.
#[test]
fn a_load_that_never_ends_is_given_up_and_begun_again() {
    let faults: [fn(usize) -> Fault; 2] = [Fault::StuckLoad, Fault::Trickle];
    for (seed, fault) in (0..100u64).flat_map(|seed| faults.map(|fault| (seed, fault))) {
        let device = SimDevice::with_budget(460);
        let mut world = World::new(seed, SimModel::dense(6), Sharing::Everyone, device);
        let joins = |index: u64| 300.0 + (hash(seed) >> (8 * index)) as f64 % 400.0;
        (1..3).for_each(|index| _ = world.add(device, joins(index)));
        let stuck = (seed % 3) as usize;
        // Behind the first plans, so that it is one of three stages that gets stuck.
        world.fault(fault(stuck), if stuck == 0 { 300.0 } else { 10.0 });
        world.run(200_000.0, |world| stages(world) == 3);
        assert_eq!(stages(&world), 3, "seed {seed}, {:?}: it must get ready the second time", fault(stuck));
        world.prompt(1, 1, TEXT, TOKENS, 210_000.0);
        world.run(260_000.0, |world| answered(world, 1, 1));
        assert_undisturbed(&world, 1, 1, TEXT, TOKENS, &format!("seed {seed}"));
    }
}

/// As long as bytes arrive, a load takes the time that it needs: here a device takes more than ten minutes.
#[test]
fn a_slow_line_is_waited_for() {
    let device = SimDevice::with_budget(460);
    let mut world = World::new(1, SimModel::dense(6), Sharing::Everyone, device);
    world.add(device, 300.0);
    world.add(SimDevice { download: 0.5, ..device }, 400.0);
    let prepared = |world: &World| world.view(0).room.unwrap().plan.plan.as_ref().map(|plan| plan.epoch);
    world.run(100_000.0, |_| false);
    let first = prepared(&world);
    world.run(1_200_000.0, |world| stages(world) == 3);
    assert!(world.now() > 600_000.0, "the load must be a long one");
    assert_eq!((stages(&world), prepared(&world)), (3, first), "the device must not be given up");
}

/// A device that would only cost time is kept as a spare, and shows what it would cost.
#[test]
fn a_spare_shows_why() {
    let mut world = World::new(1, SimModel::dense(6), Sharing::Fastest, SimDevice::with_budget(2_500));
    world.add(SimDevice::with_budget(460).at_speed(0.05), 5_000.0);
    world.run(30_000.0, |_| false);
    let room = world.view(0).room.unwrap();
    let spare = room.members.iter().find(|member| member.status == MemberStatus::Spare).unwrap();
    let why = spare.spare.as_deref().unwrap_or_default();
    assert!(
        why.starts_with("With this device, each token would take ") && why.ends_with(" ms longer."),
        "{why:?} must say what it costs"
    );
    assert!(room.plan.reason.contains("1 device is a spare"), "{}", room.plan.reason);
}

/// Milliseconds between tokens, of the answer's second token to its last.
fn gaps(world: &World, index: usize, request: u32) -> Vec<f64> {
    let times = &world.answer(index, request).unwrap().times;
    times.windows(2).map(|pair| pair[1] - pair[0]).collect()
}

fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted[sorted.len() / 2]
}

/// A device joins in the middle of a long answer and makes the room faster: the answer moves, and nobody notices.
#[test]
fn a_better_plan_is_swapped_in_during_an_answer_without_a_gap() {
    let mut swaps = 0;
    for seed in 0..150u64 {
        let hash = hash(seed);
        let share = if seed % 2 == 0 { Sharing::Fastest } else { Sharing::Everyone };
        let mut world = World::new(seed, SimModel::dense(6), share, SimDevice::with_budget(1_500).at_speed(0.05));
        let asker = world.add(SimDevice::default(), 10.0);
        world.prompt(asker, 1, SHORT, LONG, 1_000.0);
        world.add(SimDevice::with_budget(2_500), 3_000.0 + (hash % 1_000) as f64);
        world.run(60_000.0, |world| answered(world, asker, 1));
        let event_log = format!("seed {seed}, {share:?}");
        assert_undisturbed(&world, asker, 1, SHORT, LONG, &event_log);
        let answer = world.answer(asker, 1).unwrap();
        assert_eq!(answer.recoveries, 0, "{event_log}: nothing was lost");
        let gaps = gaps(&world, asker, 1);
        let usual = median(&gaps[..10]);
        let longest = gaps.iter().copied().fold(0.0, f64::max);
        assert!(longest <= 3.0 * usual, "{event_log}: the longest gap is {longest:.0} ms, usual are {usual:.0} ms");
        let epoch = world.view(0).room.unwrap().plan.plan.as_ref().unwrap().epoch.0;
        let end = median(&gaps[gaps.len() - 10..]);
        swaps += u32::from(epoch > 1 && (share == Sharing::Everyone || end < 0.8 * usual));
    }
    assert!(swaps >= 140, "the answers must move to the better plan while they are given; only {swaps} did");
}

/// Both plans share the pages. Those of an idle conversation are freed on every device before the moving KV cache
/// arrives. The room moves at once, and no page is missing.
#[test]
fn an_answer_moves_into_the_pages_of_a_conversation_that_has_ended() {
    for seed in 0..150u64 {
        let hash = hash(seed);
        let mut world =
            World::new(seed, SimModel::dense(6), Sharing::Everyone, SimDevice::with_budget(2_500).at_speed(0.05));
        let asker = world.add(SimDevice::default(), 10.0);
        // Two pages each: the room is full.
        world.prompt(asker, 1, TEXT, TOKENS, 1_000.0);
        world.prompt(asker, 2, SHORT, LONG, 8_000.0);
        let joins = 15_000.0 + (hash % 2_000) as f64;
        world.add(SimDevice::with_budget(2_500), joins);
        // Both devices time some blocks first.
        world.run(joins + 2_500.0, |_| false);
        let event_log = format!("seed {seed}, a device joined at {joins:.0} ms");
        assert!(answered(&world, asker, 1) && !answered(&world, asker, 2), "{event_log}");
        assert_eq!(stages(&world), 2, "{event_log}: the answer must have moved");
        world.run(60_000.0, |world| answered(world, asker, 2));
        assert_undisturbed(&world, asker, 1, TEXT, TOKENS, &event_log);
        assert_undisturbed(&world, asker, 2, SHORT, LONG, &event_log);
        assert_eq!(world.answer(asker, 2).unwrap().recoveries, 0, "{event_log}: nothing was lost");
    }
}

/// Three devices of which any two hold the model, and a guest that asks. Its answer begins at 10 s.
fn room_of_three(seed: u64) -> (World, usize) {
    let mut world = World::new(seed, SimModel::dense(6), Sharing::Everyone, SimDevice::with_budget(620));
    world.add(SimDevice::with_budget(620), 5.0);
    world.add(SimDevice::with_budget(620), 9.0);
    let asker = world.add(SimDevice::default(), 10.0);
    world.prompt(asker, 1, SHORT, LONG, 10_000.0);
    (world, asker)
}

/// One of two devices fails in the middle of the answer, which must be noticed within this many milliseconds.
fn noticed_within(millis: f64, fault: impl Fn(usize) -> Fault) {
    for seed in 0..200u64 {
        let hash = hash(seed);
        let (mut world, asker) = room_of_three(seed);
        let (victim, at) = (1 + hash as usize % 2, 10_200.0 + (hash >> 8) as f64 % 1_000.0);
        world.fault(fault(victim), at);
        world.run(at + millis, |_| false);
        let event_log = format!("seed {seed}, {:?} at {at:.0} ms", fault(victim));
        let lost = PeerId([victim as u8 + 1; 16]);
        let plan = world.view(0).room.unwrap().plan.plan.clone();
        assert!(plan.is_none_or(|plan| !plan.peers().contains(&lost)), "{event_log}: noticed after {millis} ms");
        world.run(60_000.0, |world| answered(world, asker, 1));
        assert_undisturbed(&world, asker, 1, SHORT, LONG, &event_log);
    }
}

#[test]
fn a_killed_worker_is_noticed_within_two_seconds() {
    noticed_within(2_000.0, Fault::Kill);
}

/// A frozen tab keeps its connection. Missed heartbeats reveal it.
#[test]
fn a_frozen_tab_is_noticed_within_five_seconds() {
    noticed_within(5_000.0, |victim| Fault::Freeze(victim, 60_000.0));
}

/// Faults that keep a device from being heard for a while without its tab being frozen for long: nobody may be given
/// up.
fn nobody_is_given_up(fault: impl Fn(u64) -> Fault) {
    for seed in 0..200u64 {
        let hash = hash(seed);
        let (mut world, asker) = room_of_three(seed);
        let fault = fault(hash);
        world.fault(fault, 10_200.0 + (hash >> 8) as f64 % 1_000.0);
        world.run(60_000.0, |world| answered(world, asker, 1));
        let event_log = format!("seed {seed}, {fault:?}");
        assert_undisturbed(&world, asker, 1, SHORT, LONG, &event_log);
        assert_eq!(world.answer(asker, 1).unwrap().recoveries, 0, "{event_log}: nobody was lost");
    }
}

#[test]
fn a_busy_device_that_is_silent_for_three_seconds_is_not_given_up() {
    nobody_is_given_up(|hash| Fault::Freeze(1 + hash as usize % 2, 500.0 + (hash >> 20) as f64 % 2_500.0));
}

/// While the host's own tab is frozen, nobody is heard.
#[test]
fn a_host_that_froze_takes_nobody_for_frozen() {
    nobody_is_given_up(|hash| Fault::Freeze(0, 1_000.0 + (hash >> 20) as f64 % 29_000.0));
}

/// The same if its link is cut, until the relay gives it up.
#[test]
fn a_host_with_a_cut_link_takes_nobody_for_frozen() {
    nobody_is_given_up(|hash| Fault::Cut(0, 1_000.0 + (hash >> 20) as f64 % 8_500.0));
}

/// A frozen tab is heard again, and gets work again.
#[test]
fn a_frozen_tab_that_goes_on_takes_part_again() {
    for seed in 0..100u64 {
        let hash = hash(seed);
        let (mut world, asker) = room_of_three(seed);
        let victim = 1 + hash as usize % 2;
        world.fault(Fault::Freeze(victim, 6_000.0 + (hash >> 20) as f64 % 20_000.0), 10_200.0);
        world.prompt(asker, 2, TEXT, TOKENS, 60_000.0);
        world.run(120_000.0, |world| answered(world, asker, 2));
        assert_eq!(stages(&world), 3, "seed {seed}: everyone takes part");
        assert_undisturbed(&world, asker, 1, SHORT, LONG, &format!("seed {seed}"));
        assert_undisturbed(&world, asker, 2, TEXT, TOKENS, &format!("seed {seed}"));
    }
}
