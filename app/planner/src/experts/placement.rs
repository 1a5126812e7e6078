//! Which devices hold an expert: weighted rendezvous hashing. Every device scores every expert by a hash, and the highest
//! scores hold it, so that a device that comes or goes moves its own share and nothing else. The ring of moex.txt 3.3
//! promises the same, without weights.

use std::collections::BTreeMap;

use potluck_plan::{BlockIndex, Bytes, ExpertId, PeerId};
use thiserror::Error;

use potluck_plan::random::mix;

use super::board::{Board, Lending, Roster};

/// An expert of a model.
pub type ExpertKey = (BlockIndex, ExpertId);

/// A device among which an expert's holders are chosen.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Candidate {
    /// Who.
    pub peer: PeerId,
    /// How much of the experts it gets, relative to the others. It is never chosen if this is not positive.
    pub weight: f64,
}

/// A device that lends memory for experts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Lender {
    /// Who.
    pub peer: PeerId,
    /// As [`Candidate::weight`].
    pub weight: f64,
    /// Bytes it has left for experts.
    pub free: Bytes,
}

/// Experts for which no device has memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("{experts} experts find no device with memory for them: {missing} are missing")]
pub struct Unplaced {
    /// How many.
    pub experts: usize,
    /// Their bytes.
    pub missing: Bytes,
}

/// Experts and their holders, the preferred one first.
pub type Holders = BTreeMap<ExpertKey, Vec<PeerId>>;

impl Lender {
    pub(crate) fn candidate(&self) -> Candidate {
        Candidate { peer: self.peer, weight: self.weight }
    }
}

/// The holders of an expert, the preferred one first: the candidates with the highest scores.
pub fn holders(block: BlockIndex, expert: ExpertId, candidates: &[Candidate], replicas: usize) -> Vec<PeerId> {
    let mut scored: Vec<(f64, PeerId)> = candidates
        .iter()
        .map(|candidate| (score((block, expert), candidate), candidate.peer))
        .filter(|(score, _)| *score > 0.0)
        .collect();
    scored.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
    scored.into_iter().take(replicas).map(|(_, peer)| peer).collect()
}

/// −weight / ln(u) with u from 0 to 1, by a hash of expert and peer. Of several candidates each has the highest with the
/// probability of its share of the weights.
pub(crate) fn score(expert: ExpertKey, candidate: &Candidate) -> f64 {
    weighted(candidate.weight, || draw(expert.0, expert.1, candidate.peer))
}

/// −weight / ln(u), or 0 without a weight.
pub(super) fn weighted(weight: f64, draw: impl FnOnce() -> f64) -> f64 {
    if weight > 0.0 && weight.is_finite() { -weight / draw() } else { 0.0 }
}

/// ln(u).
pub(super) fn draw(block: BlockIndex, expert: ExpertId, peer: PeerId) -> f64 {
    let peer = u128::from_le_bytes(peer.0);
    let expert = u64::from(block.0) << 16 | u64::from(expert.0);
    let hash = [peer as u64, (peer >> 64) as u64].into_iter().fold(mix(expert), |hash, part| mix(hash ^ part));
    let unit = ((hash >> 11) as f64 + 0.5) / (1u64 << 53) as f64;
    unit.ln()
}

