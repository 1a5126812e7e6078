//! Scenarios with one course of events each.

use potluck_panel::Timeline;
use potluck_protocol::{AnswerStop, PlanStatus, Sharing};

use super::device::SimDevice;
use super::engine::SimModel;
use super::fault::Fault;
use super::network::Link;
use super::oracle::undisturbed;
use super::scenario::Run;
use super::world::World;

const TEXT: &str = "a question that is a little longer than one chunk of sixty-four positions, so that chunks overlap";
const TOKENS: u32 = 48;

/// 12 blocks of 160 and two ends of 50: 2,020 bytes and 10 of overhead a device.
fn device(budget: u64) -> SimDevice {
    SimDevice { block_millis: 4.0, prefill_millis: 1.0, noise: 0.05, ..SimDevice::with_budget(budget) }
}

fn phone(budget: u64) -> SimDevice {
    device(budget).at_speed(0.25).behind(Link {
        latency: 20.0,
        jitter: 20.0,
        loss: 0.002,
        wake: 0.0,
        up: 1e6,
        down: 4e6,
    })
}

/// A guest that asks again and again until a time, and the world run until a little later.
fn chatting(mut world: World, seed: u64, until: f64, event_log: Vec<String>) -> Run {
    let asker = world.add(SimDevice::default(), 0.0);
    world.chat(asker, TEXT, TOKENS, 500.0, until);
    world
        .run(until + 120_000.0, |world| world.now() > until && world.answers().all(|(_, answer)| answer.end.is_some()));
    let model = world.model.clone();
    let failure = judge(&world, &model, until);
    let longest = longest_gap(&world);
    let mut event_log = event_log;
    let tokens: usize = world.answers().map(|(_, answer)| answer.tokens.len()).sum();
    event_log.push(format!(
        "{tokens} tokens in {:.1} s, the longest pause within an answer {longest:.0} ms",
        world.now() / 1e3
    ));
    Run::new(seed, &world, event_log, failure)
}

fn judge(world: &World, model: &SimModel, until: f64) -> Option<String> {
    if let Some(violation) = world.violation() {
        return Some(violation.to_owned());
    }
    let prompt: Vec<u32> = TEXT.bytes().map(u32::from).collect();
    let expected = undisturbed(model, &prompt, TOKENS as usize);
    let answers: Vec<_> = world.answers().collect();
    if answers.is_empty() || answers.iter().all(|(_, answer)| answer.tokens.is_empty()) {
        return Some(format!("nothing was answered by {until:.0} ms"));
    }
    answers.iter().enumerate().find_map(|(index, (_, answer))| match &answer.end {
        Some(AnswerStop::Length) if answer.tokens == expected => None,
        Some(AnswerStop::Length) => Some(format!("answer {index} is {:?} instead of {expected:?}", answer.tokens)),
        other => Some(format!("answer {index} ended by {other:?} after {} tokens", answer.tokens.len())),
    })
}

/// Milliseconds between two tokens of one answer, the longest.
fn longest_gap(world: &World) -> f64 {
    let gaps = world.answers().flat_map(|(_, answer)| answer.times.windows(2).map(|pair| pair[1] - pair[0]));
    gaps.fold(0.0, f64::max)
}

/// Milliseconds in which no token came to anybody, the longest.
fn longest_pause(timeline: &Timeline) -> f64 {
    timeline.samples.windows(2).map(|pair| pair[1].at_ms - pair[0].at_ms).fold(0.0, f64::max)
}

pub(super) fn two_devices(seed: u64) -> Run {
    let mut world = World::new(seed, SimModel::dense(12), Sharing::Fastest, device(1_200));
    world.add(device(1_200), 200.0);
    chatting(world, seed, 30_000.0, vec!["two equal devices, neither holds the model alone".into()])
}

pub(super) fn phone_joins(seed: u64) -> Run {
    let mut world = World::new(seed, SimModel::dense(12), Sharing::Fastest, device(1_200));
    world.add(device(1_200), 200.0);
    let phone = world.add(phone(1_200), 15_000.0);
    world.fault(Fault::Leave(phone), 45_000.0);
    chatting(world, seed, 60_000.0, vec!["two computers; a phone of a quarter of their speed joins, and leaves".into()])
}

