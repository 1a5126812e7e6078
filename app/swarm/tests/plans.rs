//! Plans while devices come, go, change and fail: nobody waits longer than needed, and answers stay the undisturbed ones.
#![allow(clippy::unwrap_used)]

use potluck_protocol::{AnswerStop, PlanStanding, Share};
use potluck_swarm::sim::{Fault, SimDevice, SimModel, World, undisturbed};

const TEXT: &str = "a question that is a little longer than one chunk of sixty-four positions, so that chunks overlap";
const TOKENS: u32 = 24;

fn dense() -> SimModel {
    SimModel { blocks: 6, experts: 0 }
}

fn hash(seed: u64) -> u64 {
    let value = seed.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (value ^ (value >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9)
}

fn answered(world: &World, index: usize, request: u32) -> bool {
    world.answer(index, request).is_some_and(|answer| answer.end.is_some())
}

fn assert_undisturbed(world: &World, index: usize, request: u32, model: &SimModel, tokens: u32, story: &str) {
    let prompt: Vec<u32> = TEXT.bytes().map(u32::from).collect();
    let answer = world.answer(index, request).unwrap_or_else(|| panic!("{story}: no answer"));
    assert_eq!(answer.end, Some(AnswerStop::Length), "{story}: the answer must end by length: {answer:?}");
    assert_eq!(answer.tokens, undisturbed(model, &prompt, tokens as usize), "{story}: the answer must be undisturbed");
}

fn stages(world: &World) -> usize {
    let plan = &world.view(0).room.unwrap().plan;
    if plan.standing == PlanStanding::Up { plan.plan.as_ref().map_or(0, |plan| plan.stages.len()) } else { 0 }
}

/// What a person does who moves the slider: much is lent at first, and less a moment later, while the first plan loads.
#[test]
fn loans_that_shrink_while_a_plan_is_prepared_come_up() {
    for seed in 0..300u64 {
        let hash = hash(seed);
        // The engines take a little more than the model's sizes say.
        let device = SimDevice { padding: hash >> 50 & 15, ..SimDevice::lending(460) };
        let mut world = World::new(seed, dense(), Share::Everyone, device);
        for index in 1..3 {
            let joins = 200.0 + (hash >> (8 * index)) as f64 % 400.0;
            let shrinks = joins + 20.0 + (hash >> (11 * index)) as f64 % 900.0;
            world.add(SimDevice { budget: Some(2_000), ..device }, joins);
            world.fault(Fault::Lend(index, 460), shrinks);
        }
        world.run(60_000.0, |_| false);
        let room = world.view(0).room.unwrap();
        let lent: Vec<_> = room.members.iter().map(|member| (member.lent, member.standing)).collect();
        assert_eq!(stages(&world), 3, "seed {seed}: three stages must come up: {:?} {lent:?}", room.plan);
        world.prompt(1, 1, TEXT, TOKENS, 60_000.0);
        world.run(120_000.0, |world| answered(world, 1, 1));
        assert_undisturbed(&world, 1, 1, &dense(), TOKENS, &format!("seed {seed}"));
    }
}
