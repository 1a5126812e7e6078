//! Experts and peers by number, and who holds what: a search places thousands of experts for each of dozens of plans, so
//! an expert's holders lie in one array, and a hash is taken once for all plans.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};

use potluck_plan::{BlockIndex, Bytes, ExpertId, PeerId};

use super::placement::{ExpertKey, Holders, Lender, draw, weighted};

/// Experts and peers, each in ascending order. They are named by their places here.
pub(super) struct Board {
    pub keys: Vec<ExpertKey>,
    bytes: Vec<Bytes>,
    peers: Vec<PeerId>,
    /// What is drawn for each expert and peer ([`draw`]), once it was asked for; no number before.
    draws: Vec<Cell<f64>>,
}

/// As [`Lender`], with the peer's number.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lending {
    pub number: u16,
    pub weight: f64,
    pub free: Bytes,
}

impl Board {
    pub fn new(experts: BTreeMap<ExpertKey, Bytes>, peers: BTreeSet<PeerId>) -> Self {
        let draws = vec![Cell::new(f64::NAN); experts.len() * peers.len()];
        let (keys, bytes) = experts.into_iter().unzip();
        Self { keys, bytes, peers: peers.into_iter().collect(), draws }
    }

    pub fn bytes(&self, expert: usize) -> Bytes {
        self.bytes[expert]
    }

    pub fn peer(&self, number: u16) -> PeerId {
        self.peers[usize::from(number)]
    }

    /// The number of a peer that is on the board.
    fn number(&self, peer: PeerId) -> Option<u16> {
        self.peers.binary_search(&peer).ok().map(|number| number as u16)
    }

    pub fn expert(&self, key: ExpertKey) -> Option<usize> {
        self.keys.binary_search(&key).ok()
    }

    /// The experts of a block.
    pub fn block(&self, block: BlockIndex) -> std::ops::Range<usize> {
        self.keys.partition_point(|key| key.0 < block)..self.keys.partition_point(|key| key.0 <= block)
    }

    /// All blocks that have experts here.
    pub fn blocks(&self) -> impl Iterator<Item = std::ops::Range<usize>> {
        let mut start = 0;
        self.keys.chunk_by(|a, b| a.0 == b.0).map(move |block| {
            let range = start..start + block.len();
            start = range.end;
            range
        })
    }

    /// These lenders, in their order.
    pub fn lending(&self, lenders: &[Lender]) -> Vec<Lending> {
        let lending = |lender: &Lender| {
            Some(Lending { number: self.number(lender.peer)?, weight: lender.weight, free: lender.free })
        };
        lenders.iter().filter_map(lending).collect()
    }

    /// As [`super::placement::score`].
    fn score(&self, expert: usize, lender: &Lending) -> f64 {
        weighted(lender.weight, || {
            let cell = &self.draws[expert * self.peers.len() + usize::from(lender.number)];
            if cell.get().is_nan() {
                let (block, expert) = self.keys[expert];
                cell.set(draw(block, expert, self.peer(lender.number)));
            }
            cell.get()
        })
    }

    /// The lender with the highest score for an expert that has memory for these bytes and is not among the holders; its
    /// memory is taken.
    pub fn next_holder(&self, expert: usize, bytes: Bytes, holders: &[u16], lenders: &mut [Lending]) -> Option<u16> {
        let mut best: Option<(f64, usize)> = None;
        for (at, lender) in lenders.iter().enumerate() {
            if lender.free < bytes || holders.contains(&lender.number) {
                continue;
            }
            let score = self.score(expert, lender);
            let is_best =
                best.is_none_or(|(most, other)| score > most || score == most && lender.number < lenders[other].number);
            if score > 0.0 && is_best {
                best = Some((score, at));
            }
        }
        let lender = &mut lenders[best?.1];
        lender.free = lender.free.saturating_sub(bytes);
        Some(lender.number)
    }
}

/// The holders of each expert of a [`Board`], in order of preference.
#[derive(Clone)]
pub(super) struct Roster {
    /// Most holders of an expert.
    most: usize,
    counts: Vec<u16>,
    holders: Vec<u16>,
}

impl Roster {
    /// Nobody holds anything, and no expert will get more than `most` holders.
    pub fn new(board: &Board, most: usize) -> Self {
        let (experts, most) = (board.keys.len(), most.min(board.peers.len()));
        Self { most, counts: vec![0; experts], holders: vec![0; experts * most] }
    }

    /// These holders of the board's experts, as far as they are on it, with room for `most` more of each.
    pub fn of(board: &Board, live: &Holders, most: usize) -> Self {
        let most = most.min(board.peers.len()) + live.values().map(Vec::len).max().unwrap_or(0);
        let experts = board.keys.len();
        let mut roster = Self { most, counts: vec![0; experts], holders: vec![0; experts * most] };
        for (key, peers) in live {
            let Some(expert) = board.expert(*key) else { continue };
            peers.iter().filter_map(|peer| board.number(*peer)).for_each(|number| roster.push(expert, number));
        }
        roster
    }

    pub fn holders(&self, expert: usize) -> &[u16] {
        &self.holders[expert * self.most..][..self.count(expert)]
    }

    pub fn count(&self, expert: usize) -> usize {
        usize::from(self.counts[expert])
    }

    pub fn push(&mut self, expert: usize, number: u16) {
        debug_assert!(self.count(expert) < self.most, "expert {expert} has {} holders already", self.most);
        let next = expert * self.most + self.count(expert);
        self.holders[next] = number;
        self.counts[expert] += 1;
    }

    /// The experts that have a holder.
    pub fn placed(&self) -> impl Iterator<Item = usize> {
        (0..self.counts.len()).filter(|expert| self.counts[*expert] > 0)
    }
}

/// A copy of an expert that a peer gets, by name.
pub(super) fn named(board: &Board, added: &[(usize, u16)]) -> Vec<(BlockIndex, ExpertId, PeerId)> {
    let name = |(expert, number): &(usize, u16)| (board.keys[*expert].0, board.keys[*expert].1, board.peer(*number));
    added.iter().map(name).collect()
}
