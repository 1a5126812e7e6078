//! Experts on demand: what a room does while its memory is short, and how it ends. Work on simulated
//! devices waits until its experts are in slots, of which the one used longest ago makes room.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use potluck_plan::KvCacheType;
use potluck_protocol::{AnswerStop, Hedging, PlanStatus, Sharing};
use potluck_sim::{Fault, Link, SimDevice, SimModel, World, scenario, undisturbed};

const TEXT: &str = "a question that is a little longer than one chunk of sixty-four positions, so that chunks overlap";
const TOKENS: u32 = 24;
/// Six blocks of 105 bytes without experts, two ends of 50, and 10 of overhead.
const PINNED: u64 = 6 * 105 + 100 + 10;
/// Eight experts of 20 bytes in each block.
const EXPERTS: u64 = 6 * 8 * 20;
/// Exact KV cache of six blocks at 256 positions; each smaller type takes half of the one before.
const EXACT: u64 = 6 * 256 * 8;

fn model(kv_bytes: u64) -> SimModel {
    SimModel { blocks: 6, experts: 8, kv_bytes, state_bytes: 0 }
}

fn room(seed: u64, budget: u64) -> World {
    let mut world = World::new(seed, model(0), Sharing::Fastest, SimDevice::with_budget(budget));
    world.load_on_demand();
    world
}

fn is_up(world: &World, on_demand: bool) -> bool {
    world.plan_up().is_some_and(|plan| plan.is_on_demand() == on_demand)
}

fn is_answered(world: &World, request: u32) -> bool {
    world.answer(0, request).is_some_and(|answer| answer.end.is_some())
}

fn assert_undisturbed(world: &World, request: u32, model: &SimModel, what: &str) {
    assert_eq!(world.violation(), None, "{what}");
    let prompt: Vec<u32> = TEXT.bytes().map(u32::from).collect();
    let answer = world.answer(0, request).unwrap_or_else(|| panic!("{what}: no answer"));
    assert_eq!(answer.end, Some(AnswerStop::Length), "{what}: {answer:?}");
    assert_eq!(answer.tokens, undisturbed(model, &prompt, TOKENS as usize), "{what}");
}

#[test]
fn a_device_without_room_for_all_experts_answers_and_whoever_joins_ends_that() {
    let mut world = room(1, PINNED + EXPERTS / 3);
    world.prompt(0, 1, TEXT, TOKENS, 10.0);
    world.run(60_000.0, |world| is_answered(world, 1));
    assert!(is_up(&world, true), "{:?}", world.view(0).room.unwrap().plan);
    assert_undisturbed(&world, 1, &model(0), "alone");
    world.add(SimDevice::with_budget(PINNED + EXPERTS), 60_000.0);
    world.run(300_000.0, |world| is_up(world, false));
    assert!(is_up(&world, false), "the experts fit now: {:?}", world.view(0).room.unwrap().plan);
    world.prompt(0, 2, TEXT, TOKENS, 300_000.0);
    world.run(400_000.0, |world| is_answered(world, 2));
    assert_undisturbed(&world, 2, &model(0), "together");
}

/// The budget is its owner's, however much slower the room is with it.
#[test]
fn a_device_that_lends_less_is_taken_at_its_word_though_the_others_are_slow() {
    let mut world = room(1, PINNED + EXPERTS / 3);
    let quick = world.add(SimDevice::with_budget(PINNED + EXPERTS).at_speed(50.0), 10.0);
    world.run(60_000.0, |world| is_up(world, false));
    assert!(is_up(&world, false), "everything fits: {:?}", world.view(0).room.unwrap().plan);
    world.fault(Fault::SetBudget(quick, 30), 60_000.0);
    world.run(300_000.0, |world| is_up(world, true));
    assert!(is_up(&world, true), "it holds what it does not lend: {:?}", world.view(0).room.unwrap().plan);
}

