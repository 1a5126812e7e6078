//! Deliberate bugs, one at a time: a simulator that does not find them proves nothing.

use potluck_plan::random::Random;
use potluck_protocol::Sharing;
use potluck_sim::{Fault, Link, SimDevice, SimModel, World, scenario, undisturbed};
use potluck_swarm::testing::{Mutation, set_mutation};

/// Limit on the rooms that are tried.
const ROOMS: u64 = 10_000;

/// The first room that fails with the mutation and passes without it.
fn first_found(mutation: Mutation, room: fn(u64) -> Option<String>) -> Option<(u64, String)> {
    (1..=ROOMS).find_map(|seed| {
        set_mutation(Some(mutation));
        let failure = room(seed);
        set_mutation(None);
        let failure = failure?;
        room(seed).is_none().then_some((seed, failure))
    })
}

fn anything_happens(seed: u64) -> Option<String> {
    let churn = scenario("churn").expect("it is in the list");
    (churn.run)(seed).failure
}

/// A tab freezes in the middle of a long answer and goes on later: what it sends then belongs to an older plan.
fn a_tab_goes_on(seed: u64) -> Option<String> {
    let mut random = Random::new(seed);
    let model = SimModel::dense(6);
    let link = Link { latency: 20.0, jitter: 2.0, ..Link::default() };
    let device = |random: &mut Random| {
        let budget = 560 + 20 * random.below(10) as u64;
        SimDevice::with_budget(budget).at_speed([1.0, 0.5, 0.25][random.below(3)]).behind(link)
    };
    let mut world = World::new(seed, model.clone(), Sharing::Everyone, device(&mut random));
    for _ in 0..3 + random.below(2) {
        let device = device(&mut random);
        world.add(device, 100.0);
    }
    let asker = world.add(SimDevice::default(), 200.0);
    let text = "how do bees find home?";
    // Two answers fill the pages, so that none can move to yet another plan meanwhile.
    [1, 2].into_iter().for_each(|request| world.prompt(asker, request, text, 100, 15_000.0));
    let victim = 1 + random.below(3);
    world.fault(Fault::Freeze(victim, 5_500.0 + 4_000.0 * random.unit()), 16_000.0 + 1_000.0 * random.unit());
    let ended = |world: &World, request| world.answer(asker, request).is_some_and(|answer| answer.end.is_some());
    world.run(300_000.0, |world| ended(world, 1) && ended(world, 2));
    let prompt: Vec<u32> = text.bytes().map(u32::from).collect();
    let expected = undisturbed(&model, &prompt, 100);
    let wrong = world.answers().find(|(_, answer)| answer.end.is_none() || answer.tokens != expected);
    wrong.map(|(_, answer)| format!("{:?} with {:?} instead of {expected:?}", answer.end, answer.tokens))
}

fn words_are_kept(seed: u64) -> Option<String> {
    let kept = scenario("words-kept").expect("it is in the list");
    (kept.run)(seed).failure
}

fn passes_are_false(seed: u64) -> Option<String> {
    let lies = scenario("false-passes").expect("it is in the list");
    (lies.run)(seed).failure
}

/// Found by the check that is meant to find it, which says this.
fn assert_found_as(mutation: Mutation, room: fn(u64) -> Option<String>, says: &str) {
    let Some((seed, failure)) = first_found(mutation, room) else {
        panic!("{mutation:?} was not found in {ROOMS} rooms")
    };
    assert!(failure.contains(says), "{mutation:?} is found by seed {seed}, but by another check: {failure}");
}

fn assert_found(mutation: Mutation, room: fn(u64) -> Option<String>) {
    let Some((seed, failure)) = first_found(mutation, room) else {
        panic!("{mutation:?} was not found in {ROOMS} rooms")
    };
    println!("{mutation:?} is found by seed {seed}: {failure}");
}

#[test]
fn a_stale_epoch_accepted_is_found() {
    assert_found(Mutation::StaleEpoch, a_tab_goes_on);
}

#[test]
fn a_reply_counted_twice_is_found() {
    assert_found(Mutation::ReplyTwice, anything_happens);
}

#[test]
fn a_replay_off_by_one_is_found() {
    assert_found(Mutation::ReplayOffByOne, anything_happens);
}

#[test]
fn a_recurrent_state_that_is_truncated_is_found() {
    assert_found(Mutation::AnyBase, anything_happens);
}

#[test]
fn frames_heard_from_anyone_are_found() {
    assert_found(Mutation::HearAnyone, anything_happens);
}

#[test]
fn an_end_of_the_model_elsewhere_is_found() {
    assert_found_as(Mutation::EndsAnywhere, words_are_kept, "which the host keeps for itself");
}

#[test]
fn a_stage_that_is_believed_like_a_host_is_found() {
    assert_found(Mutation::StagesLikeHosts, passes_are_false);
}

#[test]
fn token_ids_that_are_handed_on_are_found() {
    assert_found_as(Mutation::TokensHandedOn, words_are_kept, "sent Tokens to");
}
