//! How long a block's experts take, held against the integrals of the paper.

use potluck_protocol::{ExpertPhase, Hedging, Sharing};
use potluck_sim::{Link, LogNormal, SimDevice, World};

use super::{TEXT, ended, expected, helper, model};

/// The distribution function of the standard normal distribution (Abramowitz and Stegun, 7.1.26).
fn normal(x: f64) -> f64 {
    let t = 1.0 / (1.0 + 0.327_591_1 * x.abs() / std::f64::consts::SQRT_2);
    let terms = [1.061_405_429, -1.453_152_027, 1.421_413_741, -0.284_496_736, 0.254_829_592];
    let erf = 1.0 - terms.iter().fold(0.0, |sum, term| (sum + term) * t) * (-x * x / 2.0).exp();
    if x < 0.0 { (1.0 - erf) / 2.0 } else { (1.0 + erf) / 2.0 }
}

/// Mean milliseconds until the slowest of `asked` devices has answered, if each call goes to `copies` and the quickest counts
/// (moex.txt, equations 14 to 18).
fn slowest(delay: LogNormal, asked: u16, copies: u8) -> f64 {
    const STEP: f64 = 0.02;
    let is_late = |millis: f64| 1.0 - normal((millis / delay.median).ln() / delay.sigma);
    let some_is_late = |millis: f64| 1.0 - (1.0 - is_late(millis).powi(copies.into())).powi(asked.into());
    (0..20_000).map(|step| STEP * some_is_late(STEP * (f64::from(step) + 0.5))).sum()
}

/// Holders answer late by a log-normal delay, and nothing else takes time.
#[test]
fn the_time_of_a_blocks_experts_is_the_integral_over_the_holders_that_are_asked() {
    let delay = LogNormal { median: 20.0, sigma: 0.5 };
    let quick = |device: SimDevice| SimDevice { submit_millis: 0.01, link: Link::default(), ..device.at_speed(100.0) };
    // The planner decides whether the two experts of a token lie on one device or on two.
    let measured = |copies: u8, seed: u64| {
        let mut world = World::new(seed, model(), Sharing::Fastest, quick(SimDevice::with_budget(530)));
        world.pool_experts(copies, Hedging::Copies(copies));
        (0..7).for_each(|_| _ = world.add(SimDevice { hesitation: Some(delay), ..quick(helper()) }, 0.0));
        world.run(30_000.0, |world| world.fewest_holders() >= copies.into());
        let begin = world.now() + 100.0;
        world.prompt(0, 1, TEXT, 200, begin);
        let seen = std::cell::RefCell::new(Vec::new());
        let passes = |phases: &[ExpertPhase]| phases.iter().map(|phase| phase.passes).sum::<u32>();
        // Another plan, with the experts of a block together, begins from nothing.
        world.run(begin + 200_000.0, |world| {
            let phases = world.view(0).room.and_then(|room| room.plan.experts.as_ref()).map(|experts| &experts.phases);
            if let Some(phases) = phases.filter(|phases| passes(phases) > passes(&seen.borrow())) {
                seen.borrow_mut().clone_from(phases);
            }
            ended(world, 0, 1)
        });
        assert_eq!(world.answer(0, 1).unwrap().tokens, expected(200));
        let of = |phase: &ExpertPhase| (phase.asked, f64::from(phase.passes), phase.millis);
        seen.borrow().iter().map(of).collect::<Vec<_>>()
    };
    for copies in 1..=4 {
        let phases: Vec<_> = (0..8).flat_map(|seed| measured(copies, seed)).collect();
        let passes: f64 = phases.iter().map(|(_, passes, _)| passes).sum();
        let mean = phases.iter().map(|(_, passes, millis)| passes * millis).sum::<f64>() / passes;
        let of = |asked: u16| slowest(delay, asked, copies);
        let integral = phases.iter().map(|(asked, passes, _)| passes * of(*asked)).sum::<f64>() / passes;
        assert!(passes > 1_000.0, "only {passes} passes were measured");
        println!("{copies} at once: {mean:.1} ms in {passes} passes, integral {integral:.1} ms");
        assert!((mean / integral - 1.0).abs() < 0.05, "{copies} at once: {mean:.1} ms, integral {integral:.1} ms");
    }
}

