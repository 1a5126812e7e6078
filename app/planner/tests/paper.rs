//! The examples that dynamic-partitioning.txt works out.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use potluck_plan::{Bytes, FeedForwardShape};
use potluck_planner::Sharing;
use potluck_testkit::{RoomFixture, dense_shape, device, peer};

/// A model whose blocks need these gigabytes, its ends nothing.
fn gigabytes(blocks: &[u64]) -> potluck_plan::ModelShape {
    let mut shape = dense_shape(blocks.len());
    (shape.embedding, shape.lm_head) = (Bytes::ZERO, Bytes::ZERO);
    for (block, size) in shape.blocks.iter_mut().zip(blocks) {
        (block.token_mixer, block.kv_cache_per_position) = (Bytes(size << 30), Bytes::ZERO);
        block.feed_forward = FeedForwardShape::Dense { bytes: Bytes::ZERO };
    }
    shape
}

/// 5.3.1: workers of 8 and 16 GB, layers of 16 and 1 GB: only the order of the larger one first is valid.
#[test]
fn the_order_of_workers_decides_what_fits() {
    let overhead = 20;
    let devices = vec![device(1, (8 << 30) + overhead, 1e9), device(2, (16 << 30) + overhead, 1e9)];
    let planned = RoomFixture::new(gigabytes(&[16, 1]), devices).plan(Sharing::Fastest).unwrap();
    let stages: Vec<_> = planned.plan.stages.iter().map(|stage| (stage.peer, stage.blocks.len())).collect();
    assert_eq!(stages, [(peer(2), 1), (peer(1), 1)]);
}

/// 5.3.2, variant 4: equal layers on equal workers, ⌊M / R⌋ layers a worker on the first ⌈n / ⌊M / R⌋⌉ workers.
#[test]
fn equal_layers_on_equal_workers_fill_as_few_as_possible() {
    let memory = (7 << 30) + 20;
    let devices = (1..=6).map(|id| device(id, memory, 1e9)).collect();
    let planned = RoomFixture::new(gigabytes(&[2; 10]), devices).plan(Sharing::Fastest).unwrap();
    // Three layers of 2 GB fit into 7 GB; ten layers need four workers.
    assert_eq!(planned.plan.stages.len(), 4);
    assert!(planned.plan.stages.iter().all(|stage| stage.blocks.len() <= 3), "{:?}", planned.plan.stages);
}

/// 4.3.2: t = SO + ΣC / CS, and in 5.2.1 the network on top; here the chain is direct, so p workers are p + 1 messages.
#[test]
fn a_token_is_the_sum_of_sessions_layers_and_messages() {
    // Two remote workers with five blocks of 100 bytes each and the LM head of 50: 1 ms session, 100 bytes per millisecond.
    let devices = vec![device(1, 700, 1e5), device(2, 700, 1e5)];
    let planned = RoomFixture::new(dense_shape(10), devices).plan(Sharing::Fastest).unwrap();
    let prediction = &planned.prediction;
    assert_eq!(prediction.hops.len(), 3, "p + 1 messages");
    // The coordinator's own leg takes nothing, so the first and last message have 5 ms, the middle one two legs.
    let latency: f64 = prediction.hops.iter().map(|hop| hop.latency_millis).sum();
    assert_eq!(latency, 20.0);
    // 52 bytes of a token id over one access link, 80 of a hidden vector over two, 64 of a candidate over one, at 10 kB per ms.
    let transfer: f64 = prediction.hops.iter().map(|hop| hop.transfer_millis).sum();
    assert!((transfer - (52.0 + 2.0 * 80.0 + 64.0) / 10e3).abs() < 1e-12, "{transfer}");
    let engines: f64 = prediction.stage_millis().iter().sum();
    assert!((engines - (2.0 + 1050.0 / 100.0)).abs() < 1e-9, "{engines}");
    assert!((prediction.token_millis - (latency + transfer + engines)).abs() < 1e-9);
}
