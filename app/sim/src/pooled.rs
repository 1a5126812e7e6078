//! Rooms with pooled experts whose holders are killed, frozen, cut off and reloaded, one every two seconds. A greedy and a
//! sampled answer must be those of one device.

use potluck_protocol::{AnswerStop, Hedging, Sharing};

use super::device::{LogNormal, SimDevice};
use super::engine::SimModel;
use super::fault::Fault;
use super::oracle::{undisturbed, undisturbed_sampled};
use super::random::Random;
use super::scenario::Run;
use super::world::World;

const TEXT: &str = "how do bees find home?";
const TOKENS: u32 = 30;
const HOLDERS: u64 = 7;
/// Of [`HOLDERS`]: the others can hold every expert once.
const FAULTS: u32 = 4;
/// A holder that is silent for this long is struck off, and gets other experts when it is back…
const LONG_FREEZE_MILLIS: f64 = 6_000.0;
/// … for whoever asks then.
const ASKED_AGAIN_MILLIS: f64 = 12_000.0;
/// An answer that has not ended by then hangs.
const LIMIT_MILLIS: f64 = 300_000.0;

/// One room drawn from a seed.
pub(crate) fn pooled_experts(seed: u64) -> Run {
    let hedging = match seed % 6 {
        0 | 2 => Hedging::Off,
        1 | 3 | 4 => Hedging::Copies(2),
        _ => Hedging::Adaptive,
    };
    let replicas = if seed % 6 < 2 { 1 } else { 2 };
    let model = SimModel { blocks: 3, experts: 8, kv_bytes: 0, state_bytes: 0 };
    // The host has room for everything but 19 experts, a holder for twelve and not for a block.
    let mut world = World::new(seed, model.clone(), Sharing::Fastest, SimDevice::with_budget(530));
    world.pool_experts(replicas, hedging);
    let hesitation = Some(LogNormal { median: 5.0, sigma: 0.5 });
    for holder in 0..HOLDERS {
        world.add(SimDevice { hesitation, ..SimDevice::with_budget(250) }, 10.0 * holder as f64);
    }
    let greedy = world.add(SimDevice::default(), 100.0);
    let sampled = world.add(SimDevice::default(), 120.0);
    world.prompt(greedy, 1, TEXT, TOKENS, 2_500.0);
    world.ask_sampled(sampled, 1, TEXT, TOKENS, seed, 2_600.0);
    let mut event_log = vec![format!("{replicas} replicas, {hedging:?}")];
    let mut asks_again = false;
    for (at, fault) in faults(seed) {
        event_log.push(format!("{at:7.0} ms {fault:?}"));
        world.fault(fault, at);
        asks_again |= matches!(fault, Fault::Freeze(_, LONG_FREEZE_MILLIS));
    }
    let prompt: Vec<u32> = TEXT.bytes().map(u32::from).collect();
    let count = TOKENS as usize;
    let greedily = undisturbed(&model, &prompt, count);
    let mut expected =
        vec![(greedy, 1, greedily.clone()), (sampled, 1, undisturbed_sampled(&model, &prompt, count, seed))];
    if asks_again {
        world.prompt(greedy, 2, TEXT, TOKENS, ASKED_AGAIN_MILLIS);
        expected.push((greedy, 2, greedily));
    }
    let ended = |world: &World, asker, request| world.answer(asker, request).is_some_and(|answer| answer.end.is_some());
    world.run(LIMIT_MILLIS, |world| expected.iter().all(|(asker, request, _)| ended(world, *asker, *request)));
    let wrong = expected.iter().find_map(|(asker, request, tokens)| judge(&world, *asker, *request, tokens));
    Run::new(seed, &world, event_log, world.violation().map(str::to_owned).or(wrong))
}

/// Everything but experts, and what a device needs besides.
const PINNED: u64 = 10 + 100 + 3 * 105;
/// Of which two are never killed.
const LOADERS: u64 = 5;
/// A room of them has formed by then.
const FORMED_MILLIS: f64 = 120_000.0;