/// A further holder for each of these experts.
///
/// # Errors
/// [`Unplaced`] if some expert has none.
pub(super) fn first_holders(
    board: &Board,
    roster: &mut Roster,
    experts: impl Iterator<Item = usize>,
    lenders: &mut [Lending],
) -> Result<(), Unplaced> {
    let mut unplaced = Unplaced { experts: 0, missing: Bytes::ZERO };
    for expert in experts {
        match board.next_holder(expert, board.bytes(expert), roster.holders(expert), lenders) {
            Some(number) => roster.push(expert, number),
            None => {
                unplaced.experts += 1;
                unplaced.missing = unplaced.missing.saturating_add(board.bytes(expert));
            }
        }
    }
    if unplaced.experts == 0 { Ok(()) } else { Err(unplaced) }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use super::*;
    use crate::experts::fixtures::{Wanted, place};
    use potluck_plan::random::Random;

    fn peer(random: &mut Random) -> PeerId {
        let (low, high) = (random.next_u64(), random.next_u64());
        PeerId((u128::from(high) << 64 | u128::from(low)).to_le_bytes())
    }

    fn experts(blocks: u16, count: u16) -> impl Iterator<Item = ExpertKey> {
        (0..blocks).flat_map(move |block| (0..count).map(move |expert| (BlockIndex(block), ExpertId(expert))))
    }

    fn equal(random: &mut Random, count: usize) -> Vec<Candidate> {
        (0..count).map(|_| Candidate { peer: peer(random), weight: 1.0 }).collect()
    }

    /// Copies that are elsewhere among `after`, as a share of all copies.
    fn moved(before: &[Candidate], after: &[Candidate], replicas: usize) -> f64 {
        let (mut moved, mut all) = (0, 0);
        for (block, expert) in experts(48, 128) {
            let was = holders(block, expert, before, replicas);
            let is = holders(block, expert, after, replicas);
            all += is.len();
            moved += is.iter().filter(|peer| !was.contains(peer)).count();
        }
        moved as f64 / all as f64
    }

    #[test]
    fn a_join_moves_its_share_and_a_leave_only_its_own() {
        for (seed, replicas) in (0..12).flat_map(|seed| [(seed, 1), (seed, 2)]) {
            let mut random = Random::new(seed);
            let count = 4 + random.below(12);
            let after = equal(&mut random, count);
            let before = &after[..count - 1];
            let share = moved(before, &after, replicas);
            assert!(share <= 1.2 / count as f64, "seed {seed}: the {count}th device moves {share} of the copies");
            for (block, expert) in experts(48, 128) {
                let (with, without) =
                    (holders(block, expert, &after, replicas), holders(block, expert, before, replicas));
                let stay: Vec<PeerId> = with.into_iter().filter(|peer| *peer != after[count - 1].peer).collect();
                assert_eq!(without[..stay.len()], stay[..], "seed {seed}: those that stay keep theirs, in their order");
            }
        }
    }

    #[test]
    fn shares_follow_the_weights() {
        let mut random = Random::new(5);
        let mut candidates = equal(&mut random, 4);
        candidates[0].weight = 3.0;
        candidates[3].weight = 0.0;
        let mut counts = BTreeMap::<PeerId, usize>::new();
        for (block, expert) in experts(48, 128) {
            *counts.entry(holders(block, expert, &candidates, 1)[0]).or_default() += 1;
        }
        let share = |index: usize| counts.get(&candidates[index].peer).map_or(0.0, |count| *count as f64 / 6144.0);
        assert!((share(0) - 0.6).abs() < 0.03, "three of five: {}", share(0));
        assert!((share(1) - 0.2).abs() < 0.03, "one of five: {}", share(1));
        assert_eq!(share(3), 0.0, "a weight of nothing");
    }

    #[test]
    fn memory_is_never_exceeded_and_every_expert_has_a_holder_or_is_missing() {
        for seed in 0..300 {
            let mut random = Random::new(seed);
            let wanted: Vec<Wanted> = experts(1 + random.below(4) as u16, 1 + random.below(40) as u16)
                .map(|expert| Wanted {
                    expert,
                    bytes: Bytes(1 + u64::from(expert.0.0) * 7),
                    replicas: 1 + random.below(3),
                })
                .collect();
            let needed: u64 = wanted.iter().map(|wanted| wanted.bytes.0).sum();
            let lenders: Vec<Lender> = (0..1 + random.below(9))
                .map(|_| Lender {
                    peer: peer(&mut random),
                    weight: random.unit(),
                    free: Bytes(random.below(needed as usize) as u64),
                })
                .collect();
            match place(&wanted, &lenders) {
                Ok(placed) => {
                    for lender in &lenders {
                        let holds = |wanted: &&Wanted| placed[&wanted.expert].contains(&lender.peer);
                        let held: u64 = wanted.iter().filter(holds).map(|wanted| wanted.bytes.0).sum();
                        assert!(held <= lender.free.0, "seed {seed}: {held} of {}", lender.free);
                    }
                    for wanted in &wanted {
                        let holders = &placed[&wanted.expert];
                        let mut distinct = holders.clone();
                        distinct.sort();
                        distinct.dedup();
                        assert_eq!(distinct.len(), holders.len(), "seed {seed}: nobody holds an expert twice");
                        assert!((1..=wanted.replicas).contains(&holders.len()), "seed {seed}: {wanted:?} {holders:?}");
                    }
                }
                Err(unplaced) => {
                    let free: u64 = lenders.iter().map(|lender| lender.free.0).sum();
                    assert!(unplaced.missing.0 > 0 && unplaced.missing.0 <= needed, "seed {seed}: {unplaced}");
                    let largest = wanted.iter().map(|wanted| wanted.bytes.0).max().unwrap_or(0);
                    let lost = largest * lenders.len() as u64;
                    assert!(free < needed + lost, "seed {seed}: {free} would do for {needed}");
                }
            }
        }
    }

    #[test]
    fn a_device_may_hold_one_single_expert() {
        let mut random = Random::new(1);
        let large = Lender { peer: peer(&mut random), weight: 1.0, free: Bytes(500) };
        let small = Lender { peer: peer(&mut random), weight: 1.0, free: Bytes(100) };
        let wanted: Vec<Wanted> =
            experts(1, 6).map(|expert| Wanted { expert, bytes: Bytes(100), replicas: 1 }).collect();
        let placed = place(&wanted, &[large, small]).unwrap();
        assert_eq!(placed.values().filter(|holders| holders.contains(&small.peer)).count(), 1);
        let sentence = place(&wanted, &[large]).unwrap_err().to_string();
        assert_eq!(sentence, "1 experts find no device with memory for them: 100 bytes are missing");
    }

    #[test]
    fn experts_that_want_more_holders_get_them_first() {
        let mut random = Random::new(2);
        let lenders = [0; 3].map(|_| Lender { peer: peer(&mut random), weight: 1.0, free: Bytes(3) });
        // Nine places: one for each of six experts, and three more.
        let wanted: Vec<Wanted> = experts(1, 6)
            .map(|expert| Wanted { expert, bytes: Bytes(1), replicas: if expert.1.0 >= 3 { 2 } else { 1 } })
            .collect();
        let placed = place(&wanted, &lenders).unwrap();
        let counts: Vec<usize> = placed.values().map(Vec::len).collect();
        assert_eq!(counts[..3], [1; 3]);
        assert!(counts[3..].iter().sum::<usize>() >= 5, "{counts:?}");
    }
}
