//! How long the thread of a host with experts on many devices is held up by one event: `cargo bench -p potluck-sim --bench ticks`.

use std::time::Instant;

use potluck_protocol::{Hedging, Sharing};
use potluck_sim::{LogNormal, Recording, SimDevice, SimModel, World};
use potluck_swarm::Event;

/// Blocks and experts of Qwen3-30B-A3B.
const MODEL: SimModel = SimModel { blocks: 48, experts: 128, kv_bytes: 0, state_bytes: 0 };
/// Bytes of everything but experts, and what a device needs besides.
const PINNED: f64 = 10.0 + 100.0 + 48.0 * 105.0;
/// Bytes of all experts.
const EXPERTS: f64 = 48.0 * 128.0 * 20.0;
const DEVICES: usize = 9;
/// Somebody asks at this time, and once more later.
const ASKED_MILLIS: [f64; 2] = [60_000.0, 110_000.0];
const END_MILLIS: f64 = 170_000.0;
/// The same is replayed so often; the least time of an event counts.
const RUNS: usize = 3;

fn main() {
    println!("milliseconds of the longest event of each kind, and of the longest ones of all");
    let rooms = [
        ("experts elsewhere, late", Sharing::Experts, 2.2),
        ("the fastest plan, late", Sharing::Fastest, 2.2),
        ("the model hardly fits", Sharing::Fastest, 0.7),
        ("the model does not fit", Sharing::Fastest, 0.5),
    ];
    for (name, sharing, share) in rooms {
        report(name, &recorded(sharing, share));
    }
}

/// What a host is told in a room whose devices have memory for this share of the experts.
fn recorded(sharing: Sharing, share: f64) -> Recording {
    let device = |index: usize| {
        let budget = PINNED + share * EXPERTS / DEVICES as f64 * (0.9 + 0.025 * index as f64);
        let hesitation = Some(LogNormal { median: 2.0, sigma: 0.5 });
        SimDevice { hesitation, ..SimDevice::with_budget(budget as u64) }.at_speed(0.5 + 0.1 * index as f64)
    };
    let mut world = World::new(1, MODEL, sharing, device(0));
    world.pool_experts(2, Hedging::Adaptive);
    world.record(0);
    (1..DEVICES).for_each(|index| _ = world.add(device(index), 100.0 * index as f64));
    for (request, at) in (1..).zip(ASKED_MILLIS) {
        world.prompt(0, request, "how do bees find home?", 30, at);
    }
    world.run(END_MILLIS, |_| false);
    world.recording(0)
}

fn report(name: &str, recording: &Recording) {
    let events = recording.events();
    let mut least = vec![f64::INFINITY; events.len()];
    for _ in 0..RUNS {
        let mut peer = recording.replay(0);
        for ((event, at), least) in events.iter().zip(&mut least) {
            let event = event.clone();
            let started = Instant::now();
            std::hint::black_box(peer.on(event, *at));
            *least = least.min(started.elapsed().as_secs_f64() * 1e3);
        }
    }
    println!("{name}: {} events, {:.0} ms in all", events.len(), least.iter().sum::<f64>());
    for kind in ["tick", "wake-up", "frame", "other"] {
        let of_kind = events.iter().zip(&least).filter(|((event, _), _)| self::kind(event) == kind);
        let mut times: Vec<(f64, f64)> = of_kind.map(|((_, at), least)| (*least, at.0)).collect();
        times.sort_by(|a, b| b.0.total_cmp(&a.0));
        let longest = times.iter().take(5).map(|(millis, at)| format!("{millis:.1} at {:.1} s", at / 1e3));
        let middle = times.get(times.len() / 2).map_or(0.0, |(millis, _)| *millis);
        let longest = longest.collect::<Vec<_>>().join(", ");
        println!("  {kind:<8} {:>6}  median {middle:.3}  longest {longest}", times.len());
    }
}

fn kind(event: &Event) -> &'static str {
    match event {
        Event::Tick => "tick",
        Event::Wake => "wake-up",
        Event::Frame { .. } => "frame",
        _ => "other",
    }
}
