//! Experts of a block that lie together, so that a token asks fewer devices: the slowest of few answers comes sooner than the
//! slowest of many, where answers vary.

use std::cmp::Reverse;

use potluck_plan::{BlockIndex, Bytes, ExpertId, ModelShape, PeerId};

use super::board::{Board, Lending, Roster, named};
use super::changes::board;
use super::placement::{Holders, Lender};

/// First holders for these experts, in ascending order: those of each block on `holders` devices where their memory allows.
/// `None` if some expert would have no holder.
pub(super) fn place(
    board: &Board,
    roster: Roster,
    experts: &[usize],
    holders: usize,
    lenders: Vec<Lending>,
) -> Option<Roster> {
    let mut placement = Placement { board, lenders, roster, unplaced: 0, added: Vec::new() };
    for block in experts.chunk_by(|a, b| board.keys[*a].0 == board.keys[*b].0) {
        let size = block.len().div_ceil(holders.max(1));
        block.chunks(size.max(1)).for_each(|group| placement.give(group, group[0], &[]));
    }
    (placement.unplaced == 0).then_some(placement.roster)
}

/// What to load so that every expert has its replicas again, in order of importance: experts without any holder first, then those
/// that lack most. `live` lists every expert of the pool, `replicas` says how many holders each shall have, and experts that nobody
/// has memory for are left out.
///
/// What one device holds of a block has its next copy on one device, too, where memory allows: two calls at once, or a call asked
/// again, then go to two devices, and are not as late as the slowest of many.
pub fn repair_together(
    shape: &ModelShape,
    live: &Holders,
    lenders: &[Lender],
    replicas: impl Fn(BlockIndex, ExpertId) -> usize,
) -> Vec<(BlockIndex, ExpertId, PeerId)> {
    let board = board(shape, live, lenders);
    let wanted = |expert: usize| replicas(board.keys[expert].0, board.keys[expert].1).max(1);
    let most = (0..board.keys.len()).map(wanted).max().unwrap_or(0);
    let (_, added) = repair_roster_together(&board, Roster::of(&board, live, most), board.lending(lenders), wanted);
    named(&board, &added)
}

/// See [`repair_together`]. Nothing is missing of an expert of which no holder is `wanted`.
pub(super) fn repair_roster_together(
    board: &Board,
    roster: Roster,
    lenders: Vec<Lending>,
    wanted: impl Fn(usize) -> usize,
) -> (Roster, Vec<(usize, u16)>) {
    let wanted: Vec<usize> = (0..board.keys.len()).map(wanted).collect();
    let mut placement = Placement { board, lenders, roster, unplaced: 0, added: Vec::new() };
    for copies in 0..wanted.iter().copied().max().unwrap_or(0) {
        for block in board.blocks() {
            let experts = block.filter(|expert| wanted[*expert] > copies);
            for Group { first, held, lacking } in groups(&placement.roster, experts, copies) {
                // What nobody holds has no copy beside which it could lie.
                let near = if copies > 0 { held } else { Vec::new() };
                placement.give(&lacking, first, &near);
            }
        }
    }
    (placement.roster, placement.added)
}

/// Experts of a block that have the same holders, up to some copy.
struct Group {
    /// What it is hashed by: also if only some of them lack the next copy.
    first: usize,
    /// Who has the next copy of any of them, those with most of them first.
    held: Vec<u16>,
    /// Those without it.
    lacking: Vec<usize>,
}

/// Experts of a block by their first holders, in the order of these.
fn groups(roster: &Roster, experts: impl Iterator<Item = usize>, copies: usize) -> Vec<Group> {
    let mut groups: Vec<(&[u16], Vec<usize>)> = Vec::new();
    for expert in experts {
        let Some(first) = roster.holders(expert).get(..copies) else { continue };
        match groups.iter_mut().find(|(holders, _)| *holders == first) {
            Some((_, experts)) => experts.push(expert),
            None => groups.push((first, vec![expert])),
        }
    }
    groups.sort_unstable_by_key(|(holders, _)| *holders);
    groups.into_iter().map(|(_, experts)| Group::of(roster, &experts, copies)).collect()
}

