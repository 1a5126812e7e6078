//! Models with recurrent state: nothing can be truncated to any position, but answers are those of an undisturbed
//! device.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use potluck_protocol::{AnswerStop, Sharing};
use potluck_sim::{Fault, SimDevice, SimModel, World, undisturbed, undisturbed_follow_up};

const TOKENS: u32 = 40;

fn model() -> SimModel {
    SimModel { blocks: 6, experts: 0, kv_bytes: 0, state_bytes: 1 }
}

/// A prompt over two pages.
fn text() -> String {
    "bees find home ".repeat(9)
}

fn tokens(text: &str) -> Vec<u32> {
    text.bytes().map(u32::from).collect()
}

fn letters(tokens: &[u32]) -> String {
    tokens.iter().filter_map(|token| char::from_u32(*token)).collect()
}

fn ended(world: &World, request: u32) -> bool {
    world.answer(0, request).is_some_and(|answer| answer.end.is_some())
}

/// A host and two workers; two of them hold the model.
fn room(seed: u64) -> World {
    let mut world = World::new(seed, model(), Sharing::Everyone, SimDevice::with_budget(620));
    world.add(SimDevice::with_budget(620), 100.0);
    world.add(SimDevice::with_budget(620), 200.0);
    world
}

/// Asks, and returns the answer with how many positions were not computed again.
fn answer(world: &mut World, request: u32, text: &str) -> (Vec<u32>, u32) {
    world.ask(0, request, "a", text, TOKENS, world.now().max(3_000.0));
    world.run(world.now() + 60_000.0, |world| ended(world, request));
    assert_eq!(world.violation(), None);
    let answer = world.answer(0, request).unwrap();
    assert_eq!(answer.end, Some(AnswerStop::Length), "request {request}");
    (answer.tokens.clone(), answer.timings.as_ref().unwrap().reused_tokens)
}

#[test]
fn an_answer_anew_begins_at_the_last_state_of_its_prompt() {
    let mut world = room(1);
    let first = answer(&mut world, 1, &text());
    assert_eq!(first, (undisturbed(&model(), &tokens(&text()), TOKENS as usize), 0));
    // 135 tokens: the last copy lies after 128.
    assert_eq!(answer(&mut world, 2, &text()), (first.0, 128));
}

#[test]
fn the_next_question_goes_on_from_the_live_state() {
    let mut world = room(2);
    let (first, _) = answer(&mut world, 1, &text());
    let whole = format!("{}{}and then?", text(), letters(&first));
    let (second, reused) = answer(&mut world, 2, &whole);
    let expected = undisturbed_follow_up(&model(), &tokens(&text()), &first, &tokens("and then?"), TOKENS as usize);
    assert_eq!(second, expected);
    assert!(reused >= 128, "only {reused} positions were kept");
}

#[test]
fn a_lost_worker_changes_nothing() {
    for seed in 0..40 {
        let mut world = room(seed);
        world.ask(0, 1, "a", &text(), TOKENS, 3_000.0);
        let fault = if seed % 2 == 0 { Fault::DeviceLost(1 + seed as usize / 2 % 2) } else { Fault::DeviceLost(0) };
        world.fault(fault, 3_010.0 + 40.0 * seed as f64);
        world.run(90_000.0, |world| ended(world, 1));
        assert_eq!(world.violation(), None, "seed {seed}");
        let tokens = &world.answer(0, 1).unwrap().tokens;
        assert_eq!(*tokens, undisturbed(&model(), &self::tokens(&text()), TOKENS as usize), "seed {seed}");
    }
}

#[test]
fn several_conversations_have_states_of_their_own() {
    let mut world = room(3);
    let names = ["a", "b", "c", "d", "e", "f"];
    let question = |name: &str| format!("{name}: how do bees find home?");
    for (name, request) in names.iter().zip(1..) {
        world.ask(0, request, name, &question(name), 20, 3_000.0 + f64::from(request));
    }
    world.run(90_000.0, |world| (1..=6).all(|request| ended(world, request)));
    assert_eq!(world.violation(), None);
    for (name, request) in names.iter().zip(1..) {
        let tokens = &world.answer(0, request).unwrap().tokens;
        assert_eq!(*tokens, undisturbed(&model(), &self::tokens(&question(name)), 20), "{name}");
    }
}
