//! The search for the best partition of a chain of layers over workers: exact where all sets of workers can be
//! enumerated, simulated annealing with an exact polish in larger rooms.

mod anneal;
mod chain;
mod exact;
mod pauses;
mod program;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

pub(crate) use chain::Chain;
pub(crate) use pauses::{OperatingPoint, steady_millis};
pub(crate) use program::{Participation, Partition, Program, Segment};

use crate::{Effort, Room, Sharing};
use potluck_plan::random::Random;

/// Most steps of the bisection over the slowest stage's time.
const BISECTIONS: u64 = 40;

/// The best partition of all layers for what the room wants, or `None` if they do not fit.
pub(crate) fn best_partition(room: &Room<'_>, chain: &Chain) -> Option<Partition> {
    match room.sharing {
        Sharing::Fastest | Sharing::Experts => fastest(room, chain),
        Sharing::Everyone => everyone(room, chain),
    }
}

/// The partition with the least milliseconds per token.
fn fastest(room: &Room<'_>, chain: &Chain) -> Option<Partition> {
    let workers: Vec<usize> = order(room, chain);
    if !chain.pauses() {
        return cheapest(room, chain, &workers, None, room.effort.steps);
    }
    let program = Program::new(chain, None);
    let steps = room.effort.steps / pauses::ROUNDS;
    pauses::rounds(
        &program,
        |partition| pauses::steady_millis(&program, partition),
        |point| cheapest(room, chain, &workers, point, steps),
    )
}

/// The same, with pauses counted at an operating point.
fn cheapest(
    room: &Room<'_>,
    chain: &Chain,
    workers: &[usize],
    point: Option<&OperatingPoint>,
    steps: u64,
) -> Option<Partition> {
    Search::new(room, chain, workers.to_vec(), Participation::Any, steps).at(point).best(None)
}

/// As many devices as possible take part, the fastest first. The time of the slowest stage is minimized, then the sum.
/// Where the fastest ones do not have the memory together, those that do are found without them.
fn everyone(room: &Room<'_>, chain: &Chain) -> Option<Partition> {
    let mut order = order(room, chain);
    let program = Program::new(chain, None);
    let last = chain.layers - usize::from(chain.ends.1);
    let takes_one = |worker: &usize| (1..last).any(|block| program.can_take(*worker, block, block + 1));
    order.retain(takes_one);
    let max = order.len().min(room.shape.blocks.len());
    let rounds = if chain.pauses() { pauses::ROUNDS } else { 1 };
    let steps = room.effort.steps / BISECTIONS / rounds;
    let evenest = (1..=max).rev().find_map(|count| {
        let evenest = |point: Option<&OperatingPoint>| evenest(room, chain, &order[..count], point, steps);
        if rounds == 1 {
            return evenest(None);
        }
        pauses::rounds(&program, |partition| pauses::slowest(&program, partition), evenest)
    });
    evenest.or_else(|| fastest(room, chain))
}

/// All of these workers take part. Bisects the bound on a stage's time, down to a relative error of 1e-9.
fn evenest(
    room: &Room<'_>,
    chain: &Chain,
    workers: &[usize],
    point: Option<&OperatingPoint>,
    steps: u64,
) -> Option<Partition> {
    let mut search = Search::new(room, chain, workers.to_vec(), Participation::All, steps).at(point);
    let mut best = search.best(None)?;
    let (mut low, mut high) = (0.0, search.largest(&best, Program::token_millis));
    for _ in 0..BISECTIONS {
        if high - low <= 1e-9 * high {
            break;
        }
        let middle = (low + high) / 2.0;
        match search.best(Some(middle)) {
            Some(partition) => {
                high = search.largest(&partition, Program::token_millis);
                best = partition;
            }
            None => low = middle,
        }
    }
    Some(best)
}

/// The coordinator first, because its hop is free, then from fast to slow.
fn order(room: &Room<'_>, chain: &Chain) -> Vec<usize> {
    let mut order: Vec<usize> = (0..chain.workers.len()).collect();
    let key = |worker: usize| (chain.workers[worker].peer != room.coordinator, chain.workers[worker].peer);
    let layer = |worker: usize| chain.workers[worker].cost[chain.layers];
    order.sort_by(|a, b| key(*a).0.cmp(&key(*b).0).then(layer(*a).total_cmp(&layer(*b))).then(key(*a).cmp(&key(*b))));
    order
}

/// A search that can be repeated under different bounds on a stage's time.
pub(crate) struct Search<'a> {
    chain: &'a Chain,
    classes: Vec<Vec<usize>>,
    order: Vec<usize>,
    participation: Participation,
    steps: u64,
    seed: u64,
    /// The cost of pauses is looked up for each stage, instead of one factor per worker.
    paused: bool,
    program: Program<'a>,
}

