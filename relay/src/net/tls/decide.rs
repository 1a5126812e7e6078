//! When a certificate is renewed: a pure function of the time, of what is kept, and of the names that are wanted.

use std::fmt;
use std::net::IpAddr;

use crate::net::names::{Names, network};

/// Seconds of a day.
pub const DAY: u64 = 24 * 60 * 60;
/// How long a certificate is valid. Apple's limit for certificates of public authorities is 398 days.
pub const LEAF_DAYS: u64 = 397;
/// How long an authority is valid: every device has to install the next one by hand.
pub const AUTHORITY_DAYS: u64 = 3653;
/// How long before its end a certificate, or its authority, is replaced.
pub const MARGIN_DAYS: u64 = 60;
/// Most addresses in a certificate.
pub const MAX_IPS: usize = 64;
/// How long before it is made a certificate begins: the clocks of other devices may be slow.
pub const BACKDATED_DAYS: u64 = 2;

/// What an authority may vouch for: the name constraints in its certificate.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Permitted {
    /// Each of these names, and names below it.
    pub dns: Vec<String>,
    /// Addresses whose bits under the mask are these.
    pub nets: Vec<(IpAddr, IpAddr)>,
}

impl Permitted {
    /// Whether it may vouch for a name.
    pub fn has_dns(&self, name: &str) -> bool {
        let is_below = |base: &String| name.strip_suffix(base.as_str()).is_some_and(|rest| rest.ends_with('.'));
        self.dns.iter().any(|base| name == base || is_below(base))
    }

    /// Whether it may vouch for an address.
    pub fn has_ip(&self, ip: IpAddr) -> bool {
        self.nets.iter().any(|net| match (ip, net) {
            (IpAddr::V4(ip), (IpAddr::V4(net), IpAddr::V4(mask))) => {
                ip.to_bits() & mask.to_bits() == net.to_bits() & mask.to_bits()
            }
            (IpAddr::V6(ip), (IpAddr::V6(net), IpAddr::V6(mask))) => {
                ip.to_bits() & mask.to_bits() == net.to_bits() & mask.to_bits()
            }
            _ => false,
        })
    }

    /// Those of the names for which it may vouch.
    pub fn of(&self, names: &Names) -> Names {
        Names {
            dns: names.dns.iter().filter(|name| self.has_dns(name)).cloned().collect(),
            ips: names.ips.iter().filter(|ip| self.has_ip(**ip)).copied().collect(),
        }
    }
}

/// The names that a certificate should have.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wanted {
    /// Those that a person asked for, with `localhost`: an authority that may not vouch for them is replaced.
    pub asked: Names,
    /// Those that the machine has by itself: left out where the authority may not vouch for them.
    pub found: Names,
}

impl Wanted {
    /// At most as many addresses as a certificate can have: what the decision asks for must fit, or it would ask for ever.
    pub fn bounded(mut self) -> Self {
        self.asked.ips.truncate(MAX_IPS);
        self.found.ips.truncate(MAX_IPS - self.asked.ips.len());
        self
    }
}

/// An authority that is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuthorityFacts {
    /// Its beginning, in seconds since 1970.
    pub begins: u64,
    /// Its end.
    pub ends: u64,
    /// What it may vouch for.
    pub permitted: Permitted,
}

/// A certificate that is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeafFacts {
    /// Its beginning, in seconds since 1970.
    pub begins: u64,
    /// Its end.
    pub ends: u64,
    /// Its names.
    pub names: Names,
    /// Whether the authority that is kept signed it.
    pub is_signed: bool,
}

/// What to do with the certificates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// They stay.
    Keep,
    /// The same authority signs another certificate.
    NewLeaf(Reason),
    /// Another authority signs another certificate: devices have to install it again.
    NewAuthority(Reason),
}

/// Why something is made anew.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reason {
    /// There is none that can be used.
    Missing,
    /// It ends soon, or has ended.
    Ends,
    /// The clock says that it has not begun.
    NotBegun,
    /// It does not have this name or address.
    Lacks(String),
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing => f.write_str("there was none"),
            Self::Ends => f.write_str("the last one ends soon"),
            Self::NotBegun => f.write_str("the last one is not valid yet, so the clock was set back"),
            Self::Lacks(name) => write!(f, "the last one lacks {name}"),
        }
    }
}

