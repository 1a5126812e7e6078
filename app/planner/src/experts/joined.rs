//! A running plan whose experts lie elsewhere, when devices come: they take over their share, and everything else stays where it
//! is. A search from scratch would weigh all devices by today's measurements and move experts that nobody has to move.

use std::collections::BTreeSet;

use potluck_plan::{BlockIndex, Bytes, ExpertHolder, ExpertId, PeerId, Plan, RemoteExperts, Stage, WeightUnit};

use super::changes::{Move, join, repair};
use super::placement::{Candidate, Holders, Lender};
use super::spread::{lenders, replicas};
use crate::{Device, Planned, Room, Sharing, Shortfall, TAU, placement as plans, plan};

/// The plan for a room in which another one runs, made when these devices were `known`. Where it has experts elsewhere, only what
/// newcomers take over moves, or nothing, and copies that were missing are added. The best plan is taken instead if it is faster by
/// more than τ or, where that is wanted, if more devices take part in it.
///
/// # Errors
/// [`Shortfall`] if the model does not fit on the devices, however partition.
pub fn plan_joining(room: &Room<'_>, running: &Plan, known: &BTreeSet<PeerId>) -> Result<Planned, Shortfall> {
    let best = plan(room)?;
    let takes_part = |planned: &Planned| match room.sharing {
        Sharing::Fastest => 0,
        Sharing::Everyone | Sharing::Experts => planned.plan.peers().len(),
    };
    let is_as_good = |kept: &Planned| {
        let millis = TAU * kept.prediction.token_millis;
        millis <= best.prediction.token_millis && takes_part(kept) >= takes_part(&best)
    };
    let is_new = |peer: PeerId| !known.contains(&peer);
    let with = [&is_new as &dyn Fn(PeerId) -> bool, &|_| false];
    let kept = with.into_iter().find_map(|is_new| {
        let joined = joined(room, running, &best.plan, is_new)?;
        Some(Planned::describe(room, joined)).filter(is_as_good)
    });
    Ok(kept.unwrap_or(best))
}

/// The running plan, with newcomers among the holders of its experts, and of those that the best plan has elsewhere if experts are
/// to be spread. `None` if it has no experts elsewhere, or if devices or memory are missing.
fn joined(room: &Room<'_>, running: &Plan, best: &Plan, is_new: &dyn Fn(PeerId) -> bool) -> Option<Plan> {
    let is_for = |plan: &Plan| (plan.model, plan.context, plan.kv_cache, plan.arithmetic);
    if is_for(running) != is_for(best) || running.is_on_demand() || running.pooled().next().is_none() {
        return None;
    }
    let hubs: BTreeSet<PeerId> = running.stages.iter().map(|stage| stage.peer).collect();
    let mut lenders = lenders(room, room.device(running.stages.first()?.peer)?, &hubs);
    let mut live = held(running, &lenders);
    lenders.retain(|lender| holds(&live, lender.peer) || is_new(lender.peer));
    for newcomer in lenders.iter().filter(|lender| is_new(lender.peer)) {
        take_over(room, &mut live, &lenders, newcomer);
    }
    if room.sharing == Sharing::Experts {
        for (block, expert, _) in best.pooled() {
            live.entry((block, expert)).or_default();
        }
    }
    let left = left(room, &lenders, &live)?;
    let wanted = |block, expert| {
        // Where experts are to be spread, a stage's own copies come on top.
        let own = room.sharing != Sharing::Experts && has_own(running, block, expert);
        replicas(room) - usize::from(own)
    };
    for (block, expert, peer) in repair(room.shape, &live, &left, wanted) {
        live.entry((block, expert)).or_default().push(peer);
    }
    let stages: Option<Vec<Stage>> = running.stages.iter().map(|stage| with_holders(room, stage, &live)).collect();
    Some(plans::plan(room, stages?)).filter(|plan| plan.stages.iter().all(|stage| has_memory(room, plan, stage)))
}

