//! Rooms with pooled experts, each with its own number of holders, copies, links and speeds: what a token is predicted to take
//! beside what it takes.

use std::collections::BTreeSet;

use potluck_protocol::{Hedging, PlanStatus, Sharing};

use super::device::{LogNormal, SimDevice};
use super::engine::SimModel;
use super::network::Link;
use super::scenario::Run;
use super::world::World;

const TEXT: &str = "how do bees find home?";
const TOKENS: u32 = 100;
/// The first answers teach, the others are predicted before they begin.
const TEACHING: u32 = 2;
const ANSWERS: u32 = 5;
/// Where answers vary, a later one may teach that another plan is better, but not again and again.
const CHANGES: usize = 1;
/// Tokens of an answer that do not count.
const FIRST: usize = 5;
/// A prediction may be off by this share: what is shown, and what the planner says alone, by which it compares plans.
const TOLERANCE: f64 = 0.12;

/// A room whose host keeps all token mixers.
struct Pool {
    about: &'static str,
    sharing: Sharing,
    host: SimDevice,
    holders: Vec<SimDevice>,
    replicas: u8,
    hedging: Hedging,
    experts: u16,
}

/// Twelve experts, and no block.
fn holder() -> SimDevice {
    SimDevice::with_budget(250)
}

/// Its answers come late by a log-normal delay, 20 ms in the middle.
fn late(sigma: f64) -> SimDevice {
    SimDevice { hesitation: Some(LogNormal { median: 20.0, sigma }), ..holder() }
}

fn pools() -> Vec<Pool> {
    let steady = |about, holders| Pool {
        about,
        sharing: Sharing::Fastest,
        host: SimDevice::with_budget(530),
        holders,
        replicas: 1,
        hedging: Hedging::Off,
        experts: 8,
    };
    let pool = |about, replicas, hedging, holders| Pool { replicas, hedging, ..steady(about, holders) };
    let far = |latency| holder().behind(Link { latency, jitter: 0.1 * latency, ..Link::default() });
    // All on one GPU, and near: what a call takes is what the GPU takes.
    let near = |device: SimDevice| device.behind(Link { latency: 0.2, jitter: 0.1, ..Link::default() });
    let shared = |device: SimDevice| SimDevice { gpu: Some(0), ..near(device) };
    let shares = |about, replicas, hedging, holders| Pool {
        host: shared(SimDevice::with_budget(530)),
        ..pool(about, replicas, hedging, holders)
    };
    let large = |budget| SimDevice { budget: Some(budget), ..holder() };
    vec![
        steady("three steady holders", vec![holder(); 3]),
        pool("six steady holders, two of each expert", 2, Hedging::Adaptive, vec![holder(); 6]),
        steady("holders 1, 5, 20 and 40 ms from the relay", [1.0, 5.0, 20.0, 40.0].map(far).to_vec()),
        steady("holders of a fifth of the speed beside others", vec![holder(), holder().at_speed(0.2), holder()]),
        steady("holders in use that are half as fast as when timed", vec![SimDevice { in_use: 2.0, ..holder() }; 4]),
        steady("four that answer late, one at once", vec![late(0.5); 4]),
        pool("six late, another one after a delay", 2, Hedging::Adaptive, vec![late(0.5); 6]),
        pool("six late, two at once", 2, Hedging::Copies(2), vec![late(0.5); 6]),
        pool("eight late, three at once", 3, Hedging::Copies(3), vec![late(0.5); 8]),
        pool("six with a long tail, another one after a delay", 2, Hedging::Adaptive, vec![late(1.0); 6]),
        steady("one of five late", [vec![late(0.5)], vec![holder(); 4]].concat()),
        Pool {
            sharing: Sharing::Experts,
            host: SimDevice::with_budget(2_000),
            replicas: 2,
            hedging: Hedging::Adaptive,
            experts: 16,
            ..steady("all of 48 experts spread over four", vec![large(400); 4])
        },
        Pool {
            experts: 16,
            host: SimDevice::with_budget(600),
            ..steady("sixteen experts a block", vec![large(300); 6])
        },
        shares("two that share their host's GPU", 1, Hedging::Off, vec![shared(holder()); 2]),
        shares("six that share it, two of each expert asked at once", 2, Hedging::Copies(2), vec![shared(holder()); 6]),
        shares("four that share it and answer late", 1, Hedging::Off, vec![shared(late(0.5)); 4]),
        Pool {
            host: near(SimDevice::with_budget(530)),
            ..steady("five that share another GPU", vec![shared(holder()); 5])
        },
    ]
}

