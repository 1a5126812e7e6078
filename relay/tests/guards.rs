//! What keeps strangers from using or exhausting the relay: hosts, proxies, half-open connections, slow readers.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use std::net::{IpAddr, Ipv4Addr};
use std::time::{Duration, Instant};

use common::{Keys, Reply, Running, TIMEOUT, config, connector, folder, request, start};
use potluck_relay::Config;
use potluck_relay::limits::Limits;
use potluck_relay::net::proxy::Proxies;
use potluck_relay::net::tls::Identity;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::{sleep, timeout};
use tokio_rustls::rustls::pki_types::ServerName;

const ELSEWHERE: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 2);

async fn relay(test: &str, limits: Limits) -> Running {
    start(Config { limits, ..config(test) }).await
}

/// A request that names a host of its own.
async fn status(relay: &Running, path: &str, host: &str, headers: &[(&str, &str)]) -> u16 {
    let stream = relay.tcp_from(Ipv4Addr::LOCALHOST).await;
    request(stream, "GET", path, host, headers, "").await.status
}

const UPGRADE: [(&str, &str); 4] = [
    ("Upgrade", "websocket"),
    ("Connection", "upgrade"),
    ("Sec-WebSocket-Version", "13"),
    ("Sec-WebSocket-Key", "AAAAAAAAAAAAAAAAAAAAAA=="),
];

/// DNS rebinding: `evil.example` points to this machine, so its page's requests are of the same site and name it.
#[tokio::test]
async fn no_endpoint_answers_to_the_name_of_another_site() {
    let relay = start(Config { hosts: vec!["potluck.example".into()], ..config("rebinding") }).await;
    let port = relay.address.port();
    let evil = format!("evil.example:{port}");
    let origin = format!("http://{evil}");
    let room = format!("/rooms/{}", Keys::new(1).id());
    for path in ["/", "/rooms", "/models", "/models/a.gguf", "/addresses", "/metrics", "/healthz", "/nothing"] {
        assert_eq!(status(&relay, path, &evil, &[]).await, 421, "{path}");
    }
    let mut as_evil = UPGRADE.to_vec();
    as_evil.push(("Origin", &origin));
    assert_eq!(status(&relay, &room, &evil, &as_evil).await, 421);
    assert_eq!(status(&relay, "/healthz", "a, b", &[]).await, 400);
    assert_eq!(status(&relay, "/healthz", "localhost", &[("Host", "evil.example")]).await, 400, "two hosts");
    for own in [format!("localhost:{port}"), format!("127.0.0.1:{port}"), "potluck.example".into()] {
        assert_eq!(status(&relay, "/healthz", &own, &[]).await, 200, "{own}");
    }
}

#[tokio::test]
async fn pages_of_other_sites_may_not_connect() {
    let relay = relay("origin", Limits::default()).await;
    let host = relay.address.to_string();
    let room = format!("/rooms/{}", Keys::new(1).id());
    for origin in ["https://evil.example", "null", "http://localhost:1"] {
        let mut headers = UPGRADE.to_vec();
        headers.push(("Origin", origin));
        assert_eq!(status(&relay, &room, &host, &headers).await, 403, "{origin}");
    }
}

/// Weights, lists and the page: whatever is read for a page of another site costs the relay its downloads and its visitor's network.
#[tokio::test]
async fn pages_of_other_sites_may_not_read() {
    let models = folder("other-sites");
    std::fs::write(models.join("a.gguf"), vec![7; 1000]).unwrap();
    let relay = start(Config { models: vec![models], ..config("other-sites") }).await;
    let host = relay.address.to_string();
    let get = async |path: &str, headers: &[(&str, &str)]| {
        let headers = [&[("Range", "bytes=0-9")], headers].concat();
        status(&relay, path, &host, &headers).await
    };
    let own = format!("http://{host}");
    for path in ["/models/a.gguf", "/models", "/rooms", "/addresses", "/metrics", "/healthz"] {
        for origin in ["https://evil.example", "null", "http://localhost:1"] {
            assert_eq!(get(path, &[("Origin", origin)]).await, 403, "{path} for {origin}");
        }
        // Without CORS, browsers name the site instead, and the way.
        for site in ["cross-site", "same-site"] {
            let embeds = [("Sec-Fetch-Site", site), ("Sec-Fetch-Mode", "no-cors")];
            assert_eq!(get(path, &embeds).await, 403, "{path} embedded by a {site} page");
        }
        let served = get(path, &[("Origin", &own)]).await;
        assert!(matches!(served, 200 | 206), "{path} for its own page: {served}");
        let followed = get(path, &[("Sec-Fetch-Site", "cross-site"), ("Sec-Fetch-Mode", "navigate")]).await;
        assert_eq!(followed, served, "{path} by a link that somebody follows");
    }
    assert_eq!(get("/models/a.gguf", &[]).await, 206, "programs name no site");
}

