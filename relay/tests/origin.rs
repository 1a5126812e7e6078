//! Weights that lie elsewhere: at another relay, which is an origin like any other, and at servers with faults.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use axum::Router;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Redirect};
use axum::routing::get;
use common::{Running, TIMEOUT, config, folder, start};
use potluck_gguf::{GgufWriter, TensorType, Value};
use potluck_relay::Config;
use potluck_relay::models::origin::{OriginConfig, PART_BYTES};
use serde_json::Value as Json;
use tokio::time::{Instant, sleep};

/// A file of three parts.
fn gguf(first: u8) -> Vec<u8> {
    let mut writer = GgufWriter::new();
    writer.set("general.architecture", Value::from("llama"));
    writer.tensor("a", TensorType::F32, &[PART_BYTES * 5 / 8, 1]).unwrap();
    writer.to_bytes(|tensor| (0..tensor.bytes).map(|i| first ^ (i / 3) as u8 ^ (i >> 9) as u8).collect()).unwrap()
}

/// A relay whose one model is elsewhere, and its data folder.
async fn relay(url: &str, cache: Option<(&Path, u64)>, data: &Path) -> Running {
    let origin = OriginConfig {
        weights: vec![url.parse().unwrap()],
        cache: cache.map(|(folder, bytes)| (folder.to_owned(), bytes)),
        timeout: Duration::from_millis(500),
        look_every: Duration::from_millis(50),
    };
    start(Config { origin, cache: data.join("hashes"), ..config("origin") }).await
}

/// Waits until the model's entry is as wanted.
async fn until(relay: &Running, what: &str, is_right: impl Fn(&Json) -> bool) -> Json {
    let deadline = Instant::now() + TIMEOUT;
    loop {
        let models = relay.get("/models").await.json();
        match models["models"].get(0) {
            Some(model) if is_right(model) => return model.clone(),
            model => assert!(Instant::now() < deadline, "{what}: {model:?}"),
        }
        sleep(Duration::from_millis(5)).await;
    }
}

async fn ready(relay: &Running) -> Json {
    until(relay, "hashed", |model| model["state"]["phase"] == "ready").await
}

/// A model that cannot be had; why.
async fn broken(relay: &Running) -> String {
    let model = until(relay, "broken", |model| model["state"]["phase"] == "broken").await;
    model["state"]["message"].as_str().unwrap().to_owned()
}

/// Another relay with the file in a folder.
async fn other_relay(bytes: &[u8]) -> (Running, String, PathBuf) {
    let models = folder("elsewhere");
    std::fs::write(models.join("tiny.gguf"), bytes).unwrap();
    let relay = start(Config { models: vec![models.clone()], ..config("elsewhere") }).await;
    ready(&relay).await;
    let url = format!("http://{}/models/tiny.gguf", relay.address);
    (relay, url, models)
}

/// A server that answers like this.
async fn server(routes: Router) -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async { axum::serve(listener, routes).await });
    format!("http://{address}/tiny.gguf")
}

/// What a store without names for versions sends.
fn ranged(headers: &HeaderMap, bytes: &[u8]) -> impl IntoResponse + use<> {
    let range = headers[header::RANGE].to_str().unwrap().strip_prefix("bytes=").unwrap();
    let (start, last) = range.split_once('-').unwrap();
    let (start, last): (usize, usize) = (start.parse().unwrap(), last.parse().unwrap());
    let content_range = format!("bytes {start}-{last}/{}", bytes.len());
    (StatusCode::PARTIAL_CONTENT, [(header::CONTENT_RANGE, content_range)], bytes[start..=last].to_vec())
}