/// Decides at `now`, in seconds since 1970.
pub fn decide(now: u64, wanted: &Wanted, authority: Option<&AuthorityFacts>, leaf: Option<&LeafFacts>) -> Decision {
    let ends_soon = |ends: u64| ends < now + MARGIN_DAYS * DAY;
    let Some(authority) = authority else { return Decision::NewAuthority(Reason::Missing) };
    if ends_soon(authority.ends) {
        return Decision::NewAuthority(Reason::Ends);
    }
    if authority.begins > now {
        return Decision::NewAuthority(Reason::NotBegun);
    }
    if let Some(name) = lacking(&wanted.asked, &authority.permitted.of(&wanted.asked)) {
        return Decision::NewAuthority(Reason::Lacks(name));
    }
    let Some(leaf) = leaf.filter(|leaf| leaf.is_signed) else { return Decision::NewLeaf(Reason::Missing) };
    if ends_soon(leaf.ends) {
        return Decision::NewLeaf(Reason::Ends);
    }
    if leaf.begins > now {
        return Decision::NewLeaf(Reason::NotBegun);
    }
    let found = || lacking(&but_one_of_a_network(authority.permitted.of(&wanted.found), &leaf.names), &leaf.names);
    match lacking(&wanted.asked, &leaf.names).or_else(found) {
        Some(name) => Decision::NewLeaf(Reason::Lacks(name)),
        None => Decision::Keep,
    }
}

/// The first of the wanted names that is missing.
fn lacking(wanted: &Names, have: &Names) -> Option<String> {
    let name = wanted.dns.iter().find(|name| !have.dns.contains(name)).cloned();
    let ip = || wanted.ips.iter().find(|ip| !have.ips.contains(ip)).map(IpAddr::to_string);
    name.or_else(ip)
}

