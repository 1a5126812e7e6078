//! KV cache type of a room: the largest one that fits, or the host's choice, and what is said if that is too much.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use potluck_plan::KvCacheType;
use potluck_protocol::{AnswerStop, PlanStatus, PlanView, Sharing};
use potluck_sim::{Fault, SimDevice, SimModel, World, undisturbed};

const TEXT: &str = "a question that is a little longer than one chunk of sixty-four positions, so that chunks overlap";
const TOKENS: u32 = 24;
/// Six blocks of 160 bytes, two ends of 50, and 10 of overhead a device.
const WEIGHTS: u64 = 6 * 160 + 100 + 10;
/// Exact KV cache of six blocks at 256 positions; each smaller type takes half of the one before.
const EXACT: u64 = 6 * 256 * 8;

fn model() -> SimModel {
    SimModel { blocks: 6, experts: 0, kv_bytes: 8, state_bytes: 0 }
}

fn device(budget: u64) -> SimDevice {
    SimDevice::with_budget(budget)
}

fn plan(world: &World) -> PlanView {
    world.view(0).room.unwrap().plan.clone()
}

fn kv_cache(world: &World) -> Option<KvCacheType> {
    plan(world).plan.map(|plan| plan.kv_cache)
}

fn answered(world: &mut World) {
    world.run(400_000.0, |world| world.answer(0, 1).is_some_and(|answer| answer.end.is_some()));
    let prompt: Vec<u32> = TEXT.bytes().map(u32::from).collect();
    let answer = world.answer(0, 1).unwrap();
    assert_eq!(answer.end, Some(AnswerStop::Length), "{answer:?}");
    assert_eq!(answer.tokens, undisturbed(&model(), &prompt, TOKENS as usize));
}

#[test]
fn the_largest_type_that_fits_is_taken() {
    for (budget, expected) in [
        (WEIGHTS + EXACT, KvCacheType::F32),
        (WEIGHTS + EXACT - 1, KvCacheType::F16),
        (WEIGHTS + EXACT / 4, KvCacheType::Q8_0),
    ] {
        let mut world = World::new(1, model(), Sharing::Fastest, device(budget));
        world.prompt(0, 1, TEXT, TOKENS, 3_000.0);
        answered(&mut world);
        assert_eq!(kv_cache(&world), Some(expected), "{budget} lent");
        let plan = plan(&world);
        let bytes: u64 = plan.kv_cache_bytes.iter().map(|bytes| bytes.0).sum();
        let halvings = KvCacheType::ALL.iter().position(|kv_cache| *kv_cache == expected).unwrap();
        assert_eq!((bytes, plan.overhead.0), (EXACT >> halvings, 10));
    }
}

#[test]
fn a_room_that_lost_a_device_goes_on_with_a_smaller_kv_cache_type() {
    let mut world = World::new(2, model(), Sharing::Fastest, device(WEIGHTS + EXACT / 4));
    let helper = world.add(device(WEIGHTS + EXACT), 10.0);
    world.prompt(0, 1, TEXT, TOKENS, 3_000.0);
    world.run(3_500.0, |_| false);
    assert_eq!(kv_cache(&world), Some(KvCacheType::F32), "together they have room for exact ones");
    world.fault(Fault::Kill(helper), 3_600.0);
    answered(&mut world);
    assert_eq!(kv_cache(&world), Some(KvCacheType::Q8_0));
}

#[test]
fn with_more_memory_a_running_answer_keeps_its_type_and_the_next_one_is_exact() {
    let mut world = World::new(3, model(), Sharing::Fastest, device(WEIGHTS + EXACT / 4));
    world.run(5_000.0, |_| false);
    assert_eq!((plan(&world).status, kv_cache(&world)), (PlanStatus::Up, Some(KvCacheType::Q8_0)));
    world.prompt(0, 1, TEXT, TOKENS, 5_010.0);
    world.add(device(WEIGHTS + EXACT), 5_020.0);
    world.run(400_000.0, |world| world.answer(0, 1).is_some_and(|answer| answer.tokens.len() > 2));
    assert_eq!(kv_cache(&world), Some(KvCacheType::Q8_0), "an answer is being given");
    answered(&mut world);
    assert_eq!(world.answer(0, 1).unwrap().recoveries, 0);
    let exact = |world: &World| plan(world).status == PlanStatus::Up && kv_cache(world) == Some(KvCacheType::F32);
    world.run(400_000.0, exact);
    assert!(exact(&world), "{:?}", plan(&world));
    world.prompt(0, 2, TEXT, TOKENS, 400_000.0);
    world.run(800_000.0, |world| world.answer(0, 2).is_some_and(|answer| answer.end.is_some()));
    assert_eq!(world.answer(0, 2).unwrap().tokens, world.answer(0, 1).unwrap().tokens);
}