#[tokio::test(flavor = "multi_thread")]
async fn weights_from_elsewhere_are_described_hashed_and_sent_in_ranges() {
    let bytes = gguf(1);
    let (_other, url, _) = other_relay(&bytes).await;
    let relay = relay(&url, None, &folder("data")).await;
    let model = ready(&relay).await;
    assert_eq!(model["root"], blake3::hash(&bytes).to_string());
    assert_eq!((&model["architecture"], &model["name"]), (&"llama".into(), &"tiny".into()));
    assert_eq!(relay.get("/models/tiny.gguf").await.body, bytes);
    let edge = PART_BYTES as usize;
    let range = format!("bytes={}-{}", edge - 3, edge + 4);
    let part = relay.get_with("/models/tiny.gguf", &[("range", &range)]).await;
    assert_eq!((part.status, &part.body[..]), (206, &bytes[edge - 3..edge + 5]));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_kept_is_bounded_and_serves_while_the_origin_is_down() {
    let bytes = gguf(2);
    let (other, url, _) = other_relay(&bytes).await;
    let cache = folder("kept");
    let relay = relay(&url, Some((&cache, 2 * PART_BYTES)), &folder("data")).await;
    ready(&relay).await;
    assert_eq!(relay.get("/models/tiny.gguf").await.body, bytes);
    let kept: u64 = std::fs::read_dir(&cache).unwrap().map(|part| part.unwrap().metadata().unwrap().len()).sum();
    assert!((PART_BYTES..=2 * PART_BYTES).contains(&kept), "{kept}");

    other.stop().await;
    let last = format!("bytes={}-", bytes.len() - 10);
    let part = relay.get_with("/models/tiny.gguf", &[("range", &last)]).await;
    assert_eq!((part.status, &part.body[..]), (206, &bytes[bytes.len() - 10..]));
    let lost = relay.get_with("/models/tiny.gguf", &[("range", "bytes=0-9")]).await;
    assert_eq!((lost.status, lost.json()["error"].as_str()), (502, Some("origin-failed")), "{}", lost.text());
    assert!(lost.text().contains("127.0.0.1 cannot be reached"), "{}", lost.text());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_disk_that_forgets_sends_nothing_wrong() {
    let bytes = gguf(3);
    let (_other, url, _) = other_relay(&bytes).await;
    let cache = folder("rotten");
    let relay = relay(&url, Some((&cache, 9 * PART_BYTES)), &folder("data")).await;
    ready(&relay).await;
    for part in std::fs::read_dir(&cache).unwrap() {
        std::fs::write(part.unwrap().path(), [0; PART_BYTES as usize]).unwrap();
    }
    assert_eq!(relay.get("/models/tiny.gguf").await.body, bytes);
    std::fs::remove_dir_all(&cache).unwrap();
    assert_eq!(relay.get("/models/tiny.gguf").await.body, bytes, "nothing can be kept, as on a full disk");
}

#[tokio::test(flavor = "multi_thread")]
async fn readers_of_a_part_share_one_request() {
    let (bytes, asked) = (Arc::new(gguf(4)), Arc::new(AtomicUsize::new(0)));
    let (sent, counted) = (bytes.clone(), asked.clone());
    let slowly = get(async move |headers: HeaderMap| {
        if headers[header::RANGE] != "bytes=0-0" {
            counted.fetch_add(1, Ordering::SeqCst);
            // Long enough for the others to come.
            sleep(Duration::from_millis(200)).await;
        }
        ranged(&headers, &sent)
    });
    let relay = relay(&server(Router::new().fallback(slowly)).await, None, &folder("data")).await;
    ready(&relay).await;
    let before = asked.load(Ordering::SeqCst);
    let read = || relay.get_with("/models/tiny.gguf", &[("range", "bytes=0-99")]);
    let (a, b, c) = tokio::join!(read(), read(), read());
    assert!([a, b, c].iter().all(|reply| reply.body == bytes[..100]));
    // The first byte, which shows faults, and the rest are one part.
    assert_eq!(asked.load(Ordering::SeqCst) - before, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_changed_is_found_and_hashed_again() {
    let (_other, url, models) = other_relay(&gguf(5)).await;
    let relay = relay(&url, None, &folder("data")).await;
    ready(&relay).await;
    let bytes = gguf(6);
    std::fs::write(models.join("new"), &bytes).unwrap();
    std::fs::rename(models.join("new"), models.join("tiny.gguf")).unwrap();
    let root = blake3::hash(&bytes).to_string();
    until(&relay, "the new one", |model| model["root"] == root).await;
    assert_eq!(relay.get("/models/tiny.gguf").await.body, bytes);
}

#[tokio::test(flavor = "multi_thread")]
async fn bytes_of_another_hash_are_not_sent_and_make_it_hash_again() {
    let (files, now) = (Arc::new([gguf(7), gguf(8)]), Arc::new(AtomicUsize::new(0)));
    let (sent, which) = (files.clone(), now.clone());
    let store = get(async move |headers: HeaderMap| ranged(&headers, &sent[which.load(Ordering::SeqCst)]));
    let relay = relay(&server(Router::new().fallback(store)).await, None, &folder("data")).await;
    ready(&relay).await;
    now.store(1, Ordering::SeqCst);
    let refused = relay.get("/models/tiny.gguf").await;
    assert_eq!(refused.status, 502, "{}", refused.text());
    assert!(refused.text().contains("127.0.0.1 sent bytes that do not match the file's hash"), "{}", refused.text());
    let root = blake3::hash(&files[1]).to_string();
    until(&relay, "the new one", |model| model["root"] == root).await;
    assert_eq!(relay.get("/models/tiny.gguf").await.body, files[1]);
}

#[tokio::test(flavor = "multi_thread")]
async fn every_fault_of_an_origin_has_a_sentence() {
    let closed = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let down = format!("http://{closed}/tiny.gguf");
    let whole = server(Router::new().fallback(async || vec![0; 10])).await;
    let away = server(Router::new().fallback(async || StatusCode::NOT_FOUND)).await;
    let ill = server(Router::new().fallback(async || StatusCode::INTERNAL_SERVER_ERROR)).await;
    let circle = server(Router::new().fallback(async || Redirect::temporary("/tiny.gguf"))).await;
    let slow = server(Router::new().fallback(async || sleep(TIMEOUT).await)).await;
    let page = get(async |headers: HeaderMap| ranged(&headers, b"<!doctype html>"));
    let page = server(Router::new().fallback(page)).await;
    for (url, sentence) in [
        (down, "127.0.0.1 cannot be reached"),
        (whole, "127.0.0.1 does not answer range requests"),
        (away, "127.0.0.1 has no such file"),
        (ill, "127.0.0.1 answers with status 500"),
        (circle, "127.0.0.1 redirects too often"),
        (slow, "127.0.0.1 takes too long to answer"),
        (page, "not a GGUF file"),
    ] {
        let relay = relay(&url, None, &folder("data")).await;
        let message = broken(&relay).await;
        assert!(message.contains(sentence), "{url}: {message}");
    }
}
