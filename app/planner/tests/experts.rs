//! Experts on many small devices.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use potluck_plan::{Bytes, ExpertHolder, FeedForwardShape, ModelShape, PeerId};
use potluck_planner::experts::compare;
use potluck_planner::{Hedging, Planned, Room, Sharing, SpareReason, predict};
use potluck_testkit::{RoomFixture, device, moe_shape, peer, star};

/// Blocks of 50 bytes and sixteen experts of 100, of which a token uses four.
fn model(blocks: usize) -> ModelShape {
    let mut shape = moe_shape(blocks);
    for block in &mut shape.blocks {
        if let FeedForwardShape::Experts { count, used, .. } = &mut block.feed_forward {
            (*count, *used) = (16, 4);
        }
    }
    shape
}

/// A device with room for the mixers of four blocks and four experts; others with room for these numbers of experts.
fn pool(experts: &[u64]) -> RoomFixture {
    let mut devices = vec![device(0, 20 + 100 + 4 * 60 + 400, 1e6)];
    devices.extend(experts.iter().zip(1..).map(|(count, id)| device(id, 20 + 100 * count, 1e6)));
    // The others have no binding for a block's keys.
    devices.iter_mut().skip(1).for_each(|device| device.binding = Bytes(1));
    RoomFixture::new(model(4), devices)
}

/// How many holders each expert has that is on no stage.
fn copies(planned: &Planned) -> Vec<usize> {
    let remote = planned.plan.stages.iter().flat_map(|stage| &stage.remote).flat_map(|remote| &remote.holders);
    remote.filter(|holders| !holders.contains(&ExpertHolder::Own)).map(Vec::len).collect()
}

fn check_memory(fixture: &RoomFixture, planned: &Planned) {
    assert_eq!(planned.plan.validate(&fixture.shape), Ok(()));
    for device in &fixture.devices {
        let units = planned.plan.units_for(device.peer, &fixture.shape);
        let bytes: Bytes = units.iter().map(|unit| fixture.shape.unit_bytes(*unit)).sum();
        assert!(bytes.saturating_add(Bytes(20)) <= device.budget, "{bytes} on {:?}", device.peer);
    }
}

#[test]
fn experts_have_two_holders_where_memory_allows() {
    let fixture = pool(&[24, 24, 24, 24, 24, 24]);
    let planned = fixture.plan(Sharing::Fastest).unwrap();
    check_memory(&fixture, &planned);
    assert_eq!(copies(&planned), vec![2; 60], "sixteen of each block but four");
    assert!(planned.reason.contains("each on 2"), "{}", planned.reason);
    let tight = pool(&[13, 13, 13, 13, 13]);
    let planned = tight.plan(Sharing::Fastest).unwrap();
    check_memory(&tight, &planned);
    assert_eq!(copies(&planned).iter().sum::<usize>(), 65, "60 experts in 65 places");
}

#[test]
fn a_device_with_room_for_one_expert_takes_part() {
    let fixture = pool(&[29, 30, 1]);
    let planned = fixture.plan(Sharing::Fastest).unwrap();
    check_memory(&fixture, &planned);
    assert_eq!(planned.plan.units_for(peer(3), &fixture.shape).len(), 1, "{}", planned.reason);
    let short = pool(&[29, 29, 1]).plan(Sharing::Fastest);
    assert!(short.is_err(), "one expert is left over");
}

#[test]
fn three_stages_keep_the_mixers_where_no_two_can() {
    // Mixers of eight blocks and the ends take 580 bytes: three devices keep them, and all others hold experts.
    let mut devices: Vec<_> = (0..3).map(|id| device(id, 280, 1e6)).collect();
    devices.extend((3..20).map(|id| device(id, 20 + 800, 1e6)));
    let mut shape = model(8);
    // Nobody has memory for a whole block, and the lenders lend their own little bindings only.
    shape.blocks.iter_mut().for_each(|block| block.token_mixer = Bytes(40));
    let mut fixture = RoomFixture::new(shape, devices);
    fixture.devices.iter_mut().skip(3).for_each(|device| device.binding = Bytes(1));
    let planned = fixture.plan(Sharing::Fastest).unwrap();
    check_memory(&fixture, &planned);
    assert_eq!(planned.plan.stages.len(), 3, "{}", planned.reason);
}