impl<'a> Search<'a> {
    pub fn new(room: &Room<'_>, chain: &'a Chain, order: Vec<usize>, participation: Participation, steps: u64) -> Self {
        let all = chain.classes();
        let of_order = |class: &Vec<usize>| class.iter().copied().filter(|worker| order.contains(worker)).collect();
        let classes = all.iter().map(of_order).filter(|class: &Vec<usize>| !class.is_empty()).collect();
        let Effort { seed, .. } = room.effort;
        Self { chain, classes, order, participation, steps, seed, paused: false, program: Program::new(chain, None) }
    }

    /// Counts pauses as in a token of this point: stage by stage where the search over sets has the steps for it.
    #[must_use]
    fn at(mut self, point: Option<&OperatingPoint>) -> Self {
        if let Some(point) = point {
            self.paused = exact::Sets::new(&self.classes, self.chain, self.steps, true).is_some();
            self.program.set_point(point, self.paused);
        }
        self
    }

    /// The largest of a value over the stages of a partition.
    fn largest(&self, partition: &Partition, value: impl Fn(&Program<'a>, usize, usize, usize) -> f64) -> f64 {
        partition
            .segments
            .iter()
            .map(|segment| value(&self.program, segment.worker, segment.start, segment.end))
            .fold(0.0, f64::max)
    }

    pub fn best(&mut self, limit: Option<f64>) -> Option<Partition> {
        self.program.set_limit(limit);
        self.program.steps = 0;
        let first = self.program.partition(&self.order, self.participation);
        if let Some(sets) = exact::Sets::new(&self.classes, self.chain, self.steps, self.paused) {
            return exact::search(&mut self.program, &sets, self.participation, above(&first));
        }
        let found = self.improve();
        let found = cheaper(first, found);
        if self.participation == Participation::Any { self.polish(found) } else { found }
    }

    /// Annealing from the given order. In rooms where the whole schedule would take too long, half of the steps go to
    /// random orders first, and annealing starts from the best of them.
    fn improve(&mut self) -> Option<Partition> {
        let mut random = Random::new(self.seed);
        let mut order = self.order.clone();
        let mut best = None;
        let once = self.program.steps.max(1);
        let budget = self.steps.saturating_sub(self.polishing());
        if once.saturating_mul(1_000) > budget {
            let mut tried = order.clone();
            while self.program.steps + once < budget / 2 {
                random.shuffle(&mut tried);
                let partition = self.program.partition(&tried, self.participation);
                if millis(&partition) < millis(&best) {
                    best = partition;
                    order.copy_from_slice(&tried);
                }
            }
        }
        let left = budget.saturating_sub(self.program.steps);
        let annealed = anneal::anneal(&mut self.program, &mut order, self.participation, &mut random, left);
        cheaper(best, annealed)
    }

    /// Steps reserved for the polish.
    fn polishing(&self) -> u64 {
        self.steps / 3
    }

    /// The exact search over the workers of a partition and as many of the most promising others as the steps allow.
    fn polish(&mut self, found: Option<Partition>) -> Option<Partition> {
        let partition = found?;
        let used: BTreeSet<usize> = partition.segments.iter().map(|segment| segment.worker).collect();
        let mut others: Vec<usize> = self.order.iter().copied().filter(|worker| !used.contains(worker)).collect();
        others.sort_by(|a, b| self.millis_a_layer(*a).total_cmp(&self.millis_a_layer(*b)));
        let mut workers = used;
        let mut classes = self.among(&workers);
        for other in others {
            workers.insert(other);
            let larger = self.among(&workers);
            if exact::Sets::new(&larger, self.chain, self.polishing(), self.paused).is_none() {
                break;
            }
            classes = larger;
        }
        let polished = exact::Sets::new(&classes, self.chain, self.polishing(), self.paused)
            .and_then(|sets| exact::search(&mut self.program, &sets, self.participation, partition.millis));
        cheaper(Some(partition), polished)
    }

    fn among(&self, workers: &BTreeSet<usize>) -> Vec<Vec<usize>> {
        let some = |class: &Vec<usize>| class.iter().copied().filter(|worker| workers.contains(worker)).collect();
        self.classes.iter().map(some).filter(|class: &Vec<usize>| !class.is_empty()).collect()
    }

    /// Milliseconds per layer, messages included, if the worker takes as many layers as fit.
    fn millis_a_layer(&self, worker: usize) -> f64 {
        let (layers, last) = (self.chain.layers, self.chain.layers - 1);
        let longest = (1..layers).filter(|end| self.program.can_take(worker, 1, *end)).max();
        let Some(end) = longest else { return f64::INFINITY };
        let messages = self.chain.up(worker, last) + self.chain.down(worker, last);
        (messages + self.program.token_millis(worker, 1, end)) / (end - 1) as f64
    }
}

fn millis(partition: &Option<Partition>) -> f64 {
    partition.as_ref().map_or(f64::INFINITY, |partition| partition.millis)
}

/// An upper bound that a partition of the same cost still stays below.
fn above(partition: &Option<Partition>) -> f64 {
    partition.as_ref().map_or(f64::INFINITY, |partition| partition.millis * (1.0 + 1e-12) + 1e-9)
}

fn cheaper(a: Option<Partition>, b: Option<Partition>) -> Option<Partition> {
    if millis(&b) < millis(&a) { b } else { a }
}