#[test]
fn a_larger_kv_cache_on_demand_does_not_keep_all_experts_from_memory() {
    // So many experts that no smaller type makes room for them.
    let model = SimModel { experts: 600, ..model(8) };
    let experts = EXPERTS / 8 * 600;
    let mut world =
        World::new(2, model.clone(), Sharing::Fastest, SimDevice::with_budget(PINNED + EXACT + experts / 3));
    world.load_on_demand();
    world.run(30_000.0, |world| is_up(world, true));
    assert_eq!(world.plan_up().map(|plan| plan.kv_cache), Some(KvCacheType::F32), "the first that fits");
    // Together the devices hold all experts with half of that cache.
    world.add(SimDevice::with_budget(experts / 3 * 2 - EXACT / 2 + 500), 30_000.0);
    world.run(600_000.0, |world| is_up(world, false));
    assert_eq!(
        world.plan_up().map(|plan| plan.kv_cache),
        Some(KvCacheType::F16),
        "{:?}",
        world.view(0).room.unwrap().plan
    );
    world.prompt(0, 1, TEXT, TOKENS, 600_000.0);
    world.run(700_000.0, |world| is_answered(world, 1));
    assert_undisturbed(&world, 1, &model, "with another type");
}

#[test]
fn a_room_that_began_with_a_smaller_kv_cache_gets_the_larger_one_between_answers() {
    // Alone the host has room for a token's experts beside half of the exact cache only.
    let model = SimModel { experts: 600, ..model(8) };
    let host = SimDevice::with_budget(PINNED + EXACT / 2 + 600);
    let mut world = World::new(7, model.clone(), Sharing::Experts, host);
    world.load_on_demand();
    let runs = |world: &World, kv_cache| world.plan_up().is_some_and(|plan| plan.kv_cache == kv_cache);
    world.run(30_000.0, |world| is_up(world, true));
    assert!(runs(&world, KvCacheType::F16), "{:?}", world.plan_up());
    world.prompt(0, 1, TEXT, TOKENS, 30_000.0);
    world.run(60_000.0, |world| is_answered(world, 1));
    // Not for all experts.
    world.add(SimDevice::with_budget(PINNED + EXACT + EXPERTS / 8 * 60), 60_000.0);
    world.run(300_000.0, |world| runs(world, KvCacheType::F32));
    assert!(is_up(&world, true) && runs(&world, KvCacheType::F32), "{}", world.view(0).room.unwrap().plan.reason);
    world.prompt(0, 2, TEXT, TOKENS, 300_000.0);
    world.run(400_000.0, |world| is_answered(world, 2));
    assert!(
        is_up(&world, true) && runs(&world, KvCacheType::F32),
        "it stays: {:?}",
        world.view(0).room.unwrap().plan.reason
    );
    (1..=2).for_each(|request| assert_undisturbed(&world, request, &model, "before and after"));
}

#[test]
fn a_larger_kv_cache_does_not_come_at_any_price() {
    // Beside the exact cache there is room for a token's experts only, beside half of it for more than half of them all.
    let model = SimModel { experts: 100, ..model(8) };
    let host = SimDevice::with_budget(PINNED + EXACT);
    let mut world = World::new(7, model.clone(), Sharing::Experts, host);
    world.load_on_demand();
    let runs = |world: &World, kv_cache| world.plan_up().is_some_and(|plan| plan.kv_cache == kv_cache);
    world.run(30_000.0, |world| is_up(world, true));
    assert!(runs(&world, KvCacheType::F16), "{:?}", world.plan_up());
    world.prompt(0, 1, TEXT, TOKENS, 30_000.0);
    world.run(60_000.0, |world| is_answered(world, 1));
    world.fault(Fault::SetBudget(0, PINNED + EXACT + 420), 60_000.0);
    world.run(400_000.0, |world| runs(world, KvCacheType::F32));
    assert!(runs(&world, KvCacheType::F16), "{:?}", world.view(0).room.unwrap().plan);
    assert_undisturbed(&world, 1, &model, "with the smaller type");
}