#[test]
fn everyone_takes_part_with_experts_where_no_block_fits() {
    let mut devices = vec![device(0, 5_000, 1e6), device(1, 5_000, 1e6)];
    devices.extend([(2, 320), (3, 120), (4, 90)].map(|(id, budget)| device(id, budget, 1e6)));
    let fixture = RoomFixture::new(model(4), devices);
    let planned = fixture.plan(Sharing::Everyone).unwrap();
    check_memory(&fixture, &planned);
    assert_eq!(planned.plan.stages.len(), 2);
    let working: Vec<PeerId> = planned.plan.peers().into_iter().collect();
    assert_eq!(working, (0..4).map(peer).collect::<Vec<_>>(), "all but the one with room for nothing");
    let trips: usize = planned.prediction.stages.iter().map(|stage| stage.experts.len()).sum();
    assert_eq!(trips, 1, "one round trip is enough");
    let shared = "Everyone takes part: 4 devices share the blocks and their experts, ";
    assert!(planned.reason.starts_with(shared), "{}", planned.reason);
    assert!(planned.reason.ends_with("; 1 device is a spare."), "{}", planned.reason);
    // The stage keeps its copies.
    let remote = planned.plan.stages.iter().flat_map(|stage| &stage.remote).flat_map(|remote| &remote.holders);
    assert!(remote.clone().all(|holders| holders.last() == Some(&ExpertHolder::Own)), "{:?}", planned.plan.stages);
    assert_eq!(remote.filter(|holders| holders.len() > 1).count(), 4, "three on one device, one on the other");
}

#[test]
fn spreading_experts_is_compared_with_whole_blocks() {
    // Two stages of whole blocks; or one with all mixers and a round trip of 20 ms for each of three blocks and a sync.
    let devices = vec![device(0, 3_620, 1e6), device(1, 5_000, 1e6), device(2, 200, 1e6)];
    let links = star(&devices, 10.0);
    let fixture = RoomFixture::new(model(4), devices).with_links(links);
    let planned = fixture.plan(Sharing::Fastest).unwrap();
    check_memory(&fixture, &planned);
    assert!(planned.plan.stages.iter().all(|stage| stage.remote.is_empty()), "{:?}", planned.plan.stages);
    let compared = compare(&fixture.room(Sharing::Fastest)).unwrap();
    assert_eq!(compared.whole_millis, Some(planned.prediction.token_millis));
    let more = compared.spread_millis - planned.prediction.token_millis;
    assert!(compared.trips >= 3 && more > 40.0, "most tokens make a round trip of 20 ms a block: {compared:?}");
    let tight = compare(&pool(&[24, 24, 24, 24, 24, 24]).room(Sharing::Fastest)).unwrap();
    assert_eq!((tight.whole_millis, tight.trips), (None, 4), "whole blocks do not fit");
    let alone = RoomFixture::new(model(4), vec![device(0, 20_000, 1e6)]);
    assert_eq!(compare(&alone.room(Sharing::Fastest)), None, "there is nobody to spread them over");
    let spare = planned.spares.iter().find(|spare| spare.peer == peer(2)).unwrap();
    assert!(matches!(spare.reason, SpareReason::Experts { millis, .. } if (11.0..45.0).contains(&millis)), "{spare:?}");
}

