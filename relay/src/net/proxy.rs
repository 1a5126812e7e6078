//! The client's address behind a proxy: from `X-Forwarded-For`, or from a header of the PROXY protocol.
//!
//! Only proxies that a person named are believed. Anyone else could name any address and pass by the limits.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use axum::http::HeaderMap;
use tokio::io::{AsyncRead, AsyncReadExt};

/// `X-Forwarded-For`: the addresses a request came through, each proxy appending the one before it.
pub const FORWARDED_FOR: &str = "x-forwarded-for";
/// Other headers that proxies add to a request that they forward. Those whose names begin with `x-forwarded-` count, too.
const PASSED_ON: [&str; 6] = ["via", "forwarded", "x-real-ip", "x-client-ip", "cf-connecting-ip", "true-client-ip"];
/// What version 2 of the PROXY protocol begins with.
const SIGNATURE: &[u8; 12] = b"\r\n\r\n\0\r\nQUIT\n";
/// Longest header of version 1, by its specification.
const MAX_LINE_BYTES: usize = 107;
/// Longest header of version 2 that is read: addresses and a few extensions.
const MAX_BODY_BYTES: usize = 2048;

/// The proxies that are trusted.
#[derive(Clone, Debug, Default)]
pub struct Proxies {
    /// Their addresses.
    pub addresses: Vec<IpAddr>,
    /// Whether their connections begin with a header of the PROXY protocol. They all do or none does: guessing would let
    /// a client write the header.
    pub send_header: bool,
}

impl Proxies {
    /// Whether a connection from this address is one of a trusted proxy.
    pub fn trust(&self, address: IpAddr) -> bool {
        self.addresses.contains(&address)
    }

    /// The client of a request that a trusted proxy passed on; `None` if the proxy names none. The last address that is no
    /// trusted proxy: what stands before it, the client may have written.
    pub fn client(&self, headers: &HeaderMap) -> Option<IpAddr> {
        let values: Vec<&str> = headers.get_all(FORWARDED_FOR).iter().filter_map(|value| value.to_str().ok()).collect();
        let addresses = values.iter().rev().flat_map(|value| value.rsplit(','));
        let mut addresses = addresses.map(|address| address.trim().parse::<IpAddr>().ok().map(|ip| ip.to_canonical()));
        addresses.find(|address| address.is_none_or(|ip| !self.trust(ip))).flatten()
    }
}

/// Whether any header shows that a proxy forwarded this request.
pub fn is_passed_on(headers: &HeaderMap) -> bool {
    headers.keys().any(|name| PASSED_ON.contains(&name.as_str()) || name.as_str().starts_with("x-forwarded-"))
}

/// Reads a header of the PROXY protocol, version 1 or 2. `Some(None)` if it names no client, as in a health check; `None`
/// if it is malformed.
pub async fn read_header<S: AsyncRead + Unpin>(stream: &mut S) -> Option<Option<IpAddr>> {
    // No header is shorter, and both versions differ here.
    let mut start = [0; 12];
    stream.read_exact(&mut start).await.ok()?;
    if start == *SIGNATURE { read_binary(stream).await } else { read_line(stream, &start).await }
}

async fn read_line<S: AsyncRead + Unpin>(stream: &mut S, start: &[u8]) -> Option<Option<IpAddr>> {
    let mut line = start.to_vec();
    // Byte by byte: what follows the line belongs to the request.
    while !line.ends_with(b"\r\n") {
        if line.len() >= MAX_LINE_BYTES || !line.starts_with(b"PROXY ") {
            return None;
        }
        line.push(stream.read_u8().await.ok()?);
    }
    let mut words = std::str::from_utf8(&line).ok()?.split_ascii_whitespace().skip(1);
    match words.next()? {
        "TCP4" | "TCP6" => Some(Some(words.next()?.parse::<IpAddr>().ok()?.to_canonical())),
        "UNKNOWN" => Some(None),
        _ => None,
    }
}

async fn read_binary<S: AsyncRead + Unpin>(stream: &mut S) -> Option<Option<IpAddr>> {
    let version = stream.read_u8().await.ok()?;
    let family = stream.read_u8().await.ok()?;
    let length = usize::from(stream.read_u16().await.ok()?);
    if length > MAX_BODY_BYTES {
        return None;
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await.ok()?;
    match (version, family >> 4) {
        // The proxy's own connection.
        (0x20, _) => Some(None),
        (0x21, 1) => Some(Some(Ipv4Addr::from(*body.first_chunk::<4>()?).into())),
        (0x21, 2) => Some(Some(IpAddr::from(Ipv6Addr::from(*body.first_chunk::<16>()?)).to_canonical())),
        (0x21, 0 | 3) => Some(None),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use axum::http::HeaderValue;

    use super::*;

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn the_last_address_that_is_no_proxy_is_the_client() {
        let proxies = Proxies { addresses: vec![ip("10.0.0.1"), ip("10.0.0.2")], send_header: false };
        let client = |values: &[&'static str]| {
            let named = values.iter().map(|value| (FORWARDED_FOR.parse().unwrap(), HeaderValue::from_static(value)));
            proxies.client(&named.collect())
        };
        assert_eq!(client(&["203.0.113.9"]), Some(ip("203.0.113.9")));
        assert_eq!(client(&["1.2.3.4, 203.0.113.9, 10.0.0.2"]), Some(ip("203.0.113.9")), "the first is made up");
        assert_eq!(client(&["1.2.3.4", "2001:db8::5"]), Some(ip("2001:db8::5")));
        for none in [&[][..], &["10.0.0.2"], &["1.2.3.4, nonsense"], &[""]] {
            assert_eq!(client(none), None, "{none:?}");
        }
    }

    #[tokio::test]
    async fn both_versions_of_the_header_are_read_and_nothing_behind_it() {
        let mut binary = SIGNATURE.to_vec();
        binary.extend([0x21, 0x11, 0, 12, 203, 0, 113, 9, 10, 0, 0, 1, 0, 80, 0, 80]);
        for header in [&b"PROXY TCP4 203.0.113.9 10.0.0.1 4000 443\r\n"[..], &binary] {
            let bytes = [header, b"GET"].concat();
            let mut stream = &bytes[..];
            assert_eq!(read_header(&mut stream).await, Some(Some(ip("203.0.113.9"))));
            assert_eq!(stream, b"GET");
        }
        assert_eq!(read_header(&mut &b"PROXY UNKNOWN\r\n"[..]).await, Some(None));
        let long = format!("PROXY TCP4 {}", "1".repeat(200));
        for bad in ["GET / HTTP/1.1\r\n\r\n", "PROXY TCP4 nobody\r\n", "PROXY TCP9 1.2.3.4\r\n", &long, "PROXY TC"] {
            assert_eq!(read_header(&mut bad.as_bytes()).await, None, "{bad}");
        }
    }
}
