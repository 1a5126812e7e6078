//! Answers that must have a form: whatever happens, they are the undisturbed ones of the same form, and the others keep theirs.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use potluck_protocol::{AnswerStop, MemberStatus, Sharing};
use potluck_sim::{
    EVERY_THIRD, Fault, NOTHING_LATER, SimDevice, SimModel, World, Wrong, undisturbed, undisturbed_formed,
};

const TEXT: &str = "a question that is a little longer than one chunk of sixty-four positions, so that chunks overlap";
const TOKENS: u32 = 40;

fn prompt() -> Vec<u32> {
    TEXT.bytes().map(u32::from).collect()
}

fn plain() -> Vec<u32> {
    undisturbed(&SimModel::dense(6), &prompt(), TOKENS as usize)
}

fn formed() -> Vec<u32> {
    undisturbed_formed(&SimModel::dense(6), &prompt(), TOKENS as usize)
}

fn ended(world: &World, index: usize, requests: std::ops::RangeInclusive<u32>) -> bool {
    requests.into_iter().all(|request| world.answer(index, request).is_some_and(|answer| answer.end.is_some()))
}

fn assert_is(world: &World, index: usize, request: u32, expected: &[u32], event_log: &str) {
    let answer = world.answer(index, request).unwrap();
    assert_eq!(answer.end, Some(AnswerStop::Length), "{event_log}: {answer:?}");
    assert_eq!(answer.tokens, expected, "{event_log}");
}

#[test]
fn answers_of_a_form_are_written_beside_others() {
    assert_ne!(plain(), formed());
    let mut world = World::new(1, SimModel::dense(6), Sharing::Fastest, SimDevice::with_budget(3_000));
    world.prompt(0, 1, TEXT, TOKENS, 2_000.0);
    world.ask_formed(0, 2, TEXT, TOKENS, EVERY_THIRD, 2_000.0);
    world.ask_formed(0, 3, TEXT, TOKENS, EVERY_THIRD, 2_000.0);
    world.run(120_000.0, |world| ended(world, 0, 1..=3));
    assert_is(&world, 0, 1, &plain(), "the others' forms are not its own");
    assert_is(&world, 0, 2, &formed(), "of a form");
    assert_is(&world, 0, 3, &formed(), "another one");
    world.ask_formed(0, 4, TEXT, TOKENS, EVERY_THIRD, world.now() + 100.0);
    world.run(240_000.0, |world| ended(world, 0, 4..=4));
    assert_is(&world, 0, 4, &formed(), "alone");
}

/// A device with a stage leaves in the middle of an answer that must have a form, while another one is written.
#[test]
fn an_answer_of_a_form_goes_on_when_a_device_leaves() {
    let mut recovered = 0;
    for seed in 0..40u64 {
        let mut world = World::new(seed, SimModel::dense(6), Sharing::Everyone, SimDevice::with_budget(620));
        world.add(SimDevice::with_budget(620), 5.0);
        world.add(SimDevice::with_budget(620), 9.0);
        let asker = world.add(SimDevice::default(), 10.0);
        world.ask_formed(asker, 1, TEXT, TOKENS, EVERY_THIRD, 10_000.0);
        world.prompt(asker, 2, TEXT, TOKENS, 10_000.0);
        let victim = 1 + seed as usize % 2;
        world.fault(Fault::Kill(victim), 10_200.0 + (seed * 37) as f64);
        world.run(200_000.0, |world| ended(world, asker, 1..=2));
        let event_log = format!("seed {seed}, device {victim} left");
        assert_is(&world, asker, 1, &formed(), &event_log);
        assert_is(&world, asker, 2, &plain(), &event_log);
        recovered += u32::from(world.answer(asker, 1).unwrap().recoveries > 0);
    }
    assert!(recovered >= 10, "only {recovered} answers were interrupted");
}

/// The host computes stages of such an answer again, without the mask that it had.
#[test]
fn honest_stages_of_an_answer_of_a_form_are_not_blamed() {
    let mut checked = 0;
    for seed in 0..20u64 {
        let mut world = World::new(seed, SimModel::dense(6), Sharing::Everyone, SimDevice::with_budget(3_000));
        (0..3).for_each(|index| _ = world.add(SimDevice::with_budget(430), 10.0 * f64::from(index)));
        world.check_answers(1.0);
        world.ask_formed(0, 1, "a short question", TOKENS, EVERY_THIRD, 8_000.0);
        world.run(60_000.0, |world| ended(world, 0, 1..=1));
        world.run(world.now() + 20_000.0, |_| false);
        let checks = world.view(0).room.unwrap().plan.checks.clone();
        assert!((1..4).all(|index| !world.has_blamed(index)), "seed {seed}: {checks:?}");
        assert_eq!(checks.repeated, checks.equal, "seed {seed}: {checks:?}");
        checked += checks.equal;
    }
    assert!(checked > 0, "no stage was computed again");
}

/// The host lends nothing, so that the LM head is another device's, which chooses tokens that may not come.
#[test]
fn a_token_that_may_not_come_is_never_shown() {
    let mut caught = 0;
    for seed in 0..20u64 {
        let mut world = World::new(seed, SimModel::dense(6), Sharing::Everyone, SimDevice::default());
        (0..3).for_each(|index| _ = world.add(SimDevice::with_budget(620), 10.0 * f64::from(index)));
        world.run(7_000.0, |_| false);
        let Some(last) = world.plan_up().and_then(|plan| Some(plan.stages.last()?.peer)) else { continue };
        let liar = usize::from(last.0[0]) - 1;
        world.fault(Fault::Wrong(liar, Wrong::LiesInLayers(1)), 7_900.0);
        world.ask_formed(0, 1, TEXT, TOKENS, EVERY_THIRD, 8_000.0);
        world.run(200_000.0, |world| ended(world, 0, 1..=1));
        let event_log = format!("seed {seed}, device {liar} chooses wrongly");
        assert_is(&world, 0, 1, &formed(), &event_log);
        let room = world.view(0).room.unwrap();
        let liar = room.members.iter().find(|member| member.peer == last).unwrap();
        caught += u32::from(liar.status == MemberStatus::Failed);
    }
    assert!(caught > 10, "{caught} of 20 were caught");
}

#[test]
fn a_form_that_cannot_be_read_or_met_ends_the_answer_with_a_sentence() {
    let mut world = World::new(1, SimModel::dense(6), Sharing::Fastest, SimDevice::with_budget(3_000));
    world.ask_formed(0, 1, TEXT, TOKENS, "unknown", 2_000.0);
    world.ask_formed(0, 2, TEXT, TOKENS, NOTHING_LATER, 2_000.0);
    world.run(60_000.0, |world| ended(world, 0, 1..=2));
    let refused = world.answer(0, 1).unwrap().end.clone();
    assert!(matches!(&refused, Some(AnswerStop::Refused(sentence)) if sentence.contains("form")), "{refused:?}");
    let failed = world.answer(0, 2).unwrap();
    assert_eq!(failed.end, Some(AnswerStop::Failed("Nothing may come.".to_owned())));
    assert_eq!(failed.tokens.len(), 5);
}
