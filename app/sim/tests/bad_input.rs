//! Peers that send wrong results: they are named, and the room goes on without them.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use potluck_plan::PeerId;
use potluck_protocol::{AnswerStop, MemberStatus, Sharing};
use potluck_sim::{Fault, SimDevice, SimModel, World, Wrong, undisturbed};
use potluck_swarm::Membership;

const TEXT: &str = "how do bees find home?";
const TOKENS: u32 = 60;

fn hash(seed: u64) -> u64 {
    let value = seed.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (value ^ (value >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9)
}

fn ended(world: &World, index: usize, request: u32) -> bool {
    world.answer(index, request).is_some_and(|answer| answer.end.is_some())
}

fn assert_undisturbed(world: &World, model: &SimModel, asker: usize, event_log: &str) {
    let prompt: Vec<u32> = TEXT.bytes().map(u32::from).collect();
    let answer = world.answer(asker, 1).unwrap();
    assert_eq!(answer.end, Some(AnswerStop::Length), "{event_log}: {answer:?}");
    assert_eq!(answer.tokens, undisturbed(model, &prompt, TOKENS as usize), "{event_log}");
}

#[test]
fn a_stage_that_sends_wrong_numbers_is_named_and_planned_around() {
    let mut named = 0;
    for seed in 0..200u64 {
        let hash = hash(seed);
        let share = if hash.is_multiple_of(2) { Sharing::Fastest } else { Sharing::Everyone };
        let mut world = World::new(seed, SimModel::dense(6), share, SimDevice::with_budget(620));
        world.add(SimDevice::with_budget(620), 5.0);
        world.add(SimDevice::with_budget(620), 9.0);
        let asker = world.add(SimDevice::default(), 10.0);
        world.prompt(asker, 1, TEXT, TOKENS, 5_000.0);
        let victim = 1 + (hash >> 4) as usize % 2;
        let wrong = if (hash >> 8).is_multiple_of(2) { Wrong::NotFinite } else { Wrong::Short };
        world.fault(Fault::Wrong(victim, wrong), 4_900.0 + (hash >> 16) as f64 % 900.0);
        let peer = PeerId([victim as u8 + 1; 16]);
        let has_work = |world: &World| {
            let plan = world.view(0).room.unwrap().plan.plan.clone();
            plan.is_some_and(|plan| plan.peers().contains(&peer))
        };
        world.run(4_899.0, |_| false);
        let had_work = has_work(&world);
        world.run(60_000.0, |world| ended(world, asker, 1));
        let event_log = format!("seed {seed}, {share:?}, device {victim} {wrong:?}");
        assert_undisturbed(&world, &SimModel::dense(6), asker, &event_log);
        if had_work {
            assert!(!has_work(&world), "{event_log}: the room goes on without it");
            let member = world.view(0).room.unwrap().members.iter().find(|member| member.peer == peer).unwrap();
            assert_eq!(member.status, MemberStatus::Failed, "{event_log}");
            let said = world.answer(asker, 1).unwrap().sentences.join(" ");
            let name = format!("Device {} sent numbers that cannot be right.", victim + 1);
            assert!(said.contains(&name), "{event_log}: {said:?}");
            named += 1;
        }
    }
    assert!(named > 100, "the device must often have work, only {named} times it had");
}

/// Row 11: before, another budget made a device new.
#[test]
fn a_device_with_wrong_numbers_gets_no_work_for_lending_a_byte_more() {
    let mut tried = 0;
    for seed in 0..40u64 {
        let mut world = World::new(seed, SimModel::dense(6), Sharing::Everyone, SimDevice::with_budget(620));
        world.add(SimDevice::with_budget(620), 5.0);
        world.add(SimDevice::with_budget(620), 9.0);
        let asker = world.add(SimDevice::default(), 10.0);
        world.prompt(asker, 1, TEXT, TOKENS, 5_000.0);
        world.fault(Fault::Wrong(1, Wrong::NotFinite), 4_900.0);
        world.run(60_000.0, |world| ended(world, asker, 1));
        let has_work = |world: &World| {
            let plan = world.view(0).room.unwrap().plan.plan.clone();
            plan.is_some_and(|plan| plan.peers().contains(&PeerId([2; 16])))
        };
        if has_work(&world) {
            continue;
        }
        tried += 1;
        world.fault(Fault::SetBudget(1, 621), world.now());
        world.run(world.now() + 15_000.0, has_work);
        assert!(!has_work(&world), "seed {seed}: it has work again after {:.0} ms", world.now());
    }
    assert!(tried > 20, "it must often lose its work, only {tried} times it did");
}

#[test]
fn experts_with_wrong_sums_are_named_and_planned_around() {
    let mut named = 0;
    let model = SimModel { blocks: 3, experts: 8, kv_bytes: 0, state_bytes: 0 };
    for seed in 0..60u64 {
        let hash = hash(seed);
        let mut world = World::new(seed, model.clone(), Sharing::Fastest, SimDevice::with_budget(530));
        let helpers = 3;
        for i in 0..helpers {
            world.add(SimDevice::with_budget(250), 10.0 * f64::from(i));
        }
        let asker = world.add(SimDevice::default(), 40.0);
        world.prompt(asker, 1, TEXT, TOKENS, 5_000.0);
        let victim = 1 + (hash >> 4) as usize % helpers as usize;
        let wrong = if (hash >> 8).is_multiple_of(2) { Wrong::NotFinite } else { Wrong::Short };
        world.fault(Fault::Wrong(victim, wrong), 4_900.0 + (hash >> 16) as f64 % 900.0);
        world.run(200_000.0, |world| ended(world, asker, 1));
        assert_undisturbed(&world, &model, asker, &format!("seed {seed}, device {victim} {wrong:?}"));
        let said = world.answer(asker, 1).unwrap().sentences.join(" ");
        named += usize::from(said.contains(&format!("Device {} sent numbers that cannot be right.", victim + 1)));
    }
    assert!(named > 30, "its sums must often be asked for, only {named} times they were");
}

/// Nobody can take over: the answer ends with a sentence that names the device, instead of restarting forever.
#[test]
fn wrong_numbers_of_the_only_device_end_the_answer_with_its_name() {
    for wrong in [Wrong::NotFinite, Wrong::Short] {
        let mut world = World::new(1, SimModel::dense(6), Sharing::Fastest, SimDevice::with_budget(2_000));
        world.prompt(0, 1, TEXT, TOKENS, 2_000.0);
        world.fault(Fault::Wrong(0, wrong), 2_100.0);
        world.run(20_000.0, |world| ended(world, 0, 1));
        let end = world.answer(0, 1).unwrap().end.clone();
        assert_eq!(end, Some(AnswerStop::Failed("Device 1 sent numbers that cannot be right.".into())));
    }
}

/// Both hold the room's owner key: the relay keeps the later connection.
#[test]
fn a_second_host_replaces_the_first_and_the_room_goes_on() {
    for seed in 0..100u64 {
        let mut world = World::new(seed, SimModel::dense(6), Sharing::Everyone, SimDevice::with_budget(620));
        // The second host may have a smaller id than the workers, or a larger one.
        let early = seed % 2 == 0;
        let mut second = 0;
        if early {
            second = world.add_host(SimDevice::with_budget(2_000), 5_200.0 + (hash(seed) % 500) as f64);
        }
        world.add(SimDevice::with_budget(620), 5.0);
        world.add(SimDevice::with_budget(620), 9.0);
        let asker = world.add(SimDevice::default(), 10.0);
        if !early {
            second = world.add_host(SimDevice::with_budget(2_000), 5_200.0 + (hash(seed) % 500) as f64);
        }
        world.prompt(asker, 1, TEXT, TOKENS, 15_000.0);
        world.run(60_000.0, |world| ended(world, asker, 1));
        let event_log = format!("seed {seed}");
        let told = world.closed(0).unwrap_or_default();
        assert_eq!(told, "This room is hosted elsewhere now. Open its link to take part.", "{event_log}");
        assert_eq!(world.view(0).membership, Membership::Outside, "{event_log}");
        assert!(world.closed(second).is_none() && world.view(second).coordinator, "{event_log}: the second goes on");
        assert_undisturbed(&world, &SimModel::dense(6), asker, &event_log);
    }
}
