//! Standby plans: others already hold what a lost device held, so the answer goes on at once.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use potluck_protocol::{AnswerStop, MemberStatus, Sharing};
use potluck_sim::{Fault, Link, SimDevice, SimModel, World, undisturbed};

const TEXT: &str = "a question that is a little longer than one chunk of sixty-four positions, so that chunks overlap";
const TOKENS: u32 = 100;

fn hash(seed: u64) -> u64 {
    let value = seed.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (value ^ (value >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9)
}

/// Any two of these hold the model. Downloading one block takes 1.6 s. The link is so steady that no other plan seems
/// better for a while.
fn device() -> SimDevice {
    let link = Link { latency: 5.0, jitter: 0.5, ..Link::default() };
    SimDevice { download: 100.0, ..SimDevice::with_budget(620) }.behind(link)
}

fn answered(world: &World, index: usize, request: u32) -> bool {
    world.answer(index, request).is_some_and(|answer| answer.end.is_some())
}

fn assert_undisturbed(world: &World, index: usize, request: u32, event_log: &str) {
    let prompt: Vec<u32> = TEXT.bytes().map(u32::from).collect();
    let answer = world.answer(index, request).unwrap_or_else(|| panic!("{event_log}: no answer"));
    assert_eq!(answer.end, Some(AnswerStop::Length), "{event_log}: the answer must end by length: {answer:?}");
    assert_eq!(
        answer.tokens,
        undisturbed(&SimModel::dense(6), &prompt, TOKENS as usize),
        "{event_log}: it must be undisturbed"
    );
}

/// Devices with work besides the host, by their index.
fn working(world: &World) -> Vec<usize> {
    let plan = world.view(0).room.unwrap().plan.plan.clone().unwrap();
    plan.peers().into_iter().map(|peer| usize::from(peer.0[0]) - 1).filter(|index| *index > 0).collect()
}

fn standing_by(world: &World) -> Vec<String> {
    world.view(0).room.unwrap().members.iter().filter_map(|member| member.standby.clone()).collect()
}

fn any_may_leave(world: &World) -> bool {
    world
        .view(0)
        .room
        .is_some_and(|room| room.plan.reason.contains("If any other device leaves, the rest already hold its part"))
}

/// A room of five devices with standby plans, and a guest that asks a while later.
fn covered_room(seed: u64) -> (World, usize, f64) {
    let hash = hash(seed);
    let share = if seed.is_multiple_of(2) { Sharing::Fastest } else { Sharing::Everyone };
    let link = Link { latency: [2.0, 10.0, 20.0][hash as usize % 3], jitter: 0.5, ..Link::default() };
    let mut world = World::new(seed, SimModel::dense(6), share, device().behind(link));
    for index in 1..5 {
        world.add(device().behind(link), 10.0 * f64::from(index));
    }
    let asker = world.add(SimDevice::default(), 100.0);
    world.run(120_000.0, any_may_leave);
    assert!(any_may_leave(&world), "seed {seed}: {}", world.view(0).room.unwrap().plan.reason);
    let at = world.now() + 1_000.0;
    world.prompt(asker, 1, TEXT, TOKENS, at);
    (world, asker, at)
}

/// When the first token came after a time, not counting what was already in flight to the asker.
fn resumed(world: &World, index: usize, request: u32, after: f64) -> f64 {
    let times = &world.answer(index, request).unwrap().times;
    *times.iter().find(|time| **time > after + 50.0).unwrap()
}

/// A device with work is lost in the middle of an answer. Others hold its part already: the next token comes within a
/// second of the moment the loss is known, and the text is the undisturbed one.
#[test]
fn with_a_standby_the_next_token_comes_within_a_second() {
    let mut longest: f64 = 0.0;
    for seed in 0..300u64 {
        let hash = hash(seed);
        let (mut world, asker, asked) = covered_room(seed);
        let working = working(&world);
        let victim = working[(hash >> 8) as usize % working.len()];
        let at = asked + 500.0 + (hash >> 16) as f64 % 1_000.0;
        let (fault, known_after) = match seed % 3 {
            0 => (Fault::Kill(victim), 500.0),
            1 => (Fault::Freeze(victim, 60_000.0), 5_000.0),
            _ => (Fault::DeviceLost(victim), 0.0),
        };
        world.fault(fault, at);
        let event_log = format!("seed {seed}, {fault:?} at {at:.0} ms");
        world.run(at, |_| false);
        assert!(!answered(&world, asker, 1), "{event_log}: it must strike in the middle of the answer");
        let known = if known_after > 0.0 {
            world.run(at + known_after, |world| !self::working(world).contains(&victim));
            assert!(!self::working(&world).contains(&victim), "{event_log}: known after {known_after} ms");
            world.now()
        } else {
            // It says so itself.
            at
        };
        world.run(at + 60_000.0, |world| answered(world, asker, 1));
        assert_undisturbed(&world, asker, 1, &event_log);
        let waited = resumed(&world, asker, 1, known) - known;
        assert!(waited < 1_000.0, "{event_log}: the next token came {waited:.0} ms after the loss was known");
        longest = longest.max(waited);
    }
    println!("the longest wait for the next token, from the moment the loss was known: {longest:.0} ms");
}

/// A device with work is killed around the moment of a question. The relay sees its connection end, so nobody waits
/// for it: the first token takes little longer than usual.
#[test]
fn the_first_token_of_a_question_beside_a_kill_comes_within_a_second() {
    let mut waits: Vec<f64> = Vec::new();
    for seed in 0..200u64 {
        let hash = hash(seed);
        let (mut world, asker, asked) = covered_room(seed);
        let working = working(&world);
        let victim = working[(hash >> 8) as usize % working.len()];
        // Up to 300 ms before the question, or after it, during prefill.
        let at = asked - 300.0 + (hash >> 16) as f64 % 600.0;
        world.fault(Fault::Kill(victim), at);
        world.run(asked + 60_000.0, |world| answered(world, asker, 1));
        let event_log = format!("seed {seed}, device {victim} killed {:.0} ms after the question", at - asked);
        assert_undisturbed(&world, asker, 1, &event_log);
        let waited = world.answer(asker, 1).unwrap().times[0] - asked;
        assert!(waited < 1_000.0, "{event_log}: the first token came after {waited:.0} ms");
        waits.push(waited);
    }
    println!("first tokens after at most {:.0} ms", waits.iter().copied().fold(0.0, f64::max));
}

/// While nobody waits for an answer, a device with a broken connection keeps its part for the grace period.
#[test]
fn a_line_that_breaks_while_nobody_waits_changes_no_plan() {
    for seed in 0..50u64 {
        let hash = hash(seed);
        let (mut world, asker, asked) = covered_room(seed);
        world.run(asked + 60_000.0, |world| answered(world, asker, 1));
        let working = working(&world);
        let epoch = |world: &World| world.view(0).room.unwrap().plan.plan.as_ref().map(|plan| plan.epoch);
        let before = epoch(&world);
        let (victim, at) = (working[(hash >> 8) as usize % working.len()], world.now() + 1_000.0);
        let back = 200.0 + (hash >> 16) as f64 % 1_000.0;
        world.fault(Fault::Outage(victim, back), at);
        world.run(at + 8_000.0, |_| false);
        assert_eq!(epoch(&world), before, "seed {seed}: device {victim} was away for a second");
    }
}

/// Plans and orders are numbered together: nothing new is ordered while nothing changes.
#[test]
fn orders_stay_when_the_room_is_looked_at_again() {
    for seed in 0..50u64 {
        let (mut world, _, _) = covered_room(seed);
        world.run(world.now() + 30_000.0, |_| false);
        let (epoch, said) = (world.view(0).epoch, standing_by(&world));
        world.run(world.now() + 120_000.0, |_| false);
        assert_eq!(world.view(0).epoch, epoch, "seed {seed}: nothing new may be ordered");
        assert_eq!(standing_by(&world), said, "seed {seed}");
    }
}

/// A device that holds a copy keeps it when somebody joins who would do as well.
#[test]
fn a_warm_spare_stays_warm_when_somebody_joins() {
    let mut world = World::new(1, SimModel::dense(6), Sharing::Fastest, device());
    world.add(device(), 10.0);
    world.add(device().at_speed(0.5), 20.0);
    world.run(60_000.0, any_may_leave);
    let spares = |world: &World| -> Vec<String> {
        let members = &world.view(0).room.unwrap().members;
        let spare = members.iter().filter(|member| member.status == MemberStatus::Spare);
        spare.filter_map(|member| Some(format!("{}: {}", member.name, member.standby.as_ref()?))).collect()
    };
    assert_eq!(spares(&world), ["Device 3: Warm standby for Device 2's part."]);
    // As fast as the spare: it brings no better plan.
    world.add(device().at_speed(0.5), world.now() + 1_000.0);
    world.run(world.now() + 60_000.0, |_| false);
    assert_eq!(spares(&world), ["Device 3: Warm standby for Device 2's part."]);
}

/// Loading a standby copy takes minutes on a slow link. A better plan does not wait for it.
#[test]
fn a_plan_does_not_wait_for_what_is_loaded_in_advance() {
    for seed in 0..50u64 {
        let slow = SimDevice { download: 5.0, ..device().at_speed(0.5) };
        let mut world = World::new(seed, SimModel::dense(6), Sharing::Fastest, device());
        world.add(device(), 10.0);
        let spare = world.add(slow, 20.0);
        world.run(30_000.0, |world| !standing_by(world).is_empty());
        world.run(world.now() + (hash(seed) % 5_000) as f64, |_| false);
        assert_eq!(standing_by(&world), ["It is loading a standby copy of Device 2's part."], "seed {seed}");
        // Its link is as good as theirs, so that it is better whatever the jitter of its first heartbeats.
        let quick = SimDevice { download: 5_000.0, link: device().link, ..SimDevice::with_budget(2_000).at_speed(4.0) };
        let joins = world.now();
        let newcomer = world.add(quick, joins);
        world.run(joins + 5_000.0, |world| working(world) == [newcomer]);
        assert_eq!(working(&world), [newcomer], "seed {seed}: its plan is up 5 s after it joined");
        assert!(!working(&world).contains(&spare));
    }
}

/// Without memory for a standby plan the room says what would help, and a loss is survived as before.
#[test]
fn a_room_without_memory_for_it_says_so() {
    let mut world = World::new(1, SimModel::dense(6), Sharing::Fastest, SimDevice::with_budget(620));
    world.add(SimDevice::with_budget(620), 10.0);
    world.run(20_000.0, |_| false);
    let reason = world.view(0).room.unwrap().plan.reason.clone();
    assert!(reason.contains("If Device 2 leaves, other devices have to load its part first. "), "{reason}");
    assert!(standing_by(&world).is_empty());
}

/// An engine that needs more than the sizes say cannot hold the copy. The active plan does not suffer from it.
#[test]
fn a_copy_that_does_not_fit_after_all_leaves_the_plan_alone() {
    for seed in 0..50u64 {
        let tight = SimDevice { padding: 1 + hash(seed) % 300, ..SimDevice::with_budget(1_070) };
        let mut world = World::new(seed, SimModel::dense(6), Sharing::Everyone, tight);
        world.add(tight, 10.0);
        let asker = world.add(SimDevice::default(), 20.0);
        world.run(20_000.0, |_| false);
        let (before, epoch) = (working(&world), world.view(0).room.unwrap().plan.plan.clone().unwrap().epoch);
        world.prompt(asker, 1, TEXT, TOKENS, 20_000.0);
        world.run(120_000.0, |world| answered(world, asker, 1));
        let event_log = format!("seed {seed}, {} bytes of padding", tight.padding);
        assert_undisturbed(&world, asker, 1, &event_log);
        assert_eq!(world.answer(asker, 1).unwrap().recoveries, 0, "{event_log}");
        assert_eq!(working(&world), before, "{event_log}");
        assert_eq!(world.view(0).room.unwrap().plan.plan.clone().unwrap().epoch, epoch, "{event_log}: no other plan");
    }
}
