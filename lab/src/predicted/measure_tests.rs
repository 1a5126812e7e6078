//! Each measure keeps the plan out of one trap.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use super::measure::Measure;
use potluck_plan::{Bytes, PeerId};
use potluck_planner::{AccessLink, Device, Link, Links, Sharing};
use potluck_testkit::{DenseBlock, RoomFixture, peer, shape};

const COORDINATOR: u8 = 0;
const SLOW: u8 = 2;
const FAR: u8 = 3;
const NARROW: u8 = 4;

/// The coordinator has memory for half of the model. Three others could take the rest: one is slow, one far away, one
/// has little bandwidth. Who gets it if the planner does not know a measure?
fn second_device(hidden: Option<Measure>, slow_speed: f64) -> PeerId {
    let block = DenseBlock { token_mixer: 500, feed_forward: 500, kv_cache_per_position: 0 };
    let mut model = shape(vec![block.into(); 4]);
    (model.hidden, model.embedding, model.lm_head) = (1_000, Bytes(10), Bytes(0));
    let device = |id, budget, speed| Device::declared(peer(id), Bytes(budget), speed * 1e6, 0.1);
    let mut devices = [
        device(COORDINATOR, 2_100, 1.0),
        device(SLOW, 2_500, slow_speed),
        device(FAR, 2_500, 1.0),
        device(NARROW, 2_500, 1.0),
    ];
    let mut links = Links::default();
    for (id, latency_millis, bandwidth) in
        [(COORDINATOR, 0.1, 1e6), (SLOW, 0.1, 1e6), (FAR, 30.0, 1e6), (NARROW, 0.05, 200.0)]
    {
        let link = Link { latency_millis, bandwidth };
        links.set_access(peer(id), AccessLink { up: link, down: link });
    }
    if let Some(measure) = hidden {
        measure.hide(&mut devices, &mut links);
    }
    let mut fixture = RoomFixture::new(model, devices.to_vec()).with_links(links).with_context(64);
    fixture.overhead = Bytes::ZERO;
    let peers = fixture.plan(Sharing::Fastest).unwrap().plan.peers();
    let others: Vec<PeerId> = peers.into_iter().filter(|other| *other != peer(COORDINATOR)).collect();
    let [second] = others[..] else { panic!("two devices are enough: {others:?}") };
    second
}

#[test]
fn each_measure_keeps_the_plan_out_of_its_trap() {
    assert_eq!(second_device(None, 0.25), peer(SLOW), "8 ms for its half, against 60 ms of latency or 40 ms for bytes");
    assert_eq!(second_device(Some(Measure::Latency), 0.25), peer(FAR));
    assert_eq!(second_device(Some(Measure::Bandwidth), 0.25), peer(NARROW));
    assert_eq!(second_device(None, 0.02), peer(NARROW), "100 ms for its half is too slow");
    assert_eq!(second_device(Some(Measure::Compute), 0.02), peer(SLOW), "nothing else is against it");
    assert_eq!(second_device(Some(Measure::Memory), 0.25), peer(SLOW));
}

#[test]
fn measures_are_read_by_name() {
    assert_eq!("bandwidth".parse(), Ok(Measure::Bandwidth));
    assert!("tea".parse::<Measure>().is_err_and(|sentence| sentence.contains("compute, memory")));
}
