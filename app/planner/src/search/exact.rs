//! The best partition over all sets and orders of workers: a dynamic program over subsets (Held and Karp, 1962), in
//! which equal workers are counted instead of named. For m distinct workers it visits 2^m sets instead of m! orders.

use super::chain::{Chain, Worker};
use super::program::{Participation, Partition, Program, Segment, relax};

/// Most cells of the table: 32 MB.
const TABLE: usize = 4 << 20;

/// Multisets of workers: how many of each equivalence class are used, as one mixed-radix number.
pub(crate) struct Sets<'a> {
    classes: &'a [Vec<usize>],
    strides: Vec<usize>,
    count: usize,
    width: usize,
}

impl<'a> Sets<'a> {
    /// `None` if the table would be too large or the search longer than `steps`. `paused`: the cost of pauses is looked
    /// up for each stage.
    pub fn new(classes: &'a [Vec<usize>], chain: &Chain, steps: u64, paused: bool) -> Option<Self> {
        let width = chain.layers + 1;
        let mut strides = Vec::with_capacity(classes.len());
        let mut count = 1usize;
        for class in classes {
            strides.push(count);
            count = count.checked_mul(class.len() + 1)?;
            if count.checked_mul(classes.len())?.checked_mul(width)? > TABLE {
                return None;
            }
        }
        let is_quadratic = |worker: &Worker| paused && !worker.pauses.is_empty();
        let per_extension = if chain.workers.iter().any(is_quadratic) { width * width / 2 } else { width };
        let work = count as u64 * classes.len() as u64 * (2 * width + per_extension) as u64;
        (work <= steps).then_some(Self { classes, strides, count, width })
    }

    fn used(&self, set: usize, class: usize) -> usize {
        set / self.strides[class] % (self.classes[class].len() + 1)
    }

    /// The worker that represents a class.
    fn worker(&self, class: usize) -> usize {
        self.classes[class][0]
    }

    fn row(&self, set: usize, last: usize) -> usize {
        (set * self.classes.len() + last) * self.width
    }
}

/// The cheapest partition over all sets and orders; costs that reach `bound` are pruned.
pub(crate) fn search(
    program: &mut Program<'_>,
    sets: &Sets<'_>,
    participation: Participation,
    bound: f64,
) -> Option<Partition> {
    let (kinds, width) = (sets.classes.len(), sets.width);
    let mut table = vec![f64::INFINITY; sets.count * kinds * width];
    let mut reach = vec![f64::INFINITY; width];
    let mut out = vec![f64::INFINITY; width];
    let mut sent = vec![f64::INFINITY; width];
    for set in 0..sets.count {
        fill_sent(program, sets, &table, set, &mut sent);
        for class in (0..kinds).filter(|class| sets.used(set, *class) < sets.classes[*class].len()) {
            let worker = sets.worker(class);
            reach.fill(f64::INFINITY);
            if set == 0 {
                reach[0] = program.chain.entry(worker);
            }
            // The least costs of having layers computed by the set and sent to one more worker.
            program.steps += width as u64;
            relax(&mut reach, &sent, bound, |at| program.chain.down(worker, at));
            if reach.iter().all(|millis| *millis >= bound) {
                continue;
            }
            program.extend(worker, &reach, &mut out);
            let row = sets.row(set + sets.strides[class], class);
            table[row..row + width].copy_from_slice(&out);
        }
    }
    trace(program, sets, &table, participation)
}

/// The least costs of having layers computed by a set and sent to the relay, whoever of the set is last.
fn fill_sent(program: &mut Program<'_>, sets: &Sets<'_>, table: &[f64], set: usize, sent: &mut [f64]) {
    let chain = program.chain;
    sent.fill(f64::INFINITY);
    for last in (0..sets.classes.len()).filter(|last| sets.used(set, *last) > 0) {
        let row = &table[sets.row(set, last)..][..sets.width];
        program.steps += sets.width as u64;
        relax(sent, row, f64::INFINITY, |at| chain.up(sets.worker(last), at));
    }
}

fn trace(program: &Program<'_>, sets: &Sets<'_>, table: &[f64], participation: Participation) -> Option<Partition> {
    let (chain, kinds) = (program.chain, sets.classes.len());
    let first = if participation == Participation::All { sets.count - 1 } else { 0 };
    let ends = (first..sets.count).flat_map(|set| (0..kinds).map(move |last| (set, last)));
    let total = |set: usize, last: usize| table[sets.row(set, last) + chain.layers] + chain.exit(sets.worker(last));
    let (mut set, mut last) = ends.min_by(|a, b| total(a.0, a.1).total_cmp(&total(b.0, b.1)))?;
    let millis = total(set, last);
    if !millis.is_finite() {
        return None;
    }
    let mut segments = Vec::new();
    let mut end = chain.layers;
    loop {
        let worker = sets.worker(last);
        let before = set - sets.strides[last];
        let mut best = (f64::INFINITY, None, 0);
        for start in (0..end).filter(|start| program.can_take(worker, *start, end)) {
            let stage = program.token_millis(worker, start, end);
            if start == 0 && before == 0 && chain.entry(worker) + stage < best.0 {
                best = (chain.entry(worker) + stage, None, 0);
            }
            for other in (0..kinds).filter(|other| start > 0 && sets.used(before, *other) > 0) {
                let sum = table[sets.row(before, other) + start] + chain.hop(sets.worker(other), worker, start) + stage;
                if sum < best.0 {
                    best = (sum, Some(other), start);
                }
            }
        }
        // Members of a class are equal: take the first that is left.
        segments.push(Segment { worker: sets.classes[last][sets.used(before, last)], start: best.2, end });
        (set, end) = (before, best.2);
        match best.1 {
            Some(other) => last = other,
            None => break,
        }
    }
    segments.reverse();
    Some(Partition { millis, segments })
}