/// One room drawn from a seed whose holders have slots for a part of their experts.
pub(crate) fn pooled_on_demand(seed: u64) -> Run {
    let model = SimModel { blocks: 3, experts: 8, kv_bytes: 0, state_bytes: 0 };
    let mut random = Random(seed ^ 0x9e37);
    // In half of the rooms the host has slots, too: for what nobody else computes.
    let own = if seed.is_multiple_of(2) { 0 } else { 45 + random.below(40) };
    let mut world = World::new(seed, model.clone(), Sharing::Experts, SimDevice::with_budget(PINNED + own));
    let hedging = if seed.is_multiple_of(3) { Hedging::Copies(2) } else { Hedging::Adaptive };
    let replicas = if seed % 5 < 2 { 1 } else { 2 };
    world.pool_experts(replicas, hedging);
    world.load_on_demand();
    let misleads = seed % 4 < 2;
    if misleads {
        world.mislead();
    }
    // A shadow that talks at random beside the host's stage.
    let foretells = seed % 3 == 1;
    if foretells {
        let prompt: Vec<u32> = TEXT.bytes().map(u32::from).collect();
        let answer = undisturbed(&model, &prompt, TOKENS as usize);
        world.foretell(seed ^ 0x51ad, [prompt, answer].concat());
    }
    let hesitation = Some(LogNormal { median: 5.0, sigma: 0.5 });
    for holder in 0..LOADERS {
        // Two or three slots for a fifth of 24 experts or more.
        let budget = 10 + 41 + random.below(24);
        world.add(SimDevice { hesitation, ..SimDevice::with_budget(budget) }, 10.0 * holder as f64);
    }
    let greedy = world.add(SimDevice::default(), 100.0);
    let sampled = world.add(SimDevice::default(), 120.0);
    let mut event_log = vec![format!("{replicas} replicas, {hedging:?}, {own} bytes for slots of the host")];
    // A host with slots answers alone at first; whoever joins gets its experts while nobody asks.
    let has_loaders = |world: &World| world.plan_up().is_some_and(|plan| plan.pools.len() as u64 == LOADERS);
    world.run(FORMED_MILLIS, has_loaders);
    let start = world.now();
    event_log.push(format!("{start:7.0} ms all of them load on demand: {}", has_loaders(&world)));
    let unformed = (!has_loaders(&world)).then(|| "the devices that joined have no slots".to_owned());
    world.prompt(greedy, 1, TEXT, TOKENS, start + 100.0);
    world.ask_sampled(sampled, 1, TEXT, TOKENS, seed, start + 200.0);
    for (at, fault) in faults_of(seed, LOADERS, LOADERS as u32 - 2) {
        let at = start + at - 2_500.0;
        event_log.push(format!("{at:7.0} ms {fault:?}"));
        world.fault(fault, at);
    }
    let prompt: Vec<u32> = TEXT.bytes().map(u32::from).collect();
    let count = TOKENS as usize;
    let expected =
        [(greedy, undisturbed(&model, &prompt, count)), (sampled, undisturbed_sampled(&model, &prompt, count, seed))];
    let ended = |world: &World, asker| world.answer(asker, 1).is_some_and(|answer| answer.end.is_some());
    world.run(start + LIMIT_MILLIS, |world| expected.iter().all(|(asker, _)| ended(world, *asker)));
    let missed: u64 = (0..=LOADERS as usize).map(|index| world.missed(index)).sum();
    event_log.push(format!("{missed} experts were loaded while somebody waited"));
    let guessed: u64 = (0..=LOADERS as usize).map(|index| world.guessed(index)).sum();
    event_log.push(format!("{guessed} were loaded on a guess"));
    let unused = (missed == 0).then(|| "no expert was loaded on demand".to_owned());
    let unused = unused.or(((misleads || foretells) && guessed == 0).then(|| "no hint was followed".to_owned()));
    let wrong = expected.iter().find_map(|(asker, tokens)| judge(&world, *asker, 1, tokens));
    Run::new(seed, &world, event_log, world.violation().map(str::to_owned).or(wrong).or(unformed).or(unused))
}

fn faults(seed: u64) -> Vec<(f64, Fault)> {
    faults_of(seed, HOLDERS, FAULTS)
}

fn faults_of(seed: u64, holders: u64, count: u32) -> Vec<(f64, Fault)> {
    let mut random = Random(seed);
    // Others each time: the number of holders is prime.
    let (first, step) = (random.below(holders), 1 + random.below(holders - 1));
    let fault = |number: u32| {
        let victim = 1 + ((first + u64::from(number) * step) % holders) as usize;
        let at = 3_000.0 + 2_000.0 * f64::from(number) + 500.0 * random.unit();
        let fault = match random.below(8) {
            // Early, so that not many rooms last for longer.
            0 if number == 0 => Fault::Freeze(victim, LONG_FREEZE_MILLIS),
            0 => Fault::Freeze(victim, 1_500.0),
            1 => Fault::Cut(victim, 1_200.0),
            2 => Fault::Reload(victim, 700.0),
            3 => Fault::DeviceLost(victim),
            _ => Fault::Kill(victim),
        };
        (at, fault)
    };
    (0..count).map(fault).collect()
}

fn judge(world: &World, asker: usize, request: u32, expected: &[u32]) -> Option<String> {
    let Some(answer) = world.answer(asker, request) else { return Some(format!("device {asker} has no answer")) };
    match &answer.end {
        Some(AnswerStop::Length) if answer.tokens == expected => None,
        Some(AnswerStop::Length) => Some(format!("{:?} instead of {expected:?}", answer.tokens)),
        other => Some(format!("the answer of device {asker} ended with {other:?}: {:?}", answer.sentences)),
    }
}
