//! The addresses under which other devices find this relay.

use std::net::{IpAddr, Ipv4Addr};

/// Name prefixes of interfaces for containers and virtual machines: no phone is there.
const VIRTUAL: [&str; 6] = ["docker", "br-", "veth", "virbr", "vmnet", "vboxnet"];

/// The IPv4 addresses of this machine that other devices can reach, home networks first. Empty without a network, or if
/// the system does not list its interfaces.
pub fn lan() -> Vec<Ipv4Addr> {
    let interfaces = if_addrs::get_if_addrs().unwrap_or_default();
    let mut found: Vec<Ipv4Addr> = interfaces
        .iter()
        .filter(|interface| !VIRTUAL.iter().any(|prefix| interface.name.starts_with(prefix)))
        .filter_map(|interface| match interface.ip() {
            IpAddr::V4(ip) if !ip.is_loopback() && !ip.is_link_local() && !ip.is_unspecified() => Some(ip),
            _ => None,
        })
        .collect();
    // Home routers give out 192.168.x.x; 10.x.x.x is often a tunnel.
    found.sort_by_key(|ip| (!ip.is_private(), ip.octets()[0] != 192, *ip));
    found.dedup();
    found
}
