//! Which addresses a link to a model may lead to. The host of a room chooses the link and learns whether it worked, so a
//! link must not reach what only this device reaches: itself, its network, the cloud's metadata service.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ureq::Error;
use ureq::config::Config;
use ureq::http::Uri;
use ureq::unversioned::resolver::{DefaultResolver, ResolvedSocketAddrs, Resolver};
use ureq::unversioned::transport::NextTimeout;

/// Resolves names to the addresses that are allowed. ureq asks it for every redirect, and connects to nothing else than what
/// it returns, so a name cannot change between the check and the connection.
#[derive(Debug)]
pub struct AllowedAddresses(pub fn(IpAddr) -> bool);

impl Resolver for AllowedAddresses {
    fn resolve(&self, uri: &Uri, config: &Config, timeout: NextTimeout) -> Result<ResolvedSocketAddrs, Error> {
        // The same error for a name that does not exist and one that is private: which it is, is nobody's business.
        let found = DefaultResolver::default().resolve(uri, config, timeout).map_err(|_| Error::HostNotFound)?;
        let mut allowed = self.empty();
        found.iter().filter(|address| (self.0)(address.ip())).for_each(|address| allowed.push(*address));
        if allowed.is_empty() { Err(Error::HostNotFound) } else { Ok(allowed) }
    }
}

/// True for addresses of the internet, and for no others.
pub fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    let [a, b, c, _] = address.octets();
    let carrier = a == 100 && (64..128).contains(&b);
    let protocols = (a, b, c) == (192, 0, 0);
    let relays_of_6to4 = (a, b, c) == (192, 88, 99);
    let benchmarks = a == 198 && (18..20).contains(&b);
    // "This network" and everything from multicast up.
    let reserved = a == 0 || a >= 224;
    let local = address.is_private() || address.is_loopback() || address.is_link_local();
    !(local || carrier || protocols || relays_of_6to4 || benchmarks || reserved || address.is_documentation())
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    let segments = address.segments();
    let v4 = |high: u16, low: u16| {
        let ([a, b], [c, d]) = (high.to_be_bytes(), low.to_be_bytes());
        is_public_v4(Ipv4Addr::new(a, b, c, d))
    };
    match segments {
        // IPv4 in IPv6: mapped addresses, NAT64, 6to4.
        [0, 0, 0, 0, 0, 0xffff, high, low] | [0x64, 0xff9b, 0, 0, 0, 0, high, low] => v4(high, low),
        [0x2002, high, low, ..] => v4(high, low),
        // Protocol assignments, among them Teredo, and documentation.
        [0x2001, 0..0x200, ..] | [0x2001, 0xdb8, ..] | [0x3fff, 0..0x1000, ..] => false,
        // Everything else that is assigned to the internet; the rest is loopback, link-local, unique local, multicast …
        [first, ..] => (0x2000..0x4000).contains(&first),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use super::*;

    #[test]
    fn only_addresses_of_the_internet_are_public() {
        for public in
            ["1.1.1.1", "93.184.215.14", "100.63.0.1", "2606:4700::1111", "::ffff:8.8.8.8", "64:ff9b::808:808"]
        {
            assert!(is_public(public.parse().unwrap()), "{public}");
        }
        let private = [
            "0.0.0.0",
            "0.1.2.3",
            "10.0.0.1",
            "100.64.0.1",
            "127.0.0.1",
            "127.9.9.9",
            "169.254.169.254",
            "172.16.0.1",
            "172.31.255.255",
            "192.0.0.8",
            "192.0.2.1",
            "192.168.1.1",
            "198.18.0.1",
            "198.51.100.1",
            "203.0.113.1",
            "224.0.0.1",
            "240.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "::7f00:1",
            "fc00::1",
            "fd12:3456::1",
            "fe80::1",
            "fec0::1",
            "ff02::1",
            "2001:db8::1",
            "2001::1",
            "::ffff:127.0.0.1",
            "::ffff:10.0.0.1",
            "64:ff9b::7f00:1",
            "64:ff9b:1::1",
            "2002:7f00:1::",
            "2002:c0a8:101::1",
            "100::1",
            "3fff::1",
        ];
        for private in private {
            assert!(!is_public(private.parse().unwrap()), "{private}");
        }
    }
}
