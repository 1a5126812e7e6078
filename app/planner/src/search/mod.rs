//! The search for the best cut of the layers: exact where sets can be counted, annealing and a polish above.

mod anneal;
mod chain;
mod exact;
mod pauses;
mod program;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

pub(crate) use chain::Chain;
pub(crate) use pauses::{Pace, settled};
pub(crate) use program::{Cap, Cut, Part, Program, Using};

use crate::random::Random;
use crate::{Effort, Room, Sharing};

/// Times that a search is repeated under tighter and tighter caps, at most.
const CAPS: u64 = 40;

/// The best cut of all layers for what the room wants, or `None` if they do not fit.
pub(crate) fn best_cut(room: &Room<'_>, chain: &Chain) -> Option<Cut> {
    match room.sharing {
        Sharing::Fastest => fastest(room, chain),
        Sharing::Everyone => everyone(room, chain),
    }
}

/// Least milliseconds a token.
fn fastest(room: &Room<'_>, chain: &Chain) -> Option<Cut> {
    let seats: Vec<usize> = order(room, chain);
    if !chain.pauses() {
        return cheapest(room, chain, &seats, None, room.effort.steps);
    }
    let program = Program::new(chain, Cap::None);
    let steps = room.effort.steps / pauses::ROUNDS;
    pauses::rounds(&program, |cut| pauses::settled(&program, cut), |pace| cheapest(room, chain, &seats, pace, steps))
}

/// Least milliseconds a token at a pace.
fn cheapest(room: &Room<'_>, chain: &Chain, seats: &[usize], pace: Option<&Pace>, steps: u64) -> Option<Cut> {
    Search::new(room, chain, seats.to_vec(), Using::Any, steps).at(pace).best(Cap::None)
}

/// As many devices as can take part, from the fast end; the slowest stage is made as quick as can be, then the sum.
fn everyone(room: &Room<'_>, chain: &Chain) -> Option<Cut> {
    let order = order(room, chain);
    let most = order.len().min(room.shape.blocks.len());
    let rounds = if chain.pauses() { pauses::ROUNDS } else { 1 };
    let steps = room.effort.steps / CAPS / rounds;
    (1..=most).rev().find_map(|count| {
        let evenest = |pace: Option<&Pace>| evenest(room, chain, &order[..count], pace, steps);
        if rounds == 1 {
            return evenest(None);
        }
        let program = Program::new(chain, Cap::None);
        pauses::rounds(&program, |cut| pauses::slowest(&program, cut), evenest)
    })
}

/// Everyone of these takes part, and the slowest stage is as quick as can be.
fn evenest(room: &Room<'_>, chain: &Chain, seats: &[usize], pace: Option<&Pace>, steps: u64) -> Option<Cut> {
    let mut search = Search::new(room, chain, seats.to_vec(), Using::All, steps).at(pace);
    let mut best = search.best(Cap::None)?;
    let (mut low, mut high) = (0.0, search.largest(&best, Program::token_millis));
    for _ in 0..CAPS {
        if high - low <= 1e-9 * high {
            break;
        }
        let middle = (low + high) / 2.0;
        match search.best(Cap::Stage(middle)) {
            Some(cut) => {
                high = search.largest(&cut, Program::token_millis);
                best = cut;
            }
            None => low = middle,
        }
    }
    Some(best)
}

/// The coordinator first (its hop is free), then from fast to slow.
fn order(room: &Room<'_>, chain: &Chain) -> Vec<usize> {
    let mut order: Vec<usize> = (0..chain.seats.len()).collect();
    let key = |seat: usize| (chain.seats[seat].peer != room.coordinator, chain.seats[seat].peer);
    let layer = |seat: usize| chain.seats[seat].cost[chain.layers];
    order.sort_by(|a, b| key(*a).0.cmp(&key(*b).0).then(layer(*a).total_cmp(&layer(*b))).then(key(*a).cmp(&key(*b))));
    order
}

/// One search that is repeated under different caps.
pub(crate) struct Search<'a> {
    chain: &'a Chain,
    classes: Vec<Vec<usize>>,
    order: Vec<usize>,
    using: Using,
    steps: u64,
    seed: u64,
    /// What pauses cost is looked up for each stage.
    paused: bool,
    program: Program<'a>,
}

impl<'a> Search<'a> {
    pub fn new(room: &Room<'_>, chain: &'a Chain, order: Vec<usize>, using: Using, steps: u64) -> Self {
        let all = chain.classes(room);
        let of_order = |class: &Vec<usize>| class.iter().copied().filter(|seat| order.contains(seat)).collect();
        let classes = all.iter().map(of_order).filter(|class: &Vec<usize>| !class.is_empty()).collect();
        let Effort { seed, .. } = room.effort;
        Self { chain, classes, order, using, steps, seed, paused: false, program: Program::new(chain, Cap::None) }
    }