#[test]
fn a_second_holder_helps_where_answers_vary() {
    let mut fixture = pool(&[24, 24, 24, 24, 24, 24]);
    let wait = |fixture: &RoomFixture| {
        let planned = fixture.plan(Sharing::Fastest).unwrap();
        let trip = planned.prediction.stages[0].experts[0];
        (trip.wait_millis, trip.asked, trip.bytes, planned.plan)
    };
    let (steady, asked, bytes, plan) = wait(&fixture);
    assert_eq!(asked, 1, "where nothing varies nobody is asked twice");
    (1..=6).for_each(|id| fixture.links.set_spread(peer(id), 0.5));
    let (hedged, asked, more, _) = wait(&fixture);
    assert_eq!(asked, 2);
    assert!(more < 1.26 * bytes, "one call in four is made twice: {more} instead of {bytes}");
    let mut alone = plan;
    alone.stages[0]
        .remote
        .iter_mut()
        .for_each(|remote| remote.holders.iter_mut().for_each(|holders| holders.truncate(1)));
    let once = predict(&fixture.room(Sharing::Fastest), &alone).stages[0].experts[0].wait_millis;
    assert!(steady < hedged && hedged < 0.95 * once, "{steady} steady, {hedged} with a second holder, {once} without");
}

#[test]
fn holders_that_are_asked_at_once_answer_sooner_and_take_more_bytes() {
    let mut fixture = pool(&[40, 40, 40, 40, 40, 40]);
    (1..=6).for_each(|id| fixture.links.set_spread(peer(id), 0.5));
    let mut plan = fixture.plan(Sharing::Fastest).unwrap().plan;
    let third = |holders: &mut Vec<ExpertHolder>| {
        let other = (1..=6).map(|id| ExpertHolder::Peer(peer(id))).find(|other| !holders.contains(other));
        holders.extend(other.filter(|_| holders.len() == 2));
    };
    plan.stages[0].remote.iter_mut().for_each(|remote| remote.holders.iter_mut().for_each(third));
    let trip = |hedging| predict(&Room { hedging, ..fixture.room(Sharing::Fastest) }, &plan).stages[0].experts[0];
    let trips = [Hedging::Off, Hedging::Adaptive, Hedging::Copies(2), Hedging::Copies(3)].map(trip);
    assert_eq!(trips.map(|trip| trip.asked), [1, 2, 2, 3]);
    let waits = trips.map(|trip| trip.wait_millis);
    assert!(waits.windows(2).all(|pair| pair[1] < 0.99 * pair[0]), "{waits:?}");
    let bytes = trips.map(|trip| trip.bytes / trips[0].bytes);
    assert!((1.2..1.3).contains(&bytes[1]) && bytes[2] > 1.8 && bytes[3] > bytes[2], "{bytes:?}");
}

/// As the simulator and rooms do it: the own engine computes while others are waited for.
#[test]
fn own_experts_take_no_time_beside_slow_answers() {
    let mut fixture = pool(&[24, 24, 24, 24, 24, 24]);
    let mut plan = fixture.plan(Sharing::Fastest).unwrap().plan;
    plan.stages[0].remote.truncate(1);
    let holders = &mut plan.stages[0].remote[0].holders;
    // The first four are own already.
    holders[12..].fill(vec![ExpertHolder::Own]);
    let [trip] = predict(&fixture.room(Sharing::Fastest), &plan).stages[0].experts[..] else {
        panic!("one block has experts elsewhere")
    };
    // 5 ms there and 5 back, a submit of 1 ms, and 0.1 ms an expert: 11 to 11.4 ms. Own experts take at most 1.4.
    assert!((9.5..11.5).contains(&trip.wait_millis), "{trip:?}");
    fixture.devices[0].sync_millis = 30.0;
    let [slow] = predict(&fixture.room(Sharing::Fastest), &plan).stages[0].experts[..] else {
        panic!("the same block")
    };
    // Of sixteen experts eight are own, and a token uses four.
    let chance = 1.0 - (8.0 * 7.0 * 6.0 * 5.0) / (16.0 * 15.0 * 14.0 * 13.0);
    assert!(
        (30.0 * chance..31.5).contains(&slow.wait_millis),
        "own experts are waited for where others are quicker: {slow:?}"
    );
}

