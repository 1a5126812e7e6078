//! Experts on demand on several devices.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use potluck_plan::{Bytes, ExpertHolder, FeedForwardShape, ModelShape};
use potluck_planner::{Planned, Sharing, on_demand, predict, why_not_on_demand};
use potluck_testkit::{RoomFixture, device, moe_shape, peer};

/// Overhead, both ends, and four blocks with the keys of ten positions: everything but experts.
const PINNED: u64 = 20 + 100 + 4 * 60;

/// Four blocks of 50 bytes and sixteen experts of 100, of which a token uses four.
fn model() -> ModelShape {
    let mut shape = moe_shape(4);
    for block in &mut shape.blocks {
        if let FeedForwardShape::Experts { count, used, .. } = &mut block.feed_forward {
            (*count, *used) = (16, 4);
        }
    }
    shape
}

/// A host with room for so many experts besides everything else, and others for so many alone.
fn room(host: u64, others: &[u64]) -> RoomFixture {
    let mut devices = vec![device(0, PINNED + 100 * host + 2 * host, 1e6)];
    devices.extend(others.iter().zip(1..).map(|(slots, id)| device(id, 20 + 102 * slots, 1e6)));
    // The others have no binding for a block's keys.
    devices.iter_mut().skip(1).for_each(|device| device.binding = Bytes(1));
    RoomFixture::new(model(), devices)
}

/// The same with experts of two sizes, as files of mixed types have them.
fn mixed(fixture: RoomFixture) -> RoomFixture {
    let mut shape = fixture.shape.clone();
    for block in shape.blocks.iter_mut().step_by(3) {
        if let FeedForwardShape::Experts { expert, .. } = &mut block.feed_forward {
            *expert = Bytes(115);
        }
    }
    RoomFixture::new(shape, fixture.devices)
}

fn planned(fixture: &RoomFixture) -> Planned {
    assert!(fixture.plan(Sharing::Fastest).is_err(), "not all experts fit");
    let planned = on_demand(&fixture.room(Sharing::Experts)).unwrap();
    assert_eq!(planned.plan.validate(&fixture.shape), Ok(()));
    for device in &fixture.devices {
        let units = planned.plan.units_for(device.peer, &fixture.shape);
        let units: Bytes = units.iter().map(|unit| fixture.shape.unit_bytes(*unit)).sum();
        let slots = fixture.shape.pooled_bytes(&planned.plan.pool_for(device.peer, &fixture.shape));
        let needed = units.saturating_add(slots).saturating_add(Bytes(20));
        assert!(needed <= device.budget, "{needed} on {:?}", device.peer);
    }
    planned
}

#[test]
fn what_does_not_fit_lies_in_slots_of_those_that_hold_it() {
    // Sixty-four experts, and slots for ten on each of three devices.
    let planned = planned(&room(0, &[10, 10, 10]));
    let slots: Vec<u32> = planned.plan.pools.iter().map(|pool| pool.slots).collect();
    assert_eq!(slots, [10; 3]);
    assert_eq!(planned.plan.stages[0].pool, None, "the host has no memory for a token's experts");
    let held: u32 = planned.plan.pools.iter().map(|pool| planned.plan.experts_held(pool.peer)).sum();
    assert!(held >= 64, "every expert has a holder: {held}");
}

#[test]
fn a_stage_with_slots_of_its_own_computes_what_nobody_else_does() {
    let planned = planned(&room(6, &[10, 10, 10]));
    assert_eq!(planned.plan.stages[0].pool.map(|pool| pool.slots), Some(6));
    let mut holders = planned.plan.stages[0].remote.iter().flat_map(|remote| &remote.holders);
    assert!(holders.all(|holders| holders.contains(&ExpertHolder::Own)), "also when all others have left");
    assert!((1..=3).all(|id| planned.plan.can_spare(peer(id), |_| false)));
}

#[test]
fn a_stage_that_everybody_left_answers_alone() {
    let fixture = room(6, &[10, 10]);
    let mut plan = planned(&fixture).plan;
    (1..=2).for_each(|id| plan.drop_holder(peer(id)));
    let reason = Planned::describe(&fixture.room(Sharing::Experts), plan).reason;
    let expected = "The model does not fit: one device answers and loads experts from its storage on demand";
    assert!(reason.starts_with(expected), "{reason}");
}

#[test]
fn whatever_experts_a_device_is_named_for_its_slots_have_room() {
    for first in 1..250 {
        let mut fixture = mixed(room(12, &[10; 4]));
        fixture.devices.iter_mut().skip(1).zip(first..).for_each(|(device, id)| device.peer = peer(id));
        let planned = planned(&fixture);
        assert_eq!(planned.plan.pools.len(), 4, "devices from {first} on");
    }
}

#[test]
fn a_token_waits_for_what_has_no_slot() {
    let fixture = room(0, &[16, 16]);
    let planned = planned(&fixture);
    let room = fixture.room(Sharing::Experts);
    let mut resident = planned.plan.clone();
    resident.pools.clear();
    let more = planned.prediction.token_millis - predict(&room, &resident).token_millis;
    assert!(more > 0.0);
    let mut slower = fixture.clone();
    slower.devices.iter_mut().for_each(|device| device.storage /= 2.0);
    let slower = slower.room(Sharing::Experts);
    let twice = predict(&slower, &planned.plan).token_millis - predict(&slower, &resident).token_millis;
    assert!((twice / more - 2.0).abs() < 0.01, "(1 - recall) x the time to load: {more} and {twice}");
    let mut half = planned.plan.clone();
    half.pools.iter_mut().for_each(|pool| pool.slots /= 2);
    let half = predict(&room, &half).token_millis - predict(&room, &resident).token_millis;
    assert!(half > more, "fewer slots, more misses: {half} and {more}");
}

#[test]
fn slots_for_less_than_a_tokens_experts_are_refused_with_what_is_missing() {
    // Four experts of a block need 400 bytes, and a few stay free.
    let fixture = room(0, &[3, 2]);
    assert!(on_demand(&fixture.room(Sharing::Fastest)).is_none());
    let sentence = why_not_on_demand(&fixture.room(Sharing::Fastest)).unwrap();
    let expected = "With 98 bytes more on another device it could load experts on demand for the others.";
    assert_eq!(sentence, expected);
}
