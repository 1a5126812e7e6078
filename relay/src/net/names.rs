//! The names and addresses under which other devices find this relay.

use std::fmt;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::Arc;

use axum::http::uri::Authority;

/// Name prefixes of interfaces for containers and virtual machines: no phone is there.
const VIRTUAL: [&str; 6] = ["docker", "br-", "veth", "virbr", "vmnet", "vboxnet"];

/// Names and addresses, as in a certificate.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Names {
    /// In lower case, without a dot at the end.
    pub dns: Vec<String>,
    /// Addresses.
    pub ips: Vec<IpAddr>,
}

impl Names {
    /// Sorts a name that a person gave, as in the address bar: with or without a port, brackets or a dot at the end. What no
    /// certificate can name is left out.
    pub fn add(&mut self, name: &str) {
        let host = name.parse::<Authority>().map_or_else(|_| name.to_owned(), |name| name.host().to_owned());
        let host = plain(&host).to_ascii_lowercase();
        match host.parse::<IpAddr>() {
            Ok(ip) => self.add_ip(ip.to_canonical()),
            Err(_) if is_dns_name(&host) && !self.dns.contains(&host) => self.dns.push(host),
            Err(_) => {}
        }
    }

    /// Adds an address, once.
    pub fn add_ip(&mut self, ip: IpAddr) {
        if !self.ips.contains(&ip) {
            self.ips.push(ip);
        }
    }
}

/// Without the brackets of an IPv6 address and without the dot at the end of a complete name.
pub fn plain(host: &str) -> &str {
    let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    host.strip_suffix('.').unwrap_or(host)
}

fn is_dns_name(name: &str) -> bool {
    let is_label = |label: &str| {
        let inner = label.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-');
        inner && (1..=63).contains(&label.len()) && !label.starts_with('-') && !label.ends_with('-')
    };
    name.len() <= 253 && name.split('.').all(is_label)
}

/// Whether a name could be a top-level domain, such as `dev`: these have letters only, or begin with `xn--`.
pub fn could_be_top_level(name: &str) -> bool {
    name.starts_with("xn--") && !name.contains('.') || name.bytes().all(|b| b.is_ascii_alphabetic())
}

/// The machine that the relay runs on, as others see it.
#[derive(Clone)]
pub struct Machine {
    /// Its own names: `kitchen-2`, `kitchen-2.local`.
    pub names: Vec<String>,
    /// Lists its addresses on the network; called again and again, because they change.
    pub addresses: Arc<dyn Fn() -> Vec<IpAddr> + Send + Sync>,
}

impl Machine {
    /// This one.
    pub fn this() -> Self {
        Self { names: names_of(&host_name()), addresses: Arc::new(lan) }
    }

    /// One with these addresses, for good.
    pub fn at(addresses: Vec<IpAddr>) -> Self {
        Self { names: Vec::new(), addresses: Arc::new(move || addresses.clone()) }
    }
}

/// One that is on no network.
impl Default for Machine {
    fn default() -> Self {
        Self::at(Vec::new())
    }
}

impl fmt::Debug for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Machine").field("names", &self.names).finish_non_exhaustive()
    }
}

/// What a machine of this name is called on its network: the first label, the same with `.local` (multicast DNS), and its
/// complete name if it has one.
fn names_of(host_name: &str) -> Vec<String> {
    let name = plain(host_name).to_ascii_lowercase();
    let label = name.split('.').next().unwrap_or_default().to_owned();
    let mut names = Names::default();
    if !label.is_empty() && label != "localhost" {
        names.add(&label);
        names.add(&format!("{label}.local"));
        names.add(&name);
    }
    names.dns
}

#[cfg(unix)]
fn host_name() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

#[cfg(not(unix))]
fn host_name() -> String {
    std::env::var("COMPUTERNAME").unwrap_or_default()
}

/// The addresses of this machine that other devices can reach: IPv4 first, of these home networks first. Empty without a
/// network, or if the system does not list its interfaces.
fn lan() -> Vec<IpAddr> {
    let interfaces = if_addrs::get_if_addrs().unwrap_or_default();
    let physical = interfaces.iter().filter(|one| !VIRTUAL.iter().any(|prefix| one.name.starts_with(prefix)));
    let mut found: Vec<IpAddr> = physical.map(|interface| interface.ip()).filter(|ip| is_reachable(*ip)).collect();
    found.sort_by_key(|ip| rank(*ip));
    found.dedup();
    found
}

