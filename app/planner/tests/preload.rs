//! What is loaded while more devices are awaited, and how the plan that comes at last treats it.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::collections::{BTreeMap, BTreeSet};

use potluck_plan::{BlockIndex, PeerId, WeightUnit};
use potluck_planner::{Device, Sharing, plan_keeping, preload};
use potluck_testkit::{RoomFixture, dense_shape, device, moe_shape, peer};

/// A device that holds blocks.
fn holding(device: Device, blocks: impl IntoIterator<Item = u16>) -> Device {
    Device { holds: blocks.into_iter().map(BlockIndex).collect(), ..device }
}

fn blocks(units: &[WeightUnit]) -> BTreeSet<u16> {
    units.iter().filter_map(|unit| unit.block()).map(|block| block.0).collect()
}

fn parts(fixture: &RoomFixture) -> BTreeMap<PeerId, BTreeSet<u16>> {
    let units = preload(&fixture.room(Sharing::Fastest));
    units.into_iter().map(|(peer, units)| (peer, blocks(&units))).collect()
}

#[test]
fn devices_load_as_much_as_they_have_room_for_and_never_the_same() {
    // A block takes 110 bytes with its KV cache, and each device 20 besides.
    for shape in [dense_shape(12), moe_shape(12)] {
        let block = shape.blocks[0].weights().0 + 10;
        let fixture = RoomFixture::new(
            shape,
            vec![
                device(0, 20 + 50 + 4 * block, 1e6),
                device(1, 20 + 50 + 3 * block, 2e6),
                device(2, 20 + block / 2, 1e6),
            ],
        );
        assert!(fixture.plan(Sharing::Fastest).is_err(), "the room is too small");
        let parts = parts(&fixture);
        assert_eq!(parts.keys().copied().collect::<Vec<_>>(), [peer(0), peer(1)], "the third has no room for a block");
        assert_eq!((parts[&peer(0)].len(), parts[&peer(1)].len()), (4, 3));
        assert!(parts[&peer(0)].is_disjoint(&parts[&peer(1)]));
    }
}

#[test]
fn the_next_device_loads_what_nobody_holds() {
    let first = || device(0, 480, 1e6);
    let alone = RoomFixture::new(dense_shape(12), vec![first()]);
    let held = parts(&alone)[&peer(0)].clone();
    assert!(held.len() >= 3, "{held:?}");
    let two = RoomFixture::new(dense_shape(12), vec![holding(first(), held.clone()), device(1, 480, 4e6)]);
    let parts = parts(&two);
    assert_eq!(parts[&peer(0)], held, "it keeps what it has, although the other one is quicker");
    assert!(parts[&peer(1)].is_disjoint(&held));
}

#[test]
fn the_plan_keeps_what_is_loaded_unless_that_costs_more_than_a_little() {
    // Two devices of 8 blocks each for a model of 12: the quicker one should have as many as it can.
    let of = |speed: f64, held: std::ops::Range<u16>| {
        let fixture =
            RoomFixture::new(dense_shape(12), vec![holding(device(0, 950, 1e4), held), device(1, 950, speed)]);
        let room = fixture.room(Sharing::Fastest);
        let (best, kept) = (fixture.plan(Sharing::Fastest).unwrap(), plan_keeping(&room).unwrap());
        let own = kept.plan.stages.iter().find(|stage| stage.peer == peer(0)).unwrap().blocks;
        let longer = kept.prediction.token_millis / best.prediction.token_millis;
        assert!(longer < 1.06, "{longer}");
        (own.start, own.end)
    };
    assert_eq!(of(1.02e4, 0..8), (0, 8), "hardly quicker: nothing is moved");
    let (start, end) = of(8e4, 0..8);
    assert!(end - start < 8, "much quicker: it gets more than is left, {start}..{end}");
    assert_eq!(start, 0, "but what stays is held already");
}

#[test]
fn a_room_that_no_device_can_complete_loads_nothing() {
    let fixture = RoomFixture::new(dense_shape(12), vec![device(0, 30, 1e6)]);
    assert!(parts(&fixture).is_empty());
}
