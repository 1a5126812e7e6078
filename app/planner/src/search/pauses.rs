//! What pauses cost, in the search: a stage's device waits while the token is elsewhere, so what its work takes depends on
//! the whole token's time, which the search is to find.
//!
//! If a token takes `T`, each stage's time is known from its work alone and the search is the usual one; call the least sum
//! `F(T)`. A plan that settles below `T` has a sum below `T`. So the search begins with the `T` of some plan, looks for
//! the least sum, goes on with the time at which that plan settles, and ends as soon as `F(T)` is not below `T`: then no plan
//! settles below it. Two or three rounds do.

use super::program::{Partition, Program};
use crate::cost::fixed_point;
use crate::room::paused_millis;

/// Rounds of the search at most; each has an equal segment of its steps.
pub(super) const ROUNDS: u64 = 4;
/// A plan that is better by less is the same.
const SAME: f64 = 1e-9;

/// How a token's time counts for the stages.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct OperatingPoint {
    /// Milliseconds of the whole token.
    pub token: f64,
    /// For each worker what its work takes of that, as expected from a plan that settles so.
    pub stages: Vec<f64>,
}

impl OperatingPoint {
    /// The point of a partition. Seats without a segment are expected to get one as large as the others'.
    pub fn of(program: &Program<'_>, partition: &Partition) -> Self {
        let token = steady_millis(program, partition);
        let usual = token / (partition.segments.len() + 1) as f64;
        let mut stages = vec![usual; program.chain.workers.len()];
        for segment in &partition.segments {
            let worker = &program.chain.workers[segment.worker];
            stages[segment.worker] = paused_millis(&worker.pauses, worker.busy(segment.start, segment.end), token);
        }
        Self { token, stages }
    }
}

/// Milliseconds a token at which a partition settles.
pub(crate) fn steady_millis(program: &Program<'_>, partition: &Partition) -> f64 {
    let chain = program.chain;
    let segments = || partition.segments.iter().map(|segment| (&chain.workers[segment.worker], segment));
    let messages = chain.messages(partition.segments.iter().map(|segment| (segment.worker, segment.end)));
    let busy: f64 = segments().map(|(worker, segment)| worker.busy(segment.start, segment.end)).sum();
    fixed_point(busy + messages, |token| {
        let stages = segments()
            .map(|(worker, segment)| paused_millis(&worker.pauses, worker.busy(segment.start, segment.end), token));
        stages.sum::<f64>() + messages
    })
}

/// What the partition for everyone is chosen by: its slowest stage.
pub(super) fn slowest(program: &Program<'_>, partition: &Partition) -> f64 {
    let point = OperatingPoint::of(program, partition);
    partition.segments.iter().map(|segment| point.stages[segment.worker]).fold(0.0, f64::max)
}

/// The best partition of all rounds. `search` finds the best one at a point, without one if pauses counted nothing.
pub(super) fn rounds(
    program: &Program<'_>,
    value: impl Fn(&Partition) -> f64,
    mut search: impl FnMut(Option<&OperatingPoint>) -> Option<Partition>,
) -> Option<Partition> {
    let mut best = search(None)?;
    let mut least = value(&best);
    for _ in 1..ROUNDS {
        let Some(found) = search(Some(&OperatingPoint::of(program, &best))) else { break };
        let value = value(&found);
        if value >= least * (1.0 - SAME) {
            break;
        }
        (best, least) = (found, value);
    }
    Some(best)
}
