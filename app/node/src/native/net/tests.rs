//! Tests of `net.rs`.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::io::Write;
use std::net::{Ipv4Addr, TcpListener};

use super::*;

/// Answers every request on this address with this text.
fn server(ip: &str, reply: String) -> u16 {
    let listener = TcpListener::bind((ip, 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for socket in listener.incoming() {
            let mut socket = socket.unwrap();
            let _ = socket.read(&mut [0; 4096]);
            let _ = socket.write_all(reply.as_bytes());
        }
    });
    port
}

/// Answers requests by what they say.
fn answering(reply: impl Fn(&str) -> String + Send + 'static) -> u16 {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for socket in listener.incoming() {
            let mut socket = socket.unwrap();
            let mut request = [0; 4096];
            let len = socket.read(&mut request).unwrap_or(0);
            let _ = socket.write_all(reply(&String::from_utf8_lossy(&request[..len]).to_lowercase()).as_bytes());
        }
    });
    port
}

fn get(agent: &ureq::Agent, url: &str) -> Result<HttpReply, ureq::Error> {
    answer(agent, HttpRequest::get(url))
}

#[test]
fn a_link_leads_to_no_private_address_whatever_its_form() {
    let port = server("127.0.0.1", "HTTP/1.1 200 OK\r\ncontent-length: 6\r\nconnection: close\r\n\r\nsecret".into());
    let private = to_links(is_public, false);
    for host in ["localhost", "127.0.0.1", "2130706433", "0x7f.1", "0.0.0.0", "[::1]", "[::ffff:127.0.0.1]"] {
        let refused = get(&private, &format!("http://{host}:{port}/"));
        assert!(matches!(refused, Err(ureq::Error::HostNotFound)), "{host}: {refused:?}");
    }
    let reply = get(&to_links(|_| true, false), &format!("http://127.0.0.1:{port}/")).unwrap();
    assert_eq!(reply.body, b"secret", "with --allow-private-links it does");
}

#[test]
fn every_redirect_is_checked_again() {
    let secret = server("127.0.0.2", "HTTP/1.1 200 OK\r\ncontent-length: 6\r\nconnection: close\r\n\r\nsecret".into());
    let location = format!("location: http://127.0.0.2:{secret}/");
    let reply = format!("HTTP/1.1 302 Found\r\n{location}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
    let port = server("127.0.0.1", reply);
    // 127.0.0.1 stands for a public address here.
    let agent = to_links(|address| address == Ipv4Addr::new(127, 0, 0, 1), false);
    let refused = get(&agent, &format!("http://127.0.0.1:{port}/"));
    assert!(matches!(refused, Err(ureq::Error::HostNotFound)), "{refused:?}");
    let followed = get(&to_links(|_| true, false), &format!("http://127.0.0.1:{port}/")).unwrap();
    assert_eq!(followed.body, b"secret");
}

/// A gated repository of the Hub that was renamed leads to its new name, which wants the token again.
#[test]
fn a_token_follows_a_redirect_to_its_own_server_only() {
    let says = |request: &str| {
        let known = if request.contains("authorization: bearer hf_mine") { "known" } else { "a guest" };
        format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{known}", known.len())
    };
    let leads =
        |to: &str| format!("HTTP/1.1 307 Go\r\nlocation: {to}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
    let other = answering(says);
    let port = answering(move |request| match request.split(' ').nth(1) {
        Some("/old/model.gguf") => leads("/new/model.gguf"),
        Some("/new/model.gguf") => says(request),
        Some("/store/model.gguf") => leads(&format!("http://127.0.0.1:{other}/model.gguf")),
        _ => leads("/circle"),
    });
    let with_token = |path: &str| {
        let access = Some("hf_mine".parse().unwrap());
        answer(
            &to_links(|_| true, false),
            HttpRequest { access, ..HttpRequest::get(format!("http://127.0.0.1:{port}{path}")) },
        )
    };
    for (path, who) in [("/new", "known"), ("/old", "known"), ("/store", "a guest")] {
        let reply = with_token(&format!("{path}/model.gguf")).unwrap();
        assert_eq!((reply.status, reply.body), (200, who.as_bytes().to_vec()), "{path}");
    }
    assert!(matches!(with_token("/circle"), Err(ureq::Error::TooManyRedirects)));
}

#[test]
fn a_link_needs_tls_and_its_errors_tell_nothing() {
    let refused = get(&to_links(|_| true, true), "http://127.0.0.1:9/secret/path").unwrap_err();
    assert!(matches!(refused, ureq::Error::RequireHttpsOnly(_)), "{refused:?}");
    for error in [refused, ureq::Error::HostNotFound, io::Error::other("10.0.0.7 refused").into()] {
        let sentence = link_reason(&error);
        assert!(!sentence.contains("secret") && !sentence.contains("10.0.0.7"), "{sentence}");
    }
}

#[test]
fn a_server_that_sends_more_than_was_asked_for_is_not_read() {
    let whole = "x".repeat(1 << 20);
    let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\nconnection: close\r\n\r\n", whole.len());
    let port = server("127.0.0.1", head + &whole);
    let request = HttpRequest { range: Some(0..16), ..HttpRequest::get(format!("http://127.0.0.1:{port}/")) };
    let reply = answer(&to_links(|_| true, false), request).unwrap();
    assert_eq!((reply.status, reply.body.len()), (200, 0));
}

#[test]
fn bytes_are_counted_before_the_reply_is_complete() {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let (rest, wait) = std::sync::mpsc::channel::<()>();
    let arrived = Traffic::default();
    let request = HttpRequest { arrived: arrived.clone(), ..HttpRequest::get(url) };
    std::thread::scope(|scope| {
        // If the test fails, the server ends too.
        let rest = rest;
        let reply = scope.spawn(|| answer(&to_links(|_| true, false), request));
        let (mut socket, _) = listener.accept().unwrap();
        let _ = socket.read(&mut [0; 4096]);
        socket.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\nconnection: close\r\n\r\nhalf ").unwrap();
        let server = scope.spawn(move || {
            if wait.recv().is_ok() {
                socket.write_all(b"whole").unwrap();
            }
        });
        while arrived.bytes() < 5 {
            assert!(!reply.is_finished(), "the reply must not end without its second half");
            std::thread::yield_now();
        }
        assert_eq!(arrived.bytes(), 5, "the first half");
        rest.send(()).unwrap();
        server.join().unwrap();
        assert_eq!(reply.join().unwrap().unwrap().body, b"half whole");
        assert_eq!(arrived.bytes(), 10, "both halves");
    });
}

#[test]
fn only_the_relays_own_addresses_are_the_relays() {
    let network = Network { relay: "https://relay.example".into(), ..Network::default() };
    let transport = NativeTransport::new(&network);
    assert!(transport.is_relays("https://relay.example/models/a.gguf"));
    for other in ["https://relay.example.evil/x", "https://relay.example@evil/x", "http://relay.example/x"] {
        assert!(!transport.is_relays(other), "{other}");
    }
}