/// Whether other devices can use it as it stands. An IPv6 address that is valid on one link only needs the name of an interface of
/// theirs.
fn is_reachable(ip: IpAddr) -> bool {
    let is_link_local = match ip {
        IpAddr::V4(ip) => ip.is_link_local(),
        IpAddr::V6(ip) => ip.is_unicast_link_local(),
    };
    !ip.is_loopback() && !ip.is_unspecified() && !is_link_local
}

/// Home routers give out 192.168.x.x; 10.x.x.x is often a tunnel.
fn rank(ip: IpAddr) -> (bool, bool, bool, IpAddr) {
    match ip {
        IpAddr::V4(v4) => (false, !v4.is_private(), v4.octets()[0] != 192, ip),
        IpAddr::V6(v6) => (true, !v6.is_unique_local(), false, ip),
    }
}

/// The network of an IPv6 address: the first 64 bits, within which a machine changes its addresses by itself.
pub fn network(ip: Ipv6Addr) -> Ipv6Addr {
    Ipv6Addr::from_bits(ip.to_bits() & !u128::from(u64::MAX))
}

/// `https://` addresses for a list of addresses, one for each IPv6 network.
pub fn urls(addresses: &[IpAddr], port: u16) -> Vec<String> {
    let mut networks = Vec::new();
    let mut urls = Vec::new();
    for ip in addresses {
        if let IpAddr::V6(v6) = ip {
            if networks.contains(&network(*v6)) {
                continue;
            }
            networks.push(network(*v6));
        }
        urls.push(format!("https://{}", std::net::SocketAddr::new(*ip, port)));
    }
    urls
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use super::*;

    #[test]
    fn a_machine_is_called_by_its_label_its_local_name_and_its_complete_name() {
        assert_eq!(names_of("Kitchen-2"), ["kitchen-2", "kitchen-2.local"]);
        assert_eq!(names_of("mac.local."), ["mac", "mac.local"]);
        assert_eq!(names_of("pc.lan"), ["pc", "pc.local", "pc.lan"]);
        for none in ["", "localhost", "no name"] {
            assert_eq!(names_of(none), [""; 0], "{none:?}");
        }
    }

    #[test]
    fn names_are_taken_as_people_give_them() {
        let mut names = Names::default();
        for given in ["Potluck.Example:8443", "potluck.example.", "203.0.113.9:1", "[2001:db8::1]:80", "a b", "-x", ""]
        {
            names.add(given);
        }
        assert_eq!(names.dns, ["potluck.example"]);
        assert_eq!(names.ips, ["203.0.113.9".parse::<IpAddr>().unwrap(), "2001:db8::1".parse().unwrap()]);
    }

    #[test]
    fn top_level_domains_have_letters_only_or_are_encoded() {
        for domain in ["dev", "xn--p1ai"] {
            assert!(could_be_top_level(domain), "{domain}");
        }
        for name in ["pc-1", "kitchen2", "pc.local", "xn--mnchen-3ya.example"] {
            assert!(!could_be_top_level(name), "{name}");
        }
    }

    #[test]
    fn one_address_of_each_ipv6_network_is_shown() {
        let ips = ["192.168.1.5", "fd00::1", "fd00::2", "2001:db8::7"].map(|ip| ip.parse::<IpAddr>().unwrap());
        assert_eq!(urls(&ips, 80), ["https://192.168.1.5:80", "https://[fd00::1]:80", "https://[2001:db8::7]:80"]);
    }

    #[test]
    fn home_networks_come_first_and_ipv6_last() {
        let mut ips = ["2001:db8::7", "fd00::1", "203.0.113.9", "10.0.0.1", "192.168.1.5"]
            .map(|ip| ip.parse::<IpAddr>().unwrap());
        ips.sort_by_key(|ip| rank(*ip));
        assert_eq!(ips.map(|ip| ip.to_string()), ["192.168.1.5", "10.0.0.1", "203.0.113.9", "fd00::1", "2001:db8::7"]);
        for unreachable in ["127.0.0.1", "::1", "169.254.1.1", "fe80::1", "0.0.0.0", "::"] {
            assert!(!is_reachable(unreachable.parse().unwrap()), "{unreachable}");
        }
    }
}
