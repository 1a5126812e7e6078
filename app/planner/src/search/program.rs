//! The dynamic program over a fixed order of workers: each takes a contiguous range of layers (dynamic-partitioning.txt
//! 5.4).

use super::chain::Chain;
use super::pauses::OperatingPoint;
use crate::room::{pause_factor, paused_millis};

/// A worker's range of layers, `start..end` of the chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Segment {
    pub worker: usize,
    pub start: usize,
    pub end: usize,
}

/// Workers in order with their ranges, and the total cost in milliseconds per token.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Partition {
    pub millis: f64,
    pub segments: Vec<Segment>,
}

/// The dynamic program over one chain. It keeps its tables, so that repeated runs do not allocate.
pub(crate) struct Program<'a> {
    pub chain: &'a Chain,
    /// No stage may take this many milliseconds per token or more.
    limit: Option<f64>,
    /// For each worker and end the smallest start that fits the memory and the limit.
    earliest: Vec<Vec<usize>>,
    /// At an operating point: for each worker that pauses slow down, the milliseconds of a stage with layers
    /// `start..end`, at index `start * (layers + 1) + end`. Empty for the others, and where one factor per worker has
    /// to suffice.
    paused: Vec<Vec<f64>>,
    /// At an operating point: the slowdown of each worker without such a table.
    factors: Vec<f64>,
    /// Cells relaxed so far.
    pub steps: u64,
    window: Vec<usize>,
    table: Vec<f64>,
    reach: Vec<f64>,
    /// `sent[x]`: the least cost of having `x` layers computed and sent to the relay, shared by all receivers in a star.
    sent: Vec<f64>,
}

impl<'a> Program<'a> {
    pub fn new(chain: &'a Chain, limit: Option<f64>) -> Self {
        let width = chain.layers + 1;
        let mut program = Self {
            chain,
            limit,
            earliest: Vec::new(),
            paused: vec![Vec::new(); chain.workers.len()],
            factors: vec![1.0; chain.workers.len()],
            steps: 0,
            window: Vec::with_capacity(width),
            table: Vec::new(),
            reach: vec![f64::INFINITY; width],
            sent: vec![f64::INFINITY; width],
        };
        program.set_limit(limit);
        program
    }

    pub fn set_limit(&mut self, limit: Option<f64>) {
        self.limit = limit;
        self.earliest = (0..self.chain.workers.len()).map(|worker| self.earliest_starts(worker)).collect();
    }

    /// Counts pauses at an operating point; call [`Self::set_limit`] afterwards. `exact` looks up every stage, which
    /// costs a step per start and end; otherwise each worker has one factor, as if its segment were as large as the
    /// others'.
    pub fn set_point(&mut self, point: &OperatingPoint, exact: bool) {
        let layers = self.chain.layers;
        for (index, worker) in self.chain.workers.iter().enumerate().filter(|(_, worker)| !worker.pauses.is_empty()) {
            if exact {
                let of = |start: usize, end: usize| {
                    if start < end { paused_millis(&worker.pauses, worker.busy(start, end), point.token) } else { 0.0 }
                };
                self.paused[index] =
                    (0..=layers).flat_map(|start| (0..=layers).map(move |end| of(start, end))).collect();
            } else {
                self.factors[index] = pause_factor(&worker.pauses, point.token - point.stages[index]);
            }
        }
    }

    fn earliest_starts(&self, worker: usize) -> Vec<usize> {
        let mut start = 0;
        let starts = (0..=self.chain.layers).map(|end| {
            while start < end && !self.fits(worker, start, end) {
                start += 1;
            }
            start
        });
        starts.collect()
    }

    /// Memory, bindings and limit. All are monotonic: they only tighten with longer ranges. The saving of a tied LM
    /// head is left to [`Self::extend`].
    fn fits(&self, worker: usize, start: usize, end: usize) -> bool {
        let memory = &self.chain.workers[worker].memory;
        memory[end] - memory[start] <= self.chain.workers[worker].capacity && self.under(worker, start, end)
    }

    fn under(&self, worker: usize, start: usize, end: usize) -> bool {
        self.chain.may_take(worker, start, end)
            && match self.limit {
                None => true,
                Some(limit) => self.token_millis(worker, start, end) < limit,
            }
    }

