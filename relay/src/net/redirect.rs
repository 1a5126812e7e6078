//! The answer to plain HTTP from another device: the same address with `https://`.

use std::net::IpAddr;

use axum::http::uri::{Authority, PathAndQuery};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::hosts::Hosts;

/// Longest request head that is read for this.
const MAX_HEAD_BYTES: usize = 8 * 1024;
/// Most headers in it.
const MAX_HEADERS: usize = 64;

/// Reads one request over a connection to the address `local`, answers it with a redirect and closes the connection.
pub async fn to_https(mut stream: TcpStream, hosts: &Hosts, local: IpAddr) {
    let mut head = Vec::new();
    while !head.windows(4).any(|end| end == b"\r\n\r\n") && head.len() < MAX_HEAD_BYTES {
        match stream.read_buf(&mut head).await {
            Ok(1..) => {}
            _ => return,
        }
    }
    // If the device has gone, nobody needs the answer.
    let _ = stream.write_all(answer(&head, |host| hosts.allow(host, local)).as_bytes()).await;
    let _ = stream.shutdown().await;
}

fn answer(head: &[u8], is_own: impl Fn(&Authority) -> bool) -> String {
    match https_url(head, is_own) {
        Some(url) => format!(
            "HTTP/1.1 307 Temporary Redirect\r\nLocation: {url}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
        ),
        None => "HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".to_owned(),
    }
}

/// The `https://` form of the requested address; `None` if the head is malformed or does not name this relay.
fn https_url(head: &[u8], is_own: impl Fn(&Authority) -> bool) -> Option<String> {
    let mut headers = [httparse::EMPTY_HEADER; MAX_HEADERS];
    let mut request = httparse::Request::new(&mut headers);
    request.parse(head).ok()?;
    let path: PathAndQuery = request.path.filter(|path| path.starts_with('/'))?.parse().ok()?;
    let host = request.headers.iter().find(|header| header.name.eq_ignore_ascii_case("host"))?;
    let host = Authority::try_from(host.value).ok().filter(|host| !host.as_str().contains('@') && is_own(host))?;
    Some(format!("https://{host}{path}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_redirect_keeps_path_and_port() {
        let head = b"GET /r/abcd?x=1 HTTP/1.1\r\nAccept: */*\r\nhost: 192.168.1.5:8787\r\n\r\n";
        assert_eq!(https_url(head, |_| true).as_deref(), Some("https://192.168.1.5:8787/r/abcd?x=1"));
        assert!(answer(head, |_| true).contains("Location: https://192.168.1.5:8787/r/abcd?x=1\r\n"));
    }

    #[test]
    fn a_malformed_head_is_a_bad_request() {
        for head in [
            "",
            "\r\n\r\n",
            "GET / HTTP/1.1\r\n\r\n",
            "GET http://x/ HTTP/1.1\r\nHost: x\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: \r\n\r\n",
            "GET / HTTP/1.1\r\nHost: evil.example/<script>\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: relay@evil.example\r\n\r\n",
        ] {
            assert_eq!(https_url(head.as_bytes(), |_| true), None, "{head:?}");
        }
        let head = b"GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n";
        assert_eq!(https_url(head, |_| false), None, "a name of another site");
        assert!(answer(b"", |_| true).starts_with("HTTP/1.1 400"));
    }
}
