//! How long a host with experts on many devices is busy planning, while tokens wait: `cargo bench -p potluck-planner --bench experts`.

mod pooled;
mod random;

use std::collections::BTreeMap;
use std::time::Instant;

use potluck_plan::{BlockIndex, Bytes, ExpertHolder, PeerId, Plan};
use potluck_planner::experts::{Holders, lenders_left, repair_together};
use potluck_planner::{Planned, Room, plan, plan_keeping, predict, what_would_help};

use pooled::{POOLS, Pooled};

/// Runs of each question but what would help, which takes many searches; their median counts.
const RUNS: usize = 9;

fn main() {
    println!("milliseconds, median of {RUNS}");
    println!(
        "{:<44}{:>9}{:>9}{:>9}{:>9}{:>9}{:>9}{:>12}",
        "room", "plan", "keeping", "describe", "predict", "repair", "help", "ms a token"
    );
    // What follows `--` is looked for in the rooms' names.
    let only = std::env::args().skip(1).find(|argument| !argument.starts_with('-')).unwrap_or_default();
    for (name, pool) in POOLS.iter().filter(|(name, _)| name.contains(&only)) {
        let mut pooled = Pooled::new(*pool, 1);
        let Ok(planned) = plan(&pooled.room()) else { panic!("{name}: the model fits") };
        let plain = median(RUNS, || plan(&pooled.room()));
        let room = pooled.room();
        let describe = median(RUNS, || Planned::describe(&room, planned.plan.clone()));
        let predict = median(RUNS, || predict(&room, &planned.plan));
        let repair = median(RUNS, || repair(&room, &planned.plan));
        let help = median(1, || what_would_help(&room));
        // Where a block lies already, what is near the best plan is searched, too.
        pooled.fixture.devices[1].holds = (0..4).map(BlockIndex).collect();
        let keeping = median(RUNS, || plan_keeping(&pooled.room()));
        let token = planned.prediction.token_millis;
        println!(
            "{name:<44}{plain:>9.2}{keeping:>9.2}{describe:>9.3}{predict:>9.3}{repair:>9.2}{help:>9.1}{token:>12.2}"
        );
    }
}

/// One of the devices that hold experts is gone: who loads what.
fn repair(room: &Room<'_>, plan: &Plan) -> usize {
    let stage = plan.stages[0].peer;
    let Some(gone) = room.devices.iter().map(|device| device.peer).find(|peer| *peer != stage) else { return 0 };
    let peers = |holders: &[ExpertHolder]| {
        let peer = |holder: &ExpertHolder| match holder {
            ExpertHolder::Peer(peer) => *peer,
            ExpertHolder::Own => stage,
        };
        holders.iter().map(peer).filter(|peer| *peer != gone).collect::<Vec<_>>()
    };
    let live: Holders = plan.pooled().map(|(block, expert, holders)| ((block, expert), peers(holders))).collect();
    let others = room.devices.iter().filter(|device| device.peer != gone);
    let free: BTreeMap<PeerId, Bytes> = others.map(|device| (device.peer, Bytes(device.budget.0 / 8))).collect();
    let lenders = lenders_left(room, plan, &free);
    repair_together(room.shape, &live, &lenders, |_, _| usize::from(room.replicas)).len()
}

fn median<T>(runs: usize, mut run: impl FnMut() -> T) -> f64 {
    let mut times: Vec<f64> = (0..runs)
        .map(|_| {
            let started = Instant::now();
            std::hint::black_box(run());
            started.elapsed().as_secs_f64() * 1e3
        })
        .collect();
    times.sort_by(f64::total_cmp);
    times[runs / 2]
}
