//! Changes of residency while a plan runs: who loads what when a device left, and what a newcomer takes over. Both move
//! only what they must.

use std::cmp::Reverse;

use potluck_plan::{BlockIndex, Bytes, ExpertId, ModelShape, PeerId};

use super::board::{Board, Lending, Roster, named};
use super::placement::{Candidate, ExpertKey, Holders, Lender, score};

/// How many times its even share of all copies a newcomer takes over at most.
pub(super) const SHARE: f64 = 1.2;

/// A copy of an expert that moves to a newcomer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Move {
    /// Which expert.
    pub expert: ExpertKey,
    /// Who may drop it, once the newcomer has it and everybody knows.
    pub from: PeerId,
}

/// What to load so that every expert has its replicas again, in order of importance: experts without any holder first,
/// then those that lack most. `live` lists every expert of the pool, also those that nobody holds now; `replicas` says
/// how many holders each shall have. Experts that nobody has memory for are left out.
pub fn repair(
    shape: &ModelShape,
    live: &Holders,
    lenders: &[Lender],
    replicas: impl Fn(BlockIndex, ExpertId) -> usize,
) -> Vec<(BlockIndex, ExpertId, PeerId)> {
    let board = board(shape, live, lenders);
    let wanted = |expert: usize| replicas(board.keys[expert].0, board.keys[expert].1).max(1);
    let most = (0..board.keys.len()).map(wanted).max().unwrap_or(0);
    let mut roster = Roster::of(&board, live, most);
    named(&board, &repair_roster(&board, &mut roster, &mut board.lending(lenders), wanted))
}

/// The experts that live holders have, and everybody who holds or lends.
pub(super) fn board(shape: &ModelShape, live: &Holders, lenders: &[Lender]) -> Board {
    let experts = live.keys().map(|key| (*key, expert_bytes(shape, key.0))).collect();
    let lending = lenders.iter().map(|lender| lender.peer);
    Board::new(experts, live.values().flatten().copied().chain(lending).collect())
}

/// See [`repair`]. Nothing is missing of an expert of which no holder is `wanted`.
pub(super) fn repair_roster(
    board: &Board,
    roster: &mut Roster,
    lenders: &mut [Lending],
    wanted: impl Fn(usize) -> usize,
) -> Vec<(usize, u16)> {
    let lacks = |expert: usize| {
        let (has, wanted) = (roster.count(expert), wanted(expert));
        (has < wanted).then_some((has, Reverse(wanted), expert))
    };
    let mut lacking: Vec<_> = (0..board.keys.len()).filter_map(lacks).collect();
    let mut loads = Vec::new();
    while !lacking.is_empty() {
        lacking.sort_unstable();
        lacking.retain_mut(|(has, Reverse(wanted), expert)| {
            let next = board.next_holder(*expert, board.bytes(*expert), roster.holders(*expert), lenders);
            if let Some(number) = next {
                loads.push((*expert, number));
                roster.push(*expert, number);
                *has += 1;
            }
            next.is_some() && *has < *wanted
        });
    }
    loads
}

/// What a newcomer takes over from those that hold experts now, the clearest cases first: an expert moves if the
/// newcomer's score is higher than that of the holder with the lowest. It gets at most its share of all copies by weight, and at
/// most [`SHARE`] times what each device would have if all were equal. Experts of a block that all have the same holders move together, so that
/// its tokens still ask one device; if that is too much, some of one block move.
pub fn join(shape: &ModelShape, live: &Holders, holding: &[Candidate], newcomer: &Lender) -> Vec<Move> {
    let new = newcomer.candidate();
    let all: f64 = holding.iter().chain([&new]).map(|candidate| candidate.weight.max(0.0)).sum();
    let copies: usize = live.values().map(Vec::len).sum();
    let even = copies as f64 / (holding.len() + 1) as f64;
    let held = live.values().filter(|holders| holders.contains(&newcomer.peer)).count();
    let most = ((copies as f64 * new.weight / all).min(SHARE * even) as usize).saturating_sub(held);
    let score_of = |key: ExpertKey, peer: PeerId| {
        holding.iter().find(|candidate| candidate.peer == peer).map_or(0.0, |candidate| score(key, candidate))
    };
    let gain = |(keys, holders): (Vec<ExpertKey>, &Vec<PeerId>)| {
        let key = *keys.first()?;
        let lowest = holders.iter().map(|peer| (score_of(key, *peer), *peer)).min_by(|a, b| a.0.total_cmp(&b.0))?;
        (!holders.contains(&newcomer.peer)).then(|| (score(key, &new) / lowest.0, keys, lowest.1))
    };
    let mut gains: Vec<(f64, Vec<ExpertKey>, PeerId)> = together(live).into_iter().filter_map(gain).collect();
    gains.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
    let (mut free, mut moves) = (newcomer.free, Vec::new());
    let mut take = |keys: &[ExpertKey], from: PeerId, moves: &mut Vec<Move>| {
        let bytes: Bytes = keys.iter().map(|key| expert_bytes(shape, key.0)).sum();
        if bytes <= free && moves.len() + keys.len() <= most {
            free = free.saturating_sub(bytes);
            moves.extend(keys.iter().map(|expert| Move { expert: *expert, from }));
        }
    };
    gains.iter().filter(|(gain, ..)| *gain > 1.0).for_each(|(_, keys, from)| take(keys, *from, &mut moves));
    // Of few blocks, the newcomer may have the higher score of none.
    let mut blocks = gains.iter().filter(|(gain, keys, _)| *gain > 1.0 || keys.len() > 1);
    if let (true, Some((_, keys, from))) = (moves.is_empty(), blocks.next()) {
        keys.iter().for_each(|key| take(&[*key], *from, &mut moves));
    }
    moves
}