#[test]
fn whoever_joins_loads_in_advance_what_it_will_get() {
    let mut world = room(4, PINNED + EXPERTS / 3);
    world.run(30_000.0, |world| is_up(world, true));
    world.add(SimDevice { download: 50.0, ..SimDevice::with_budget(400) }, 30_000.0);
    let told =
        |world: &World| world.view(0).room.unwrap().members.iter().map(|member| member.standby.clone()).collect();
    world.run(50_000.0, |_| false);
    let told: Vec<Option<String>> = told(&world);
    assert_eq!(told, [None, Some("Has loaded its part in advance.".to_owned())], "slots leave no room for more");
    assert!(is_up(&world, true));
    world.add(SimDevice::with_budget(EXPERTS), 50_000.0);
    world.run(200_000.0, |world| is_up(world, false));
    world.prompt(0, 1, TEXT, TOKENS, 200_000.0);
    world.run(300_000.0, |world| is_answered(world, 1));
    assert_undisturbed(&world, 1, &model(0), "all three together");
    assert!(is_up(&world, false));
}

#[test]
fn memory_for_less_than_a_tokens_experts_is_refused_with_what_is_missing() {
    // A token uses two experts of a block: 40 bytes, and a few stay free.
    let mut world = room(3, PINNED + 39);
    world.run(10_000.0, |_| false);
    let plan = &world.view(0).room.unwrap().plan;
    assert_eq!(plan.status, PlanStatus::Waiting);
    let sentence = "With 1 bytes more on one device its experts could be loaded on demand.";
    assert!(plan.reason.ends_with(sentence), "{}", plan.reason);
}

#[test]
fn devices_come_and_go_and_answers_stay_undisturbed() {
    for seed in 0..100u64 {
        let hash = seed.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let draw = |shift: u32, below: u64| (hash >> shift) % below;
        let mut world = room(seed, PINNED + EXPERTS / (2 + draw(3, 6)));
        for index in 1..=1 + draw(11, 2) as usize {
            let at = draw(17 + 7 * index as u32, 9_000) as f64;
            world.add(SimDevice::with_budget(PINNED / 3 + draw(23 + index as u32, EXPERTS)), at);
            if draw(29 + index as u32, 2) == 0 {
                world.fault(Fault::Kill(index), at + 2_000.0 + draw(31, 9_000) as f64);
            }
        }
        for request in 1..=3 {
            world.prompt(0, request, TEXT, TOKENS, f64::from(request) * 5_000.0 - 4_000.0);
        }
        world.run(600_000.0, |world| (1..=3).all(|request| is_answered(world, request)));
        (1..=3).for_each(|request| {
            assert_undisturbed(&world, request, &model(0), &format!("seed {seed}, answer {request}"))
        });
    }
}

/// A thousand rooms: `cargo xtask simulate pooled-on-demand --seeds 1000`.
#[test]
fn holders_with_slots_for_some_of_their_experts_change_no_token() {
    let rooms = scenario("pooled-on-demand").unwrap();
    let mut recoveries = [0; 2];
    for seed in 0..200 {
        let run = (rooms.run)(seed);
        // The host of every second room computes what nobody else does.
        recoveries[(seed % 2) as usize] += run.recoveries;
        if let Some(failure) = run.failure {
            let log = run.event_log.join("\n");
            panic!("{failure}\n{log}\nreplay: cargo xtask simulate pooled-on-demand --seed {seed}");
        }
    }
    println!("recoveries without and with slots of the host: {recoveries:?}");
    assert!(recoveries[1] < recoveries[0], "the host's slots must spare most of them: {recoveries:?}");
}

