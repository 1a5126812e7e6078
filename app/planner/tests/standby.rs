//! Who takes over when a device goes.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::collections::BTreeMap;

use potluck_plan::{Bytes, Cuts, ExpertHolder, ModelShape, PeerId, Plan, WeightUnit};
use potluck_planner::{Presence, Sharing, StandbyKind, Standbys, standby, standby_keeping};
use potluck_testkit::{RoomFixture, dense_shape, device, moe_shape, peer};

fn standbys(fixture: &RoomFixture) -> (Plan, Standbys) {
    let planned = fixture.plan(Sharing::Fastest).unwrap();
    let standbys = standby(&fixture.room(Sharing::Fastest), &planned.plan);
    (planned.plan, standbys)
}

/// Bytes of the active plan and of all preloads together on each device, KV cache and overhead included.
fn bytes(fixture: &RoomFixture, plan: &Plan, standbys: &Standbys) -> BTreeMap<PeerId, Bytes> {
    let mut units: BTreeMap<PeerId, Vec<WeightUnit>> = BTreeMap::new();
    for device in &fixture.devices {
        units.insert(device.peer, plan.units_for(device.peer, &fixture.shape));
    }
    for (peer, preload) in standbys.covered.iter().flat_map(|standby| &standby.preload) {
        units.get_mut(peer).unwrap().extend(preload);
    }
    let size = |unit: &WeightUnit| match unit {
        WeightUnit::TokenMixer(block) => Bytes(
            fixture.shape.unit_bytes(*unit).0 + 10 * fixture.shape.blocks[usize::from(block.0)].kv_cache_per_position.0,
        ),
        _ => fixture.shape.unit_bytes(*unit),
    };
    units
        .into_iter()
        .map(|(peer, units)| (peer, units.iter().map(size).sum::<Bytes>().saturating_add(Bytes(20))))
        .collect()
}

fn check(fixture: &RoomFixture, plan: &Plan, standbys: &Standbys) {
    for standby in &standbys.covered {
        assert_eq!(standby.plan.validate(&fixture.shape), Ok(()), "{standby:?}");
        assert!(!standby.plan.peers().contains(&standby.lost), "{standby:?}");
        // What a peer needs in the standby plan it has from the active plan, or has preloaded.
        for peer in standby.plan.peers() {
            let active = plan.units_for(peer, &fixture.shape);
            let preloads = standbys.covered.iter().flat_map(|standby| &standby.preload).filter(|(who, _)| *who == peer);
            let preloaded: Vec<WeightUnit> = preloads.flat_map(|(_, units)| units.clone()).collect();
            for unit in standby.plan.units_for(peer, &fixture.shape) {
                assert!(active.contains(&unit) || preloaded.contains(&unit), "{unit:?} on {peer:?} in {standby:?}");
            }
        }
    }
    for device in &fixture.devices {
        let taken = bytes(fixture, plan, standbys)[&device.peer];
        assert!(taken <= device.budget, "{:?} has {} and would need {taken}", device.peer, device.budget);
    }
}

#[test]
fn a_spare_takes_the_lost_stage_and_the_others_stay_as_they_are() {
    let fixture = RoomFixture::new(dense_shape(4), (0..3).map(|id| device(id, 320, 1e6)).collect());
    let (plan, standbys) = standbys(&fixture);
    check(&fixture, &plan, &standbys);
    let [standby] = &standbys.covered[..] else { panic!("{standbys:?}") };
    assert_eq!((standby.lost, standby.kind), (peer(1), StandbyKind::Spare));
    for (after, before) in standby.plan.stages.iter().zip(&plan.stages) {
        if before.peer == peer(1) {
            assert_eq!((after.peer, after.blocks), (peer(2), before.blocks))
        } else {
            assert_eq!(after, before, "the coordinator's stage is not touched")
        }
    }
}

#[test]
fn a_model_that_must_not_be_cut_moves_as_a_whole() {
    let shape = ModelShape { cuts: Cuts::Nowhere, ..dense_shape(4) };
    let fixture = RoomFixture::new(shape, (0..3).map(|id| device(id, 400 + 200 * u64::from(id), 1e6)).collect());
    let (plan, standbys) = standbys(&fixture);
    check(&fixture, &plan, &standbys);
    let [standby] = &standbys.covered[..] else { panic!("{standbys:?}") };
    assert_eq!((plan.stages[0].peer, standby.plan.stages[0].peer), (peer(1), peer(2)));
}

#[test]
fn one_spare_covers_two_peers_if_it_has_memory() {
    let mut devices: Vec<_> = (0..3).map(|id| device(id, 250, 1e6)).collect();
    devices.push(device(3, 500, 1e3));
    let fixture = RoomFixture::new(dense_shape(4), devices);
    let (plan, standbys) = standbys(&fixture);
    check(&fixture, &plan, &standbys);
    assert_eq!(plan.stages.len(), 3, "the slow device is no stage: {plan:?}");
    assert_eq!(standbys.covered.len(), 2, "{standbys:?}");
    assert!(standbys.covered.iter().all(|standby| standby.plan.peers().contains(&peer(3))));
}

#[test]
fn without_a_spare_a_neighbour_grows() {
    // Two stages of two blocks (220 and an end), overhead 20; the coordinator could hold everything but is slow.
    let fixture = RoomFixture::new(dense_shape(4), vec![device(0, 600, 1e4), device(1, 340, 1e6)]);
    let (plan, standbys) = standbys(&fixture);
    check(&fixture, &plan, &standbys);
    assert_eq!(plan.peers().len(), 2);
    let [standby] = &standbys.covered[..] else { panic!("{standbys:?}") };
    assert_eq!(standby.kind, StandbyKind::Redundant);
    assert_eq!(standby.plan.stages.len(), 1, "the neighbour's stage grows: {:?}", standby.plan.stages);
}

