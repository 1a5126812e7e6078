//! A device comes to a room whose experts lie elsewhere: what moves.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::collections::BTreeSet;

use potluck_plan::{BlockIndex, ExpertHolder, ExpertId, PeerId};
use potluck_protocol::{Hedging, Sharing};
use potluck_sim::{LogNormal, SimDevice, SimModel, World};

const TEXT: &str = "how do bees find home?";

/// Which devices without a stage hold copies of which experts, and who has the stages.
fn copies(world: &World) -> (BTreeSet<(BlockIndex, ExpertId, PeerId)>, Vec<PeerId>) {
    let plan = world.plan_up().unwrap();
    let peer = |holder: &ExpertHolder| match holder {
        ExpertHolder::Peer(peer) => Some(*peer),
        ExpertHolder::Own => None,
    };
    let copies = plan.pooled().flat_map(|(block, expert, holders)| {
        holders.iter().filter_map(peer).map(move |peer| (block, expert, peer)).collect::<Vec<_>>()
    });
    (copies.collect(), plan.stages.iter().map(|stage| stage.peer).collect())
}

/// Also where answers vary, and devices are measured anew all the time.
#[test]
fn a_device_that_comes_takes_over_its_share_and_nothing_else_moves() {
    let steady = SimDevice::with_budget(1_500);
    let varies = SimDevice { hesitation: Some(LogNormal { median: 20.0, sigma: 0.5 }), ..steady };
    let rooms = [(5, steady, 1), (8, steady, 2), (5, varies, 1), (8, varies, 2)];
    for (seed, (helpers, device, replicas)) in (0..2).flat_map(|seed| rooms.map(|room| (seed, room))) {
        let model = SimModel { blocks: 6, experts: 32, kv_bytes: 0, state_bytes: 0 };
        let mut world = World::new(seed, model, Sharing::Experts, SimDevice::with_budget(1_200));
        world.pool_experts(replicas, Hedging::Adaptive);
        (0..helpers).for_each(|index| _ = world.add(device, 10.0 * f64::from(index)));
        world.run(60_000.0, |world| world.plan_up().is_some() && world.fewest_holders() >= usize::from(replicas));
        // What answers teach of the devices may call for another placement, whoever comes.
        for request in 1..=4 {
            world.prompt(0, request, TEXT, 40, world.now());
            world.run(world.now() + 60_000.0, |_| false);
        }
        let (old, stages) = copies(&world);
        let newcomer = PeerId([world.add(device, world.now()) as u8 + 1; 16]);
        world.run(world.now() + 60_000.0, |_| false);
        let (new, now) = copies(&world);
        let room = format!("seed {seed}, {helpers} of {device:?}, {replicas} copies");
        assert_eq!(now, stages, "{room}: the stages move");
        assert!(new.iter().any(|(.., peer)| *peer == newcomer), "{room}: the newcomer holds nothing");
        let holders: BTreeSet<PeerId> = new.iter().map(|(.., peer)| *peer).collect();
        let moved: Vec<_> = old.difference(&new).collect();
        let (share, most) = (moved.len() as f64 / old.len() as f64, 1.2 / holders.len() as f64);
        assert!(share <= most, "{room}: {share:.3} of the copies move, more than {most:.3}");
        let elsewhere = moved.iter().filter(|(block, expert, _)| !new.contains(&(*block, *expert, newcomer))).count();
        assert_eq!(elsewhere, 0, "{room}: experts move to other devices than the one that came");
    }
}
