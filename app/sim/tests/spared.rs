//! A holder leaves whose experts others hold, too: the plan goes on, and one that is merely better waits for the answers in
//! progress.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use potluck_plan::PeerId;
use potluck_protocol::{AnswerStop, Hedging, MemberStatus, MemberView, Sharing};
use potluck_sim::{Fault, Link, SimDevice, SimModel, World, undisturbed};

const TEXT: &str = "how do bees find home?";
const TOKENS: u32 = 150;
const HOLDERS: usize = 5;
/// A holder leaves so long after the question, and somebody comes.
const LOSS: f64 = 2_000.0;

/// A block takes 100 + 5 + 8 × 20 bytes.
fn model() -> SimModel {
    SimModel { blocks: 3, experts: 8, kv_bytes: 0, state_bytes: 0 }
}

/// A round trip over the relay takes 40 ms, and they do not vary.
fn far(device: SimDevice) -> SimDevice {
    device.behind(Link::after(10.0))
}

/// The host holds everything but 19 experts, two of each of these are with others.
fn room(seed: u64) -> World {
    let mut world = World::new(seed, model(), Sharing::Fastest, far(SimDevice::with_budget(530)));
    world.pool_experts(2, Hedging::Off);
    (0..HOLDERS).for_each(|_| _ = world.add(far(SimDevice::with_budget(250)), 0.0));
    world.run(30_000.0, |world| world.fewest_holders() == 2);
    assert_eq!(world.fewest_holders(), 2, "seed {seed}");
    world
}

/// It holds the whole model, and needs nobody.
fn large() -> SimDevice {
    far(SimDevice::with_budget(2_000).at_speed(4.0))
}

fn epoch(world: &World) -> u32 {
    world.plan_up().map_or(0, |plan| plan.epoch.0)
}

fn ended(world: &World, request: u32) -> bool {
    world.answer(0, request).is_some_and(|answer| answer.end.is_some())
}

fn a_holder(world: &World, seed: u64) -> usize {
    let plan = world.plan_up().unwrap();
    let holders: Vec<PeerId> = plan.peers().into_iter().filter(|peer| !plan.has_stage(*peer)).collect();
    usize::from(holders[seed as usize % holders.len()].0[0]) - 1
}

fn assert_undisturbed(world: &World, request: u32) {
    let prompt: Vec<u32> = TEXT.bytes().map(u32::from).collect();
    let answer = world.answer(0, request).unwrap();
    assert_eq!((answer.end.clone(), answer.recoveries), (Some(AnswerStop::Length), 0), "{:?}", answer.sentences);
    assert_eq!(answer.tokens, undisturbed(&model(), &prompt, TOKENS as usize));
}

#[test]
fn a_better_plan_waits_until_the_answer_has_ended() {
    for seed in 0..8 {
        let mut world = room(seed);
        let (before, begin) = (epoch(&world), world.now());
        world.prompt(0, 1, TEXT, TOKENS, begin);
        world.fault(Fault::Kill(a_holder(&world, seed)), begin + LOSS);
        let newcomer = world.add(large(), begin + LOSS + 500.0);
        world.run(begin + LOSS + 5_000.0, |_| false);
        assert!(!ended(&world, 1), "seed {seed}: the answer goes on");
        assert_eq!(world.fewest_holders(), 2, "seed {seed}: copies are loaded at once, beside the answer");
        world.run(begin + 60_000.0, |world| ended(world, 1));
        assert_eq!(epoch(&world), before, "seed {seed}: no other plan in mid-answer");
        assert_undisturbed(&world, 1);
        let has_newcomer =
            |world: &World| world.plan_up().is_some_and(|plan| plan.has_stage(PeerId([newcomer as u8 + 1; 16])));
        world.run(world.now() + 5_000.0, has_newcomer);
        assert!(has_newcomer(&world), "seed {seed}: the better plan follows at once");
    }
}