/// What came of a room, milliseconds a token.
struct Outcome {
    /// Predicted before the first answer.
    untaught: f64,
    /// Predicted before the later ones: by the planner alone, then corrected by tokens of the plan. Then measured.
    planned: f64,
    predicted: f64,
    measured: f64,
}

fn outcome(pool: &Pool, seed: u64) -> Result<(Outcome, World), String> {
    let model = SimModel { blocks: 3, experts: pool.experts, kv_bytes: 0, state_bytes: 0 };
    let mut world = World::new(seed, model, pool.sharing, pool.host);
    world.pool_experts(pool.replicas, pool.hedging);
    for (index, holder) in pool.holders.iter().enumerate() {
        world.add(*holder, 10.0 * index as f64);
    }
    let plan = |world: &World| {
        let view = world.view(0).room?.plan.clone();
        let plan = view.plan.filter(|_| view.status == PlanStatus::Up)?;
        let fewest = plan.pooled().map(|(.., holders)| holders.len()).min()?;
        Some((plan.epoch, fewest, view.token_ms))
    };
    let settled = |world: &World| plan(world).is_some_and(|(_, fewest, _)| fewest >= usize::from(pool.replicas));
    world.run(30_000.0, |world| world.now() > 5_000.0 && settled(world));
    let (mut untaught, mut sums, mut counted) = (None, [0.0; 3], 0);
    let mut taught = BTreeSet::new();
    for request in 1..=ANSWERS {
        let Some((before, _, predicted)) = plan(&world) else { return Err("there is no plan".to_owned()) };
        untaught.get_or_insert(predicted);
        let planned = world.peers[0].machine.predicted_millis().unwrap_or_default();
        if request > TEACHING {
            taught.insert(before);
        }
        world.prompt(0, request, TEXT, TOKENS, world.now());
        world.run(world.now() + 100_000.0, |world| world.answer(0, request).is_some_and(|answer| answer.end.is_some()));
        let measured = world.answer(0, request).and_then(|answer| answer.token_millis(FIRST));
        // Another plan in the middle of an answer was not predicted.
        let is_same = plan(&world).is_some_and(|(epoch, ..)| epoch == before);
        if let Some(measured) = measured.filter(|_| request > TEACHING && is_same) {
            sums.iter_mut().zip([planned, predicted, measured]).for_each(|(sum, millis)| *sum += millis);
            counted += 1;
        }
        world.run(world.now() + 3_000.0, |_| false);
    }
    taught.extend(plan(&world).map(|(epoch, ..)| epoch));
    if taught.len() > 1 + CHANGES {
        return Err(format!("its plan changed {} times although nothing else did", taught.len() - 1));
    }
    let [planned, predicted, measured] = sums.map(|sum| sum / f64::from(counted));
    let outcome = Outcome { untaught: untaught.unwrap_or_default(), planned, predicted, measured };
    if counted == 0 { Err("its plan changed in every answer".to_owned()) } else { Ok((outcome, world)) }
}

pub(super) fn pooled_forecast(seed: u64) -> Run {
    let head = "ms a token: predicted before the first answer; after two answers by the planner alone, and corrected by their \
                tokens; then measured"
        .to_owned();
    let mut event_log = vec![head];
    let (mut failure, mut last) = (None, None);
    for (number, pool) in (0..).zip(pools()) {
        match outcome(&pool, seed.wrapping_mul(100) + number) {
            Ok((Outcome { untaught, planned, predicted, measured }, world)) => {
                let [planned_off, off] = [planned, predicted].map(|millis| millis / measured - 1.0);
                let line = format!(
                    "{untaught:6.1} {planned:6.1} ({:+5.1}%) {predicted:6.1} ({:+5.1}%) {measured:6.1}  {}",
                    100.0 * planned_off,
                    100.0 * off,
                    pool.about
                );
                if off.abs().max(planned_off.abs()) > TOLERANCE {
                    failure = failure.or(Some(line.clone()));
                }
                event_log.push(line);
                last = Some(world);
            }
            Err(why) => failure = failure.or(Some(format!("{}: {why}", pool.about))),
        }
    }
    match last {
        Some(world) => Run::new(seed, &world, event_log, failure),
        None => super::scenarios::two_devices(seed),
    }
}
