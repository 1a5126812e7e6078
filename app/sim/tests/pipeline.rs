//! Several conversations in one pipeline: they share its stages and its pages, and none changes another's answer.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use potluck_protocol::{AnswerStop, Sharing};
use potluck_sim::{Fault, Link, SimDevice, SimModel, World, undisturbed, undisturbed_sampled};

/// A path from peer to peer has two access links.
fn device(budget: Option<u64>, one_way: f64) -> SimDevice {
    SimDevice { budget, ..SimDevice::default() }.behind(Link::after(one_way / 2.0))
}

/// Three stages (each device has room for two blocks and an end) and a guest that asks.
fn three_stages(seed: u64, one_way: f64) -> (World, usize) {
    let mut world = World::new(seed, SimModel::dense(6), Sharing::Fastest, device(Some(460), one_way));
    world.add(device(Some(460), one_way), 10.0);
    world.add(device(Some(460), one_way), 20.0);
    let guest = world.add(device(None, one_way), 30.0);
    world.run(4_900.0, |_| false);
    assert_eq!(world.view(0).room.unwrap().plan.plan.clone().unwrap().stages.len(), 3);
    (world, guest)
}

fn assert_undisturbed(world: &World, asker: usize, request: u32, text: &str, tokens: u32, event_log: &str) {
    let prompt: Vec<u32> = text.bytes().map(u32::from).collect();
    let answer = world.answer(asker, request).unwrap();
    assert_eq!(answer.end, Some(AnswerStop::Length), "{event_log}: question {request} must be answered: {answer:?}");
    assert_eq!(
        answer.tokens,
        undisturbed(&SimModel::dense(6), &prompt, tokens as usize),
        "{event_log}: question {request}"
    );
}

fn all_ended(asker: usize, requests: std::ops::RangeInclusive<u32>) -> impl Fn(&World) -> bool {
    move |world| requests.clone().all(|request| world.answer(asker, request).is_some_and(|answer| answer.end.is_some()))
}

/// Tokens a second of this many conversations at once, each with a page of its own.
fn rate(conversations: u32) -> f64 {
    const TOKENS: u32 = 40;
    let (mut world, guest) = three_stages(1, 20.0);
    let text = |request: u32| format!("question number {request}");
    for request in 1..=conversations {
        world.prompt(guest, request, &text(request), TOKENS, 5_000.0);
    }
    world.run(120_000.0, all_ended(guest, 1..=conversations));
    for request in 1..=conversations {
        assert_undisturbed(&world, guest, request, &text(request), TOKENS, "conversations side by side");
    }
    f64::from(conversations * TOKENS) / (world.now() - 5_000.0) * 1e3
}

#[test]
fn four_conversations_on_three_stages_give_at_least_twice_the_tokens_of_one() {
    let (one, four) = (rate(1), rate(4));
    println!("tokens a second on three stages at 20 ms one way: one conversation {one:.1}, four {four:.1}");
    assert!(four >= 2.0 * one, "one conversation {one:.1} tokens a second, four {four:.1}");
}

#[test]
fn only_devices_of_the_plan_are_told_that_somebody_writes() {
    let (mut world, guest) = three_stages(2, 5.0);
    let spare = world.add(device(Some(100), 5.0), 4_901.0);
    world.run(9_000.0, |_| false);
    // One writes a letter every 20 ms for a second, then asks.
    for letter in 0..50 {
        world.write(guest);
        world.run(9_000.0 + 20.0 * f64::from(letter + 1), |_| false);
    }
    world.run(10_050.0, |_| false);
    let told: Vec<u32> = (0..3).map(|device| world.expecting(device)).collect();
    assert!(told.iter().all(|told| (2..=3).contains(told)), "about twice a second, not for every letter: {told:?}");
    assert_eq!(world.expecting(spare), 0, "a device without work has nothing to get ready for");
    world.prompt(guest, 1, "at last", 8, 10_060.0);
    world.run(60_000.0, all_ended(guest, 1..=1));
    assert!((0..3).all(|device| world.expecting(device) > told[device]), "a question is rows to come as well");
    assert_undisturbed(&world, guest, 1, "at last", 8, "after writing");
}

/// Two answers that both fit at the beginning and not at the end: one pauses and goes on later.
#[test]
fn answers_that_outgrow_the_pages_take_turns_and_stay_correct() {
    for seed in 0..50u64 {
        let (mut world, guest) = three_stages(seed, 10.0);
        let text = |request: u32| {
            format!("{request} {}", "a question of about sixty positions".repeat(1 + request as usize % 2))
        };
        for request in 1..=3 {
            let at = 5_000.0 + (seed * u64::from(request) * 37 % 400) as f64;
            world.prompt(guest, request, &text(request), 100, at);
        }
        world.run(300_000.0, all_ended(guest, 1..=3));
        for request in 1..=3 {
            assert_undisturbed(&world, guest, request, &text(request), 100, &format!("seed {seed}"));
        }
    }
}