#[test]
fn what_was_measured_of_calls_counts_more_than_their_links() {
    let mut fixture = pool(&[24, 24, 24, 24, 24, 24]);
    let plan = fixture.plan(Sharing::Fastest).unwrap().plan;
    let wait = |fixture: &RoomFixture| {
        predict(&fixture.room(Sharing::Fastest), &plan).stages[0]
            .experts
            .iter()
            .map(|trip| trip.wait_millis)
            .sum::<f64>()
    };
    let by_links = wait(&fixture);
    (1..=6).for_each(|id| fixture.links.set_way(peer(0), peer(id), 30.0));
    let (measured, trips) = (wait(&fixture), plan.stages[0].remote.len() as f64);
    assert!(measured - by_links > 15.0 * trips, "30 ms instead of 10 a trip: {measured}, {by_links} before");
    (1..=6).for_each(|id| fixture.links.set_way(peer(0), peer(id), f64::NAN));
    assert_eq!(wait(&fixture), by_links, "what is no number was not measured");
}

#[test]
fn experts_of_several_sizes_are_spread_as_far_as_there_is_memory() {
    let mut shape = model(4);
    // As in files whose types keep more bits of some blocks.
    for (index, block) in shape.blocks.iter_mut().enumerate() {
        if let FeedForwardShape::Experts { expert, .. } = &mut block.feed_forward {
            *expert = Bytes(if index % 2 == 0 { 100 } else { 70 });
        }
    }
    for lent in (150..1_500).step_by(45) {
        let mut devices = vec![device(0, 50_000, 1e6)];
        devices.extend((1..5).map(|id| device(id, 20 + lent, 1e6)));
        devices.iter_mut().skip(1).for_each(|device| device.binding = Bytes(1));
        let fixture = RoomFixture::new(shape.clone(), devices);
        let planned = fixture.plan(Sharing::Experts).unwrap();
        check_memory(&fixture, &planned);
        let spread: u64 =
            planned.plan.pooled().map(|(block, ..)| shape.blocks[usize::from(block.0)].expert_bytes().0).sum();
        let all = 2 * 16 * (100 + 70);
        // Nobody is left with room for two of the largest experts.
        assert!(spread == all || spread + 5 * 100 > 4 * lent, "{spread} bytes of {all} on four devices of {lent}");
    }
}

#[test]
fn experts_are_spread_where_the_host_asks_for_it() {
    // Every device could hold the whole model.
    let devices = (0..4).map(|id| device(id, 20 + 100 + 4 * (60 + 1_600) + 400, 1e6)).collect();
    let fixture = RoomFixture::new(model(4), devices);
    let fastest = fixture.plan(Sharing::Fastest).unwrap();
    assert!(fastest.plan.stages.iter().all(|stage| stage.remote.is_empty()), "round trips cost more than they give");
    let planned = fixture.plan(Sharing::Experts).unwrap();
    check_memory(&fixture, &planned);
    assert_eq!(planned.plan.peers().len(), 4, "{}", planned.reason);
    let remote = planned.plan.stages.iter().flat_map(|stage| &stage.remote).flat_map(|remote| &remote.holders);
    for holders in remote.clone() {
        let own = holders.iter().position(|holder| *holder == ExpertHolder::Own);
        assert_eq!((holders.len(), own), (3, Some(2)), "two others, and the stage if none of them answers");
    }
    assert_eq!(remote.count(), 4 * 16, "all experts are spread");
    assert!(planned.reason.starts_with("The experts are spread over 4 devices"), "{}", planned.reason);
}

#[test]
fn a_model_without_experts_is_shared_as_the_fastest_plan() {
    let devices: Vec<_> = (0..3).map(|id| device(id, 400, 1e6)).collect();
    let fixture = RoomFixture::new(potluck_testkit::dense_shape(4), devices);
    let (fastest, experts) = (fixture.plan(Sharing::Fastest), fixture.plan(Sharing::Experts));
    assert_eq!(fastest.ok().map(|planned| planned.plan.stages), experts.ok().map(|planned| planned.plan.stages));
}

