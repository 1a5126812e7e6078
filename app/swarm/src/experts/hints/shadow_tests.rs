//! What a shadow's words become.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use super::tests::{TEXT, chose, decoded, expert, plan};
use super::*;

const BLOCKS: u16 = 12;

fn options() -> HintOptions {
    HintOptions { predictor: PredictorKind::Shadow, shadow: true, always: true, lead: 2, ..HintOptions::default() }
}

fn route(hints: &mut Hints, options: &HintOptions, position: u32, block: u16, chosen: u16) -> Vec<(u16, u16)> {
    let (row, routes) = ([(TEXT, Position(position))], chose(chosen));
    let now = Millis(f64::from(position) * 10.0);
    named(hints.routed(&plan(BLOCKS), options, decoded(block, &row, &routes), now))
}

fn say(hints: &mut Hints, options: &HintOptions, word: ShadowWord) -> Vec<(u16, u16)> {
    named(hints.foreseen(&plan(BLOCKS), options, TEXT, &word))
}

fn foresee(hints: &mut Hints, options: &HintOptions, position: u32, block: u16, chosen: u16) -> Vec<(u16, u16)> {
    say(hints, options, ShadowWord::Chose(Position(position), BlockIndex(block), vec![ExpertId(chosen)]))
}

fn named(hinted: Hinted) -> Vec<(u16, u16)> {
    hinted.into_iter().flat_map(|(_, experts)| experts).map(|(block, expert)| (block.0, expert.0)).collect()
}

#[test]
fn what_a_shadow_says_is_hinted_ahead_and_across_tokens() {
    let (mut hints, options) = (Hints::default(), options());
    assert_eq!(say(&mut hints, &options, ShadowWord::Begins(Position(5))), [], "before any token");
    let mut sent = Vec::new();
    for position in 5..9 {
        // A token ahead, before its base begins.
        for block in 0..BLOCKS {
            assert_eq!(foresee(&mut hints, &options, position + 1, block, expert(position + 1, block)), []);
        }
        for block in 0..BLOCKS {
            sent.extend(route(&mut hints, &options, position, block, expert(position, block)));
        }
    }
    let (blocks, places) = (u64::from(BLOCKS), 5 * u64::from(BLOCKS)..10 * u64::from(BLOCKS));
    let right = |place: u64| ((place % blocks) as u16, expert((place / blocks) as u32, (place % blocks) as u16));
    let of_shadow: Vec<(u16, u16)> = places.clone().map(right).filter(|known| sent.contains(known)).collect();
    // The first token of the answer was not foreseen, and groups of two end before the last.
    assert!(of_shadow.len() >= 3 * usize::from(BLOCKS), "{sent:?}");
    let report = hints.report().unwrap();
    assert_eq!((report.predictor, report.guessing), (PredictorKind::Shadow, Guessing::Always));
    assert_eq!(report.shadow, Some(1.0), "it was right of all that it said");
    // Of the first token's blocks nobody knew anything.
    assert_eq!((report.used - report.right) as usize, usize::from(BLOCKS) - 1, "{report:?}");
}

#[test]
fn a_word_that_comes_late_goes_out_at_once_while_its_block_is_to_come() {
    let (mut hints, options) = (Hints::default(), options());
    say(&mut hints, &options, ShadowWord::Begins(Position(5)));
    // Frequent experts, until the shadow speaks.
    for position in 5..8 {
        (0..BLOCKS).for_each(|block| drop(route(&mut hints, &options, position, block, 1)));
    }
    assert_eq!(route(&mut hints, &options, 8, 0, 1), [(2, 1), (3, 1)], "what followed before");
    assert_eq!(foresee(&mut hints, &options, 8, 3, 6), [(3, 6)], "hinted otherwise, and not reached");
    assert_eq!(foresee(&mut hints, &options, 8, 3, 6), [], "once");
    assert_eq!(foresee(&mut hints, &options, 8, 2, 1), [], "it was named before");
    assert_eq!(foresee(&mut hints, &options, 8, 0, 6), [], "it has passed");
    assert_eq!(foresee(&mut hints, &options, 8, 4, 6), [], "it goes out with its group");
    assert_eq!(route(&mut hints, &options, 8, 1, 1), []);
    assert_eq!(route(&mut hints, &options, 8, 2, 1), [(4, 6), (5, 1)], "one group of both predictors");
    let word = ShadowWord::Chose(Position(8), BlockIndex(5), vec![ExpertId(3)]);
    let other = hints.foreseen(&plan(BLOCKS), &options, ConversationId(2), &word);
    assert!(other.is_empty(), "a conversation whose beginning nobody heard");
    for strange in [(8, BLOCKS), (u32::MAX, 3), (0, 0)] {
        assert_eq!(foresee(&mut hints, &options, strange.0, strange.1, u16::MAX), [], "{strange:?}");
    }
}

