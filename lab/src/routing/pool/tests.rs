#![allow(clippy::unwrap_used, reason = "a test may panic")]
use super::*;
use crate::routing::recall::tests::text;
use crate::routing::{MostRecent, Nothing, Recorded, Sequence};
use potluck_predict::{GivenLast, MostFrequent, TraceShape};

const SHAPE: TraceShape = TraceShape { blocks: 4, experts: 16, used: 2 };

fn pool(slots: usize) -> Pool {
    Pool { devices: 1, group: 1, slots, expert: Bytes(100), ahead: 1, guesses: 2 }
}

/// One expert a token, one block.
fn cycle(experts: &[u16]) -> Trace {
    let shape = TraceShape { blocks: 1, experts: 8, used: 1 };
    let experts = vec![experts.iter().map(|expert| ExpertId(*expert)).collect()];
    Trace { shape, channels: vec!["base".to_owned()], sequences: vec![Sequence { prompt: 0, experts }] }
}

#[test]
fn a_cycle_is_what_lru_is_bad_at() {
    let trace = cycle(&[0, 1, 2, 0, 1, 2, 0, 1, 2]);
    let misses = |eviction| simulate(&trace, pool(2), eviction, &mut Nothing).unwrap().misses;
    assert_eq!(misses(Eviction::Lru), 9, "what comes next has just gone");
    assert_eq!(misses(Eviction::Optimal), 6, "0, 1, 2 keeps 0; 1 goes; 2 goes: every second one is there");
}

#[test]
fn the_optimum_is_never_beaten_without_guesses() {
    for seed in 0..6 {
        let trace = text(SHAPE, 150, seed);
        for slots in [2, 8, 20, 40] {
            let misses = |eviction| simulate(&trace, pool(slots), eviction, &mut Nothing).unwrap().misses;
            let best = misses(Eviction::Optimal);
            for eviction in [Eviction::Lru, Eviction::Lfu] {
                assert!(best <= misses(eviction), "seed {seed}, {slots} slots, {eviction:?}: {best}");
            }
        }
    }
}

#[test]
fn with_room_for_all_every_expert_is_loaded_once() {
    let trace = text(SHAPE, 150, 1);
    let report = simulate(&trace, pool(64), Eviction::Lru, &mut Nothing).unwrap();
    let distinct = uses(&trace).len() as u64;
    assert_eq!((report.misses, report.bytes, report.tokens), (distinct, 100 * distinct, 300));
    assert_eq!(report.uses, 300 * 4 * 2);
}

#[test]
fn a_perfect_prediction_leaves_only_the_first_stall() {
    let trace = text(SHAPE, 150, 1);
    let run = |predictor: &mut dyn Predictor| simulate(&trace, pool(6), Eviction::Lru, predictor).unwrap();
    let perfect = run(&mut Recorded::new(&trace, "base").unwrap());
    assert_eq!(perfect.stalls, 2, "the first block of each sequence");
    assert_eq!(perfect.useful, perfect.guessed);
    let shadow = run(&mut Recorded::new(&trace, "shadow").unwrap());
    let none = run(&mut Nothing);
    assert!(shadow.stalls < none.stalls / 2, "{} stalls with a shadow, {} without", shadow.stalls, none.stalls);
    assert!(shadow.bytes >= perfect.bytes, "wrong guesses are loaded too");
}

#[test]
fn guesses_cost_bytes_and_no_prediction_changes_what_is_used() {
    let trace = text(SHAPE, 150, 2);
    let predictors: [Box<dyn Predictor>; 4] = [
        Box::new(Nothing),
        Box::new(MostRecent::new(SHAPE)),
        Box::new(MostFrequent::new(SHAPE)),
        Box::new(GivenLast::new(SHAPE)),
    ];
    for mut predictor in predictors {
        for slots in [2, 7, 30] {
            let report = simulate(&trace, pool(slots), Eviction::Lru, predictor.as_mut()).unwrap();
            let what = format!("{} in {slots} slots: {report:?}", predictor.name());
            assert_eq!(report.uses, 300 * 4 * 2, "{what}");
            assert_eq!(report.bytes, 100 * (report.misses + report.guessed), "{what}");
            assert!(report.useful <= report.guessed, "{what}");
            assert!(report.stalls <= report.misses, "{what}");
        }
    }
}

#[test]
fn devices_share_the_experts() {
    let trace = text(SHAPE, 150, 3);
    let spread = Pool { devices: 4, group: 2, slots: 16, ..pool(0) };
    let report = simulate(&trace, spread, Eviction::Lru, &mut Nothing).unwrap();
    assert_eq!(report.misses, uses(&trace).len() as u64, "four devices with 16 slots hold all 64");
}

#[test]
fn a_pool_smaller_than_a_token_says_what_is_missing() {
    let trace = text(SHAPE, 20, 3);
    let refused = simulate(&trace, pool(1), Eviction::Lru, &mut Nothing).unwrap_err();
    assert_eq!(refused.to_string(), "each device needs room for 2 experts, and has 1");
}
