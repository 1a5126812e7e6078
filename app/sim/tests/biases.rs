//! Biases of the logits, and log-probabilities: whatever happens, the answer is the undisturbed one with the same bias.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use potluck_plan::LogitBias;
use potluck_protocol::{AnswerStop, Sharing};
use potluck_sim::{Fault, SimDevice, SimModel, World, undisturbed, undisturbed_biased};

const TEXT: &str = "a question that is a little longer than one chunk of sixty-four positions, so that chunks overlap";
const TOKENS: u32 = 40;

fn prompt() -> Vec<u32> {
    TEXT.bytes().map(u32::from).collect()
}

fn plain() -> Vec<u32> {
    undisturbed(&SimModel::dense(6), &prompt(), TOKENS as usize)
}

/// Bans the first tokens of the answer without a bias.
fn bans() -> LogitBias {
    let mut first = plain()[..5].to_vec();
    first.sort_unstable();
    first.dedup();
    LogitBias::new(first.into_iter().map(|token| (token, -100.0))).unwrap()
}

fn biased(bias: &LogitBias) -> Vec<u32> {
    undisturbed_biased(&SimModel::dense(6), &prompt(), TOKENS as usize, bias)
}

fn ended(world: &World, index: usize, requests: std::ops::RangeInclusive<u32>) -> bool {
    requests.into_iter().all(|request| world.answer(index, request).is_some_and(|answer| answer.end.is_some()))
}

fn assert_is(world: &World, index: usize, request: u32, bias: &LogitBias, event_log: &str) {
    let answer = world.answer(index, request).unwrap();
    assert_eq!(answer.end, Some(AnswerStop::Length), "{event_log}: {answer:?}");
    assert_eq!(answer.tokens, biased(bias), "{event_log}");
    assert_eq!(answer.logprobs.len(), answer.tokens.len(), "{event_log}: every token has a log-probability");
    assert!(answer.logprobs.iter().all(|logprob| *logprob < 0.0), "{event_log}: {:?}", answer.logprobs);
    let banned = bias.tokens().iter().filter(|(_, bias)| *bias <= -100.0).map(|(token, _)| *token);
    assert!(banned.into_iter().all(|token| !answer.tokens.contains(&token)), "{event_log}");
}

/// Several answers at once, each with its own bias or none, on a device alone, which would compute tokens ahead without a bias.
#[test]
fn each_answer_has_its_own_bias() {
    let mut world = World::new(1, SimModel::dense(6), Sharing::Fastest, SimDevice::with_budget(3_000));
    let other = LogitBias::new([(70, 5.0)]).unwrap();
    world.prompt(0, 1, TEXT, TOKENS, 2_000.0);
    world.ask_biased(0, 2, TEXT, TOKENS, bans(), 2_000.0);
    world.ask_biased(0, 3, TEXT, TOKENS, other.clone(), 2_000.0);
    world.run(120_000.0, |world| ended(world, 0, 1..=3));
    assert_eq!(world.answer(0, 1).unwrap().tokens, plain(), "the others' biases are not its own");
    assert_is(&world, 0, 2, &bans(), "bans");
    assert_is(&world, 0, 3, &other, "another bias");
    world.ask_biased(0, 4, TEXT, TOKENS, bans(), world.now() + 100.0);
    world.run(240_000.0, |world| ended(world, 0, 4..=4));
    assert_is(&world, 0, 4, &bans(), "alone");
}

/// A device with a stage leaves in the middle of a biased answer, while another one is written.
#[test]
fn a_biased_answer_goes_on_when_a_device_leaves() {
    let mut recovered = 0;
    for seed in 0..40u64 {
        let mut world = World::new(seed, SimModel::dense(6), Sharing::Everyone, SimDevice::with_budget(620));
        world.add(SimDevice::with_budget(620), 5.0);
        world.add(SimDevice::with_budget(620), 9.0);
        let asker = world.add(SimDevice::default(), 10.0);
        world.ask_biased(asker, 1, TEXT, TOKENS, bans(), 10_000.0);
        world.prompt(asker, 2, TEXT, TOKENS, 10_000.0);
        let victim = 1 + seed as usize % 2;
        world.fault(Fault::Kill(victim), 10_200.0 + (seed * 37) as f64);
        world.run(200_000.0, |world| ended(world, asker, 1..=2));
        let event_log = format!("seed {seed}, device {victim} left");
        assert_is(&world, asker, 1, &bans(), &event_log);
        assert_eq!(world.answer(asker, 2).unwrap().tokens, plain(), "{event_log}");
        recovered += u32::from(world.answer(asker, 1).unwrap().recoveries > 0);
    }
    assert!(recovered >= 10, "only {recovered} answers were interrupted");
}

/// The host computes the stages of a biased answer again, the last one with its bias and its sums.
#[test]
fn honest_stages_of_a_biased_answer_are_not_blamed() {
    let mut checked = 0;
    for seed in 0..20u64 {
        let mut world = World::new(seed, SimModel::dense(6), Sharing::Everyone, SimDevice::with_budget(3_000));
        (0..3).for_each(|index| _ = world.add(SimDevice::with_budget(430), 10.0 * f64::from(index)));
        world.check_answers(1.0);
        world.ask_biased(0, 1, "a short question", TOKENS, bans(), 8_000.0);
        world.run(60_000.0, |world| ended(world, 0, 1..=1));
        world.run(world.now() + 20_000.0, |_| false);
        let checks = world.view(0).room.unwrap().plan.checks.clone();
        assert!((1..4).all(|index| !world.has_blamed(index)), "seed {seed}: {checks:?}");
        assert_eq!(checks.repeated, checks.equal, "seed {seed}: {checks:?}");
        checked += checks.equal;
    }
    assert!(checked > 0, "no stage was computed again");
}

#[test]
fn a_bias_for_another_model_is_refused() {
    let mut world = World::new(1, SimModel::dense(6), Sharing::Fastest, SimDevice::with_budget(3_000));
    world.ask_biased(0, 1, TEXT, TOKENS, LogitBias::new([(50_000, 5.0)]).unwrap(), 2_000.0);
    world.run(60_000.0, |world| ended(world, 0, 1..=1));
    let end = world.answer(0, 1).unwrap().end.clone();
    assert!(matches!(&end, Some(AnswerStop::Refused(sentence)) if sentence.contains("logit bias")), "{end:?}");
}
