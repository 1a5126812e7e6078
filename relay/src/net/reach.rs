//! Where this relay is reached now, and a certificate that names it.

use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{PoisonError, RwLock};

use potluck_relay_api::http::Addresses;
use potluck_relay_api::path;
use tracing::warn;

use super::names::{Machine, urls};
use super::tls::Keeper;
use super::tls::decide::Wanted;

/// The names that the certificate of a relay should have: what a person asked for, and what the machine has by itself.
pub fn wanted(hosts: &[String], machine: &Machine, addresses: &[IpAddr]) -> Wanted {
    let mut wanted = Wanted::default();
    let local = ["localhost", "127.0.0.1", "[::1]"];
    local.into_iter().chain(hosts.iter().map(String::as_str)).for_each(|name| wanted.asked.add(name));
    machine.names.iter().for_each(|name| wanted.found.add(name));
    addresses.iter().for_each(|ip| wanted.found.add_ip(*ip));
    wanted
}

/// Where this and other devices reach the relay.
pub struct Reach {
    machine: Machine,
    hosts: Vec<String>,
    port: u16,
    local_only: bool,
    /// SHA-256 of the owner's certificate; empty without one.
    given: String,
    keeper: Option<Keeper>,
    addresses: RwLock<Vec<IpAddr>>,
    is_failing: AtomicBool,
}

impl Reach {
    /// A relay on this port. `given` is the fingerprint of a certificate from the owner.
    pub fn new(
        machine: Machine,
        hosts: Vec<String>,
        port: u16,
        local_only: bool,
        given: String,
        keeper: Option<Keeper>,
    ) -> Self {
        let addresses = RwLock::new((machine.addresses)());
        Self { machine, hosts, port, local_only, given, keeper, addresses, is_failing: AtomicBool::new(false) }
    }

    /// For `GET /addresses`.
    pub fn addresses(&self) -> Addresses {
        let addresses = self.addresses.read().unwrap_or_else(PoisonError::into_inner);
        let has_tls = self.keeper.is_some() || !self.given.is_empty();
        let urls = if has_tls { urls(&addresses, self.port) } else { Vec::new() };
        let help = urls.first().filter(|_| self.keeper.is_some());
        let help = help.and_then(|url| url.strip_prefix("https://"));
        Addresses {
            help: help.map(|host| format!("http://{host}{}", path::CERTIFICATE)).unwrap_or_default(),
            urls,
            local_only: self.local_only,
            self_signed: self.keeper.is_some(),
            fingerprint: self.keeper.as_ref().map_or_else(|| self.given.clone(), Keeper::fingerprint),
        }
    }

    /// The relay's own authority.
    pub fn keeper(&self) -> Option<&Keeper> {
        self.keeper.as_ref()
    }

    /// Looks at the machine's addresses again, and renews the certificate if need be at `now`. Not for an async thread.
    pub fn refresh(&self, now: u64) {
        let addresses = (self.machine.addresses)();
        let wanted = wanted(&self.hosts, &self.machine, &addresses);
        *self.addresses.write().unwrap_or_else(PoisonError::into_inner) = addresses;
        match self.keeper.as_ref().map(|keeper| keeper.check(now, &wanted)) {
            Some(Ok(_)) => self.is_failing.store(false, Ordering::Relaxed),
            // Once is enough: it is tried again and again.
            Some(Err(error)) if !self.is_failing.swap(true, Ordering::Relaxed) => {
                warn!("the certificate is not renewed: {error}");
            }
            Some(Err(_)) | None => {}
        }
    }
}

/// What a person calls this machine: its label, or what it is.
pub fn machine_name(machine: &Machine) -> &str {
    machine.names.first().map_or("this machine", String::as_str)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use super::*;
    use crate::net::names::Names;

    #[test]
    fn what_a_person_asked_for_and_what_the_machine_has_are_told_apart() {
        let machine = Machine { names: vec!["pc-1".into(), "pc-1.local".into()], ..Machine::default() };
        let ip: IpAddr = "192.168.1.5".parse().unwrap();
        let wanted = wanted(&["potluck.example:8443".into()], &machine, &[ip]);
        assert_eq!(wanted.asked.dns, ["localhost", "potluck.example"]);
        assert_eq!(wanted.found, Names { dns: vec!["pc-1".into(), "pc-1.local".into()], ips: vec![ip] });
    }
}
