//! A prompt's chunks pass the stages as a pipeline.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use potluck_planner::{Sharing, Speed, first_token_millis, predict_prefill};
use potluck_testkit::{RoomFixture, dense_shape, device};

/// With 48 bytes around the numbers of each.
const MESSAGES: f64 = 5.0 + (48.0 + 40.0) / 10e3 + 5.0 + (48.0 + 320.0) / 10e3;

/// Two stages, two blocks each, 1 ms session; a token costs 200 at 100 per millisecond: 2 ms.
fn two_stages() -> RoomFixture {
    let mut fixture = RoomFixture::new(dense_shape(4), (0..2).map(|id| device(id, 300, 1e6)).collect());
    for device in &mut fixture.devices {
        device.speed = Speed { decode: 1e3, prefill: 100.0 };
    }
    fixture
}

#[test]
fn chunks_overlap_so_that_the_slowest_stage_never_waits() {
    let fixture = two_stages();
    let room = fixture.room(Sharing::Fastest);
    let plan = fixture.plan(Sharing::Fastest).unwrap().plan;
    let prefill = predict_prefill(&room, &plan, 40, 10, 4);
    // A chunk of ten rows takes 1 + 20 ms a stage: the first passes both, then one every 21 ms; two messages of 5 ms and
    // their bytes at 10 kB a millisecond: ten token ids to the other device, ten hidden vectors to the coordinator.
    let expected = 21.0 * 5.0 + MESSAGES;
    assert!((prefill.millis - expected).abs() < 1e-9, "{} instead of {expected}", prefill.millis);
    assert_eq!(prefill.stage_millis, [21.0, 21.0]);
    // The last token passes the LM head: 50 at 1,000 per millisecond.
    let first = first_token_millis(&room, &plan, 40, 10, 4);
    assert!((first - expected - 0.05).abs() < 1e-9, "{first}");
}

#[test]
fn with_one_chunk_at_a_time_every_chunk_makes_the_whole_way() {
    let fixture = two_stages();
    let room = fixture.room(Sharing::Fastest);
    let plan = fixture.plan(Sharing::Fastest).unwrap().plan;
    let prefill = predict_prefill(&room, &plan, 40, 10, 1);
    let expected = 4.0 * (42.0 + MESSAGES);
    assert!((prefill.millis - expected).abs() < 1e-9, "{} instead of {expected}", prefill.millis);
}

#[test]
fn no_prompt_takes_no_time_and_odd_limits_do_no_harm() {
    let fixture = two_stages();
    let room = fixture.room(Sharing::Fastest);
    let plan = fixture.plan(Sharing::Fastest).unwrap().plan;
    assert_eq!(predict_prefill(&room, &plan, 0, 10, 4).millis, 0.0);
    assert!(predict_prefill(&room, &plan, 3, 0, 0).millis.is_finite());
}