#[test]
fn a_stage_tells_its_holders_what_it_will_probably_call() {
    const MANY: u32 = 180;
    let model = SimModel { blocks: 3, experts: 8, kv_bytes: 0, state_bytes: 0 };
    let mut world = World::new(5, model.clone(), Sharing::Experts, SimDevice::with_budget(10 + 100 + 3 * 105));
    world.pool_experts(1, Hedging::Off);
    world.load_on_demand();
    for holder in 0..3 {
        world.add(SimDevice::with_budget(10 + 90), f64::from(holder));
    }
    world.run(20_000.0, |world| world.plan_up().is_some_and(|plan| plan.pools.len() == 3));
    let slots: Vec<u32> = world.plan_up().unwrap().pools.iter().map(|pool| pool.slots).collect();
    assert_eq!(slots, [4; 3], "for 24 experts");
    world.prompt(0, 1, "bees", MANY, 20_000.0);
    world.run(300_000.0, |world| is_answered(world, 1));
    let answer = world.answer(0, 1).unwrap();
    assert_eq!(answer.tokens, undisturbed(&model, &[98, 101, 101, 115], MANY as usize), "{:?}", world.violation());
    let (missed, guessed) = (1..=3)
        .fold((0, 0), |(missed, guessed), holder| (missed + world.missed(holder), guessed + world.guessed(holder)));
    println!("{missed} experts were waited for, {guessed} were loaded on a guess");
    assert!(missed > 0 && guessed > 0, "{missed} misses, {guessed} guesses");
}

/// A shadow is the draft model, too: the tokens that it expects pass the blocks beside the certain one, so they share its
/// round trips.
#[test]
fn what_a_shadow_expects_is_verified_several_tokens_at_a_time() {
    const MANY: u32 = 180;
    let model = SimModel { blocks: 6, experts: 8, kv_bytes: 0, state_bytes: 0 };
    let prompt: Vec<u32> = "bees".bytes().map(u32::from).collect();
    let answer = undisturbed(&model, &prompt, MANY as usize);
    let room = |right: Option<f64>| {
        let far = |device: SimDevice| SimDevice { link: Link { latency: 10.0, ..Link::default() }, ..device };
        let mut world = World::new(6, model.clone(), Sharing::Experts, far(SimDevice::with_budget(PINNED)));
        world.pool_experts(1, Hedging::Off);
        world.load_on_demand();
        if let Some(right) = right {
            world.expect_text([&prompt[..], &answer].concat(), right, 8.0);
        }
        for holder in 0..3 {
            world.add(far(SimDevice::with_budget(10 + 160)), f64::from(holder));
        }
        world.run(20_000.0, |world| world.plan_up().is_some_and(|plan| plan.pools.len() == 3));
        // The first answer shows whether the shadow pays.
        for request in 1..=3 {
            world.prompt(0, request, "bees", MANY, world.now().max(20_000.0));
            world.run(world.now() + 300_000.0, |world| is_answered(world, request));
            assert_eq!(world.answer(0, request).unwrap().tokens, answer, "{right:?}: {:?}", world.violation());
        }
        let (view, times) =
            (world.view(0), [1, 3].map(|request| world.answer(0, request).unwrap().token_millis(20).unwrap()));
        let (drafts, hints) = (view.drafts.unwrap().from_shadow, view.hints.unwrap().guessing);
        println!("{right:?}: {:.0} ms a token at first and then {:.0}, {drafts:?}, {hints:?}", times[0], times[1]);
        (times[1], drafts)
    };
    let (without, none) = room(None);
    assert_eq!(none.sent, 0);
    let (with, drafts) = room(Some(0.95));
    assert!(with < 0.5 * without, "{with:.0} ms a token, without {without:.0}");
    assert!(drafts.accepted as f64 > 0.8 * drafts.sent as f64, "{drafts:?}");
    let (misled, wrong) = room(Some(0.0));
    assert!(misled < 1.03 * without, "{misled:.0} ms a token with a shadow that is wrong, without {without:.0}");
    assert!(wrong.sent < 20, "it is not asked again and again: {wrong:?}");
}