/// A stage's device can have it, besides its other stages and without the experts that are elsewhere.
fn has_memory(room: &Room<'_>, plan: &Plan, stage: &Stage) -> bool {
    let own = plans::memory_of_peer(room, plan, stage.peer);
    let can_have = |device: &Device| device.budget >= own.saturating_add(room.overhead);
    room.device(stage.peer).is_some_and(|device| can_have(device) && room.shows(device, stage.blocks))
}

fn has_own(plan: &Plan, block: BlockIndex, expert: ExpertId) -> bool {
    let stage = plan.stages.iter().find(|stage| stage.blocks.contains(block));
    let remote = stage.and_then(|stage| stage.remote_experts(block)?.holders.get(usize::from(expert.0)));
    remote.is_none_or(|holders| holders.contains(&ExpertHolder::Own))
}

fn holds(live: &Holders, peer: PeerId) -> bool {
    live.values().any(|holders| holders.contains(&peer))
}

/// Gives a newcomer its share. It may hold copies already that were missing: they are a part of it.
fn take_over(room: &Room<'_>, live: &mut Holders, lenders: &[Lender], newcomer: &Lender) {
    let others = lenders.iter().filter(|lender| lender.peer != newcomer.peer && holds(live, lender.peer));
    let holding: Vec<Candidate> = others.map(Lender::candidate).collect();
    let held =
        live.iter().filter(|(_, holders)| holders.contains(&newcomer.peer)).map(|(key, _)| bytes(room, key.0, key.1));
    let newcomer = Lender { free: newcomer.free.saturating_sub(held.sum()), ..*newcomer };
    for Move { expert, from } in join(room.shape, live, &holding, &newcomer) {
        let holder = live.get_mut(&expert).and_then(|holders| holders.iter_mut().find(|peer| **peer == from));
        holder.into_iter().for_each(|peer| *peer = newcomer.peer);
    }
}

fn bytes(room: &Room<'_>, block: BlockIndex, expert: ExpertId) -> Bytes {
    room.shape.unit_bytes(WeightUnit::Expert(block, expert))
}

/// Who of these lenders holds which experts.
fn held(running: &Plan, lenders: &[Lender]) -> Holders {
    let is_here = |peer: &PeerId| lenders.iter().any(|lender| lender.peer == *peer);
    let peers = |holders: &[ExpertHolder]| {
        let peers = holders.iter().filter_map(|holder| match holder {
            ExpertHolder::Peer(peer) => Some(*peer),
            ExpertHolder::Own => None,
        });
        peers.filter(is_here).collect()
    };
    running.pooled().map(|(block, expert, holders)| ((block, expert), peers(holders))).collect()
}

/// What they lend besides the experts that they hold; `None` if somebody lends too little for those.
fn left(room: &Room<'_>, lenders: &[Lender], live: &Holders) -> Option<Vec<Lender>> {
    let left = |lender: &Lender| {
        let held =
            live.iter().filter(|(_, holders)| holders.contains(&lender.peer)).map(|(key, _)| bytes(room, key.0, key.1));
        let free = lender.free.0.checked_sub(held.sum::<Bytes>().0)?;
        Some(Lender { free: Bytes(free), ..*lender })
    };
    lenders.iter().map(left).collect()
}

