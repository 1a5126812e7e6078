//! Simulated annealing over orders of workers: the moves and the schedule of dynamic-partitioning.txt 5.5.3.

use super::program::{Participation, Partition, Program};
use potluck_plan::random::Random;

/// Iterations of the schedule.
const ITERATIONS: u32 = 1_000;
/// Iterations without improvement after which it stops early.
const PATIENCE: u32 = 200;
/// Orders sampled to choose the first temperature.
const SAMPLES: u32 = 10;
/// T_f, the final temperature, milliseconds. The paper cools to 10 ms; a token in a browser may take less than that, so
/// this is a thousandth of it.
const COLD_MILLIS: f64 = 0.01;

/// The cheapest partition found from this order on, in at most `steps` of the program. Orders without any partition
/// cost infinity.
pub(crate) fn anneal(
    program: &mut Program<'_>,
    order: &mut [usize],
    participation: Participation,
    random: &mut Random,
    steps: u64,
) -> Option<Partition> {
    let end = program.steps.saturating_add(steps);
    let mut best = program.partition(order, participation);
    let mut best_order = order.to_vec();
    if order.len() < 2 {
        return best;
    }
    let cost = |partition: &Option<Partition>| partition.as_ref().map_or(f64::INFINITY, |partition| partition.millis);
    let mut current = cost(&best);
    let hot = (10.0 * mean_difference(program, order, participation, random)).max(COLD_MILLIS);
    let cooling = (COLD_MILLIS / hot).powf(1.0 / f64::from(ITERATIONS));
    let (mut temperature, mut since_better) = (hot, 0);
    let mut tried = order.to_vec();
    for _ in 0..ITERATIONS {
        if program.steps >= end || since_better >= PATIENCE {
            break;
        }
        tried.copy_from_slice(order);
        neighbour(&mut tried, random);
        let partition = program.partition(&tried, participation);
        let millis = cost(&partition);
        if millis <= current || random.unit() < ((current - millis) / temperature).exp() {
            order.copy_from_slice(&tried);
            current = millis;
        }
        since_better += 1;
        if millis < cost(&best) {
            best = partition;
            best_order.copy_from_slice(&tried);
            since_better = 0;
        }
        temperature *= cooling;
    }
    order.copy_from_slice(&best_order);
    best
}

/// Mean difference in cost between consecutive orders of a short random walk.
fn mean_difference(
    program: &mut Program<'_>,
    order: &[usize],
    participation: Participation,
    random: &mut Random,
) -> f64 {
    let mut walk = order.to_vec();
    let mut last = None;
    let mut differences = Vec::new();
    for _ in 0..SAMPLES {
        neighbour(&mut walk, random);
        let Some(partition) = program.partition(&walk, participation) else { continue };
        if let Some(last) = last.replace(partition.millis) {
            differences.push((partition.millis - last).abs());
        }
    }
    differences.iter().sum::<f64>() / differences.len().max(1) as f64
}

/// One of the paper's moves: swap two ranges (20%), reverse a range (20%), swap an end (20%), swap two workers (40%).
fn neighbour(order: &mut [usize], random: &mut Random) {
    let count = order.len();
    match random.below(5) {
        0 => swap_ranges(order, random),
        1 => {
            let (a, b) = (random.below(count), random.below(count));
            order[a.min(b)..=a.max(b)].reverse();
        }
        2 => {
            let end = if random.below(2) == 0 { 0 } else { count - 1 };
            order.swap(end, random.below(count));
        }
        _ => order.swap(random.below(count), random.below(count)),
    }
}

fn swap_ranges(order: &mut [usize], random: &mut Random) {
    let length = 1 + random.below(order.len() / 2);
    let first = random.below(order.len() - 2 * length + 1);
    let second = first + length + random.below(order.len() - first - 2 * length + 1);
    let (left, right) = order.split_at_mut(second);
    left[first..first + length].swap_with_slice(&mut right[..length]);
}