#[test]
fn a_room_without_free_memory_shows_what_is_missing() {
    let fixture = RoomFixture::new(dense_shape(4), vec![device(0, 300, 1e6), device(1, 300, 1e6)]);
    let (plan, standbys) = standbys(&fixture);
    check(&fixture, &plan, &standbys);
    let [exposed] = &standbys.exposed[..] else { panic!("{standbys:?}") };
    assert_eq!(exposed.lost, peer(1));
    // Its two blocks and an end take 270; the coordinator has 300 − 20 − 270 left.
    assert_eq!(exposed.missing, Bytes(260));
}

#[test]
fn peers_that_leave_often_are_covered_first() {
    // Peers 1 and 2 have a stage each, of two blocks or one with an end; the spare has room for one of them.
    let mut devices: Vec<_> = (0..3).map(|id| device(id, 250, 1e6)).collect();
    devices.push(device(3, 250, 1e3));
    devices[2].presence = Presence { departures: 2, ..Presence::default() };
    let fixture = RoomFixture::new(dense_shape(4), devices);
    let (plan, standbys) = standbys(&fixture);
    check(&fixture, &plan, &standbys);
    assert_eq!(standbys.covered.iter().map(|standby| standby.lost).collect::<Vec<_>>(), [peer(2)], "{standbys:?}");
}

#[test]
fn a_lost_holder_of_experts_is_replaced() {
    let devices = vec![device(0, 900, 1e6), device(1, 440, 1e6), device(2, 440, 1e6), device(3, 440, 1e6)];
    let fixture = RoomFixture::new(moe_shape(3), devices);
    let (plan, standbys) = standbys(&fixture);
    check(&fixture, &plan, &standbys);
    let holders: Vec<PeerId> = plan.peers().into_iter().filter(|peer| *peer != potluck_testkit::peer(0)).collect();
    assert!(!holders.is_empty(), "experts are remote: {plan:?}");
    assert!(!standbys.covered.is_empty(), "{standbys:?}");
    for standby in &standbys.covered {
        assert_eq!(standby.plan.stages[0].blocks, plan.stages[0].blocks, "the mixers stay where they are");
    }
}

/// Somebody joins: what was loaded in advance is not loaded anew elsewhere, though the newcomer would be the better
/// spare.
#[test]
fn standby_plans_that_were_made_stay_as_they_are() {
    let mut fixture = RoomFixture::new(dense_shape(4), (0..3).map(|id| device(id, 320, 1e6)).collect());
    let (plan, before) = standbys(&fixture);
    fixture.devices.push(device(3, 2_000, 1e9));
    let room = fixture.room(Sharing::Fastest);
    let anew = standby(&room, &plan);
    assert_ne!(anew.covered[0].plan, before.covered[0].plan, "alone, the newcomer would be chosen");
    let after = standby_keeping(&room, &plan, before.covered.clone());
    check(&fixture, &plan, &after);
    assert_eq!(after, before);
}

/// A device that contributes less now has no memory for its part of a standby plan; others take it over.
#[test]
fn a_standby_plan_that_does_not_fit_any_more_is_made_anew() {
    let mut fixture = RoomFixture::new(dense_shape(4), (0..4).map(|id| device(id, 320, 1e6)).collect());
    let (plan, before) = standbys(&fixture);
    let [made] = &before.covered[..] else { panic!("{before:?}") };
    let (spare, _) = made.preload[0];
    fixture.devices.iter_mut().find(|device| device.peer == spare).unwrap().budget = Bytes(100);
    let after = standby_keeping(&fixture.room(Sharing::Fastest), &plan, before.covered.clone());
    check(&fixture, &plan, &after);
    assert_eq!(after.covered.len(), 1, "{after:?}");
    assert!(!after.covered[0].plan.peers().contains(&spare), "{after:?}");
}

/// Every expert that the lost device held has another holder: nothing is loaded, and no stage changes.
#[test]
fn a_lost_holder_costs_nothing_where_every_expert_has_another() {
    // Twelve experts of 100 bytes; the first device keeps the mixers and one expert, and only it has a binding for a
    // block's keys; the others hold all other experts twice.
    let mut devices: Vec<_> =
        [450, 1_000, 1_000, 1_000].into_iter().zip(0..).map(|(room, id)| device(id, room, 1e6)).collect();
    devices.iter_mut().skip(1).for_each(|device| device.binding = Bytes(1));
    let fixture = RoomFixture::new(moe_shape(3), devices);
    let planned = fixture.plan(Sharing::Fastest).unwrap();
    let plan = &planned.plan;
    let pooled = plan.stages.iter().flat_map(|stage| &stage.remote).flat_map(|remote| &remote.holders);
    let away: Vec<usize> = pooled.filter(|holders| !holders.contains(&ExpertHolder::Own)).map(Vec::len).collect();
    assert!(!away.is_empty() && away.iter().all(|count| *count == 2), "{plan:?}");
    let standbys = standby(&fixture.room(Sharing::Fastest), plan);
    check(&fixture, plan, &standbys);
    let hubs: Vec<PeerId> = plan.stages.iter().map(|stage| stage.peer).collect();
    for lost in plan.peers().into_iter().filter(|lost| !hubs.contains(lost)) {
        let standby = standbys.covered.iter().find(|standby| standby.lost == lost).unwrap();
        assert_eq!((standby.kind, &standby.preload[..]), (StandbyKind::Replica, &[][..]), "{standby:?}");
        assert_eq!(standby.plan.stages.len(), plan.stages.len(), "{standby:?}");
    }
}
