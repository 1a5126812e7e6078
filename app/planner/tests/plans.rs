//! What people see: who gets what, and why.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use potluck_plan::{BlockIndex, Bytes, Cuts, ModelShape};
use potluck_planner::{Bottleneck, Gain, Help, Presence, Sharing, SpareReason, what_would_help};
use potluck_testkit::{DenseBlock, RoomFixture, dense_shape, device, moe_shape, peer, shape, star};

#[test]
fn a_model_that_fits_stays_on_one_device_when_speed_counts() {
    let fixture = RoomFixture::new(dense_shape(4), vec![device(0, 2000, 1e6), device(1, 2000, 1e6)]);
    let planned = fixture.plan(Sharing::Fastest).unwrap();
    assert_eq!(planned.plan.stages.len(), 1);
    assert!(planned.prediction.hops.is_empty(), "the coordinator computes alone");
    assert!(planned.reason.contains("1 device is a spare"), "{}", planned.reason);
    // Alone peer 1 would need two messages, 5 ms of latency and 0.006 ms of transfer each.
    let [spare] = planned.spares[..] else { panic!("{:?}", planned.spares) };
    assert_eq!(spare.peer, peer(1));
    assert!(matches!(spare.reason, SpareReason::Slower { millis } if (10.0..11.1).contains(&millis)), "{spare:?}");
}

#[test]
fn everyone_takes_part_gives_each_device_blocks() {
    let fixture = RoomFixture::new(dense_shape(6), (0..3).map(|id| device(id, 2000, 1e6)).collect());
    let planned = fixture.plan(Sharing::Everyone).unwrap();
    assert_eq!(planned.plan.peers().len(), 3);
    assert_eq!(planned.plan.validate(&fixture.shape), Ok(()));
    assert!(planned.plan.stages.iter().all(|stage| stage.blocks.len() == 2), "{:?}", planned.plan.stages);
}

#[test]
fn everyone_takes_part_gives_the_slow_device_less() {
    // Peer 2 is a tenth as quick: of ten blocks and a head it can have one at most before it is the slowest.
    let fixture =
        RoomFixture::new(dense_shape(10), vec![device(0, 4000, 1e5), device(1, 4000, 1e5), device(2, 4000, 1e4)]);
    let planned = fixture.plan(Sharing::Everyone).unwrap();
    let slow = planned.plan.stages.iter().find(|stage| stage.peer == peer(2)).unwrap();
    assert_eq!(slow.blocks.len(), 1, "{:?}", planned.plan.stages);
}

/// Whoever claims the highest speed comes first, and may have room for nothing.
#[test]
fn everyone_takes_part_without_a_fast_device_that_has_no_room() {
    for tiny in [4, 150] {
        let devices = vec![device(0, 300, 1e6), device(1, tiny, 1e12), device(2, 300, 1e5)];
        let fixture = RoomFixture::new(dense_shape(4), devices);
        let planned = fixture.plan(Sharing::Everyone).unwrap();
        assert_eq!(planned.plan.validate(&fixture.shape), Ok(()));
        assert!(planned.plan.peers().contains(&peer(2)), "{tiny} bytes: {:?}", planned.plan.stages);
    }
}

#[test]
fn more_devices_than_blocks_leaves_the_slowest_out() {
    let fixture =
        RoomFixture::new(dense_shape(2), (0..3).map(|id| device(id, 2000, 1e6 / f64::from(id + 1))).collect());
    let planned = fixture.plan(Sharing::Everyone).unwrap();
    assert_eq!(planned.plan.peers().len(), 2);
    assert_eq!(planned.spares[0].peer, peer(2));
}