/// Connections from one address: every other one begins a request, and none finishes it.
async fn half_open(relay: &Running, connections: usize) -> Vec<TcpStream> {
    let mut open = Vec::new();
    for i in 0..connections {
        let mut stream = relay.tcp_from(ELSEWHERE).await;
        let begun: &[u8] = if i % 2 == 0 { b"GET / HTTP/1.1\r\nHost: loc" } else { b"" };
        // The relay may have closed it already.
        let _ = stream.write_all(begun).await;
        open.push(stream);
    }
    open
}

#[tokio::test]
async fn half_open_connections_count_and_disturb_nobody() {
    let limits = Limits { head: TIMEOUT, handshake: TIMEOUT, address_connections: 50, ..Limits::default() };
    let relay = relay("half-open", limits).await;
    let _open = half_open(&relay, 50).await;
    // With the one that asks.
    relay.until_metric("potluck_relay_connections", 51).await;
    // One more from there is told so; everyone else is served.
    let one_more = request(relay.tcp_from(ELSEWHERE).await, "GET", "/", "localhost", &[], "").await;
    assert_eq!((one_more.status, one_more.header("retry-after")), (503, Some("5")));
    assert_eq!(one_more.json()["error"], "too-many-connections");
    assert_eq!(relay.metric("potluck_relay_connections_refused_total").await, 1);
    let keys = Keys::new(1);
    let _host = relay.own(&keys).await;
}

/// Of 1,000 requests at once, 488 were closed without an answer.
#[tokio::test]
async fn every_request_over_a_limit_gets_an_answer() {
    const REQUESTS: usize = 200;
    let data = folder("burst");
    let limits = Limits { address_connections: 50, handshake: TIMEOUT, head: TIMEOUT, ..Limits::default() };
    let identity = Some(Identity::Own { folder: data.clone() });
    let relay = start(Config { limits, identity, ..config("burst") }).await;
    let authority = std::fs::read(data.join("authority.pem")).unwrap();
    let mut open = Vec::new();
    for _ in 0..REQUESTS {
        open.push(relay.tcp_from(ELSEWHERE).await);
    }
    relay.until_metric("potluck_relay_connections_refused_total", (REQUESTS - 50) as u64).await;
    let mut statuses = Vec::new();
    for (i, stream) in open.into_iter().rev().enumerate() {
        let reply = if i % 2 == 0 {
            let name = ServerName::try_from("localhost").unwrap();
            let stream = connector(&authority).connect(name, stream).await.unwrap();
            request(stream, "GET", "/healthz", "localhost", &[], "").await
        } else {
            request(stream, "GET", "/healthz", "localhost", &[], "").await
        };
        assert_eq!(reply.status == 503, reply.header("retry-after").is_some());
        statuses.push(reply.status);
    }
    let refused = statuses.iter().filter(|status| **status == 503).count();
    let served = statuses.iter().filter(|status| **status == 200).count();
    assert_eq!((served, refused), (50, REQUESTS - 50));
}

