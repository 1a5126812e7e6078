//! Weights over HTTP: the list, ranges, hashes, split files, changes on disk.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use std::path::Path;

use common::{Reply, Running, TIMEOUT, config, folder, start};
use potluck_gguf::{GgufWriter, TensorType, Value};
use potluck_relay::Config;
use potluck_relay::models::groups::{GROUP_BYTES, GroupHash, verify_group, verify_list};
use serde_json::{Value as Json, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::{Instant, sleep};

/// A file of half a dozen groups; its bytes depend on their position.
fn gguf(parameters: u64) -> Vec<u8> {
    let mut writer = GgufWriter::new();
    writer.set("general.architecture", Value::from("qwen3moe"));
    writer.set("general.name", Value::from("Test kitchen"));
    writer.set("general.license", Value::from("apache-2.0"));
    writer.set("qwen3moe.block_count", Value::from(3u32));
    writer.set("qwen3moe.context_length", Value::from(4096u32));
    writer.set("qwen3moe.expert_count", Value::from(8u32));
    writer.set("qwen3moe.expert_used_count", Value::from(2u32));
    writer.tensor("a", TensorType::F32, &[parameters / 2, 2]).unwrap();
    writer.to_bytes(|tensor| (0..tensor.bytes).map(|i| ((i / 3) ^ (i >> 9)) as u8).collect()).unwrap()
}

const PARAMETERS: u64 = 100_000;

async fn relay(models: &Path, cache: &Path) -> Running {
    start(Config { models: vec![models.into()], cache: cache.into(), ..config("models") }).await
}

/// A relay with one model in one file, hashed.
async fn one_model(test: &str) -> (Running, Vec<u8>) {
    let models = folder(test);
    let bytes = gguf(PARAMETERS);
    std::fs::write(models.join("tiny.gguf"), &bytes).unwrap();
    let relay = relay(&models, &folder(test)).await;
    ready(&relay, 0).await;
    (relay, bytes)
}

/// Waits until a model is hashed; its entry.
async fn ready(relay: &Running, index: usize) -> Json {
    let deadline = Instant::now() + TIMEOUT;
    loop {
        let line = relay.get("/models").await.json()["models"][index].clone();
        match line["state"]["phase"].as_str().unwrap() {
            "ready" => return line,
            "hashing" => assert!(Instant::now() < deadline, "hashed in time: {line}"),
            other => panic!("{other}: {line}"),
        }
        sleep(std::time::Duration::from_millis(5)).await;
    }
}

fn list_of(reply: &Reply) -> Vec<GroupHash> {
    let (groups, rest) = reply.body.as_chunks();
    assert!(rest.is_empty());
    groups.to_vec()
}

#[tokio::test]
async fn models_are_described() {
    let (relay, bytes) = one_model("described").await;
    let line = ready(&relay, 0).await;
    let root = blake3::hash(&bytes).to_string();
    let expected = json!({
        "name": "tiny", "bytes": bytes.len(), "root": root, "state": {"phase": "ready"},
        "title": "Test kitchen", "architecture": "qwen3moe", "quantization": "F32", "blocks": 3, "experts": 8,
        "experts_used": 2, "state_bytes_per_position": null, "context": 4096, "licence": "apache-2.0", "parameters": PARAMETERS,
        "files": [{"name": "tiny.gguf", "url": "/models/tiny.gguf", "bytes": bytes.len(), "root": root,
                   "groups": "/models/tiny.gguf.b3"}],
    });
    assert_eq!(line, expected);
}

#[tokio::test]
async fn the_whole_file_and_its_head() {
    let (relay, bytes) = one_model("whole").await;
    let etag = format!("\"{}\"", blake3::hash(&bytes));
    for path in ["/models/tiny.gguf", "/models/tiny"] {
        let reply = relay.get(path).await;
        assert_eq!((reply.status, reply.header("etag")), (200, Some(etag.as_str())));
        assert_eq!(reply.header("accept-ranges"), Some("bytes"));
        assert_eq!(reply.header("content-type"), Some("application/octet-stream"));
        assert_eq!(reply.header("cross-origin-resource-policy"), Some("same-origin"));
        assert!(reply.body == bytes);
    }
    let head = relay.request("HEAD", "/models/tiny.gguf", &[("Range", "bytes=0-9")], "").await;
    assert_eq!((head.status, head.body.len()), (200, 0));
    assert_eq!(head.header("content-length"), Some(bytes.len().to_string().as_str()));
    assert_eq!(head.header("etag"), Some(etag.as_str()));
    let known = relay.get_with("/models/tiny.gguf", &[("If-None-Match", &etag)]).await;
    assert_eq!((known.status, known.body.len()), (304, 0));
    assert_eq!(relay.metric("potluck_relay_weight_bytes_total").await, 2 * bytes.len() as u64);
}

#[tokio::test]
async fn one_range() {
    let (relay, bytes) = one_model("range").await;
    let total = bytes.len();
    for (range, start, end) in [
        ("bytes=0-0".to_owned(), 0, 1),
        ("bytes=70000-200000".to_owned(), 70_000, 200_001),
        (format!("bytes={}-", total - 5), total - 5, total),
        ("bytes=-7".to_owned(), total - 7, total),
        (format!("bytes=5-{}", 10 * total), 5, total),
    ] {
        let reply = relay.get_with("/models/tiny.gguf", &[("Range", &range)]).await;
        assert_eq!(reply.status, 206, "{range}");
        let content_range = format!("bytes {start}-{}/{total}", end - 1);
        assert_eq!(reply.header("content-range"), Some(content_range.as_str()));
        assert!(reply.body == bytes[start..end], "{range}");
    }
    let sent = 1 + 130_001 + 5 + 7 + total as u64 - 5;
    assert_eq!(relay.metric("potluck_relay_model_bytes_total{model=\"tiny\"}").await, sent);
}

/// The parts of a `multipart/byteranges` body: their `Content-Range` and their bytes.
fn parts_of(reply: &Reply) -> Vec<(String, Vec<u8>)> {
    let kind = reply.header("content-type").unwrap();
    let boundary = kind.strip_prefix("multipart/byteranges; boundary=").unwrap_or_else(|| panic!("{kind}"));
    let find = |bytes: &[u8], text: &str| bytes.windows(text.len()).position(|window| window == text.as_bytes());
    let (line, mut rest, mut parts) = (format!("\r\n--{boundary}"), &reply.body[..], Vec::new());
    rest = rest.strip_prefix(&line.as_bytes()[2..]).expect("the body begins with a boundary");
    while let Some(part) = rest.strip_prefix(b"\r\n") {
        let head = find(part, "\r\n\r\n").unwrap();
        let end = find(part, &line).expect("a part ends");
        let range = String::from_utf8_lossy(&part[..head])
            .lines()
            .find_map(|line| line.strip_prefix("content-range: ").map(str::to_owned));
        parts.push((range.unwrap(), part[head + 4..end].to_vec()));
        rest = &part[end + line.len()..];
    }
    assert_eq!(rest, b"--\r\n");
    parts
}

#[tokio::test]
async fn several_ranges_are_parts_of_one_answer() {
    let (relay, bytes) = one_model("ranges").await;
    let total = bytes.len();
    let reply = relay.get_with("/models/tiny.gguf", &[("Range", "bytes=300000-399999, 0-3, -5")]).await;
    assert_eq!(reply.status, 206, "{}", reply.text());
    assert_eq!(reply.header("content-length"), Some(reply.body.len().to_string().as_str()));
    let expected = [0..4, 300_000..400_000, total - 5..total]
        .map(|part| (format!("bytes {}-{}/{total}", part.start, part.end - 1), bytes[part].to_vec()));
    assert!(parts_of(&reply) == expected);
    assert_eq!(relay.metric("potluck_relay_weight_bytes_total").await, 100_009, "bytes of the file alone");
}

/// Overlapping ranges would multiply the bytes of an answer: 512 times the file for a request of a few kilobytes.
#[tokio::test]
async fn ranges_that_overlap_are_sent_once() {
    let (relay, bytes) = one_model("overlap").await;
    let joined = relay.get_with("/models/tiny.gguf", &[("Range", "bytes=0-9, 5-19, 20-29")]).await;
    assert_eq!((joined.status, joined.body.len()), (206, 30));
    let many = format!("bytes={}", vec!["0-"; 512].join(","));
    let whole = relay.get_with("/models/tiny.gguf", &[("Range", &many)]).await;
    assert_eq!((whole.status, whole.body.len()), (200, bytes.len()), "so many are ignored");
    let part = relay.get_with("/models/tiny.gguf", &[("Range", "bytes=0-3, 99999999-")]).await;
    assert_eq!((part.status, part.body.len()), (206, 4), "the other one lies outside");
}

#[tokio::test]
async fn a_weak_tag_names_the_same_version() {
    let (relay, bytes) = one_model("weak").await;
    let tag = format!("\"{}\"", blake3::hash(&bytes));
    let groups = format!("\"{}.b3\"", blake3::hash(&bytes));
    for (path, tag) in [("/models/tiny.gguf", &tag), ("/models/tiny.gguf.b3", &groups)] {
        for known in [tag.clone(), format!("W/{tag}"), format!("\"other\", W/{tag}"), "*".into()] {
            let reply = relay.get_with(path, &[("If-None-Match", &known)]).await;
            assert_eq!((reply.status, reply.body.len()), (304, 0), "{path} with {known}");
            assert_eq!(reply.header("etag"), Some(tag.as_str()));
        }
        assert_eq!(relay.get_with(path, &[("If-None-Match", "\"other\"")]).await.status, 200);
    }
}

#[tokio::test]
async fn a_file_that_was_removed_is_not_there() {
    let models = folder("removed");
    for name in ["tiny.gguf", "moved.gguf"] {
        std::fs::write(models.join(name), gguf(PARAMETERS)).unwrap();
    }
    let relay = relay(&models, &folder("removed")).await;
    for index in [0, 1] {
        ready(&relay, index).await;
    }
    std::fs::remove_file(models.join("tiny.gguf")).unwrap();
    let reply = relay.get("/models/tiny.gguf").await;
    assert_eq!((reply.status, reply.json()["error"].as_str()), (404, Some("no-such-model")), "{}", reply.text());
    assert_eq!(relay.get("/models").await.json()["models"].as_array().unwrap().len(), 1, "the list knows at once");
    std::fs::create_dir(models.join("deeper")).unwrap();
    std::fs::rename(models.join("moved.gguf"), models.join("deeper/moved.gguf")).unwrap();
    let moved = relay.get("/models/moved.gguf").await;
    assert_eq!((moved.status, moved.header("retry-after")), (503, Some("1")), "{}", moved.text());
    assert!(relay.get("/models/moved.gguf").await.body == gguf(PARAMETERS));
}

#[tokio::test]
async fn a_range_outside_the_file_is_refused() {
    let (relay, bytes) = one_model("outside").await;
    for range in [format!("bytes={}-", bytes.len()), "bytes=-0".into()] {
        let reply = relay.get_with("/models/tiny.gguf", &[("Range", &range)]).await;
        assert_eq!(reply.status, 416, "{range}");
        assert_eq!(reply.header("content-range"), Some(format!("bytes */{}", bytes.len()).as_str()));
        assert_eq!(reply.json()["error"], "range-outside");
    }
    let ignored = relay.get_with("/models/tiny.gguf", &[("Range", "lines=1-2")]).await;
    assert_eq!((ignored.status, ignored.body.len()), (200, bytes.len()));
}

#[tokio::test]
async fn a_range_of_another_version_is_not_served() {
    let (relay, bytes) = one_model("if-range").await;
    let etag = format!("\"{}\"", blake3::hash(&bytes));
    let range = ("Range", "bytes=0-9");
    let same = relay.get_with("/models/tiny.gguf", &[range, ("If-Range", &etag)]).await;
    assert_eq!((same.status, same.body.len()), (206, 10));
    for other in ["\"0123\"", "Sat, 21 Nov 2026 09:00:00 GMT", &format!("W/{etag}")] {
        let reply = relay.get_with("/models/tiny.gguf", &[range, ("If-Range", other)]).await;
        assert_eq!((reply.status, reply.body.len()), (200, bytes.len()), "{other}");
    }
}

#[tokio::test]
async fn any_group_can_be_checked_against_the_root() {
    let (relay, bytes) = one_model("groups").await;
    let reply = relay.get("/models/tiny.gguf.b3").await;
    let list = list_of(&reply);
    assert!(list.len() > 3);
    assert!(verify_list(&list, bytes.len() as u64, &blake3::hash(&bytes)));
    let range = format!("bytes={}-{}", 2 * GROUP_BYTES, 3 * GROUP_BYTES - 1);
    let group = relay.get_with("/models/tiny.gguf", &[("Range", &range)]).await.body;
    assert!(verify_group(&list, 2, &group));
    assert!(!verify_group(&list, 1, &group));
}

#[tokio::test]
async fn parts_of_a_split_model_are_one_model() {
    let models = folder("split");
    let parts = [gguf(50_000), gguf(20_000)];
    std::fs::write(models.join("big-00002-of-00002.gguf"), &parts[1]).unwrap();
    std::fs::write(models.join("big-00001-of-00002.gguf"), &parts[0]).unwrap();
    std::fs::write(models.join("torn-00002-of-00002.gguf"), &parts[1]).unwrap();
    let relay = relay(&models, &folder("split")).await;
    let line = ready(&relay, 0).await;
    let mut roots = blake3::Hasher::new();
    for part in &parts {
        roots.update(blake3::hash(part).as_bytes());
    }
    assert_eq!((&line["name"], &line["parameters"]), (&json!("big"), &json!(70_000)));
    assert_eq!(line["root"], roots.finalize().to_string());
    assert_eq!(line["bytes"], parts[0].len() + parts[1].len());
    assert_eq!(line["files"][1]["name"], "big-00002-of-00002.gguf");
    assert_eq!(relay.get("/models/big").await.json()["error"], "several-files");
    assert!(relay.get("/models/big-00002-of-00002.gguf").await.body == parts[1]);

    let torn = &relay.get("/models").await.json()["models"][1];
    assert_eq!(torn["state"], json!({"phase": "broken", "message": "Part 1 of 2 is missing."}));
    assert_eq!(torn["root"], Json::Null);
}

#[tokio::test]
async fn a_hash_is_stored_until_the_file_changes() {
    let (models, cache) = (folder("kept"), folder("kept"));
    let path = models.join("tiny.gguf");
    std::fs::write(&path, gguf(PARAMETERS)).unwrap();
    let first = relay(&models, &cache).await;
    let root = ready(&first, 0).await["root"].clone();
    first.stop().await;

    // With a stored hash, the very first answer is complete.
    let second = relay(&models, &cache).await;
    let line = second.get("/models").await.json()["models"][0].clone();
    assert_eq!((&line["state"]["phase"], &line["root"]), (&json!("ready"), &root));

    let changed = gguf(PARAMETERS + 2);
    std::fs::write(&path, &changed).unwrap();
    let reply = second.get("/models/tiny.gguf").await;
    assert_eq!((reply.status, &reply.json()["error"]), (503, &json!("changed")));
    assert_eq!(ready(&second, 0).await["root"], blake3::hash(&changed).to_string());
    assert!(second.get("/models/tiny.gguf").await.body == changed);
    second.stop().await;

    // A stored hash that was tampered with is ignored.
    let kept = std::fs::read_dir(&cache).unwrap().next().unwrap().unwrap().path();
    let mut bytes = std::fs::read(&kept).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    std::fs::write(&kept, bytes).unwrap();
    let third = relay(&models, &cache).await;
    assert_eq!(ready(&third, 0).await["root"], blake3::hash(&changed).to_string());
}

/// Larger than what lies in sockets between relay and client.
const LONG: u64 = 12_000_000;

/// A download that has begun: the first bytes of its body have come, and the relay waits for its reader.
async fn begun(relay: &Running, file: &str) -> (tokio::net::TcpStream, Vec<u8>) {
    let mut stream = relay.tcp_from(std::net::Ipv4Addr::LOCALHOST).await;
    let head = format!("GET /models/{file} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut first = vec![0; 4096];
    stream.read_exact(&mut first).await.unwrap();
    (stream, first)
}

async fn body(mut stream: tokio::net::TcpStream, mut bytes: Vec<u8>) -> Vec<u8> {
    // A body that breaks off may reset its connection.
    let _ = tokio::time::timeout(TIMEOUT, stream.read_to_end(&mut bytes)).await.expect("an end");
    let end = bytes.windows(4).position(|four| four == b"\r\n\r\n").unwrap();
    bytes.split_off(end + 4)
}

/// Same length, same header, other weights.
fn other_weights(bytes: &[u8]) -> Vec<u8> {
    let half = bytes.len() / 16;
    bytes.iter().enumerate().map(|(i, byte)| if i < half { *byte } else { !byte }).collect()
}

async fn written_to_in_mid_download(test: &str, keeps_its_time: bool) {
    let models = folder(test);
    let path = models.join("long.gguf");
    let old = gguf(LONG);
    std::fs::write(&path, &old).unwrap();
    let relay = relay(&models, &folder(test)).await;
    let time = std::fs::metadata(&path).unwrap().modified().unwrap();
    let (stream, first) = begun(&relay, "long.gguf").await;
    std::fs::write(&path, other_weights(&old)).unwrap();
    if keeps_its_time {
        std::fs::File::options().write(true).open(&path).unwrap().set_modified(time).unwrap();
    }
    let got = body(stream, first).await;
    assert!(got.len() < old.len(), "the body ends early");
    assert!(got == old[..got.len()], "what came is of the version that was asked for");
}

#[tokio::test]
async fn a_download_breaks_off_where_its_file_is_written_to() {
    written_to_in_mid_download("written", false).await;
}

#[tokio::test]
async fn a_download_breaks_off_also_where_the_files_time_was_set_back() {
    written_to_in_mid_download("written-with-time", true).await;
}

#[tokio::test]
async fn a_file_that_is_replaced_by_another_is_sent_to_its_end() {
    let models = folder("renamed");
    let path = models.join("long.gguf");
    let old = gguf(LONG);
    std::fs::write(&path, &old).unwrap();
    let relay = relay(&models, &folder("renamed")).await;
    let (stream, first) = begun(&relay, "long.gguf").await;
    std::fs::write(models.join("new"), other_weights(&old)).unwrap();
    std::fs::rename(models.join("new"), &path).unwrap();
    assert!(body(stream, first).await == old, "the old file, which nobody wrote to");
}

#[tokio::test]
async fn a_file_that_gets_another_name_is_sent_and_not_hashed_again() {
    let (models, elsewhere) = (folder("linked"), folder("linked"));
    let path = models.join("tiny.gguf");
    std::fs::write(&path, gguf(PARAMETERS)).unwrap();
    let relay = relay(&models, &folder("linked")).await;
    let root = ready(&relay, 0).await["root"].clone();
    std::fs::hard_link(&path, elsewhere.join("other.gguf")).unwrap();
    let reply = relay.get("/models/tiny.gguf").await;
    assert_eq!((reply.status, reply.body == gguf(PARAMETERS)), (200, true));
    let line = relay.get("/models").await.json()["models"][0].clone();
    assert_eq!((&line["state"]["phase"], &line["root"]), (&json!("ready"), &root));
}

#[tokio::test]
async fn hashes_of_a_file_whose_time_was_set_back_are_not_taken_for_its_own() {
    let models = folder("set-back");
    let path = models.join("tiny.gguf");
    let old = gguf(PARAMETERS);
    std::fs::write(&path, &old).unwrap();
    let cache = folder("set-back");
    let first = relay(&models, &cache).await;
    ready(&first, 0).await;
    first.stop().await;
    let time = std::fs::metadata(&path).unwrap().modified().unwrap();
    std::fs::write(&path, other_weights(&old)).unwrap();
    std::fs::File::options().write(true).open(&path).unwrap().set_modified(time).unwrap();
    let again = relay(&models, &cache).await;
    let line = ready(&again, 0).await;
    assert_eq!(line["root"], blake3::hash(&other_weights(&old)).to_string());
}

#[tokio::test]
async fn a_file_that_is_no_model_is_listed_with_the_reason() {
    let models = folder("broken");
    let cut = gguf(PARAMETERS);
    std::fs::write(models.join("cut.gguf"), &cut[..cut.len() - 1000]).unwrap();
    std::fs::write(models.join("empty.gguf"), b"").unwrap();
    std::fs::write(models.join("text.gguf"), b"not a model at all").unwrap();
    std::fs::write(models.join("notes.txt"), b"not served").unwrap();
    let relay = relay(&models, &folder("broken")).await;
    let list = relay.get("/models").await.json();
    let lines = list["models"].as_array().unwrap();
    assert_eq!(lines.len(), 3);
    for line in lines {
        assert_eq!(line["state"]["phase"], "broken", "{line}");
        assert!(line["state"]["message"].as_str().unwrap().starts_with(line["files"][0]["name"].as_str().unwrap()));
    }
    assert!(lines[0]["state"]["message"].as_str().unwrap().contains("\"a\""), "names the tensor: {}", lines[0]);
    for missing in ["/models/notes.txt", "/models/nothing.gguf", "/models/nothing.gguf.b3", "/models/..%2Fx.gguf"] {
        let reply = relay.get(missing).await;
        assert_eq!((reply.status, &reply.json()["error"]), (404, &json!("no-such-model")), "{missing}");
    }
}