impl Group {
    fn of(roster: &Roster, experts: &[usize], copies: usize) -> Self {
        let (mut held, mut lacking) = (Vec::<(Reverse<usize>, u16)>::new(), Vec::new());
        for expert in experts {
            match roster.holders(*expert).get(copies) {
                None => lacking.push(*expert),
                Some(number) => match held.iter_mut().find(|(_, other)| other == number) {
                    Some((Reverse(count), _)) => *count += 1,
                    None => held.push((Reverse(1), *number)),
                },
            }
        }
        held.sort_unstable();
        Self { first: experts[0], held: held.into_iter().map(|(_, number)| number).collect(), lacking }
    }
}

struct Placement<'a> {
    board: &'a Board,
    lenders: Vec<Lending>,
    roster: Roster,
    unplaced: usize,
    /// What was placed, in this order.
    added: Vec<(usize, u16)>,
}

impl Placement<'_> {
    /// One more holder for experts that have the same ones, together if somebody has memory for all of them: who is `near`, in this order, or
    /// who scores highest for the expert `key`.
    fn give(&mut self, group: &[usize], key: usize, near: &[u16]) {
        let Some(first) = group.first() else { return };
        let bytes: Bytes = group.iter().map(|expert| self.board.bytes(*expert)).sum();
        let known = self.roster.holders(*first);
        let near_one = near.iter().filter(|number| !known.contains(number)).find_map(|number| {
            let lender = self.lenders.iter_mut().find(|lender| lender.number == *number && lender.free >= bytes)?;
            lender.free = lender.free.saturating_sub(bytes);
            Some(*number)
        });
        match near_one.or_else(|| self.board.next_holder(key, bytes, known, &mut self.lenders)) {
            Some(number) => group.iter().for_each(|expert| self.add(*expert, number)),
            None if group.len() == 1 => self.unplaced += 1,
            None => {
                let (front, back) = group.split_at(group.len() / 2);
                self.give(front, front[0], near);
                self.give(back, back[0], near);
            }
        }
    }

    fn add(&mut self, expert: usize, number: u16) {
        self.roster.push(expert, number);
        self.added.push((expert, number));
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use potluck_plan::random::Random;
    use std::collections::BTreeMap;

    use potluck_plan::{Arithmetic, ExpertHolder, PlanEpoch, RemoteExperts, Stage, StageId, WireType};

    use super::super::changes::repair;
    use super::super::placement::ExpertKey;
    use super::*;
    use crate::experts::fixtures::{self, Wanted};
    use crate::{AccessLink, Device, Effort, Hedging, Layers, Links, Room, Sharing, predict};

    /// As [`super::place`], by name.
    fn place(wanted: &[Wanted], holders: usize, lenders: &[Lender]) -> Holders {
        let experts = wanted.iter().map(|wanted| (wanted.expert, wanted.bytes)).collect();
        let board = Board::new(experts, lenders.iter().map(|lender| lender.peer).collect());
        let all: Vec<usize> = (0..board.keys.len()).collect();
        let roster = super::place(&board, Roster::new(&board, 1), &all, holders, board.lending(lenders));
        let roster = roster.expect("every expert has a holder");
        let peers = |expert: usize| roster.holders(expert).iter().map(|number| board.peer(*number)).collect();
        all.iter().map(|expert| (board.keys[*expert], peers(*expert))).collect()
    }

    /// Further holders, as [`repair_together`] chooses them.
    fn replicate(
        shape: &ModelShape,
        placed: &mut Holders,
        lenders: &[Lender],
        replicas: impl Fn(BlockIndex, ExpertId) -> usize,
    ) {
        for (block, expert, peer) in repair_together(shape, placed, lenders, replicas) {
            placed.entry((block, expert)).or_default().push(peer);
        }
    }

    fn lenders(random: &mut Random, count: usize, free: u64) -> Vec<Lender> {
        let mut lender =
            |_| Lender { peer: PeerId(random.bytes(16).try_into().unwrap()), weight: 1.0, free: Bytes(free) };
        (0..count).map(&mut lender).collect()
    }

    /// Milliseconds a token with the experts of each block on `each` of sixteen devices, or hashed one by one, and how many
    /// devices a token asks for a block.
    fn token(each: Option<usize>, sigma: f64, expert_millis: f64, hedging: Hedging) -> (f64, f64) {
        let shape = fixtures::shape(24, 128, 8);
        let mut random = Random::new(7);
        let lenders = lenders(&mut random, 16, 24 * 128 * 100 / 16 * 3);
        let wanted: Vec<Wanted> =
            fixtures::keys(&shape).map(|expert| Wanted { expert, bytes: Bytes(100), replicas: 1 }).collect();
        let mut placed = match each {
            Some(each) => place(&wanted, each, &lenders),
            None => fixtures::place(&wanted, &lenders).unwrap(),
        };
        if each.is_some() {
            replicate(&shape, &mut placed, &lenders, |_, _| 2);
        } else {
            for (block, expert, peer) in repair(&shape, &placed, &lenders, |_, _| 2) {
                placed.get_mut(&(block, expert)).unwrap().push(peer);
            }
        }
        let hub = PeerId([0; 16]);
        let mut links = Links::default();
        let mut devices = vec![Device::declared(hub, Bytes(1 << 40), 1e9, 0.2)];
        for lender in &lenders {
            links.set_access(lender.peer, AccessLink::latency(1.0));
            links.set_spread(lender.peer, sigma);
            devices.push(Device::declared(lender.peer, Bytes(1 << 40), 1e5 / expert_millis, 0.5));
        }
        let layers = Layers::from_shape(&shape, 1, WireType::F32);
        let room = Room {
            shape: &shape,
            layers: &layers,
            devices: &devices,
            links: &links,
            coordinator: hub,
            sharing: Sharing::Experts,
            ends: Default::default(),
            replicas: potluck_plan::Pooling::REPLICAS,
            hedging,
            context: 1,
            overhead: Bytes::ZERO,
            wire: WireType::F32,
            expert_wire: WireType::F32,
            arithmetic: Arithmetic::Exact,
            epoch: PlanEpoch(1),
            effort: Effort::default(),
        };
        let remote = |block: BlockIndex| RemoteExperts {
            block,
            holders: shape
                .block_experts(block)
                .into_iter()
                .map(|expert| placed[&(block, expert)].iter().map(|peer| ExpertHolder::Peer(*peer)).collect())
                .collect(),
        };
        let mut stage = Stage::new(StageId(0), hub, shape.all_blocks());
        stage.remote = shape.all_blocks().iter().map(remote).collect();
        let prediction = predict(&room, &crate::placement::plan(&room, vec![stage]));
        let trips = &prediction.stages[0].experts;
        (prediction.token_millis, trips.iter().map(|trip| trip.others_asked).sum::<f64>() / trips.len() as f64)
    }

    /// The table of docs/planner.md: `cargo test -p potluck-planner --lib few_holders -- --nocapture`.
    #[test]
    fn few_holders_answer_sooner_where_answers_vary_and_later_where_they_compute_slowly() {
        let columns = [
            (0.0, 0.02, Hedging::Adaptive),
            (0.5, 0.02, Hedging::Adaptive),
            (0.5, 0.02, Hedging::Copies(2)),
            (0.5, 2.0, Hedging::Adaptive),
        ];
        let rows = [None, Some(8), Some(4), Some(2), Some(1)].map(|each| {
            let cells = columns.map(|(sigma, expert, hedging)| token(each, sigma, expert, hedging));
            let name = each.map_or("one by one".to_owned(), |each| each.to_string());
            let millis = cells.map(|(millis, _)| format!("{millis:.0}"));
            println!("| {name} | {:.1} | {} |", cells[0].1, millis.join(" | "));
            cells
        });
        let asked = rows.map(|row| row[0].1);
        assert!(asked[0] > 6.0 && asked[4] < 1.1, "{asked:?}");
        assert!(asked.windows(2).all(|pair| pair[1] < pair[0]), "fewer holders are asked: {asked:?}");
        let millis = |column: usize| rows.map(|row| row[column].0);
        assert!(millis(1)[3] < 0.9 * millis(1)[0], "two holders a block, where answers vary: {:?}", millis(1));
        assert!(millis(2)[3] < 0.9 * millis(2)[0], "and two are asked at once: {:?}", millis(2));
        assert!(millis(3)[4] > 1.05 * millis(3)[0], "one slow device computes eight experts: {:?}", millis(3));
        assert!((millis(0)[3] / millis(0)[0] - 1.0).abs() < 0.05, "where nothing varies: {:?}", millis(0));
    }

    #[test]
    fn the_next_copies_of_what_one_device_holds_lie_on_one_device() {
        let shape = fixtures::shape(16, 64, 6);
        let mut random = Random::new(11);
        let lenders = lenders(&mut random, 6, 1 << 40);
        let wanted: Vec<Wanted> =
            fixtures::keys(&shape).map(|expert| Wanted { expert, bytes: Bytes(100), replicas: 1 }).collect();
        let mut live = place(&wanted, 1, &lenders);
        for (block, expert, peer) in repair_together(&shape, &live, &lenders, |_, _| 2) {
            live.get_mut(&(block, expert)).unwrap().push(peer);
        }
        for block in shape.all_blocks().iter() {
            let holders = |(key, holders): (&ExpertKey, &Vec<PeerId>)| (key.0 == block).then(|| holders.clone());
            let pairs: std::collections::BTreeSet<_> = live.iter().filter_map(holders).collect();
            assert_eq!(pairs.len(), 1, "{block:?}: a block's experts lie on the same two devices: {pairs:?}");
        }
        // The first device leaves: its experts get their second copies again, and nothing else moves.
        let gone = lenders[0].peer;
        live.values_mut().for_each(|holders| holders.retain(|peer| *peer != gone));
        let lost = live.values().filter(|holders| holders.len() < 2).count();
        let loads = repair_together(&shape, &live, &lenders[1..], |_, _| 2);
        assert!(lost > 0, "the device held something");
        assert_eq!(loads.len(), lost, "as many are loaded as were lost");
        assert!(loads.iter().all(|(block, expert, peer)| !live[&(*block, *expert)].contains(peer)));
        assert_eq!(repair_together(&shape, &live, &[], |_, _| 2), [], "nobody has memory");
    }

    /// Devices load in parts: after each part the rest is placed anew.
    #[test]
    fn what_is_loaded_in_parts_lies_together_in_the_end() {
        for seed in 0..20 {
            let shape = fixtures::shape(4, 48, 4);
            let mut random = Random::new(seed);
            let lenders = lenders(&mut random, 6, 1 << 40);
            let (first, others) = lenders.split_first().unwrap();
            let mut live: Holders = fixtures::keys(&shape).map(|key| (key, vec![first.peer])).collect();
            let mut parts = 0;
            loop {
                let loads = repair_together(&shape, &live, others, |_, _| 3);
                if loads.is_empty() {
                    break;
                }
                let mut left: BTreeMap<PeerId, u32> = others.iter().map(|lender| (lender.peer, 20)).collect();
                for (block, expert, peer) in loads {
                    let left = left.get_mut(&peer).unwrap();
                    if *left > 0 {
                        *left -= 1;
                        live.get_mut(&(block, expert)).unwrap().push(peer);
                    }
                }
                parts += 1;
            }
            assert!(parts > 1, "seed {seed}: it was too much for one part");
            for block in shape.all_blocks().iter() {
                let alike: std::collections::BTreeSet<Vec<PeerId>> =
                    live.iter().filter(|(key, _)| key.0 == block).map(|(_, holders)| sorted(holders)).collect();
                assert_eq!(alike.len(), 1, "seed {seed}, {block:?}: three devices have it all: {alike:?}");
            }
        }
    }

    fn sorted(holders: &[PeerId]) -> Vec<PeerId> {
        let mut holders = holders.to_vec();
        holders.sort();
        holders
    }

    /// One holder more each time: it gets what lacks a copy, and nothing that is there moves.
    #[test]
    fn devices_that_come_one_by_one_get_whole_blocks() {
        for seed in 0..20 {
            let shape = fixtures::shape(6, 32, 4);
            let mut random = Random::new(seed);
            let lenders = lenders(&mut random, 6, 6 * 32 * 100);
            let mut live: Holders = fixtures::keys(&shape).map(|key| (key, vec![lenders[0].peer])).collect();
            for count in 2..=lenders.len() {
                let here: Vec<Lender> = lenders[1..count]
                    .iter()
                    .map(|lender| {
                        let held = live.values().filter(|holders| holders.contains(&lender.peer)).count() as u64;
                        Lender { free: lender.free.saturating_sub(Bytes(100 * held)), ..*lender }
                    })
                    .collect();
                let before = live.clone();
                for (block, expert, peer) in repair_together(&shape, &live, &here, |_, _| 4) {
                    live.get_mut(&(block, expert)).unwrap().push(peer);
                }
                let stays = |(key, holders): (&ExpertKey, &Vec<PeerId>)| live[key].starts_with(holders);
                assert!(before.iter().all(stays), "seed {seed}: nothing moves when the {count}th device comes");
            }
            let ranks: std::collections::BTreeSet<(BlockIndex, Vec<PeerId>)> =
                live.iter().map(|(key, holders)| (key.0, holders.clone())).collect();
            assert_eq!(ranks.len(), 6, "seed {seed}: the experts of each block lie on the same four devices");
            assert!(live.values().all(|holders| holders.len() == 4), "seed {seed}: each has four holders");
        }
    }

    #[test]
    fn a_block_lies_on_few_devices_within_their_memory_and_so_do_its_copies() {
        for seed in 0..40 {
            let mut random = Random::new(seed);
            let shape = fixtures::shape(16, 64, 6);
            let (count, each) = (4 + random.below(8), 1 + random.below(4));
            // Room for 2.2 times all experts, or for just them: then groups are split.
            let room = if seed % 2 == 0 { 2.2 } else { 1.01 };
            let free = (16.0 * 64.0 * 100.0 * room / count as f64) as u64 + 100;
            let lenders = lenders(&mut random, count, free);
            let wanted: Vec<Wanted> =
                fixtures::keys(&shape).map(|expert| Wanted { expert, bytes: Bytes(100), replicas: 1 }).collect();
            let mut placed = place(&wanted, each, &lenders);
            let left: Vec<Lender> = lenders
                .iter()
                .map(|lender| {
                    let held = placed.values().filter(|holders| holders.contains(&lender.peer)).count() as u64;
                    Lender { free: lender.free.saturating_sub(Bytes(100 * held)), ..*lender }
                })
                .collect();
            replicate(&shape, &mut placed, &left, |_, _| 2);
            assert_eq!(placed.len(), 16 * 64, "seed {seed}: every expert has a holder");
            for lender in &lenders {
                let held = placed.values().filter(|holders| holders.contains(&lender.peer)).count() as u64;
                assert!(100 * held <= lender.free.0, "seed {seed}: {held} experts in {}", lender.free);
            }
            for holders in placed.values() {
                assert!(holders.len() < 2 || holders[0] != holders[1], "seed {seed}: one device twice");
            }
            if room > 2.0 {
                let firsts = |block: u16| {
                    let own = placed.iter().filter(|((of, _), _)| of.0 == block).map(|(_, holders)| holders[0]);
                    own.collect::<std::collections::BTreeSet<_>>().len()
                };
                let mean = (0..16).map(firsts).sum::<usize>() as f64 / 16.0;
                assert!(mean <= each as f64 + 1.0, "seed {seed}: {mean} devices a block, {each} wanted");
            }
        }
    }
}