#[test]
fn the_hosts_choice_is_kept_and_what_would_fit_is_suggested() {
    let mut world = World::new(4, model(), Sharing::Fastest, device(WEIGHTS + EXACT / 4));
    world.prefer_kv_cache(KvCacheType::F32);
    world.run(5_000.0, |_| false);
    let short = plan(&world);
    assert_eq!((short.status, &short.plan), (PlanStatus::Waiting, &None));
    assert!(short.reason.contains("With q8_0 keys and values it fits."), "{}", short.reason);

    let mut world = World::new(4, model(), Sharing::Fastest, device(WEIGHTS + EXACT));
    world.prefer_kv_cache(KvCacheType::Q4_0);
    world.prompt(0, 1, TEXT, TOKENS, 3_000.0);
    answered(&mut world);
    assert_eq!(kv_cache(&world), Some(KvCacheType::Q4_0));
}

#[test]
fn the_smallest_type_is_suggested_and_never_taken_without_a_wish() {
    let mut world = World::new(6, model(), Sharing::Fastest, device(WEIGHTS + EXACT / 8));
    world.run(5_000.0, |_| false);
    let short = plan(&world);
    assert_eq!((short.status, &short.plan), (PlanStatus::Waiting, &None));
    assert!(short.reason.contains("With q4_0 keys and values it fits."), "{}", short.reason);
}

#[test]
fn the_shortfall_is_that_of_the_smallest_type_that_is_taken_without_a_wish() {
    let lent = WEIGHTS + EXACT / 4 - 1;
    let mut world = World::new(5, model(), Sharing::Fastest, device(lent));
    world.run(5_000.0, |_| false);
    let short = plan(&world);
    assert_eq!(short.status, PlanStatus::Waiting);
    assert_eq!(short.shortfall.map(|(needed, lent)| (needed.0, lent.0)), Some((lent + 1, lent)), "{}", short.reason);
}

/// Bytes of a block's exact keys at 256 positions.
const KEYS: u64 = 256 * 4;

/// A device whose largest binding is smaller than a block's exact keys.
fn narrow(budget: u64) -> SimDevice {
    SimDevice { binding: KEYS - 1, ..device(budget) }
}

#[test]
fn the_kv_cache_type_respects_the_largest_binding_of_devices_with_work() {
    // Alone it takes the next smaller type; with others it depends on who has work.
    let half = WEIGHTS / 2 + EXACT / 2 + 200;
    for (host, other, expected, event_log) in [
        (narrow(WEIGHTS + EXACT), None, KvCacheType::F16, "alone"),
        (narrow(half), Some(device(half)), KvCacheType::F16, "both are needed, and one sees too little"),
        (device(half), Some(narrow(half)), KvCacheType::F16, "the host sees more than the other one"),
        (narrow(half), Some(device(WEIGHTS + EXACT)), KvCacheType::F32, "the other one can do it alone"),
    ] {
        let mut world = World::new(1, model(), Sharing::Fastest, host);
        if let Some(other) = other {
            world.add(other, 10.0);
        }
        world.prompt(0, 1, TEXT, TOKENS, 10_000.0);
        answered(&mut world);
        assert_eq!(kv_cache(&world), Some(expected), "{event_log}");
        assert_eq!(world.violation(), None, "{event_log}");
    }
}

#[test]
fn a_device_with_too_small_bindings_is_told_so() {
    let mut world = World::new(1, model(), Sharing::Fastest, device(WEIGHTS + EXACT));
    world.prefer_kv_cache(KvCacheType::F32);
    let narrow_one = world.add(narrow(WEIGHTS + EXACT), 10.0);
    world.run(20_000.0, |_| false);
    let members = world.view(0).room.unwrap().members.clone();
    let spare = members.iter().find(|member| usize::from(member.peer.0[0]) == narrow_one + 1).unwrap().spare.clone();
    let expected = "Its GPU can address only 1 kB at once, and the KV cache of a block needs 1 kB. A shorter context would fix that.";
    assert_eq!(spare.as_deref(), Some(expected));
    // Without the other one nobody can take a block, and the room says why.
    let mut world = World::new(1, model(), Sharing::Fastest, narrow(WEIGHTS + EXACT));
    world.prefer_kv_cache(KvCacheType::F32);
    world.run(20_000.0, |_| false);
    let plan = plan(&world);
    assert_eq!(plan.status, PlanStatus::Waiting);
    assert!(plan.reason.contains("not every GPU can address the KV cache of a block at once"), "{}", plan.reason);
    assert!(plan.reason.contains("With f16 keys and values it fits."), "{}", plan.reason);
}