#[test]
fn many_questions_of_many_askers_survive_a_fault() {
    for seed in 0..200u64 {
        let (mut world, guest) = three_stages(seed, 6.0);
        let spare = world.add(device(Some(460), 6.0), 4_000.0);
        let hash = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let text =
            |asker: usize, request: u32| format!("{asker}:{request} {}", "so it goes ".repeat(request as usize % 6));
        for asker in [guest, 0] {
            for request in 1..=5 {
                let at = 5_000.0 + (hash >> (request * 5 + asker as u32)) as f64 % 2_000.0;
                world.prompt(asker, request, &text(asker, request), 30, at);
            }
        }
        let back = 200.0 + (hash >> 30) as f64 % 3_000.0;
        let victim = 1 + (hash >> 9) as usize % 2;
        let fault = match (hash >> 13) % 5 {
            0 => Fault::Kill(victim),
            1 => Fault::Reload(victim, back),
            2 => Fault::Outage(victim, back),
            3 => Fault::RelayRestart(back),
            _ => Fault::DeviceLost(victim),
        };
        world.fault(fault, 5_000.0 + (hash >> 40) as f64 % 4_000.0);
        let both = |world: &World| all_ended(guest, 1..=5)(world) && all_ended(0, 1..=5)(world);
        world.run(400_000.0, both);
        for asker in [guest, 0] {
            for request in 1..=5 {
                let event_log = format!("seed {seed}, {fault:?}, asker {asker}, spare {spare}");
                assert_undisturbed(&world, asker, request, &text(asker, request), 30, &event_log);
            }
        }
    }
}

/// A guest whose link is gone for ten seconds does not slow down the others.
#[test]
fn an_unreachable_asker_does_not_delay_others() {
    let ends_at = |outage: bool| {
        let (mut world, slow) = three_stages(3, 10.0);
        let quick = world.add(device(None, 10.0), 4_900.0);
        world.prompt(slow, 1, "from behind a bad line", 30, 6_000.0);
        world.prompt(quick, 1, "from nearby", 30, 6_000.0);
        if outage {
            world.fault(Fault::Outage(slow, 9_000.0), 6_200.0);
        }
        world.run(60_000.0, all_ended(quick, 1..=1));
        let at = world.now();
        assert_undisturbed(&world, quick, 1, "from nearby", 30, "the quick one");
        world.run(60_000.0, all_ended(slow, 1..=1));
        assert_undisturbed(&world, slow, 1, "from behind a bad line", 30, "the slow one");
        at
    };
    let (alone, beside) = (ends_at(false), ends_at(true));
    assert!(beside <= alone + 1.0, "undisturbed at {alone:.0} ms, beside a slow reader at {beside:.0} ms");
}

/// A stopped answer and a stopped question make room at once.
#[test]
fn a_stopped_answer_frees_its_pages_at_once() {
    let (mut world, guest) = three_stages(4, 10.0);
    // All four pages: the second waits.
    world.prompt(guest, 1, &"long ".repeat(45), 30, 5_000.0);
    world.prompt(guest, 2, "short", 30, 5_100.0);
    world.run(6_000.0, |_| false);
    assert!(world.answer(guest, 2).unwrap().tokens.is_empty(), "there is no page left for the second");
    world.stop(guest, 1);
    world.run(60_000.0, all_ended(guest, 1..=2));
    assert_eq!(world.answer(guest, 1).unwrap().end, Some(AnswerStop::Stopped));
    assert_undisturbed(&world, guest, 2, "short", 30, "after the stop");
}

/// An answer that repeats itself takes fewer round trips with drafts, and stays the same.
#[test]
fn drafts_give_several_tokens_a_round_trip_and_the_same_answer() {
    const TEXT: &str = "row row row your boat";
    const TOKENS: u32 = 120;
    let prompt: Vec<u32> = TEXT.bytes().map(u32::from).collect();
    let rate = |song: bool| {
        let (mut world, guest) = three_stages(1, 20.0);
        if song {
            world.ask_sampled(guest, 1, TEXT, TOKENS, 7, 5_000.0)
        } else {
            world.prompt(guest, 1, TEXT, TOKENS, 5_000.0)
        }
        world.run(120_000.0, all_ended(guest, 1..=1));
        let answer = world.answer(guest, 1).unwrap();
        let expected = if song {
            undisturbed_sampled(&SimModel::dense(6), &prompt, TOKENS as usize, 7)
        } else {
            undisturbed(&SimModel::dense(6), &prompt, TOKENS as usize)
        };
        assert_eq!(answer.tokens, expected, "song: {song}");
        1e3 / answer.token_millis(0).unwrap()
    };
    let (plain, song) = (rate(false), rate(true));
    println!("tokens a second at 20 ms one way: nothing repeats {plain:.1}, a song {song:.1}");
    assert!(song >= 1.8 * plain, "nothing repeats: {plain:.1} tokens a second, a song: {song:.1}");
}

#[test]
fn drafts_survive_faults_and_neighbours() {
    for seed in 0..150u64 {
        let (mut world, guest) = three_stages(seed, 8.0);
        world.add(device(Some(460), 8.0), 4_000.0);
        let hash = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let text = |request: u32| format!("la la {request} la la");
        for request in 1..=3 {
            world.ask_sampled(guest, request, &text(request), 40, seed, 5_000.0 + f64::from(request) * 50.0);
        }
        let back = 200.0 + (hash >> 30) as f64 % 3_000.0;
        let victim = 1 + (hash >> 9) as usize % 2;
        let fault = match (hash >> 13) % 4 {
            0 => Fault::Kill(victim),
            1 => Fault::Outage(victim, back),
            2 => Fault::RelayRestart(back),
            _ => Fault::DeviceLost(victim),
        };
        world.fault(fault, 5_000.0 + (hash >> 40) as f64 % 1_500.0);
        world.run(300_000.0, all_ended(guest, 1..=3));
        for request in 1..=3 {
            let prompt: Vec<u32> = text(request).bytes().map(u32::from).collect();
            let answer = world.answer(guest, request).unwrap();
            let event_log = format!("seed {seed}, {fault:?}, song {request}: {answer:?}");
            assert_eq!(answer.end, Some(AnswerStop::Length), "{event_log}");
            assert_eq!(answer.tokens, undisturbed_sampled(&SimModel::dense(6), &prompt, 40, seed), "{event_log}");
        }
    }
}
