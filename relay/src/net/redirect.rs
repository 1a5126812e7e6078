//! The answer to plain HTTP from another device: the same address with `https://`.

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// Longest request head that is read for this.
const HEAD_BYTES: usize = 8 * 1024;

/// Reads one request, answers it with a redirect and closes.
pub async fn to_https(mut stream: TcpStream) {
    let mut head = Vec::new();
    while !head.windows(4).any(|end| end == b"\r\n\r\n") && head.len() < HEAD_BYTES {
        match stream.read_buf(&mut head).await {
            Ok(1..) => {}
            _ => return,
        }
    }
    // The device may have gone; then nobody needs the answer.
    let _ = stream.write_all(answer(&head).as_bytes()).await;
    let _ = stream.shutdown().await;
}

fn answer(head: &[u8]) -> String {
    match target(head) {
        Some(url) => format!(
            "HTTP/1.1 307 Temporary Redirect\r\nLocation: {url}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
        ),
        None => "HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".to_owned(),
    }
}

/// The `https://` form of what a request asked for; `None` if it does not say or says it in odd characters.
fn target(head: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(head).ok()?;
    let mut lines = text.split("\r\n");
    let path = lines.next()?.split(' ').nth(1).filter(|path| path.starts_with('/'))?;
    let host = lines.find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("host").then(|| value.trim())
    })?;
    let host_fits = !host.is_empty() && host.bytes().all(|b| b.is_ascii_alphanumeric() || b".:-[]".contains(&b));
    let path_fits = path.bytes().all(|b| b.is_ascii_graphic());
    (host_fits && path_fits).then(|| format!("https://{host}{path}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn path_and_port_are_kept() {
        let head = b"GET /r/abcd?x=1 HTTP/1.1\r\nAccept: */*\r\nhost: 192.168.1.5:8787\r\n\r\n";
        assert_eq!(target(head).as_deref(), Some("https://192.168.1.5:8787/r/abcd?x=1"));
        assert!(answer(head).contains("Location: https://192.168.1.5:8787/r/abcd?x=1\r\n"));
    }

    #[test]
    fn nonsense_is_a_bad_request() {
        for head in ["", "\r\n\r\n", "GET / HTTP/1.1\r\n\r\n", "GET http://x/ HTTP/1.1\r\nHost: x\r\n\r\n"] {
            assert_eq!(target(head.as_bytes()), None, "{head:?}");
        }
        assert_eq!(target(b"GET / HTTP/1.1\r\nHost: evil.example/<script>\r\n\r\n"), None);
        assert!(answer(b"").starts_with("HTTP/1.1 400"));
    }
}
