//! What pauses cost, in the search: a stage's device waits while the token is elsewhere, so what its work takes depends on
//! the whole token's time, which the search is to find.
//!
//! If a token takes `T`, each stage's time is known from its work alone and the search is the usual one; call the least sum
//! `F(T)`. A plan that settles below `T` has a sum below `T`. So the search begins with the `T` of some plan, looks for
//! the least sum, goes on with the time at which that plan settles, and ends as soon as `F(T)` is not below `T`: then no plan
//! settles below it. Two or three rounds do.

use super::program::{Cut, Program};
use crate::cost::settle;
use crate::room::paused_millis;

/// Rounds of the search at most; each has an equal part of its steps.
pub(super) const ROUNDS: u64 = 4;
/// A plan that is better by less is the same.
const SAME: f64 = 1e-9;

/// How a token's time counts for the stages.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Pace {
    /// Milliseconds of the whole token.
    pub token: f64,
    /// For each seat what its work takes of that, as expected from a plan that settles so.
    pub stages: Vec<f64>,
}

impl Pace {
    /// The pace of a cut. Seats without a part are expected to get one as large as the others'.
    pub fn of(program: &Program<'_>, cut: &Cut) -> Self {
        let token = settled(program, cut);
        let usual = token / (cut.parts.len() + 1) as f64;
        let mut stages = vec![usual; program.chain.seats.len()];
        for part in &cut.parts {
            let seat = &program.chain.seats[part.seat];
            stages[part.seat] = paused_millis(&seat.pauses, seat.busy(part.start, part.end), token);
        }
        Self { token, stages }
    }
}

/// Milliseconds a token at which a cut settles.
pub(crate) fn settled(program: &Program<'_>, cut: &Cut) -> f64 {
    let chain = program.chain;
    let parts = || cut.parts.iter().map(|part| (&chain.seats[part.seat], part));
    let messages = chain.messages(cut.parts.iter().map(|part| (part.seat, part.end)));
    let busy: f64 = parts().map(|(seat, part)| seat.busy(part.start, part.end)).sum();
    settle(busy + messages, |token| {
        let stages = parts().map(|(seat, part)| paused_millis(&seat.pauses, seat.busy(part.start, part.end), token));
        stages.sum::<f64>() + messages
    })
}

/// What the cut for everyone is chosen by: its slowest stage.
pub(super) fn slowest(program: &Program<'_>, cut: &Cut) -> f64 {
    let pace = Pace::of(program, cut);
    cut.parts.iter().map(|part| pace.stages[part.seat]).fold(0.0, f64::max)
}

/// The best cut of all rounds. `search` finds the best one at a pace, without one if pauses counted nothing.
pub(super) fn rounds(
    program: &Program<'_>,
    value: impl Fn(&Cut) -> f64,
    mut search: impl FnMut(Option<&Pace>) -> Option<Cut>,
) -> Option<Cut> {
    let mut best = search(None)?;
    let mut least = value(&best);
    for _ in 1..ROUNDS {
        let Some(found) = search(Some(&Pace::of(program, &best))) else { break };
        let value = value(&found);
        if value >= least * (1.0 - SAME) {
            break;
        }
        (best, least) = (found, value);
    }
    Some(best)
}