/// A stage whose experts have these holders. It keeps the experts that it has. `None` if nobody has one of them.
fn with_holders(room: &Room<'_>, stage: &Stage, live: &Holders) -> Option<Stage> {
    let is_own = |block: BlockIndex, expert: ExpertId| {
        let remote = stage.remote_experts(block).and_then(|remote| remote.holders.get(usize::from(expert.0)));
        remote.is_none_or(|holders| holders.contains(&ExpertHolder::Own))
    };
    let mut remote = Vec::new();
    for block in stage.blocks.iter() {
        let holders = |expert: ExpertId| {
            let peers = live.get(&(block, expert)).into_iter().flatten().map(|peer| ExpertHolder::Peer(*peer));
            peers.chain(is_own(block, expert).then_some(ExpertHolder::Own)).collect::<Vec<_>>()
        };
        let holders: Vec<Vec<ExpertHolder>> = room.shape.block_experts(block).into_iter().map(holders).collect();
        if holders.iter().any(Vec::is_empty) {
            return None;
        }
        if holders.iter().any(|holders| *holders != [ExpertHolder::Own]) {
            remote.push(RemoteExperts { block, holders });
        }
    }
    Some(Stage { remote, ..stage.clone() })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use potluck_plan::random::Random;
    use potluck_plan::{ModelShape, WireType};

    use super::super::changes::SHARE;
    use super::*;
    use crate::experts::fixtures;
    use crate::{AccessLink, Device, Layers, Link, Links};

    /// A host that keeps no experts, and others that hold them, as they were measured this time.
    struct Table {
        shape: ModelShape,
        layers: Layers,
        devices: Vec<Device>,
        links: Links,
        replicas: u8,
        sharing: Sharing,
    }

    impl Table {
        fn new(random: &mut Random, holders: u8) -> Self {
            let shape = fixtures::shape(4, 32, 4);
            let layers = Layers::from_shape(&shape, 10, WireType::F32);
            let (replicas, sharing) = (1 + random.below(2) as u8, Sharing::Experts);
            let mut table = Self { shape, layers, devices: Vec::new(), links: Links::default(), replicas, sharing };
            // All experts take 12,800 bytes.
            let copies = [1.1, 1.6, 3.0][random.below(3)] * f64::from(table.replicas);
            let budget = Bytes((12_800.0 * copies / f64::from(holders)) as u64 + 300);
            for id in 0..=holders {
                table.add(id, if id == 0 { Bytes(600) } else { budget });
            }
            table.measure(random);
            table
        }

        fn add(&mut self, id: u8, budget: Bytes) {
            self.devices.push(Device::declared(PeerId([id; 16]), budget, 0.0, 0.5));
        }

        /// Links and speeds differ a little from one measurement to the next.
        fn measure(&mut self, random: &mut Random) {
            for device in &mut self.devices {
                let link = Link { latency_millis: 1.0 + 0.3 * random.unit(), bandwidth: 10.0 };
                self.links.set_access(device.peer, AccessLink { up: link, down: link });
                device.speed.decode = 50.0 * (0.9 + 0.2 * random.unit());
            }
        }

        fn room(&self) -> Room<'_> {
            Room {
                sharing: self.sharing,
                replicas: self.replicas,
                ..fixtures::room(&self.shape, &self.layers, &self.devices, &self.links)
            }
        }
    }

    /// Which devices besides stages hold copies of which experts.
    fn copies(plan: &Plan) -> BTreeSet<(BlockIndex, ExpertId, PeerId)> {
        let of = |(block, expert, holders): (BlockIndex, ExpertId, &[ExpertHolder])| {
            let peers = holders.iter().filter_map(|holder| match holder {
                ExpertHolder::Peer(peer) => Some((block, expert, *peer)),
                ExpertHolder::Own => None,
            });
            peers.collect::<Vec<_>>()
        };
        plan.pooled().flat_map(of).collect()
    }

    /// The running plan, and the room when a device has come and all were measured again.
    fn joins(seed: u64) -> (Plan, Table, PeerId) {
        let mut random = Random::new(seed);
        let holders = 3 + random.below(7) as u8;
        let mut table = Table::new(&mut random, holders);
        let running = plan(&table.room()).unwrap().plan;
        let (newcomer, budget) = (holders + 1, table.devices[1].budget);
        table.add(newcomer, budget);
        table.measure(&mut random);
        (running, table, PeerId([newcomer; 16]))
    }

    #[test]
    fn a_device_that_comes_takes_over_its_share_and_nothing_else_moves() {
        for seed in 0..300 {
            let (running, table, newcomer) = joins(seed);
            let room = table.room();
            let joined = joined(&room, &running, &running, &|peer| peer == newcomer).unwrap();
            let (old, new) = (copies(&running), copies(&joined));
            let holders: BTreeSet<PeerId> = new.iter().map(|(.., peer)| *peer).collect();
            assert!(holders.contains(&newcomer), "seed {seed}: it holds nothing");
            let moved: Vec<_> = old.difference(&new).collect();
            let (share, most) = (moved.len() as f64 / old.len() as f64, 1.2 / holders.len() as f64);
            assert!(share <= most, "seed {seed}: {share:.3} of {} copies move, more than {most:.3}", old.len());
            assert!(
                moved.iter().all(|(block, expert, _)| new.contains(&(*block, *expert, newcomer))),
                "seed {seed}: an expert moves to another device than the one that came"
            );
            // What is loaded besides are copies that were missing.
            assert_eq!(new.difference(&old).count(), moved.len() + new.len() - old.len(), "seed {seed}");
        }
    }

    #[test]
    fn another_plan_is_taken_only_if_it_is_faster_by_enough() {
        let mut kept = 0;
        for seed in 0..300 {
            let (running, table, newcomer) = joins(seed);
            let room = table.room();
            let known = table.devices.iter().map(|device| device.peer).filter(|peer| *peer != newcomer).collect();
            let (best, chosen) = (plan(&room).unwrap(), plan_joining(&room, &running, &known).unwrap());
            assert!(TAU * chosen.prediction.token_millis <= best.prediction.token_millis, "seed {seed}: too slow");
            kept += u32::from(chosen.plan != best.plan);
        }
        assert!(kept >= 150, "the running plan is kept in {kept} of 300 rooms only");
    }

    #[test]
    fn without_newcomers_the_running_plan_stays_as_it_is() {
        for seed in 0..100 {
            let mut random = Random::new(seed);
            let mut table = Table::new(&mut random, 5);
            let running = plan(&table.room()).unwrap().plan;
            table.measure(&mut random);
            let kept = joined(&table.room(), &running, &running, &|_| false).unwrap();
            assert_eq!(kept.stages, running.stages, "seed {seed}");
        }
    }

    #[test]
    fn a_newcomer_that_was_given_missing_copies_still_gets_its_share_only() {
        for seed in 0..100 {
            let (running, table, newcomer) = joins(seed);
            let room = table.room();
            let once = joined(&room, &running, &running, &|peer| peer == newcomer).unwrap();
            let again = joined(&room, &once, &once, &|peer| peer == newcomer).unwrap();
            let count = |plan: &Plan| copies(plan).iter().filter(|(.., peer)| *peer == newcomer).count();
            let holders: BTreeSet<PeerId> = copies(&again).iter().map(|(.., peer)| *peer).collect();
            let most = SHARE * copies(&again).len() as f64 / holders.len() as f64;
            assert!(
                count(&again) == count(&once) || count(&again) as f64 <= most,
                "seed {seed}: {} and then {} of {most:.1}",
                count(&once),
                count(&again)
            );
        }
    }

    #[test]
    fn where_everyone_takes_part_devices_that_stay_load_nothing() {
        for seed in 0..100 {
            let mut random = Random::new(seed);
            let mut table = Table::new(&mut random, 4);
            table.devices[0].budget = Bytes(40_000);
            (table.sharing, table.replicas) = (Sharing::Everyone, 2);
            let running = plan(&table.room()).unwrap().plan;
            let newcomer = PeerId([5; 16]);
            table.add(5, table.devices[1].budget);
            table.measure(&mut random);
            let Some(joined) = joined(&table.room(), &running, &running, &|peer| peer == newcomer) else {
                assert!(running.pooled().next().is_none(), "seed {seed}");
                continue;
            };
            let (old, new) = (copies(&running), copies(&joined));
            assert!(new.difference(&old).all(|(.., peer)| *peer == newcomer), "seed {seed}");
        }
    }

    #[test]
    fn a_plan_that_cannot_go_on_is_not_kept() {
        let (running, mut table, _) = joins(1);
        let goes_on = |table: &Table| joined(&table.room(), &running, &running, &|_| true).is_some();
        assert!(goes_on(&table));
        let (all, stage) = (table.devices.clone(), running.stages[0].peer);
        table.devices.retain(|device| device.peer != stage);
        assert!(!goes_on(&table), "the device with the stage is gone");
        let (.., holder) = *copies(&running).first().unwrap();
        for (what, peer) in [("the stage's device", stage), ("a holder", holder)] {
            table.devices.clone_from(&all);
            table.devices.iter_mut().find(|device| device.peer == peer).unwrap().budget = Bytes(100);
            assert!(!goes_on(&table), "{what} lends less than it needs");
        }
    }
}
