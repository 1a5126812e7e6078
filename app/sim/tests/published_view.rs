//! The room view that members receive.

use potluck_plan::Millis;
use potluck_protocol::{Frame, ModelSource, Sharing};
use potluck_sim::{Fault, Link, SimDevice, SimModel, World};
use potluck_swarm::Event;

/// What a member was told of the room, in order: whether the plan came with it.
fn received(world: &mut World, index: usize) -> Vec<(f64, bool)> {
    let recording = world.recording(index);
    let room = |(event, at): &(Event, Millis)| match event {
        Event::Frame { frame: Frame::Room(_), .. } => Some((at.0, true)),
        Event::Frame { frame: Frame::RoomUpdate(..), .. } => Some((at.0, false)),
        _ => None,
    };
    recording.events().iter().filter_map(room).collect()
}

#[test]
fn a_plan_is_sent_when_it_changes_and_to_who_may_not_have_it() {
    let model = SimModel::dense(6);
    let device = SimDevice::with_budget(620).behind(Link { jitter: 1.0, ..Link::after(2.0) });
    let mut world = World::new(3, model, Sharing::Everyone, device);
    let member = world.add(device, 10.0);
    world.record(member);
    // Only the line breaks: it is the same session, and what was in flight is lost.
    world.fault(Fault::Outage(member, 300.0), 40_000.0);
    world.run(60_000.0, |world| {
        let seen = |index| world.view(index).room.and_then(|room| room.plan.plan.as_ref());
        if let (Some(seen), Some(expected)) = (seen(1), seen(0)) {
            assert!(seen == expected || seen.epoch < expected.epoch, "another plan at {} ms", world.now());
        }
        false
    });
    let received = received(&mut world, member);
    let between = |from: f64, until: f64, plan: bool| {
        received.iter().filter(|(at, has_plan)| *has_plan == plan && (from..until).contains(at)).count()
    };
    assert!(between(10_000.0, 40_000.0, false) >= 20, "measures change every second: {received:?}");
    assert!((1..=2).contains(&between(10_000.0, 40_000.0, true)), "the plan does not: {received:?}");
    assert!(between(40_000.0, 42_000.0, true) >= 1, "it may have missed a plan: {received:?}");
}

/// Links often carry tokens in their query. Devices that load weights get the address with the plan; a guest that only asks does not
/// need it.
#[test]
fn the_view_that_everybody_gets_names_the_server_of_a_link_and_nothing_else() {
    let model = SimModel::dense(6);
    let mut world = World::new(3, model, Sharing::Everyone, SimDevice::with_budget(620));
    let address = "https://me:word@models.example/private/a.gguf?token=secret";
    world.source = ModelSource::Link { url: address.into() };
    let worker = world.add(SimDevice::with_budget(620), 10.0);
    world.record(worker);
    world.run(20_000.0, |_| false);
    let seen = world.view(worker).room.and_then(|room| room.model.as_ref()).map(|model| model.source.clone());
    assert_eq!(seen, Some(ModelSource::Link { url: "models.example".into() }));
    let recording = world.recording(worker);
    let of_prepare = |(event, _): &(Event, Millis)| match event {
        Event::Frame { frame: Frame::Prepare(prepare), .. } => Some(prepare.model.source.clone()),
        _ => None,
    };
    let prepared = recording.events().iter().find_map(of_prepare);
    assert_eq!(prepared, Some(ModelSource::Link { url: address.into() }), "who loads needs it");
}
