//! The addresses under which other devices find this relay.

use std::net::{IpAddr, Ipv4Addr};

/// Network interfaces of containers and virtual machines: nobody's phone is there.
const VIRTUAL: [&str; 6] = ["docker", "br-", "veth", "virbr", "vmnet", "vboxnet"];

/// The IPv4 addresses of this machine that other devices can reach, home networks first. Empty if the system does not
/// tell or there is no network.
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
    // 192.168.x.x is what a home router gives out; 10.x.x.x is often a tunnel.
    found.sort_by_key(|ip| (!ip.is_private(), ip.octets()[0] != 192, *ip));
    found.dedup();
    found
}
