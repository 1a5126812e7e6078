//! Calls that reach a holder after it has dropped its experts, before their stage knows: somebody else is asked at once.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use potluck_plan::PeerId;
use potluck_protocol::{Hedging, Sharing};
use potluck_sim::{Fault, Link, SimDevice, SimModel, World, undisturbed};

const TEXT: &str = "how do bees find home?";
const TOKENS: u32 = 40;
/// Milliseconds from the host to the relay, one way. All others are near it.
const FAR: f64 = 150.0;
const NEAR: f64 = 2.0;

/// A block takes 100 + 5 + 8 × 20 bytes.
fn model() -> SimModel {
    SimModel { blocks: 3, experts: 8, kv_bytes: 0, state_bytes: 0 }
}

fn link(latency: f64) -> Link {
    Link { latency, ..Link::default() }
}

fn has_copies(world: &World) -> bool {
    world.plan_up().is_some_and(|plan| plan.pooled().all(|(.., holders)| holders.len() >= 2))
}

/// The longest gap between two tokens and the usual one, if a holder drops its experts so many milliseconds after the question.
/// The host is far away, so the stage learns late that they are gone.
fn gaps(seed: u64, fault: fn(usize) -> Fault, after: f64) -> (f64, f64) {
    let mut world = World::new(seed, model(), Sharing::Fastest, SimDevice::default().behind(link(FAR)));
    world.pool_experts(2, Hedging::Off);
    world.add(SimDevice::with_budget(530).behind(link(NEAR)), 0.0);
    (0..5).for_each(|_| _ = world.add(SimDevice::with_budget(250).behind(link(NEAR)), 0.0));
    world.run(60_000.0, has_copies);
    let holders: Vec<PeerId> = {
        let plan = world.plan_up().unwrap();
        plan.peers().into_iter().filter(|peer| !plan.has_stage(*peer)).collect()
    };
    assert!(!holders.is_empty() && !holders.contains(&PeerId([2; 16])), "the stage is the second device: {holders:?}");
    let victim = usize::from(holders[seed as usize % holders.len()].0[0]) - 1;
    let begin = world.now() + 100.0;
    world.prompt(0, 1, TEXT, TOKENS, begin);
    world.fault(fault(victim), begin + after);
    world.run(begin + 120_000.0, |world| world.answer(0, 1).is_some_and(|answer| answer.end.is_some()));
    let answer = world.answer(0, 1).unwrap();
    let expected = undisturbed(&model(), &TEXT.bytes().map(u32::from).collect::<Vec<_>>(), TOKENS as usize);
    assert_eq!((&answer.tokens, answer.recoveries), (&expected, 0), "seed {seed}: {:?}", answer.sentences);
    let mut gaps: Vec<f64> = answer.times.windows(2).map(|pair| pair[1] - pair[0]).collect();
    gaps.sort_by(f64::total_cmp);
    (gaps[gaps.len() - 1], gaps[gaps.len() / 2])
}

#[test]
fn a_holder_that_drops_its_experts_costs_no_more_than_a_round_trip() {
    type Drop = (&'static str, fn(usize) -> Fault);
    let drops: [Drop; 2] = [("stops lending", Fault::StopContributing), ("loses its GPU", Fault::DeviceLost)];
    for (what, fault) in drops {
        let mut worst = 0.0_f64;
        for seed in 0..60 {
            // At any moment of a token, which takes more than 300 ms.
            let (longest, usual) = gaps(seed, fault, 1_500.0 + 7.0 * seed as f64);
            worst = worst.max(longest - usual);
            // For each of three blocks at most: there and back over the relay, and the other holder's work once more.
            let most = 3.0 * (4.0 * NEAR + 3.0);
            assert!(longest - usual <= most, "a device {what}, seed {seed}: {longest:.1} ms, usually {usual:.1} ms");
        }
        println!("a device that {what} costs {worst:.1} ms at most");
    }
}
