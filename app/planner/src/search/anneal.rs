//! Simulated annealing over orders of seats (dynamic-partitioning.txt 5.5.3): its moves and its schedule.

use super::program::{Cut, Program, Using};
use crate::random::Random;

/// Iterations of the schedule.
const ITERATIONS: u32 = 1_000;
/// It ends early after so many iterations without a better order.
const PATIENCE: u32 = 200;
/// Orders that are looked at to choose the first temperature.
const SAMPLES: u32 = 10;
/// T_f, milliseconds. The paper cools to 10 ms; a token in a browser may take less than that, so this is a thousandth.
const COLD_MILLIS: f64 = 0.01;

/// The cheapest cut found from this order on, by at most `steps` of the program. Orders without any cut count infinitely.
pub(crate) fn anneal(
    program: &mut Program<'_>,
    order: &mut [usize],
    using: Using,
    random: &mut Random,
    steps: u64,
) -> Option<Cut> {
    let end = program.steps.saturating_add(steps);
    let mut best = program.cut(order, using);
    let mut best_order = order.to_vec();
    if order.len() < 2 {
        return best;
    }
    let cost = |cut: &Option<Cut>| cut.as_ref().map_or(f64::INFINITY, |cut| cut.millis);
    let mut current = cost(&best);
    let hot = (10.0 * mean_difference(program, order, using, random)).max(COLD_MILLIS);
    let cooling = (COLD_MILLIS / hot).powf(1.0 / f64::from(ITERATIONS));
    let (mut temperature, mut since_better) = (hot, 0);
    let mut tried = order.to_vec();
    for _ in 0..ITERATIONS {
        if program.steps >= end || since_better >= PATIENCE {
            break;
        }
        tried.copy_from_slice(order);
        neighbour(&mut tried, random);
        let cut = program.cut(&tried, using);
        let millis = cost(&cut);
        if millis <= current || random.unit() < ((current - millis) / temperature).exp() {
            order.copy_from_slice(&tried);
            current = millis;
        }
        since_better += 1;
        if millis < cost(&best) {
            best = cut;
            best_order.copy_from_slice(&tried);
            since_better = 0;
        }
        temperature *= cooling;
    }
    order.copy_from_slice(&best_order);
    best
}

/// Mean difference between consecutive orders of a short walk.
fn mean_difference(program: &mut Program<'_>, order: &[usize], using: Using, random: &mut Random) -> f64 {
    let mut walk = order.to_vec();
    let mut last = None;
    let mut differences = Vec::new();
    for _ in 0..SAMPLES {
        neighbour(&mut walk, random);
        let Some(cut) = program.cut(&walk, using) else { continue };
        if let Some(last) = last.replace(cut.millis) {
            differences.push((cut.millis - last).abs());
        }
    }
    differences.iter().sum::<f64>() / differences.len().max(1) as f64
}

/// One of the paper's moves: two ranges swapped (20%), a range reversed (20%), an end swapped (20%), two swapped (40%).
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
