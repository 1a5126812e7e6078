//! A host that keeps both ends of the model: nobody else gets token ids or logits, whatever happens, and the answer is the same.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::collections::BTreeSet;

use potluck_panel::{NoPlanReason, PlanDecision};
use potluck_plan::{Bytes, LogitBias, PeerId};
use potluck_protocol::{Ends, Hedging, Sharing};
use potluck_sim::{Carries, Fault, SimDevice, SimModel, World, of_seeds, scenario, undisturbed, undisturbed_biased};

/// 6 blocks of 160 and two ends of 50: 1,060 bytes and 10 of overhead a device.
const DENSE: SimModel = SimModel::dense(6);
/// A block takes 100 + 5 + 8 × 20 bytes.
const EXPERTS: SimModel = SimModel { blocks: 4, experts: 8, kv_bytes: 0, state_bytes: 0 };
const TEXT: &str = "a question that is a little longer than one chunk of sixty-four positions, so that chunks overlap";
const HOST: PeerId = PeerId([1; 16]);

fn tokens(text: &str) -> Vec<u32> {
    text.bytes().map(u32::from).collect()
}

fn ended(world: &World, asker: usize) -> bool {
    world.answer(asker, 1).is_some_and(|answer| answer.end.is_some())
}

/// A host, two devices that lend, and a guest who asks.
fn room(seed: u64, model: &SimModel, sharing: Sharing, ends: Ends) -> (World, usize) {
    // A host of a model with experts has room for all of both ends and everything else but experts.
    let budget = if model.experts > 0 { 900 } else { 700 };
    let mut world = World::new(seed, model.clone(), sharing, SimDevice::with_budget(budget));
    if ends == Ends::OnHost {
        world.keep_ends();
    }
    world.pool_experts(2, Hedging::Adaptive);
    (0..2).for_each(|number| _ = world.add(SimDevice::with_budget(600), 100.0 * f64::from(number)));
    let guest = world.add(SimDevice::default(), 300.0);
    (world, guest)
}

#[test]
fn the_answer_is_the_same_and_others_get_hidden_vectors_only() {
    for (model, sharing) in [
        (&DENSE, Sharing::Fastest),
        (&DENSE, Sharing::Everyone),
        (&EXPERTS, Sharing::Everyone),
        (&EXPERTS, Sharing::Experts),
    ] {
        let answer = |ends: Ends| {
            let (mut world, guest) = room(1, model, sharing, ends);
            world.run(30_000.0, |world| world.plan_up().is_some_and(|plan| plan.peers().len() > 1));
            world.prompt(guest, 1, TEXT, 24, world.now() + 100.0);
            world.run(world.now() + 60_000.0, |world| ended(world, guest));
            assert_eq!(world.violation(), None, "{sharing:?}, {ends:?}");
            let plan = world.plan_up().unwrap();
            assert!(plan.peers().len() > 1, "{sharing:?}, {ends:?}: others take part");
            if ends == Ends::OnHost {
                assert!(plan.has_ends_on(HOST), "{sharing:?}: {:?}", plan.stages);
                // The guest gets the answer to its own question.
                let heard = BTreeSet::from([Carries::Nothing, Carries::HiddenVectors, Carries::Answer]);
                assert_eq!(*world.heard(), heard, "{sharing:?}");
            }
            world.answer(guest, 1).unwrap().tokens.clone()
        };
        let expected = undisturbed(model, &tokens(TEXT), 24);
        assert_eq!(answer(Ends::Anywhere), expected, "{sharing:?}, the ends anywhere");
        assert_eq!(answer(Ends::OnHost), expected, "{sharing:?}, the ends on the host");
    }
}

/// A bias names tokens. It stays on the host, and the answer has it nevertheless.
#[test]
fn the_tokens_of_a_bias_stay_on_the_host() {
    for sharing in [Sharing::Fastest, Sharing::Everyone] {
        let bias = LogitBias::new([(101, -100.0), (102, 2.0)]).unwrap();
        let answer = |ends: Ends| {
            let (mut world, guest) = room(1, &DENSE, sharing, ends);
            world.run(30_000.0, |world| world.plan_up().is_some_and(|plan| plan.peers().len() > 1));
            world.ask_biased(guest, 1, TEXT, 24, bias.clone(), world.now() + 100.0);
            world.run(world.now() + 60_000.0, |world| ended(world, guest));
            assert_eq!(world.violation(), None, "{sharing:?}, {ends:?}");
            assert!(world.plan_up().unwrap().peers().len() > 1, "{sharing:?}, {ends:?}: others take part");
            world.answer(guest, 1).unwrap().tokens.clone()
        };
        let expected = undisturbed_biased(&DENSE, &tokens(TEXT), 24, &bias);
        assert_eq!(answer(Ends::OnHost), expected, "{sharing:?}, the ends on the host");
        assert_eq!(answer(Ends::Anywhere), expected, "{sharing:?}, the ends anywhere");
    }
}

