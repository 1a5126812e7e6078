//! Explanations of a plan: what each part of a token takes, and what would help.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use potluck_protocol::{PlanStatus, PlanView, Sharing};
use potluck_sim::{Link, SimDevice, SimModel, World};

fn plan(world: &World) -> &PlanView {
    &world.view(0).room.unwrap().plan
}

/// One-way latency of each device's link, milliseconds.
const LATENCIES: [f64; 3] = [1.0, 12.0, 4.0];

#[test]
fn each_stage_and_each_message_has_its_expected_and_its_measured_time() {
    let device = |latency| SimDevice { noise: 0.1, ..SimDevice::with_budget(460) }.behind(Link::after(latency));
    let mut world = World::new(1, SimModel::dense(6), Sharing::Everyone, device(LATENCIES[0]));
    LATENCIES[1..].iter().for_each(|latency| _ = world.add(device(*latency), 100.0));
    world.run(20_000.0, |_| false);
    let waiting = plan(&world);
    assert_eq!((waiting.status, waiting.hops.len()), (PlanStatus::Up, 3), "three stages, three messages");
    assert!(waiting.hops.iter().all(|hop| hop.measured_ms == 0.0), "nothing was measured: {:?}", waiting.hops);
    world.prompt(0, 1, "a question", 60, 20_000.0);
    world.run(30_000.0, |_| false);
    let answered = plan(&world);
    let peers = answered.plan.as_ref().unwrap().stages.iter().map(|stage| stage.peer);
    let ends: Vec<_> = peers.clone().zip(peers.skip(1)).collect();
    let found: Vec<_> = answered.hops.iter().take(2).map(|hop| (hop.from, hop.to)).collect();
    assert_eq!(found, ends, "messages come in the order of a token");
    for hop in &answered.hops {
        let leg = |peer: potluck_plan::PeerId| LATENCIES[usize::from(peer.0[0]) - 1];
        let way = leg(hop.from) + leg(hop.to);
        assert!((hop.measured_ms - way).abs() < 0.5, "{way} ms in truth, {hop:?}");
        assert!((hop.predicted_ms - way).abs() < 0.5, "{way} ms in truth, {hop:?}");
    }
    let parts = answered.measured_ms.iter().sum::<f64>() + answered.hops.iter().map(|hop| hop.measured_ms).sum::<f64>();
    let all = answered.measured_token_ms;
    assert!((parts / all - 1.0).abs() < 0.05, "the parts take {parts:.1} ms, a token {all:.1} ms");
}

#[test]
fn an_idle_link_is_measured_awake() {
    // Each access link takes 4 ms longer when it was idle, and tokens never leave it idle for that long.
    let link = Link { wake: 4.0, ..Link::after(1.0) };
    let mut world = World::new(5, SimModel::dense(6), Sharing::Fastest, SimDevice::with_budget(460).behind(link));
    (0..2).for_each(|_| _ = world.add(SimDevice::with_budget(460).behind(link), 10.0));
    world.run(9_000.0, |_| false);
    let room = world.view(0).room.unwrap();
    let ways: Vec<f64> = room.members[1..].iter().map(|member| member.round_trip_ms / 2.0).collect();
    assert_eq!(ways.len(), 2, "both lines are measured");
    assert!(ways.iter().all(|way| (way - 2.0).abs() < 0.1), "two legs of 1 ms and nobody asleep, not {ways:?}");
}

#[test]
fn a_room_shows_what_would_help() {
    // What is missing.
    let mut world = World::new(2, SimModel::dense(6), Sharing::Fastest, SimDevice::with_budget(700));
    world.run(20_000.0, |_| false);
    let expected =
        ["If one more device lends 380 bytes, the model fits.", "If Device 1 lends 370 bytes more, the model fits."];
    assert_eq!(plan(&world).help, expected);
    // A host that is quick, and so small that a slow device far away has to do the rest.
    let mut world = World::new(3, SimModel::dense(6), Sharing::Fastest, SimDevice::with_budget(700));
    let slow = SimDevice::with_budget(700).at_speed(0.2).behind(Link::after(20.0));
    world.add(slow, 100.0);
    world.run(20_000.0, |_| false);
    let help = plan(&world).help.clone();
    let more =
        help.iter().find(|sentence| sentence.starts_with("If Device 1 lends ")).unwrap_or_else(|| panic!("{help:?}"));
    assert!(more.ends_with(" ms less."), "{more:?}");
    // Once it is there, it is not suggested any more.
    world.fault(potluck_sim::Fault::SetBudget(0, 1_500), 20_000.0);
    world.run(60_000.0, |_| false);
    assert_eq!(plan(&world).help, [""; 0], "one device holds the model, and nothing would help");
}

/// Devices that are slower in use, by half, than when they were timed. The first prompt is predicted from those
/// times, the next one from the first one's chunks. There is no prediction for an answer that waits in the queue.
#[test]
fn the_first_token_is_predicted_from_earlier_prompts() {
    let device =
        |latency| SimDevice { noise: 0.02, in_use: 1.5, ..SimDevice::with_budget(620) }.behind(Link::after(latency));
    for (share, latency) in [(Sharing::Fastest, 1.0), (Sharing::Everyone, 1.0), (Sharing::Everyone, 10.0)] {
        let mut world = World::new(1, SimModel::dense(6), share, device(latency));
        world.add(device(latency), 100.0);
        world.run(30_000.0, |_| false);
        let text = |letter: &str| letter.repeat(230);
        let off = |world: &mut World, request: u32| {
            let name = char::from(b'a' + request as u8).to_string();
            world.prompt(0, request, &text(&name), 3, world.now());
            world.run(world.now() + 60_000.0, |world| {
                world.answer(0, request).is_some_and(|answer| answer.end.is_some())
            });
            let timings = world.answer(0, request).unwrap().timings.unwrap();
            timings.expected_first_ms / timings.first_token_ms
        };
        let (first, later) = (off(&mut world, 1), [2, 3].map(|request| off(&mut world, request)));
        let event_log = format!("{share:?} behind {latency} ms: {first:.2} of the first one, then {later:.2?}");
        assert!((0.5..0.9).contains(&first), "{event_log}: it was timed as quicker than it is");
        assert!(later.iter().all(|later| (0.93..1.07).contains(later)), "{event_log}");
        world.prompt(0, 4, &text("x"), 20, world.now());
        world.prompt(0, 5, &text("y"), 3, world.now() + 5.0);
        world.run(world.now() + 60_000.0, |world| world.answers().all(|(_, answer)| answer.end.is_some()));
        assert_eq!(
            world.answer(0, 5).unwrap().timings.unwrap().expected_first_ms,
            0.0,
            "{event_log}: it waited for another one"
        );
    }
}
