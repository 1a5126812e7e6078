//! Bugs on purpose, one at a time: a simulator that does not find them proves nothing.

use super::churn::churn;
use crate::planted::{Bug, plant};

/// So many rooms may be needed.
const ROOMS: u64 = 1_000;

/// The first room that goes wrong with the bug, and well without it.
fn first_found(bug: Bug) -> Option<(u64, String)> {
    (1..=ROOMS).find_map(|seed| {
        plant(Some(bug));
        let failure = churn(seed).failure;
        plant(None);
        let failure = failure?;
        churn(seed).failure.is_none().then_some((seed, failure))
    })
}

fn assert_found(bug: Bug) {
    let Some((seed, failure)) = first_found(bug) else { panic!("{bug:?} was not found in {ROOMS} rooms") };
    println!("{bug:?} is found by seed {seed}: {failure}");
}

#[test]
fn a_reply_counted_twice_is_found() {
    assert_found(Bug::ReplyTwice);
}

#[test]
fn a_replay_off_by_one_is_found() {
    assert_found(Bug::ReplayOffByOne);
}