/// A violation of the simulator is a frame with token ids or logits to or from somebody else than the host, or an end of the model
/// that somebody else computes or loads.
#[test]
fn in_thousands_of_rooms_no_token_and_no_logit_leaves_the_host() {
    let kept = scenario("words-kept").unwrap();
    let recoveries = of_seeds(0..2_000, |seed| {
        let run = (kept.run)(seed);
        if let Some(failure) = run.failure {
            panic!("{failure}\n{}\nreplay: cargo xtask simulate words-kept --seed {seed}", run.event_log.join("\n"));
        }
        run.recoveries
    });
    let recoveries: u32 = recoveries.into_iter().sum();
    assert!(recoveries > 400, "the faults must hit answers, only {recoveries} recoveries happened");
}

/// A holder of experts or a stage goes in the middle of an answer, with a copy of its part elsewhere or without one.
#[test]
fn nobody_else_gets_an_end_of_the_model_when_a_device_leaves() {
    let recoveries = of_seeds(0..200, |seed| {
        let (model, sharing) = [
            (&DENSE, Sharing::Everyone),
            (&EXPERTS, Sharing::Experts),
            (&EXPERTS, Sharing::Everyone),
            (&DENSE, Sharing::Fastest),
        ][seed as usize % 4];
        let (mut world, guest) = room(seed, model, sharing, Ends::OnHost);
        world.run(30_000.0, |world| world.plan_up().is_some_and(|plan| plan.peers().len() > 1));
        let begin = world.now() + if seed % 3 == 0 { 100.0 } else { 6_000.0 };
        world.prompt(guest, 1, TEXT, 60, begin);
        let victim = 1 + seed as usize % 2;
        world.fault(Fault::Kill(victim), begin + 20.0 + 13.0 * seed as f64);
        world.run(begin + 120_000.0, |world| ended(world, guest));
        let answer = world.answer(guest, 1).unwrap();
        assert_eq!(answer.tokens, undisturbed(model, &tokens(TEXT), 60), "seed {seed}: {:?}", answer.end);
        assert_eq!(world.violation(), None, "seed {seed}");
        answer.recoveries
    });
    let recoveries: u32 = recoveries.into_iter().sum();
    assert!(recoveries > 100, "the losses must hit answers, only {recoveries} recoveries happened");
}

#[test]
fn a_host_that_is_too_small_for_both_ends_says_so() {
    let mut world = World::new(1, DENSE, Sharing::Fastest, SimDevice::with_budget(400));
    world.keep_ends();
    world.add(SimDevice::with_budget(2_000), 100.0);
    world.run(20_000.0, |_| false);
    let (needed, offered, missing) = (Bytes(430), Bytes(400), Bytes(30));
    let reason = NoPlanReason::HostTooSmallForEnds { needed, offered, missing };
    let why = world.machine(0).why().unwrap();
    assert_eq!(why.plan, PlanDecision::NoPlan { reason }, "two ends of 50, two blocks of 160, and 10");
    assert!(world.plan_up().is_none());
    world.fault(Fault::SetBudget(0, 430), 20_500.0);
    world.run(60_000.0, |world| world.plan_up().is_some());
    assert!(world.plan_up().is_some_and(|plan| plan.has_ends_on(HOST) && plan.stages.len() == 3));
}

#[test]
fn the_host_learns_what_it_costs() {
    let (mut world, _) = room(1, &DENSE, Sharing::Fastest, Ends::OnHost);
    world.run(60_000.0, |world| world.machine(0).why().is_some_and(|why| why.ends.is_some()));
    let ends = world.machine(0).why().unwrap().ends.unwrap();
    assert!(ends.free_ms > 0.0 && ends.free_ms < ends.kept_ms, "a second stage takes longer: {ends:?}");
    let (mut free, _) = room(1, &DENSE, Sharing::Fastest, Ends::Anywhere);
    free.run(60_000.0, |_| false);
    assert_eq!(free.machine(0).why().unwrap().ends, None, "nothing is kept");
}