    /// Milliseconds per token of one stage.
    pub fn token_millis(&self, worker: usize, start: usize, end: usize) -> f64 {
        let paused = self.paused[worker].get(start * (self.chain.layers + 1) + end);
        paused.copied().unwrap_or_else(|| self.factors[worker] * self.chain.workers[worker].busy(start, end))
    }

    /// True if the worker can take the range.
    pub fn can_take(&self, worker: usize, start: usize, end: usize) -> bool {
        let earliest = self.earliest[worker][end];
        let latest = self.chain.latest_start(end).filter(|_| self.chain.may_cut(start));
        latest.is_some_and(|latest| start <= latest) && (start >= earliest || self.fits_tied(worker, start, end))
    }

    fn fits_tied(&self, worker: usize, start: usize, end: usize) -> bool {
        let whole = start == 0 && end == self.chain.layers && self.chain.tied > 0;
        whole && self.chain.memory(worker, 0, end) <= self.chain.workers[worker].capacity && self.under(worker, 0, end)
    }

    /// The recurrence with `worker` last: `reach[x]` is the least cost of having `x` layers computed and sent to it,
    /// `out[i]` becomes the least cost of having `i` layers computed.
    pub fn extend(&mut self, worker: usize, reach: &[f64], out: &mut [f64]) {
        if self.paused[worker].is_empty() {
            self.extend_linear(worker, reach, out);
        } else {
            self.extend_any(worker, reach, out);
        }
        let end = self.chain.layers;
        if self.earliest[worker][end] > 0 && self.fits_tied(worker, 0, end) && reach[0].is_finite() {
            out[end] = out[end].min(reach[0] + self.token_millis(worker, 0, end));
        }
    }

    /// Costs are differences of prefix sums, so the best start for each end is a sliding-window minimum: O(n) with a
    /// monotonic queue.
    fn extend_linear(&mut self, worker: usize, reach: &[f64], out: &mut [f64]) {
        let Self { chain, earliest, window, steps, factors, .. } = self;
        let (cost, factor) = (&chain.workers[worker].cost, factors[worker]);
        let fixed = factor * chain.workers[worker].fixed;
        let key = |start: usize| reach[start] - factor * cost[start];
        *steps += chain.layers as u64;
        // The queue: starts that may still be best, cheapest first. Those before `head` no longer fit.
        window.clear();
        let (mut head, mut next) = (0, 0);
        out[0] = f64::INFINITY;
        for end in 1..=chain.layers {
            let latest = chain.latest_start(end);
            while latest.is_some_and(|latest| next <= latest) {
                if reach[next].is_finite() {
                    while window.len() > head && key(window[window.len() - 1]) >= key(next) {
                        window.pop();
                    }
                    window.push(next);
                }
                next += 1;
            }
            while head < window.len() && window[head] < earliest[worker][end] {
                head += 1;
            }
            let start = window.get(head).filter(|_| latest.is_some());
            out[end] = start.map_or(f64::INFINITY, |start| key(*start) + factor * cost[end] + fixed);
        }
    }

    /// The cost of pauses is no sum over layers, so every start of every end is tried: O(n²), as in the paper.
    fn extend_any(&mut self, worker: usize, reach: &[f64], out: &mut [f64]) {
        for (end, out) in out.iter_mut().enumerate() {
            *out = f64::INFINITY;
            let Some(latest) = self.chain.latest_start(end) else { continue };
            let earliest = self.earliest[worker][end];
            for (start, reach) in reach.iter().enumerate().take(latest + 1).skip(earliest) {
                self.steps += 1;
                *out = out.min(reach + self.token_millis(worker, start, end));
            }
        }
    }
}

/// Relaxes `to` by `from` plus a message; costs that reach the bound are pruned.
pub(crate) fn relax(to: &mut [f64], from: &[f64], bound: f64, message: impl Fn(usize) -> f64) {
    for (at, (to, from)) in to.iter_mut().zip(from).enumerate() {
        if *from < bound {
            *to = to.min(from + message(at));
        }
    }
}

/// Which workers of an order take part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Participation {
    /// Any subset; the others are skipped.
    Any,
    /// All of them.
    All,
}

