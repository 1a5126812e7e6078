//! The answer to plain HTTP from another device: the same address with `https://`.

use axum::http::uri::{Authority, PathAndQuery};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// Longest request head that is read for this.
const MAX_HEAD_BYTES: usize = 8 * 1024;
/// Most headers in it.
const MAX_HEADERS: usize = 64;

/// Reads one request, answers it with a redirect and closes the connection.
pub async fn to_https(mut stream: TcpStream) {
    let mut head = Vec::new();
    while !head.windows(4).any(|end| end == b"\r\n\r\n") && head.len() < MAX_HEAD_BYTES {
        match stream.read_buf(&mut head).await {
            Ok(1..) => {}
            _ => return,
        }
    }
    // If the device has gone, nobody needs the answer.
    let _ = stream.write_all(answer(&head).as_bytes()).await;
    let _ = stream.shutdown().await;
}

fn answer(head: &[u8]) -> String {
    match https_url(head) {
        Some(url) => format!(
            "HTTP/1.1 307 Temporary Redirect\r\nLocation: {url}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
        ),
        None => "HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".to_owned(),
    }
}

/// The `https://` form of the requested address; `None` if the head is malformed or names no host.
fn https_url(head: &[u8]) -> Option<String> {
    let mut headers = [httparse::EMPTY_HEADER; MAX_HEADERS];
    let mut request = httparse::Request::new(&mut headers);
    request.parse(head).ok()?;
    let path: PathAndQuery = request.path.filter(|path| path.starts_with('/'))?.parse().ok()?;
    let host = request.headers.iter().find(|header| header.name.eq_ignore_ascii_case("host"))?;
    let host = Authority::try_from(host.value).ok().filter(|host| !host.as_str().contains('@'))?;
    Some(format!("https://{host}{path}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_redirect_keeps_path_and_port() {
        let head = b"GET /r/abcd?x=1 HTTP/1.1\r\nAccept: */*\r\nhost: 192.168.1.5:8787\r\n\r\n";
        assert_eq!(https_url(head).as_deref(), Some("https://192.168.1.5:8787/r/abcd?x=1"));
        assert!(answer(head).contains("Location: https://192.168.1.5:8787/r/abcd?x=1\r\n"));
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
            assert_eq!(https_url(head.as_bytes()), None, "{head:?}");
        }
        assert!(answer(b"").starts_with("HTTP/1.1 400"));
    }
}