#[test]
fn a_blocks_experts_lie_together_where_asking_costs_more_than_it_saves() {
    let asked = |ask_millis: f64| {
        let mut devices: Vec<_> = (0..5).map(|id| device(id, 20 + 100 + 4 * (60 + 1_600) + 400, 1e6)).collect();
        devices[0].ask_millis = ask_millis;
        let fixture = RoomFixture::new(model(4), devices);
        let planned = fixture.plan(Sharing::Experts).unwrap();
        check_memory(&fixture, &planned);
        assert_eq!(planned.plan.peers().len(), 5, "everybody takes part: {}", planned.reason);
        let trips = &planned.prediction.stages[0].experts;
        assert_eq!(trips.len(), 4, "all blocks have their experts elsewhere");
        trips.iter().map(|trip| trip.others_asked).sum::<f64>() / trips.len() as f64
    };
    assert!(asked(0.0) > 2.0, "each reads a part of the weights: {}", asked(0.0));
    assert!(asked(1.0) < 1.1, "one device answers for the whole block: {}", asked(1.0));
}

/// The host of a fixture keeps everything but experts.
fn protected(mut fixture: RoomFixture) -> RoomFixture {
    fixture.devices.iter_mut().filter(|device| device.peer != peer(0)).for_each(|device| device.experts_only = true);
    fixture
}

#[test]
fn a_host_that_protects_its_model_keeps_everything_but_experts() {
    // The others are faster and could hold everything.
    let mut devices = vec![device(0, 20 + 100 + 4 * 60 + 400, 1e5)];
    devices.extend((1..4).map(|id| device(id, 50_000, 1e7)));
    let open = RoomFixture::new(model(4), devices);
    assert_ne!(open.plan(Sharing::Fastest).unwrap().plan.stages[0].peer, peer(0), "whoever is fastest");
    let fixture = protected(open);
    for sharing in [Sharing::Fastest, Sharing::Everyone, Sharing::Experts] {
        let planned = fixture.plan(sharing).unwrap();
        check_memory(&fixture, &planned);
        let stages: Vec<PeerId> = planned.plan.stages.iter().map(|stage| stage.peer).collect();
        assert_eq!(stages, [peer(0)], "{sharing:?}: {}", planned.reason);
        assert!(planned.plan.peers().len() > 1, "{sharing:?}: others hold experts");
        assert!(
            planned.reason.ends_with("The host protects its model: other devices get only experts."),
            "{}",
            planned.reason
        );
        let standbys = potluck_planner::standby(&fixture.room(sharing), &planned.plan);
        let preloaded = standbys.covered.iter().flat_map(|standby| &standby.preload).flat_map(|(_, units)| units);
        assert!(preloaded.clone().all(|unit| matches!(unit, potluck_plan::WeightUnit::Expert(..))), "{sharing:?}");
    }
}

#[test]
fn a_host_with_too_little_memory_for_what_it_protects_is_told_how_much() {
    let mut devices = vec![device(0, 200, 1e6)];
    devices.extend((1..4).map(|id| device(id, 50_000, 1e6)));
    let fixture = protected(RoomFixture::new(model(4), devices));
    let short = fixture.plan(Sharing::Fastest).unwrap_err();
    let sentence = "The host keeps everything but the experts of its model to itself. That takes ";
    assert!(short.sentence.starts_with(sentence) && short.missing > Bytes::ZERO, "{}", short.sentence);
    assert_eq!(potluck_planner::on_demand(&fixture.room(Sharing::Fastest)), None, "nor may another one load on demand");
    let mut enough = fixture.clone();
    enough.devices[0].budget = enough.devices[0].budget.saturating_add(short.missing);
    assert!(enough.plan(Sharing::Fastest).is_ok(), "{}", short.sentence);
}

#[test]
fn a_protected_model_without_experts_runs_on_its_host_or_nowhere() {
    let devices: Vec<_> = (0..3).map(|id| device(id, 400, 1e6)).collect();
    let mut fixture = protected(RoomFixture::new(potluck_testkit::dense_shape(4), devices));
    let short = fixture.plan(Sharing::Everyone).unwrap_err();
    assert!(short.sentence.starts_with("The host keeps its whole model to itself. That takes "), "{}", short.sentence);
    fixture.devices[0].budget = Bytes(10_000);
    let planned = fixture.plan(Sharing::Everyone).unwrap();
    assert_eq!(planned.plan.peers().into_iter().collect::<Vec<_>>(), [peer(0)]);
    assert!(planned.spares.iter().all(|spare| spare.reason == SpareReason::Protected), "{:?}", planned.spares);
}