#[test]
fn where_a_shadow_is_gone_the_next_in_line_is_believed_within_the_token() {
    let (mut hints, options) = (Hints::default(), options());
    say(&mut hints, &options, ShadowWord::Begins(Position(5)));
    for position in 5..8 {
        for block in 0..BLOCKS {
            foresee(&mut hints, &options, position + 1, block, 6);
            route(&mut hints, &options, position, block, 1);
        }
    }
    assert_eq!(route(&mut hints, &options, 8, 0, 1), [(2, 6), (3, 6)]);
    say(&mut hints, &options, ShadowWord::TakenBack(Position(0)));
    let rest: Vec<(u16, u16)> = (1..BLOCKS).flat_map(|block| route(&mut hints, &options, 8, block, 1)).collect();
    assert_eq!(rest.first(), Some(&(4, 1)), "{rest:?}");
    assert!(rest.iter().all(|(_, expert)| *expert == 1), "{rest:?}");
}

#[test]
fn what_a_shadow_says_of_drafts_is_hinted_with_their_token() {
    let (mut hints, options) = (Hints::default(), options());
    say(&mut hints, &options, ShadowWord::Begins(Position(5)));
    let row = |position: u32| (TEXT, Position(position));
    let route = |hints: &mut Hints, rows: &[(ConversationId, Position)], block: u16| {
        let routes: Vec<ExpertRoute> = rows.iter().flat_map(|(_, at)| chose(expert(at.0, block))).collect();
        named(hints.routed(&plan(BLOCKS), &options, decoded(block, rows, &routes), Millis(0.0)))
    };
    let (first, next) = ([row(5), row(6)], [row(7), row(8)]);
    for position in 5..9 {
        (0..BLOCKS).for_each(|block| drop(foresee(&mut hints, &options, position, block, expert(position, block))));
    }
    let sent: Vec<(u16, u16)> = (0..BLOCKS).flat_map(|block| route(&mut hints, &first, block)).collect();
    for block in 1..BLOCKS {
        for position in [5, 6] {
            assert!(sent.contains(&(block, expert(position, block))), "block {block} of token {position}: {sent:?}");
        }
    }
    assert!(sent.contains(&(0, expert(7, 0))) && sent.contains(&(0, expert(8, 0))), "and of the next pass: {sent:?}");
    (0..BLOCKS).for_each(|block| drop(route(&mut hints, &next, block)));
    let report = hints.report().unwrap();
    // Nobody knew the first block of the first pass.
    assert_eq!((report.used - report.right, report.used), (0, 2 * 2 * u64::from(BLOCKS) - 2), "{report:?}");
    // One draft was not accepted: what was said of the tokens after it is taken back, and said again.
    say(&mut hints, &options, ShadowWord::TakenBack(Position(8)));
    assert_eq!(foresee(&mut hints, &options, 8, 1, 7), [], "it goes out with its group");
    let again: Vec<(u16, u16)> = (0..2).flat_map(|block| route(&mut hints, &[row(8)], block)).collect();
    assert!(again.contains(&(1, 7)), "{again:?}");
}

#[test]
fn beside_a_recorded_text_a_shadow_is_judged_and_not_believed() {
    let mut hints = Hints::default();
    let options = HintOptions { predictor: PredictorKind::Recorded, recalls: vec![1.0], ..options() };
    say(&mut hints, &options, ShadowWord::Begins(Position(5)));
    for block in 0..BLOCKS {
        assert_eq!(foresee(&mut hints, &options, 5, block, 6), []);
    }
    let sent: Vec<(u16, u16)> = (0..BLOCKS).flat_map(|block| route(&mut hints, &options, 5, block, 1)).collect();
    assert_eq!(sent, [], "nothing is recorded yet");
    assert_eq!(hints.take_wanted(&options), Some(true), "it is to compute nevertheless");
    assert_eq!(hints.report().unwrap().shadow, Some(0.0));
}

#[test]
fn a_shadow_is_wanted_only_while_hints_are_sent() {
    let mut hints = Hints::default();
    let options = HintOptions { always: false, ..options() };
    let (plan, mut said, mut now) = (plan(2), Vec::new(), 0.0);
    for position in 0..260 {
        for (block, expert) in [(0, 3), (1, 5)] {
            let (row, routes) = ([(TEXT, Position(position))], chose(expert));
            hints.routed(&plan, &options, decoded(block, &row, &routes), Millis(now));
            // Hints make tokens slower.
            now += if said.last().is_some_and(|(wanted, _)| *wanted) { 10.0 } else { 5.0 };
            said.extend(hints.take_wanted(&options).map(|wanted| (wanted, position)));
        }
    }
    assert_eq!(said.first(), Some(&(false, 0)));
    assert!(said.iter().any(|(wanted, _)| *wanted), "it is tried: {said:?}");
    assert!(said.last().is_some_and(|(wanted, at)| !wanted && *at < 200), "off within 200 tokens: {said:?}");
    let without = HintOptions { shadow: false, ..options };
    assert_eq!(hints.take_wanted(&without), None, "there is none");
}
