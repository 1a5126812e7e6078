//! Multi-step decode on a device that holds the whole model: more tokens a second, and the same text.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use potluck_protocol::{AnswerStop, Sharing};
use potluck_sim::{Fault, SimDevice, SimModel, World, undisturbed, undisturbed_follow_up, undisturbed_sampled};

const TEXT: &str = "how do bees find home?";
const TOKENS: u32 = 100;

fn prompt(text: &str) -> Vec<u32> {
    text.bytes().map(u32::from).collect()
}

fn hash(seed: u64) -> u64 {
    let value = seed.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (value ^ (value >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9)
}

/// It holds the model alone. A submit with its readback takes `submit` milliseconds, a token on the GPU about one.
fn device(submit: f64) -> SimDevice {
    SimDevice { submit_millis: submit, block_millis: 0.16, ..SimDevice::with_budget(1_100) }
}

fn ended(world: &World, index: usize, request: u32) -> bool {
    world.answer(index, request).is_some_and(|answer| answer.end.is_some())
}

#[test]
fn readbacks_are_shared_by_several_tokens() {
    let mut world = World::new(1, SimModel::dense(6), Sharing::Fastest, device(5.0));
    world.prompt(0, 1, TEXT, TOKENS, 2_000.0);
    world.run(60_000.0, |world| ended(world, 0, 1));
    let answer = world.answer(0, 1).unwrap();
    assert_eq!(answer.tokens, undisturbed(&SimModel::dense(6), &prompt(TEXT), TOKENS as usize));
    let (millis, one_by_one) = (answer.token_millis(20).unwrap(), 6.0);
    println!("{millis:.2} ms a token, one by one {one_by_one:.2}");
    assert!(millis < 0.4 * one_by_one, "{millis:.2} ms a token");
}

/// A sampled answer runs ahead like a greedy one. On a GPU that samples otherwise it soon comes token by token; the text is
/// the same, also with recurrent state, which then goes back to what was kept.
#[test]
fn sampled_answers_run_ahead_unless_the_gpu_samples_otherwise() {
    for (seed, state_bytes) in [(1, 0), (2, 0), (3, 1), (4, 1)] {
        let model = SimModel { state_bytes, ..SimModel::dense(6) };
        let expected = undisturbed_sampled(&model, &prompt(TEXT), TOKENS as usize, seed);
        let [ahead, dropped] = [false, true].map(|samples_otherwise| {
            let device = SimDevice { samples_otherwise, budget: Some(3_000), ..device(5.0) };
            let mut world = World::new(seed, model.clone(), Sharing::Fastest, device);
            world.ask_sampled(0, 1, TEXT, TOKENS, seed, 2_000.0);
            world.run(60_000.0, |world| ended(world, 0, 1));
            let answer = world.answer(0, 1).unwrap();
            assert_eq!(answer.tokens, expected, "seed {seed}, samples otherwise: {samples_otherwise}");
            (answer.token_millis(20).unwrap(), answer.times.clone())
        });
        assert!(ahead.0 < 2.4, "seed {seed}: {:.2} ms a token", ahead.0);
        assert_ne!(ahead.1, dropped.1, "seed {seed}: nothing that ran ahead was dropped");
    }
}

/// A slow device takes no further steps: its tokens come one by one.
#[test]
fn a_slow_device_writes_one_by_one() {
    let mut world = World::new(1, SimModel::dense(6), Sharing::Fastest, device(5.0).at_speed(0.02));
    world.prompt(0, 1, TEXT, TOKENS, 2_000.0);
    world.run(60_000.0, |world| ended(world, 0, 1));
    let times = &world.answer(0, 1).unwrap().times;
    assert!(times.windows(2).all(|pair| pair[1] > pair[0]), "each token comes by itself");
}

/// Stopped in the middle, joined by other questions, continued, moved to another plan, on a device that fails: the
/// text is that of single steps.
#[test]
fn multi_step_decode_never_changes_the_text() {
    for seed in 0..300u64 {
        let hash = hash(seed);
        let share = if seed % 2 == 0 { Sharing::Fastest } else { Sharing::Everyone };
        let beside = hash.is_multiple_of(3);
        let mut world = World::new(seed, SimModel::dense(6), share, device(2.0));
        let asker = world.add(SimDevice::default(), 10.0);
        world.ask(asker, 1, "a", TEXT, TOKENS, 2_000.0);
        if beside {
            world.prompt(0, 9, "another question beside it", 30, 2_020.0 + (hash >> 8) as f64 % 300.0);
        }
        match (hash >> 4) % 4 {
            0 => drop(world.add(device(2.0), 1_800.0 + (hash >> 12) as f64 % 400.0)),
            1 => world.fault(Fault::DeviceLost(0), 2_020.0 + (hash >> 12) as f64 % 200.0),
            _ => {}
        }
        let stops = 2_030.0 + (hash >> 20) as f64 % 300.0;
        world.run(stops, |_| false);
        world.stop(asker, 1);
        world.run(20_000.0, |world| ended(world, asker, 1));
        let event_log = format!("seed {seed}, stopped at {stops:.0} ms");
        let first = world.answer(asker, 1).unwrap().tokens.clone();
        assert_eq!(
            first,
            undisturbed(&SimModel::dense(6), &prompt(TEXT), TOKENS as usize)[..first.len()],
            "{event_log}"
        );

        let letters: String = first.iter().filter_map(|token| char::from_u32(*token)).collect();
        let whole = format!("{TEXT}{letters}and then?");
        world.ask(asker, 2, "a", &whole, 30, world.now());
        world.run(60_000.0, |world| ended(world, asker, 2) && (!beside || ended(world, 0, 9)));
        let second = world.answer(asker, 2).unwrap();
        let kept = undisturbed_follow_up(&SimModel::dense(6), &prompt(TEXT), &first, &prompt("and then?"), 30);
        let anew = undisturbed(&SimModel::dense(6), &prompt(&whole), 30);
        assert_eq!(second.end, Some(AnswerStop::Length), "{event_log}");
        assert!(
            [&kept, &anew].contains(&&second.tokens),
            "{event_log}: {:?} is neither {kept:?} nor {anew:?}",
            second.tokens
        );
        if beside {
            let other = &world.answer(0, 9).unwrap().tokens;
            assert_eq!(
                *other,
                undisturbed(&SimModel::dense(6), &prompt("another question beside it"), 30),
                "{event_log}, beside"
            );
        }
    }
}