    /// Counts pauses as in a token of this pace: stage by stage where the search over sets has the steps for it.
    #[must_use]
    fn at(mut self, pace: Option<&Pace>) -> Self {
        if let Some(pace) = pace {
            self.paused = exact::Sets::new(&self.classes, self.chain, self.steps, true).is_some();
            self.program.set_pace(pace, self.paused);
        }
        self
    }

    /// The largest of a value over a cut's stages.
    fn largest(&self, cut: &Cut, value: impl Fn(&Program<'a>, usize, usize, usize) -> f64) -> f64 {
        cut.parts.iter().map(|part| value(&self.program, part.seat, part.start, part.end)).fold(0.0, f64::max)
    }

    pub fn best(&mut self, cap: Cap) -> Option<Cut> {
        self.program.set_cap(cap);
        self.program.steps = 0;
        let first = self.program.cut(&self.order, self.using);
        if let Some(sets) = exact::Sets::new(&self.classes, self.chain, self.steps, self.paused) {
            return exact::search(&mut self.program, &sets, self.using, above(&first));
        }
        let found = self.improve();
        let found = cheaper(first, found);
        if self.using == Using::Any { self.polish(found) } else { found }
    }

    /// Annealing from the order as it is; in rooms where that would take too long, from the best of random orders.
    fn improve(&mut self) -> Option<Cut> {
        let mut random = Random::new(self.seed);
        let mut order = self.order.clone();
        let mut best = None;
        let once = self.program.steps.max(1);
        let budget = self.steps.saturating_sub(self.polishing());
        if once.saturating_mul(1_000) > budget {
            let mut tried = order.clone();
            while self.program.steps + once < budget / 2 {
                random.shuffle(&mut tried);
                let cut = self.program.cut(&tried, self.using);
                if millis(&cut) < millis(&best) {
                    best = cut;
                    order.copy_from_slice(&tried);
                }
            }
        }
        let left = budget.saturating_sub(self.program.steps);
        let annealed = anneal::anneal(&mut self.program, &mut order, self.using, &mut random, left);
        cheaper(best, annealed)
    }

    /// Steps kept for the polish.
    fn polishing(&self) -> u64 {
        self.steps / 3
    }

    /// The exact search over the seats of a cut and the most promising others.
    fn polish(&mut self, found: Option<Cut>) -> Option<Cut> {
        let cut = found?;
        let used: BTreeSet<usize> = cut.parts.iter().map(|part| part.seat).collect();
        let mut others: Vec<usize> = self.order.iter().copied().filter(|seat| !used.contains(seat)).collect();
        others.sort_by(|a, b| self.millis_a_layer(*a).total_cmp(&self.millis_a_layer(*b)));
        let mut seats = used;
        let mut classes = self.among(&seats);
        for other in others {
            seats.insert(other);
            let larger = self.among(&seats);
            if exact::Sets::new(&larger, self.chain, self.polishing(), self.paused).is_none() {
                break;
            }
            classes = larger;
        }
        let polished = exact::Sets::new(&classes, self.chain, self.polishing(), self.paused)
            .and_then(|sets| exact::search(&mut self.program, &sets, self.using, cut.millis));
        cheaper(Some(cut), polished)
    }

    fn among(&self, seats: &BTreeSet<usize>) -> Vec<Vec<usize>> {
        let some = |class: &Vec<usize>| class.iter().copied().filter(|seat| seats.contains(seat)).collect();
        self.classes.iter().map(some).filter(|class: &Vec<usize>| !class.is_empty()).collect()
    }

    /// Milliseconds a layer if the seat takes as many as it can hold, with its messages.
    fn millis_a_layer(&self, seat: usize) -> f64 {
        let (layers, last) = (self.chain.layers, self.chain.layers - 1);
        let longest = (1..layers).filter(|end| self.program.can_take(seat, 1, *end)).max();
        let Some(end) = longest else { return f64::INFINITY };
        let messages = self.chain.up(seat, last) + self.chain.down(seat, last);
        (messages + self.program.token_millis(seat, 1, end)) / (end - 1) as f64
    }
}

fn millis(cut: &Option<Cut>) -> f64 {
    cut.as_ref().map_or(f64::INFINITY, |cut| cut.millis)
}

/// A bound that a cut as cheap as this one stays below.
fn above(cut: &Option<Cut>) -> f64 {
    cut.as_ref().map_or(f64::INFINITY, |cut| cut.millis * (1.0 + 1e-12) + 1e-9)
}

fn cheaper(a: Option<Cut>, b: Option<Cut>) -> Option<Cut> {
    if millis(&b) < millis(&a) { b } else { a }
}