/// The experts by what moves together: all of a block if they have the same holders, else each one.
fn together(live: &Holders) -> Vec<(Vec<ExpertKey>, &Vec<PeerId>)> {
    let all: Vec<(&ExpertKey, &Vec<PeerId>)> = live.iter().collect();
    let blocks = all.chunk_by(|a, b| a.0.0 == b.0.0);
    let groups = blocks.flat_map(|block| {
        let size = if block.windows(2).all(|pair| pair[0].1 == pair[1].1) { block.len() } else { 1 };
        block.chunks(size)
    });
    groups.map(|group| (group.iter().map(|(key, _)| **key).collect(), group[0].1)).collect()
}

fn expert_bytes(shape: &ModelShape, block: BlockIndex) -> Bytes {
    shape.blocks.get(usize::from(block.0)).map_or(Bytes::ZERO, potluck_plan::BlockShape::expert_bytes)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use super::*;
    use crate::experts::fixtures::{self, Wanted, place};
    use potluck_plan::random::Random;

    /// Sixteen blocks of 64 experts of 100 bytes on devices with room for `room` times all of them.
    fn pool(seed: u64, devices: usize, room: f64, replicas: usize) -> (ModelShape, Vec<Lender>, Holders) {
        let shape = fixtures::shape(16, 64, 6);
        let mut random = Random::new(seed);
        let free = Bytes((16.0 * 64.0 * 100.0 * room / devices as f64) as u64);
        let lenders: Vec<Lender> = (0..devices)
            .map(|_| Lender {
                peer: PeerId(random.next_u64().to_le_bytes().repeat(2).try_into().unwrap()),
                weight: 1.0,
                free,
            })
            .collect();
        let wanted: Vec<Wanted> =
            fixtures::keys(&shape).map(|expert| Wanted { expert, bytes: Bytes(100), replicas }).collect();
        let live = place(&wanted, &lenders).unwrap();
        (shape, lenders, live)
    }

    /// What is left of the memory.
    fn left(lenders: &[Lender], live: &Holders) -> Vec<Lender> {
        let held = |peer| 100 * live.values().filter(|holders| holders.contains(&peer)).count() as u64;
        lenders
            .iter()
            .map(|lender| Lender { free: lender.free.saturating_sub(Bytes(held(lender.peer))), ..*lender })
            .collect()
    }

    #[test]
    fn a_leave_moves_none_but_its_own() {
        for (seed, room) in (0..20).flat_map(|seed| [(seed, 2.4), (seed, 6.0)]) {
            let (shape, lenders, mut live) = pool(seed, 8, room, 2);
            let gone = lenders[0].peer;
            let own: Vec<ExpertKey> =
                live.iter().filter(|(_, holders)| holders.contains(&gone)).map(|(key, _)| *key).collect();
            live.values_mut().for_each(|holders| holders.retain(|peer| *peer != gone));
            let loads = repair(&shape, &live, &left(&lenders[1..], &live), |_, _| 2);
            assert_eq!(loads.len(), own.len(), "seed {seed}: as many are loaded as were lost");
            assert!(loads.iter().all(|(block, expert, _)| own.contains(&(*block, *expert))), "seed {seed}");
            for (block, expert, peer) in loads {
                let holders = live.get_mut(&(block, expert)).unwrap();
                assert!(!holders.contains(&peer), "seed {seed}: {peer:?} has it already");
                holders.push(peer);
            }
            assert!(live.values().all(|holders| holders.len() == 2), "seed {seed}");
            for lender in &lenders[1..] {
                let held = 100 * live.values().filter(|holders| holders.contains(&lender.peer)).count() as u64;
                assert!(held <= lender.free.0, "seed {seed}: {held} of {}", lender.free);
            }
        }
    }

    #[test]
    fn experts_without_a_holder_come_first() {
        let (shape, lenders, mut live) = pool(3, 4, 3.0, 2);
        let [lost, alone] = [(BlockIndex(9), ExpertId(7)), (BlockIndex(0), ExpertId(0))];
        live.get_mut(&lost).unwrap().clear();
        live.get_mut(&alone).unwrap().truncate(1);
        let loads = repair(&shape, &live, &left(&lenders, &live), |_, _| 2);
        let keys: Vec<ExpertKey> = loads.iter().map(|(block, expert, _)| (*block, *expert)).collect();
        assert_eq!(keys, [lost, alone, lost], "the second copy of the lost one beside all other second copies");
        assert_eq!(repair(&shape, &live, &[], |_, _| 2), [], "nobody has memory");
    }

    #[test]
    fn a_join_moves_at_most_its_share() {
        for (seed, room) in (0..20).flat_map(|seed| [(seed, 2.01f64), (seed, 2.4), (seed, 6.0)]) {
            let count = 3 + seed as usize % 10;
            let (shape, lenders, live) = pool(seed, count, room.max(2.0 + 0.03 * count as f64), 2);
            let holding: Vec<Candidate> = lenders.iter().map(Lender::candidate).collect();
            let newcomer = Lender { peer: PeerId([77; 16]), weight: 1.0, free: Bytes(1 << 40) };
            let moves = join(&shape, &live, &holding, &newcomer);
            let (share, n) = (moves.len() as f64 / 2048.0, count as f64 + 1.0);
            assert!(share <= 1.2 / n, "seed {seed}: {share} of the copies with {n} devices");
            assert!(share >= 0.8 / n, "seed {seed}: {share} of the copies with {n} devices");
            let small = Lender { free: Bytes(250), ..newcomer };
            assert_eq!(join(&shape, &live, &holding, &small).len(), 2, "room for two experts");
        }
    }
}