#[test]
fn a_model_too_large_for_one_device_is_cut() {
    // 4 blocks of 100 + 10 bytes of KV cache each, 50 + 50 for embedding and LM head, 20 overhead: 560 on one device.
    let alone = RoomFixture::new(dense_shape(4), vec![device(0, 300, 1e6)]).plan(Sharing::Fastest).unwrap_err();
    assert_eq!((alone.needed, alone.missing), (Bytes(560), Bytes(260)));
    assert!(alone.sentence.contains("260 bytes more"), "{}", alone.sentence);
    let three = RoomFixture::new(dense_shape(4), (0..3).map(|id| device(id, 300, 1e6)).collect());
    let planned = three.plan(Sharing::Fastest).unwrap();
    assert_eq!(planned.plan.validate(&three.shape), Ok(()));
    assert_eq!(planned.plan.stages.len(), 2, "two devices are enough, the third would only cost hops");
}

#[test]
fn a_model_that_must_not_be_cut_stays_on_one_device() {
    let whole = || ModelShape { cuts: Cuts::Nowhere, ..dense_shape(4) };
    for sharing in [Sharing::Fastest, Sharing::Everyone] {
        let devices = vec![device(0, 300, 1e6), device(1, 600, 1e5), device(2, 700, 1e4)];
        let fixture = RoomFixture::new(whole(), devices);
        let planned = fixture.plan(sharing).unwrap();
        assert_eq!(planned.plan.validate(&fixture.shape), Ok(()));
        assert_eq!(planned.plan.stages[0].peer, peer(1), "the fastest of those with 560 bytes");
        assert_eq!(planned.spares[0].reason, SpareReason::TooSmallForAll { needed: Bytes(560) });
    }
    // Together they lend enough.
    let small = RoomFixture::new(whole(), (0..3).map(|id| device(id, 300 + u64::from(id), 1e6)).collect());
    let short = small.plan(Sharing::Fastest).unwrap_err();
    assert_eq!((short.needed, short.contributed, short.missing), (Bytes(560), Bytes(302), Bytes(258)));
    assert!(short.sentence.contains("cannot be divided among devices"), "{}", short.sentence);
    let least = what_would_help(&small.room(Sharing::Fastest))[0];
    assert!(matches!(least, Help::MoreMemory { extra: Bytes(258..=260), .. }), "{least:?}");
}

#[test]
fn experts_go_elsewhere_when_no_block_fits_on_the_small_devices() {
    // A block is 450 with its experts; the small devices hold four experts of 100 at most.
    let fixture = RoomFixture::new(moe_shape(3), vec![device(0, 900, 1e6), device(1, 440, 1e6), device(2, 440, 1e6)]);
    let planned = fixture.plan(Sharing::Fastest).unwrap();
    assert_eq!(planned.plan.validate(&fixture.shape), Ok(()));
    assert_eq!(planned.plan.stages.len(), 1);
    assert!(!planned.plan.stages[0].remote.is_empty(), "experts must be remote");
    assert_eq!(planned.prediction.stages[0].experts.len(), planned.plan.stages[0].remote.len());
    for device in &fixture.devices[1..] {
        let units = planned.plan.units_for(device.peer, &fixture.shape);
        let bytes: Bytes = units.iter().map(|unit| fixture.shape.unit_bytes(*unit)).sum();
        assert!(bytes.saturating_add(Bytes(20)) <= device.budget, "{bytes} on {:?}", device.peer);
    }
}

#[test]
fn two_stages_keep_the_token_mixers_where_one_cannot() {
    // A block is 110 + 10 of state without its four experts of 100. The large devices have room for eight experts each,
    // that is all sixteen, if the small ones take the mixers: two blocks and an end are 290 beside 20 of overhead.
    // Whole blocks (520) only fit on the large ones, and one large device with all mixers leaves 14 experts a place.
    let devices = vec![device(0, 315, 1e6), device(1, 315, 1e6), device(2, 830, 1e6), device(3, 830, 1e6)];
    let mut shape = moe_shape(4);
    shape.blocks.iter_mut().for_each(|block| block.token_mixer = Bytes(100));
    let fixture = RoomFixture::new(shape, devices);
    let planned = fixture.plan(Sharing::Fastest).unwrap();
    assert_eq!(planned.plan.validate(&fixture.shape), Ok(()));
    let stages: Vec<_> = planned.plan.stages.iter().map(|stage| (stage.blocks.len(), stage.remote.len())).collect();
    assert_eq!(stages, [(2, 2), (2, 2)], "{:?}", planned.plan.stages);
    assert_eq!(planned.plan.peers().len(), 4);
}