pub(super) fn kill_during_answer(seed: u64) -> Run {
    let mut world = World::new(seed, SimModel::dense(12), Sharing::Fastest, device(1_200));
    let worker = world.add(device(1_200), 200.0);
    world.add(device(1_200).at_speed(0.5), 400.0);
    world.fault(Fault::Kill(worker), 12_000.0);
    chatting(world, seed, 40_000.0, vec!["the faster of two workers is killed, the slower one takes over".into()])
}

/// Loading the lost part would take ten seconds. The loss is noticed after two, and the next token comes a second
/// later.
pub(super) fn standby(seed: u64) -> Run {
    const LONGEST_MILLIS: f64 = 3_000.0;
    let slow_line = SimDevice { download: 100.0, prefill_millis: 0.25, ..device(1_200) };
    let mut world = World::new(seed, SimModel::dense(12), Sharing::Fastest, slow_line);
    let worker = world.add(slow_line, 200.0);
    world.add(slow_line.at_speed(0.8), 400.0);
    world.fault(Fault::Kill(worker), 60_000.0);
    let event_log = "the faster of two workers is killed; the slower one holds its part since half a minute".to_owned();
    let run = chatting(world, seed, 90_000.0, vec![event_log]);
    let longest = longest_pause(&run.timeline);
    let failure = (longest > LONGEST_MILLIS).then(|| format!("nothing came for {longest:.0} ms"));
    Run { failure: run.failure.or(failure), ..run }
}

pub(super) fn frozen_tab(seed: u64) -> Run {
    let mut world = World::new(seed, SimModel::dense(12), Sharing::Fastest, device(1_200));
    let worker = world.add(device(1_200), 200.0);
    world.add(device(1_200).at_speed(0.5), 400.0);
    world.fault(Fault::Freeze(worker, 12_000.0), 12_000.0);
    chatting(world, seed, 50_000.0, vec!["the faster of two workers stands still for 12 s".into()])
}

pub(super) fn partition(seed: u64) -> Run {
    let mut world = World::new(seed, SimModel::dense(12), Sharing::Fastest, device(1_200));
    let workers: Vec<usize> = (0..3).map(|i| world.add(device(1_200), 200.0 + 50.0 * f64::from(i))).collect();
    for worker in &workers[..2] {
        world.fault(Fault::Cut(*worker, 15_000.0), 12_000.0);
    }
    chatting(world, seed, 60_000.0, vec!["two of three workers are cut off from the relay for 15 s".into()])
}

pub(super) fn case_study(seed: u64) -> Run {
    // The paper's Aidos, Thor and Agx: speeds about 3 : 2 : 1.
    let mut world = World::new(seed, SimModel::dense(12), Sharing::Fastest, device(400));
    let fast = world.add(device(1_900).at_speed(1.5), 100.0);
    let middle = world.add(device(1_900), 100.0);
    world.add(device(1_900).at_speed(0.5), 100.0);
    world.fault(Fault::Reload(fast, 83_000.0), 35_000.0);
    world.fault(Fault::Reload(middle, 96_000.0), 67_000.0);
    chatting(
        world,
        seed,
        190_000.0,
        vec!["three workers of speeds 3 : 2 : 1; the fast and the middle one go and return".into()],
    )
}

/// Three stages, each on a device that the two others cannot replace.
fn three_stages(seed: u64, latency: f64) -> World {
    let near = device(900).behind(Link::after(latency / 2.0));
    let mut world = World::new(seed, SimModel::dense(12), Sharing::Everyone, near);
    world.add(near, 100.0);
    world.add(near, 100.0);
    world
}

pub(super) fn four_conversations(seed: u64) -> Run {
    let one = rate_of(seed, 1);
    let four = rate_of(seed, 4);
    let gain = four.0 / one.0;
    let mut run = four.1;
    run.event_log = vec![format!(
        "one conversation {:.2} tok/s, four {:.2} tok/s together: {gain:.2} times as many",
        one.0, four.0
    )];
    run.failure =
        run.failure.or((gain < 2.0).then(|| format!("only {gain:.2} times as many tokens per second, not 2")));
    run
}

