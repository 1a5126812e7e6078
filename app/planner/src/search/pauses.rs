//! Pauses in the search. While a token is elsewhere, a stage's device idles and lowers its clock, so the time of a
//! stage depends on the time of the whole token, which is what the search minimizes.
//!
//! For a fixed token time `T` every stage's time is known and the usual search applies; call its minimum `F(T)`. The
//! token time of a plan is the fixed point of its own sum, and a plan with a fixed point below `T` has a sum below `T`.
//! So the search starts at the fixed point of some plan, minimizes, continues at the fixed point of the plan it found,
//! and stops as soon as `F(T) ≥ T`: then no plan has a fixed point below `T`. It takes two or three rounds.

use super::program::{Partition, Program};
use crate::cost::fixed_point;
use crate::room::paused_millis;

/// Most rounds of the search; each gets an equal share of the steps.
pub(super) const ROUNDS: u64 = 4;
/// Relative improvements below this do not count.
const SAME: f64 = 1e-9;

/// The token time at which pauses are counted.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct OperatingPoint {
    /// Milliseconds of the whole token.
    pub token: f64,
    /// For each worker the milliseconds of its stage at that token time.
    pub stages: Vec<f64>,
}

impl OperatingPoint {
    /// The fixed point of a partition. Workers without a segment are assumed to get one as large as the others'.
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

/// The token time of a partition in steady state, milliseconds: the fixed point with pauses counted.
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

/// The objective where everyone takes part: milliseconds of the slowest stage.
pub(super) fn slowest(program: &Program<'_>, partition: &Partition) -> f64 {
    let point = OperatingPoint::of(program, partition);
    partition.segments.iter().map(|segment| point.stages[segment.worker]).fold(0.0, f64::max)
}

/// The best partition of all rounds. `search` finds the best one at an operating point; without one, pauses are ignored.
pub(super) fn rounds(
    program: &Program<'_>,
    value: impl Fn(&Partition) -> f64,
    mut search: impl FnMut(Option<&OperatingPoint>) -> Option<Partition>,
) -> Option<Partition> {
    let mut best = search(None)?;
    let mut lowest = value(&best);
    for _ in 1..ROUNDS {
        let Some(found) = search(Some(&OperatingPoint::of(program, &best))) else { break };
        let value = value(&found);
        if value >= lowest * (1.0 - SAME) {
            break;
        }
        (best, lowest) = (found, value);
    }
    Some(best)
}