#[test]
fn what_a_device_holds_breaks_ties() {
    let mut devices: Vec<_> = (0..3).map(|id| device(id, 350, 1e6)).collect();
    devices[2].holds = (2..4).map(BlockIndex).collect();
    let planned = RoomFixture::new(dense_shape(4), devices).plan(Sharing::Fastest).unwrap();
    assert!(planned.plan.peers().contains(&peer(2)), "the holder must be kept: {:?}", planned.plan.stages);
}

#[test]
fn of_two_equal_devices_the_one_that_left_often_is_the_spare() {
    let mut devices: Vec<_> = (0..3).map(|id| device(id, 350, 1e6)).collect();
    devices[1].presence = Presence { departures: 3, ..Presence::default() };
    let planned = RoomFixture::new(dense_shape(4), devices).plan(Sharing::Fastest).unwrap();
    assert_eq!(planned.spares[0].peer, peer(1), "{:?}", planned.plan.stages);
}

#[test]
fn a_device_too_small_for_any_block_shows_what_it_needs() {
    let fixture = RoomFixture::new(dense_shape(4), vec![device(0, 2000, 1e6), device(1, 60, 1e6)]);
    let planned = fixture.plan(Sharing::Fastest).unwrap();
    assert_eq!(planned.spares[0].reason, SpareReason::TooSmall { needed: Bytes(130) });
}

#[test]
fn a_device_with_invalid_measurements_is_the_last_choice() {
    let mut broken = device(1, 2000, f64::NAN);
    broken.session_millis = f64::NAN;
    let fixture = RoomFixture::new(dense_shape(4), vec![device(0, 400, 1e6), broken, device(2, 400, 1e3)]);
    let planned = fixture.plan(Sharing::Fastest).unwrap();
    assert!(!planned.plan.peers().contains(&peer(1)), "{:?}", planned.plan.stages);
    assert!(planned.prediction.token_millis.is_finite());
}

#[test]
fn no_devices_or_no_blocks_are_a_shortfall() {
    assert_eq!(
        RoomFixture::new(dense_shape(4), Vec::new()).plan(Sharing::Fastest).unwrap_err().contributed,
        Bytes::ZERO
    );
    assert!(RoomFixture::new(dense_shape(0), vec![device(0, 2000, 1e6)]).plan(Sharing::Fastest).is_err());
}

#[test]
fn the_largest_part_of_a_token_is_named() {
    // 550 bytes at 10,000 a second: 55 ms beside messages of 5 ms.
    let fixture = RoomFixture::new(dense_shape(4), vec![device(0, 300, 1e6), device(1, 600, 1e4)]);
    let planned = fixture.plan(Sharing::Fastest).unwrap();
    let slow = planned.plan.stages.iter().find(|stage| stage.peer == peer(1)).unwrap().id;
    let (bottleneck, _) = planned.prediction.bottleneck().unwrap();
    assert_eq!(bottleneck, Bottleneck::Compute(slow));
}

#[test]
fn what_would_help_says_how_much_memory_is_missing() {
    // 560 in all, and 20 more for a second device: 280 beside 300.
    let fixture = RoomFixture::new(dense_shape(4), vec![device(0, 300, 1e6)]);
    let help = what_would_help(&fixture.room(Sharing::Fastest));
    let extra = help.iter().find_map(|help| match help {
        Help::MoreMemory { extra, gain: Gain::Fits, .. } => Some(extra.0),
        _ => None,
    });
    assert_eq!(extra, Some(260), "{help:?}");
    // Whole blocks only: the coordinator holds two of them and an end (270), the newcomer two and the other end.
    let budget = help.iter().find_map(|help| match help {
        Help::AnotherDevice { budget, gain: Gain::Fits } => Some(budget.0),
        _ => None,
    });
    assert_eq!(budget, Some(290), "{help:?}");
}