/// Mean milliseconds until each expert has the first answer of those that a pattern names, such as `ab ac`: the integral over all ways in
/// which calls can have been answered.
fn awaited(delay: LogNormal, asked: &str) -> f64 {
    const STEP: f64 = 0.2;
    let experts: Vec<u32> =
        asked.split(' ').map(|expert| expert.bytes().map(|call| 1 << (call - b'a')).sum::<u32>()).collect();
    let calls = asked.bytes().filter(|letter| *letter != b' ').collect::<std::collections::BTreeSet<u8>>().len() as u32;
    let mut ways = vec![0.0; calls as usize + 1];
    for answered in (0u32..1 << calls).filter(|answered| experts.iter().all(|expert| expert & answered > 0)) {
        ways[answered.count_ones() as usize] += 1.0;
    }
    let waits = |at: f64| {
        let late = 1.0 - normal((at / delay.median).ln() / delay.sigma);
        let way =
            |(done, ways): (usize, &f64)| ways * (1.0 - late).powi(done as i32) * late.powi(calls as i32 - done as i32);
        1.0 - ways.iter().enumerate().map(way).sum::<f64>()
    };
    (0..1_500).map(|step| STEP * waits(STEP * (f64::from(step) + 0.5))).sum()
}

/// The same by the calls that blocks wait for, which the recording tells: wherever copies lie, and however many devices are asked.
#[test]
fn the_time_of_a_blocks_experts_is_the_integral_over_the_calls_that_it_waits_for() {
    let delay = LogNormal { median: 20.0, sigma: 0.5 };
    let quick = |device: SimDevice| SimDevice { submit_millis: 0.01, link: Link::default(), ..device.at_speed(100.0) };
    for copies in 1..=4 {
        let (mut passes, mut took, mut integral) = (0.0, 0.0, 0.0);
        let mut patterns = std::collections::BTreeMap::new();
        for seed in 0..6 {
            let mut world = World::new(seed, model(), Sharing::Experts, quick(SimDevice::with_budget(530)));
            world.pool_experts(copies, Hedging::Copies(copies));
            (0..8).for_each(|_| _ = world.add(SimDevice { hesitation: Some(delay), ..quick(helper()) }, 0.0));
            world.run(30_000.0, |world| world.fewest_holders() >= copies.into());
            let begin = world.now() + 100.0;
            world.prompt(0, 1, TEXT, 150, begin);
            world.run(begin + 200_000.0, |world| ended(world, 0, 1));
            for line in world.trace(0) {
                let Some((_, rest)) =
                    line.what.strip_prefix("experts of block ").and_then(|rest| rest.split_once(" in "))
                else {
                    continue;
                };
                let (millis, rest) = rest.split_once(" ms, ").unwrap();
                let (_, asked) = rest.split_once(", asked ").unwrap();
                if !asked.is_empty() {
                    passes += 1.0;
                    took += millis.parse::<f64>().unwrap();
                    integral += *patterns.entry(asked.to_owned()).or_insert_with(|| awaited(delay, asked));
                }
            }
        }
        let off = took / integral - 1.0;
        let names = patterns.keys().map(String::as_str).collect::<Vec<_>>().join(", ");
        println!(
            "{copies} at once: {:.1} ms in {passes} passes, integral {:.1} ms: {names}",
            took / passes,
            integral / passes
        );
        assert!(passes > 1_000.0, "only {passes} passes were recorded");
        assert!(off.abs() < 0.05, "{copies} at once: off by {off:.3}");
    }
}
