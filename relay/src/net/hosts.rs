//! The names under which this relay answers.
//!
//! DNS rebinding: a page of `evil.example` lets its own name point to this machine, and its requests then count as the
//! same site. They name `evil.example` as their host, so the relay answers only to names that it knows.

use std::net::IpAddr;

use axum::http::header::{HOST, ORIGIN};
use axum::http::uri::Authority;
use axum::http::{HeaderMap, Uri};

use super::names::plain;

/// The names that are allowed beside `localhost`, loopback addresses and the address that a client connected to.
#[derive(Clone, Debug, Default)]
pub struct Hosts {
    addresses: Vec<IpAddr>,
    names: Vec<String>,
}

impl Hosts {
    /// This machine's addresses and names, with those that a person gave.
    pub fn new<'a>(addresses: impl IntoIterator<Item = IpAddr>, names: impl IntoIterator<Item = &'a String>) -> Self {
        // A port that came along with a name says nothing.
        let host = |name: &String| name.parse::<Authority>().map_or(name.clone(), |name| name.host().to_owned());
        let names = names.into_iter().map(|name| plain(&host(name)).to_owned()).collect();
        Self { addresses: addresses.into_iter().collect(), names }
    }

    /// Whether a request names this relay, over a connection to the address `local`. Ports are not compared: pages of
    /// other ports of the same name are told apart by their origin.
    pub fn allow(&self, host: &Authority, local: IpAddr) -> bool {
        let host = plain(host.host());
        if let Ok(ip) = host.parse::<IpAddr>() {
            let ip = ip.to_canonical();
            return ip.is_loopback() || ip == local || self.addresses.contains(&ip) || self.has_name(host);
        }
        host.eq_ignore_ascii_case("localhost") || self.has_name(host)
    }

    fn has_name(&self, host: &str) -> bool {
        self.names.iter().any(|name| name.eq_ignore_ascii_case(host))
    }
}

/// The host that a request names; `None` if it names none, or two.
pub fn host_of(uri: &Uri, headers: &HeaderMap) -> Option<Authority> {
    let mut named = headers.get_all(HOST).iter();
    let host = Authority::try_from(named.next()?.as_bytes()).ok()?;
    let is_one = named.next().is_none() && uri.authority().is_none_or(|authority| *authority == host);
    (is_one && !host.as_str().contains('@')).then_some(host)
}

/// Whether a request comes from a page of this relay, or from no page. Browsers always send `Origin` when a page opens a
/// WebSocket; programs need not. Schemes are not compared: the help page, which comes over HTTP, tries a socket over TLS, and behind a
/// proxy that ends TLS the relay does not know the scheme.
fn is_same_origin(headers: &HeaderMap, host: &Authority) -> bool {
    let Some(origin) = headers.get(ORIGIN) else { return true };
    let origin = Uri::try_from(origin.as_bytes()).ok().and_then(|origin| origin.into_parts().authority);
    origin.is_some_and(|origin| origin == *host)
}

/// Whether a page of another site makes this request. Following a link to a page here does not count: then the browser shows this
/// relay, and the other site cannot read it. Programs that are not browsers name no site.
pub fn is_of_other_site(headers: &HeaderMap, host: &Authority) -> bool {
    if headers.contains_key(ORIGIN) {
        return !is_same_origin(headers, host);
    }
    let is =
        |name: &str, values: &[&str]| headers.get(name).is_some_and(|value| values.iter().any(|known| value == known));
    is("sec-fetch-site", &["cross-site", "same-site"]) && !is("sec-fetch-mode", &["navigate"])
}

/// Whether a request names this machine to itself: `localhost`, or a loopback address.
pub fn names_loopback(host: &Authority) -> bool {
    let host = plain(host.host());
    host.eq_ignore_ascii_case("localhost") || host.parse::<IpAddr>().is_ok_and(|ip| ip.to_canonical().is_loopback())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use super::*;

    #[test]
    fn only_names_of_this_relay_are_allowed() {
        let own = "192.168.1.5".parse().unwrap();
        let hosts = Hosts::new([own], &["Potluck.example:8443".into(), "203.0.113.9".into()]);
        let local = "10.1.2.3".parse().unwrap();
        for good in [
            "localhost:8787",
            "LOCALHOST",
            "127.0.0.1",
            "127.8.9.1:1",
            "[::1]:8787",
            "192.168.1.5:8787",
            "10.1.2.3",
            "potluck.EXAMPLE:443",
            "potluck.example.",
            "203.0.113.9",
        ] {
            assert!(hosts.allow(&good.parse().unwrap(), local), "{good}");
        }
        for bad in [
            "evil.example",
            "evil.example:8787",
            "localhost.evil.example",
            "192.168.1.6",
            "10.1.2.3.evil.example",
            "x.potluck.example",
            "2130706433",
            "[2001:db8::1]",
        ] {
            assert!(!hosts.allow(&bad.parse().unwrap(), local), "{bad}");
        }
    }

    #[test]
    fn a_request_names_one_host() {
        let headers = |values: &[&'static str]| {
            values.iter().map(|value| (HOST, axum::http::HeaderValue::from_static(value))).collect::<HeaderMap>()
        };
        let path = Uri::from_static("/x");
        assert_eq!(host_of(&path, &headers(&["a:1"])).unwrap(), "a:1");
        assert_eq!(host_of(&Uri::from_static("http://a:1/x"), &headers(&["a:1"])).unwrap(), "a:1");
        assert_eq!(host_of(&Uri::from_static("http://b/x"), &headers(&["a:1"])), None);
        for bad in [&[][..], &["a", "b"], &["b@a"], &[""]] {
            assert_eq!(host_of(&path, &headers(bad)), None, "{bad:?}");
        }
    }
}
