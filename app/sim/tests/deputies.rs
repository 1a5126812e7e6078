//! The host is lost, and its deputy goes on with the room. Thousands of rooms by command: `cargo xtask simulate deputies --seeds 10000`.

use potluck_protocol::{AnswerStop, DeputyChoice, Sharing};
use potluck_sim::{DEPUTY_HOSTS, Fault, SimDevice, SimModel, World, of_seeds, scenario, undisturbed};

const TEXT: &str = "a question that is a little longer than one chunk of sixty-four positions, so that chunks overlap";

#[test]
fn in_hundreds_of_rooms_answers_go_on_when_the_host_is_lost() {
    let deputies = scenario("deputies").expect("it is in the list");
    let hosts = of_seeds(0..500, |seed| {
        let run = (deputies.run)(seed);
        if let Some(failure) = run.failure {
            panic!("{failure}\n{}\nreplay: cargo xtask simulate deputies --seed {seed}", run.event_log.join("\n"));
        }
        run.event_log.iter().any(|line| line == DEPUTY_HOSTS)
    });
    let hosts = hosts.into_iter().filter(|hosts| *hosts).count();
    assert!(hosts > 250, "a deputy must often take over, only {hosts} times one did");
}

const TOKENS: u32 = 140;

fn model() -> SimModel {
    SimModel::dense(12)
}

/// Three devices, of which two hold the model, and a guest that asks for an answer that is disturbed.
fn disturbed(deputy: DeputyChoice, fault: Fault) -> World {
    let device = || SimDevice { block_millis: 4.0, noise: 0.05, ..SimDevice::with_budget(1_300) };
    let mut world = World::new(7, model(), Sharing::Fastest, device());
    world.choose_deputy(deputy);
    world.add(device(), 100.0);
    world.add(device(), 200.0);
    let asker = world.add(SimDevice::default(), 300.0);
    world.prompt(asker, 1, TEXT, TOKENS, 8_000.0);
    world.fault(fault, 12_000.0);
    world.run(180_000.0, |world| world.answer(asker, 1).is_some_and(|answer| answer.end.is_some()));
    world
}

#[test]
fn an_answer_goes_on_where_its_host_stopped_whatever_happened_to_the_host() {
    let prompt: Vec<u32> = TEXT.bytes().map(u32::from).collect();
    for fault in [Fault::Kill(0), Fault::Freeze(0, 30_000.0), Fault::Cut(0, 30_000.0), Fault::Vanish(0)] {
        let world = disturbed(DeputyChoice::Anyone, fault);
        let answer = world.answer(3, 1).expect("it was asked");
        assert_eq!(answer.end, Some(AnswerStop::Length), "{fault:?}");
        assert_eq!(answer.tokens, undisturbed(&model(), &prompt, TOKENS as usize), "{fault:?}");
        assert_eq!((answer.begun_again, world.taken_over(), world.violation()), (0, 1, None), "{fault:?}");
        let gap = answer.times.windows(2).map(|pair| pair[1] - pair[0]).fold(0.0, f64::max);
        println!("{fault:?}: the longest pause between tokens is {gap:.0} ms");
    }
}

#[test]
fn without_a_deputy_the_room_waits_for_its_host() {
    let world = disturbed(DeputyChoice::Nobody, Fault::Kill(0));
    let answer = world.answer(3, 1).expect("it was asked");
    assert!(matches!(&answer.end, Some(AnswerStop::Failed(_))), "{:?}", answer.end);
    assert_eq!(world.taken_over(), 0);
}

#[test]
fn a_host_that_was_frozen_takes_part_in_the_room_of_its_deputy() {
    let mut world = disturbed(DeputyChoice::Anyone, Fault::Freeze(0, 30_000.0));
    world.run(60_000.0, |_| false);
    assert!(!world.view(0).coordinator, "it does not host any more");
    let host = world.view(0).room.map(|room| room.host);
    assert!(host.is_some() && host == world.view(3).room.map(|room| room.host), "it is in the deputy's room");
}