/// So that they cost little.
#[tokio::test]
async fn refusals_have_a_limit() {
    let limits = Limits { head: TIMEOUT, handshake: TIMEOUT, address_connections: 1, refusals: 2, ..Limits::default() };
    let relay = relay("refusals-limit", limits).await;
    let answer = async || {
        let mut stream = relay.tcp_from(ELSEWHERE).await;
        let mut bytes = Vec::new();
        // It may be closed before it has asked.
        let _ = stream.write_all(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n").await;
        let _ = timeout(TIMEOUT, stream.read_to_end(&mut bytes)).await.expect("the relay closes it");
        String::from_utf8(bytes).unwrap()
    };
    let _open = half_open(&relay, 1).await;
    relay.until_metric("potluck_relay_connections", 2).await;
    let waiting = half_open(&relay, 2).await;
    relay.until_metric("potluck_relay_connections_refused_total", 2).await;
    assert_eq!(answer().await, "", "both places are taken");
    drop(waiting);
    let deadline = Instant::now() + TIMEOUT;
    while !answer().await.starts_with("HTTP/1.1 503") {
        assert!(Instant::now() < deadline, "a place that is free again is used");
    }
}

#[tokio::test]
async fn refusals_have_an_end() {
    let head = Duration::from_secs(2);
    let limits = Limits { head, handshake: head, address_connections: 1, refusals: 2, ..Limits::default() };
    let relay = relay("refusals", limits).await;
    let _open = half_open(&relay, 1).await;
    relay.until_metric("potluck_relay_connections", 2).await;
    for mut stream in half_open(&relay, 4).await {
        // Closed or reset.
        let _ = timeout(TIMEOUT, stream.read_to_end(&mut Vec::new())).await.expect("the relay closes it");
    }
    assert_eq!(relay.metric("potluck_relay_connections_refused_total").await, 4);
}

/// A request that is never finished used to keep its connection for ever.
#[tokio::test]
async fn half_open_connections_end() {
    let short = Duration::from_secs(2);
    let limits = Limits { head: short, handshake: short, address_connections: 4, ..Limits::default() };
    let relay = relay("half-open-ends", limits).await;
    for mut stream in half_open(&relay, 4).await {
        // Closed or reset.
        let _ = timeout(TIMEOUT, stream.read_to_end(&mut Vec::new())).await.expect("the relay closes it");
    }
    // The one that asks.
    relay.until_metric("potluck_relay_connections", 1).await;
    let reply = request(relay.tcp_from(ELSEWHERE).await, "GET", "/healthz", "localhost", &[], "").await;
    assert_eq!(reply.status, 200, "the address may come again");
}

/// A relay with a large file, of which an address may download two copies at once.
async fn with_downloads(test: &str, stall: Duration) -> Running {
    let models = folder(test);
    std::fs::write(models.join("big.gguf"), vec![7; 64 << 20]).unwrap();
    let download_wait = Duration::from_millis(100);
    let limits = Limits { stall, address_downloads: 2, download_wait, ..Limits::default() };
    start(Config { models: vec![models], limits, ..config(test) }).await
}

/// A download that begins and is not read.
async fn unread_download(relay: &Running) -> TcpStream {
    let mut stream = relay.tcp_from(ELSEWHERE).await;
    stream.write_all(b"GET /models/big.gguf HTTP/1.1\r\nHost: localhost\r\n\r\n").await.unwrap();
    stream.read_exact(&mut [0; 15]).await.unwrap();
    stream
}

/// A short download.
async fn download(relay: &Running, from: Ipv4Addr) -> Reply {
    let range = [("Range", "bytes=0-9")];
    request(relay.tcp_from(from).await, "GET", "/models/big.gguf", "localhost", &range, "").await
}

#[tokio::test]
async fn an_address_with_many_downloads_waits_its_turn() {
    let relay = with_downloads("downloads", TIMEOUT).await;
    let _unread = [unread_download(&relay).await, unread_download(&relay).await];
    let refused = download(&relay, ELSEWHERE).await;
    assert_eq!((refused.status, refused.json()["error"].as_str()), (429, Some("too-many-downloads")));
    assert_eq!(download(&relay, Ipv4Addr::LOCALHOST).await.status, 206, "another address has its own");
}

/// Slow readers used to hold files and memory as long as they liked.
#[tokio::test]
async fn who_does_not_read_a_download_loses_it() {
    let relay = with_downloads("stalled-downloads", Duration::from_millis(500)).await;
    let _unread = [unread_download(&relay).await, unread_download(&relay).await];
    let deadline = Instant::now() + TIMEOUT;
    while download(&relay, ELSEWHERE).await.status != 206 {
        assert!(Instant::now() < deadline, "the stalled downloads end");
    }
}

#[tokio::test]
async fn counters_are_for_this_machine_unless_asked_for() {
    let relay = start(Config { ip: Ipv4Addr::UNSPECIFIED.into(), ..config("metrics") }).await;
    assert_eq!(relay.get("/metrics").await.status, 200);
    for header in [
        ("X-Forwarded-For", "203.0.113.9"),
        ("X-Forwarded-Proto", "https"),
        ("X-Real-IP", "203.0.113.9"),
        ("Forwarded", "for=203.0.113.9"),
        ("Via", "1.1 potluck.example"),
    ] {
        let through_a_proxy = relay.get_with("/metrics", &[header]).await;
        assert_eq!(through_a_proxy.status, 403, "an undeclared proxy on this machine that sends {}", header.0);
    }
    let named = start(Config { hosts: vec!["potluck.example".into()], ..config("metrics") }).await;
    assert_eq!(
        status(&named, "/metrics", "potluck.example", &[]).await,
        403,
        "a proxy that sends nothing but the name"
    );
    assert_eq!(status(&named, "/metrics", "localhost", &[]).await, 200);
    let proxies = Proxies { addresses: vec![Ipv4Addr::LOCALHOST.into()], send_header: false };
    for (public_metrics, status) in [(false, 403), (true, 200)] {
        let relay = start(Config { proxies: proxies.clone(), public_metrics, ..config("metrics") }).await;
        let reply = relay.get_with("/metrics", &[("X-Forwarded-For", "203.0.113.9")]).await;
        assert_eq!(reply.status, status, "{}", reply.text());
    }
}

/// What a client sees behind a proxy: as many connections to rooms as its own address may have.
async fn members_of(stream: TcpStream, forwarded: Option<&str>) -> u16 {
    let mut headers = UPGRADE.to_vec();
    headers.extend(forwarded.map(|address| ("X-Forwarded-For", address)));
    let mut head = format!("GET /rooms/{} HTTP/1.1\r\nHost: localhost\r\n", Keys::new(1).id());
    for (name, value) in headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    let mut stream = stream;
    stream.write_all(format!("{head}\r\n").as_bytes()).await.unwrap();
    // The answer to the upgrade, then the first message: its type is near its start.
    let mut bytes = Vec::new();
    while !bytes.windows(8).any(|part| part == b"\"type\":\"") || bytes.len() < 200 {
        let read = timeout(TIMEOUT, stream.read_buf(&mut bytes)).await.unwrap().unwrap();
        assert!(read > 0, "{}", String::from_utf8_lossy(&bytes));
    }
    let is_challenge = String::from_utf8_lossy(&bytes).contains("\"challenge\"");
    // Kept open until the test ends, so that it counts.
    std::mem::forget(stream);
    if is_challenge { 101 } else { 429 }
}

#[tokio::test]
async fn only_a_trusted_proxy_names_the_client() {
    let limits = Limits { address_members: 1, ..Limits::default() };
    let proxies = Proxies { addresses: vec![ELSEWHERE.into()], send_header: false };
    let relay = start(Config { proxies, limits, ..config("forwarded") }).await;
    let members = async |from, forwarded| members_of(relay.tcp_from(from).await, Some(forwarded)).await;
    assert_eq!(members(ELSEWHERE, "203.0.113.1").await, 101);
    assert_eq!(members(ELSEWHERE, "203.0.113.2").await, 101);
    assert_eq!(members(ELSEWHERE, "9.9.9.9, 203.0.113.2").await, 429, "what the client wrote itself is no address");
    let stranger = Ipv4Addr::new(127, 0, 0, 3);
    assert_eq!(members(stranger, "203.0.113.4").await, 101);
    assert_eq!(members(stranger, "203.0.113.5").await, 429, "it is its own address, whatever it writes");
}

#[tokio::test]
async fn the_proxy_protocol_names_the_client() {
    let limits = Limits { address_members: 1, ..Limits::default() };
    let proxies = Proxies { addresses: vec![ELSEWHERE.into()], send_header: true };
    let relay = start(Config { proxies, limits, ..config("proxy") }).await;
    let members = async |client: IpAddr| {
        let mut stream = relay.tcp_from(ELSEWHERE).await;
        stream.write_all(format!("PROXY TCP4 {client} 10.0.0.1 4000 443\r\n").as_bytes()).await.unwrap();
        members_of(stream, Some("203.0.113.7")).await
    };
    let (one, two) = (Ipv4Addr::new(203, 0, 113, 1).into(), Ipv4Addr::new(203, 0, 113, 2).into());
    assert_eq!(members(one).await, 101);
    assert_eq!(members(one).await, 429);
    assert_eq!(members(two).await, 101);
    let mut without = relay.tcp_from(ELSEWHERE).await;
    without.write_all(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n").await.unwrap();
    assert_eq!(timeout(TIMEOUT, without.read(&mut [0; 9])).await.unwrap().unwrap_or(0), 0, "the header is required");
}

#[tokio::test]
async fn requests_finish_before_the_relay_stops() {
    let models = folder("drain");
    let bytes = vec![7; 48 << 20];
    std::fs::write(models.join("big.gguf"), &bytes).unwrap();
    let limits = Limits { shutdown_grace: TIMEOUT, ..Limits::default() };
    let mut relay = start(Config { models: vec![models], limits, ..config("drain") }).await;
    let mut download = relay.tcp_from(Ipv4Addr::LOCALHOST).await;
    download.write_all(b"GET /models/big.gguf HTTP/1.1\r\nHost: localhost\r\n\r\n").await.unwrap();
    let mut received = vec![0; 1000];
    download.read_exact(&mut received).await.unwrap();
    let _half_open = relay.tcp_from(Ipv4Addr::LOCALHOST).await;
    relay.ask_to_stop();
    while TcpStream::connect(relay.address).await.is_ok() {
        sleep(Duration::from_millis(5)).await;
    }
    timeout(TIMEOUT, download.read_to_end(&mut received)).await.unwrap().unwrap();
    let head = received.windows(4).position(|four| four == b"\r\n\r\n").unwrap() + 4;
    assert!(received[head..] == bytes, "{} bytes", received.len());
    relay.stopped().await;
}