/// Without the IPv6 addresses in whose network the certificate names another one that the machine has: machines change them daily,
/// and each new certificate makes devices warn that have not installed the authority.
fn but_one_of_a_network(mut found: Names, have: &Names) -> Names {
    let network_of = |ip: &IpAddr| if let IpAddr::V6(ip) = ip { Some(network(*ip)) } else { None };
    let named: Vec<_> = found.ips.iter().filter(|ip| have.ips.contains(ip)).filter_map(network_of).collect();
    found.ips.retain(|ip| have.ips.contains(ip) || network_of(ip).is_none_or(|network| !named.contains(&network)));
    found
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use super::*;

    const NOW: u64 = 1_800_000_000;

    fn names(list: &[&str]) -> Names {
        let mut names = Names::default();
        list.iter().for_each(|name| names.add(name));
        names
    }

    fn wanted(found: &[&str]) -> Wanted {
        Wanted { asked: names(&["localhost"]), found: names(found) }
    }

    fn authority() -> AuthorityFacts {
        let masked = |ip: &str, mask: &str| (ip.parse().unwrap(), mask.parse().unwrap());
        let permitted = Permitted {
            dns: vec!["localhost".into(), "local".into()],
            nets: vec![masked("192.168.0.0", "255.255.0.0"), masked("fd00::", "ff00::")],
        };
        AuthorityFacts { begins: NOW - BACKDATED_DAYS * DAY, ends: NOW + AUTHORITY_DAYS * DAY, permitted }
    }

    fn leaf(list: &[&str]) -> LeafFacts {
        LeafFacts { begins: NOW, ends: NOW + LEAF_DAYS * DAY, names: names(list), is_signed: true }
    }

    const FOUND: [&str; 3] = ["pc.local", "192.168.1.5", "fd00::1"];

    fn at(now: u64, wanted: &Wanted, leaf: &LeafFacts) -> Decision {
        decide(now, wanted, Some(&authority()), Some(leaf))
    }

    #[test]
    fn both_are_made_once_and_kept() {
        let (wanted, leaf) = (wanted(&FOUND), leaf(&["localhost", "pc.local", "192.168.1.5", "fd00::1"]));
        assert_eq!(decide(NOW, &wanted, None, Some(&leaf)), Decision::NewAuthority(Reason::Missing));
        assert_eq!(decide(NOW, &wanted, Some(&authority()), None), Decision::NewLeaf(Reason::Missing));
        let strange = LeafFacts { is_signed: false, ..leaf.clone() };
        assert_eq!(at(NOW, &wanted, &strange), Decision::NewLeaf(Reason::Missing));
        assert_eq!(at(NOW, &wanted, &leaf), Decision::Keep);
    }

    /// The clock is moved day by day over eleven years: at every moment both are valid.
    #[test]
    fn at_no_time_is_anything_out_of_date() {
        let wanted = wanted(&FOUND);
        let (mut authority, mut leaf) = (authority(), leaf(&["localhost", "pc.local", "192.168.1.5", "fd00::1"]));
        let (mut leaves, mut authorities) = (0, 0);
        for now in (0..11 * 365).map(|day| NOW + day * DAY) {
            let decision = decide(now, &wanted, Some(&authority), Some(&leaf));
            if matches!(decision, Decision::NewAuthority(_)) {
                (authority.begins, authority.ends) = (now, now + AUTHORITY_DAYS * DAY);
                authorities += 1;
            }
            if decision != Decision::Keep {
                (leaf.begins, leaf.ends) = (now, (now + LEAF_DAYS * DAY).min(authority.ends));
                leaves += 1;
            }
            assert!(leaf.ends > now + (MARGIN_DAYS - 1) * DAY, "day {}", (now - NOW) / DAY);
            assert!(authority.ends >= leaf.ends);
        }
        assert_eq!(authorities, 1, "devices install it once in ten years");
        assert!((11..=13).contains(&leaves), "{leaves} certificates");
    }

    #[test]
    fn a_name_or_address_that_is_added_renews_and_one_that_goes_does_not() {
        let leaf = leaf(&["localhost", "192.168.1.5"]);
        assert_eq!(at(NOW, &wanted(&["192.168.1.5"]), &leaf), Decision::Keep);
        assert_eq!(at(NOW, &wanted(&[]), &leaf), Decision::Keep, "a cable that is pulled out");
        assert_eq!(at(NOW, &wanted(&["192.168.1.6"]), &leaf), Decision::NewLeaf(Reason::Lacks("192.168.1.6".into())));
        assert_eq!(at(NOW, &wanted(&["pc.local"]), &leaf), Decision::NewLeaf(Reason::Lacks("pc.local".into())));
    }

    #[test]
    fn what_the_authority_may_not_vouch_for_is_left_out_unless_a_person_asked_for_it() {
        let leaf = leaf(&["localhost"]);
        assert_eq!(at(NOW, &wanted(&["203.0.113.9", "2001:db8::1", "pc"]), &leaf), Decision::Keep);
        let asked = Wanted { asked: names(&["localhost", "potluck.example"]), ..wanted(&[]) };
        assert_eq!(at(NOW, &asked, &leaf), Decision::NewAuthority(Reason::Lacks("potluck.example".into())));
    }

    #[test]
    fn an_ipv6_address_that_changes_within_its_network_renews_nothing_while_a_named_one_is_there() {
        let leaf = leaf(&["localhost", "fd00::1"]);
        assert_eq!(at(NOW, &wanted(&["fd00::1", "fd00::2"]), &leaf), Decision::Keep);
        assert_eq!(at(NOW, &wanted(&["fd00::2"]), &leaf), Decision::NewLeaf(Reason::Lacks("fd00::2".into())));
        let other = wanted(&["fd00::1", "fd00:0:0:1::1"]);
        assert_eq!(at(NOW, &other, &leaf), Decision::NewLeaf(Reason::Lacks("fd00:0:0:1::1".into())));
        let asked = Wanted { asked: names(&["localhost", "fd00::1", "fd00::2"]), ..wanted(&[]) };
        let lacks = Decision::NewLeaf(Reason::Lacks("fd00::2".into()));
        assert_eq!(at(NOW, &asked, &leaf), lacks, "a person asked for both");
    }

    #[test]
    fn a_clock_that_is_set_back_renews_too() {
        let leaf = leaf(&["localhost"]);
        let authority = AuthorityFacts { begins: NOW - 60 * DAY, ..authority() };
        let at = |now| decide(now, &wanted(&[]), Some(&authority), Some(&leaf));
        assert_eq!(at(NOW - 30 * DAY), Decision::NewLeaf(Reason::NotBegun));
        assert_eq!(at(NOW - 61 * DAY), Decision::NewAuthority(Reason::NotBegun));
    }

    #[test]
    fn permitted_names_are_whole_labels() {
        let permitted = authority().permitted;
        assert!(permitted.has_dns("pc.local") && permitted.has_dns("a.b.local") && permitted.has_dns("localhost"));
        assert!(!permitted.has_dns("notlocal") && !permitted.has_dns("local.example") && !permitted.has_dns("pc"));
        assert!(permitted.has_ip("192.168.7.7".parse().unwrap()) && permitted.has_ip("fdff::1".parse().unwrap()));
        assert!(!permitted.has_ip("192.169.0.1".parse().unwrap()) && !permitted.has_ip("fe00::1".parse().unwrap()));
    }
}
