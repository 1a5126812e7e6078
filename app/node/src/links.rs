//! Where a link to a model may lead. The host of a room chooses the link and learns whether it worked, so a link must not reach
//! addresses that only this device can reach: itself, its network, the cloud's metadata service.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Suffixes of names in private networks.
const PRIVATE_NAMES: [&str; 10] =
    ["localhost", "localdomain", "local", "internal", "lan", "home", "corp", "intranet", "private", "home.arpa"];

/// True if the text of a link uses https and does not name a private address. Only the program that resolves the name can check
/// where it leads. False for texts that programs may read in different ways.
pub fn leads_to_the_internet(url: &str) -> bool {
    // Browsers take a backslash for a slash, and leave out blanks and line breaks.
    let is_plain = |letter: char| letter.is_ascii_graphic() && letter != '\\';
    let Some((scheme, rest)) = url.split_once("://").filter(|_| url.chars().all(is_plain)) else { return false };
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    scheme.eq_ignore_ascii_case("https") && is_public_host(host)
}

/// True if a server with this name or address, perhaps with a port, is this machine or in a private network.
pub fn is_private_host(host: &str) -> bool {
    !is_public_host(host)
}

/// A name or an address, perhaps with a port.
fn is_public_host(host: &str) -> bool {
    let is_port = |port: &str| port.strip_prefix(':').unwrap_or(port).parse::<u16>().is_ok() || port.is_empty();
    if let Some((address, port)) = host.strip_prefix('[').and_then(|host| host.split_once(']')) {
        return is_port(port) && address.parse::<Ipv6Addr>().is_ok_and(|address| is_public(address.into()));
    }
    let (name, port) = host.split_once(':').unwrap_or((host, ""));
    let name = name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase();
    let is_name = name.chars().all(|letter| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '.' | '_'));
    let Some((_, last)) = name.rsplit_once('.').filter(|_| is_name && is_port(port)) else { return false };
    // A name that ends in a number is an IPv4 address in one of its notations.
    if last.is_empty() || last.starts_with(|first: char| first.is_ascii_digit()) {
        return name.parse::<Ipv4Addr>().is_ok_and(|address| is_public(address.into()));
    }
    !PRIVATE_NAMES.iter().any(|end| name.strip_suffix(end).is_some_and(|rest| rest.is_empty() || rest.ends_with('.')))
}

/// True for public addresses only.
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

    #[test]
    fn an_address_that_a_host_chose_leads_to_the_internet_and_over_tls() {
        for fine in [
            "https://models.example.com/a.gguf?token=1",
            "HTTPS://models.example.com:8443/a.gguf",
            "https://user:word@models.example.com/a.gguf",
            "https://93.184.215.14/a.gguf",
            "https://[2606:4700::1111]/a.gguf",
            "https://xn--bcher-kva.example/a.gguf",
        ] {
            assert!(leads_to_the_internet(fine), "{fine}");
        }
        for other in [
            "http://models.example.com/a.gguf",
            "ftp://models.example.com/a.gguf",
            "file:///etc/passwd",
            "https:///a.gguf",
            "https://localhost/a.gguf",
            "https://a.localhost./a.gguf",
            "https://printer/a.gguf",
            "https://nas.local/a.gguf",
            "https://fritz.box.home.arpa/a.gguf",
            "https://metadata.google.internal/a.gguf",
            "https://192.168.1.1/a.gguf",
            "https://169.254.169.254/a.gguf",
            "https://models.example.com@127.0.0.1/a.gguf",
            "https://models.example.com\\@127.0.0.1/a.gguf",
            // What browsers read as 127.0.0.1, too.
            "https://127.1/a.gguf",
            "https://2130706433/a.gguf",
            "https://a.0x7f000001/a.gguf",
            "https://0177.0.0.1/a.gguf",
            "https://127.0.0.1./a.gguf",
            "https://%31%32%37.0.0.1/a.gguf",
            "https://\u{ff11}\u{ff12}\u{ff17}.0.0.1/a.gguf",
            "https://127.0\n.0.1/a.gguf",
            " https://192.168.1.1/a.gguf",
            "https://[::1]/a.gguf",
            "https://[::ffff:10.0.0.1]/a.gguf",
            "https://[fe80::1%eth0]/a.gguf",
            "https://models.example.com:port/a.gguf",
        ] {
            assert!(!leads_to_the_internet(other), "{other}");
        }
    }
}