#[test]
fn a_room_that_is_always_busy_gets_its_better_plan_after_half_a_minute() {
    for seed in 0..4 {
        let mut world = room(seed);
        let (before, begin) = (epoch(&world), world.now());
        // Two people, who ask at other times: somebody always waits.
        for asker in 0..2 {
            let guest = world.add(SimDevice::default(), begin);
            world.chat(guest, TEXT, 90, begin + 500.0 + 3_000.0 * f64::from(asker), begin + 80_000.0);
        }
        let loss = begin + 8_000.0;
        world.fault(Fault::Kill(a_holder(&world, seed)), loss);
        world.add(large(), loss + 500.0);
        world.run(loss + 80_000.0, |world| ![0, before].contains(&epoch(world)));
        let after = world.now() - loss;
        assert!((29_900.0..45_000.0).contains(&after), "seed {seed}: another plan after {after:.0} ms");
    }
}

#[test]
fn a_loss_that_leaves_an_expert_without_a_holder_brings_another_plan_at_once() {
    let mut world = World::new(3, model(), Sharing::Fastest, SimDevice::with_budget(530));
    world.pool_experts(1, Hedging::Off);
    (0..HOLDERS).for_each(|_| _ = world.add(SimDevice::with_budget(250), 0.0));
    world.run(30_000.0, |world| world.fewest_holders() == 1);
    let (before, begin) = (epoch(&world), world.now());
    world.prompt(0, 1, TEXT, TOKENS, begin);
    world.fault(Fault::Kill(a_holder(&world, 0)), begin + LOSS);
    world.run(begin + LOSS + 5_000.0, |world| ![0, before].contains(&epoch(world)));
    assert!(![0, before].contains(&epoch(&world)), "the answer waits for its experts");
    world.run(begin + 120_000.0, |world| ended(world, 1));
    assert_eq!(world.answer(0, 1).unwrap().end, Some(AnswerStop::Length));
}

/// While an answer goes on that loses a holder, the host wants all on a newcomer, which begins to load, and then wants experts
/// spread again.
#[test]
fn a_plan_that_the_host_no_longer_wants_is_given_up_though_an_answer_goes_on() {
    for seed in 0..4 {
        let mut world = World::new(seed, model(), Sharing::Experts, far(SimDevice::with_budget(530)));
        world.pool_experts(2, Hedging::Off);
        (0..4).for_each(|_| _ = world.add(far(SimDevice::with_budget(400)), 0.0));
        world.run(30_000.0, |world| world.fewest_holders() == 2);
        let (before, begin) = (epoch(&world), world.now());
        world.prompt(0, 1, TEXT, TOKENS, begin);
        let newcomer = world.add(SimDevice { download: 100.0, ..large() }, begin + 500.0);
        world.run(begin + 600.0, |_| false);
        world.set_sharing(Sharing::Fastest);
        world.fault(Fault::Kill(a_holder(&world, seed)), begin + LOSS);
        world.add(far(SimDevice::with_budget(400)), begin + LOSS + 200.0);
        world.run(begin + LOSS + 2_500.0, |_| false);
        let is_loading = |world: &World| {
            let is_newcomer = |member: &&MemberView| member.peer == PeerId([newcomer as u8 + 1; 16]);
            let member = world.view(0).room.unwrap().members.iter().find(is_newcomer);
            member.is_some_and(|member| member.status == MemberStatus::Loading)
        };
        assert!(is_loading(&world), "seed {seed}: the plan is one for the newcomer");
        world.set_sharing(Sharing::Experts);
        world.run(world.now() + 1_000.0, |_| false);
        assert!(!is_loading(&world), "seed {seed}: it loads what nobody wants");
        world.run(begin + 60_000.0, |world| ended(world, 1));
        assert_eq!(epoch(&world), before, "seed {seed}: no other plan in mid-answer");
        assert_undisturbed(&world, 1);
    }
}
