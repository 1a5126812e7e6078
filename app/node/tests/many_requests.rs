//! How many requests a large model takes, and how long it takes where a server limits them: `cargo test -p potluck-node --release
//! --test many_requests -- --ignored --nocapture`. The server sends zeros and nothing is kept, so it needs neither disk nor GPU.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod link_server;

use std::time::{Duration, Instant};

use futures::{StreamExt, TryStreamExt};
use link_server::{Content, Limit, LinkServer, Manners};
use potluck_gguf::join;
use potluck_gguf::synthetic::Shape;
use potluck_model::{FileRange, ModelSpec};
use potluck_node::native::{Network, platform};
use potluck_node::source::{HttpSource, Source, Traffic};
use potluck_plan::WeightUnit;

/// What the Hub allows to an address.
const LIMIT: Limit = Limit { requests: 3_000, window: Duration::from_secs(300), says: false };

/// The reads of a device that has every `of`-th part of a 30 B model's blocks, in the order of a load; and the length of the file.
fn reads(part: usize, of: usize) -> (Vec<FileRange>, u64) {
    let header = Shape::Qwen3_30B_A3B.synthetic().header().unwrap();
    let bytes = header.required_length();
    let (spec, units) = ModelSpec::from_gguf(&join([header]).unwrap()).unwrap();
    let blocks = spec.blocks.len();
    let is_mine = |unit: &WeightUnit| match unit {
        WeightUnit::Embedding => part == 0,
        WeightUnit::LmHead => part + 1 == of,
        WeightUnit::TokenMixer(block)
        | WeightUnit::Router(block)
        | WeightUnit::Dense(block)
        | WeightUnit::SharedExpert(block)
        | WeightUnit::Expert(block, _) => usize::from(block.0) * of / blocks == part,
    };
    let mut mine: Vec<WeightUnit> = units.units().filter(is_mine).collect();
    mine.sort_by_key(|unit| (units.tensors(*unit).iter().map(|tensor| tensor.range.offset).min(), *unit));
    let most = 4 << 20;
    let tensors = mine.iter().flat_map(|unit| units.tensors(*unit)).map(|tensor| tensor.range);
    let pieces = tensors.flat_map(|range| {
        (0..range.len).step_by(most as usize).map(move |at| FileRange {
            offset: range.offset + at,
            len: most.min(range.len - at),
            ..range
        })
    });
    (pieces.collect(), bytes)
}

async fn download(url: String, (reads, bytes): (Vec<FileRange>, u64)) -> (usize, u64) {
    let network = Network { allow_private_links: true, ..Network::default() };
    let links = HttpSource::of_links(platform(std::env::temp_dir(), &network), vec![url], Traffic::default()).await;
    let source = links.unwrap();
    assert_eq!(source.file_len(0), Some(bytes));
    source.expect(&reads);
    let (source, count) = (&source, reads.len());
    let all = futures::stream::iter(reads).map(|read| async move { source.read(read).await.map(|read| read.len()) });
    let read = all.buffered(6).try_fold(0, |sum, len| async move { Ok(sum + len as u64) }).await.unwrap();
    (count, read)
}

/// Downloads the model to so many devices together; the requests that the server got.
fn measure(devices: usize, limit: Limit) -> usize {
    let server = LinkServer::start(Content::Zeros(reads(0, 1).1), Manners { limit: Some(limit), ..Manners::default() });
    let began = Instant::now();
    let threads: Vec<_> = (0..devices)
        .map(|device| {
            let url = server.url.clone();
            std::thread::spawn(move || {
                let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
                tokio::task::LocalSet::new().block_on(&runtime, download(url, reads(device, devices)))
            })
        })
        .collect();
    let done: Vec<(usize, u64)> = threads.into_iter().map(|thread| thread.join().unwrap()).collect();
    let (tensors, bytes) = done.iter().fold((0, 0), |(count, bytes), one| (count + one.0, bytes + one.1));
    println!(
        "{devices} device(s): {bytes} bytes in {tensors} reads: {} requests, {} refused, {:.1} s",
        server.requests(),
        server.refused(),
        began.elapsed().as_secs_f64()
    );
    assert!(bytes > 18_000_000_000, "{bytes} bytes");
    server.requests()
}

#[test]
#[ignore = "a measurement of minutes"]
fn a_model_of_30_b_takes_fewer_requests_than_a_window_has() {
    let requests = measure(1, LIMIT);
    assert!(requests < LIMIT.requests, "{requests} requests");
}

#[test]
#[ignore = "a measurement of minutes"]
fn three_devices_behind_one_address_stay_within_one_window() {
    let requests = measure(3, LIMIT);
    assert!(requests < LIMIT.requests, "{requests} requests");
}

#[test]
#[ignore = "a measurement of minutes"]
fn three_devices_wait_for_a_server_whose_window_is_too_small() {
    // A third of the Hub's rate.
    measure(3, Limit { requests: 100, window: Duration::from_secs(30), says: false });
}