/// Tokens per second of this many conversations at once, from the first token until all have ended.
fn rate_of(seed: u64, conversations: u32) -> (f64, Run) {
    let mut world = three_stages(seed, 20.0);
    let askers: Vec<usize> = (0..conversations).map(|_| world.add(SimDevice::default(), 100.0)).collect();
    let text = &TEXT[..40];
    askers.iter().for_each(|asker| world.prompt(*asker, 1, text, 23, 5_000.0));
    world.run(600_000.0, |world| {
        world.answers().count() == conversations as usize && world.answers().all(|(_, answer)| answer.end.is_some())
    });
    let times: Vec<f64> = world.answers().flat_map(|(_, answer)| answer.times.iter().copied()).collect();
    let (first, last) = times.iter().fold((f64::MAX, 0.0f64), |(a, b), time| (a.min(*time), b.max(*time)));
    let rate = times.len() as f64 / (last - first) * 1e3;
    let prompt: Vec<u32> = text.bytes().map(u32::from).collect();
    let expected = undisturbed(&world.model, &prompt, 23);
    let wrong = world.answers().find(|(_, answer)| answer.tokens != expected);
    let failure = wrong.map(|(asker, answer)| format!("device {asker} was answered {answer:?}"));
    (rate, Run::new(seed, &world, Vec::new(), failure))
}

pub(super) fn latency_slope(seed: u64) -> Run {
    let mut event_log =
        vec!["stages, network_hops, milliseconds a token at 0, 10, 20, 30, 40, 50 ms one way, slope".into()];
    let mut failure = None;
    let mut last = None;
    for stages in 1..=5 {
        let points: Vec<(f64, SlopePoint)> = (0..=5)
            .map(|step| f64::from(step) * 10.0)
            .map(|latency| (latency, slope_point(seed, stages, latency)))
            .collect();
        let slope = slope(points.iter().map(|(latency, point)| (*latency, point.token_millis)));
        let network_hops = points[0].1.network_hops;
        let millis: Vec<String> = points.iter().map(|(_, point)| format!("{:.1}", point.token_millis)).collect();
        event_log.push(format!("{stages}, {network_hops}, {}, {slope:.3}", millis.join(", ")));
        if (slope - f64::from(network_hops)).abs() > 0.05 {
            failure = failure.or(Some(format!("{stages} stages: slope {slope:.3} instead of {network_hops}")));
        }
        last = points.into_iter().next_back().map(|(_, point)| point.run);
    }
    match last {
        Some(run) => Run { event_log, failure, ..run },
        None => two_devices(seed),
    }
}

struct SlopePoint {
    token_millis: f64,
    network_hops: u32,
    run: Run,
}

/// Milliseconds a decoded token in a room of this many stages whose messages take `latency` from peer to peer.
fn slope_point(seed: u64, stages: u32, latency: f64) -> SlopePoint {
    let near = SimDevice { noise: 0.0, ..device(3_000) }.behind(Link::after(latency / 2.0));
    let mut world = World::new(seed, SimModel::dense(12), Sharing::Everyone, near);
    for _ in 1..stages {
        world.add(near, 100.0);
    }
    world.prompt(0, 1, &TEXT[..40], TOKENS, 8_000.0);
    world.run(600_000.0, |world| world.answer(0, 1).is_some_and(|answer| answer.end.is_some()));
    let room = world.view(0).room;
    let up = room.filter(|room| room.plan.status == PlanStatus::Up);
    let network_hops = up.and_then(|room| Some(room.plan.plan.as_ref()?.network_hops(room.host))).unwrap_or_default();
    let token_millis = world.answer(0, 1).and_then(|answer| answer.token_millis(0)).unwrap_or_default();
    SlopePoint { token_millis, network_hops, run: Run::new(seed, &world, Vec::new(), None) }
}

/// Least squares.
fn slope(points: impl Iterator<Item = (f64, f64)> + Clone) -> f64 {
    let n = points.clone().count() as f64;
    let (x, y) = points.clone().fold((0.0, 0.0), |(x, y), point| (x + point.0 / n, y + point.1 / n));
    let (above, below) = points.fold((0.0, 0.0), |(above, below), point| {
        (above + (point.0 - x) * (point.1 - y), below + (point.0 - x).powi(2))
    });
    above / below
}