impl Program<'_> {
    /// The cheapest partition over workers in this order: Algorithm 5.1 of the paper, with messages from stage to stage. If only
    /// one worker may be the first, it is, wherever the order has it.
    pub fn partition(&mut self, order: &[usize], participation: Participation) -> Option<Partition> {
        match self.chain.first.filter(|first| order.first() != Some(first) && order.contains(first)) {
            None => self.in_order(order, participation),
            Some(first) => {
                let others = order.iter().copied().filter(|worker| *worker != first);
                let order: Vec<usize> = std::iter::once(first).chain(others).collect();
                self.in_order(&order, participation)
            }
        }
    }

    fn in_order(&mut self, order: &[usize], participation: Participation) -> Option<Partition> {
        let width = self.chain.layers + 1;
        let mut table = std::mem::take(&mut self.table);
        table.clear();
        table.resize(order.len() * width, f64::INFINITY);
        self.sent.fill(f64::INFINITY);
        for (index, worker) in order.iter().enumerate() {
            let (before, row) = table.split_at_mut(index * width);
            self.reach(order, index, before, participation);
            let reach = std::mem::take(&mut self.reach);
            self.extend(*worker, &reach, &mut row[..width]);
            self.reach = reach;
            relax(&mut self.sent, &row[..width], f64::INFINITY, |at| self.chain.up(*worker, at));
        }
        let partition = self.trace(order, &table, participation);
        self.table = table;
        partition
    }

    /// Fills `reach` for the worker at `index`: the least costs of having layers computed and sent to it.
    fn reach(&mut self, order: &[usize], index: usize, before: &[f64], participation: Participation) {
        let (width, worker) = (self.chain.layers + 1, order[index]);
        self.reach.fill(f64::INFINITY);
        if index == 0 || participation == Participation::Any {
            self.reach[0] = self.chain.entry(worker);
        }
        if participation == Participation::Any {
            self.steps += width as u64;
            relax(&mut self.reach, &self.sent, f64::INFINITY, |at| self.chain.down(worker, at));
            return;
        }
        for (previous, row) in before.chunks(width).enumerate().skip(index.saturating_sub(1)) {
            self.steps += width as u64;
            relax(&mut self.reach, row, f64::INFINITY, |at| self.chain.hop(order[previous], worker, at));
        }
    }

    /// Backtracking: recomputes which predecessor and start gave each optimum.
    fn trace(&self, order: &[usize], table: &[f64], participation: Participation) -> Option<Partition> {
        let (width, layers) = (self.chain.layers + 1, self.chain.layers);
        let candidates =
            if participation == Participation::Any { 0..order.len() } else { order.len().checked_sub(1)?..order.len() };
        let total = |index: usize| table[index * width + layers] + self.chain.exit(order[index]);
        let last = candidates.min_by(|a, b| total(*a).total_cmp(&total(*b)))?;
        let millis = total(last);
        if !millis.is_finite() {
            return None;
        }
        let mut segments = Vec::new();
        let (mut index, mut end) = (last, layers);
        loop {
            let worker = order[index];
            let first = if participation == Participation::Any { 0 } else { index.saturating_sub(1) };
            let mut best = (f64::INFINITY, None, 0);
            for start in 0..end {
                if !self.can_take(worker, start, end) {
                    continue;
                }
                let stage = self.token_millis(worker, start, end);
                if start == 0 && (index == 0 || participation == Participation::Any) {
                    best = cheaper(best, (self.chain.entry(worker) + stage, None, 0));
                }
                for previous in first..if start == 0 { first } else { index } {
                    let sum = table[previous * width + start] + self.chain.hop(order[previous], worker, start) + stage;
                    best = cheaper(best, (sum, Some(previous), start));
                }
            }
            segments.push(Segment { worker, start: best.2, end });
            end = best.2;
            match best.1 {
                Some(previous) => index = previous,
                None => break,
            }
        }
        segments.reverse();
        Some(Partition { millis, segments })
    }
}

type Predecessor = (f64, Option<usize>, usize);

fn cheaper(a: Predecessor, b: Predecessor) -> Predecessor {
    if b.0 < a.0 { b } else { a }
}
