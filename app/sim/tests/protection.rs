//! A host that protects its model: who gets which bytes of its file, whatever happens in the room.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::collections::BTreeSet;

use potluck_plan::{PeerId, WeightUnit};
use potluck_protocol::{Hedging, Sharing};
use potluck_sim::{Fault, SimDevice, SimModel, World, undisturbed};

const TEXT: &str = "how do bees find home?";
const HOLDERS: usize = 5;

/// A block takes 100 + 5 + 8 × 20 bytes.
fn model() -> SimModel {
    SimModel { blocks: 3, experts: 8, kv_bytes: 0, state_bytes: 0 }
}

/// A host that holds everything but 19 experts, devices that could hold everything, one that lends nothing, and one that is
/// not let in.
fn protected(seed: u64, sharing: Sharing) -> (World, usize, usize) {
    let mut world = World::new(seed, model(), sharing, SimDevice::with_budget(530));
    world.pool_experts(2, Hedging::Adaptive);
    world.protect();
    (0..HOLDERS).for_each(|number| _ = world.add(SimDevice::with_budget(2_000).at_speed(4.0), 10.0 * number as f64));
    let guest = world.add(SimDevice::default(), 100.0);
    let stranger = world.add(SimDevice { invited: false, ..SimDevice::with_budget(2_000) }, 120.0);
    (world, guest, stranger)
}

/// Units that the plan has a device hold.
fn named(world: &World, index: usize) -> BTreeSet<WeightUnit> {
    world.plan_up().unwrap().units_for(PeerId([index as u8 + 1; 16]), &model().shape()).into_iter().collect()
}

fn ended(world: &World, asker: usize) -> bool {
    world.answer(asker, 1).is_some_and(|answer| answer.end.is_some())
}

#[test]
fn who_holds_experts_may_read_those_and_who_holds_nothing_may_read_nothing() {
    for sharing in [Sharing::Fastest, Sharing::Everyone, Sharing::Experts] {
        let (mut world, guest, stranger) = protected(1, sharing);
        world.run(30_000.0, |world| world.plan_up().is_some_and(|plan| plan.peers().len() > 2));
        let holders = world.plan_up().unwrap().peers();
        assert!(holders.len() > 2, "{sharing:?}");
        for index in 1..=HOLDERS {
            let may: BTreeSet<WeightUnit> = world.may_read_units(index).into_iter().collect();
            let is_holder = holders.contains(&PeerId([index as u8 + 1; 16]));
            assert!(may.is_superset(&named(&world, index)), "{sharing:?}, device {index} loads what it holds");
            assert!(may.iter().all(|unit| matches!(unit, WeightUnit::Expert(..))), "{sharing:?}, {index}: {may:?}");
            assert!(may.len() < 24 || !is_holder, "{sharing:?}, device {index} does not get all experts");
            assert_eq!(world.may_read_header(index), !may.is_empty(), "{sharing:?}, device {index}");
        }
        for nobody in [guest, stranger] {
            assert_eq!(world.may_read_units(nobody), [], "{sharing:?}");
            assert!(!world.may_read_header(nobody) && !world.may_read_hashes(nobody), "{sharing:?}");
        }
    }
}

#[test]
fn a_host_that_protects_nothing_sends_members_whatever_they_ask_for() {
    let mut world = World::new(1, model(), Sharing::Fastest, SimDevice::with_budget(2_000));
    let guest = world.add(SimDevice::default(), 0.0);
    world.run(10_000.0, |world| world.plan_up().is_some());
    assert_eq!(world.may_read_units(guest).len(), 2 + 3 * 2 + 3 * 8, "ends, mixers and routers, experts");
}

/// Holders leave, come back and are replaced, in the middle of an answer; a violation of the simulator is a device that is told
/// to load or to time what the host keeps.
#[test]
fn nobody_is_sent_what_the_host_keeps_whoever_leaves() {
    let expected = undisturbed(&model(), &TEXT.bytes().map(u32::from).collect::<Vec<_>>(), 60);
    for seed in 0..100 {
        let (mut world, guest, stranger) = protected(seed, [Sharing::Fastest, Sharing::Experts][seed as usize % 2]);
        world.run(30_000.0, |world| world.plan_up().is_some_and(|plan| plan.peers().len() > 2));
        let begin = world.now();
        world.prompt(guest, 1, TEXT, 60, begin + 100.0);
        let victim = |number: u64| 1 + ((seed + number) % HOLDERS as u64) as usize;
        world.fault(Fault::Kill(victim(0)), begin + 400.0);
        world.fault(Fault::Reload(victim(1), 700.0), begin + 900.0);
        world.fault(Fault::Cut(victim(2), 1_200.0), begin + 1_500.0);
        let mut until = begin;
        while !ended(&world, guest) && until < begin + 120_000.0 {
            until += 250.0;
            world.run(until, |_| false);
            for index in 1..=stranger {
                let may = world.may_read_units(index);
                let kept: Vec<_> = may.iter().filter(|unit| !matches!(unit, WeightUnit::Expert(..))).collect();
                assert!(kept.is_empty(), "seed {seed}: device {index} may read {kept:?}");
                assert!(may.is_empty() || index <= HOLDERS, "seed {seed}: device {index} holds nothing");
            }
        }
        let answer = world.answer(guest, 1).unwrap();
        assert_eq!(answer.tokens, expected, "seed {seed}: {:?}, {:?}", answer.end, answer.sentences);
        assert_eq!(world.violation(), None, "seed {seed}");
    }
}