#[test]
fn what_would_help_says_what_it_saves() {
    let fixture = RoomFixture::new(dense_shape(4), vec![device(0, 300, 1e6), device(1, 300, 1e6)]);
    let help = what_would_help(&fixture.room(Sharing::Fastest));
    // With 260 more the coordinator computes alone: two messages of a little over 5 ms and a session of 1 ms less.
    let saved = help.iter().find_map(|help| match help {
        Help::MoreMemory { peer: who, extra, gain: Gain::Saves { millis } } if *who == peer(0) => {
            Some((extra.0, *millis))
        }
        _ => None,
    });
    assert!(matches!(saved, Some((260, millis)) if (11.0..11.1).contains(&millis)), "{help:?}");
}

/// Keys of a block take 32 bytes at 64 positions (one page).
#[test]
fn no_block_is_planned_where_its_keys_are_not_seen_at_once() {
    for (shape, sharing) in
        [(dense_shape(6), Sharing::Fastest), (dense_shape(6), Sharing::Everyone), (moe_shape(6), Sharing::Fastest)]
    {
        let mut devices = vec![device(0, 5_000, 1e6), device(1, 5_000, 8e6)];
        devices[1].binding = Bytes(31);
        let narrow = RoomFixture::new(shape.clone(), devices.clone());
        let planned = narrow.plan(sharing).unwrap();
        assert!(planned.plan.stages.iter().all(|stage| stage.peer == peer(0)), "{:?}", planned.plan.stages);
        let reason = SpareReason::Unseen { needed: Bytes(32), binding: Bytes(31) };
        let is_told = planned.spares.iter().any(|spare| spare.peer == peer(1) && spare.reason == reason);
        assert!(is_told || planned.plan.peers().contains(&peer(1)), "{:?}", planned.spares);
        devices[0].binding = Bytes(31);
        let sentence = RoomFixture::new(shape, devices).plan(sharing).unwrap_err().sentence;
        assert!(sentence.contains("not every GPU can address the KV cache of a block at once"), "{sentence}");
    }
}

/// A latent cache is key and value at once, so one binding must show all of its 64 bytes.
#[test]
fn no_block_is_planned_where_half_of_its_latent_cache_is_not_seen() {
    let mut shape = dense_shape(6);
    shape.blocks.iter_mut().for_each(|block| block.kv_buffers = 1);
    let with_binding = |binding| {
        let mut devices = vec![device(0, 5_000, 1e6)];
        devices[0].binding = Bytes(binding);
        RoomFixture::new(shape.clone(), devices).plan(Sharing::Fastest)
    };
    assert!(with_binding(64).is_ok());
    let sentence = with_binding(63).unwrap_err().sentence;
    assert!(sentence.contains("not every GPU can address the KV cache of a block at once"), "{sentence}");
}

#[test]
fn a_device_that_waits_long_for_its_next_token_computes_slower() {
    let block = DenseBlock { token_mixer: 500, feed_forward: 500, kv_cache_per_position: 0 };
    let mut model = shape(vec![block.into(); 4]);
    (model.embedding, model.lm_head) = (Bytes(10), Bytes(0));
    let mut worker = device(1, 1 << 20, 1e6);
    worker.pauses = vec![(20.0, 2.0)];
    let millis = |latency: f64| {
        let devices = vec![worker.clone()];
        let links = star(&devices, latency);
        let fixture = RoomFixture::new(model.clone(), devices).with_links(links).with_context(64);
        fixture.plan(Sharing::Fastest).unwrap().prediction.stages[0].engine_millis()
    };
    assert!((millis(0.0) - 5.0).abs() < 0.01, "4 ms of blocks and one session, no pause: {}", millis(0.0));
    assert!((millis(50.0) - 10.0).abs() < 1e-9, "twice as long after 100 ms: {}", millis(50.0));
}
