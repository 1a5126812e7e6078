//! Both ends of the model on the host, where blocks have experts.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::collections::BTreeSet;

use potluck_plan::random::Random;
use potluck_plan::{Bytes, Cuts, ExpertHolder, ModelShape, PeerId, Plan};
use potluck_planner::experts::plan_joining;
use potluck_planner::{Ends, Room, Sharing, ShortOf, free_millis, on_demand, plan, predict, standby};
use potluck_testkit::{RoomFixture, dense_shape, device, moe_shape, peer};

fn kept(fixture: &RoomFixture, sharing: Sharing) -> Room<'_> {
    Room { ends: Ends::OnHost, ..fixture.room(sharing) }
}

/// Nobody but the host is named for an expert of the first or the last block.
fn is_kept(plan: &Plan, host: PeerId) -> bool {
    let last = plan.stages.last().unwrap().blocks.end - 1;
    let mut of_ends = plan.pooled().filter(|(block, ..)| block.0 == 0 || block.0 == last);
    plan.has_ends_on(host) && of_ends.all(|(.., holders)| holders.iter().all(|holder| *holder == ExpertHolder::Own))
}

#[test]
fn no_expert_of_the_first_and_the_last_block_leaves_the_host() {
    let mut random = Random::new(3);
    let (mut pooled, mut layered, mut loading) = (0, 0, 0);
    for number in 0..600 {
        let blocks = 3 + random.below(4);
        let mut shape = moe_shape(blocks);
        if number % 5 == 0 {
            shape.cuts = Cuts::Nowhere;
        }
        let all = shape.blocks.iter().map(|block| block.weights().0).sum::<u64>();
        let budget = |random: &mut Random| (all as f64 * (0.2 + 0.9 * random.unit())) as u64;
        let devices = (0..2 + random.below(4) as u8).map(|id| device(id, budget(&mut random), 1e6)).collect();
        let fixture = RoomFixture::new(shape, devices);
        for sharing in [Sharing::Fastest, Sharing::Everyone, Sharing::Experts] {
            let room = kept(&fixture, sharing);
            if let Some(found) = on_demand(&room) {
                assert!(is_kept(&found.plan, peer(0)), "room {number}: {:?}", found.plan);
                assert_eq!(found.plan.validate(&fixture.shape), Ok(()), "room {number}");
                loading += 1;
            }
            let Ok(found) = plan(&room) else { continue };
            assert!(is_kept(&found.plan, peer(0)), "room {number}, {sharing:?}: {:?}", found.plan);
            assert_eq!(found.plan.validate(&fixture.shape), Ok(()), "room {number}");
            for standby in standby(&room, &found.plan).covered {
                assert!(is_kept(&standby.plan, peer(0)), "room {number}, {sharing:?}: {standby:?}");
            }
            let joined = plan_joining(&room, &found.plan, &BTreeSet::from([peer(0)])).unwrap();
            assert!(is_kept(&joined.plan, peer(0)), "room {number}, {sharing:?}: {:?}", joined.plan);
            pooled += u32::from(found.plan.pooled().next().is_some());
            layered += u32::from(found.plan.stages.len() > 1);
        }
    }
    assert!(pooled > 100 && layered > 100 && loading > 100, "{pooled} pooled, {layered} layered, {loading} on demand");
}

#[test]
fn a_token_passes_the_host_twice_and_that_has_its_price() {
    let fixture = RoomFixture::new(dense_shape(4), vec![device(0, 500, 1e6), device(1, 500, 1e6)]);
    let (free, room) = (fixture.room(Sharing::Fastest), kept(&fixture, Sharing::Fastest));
    let found = plan(&room).unwrap();
    let peers: Vec<PeerId> = found.plan.stages.iter().map(|stage| stage.peer).collect();
    assert_eq!(peers, [peer(0), peer(1), peer(0)], "{:?}", found.plan.stages);
    assert_eq!(found.prediction.hops.len(), 2, "to the other device and back");
    assert!(found.reason.ends_with("The first and the last block stay on the host."), "{}", found.reason);
    let without = plan(&free).unwrap();
    assert_eq!(free_millis(&room), Some(without.prediction.token_millis));
    assert!(without.prediction.token_millis < found.prediction.token_millis, "one more stage takes longer");
    assert_eq!(free_millis(&free), None, "nothing is kept, so nothing has a price");
    assert_eq!(predict(&room, &found.plan).token_millis, found.prediction.token_millis);
}

#[test]
fn a_host_that_lends_too_little_for_both_ends_is_told_how_much_would_do() {
    let fixture = RoomFixture::new(dense_shape(4), vec![device(0, 250, 1e6), device(1, 2_000, 1e6)]);
    assert!(fixture.plan(Sharing::Fastest).is_ok(), "without the choice it fits");
    let short = plan(&kept(&fixture, Sharing::Fastest)).unwrap_err();
    assert_eq!((short.of, short.contributed), (ShortOf::HostForEnds, Bytes(250)));
    let expected = format!(
        "The host keeps the first and the last block to itself. That takes {}, and it lends {}. Lend {} more on the host.",
        short.needed,
        Bytes(250),
        short.missing
    );
    assert_eq!(short.sentence, expected);
    let enough = vec![device(0, short.needed.0, 1e6), device(1, 2_000, 1e6)];
    let fixture = RoomFixture::new(dense_shape(4), enough);
    assert!(plan(&kept(&fixture, Sharing::Fastest)).is_ok(), "what it is told does");
}

#[test]
fn a_host_of_a_model_of_two_blocks_is_told_that_it_keeps_all_of_it() {
    let fixture = RoomFixture::new(dense_shape(2), vec![device(0, 100, 1e6), device(1, 2_000, 1e6)]);
    let short = plan(&kept(&fixture, Sharing::Fastest)).unwrap_err();
    let begin = "The host keeps the whole model, which has nothing between its first and its last block, to itself. That takes ";
    assert!(short.sentence.starts_with(begin), "{}", short.sentence);
}

/// The table of a tied LM head lies on the host once, though the two ends are two stages.
#[test]
fn a_host_with_both_ends_of_a_tied_model_has_room_for_what_it_fits() {
    let tied = || ModelShape { tied_lm_head: true, ..dense_shape(4) };
    let alone = |budget| RoomFixture::new(tied(), vec![device(0, budget, 1e6)]);
    let budget = (0..2_000).find(|budget| plan(&kept(&alone(*budget), Sharing::Fastest)).is_ok()).unwrap();
    let fixture = RoomFixture::new(tied(), vec![device(0, budget, 1e6), device(1, 2_000, 1e6)]);
    let room = kept(&fixture, Sharing::Everyone);
    let found = plan(&room).unwrap();
    assert_eq!(found.plan.stages.len(), 3, "the other device takes part: {:?}", found.plan.stages);
    let covered: Vec<PeerId> = standby(&room, &found.plan).covered.iter().map(|standby| standby.lost).collect();
    assert_eq!(covered, [peer(1)], "the host has just enough for all of it");
}
