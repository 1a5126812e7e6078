//! Where this relay is reached now, and a certificate that names it.

use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{PoisonError, RwLock};

use potluck_relay_api::http::Addresses;
use potluck_relay_api::path;
use tracing::warn;

use super::names::{Machine, Names, could_be_top_level, urls};
use super::tls::decide::Wanted;
use super::tls::{Certificate, Keeper};
use crate::error::StartError;

/// The names that the certificate of a relay should have: what a person asked for, and what the machine has by itself.
pub fn wanted(hosts: &[String], machine: &Machine, addresses: &[IpAddr]) -> Wanted {
    let mut wanted = Wanted::default();
    let local = ["localhost", "127.0.0.1", "[::1]"];
    local.into_iter().for_each(|name| wanted.asked.add(name));
    let mut given = Names::default();
    hosts.iter().for_each(|name| given.add(name));
    given.ips.iter().for_each(|ip| wanted.asked.add_ip(*ip));
    for name in given.dns {
        // An authority that vouches for `dev` vouches for all names below it.
        let is_asked = !could_be_top_level(&name) || machine.names.contains(&name);
        if is_asked { wanted.asked.add(&name) } else { wanted.found.add(&name) }
    }
    machine.names.iter().for_each(|name| wanted.found.add(name));
    addresses.iter().for_each(|ip| wanted.found.add_ip(*ip));
    wanted.bounded()
}

/// Where this and other devices reach the relay.
pub struct Reach {
    machine: Machine,
    hosts: Vec<String>,
    port: u16,
    local_only: bool,
    certificate: Option<Certificate>,
    addresses: RwLock<Vec<IpAddr>>,
    is_failing: AtomicBool,
}

impl Reach {
    /// A relay on this port; without a certificate it serves plain HTTP only.
    pub fn new(
        machine: Machine,
        hosts: Vec<String>,
        port: u16,
        local_only: bool,
        certificate: Option<Certificate>,
    ) -> Self {
        let addresses = RwLock::new((machine.addresses)());
        Self { machine, hosts, port, local_only, certificate, addresses, is_failing: AtomicBool::new(false) }
    }

    /// For `GET /addresses`.
    pub fn addresses(&self) -> Addresses {
        let addresses = self.shown();
        let urls = if self.certificate.is_some() { urls(&addresses, self.port) } else { Vec::new() };
        let help = urls.first().filter(|_| self.keeper().is_some());
        let help = help.and_then(|url| url.strip_prefix("https://"));
        Addresses {
            help: help.map(|host| format!("http://{host}{}", path::CERTIFICATE)).unwrap_or_default(),
            urls,
            local_only: self.local_only,
            self_signed: self.keeper().is_some(),
            fingerprint: self.certificate.as_ref().map(Certificate::fingerprint).unwrap_or_default(),
        }
    }

    /// The machine's addresses that its certificate names; all of them if it names none, or comes from the owner.
    fn shown(&self) -> Vec<IpAddr> {
        let addresses = self.addresses.read().unwrap_or_else(PoisonError::into_inner);
        let named = self.keeper().map(Keeper::names).unwrap_or_default();
        let shown: Vec<IpAddr> = addresses.iter().filter(|ip| named.ips.contains(ip)).copied().collect();
        if shown.is_empty() { addresses.clone() } else { shown }
    }

    /// The relay's own authority.
    pub fn keeper(&self) -> Option<&Keeper> {
        match &self.certificate {
            Some(Certificate::Own(keeper)) => Some(keeper),
            Some(Certificate::Given(_)) | None => None,
        }
    }

    /// Reads the owner's certificate again; false if there is none. Not for an async thread.
    ///
    /// # Errors
    /// It cannot be used: the one before stays.
    pub fn reload(&self) -> Result<bool, StartError> {
        match &self.certificate {
            Some(Certificate::Given(given)) => given.reload().map(|()| true),
            Some(Certificate::Own(_)) | None => Ok(false),
        }
    }

    /// Looks at the machine's addresses again, and renews the certificate if need be at `now`. Not for an async thread.
    pub fn refresh(&self, now: u64) {
        let addresses = (self.machine.addresses)();
        let wanted = wanted(&self.hosts, &self.machine, &addresses);
        let checked = self.keeper().map(|keeper| keeper.check(now, &wanted));
        *self.addresses.write().unwrap_or_else(PoisonError::into_inner) = addresses;
        match checked {
            Some(Ok(_)) => self.is_failing.store(false, Ordering::Relaxed),
            // Once is enough: it is tried again and again.
            Some(Err(error)) if !self.is_failing.swap(true, Ordering::Relaxed) => {
                warn!("could not renew the certificate, or not store it: {error}");
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
    use std::sync::{Arc, Mutex};

    use super::*;
    use crate::net::tls::Identity;

    #[test]
    fn what_a_person_asked_for_and_what_the_machine_has_are_told_apart() {
        let machine = Machine { names: vec!["pc-1".into(), "pc-1.local".into()], ..Machine::default() };
        let ip: IpAddr = "192.168.1.5".parse().unwrap();
        let wanted = wanted(&["potluck.example:8443".into()], &machine, &[ip]);
        assert_eq!(wanted.asked.dns, ["localhost", "potluck.example"]);
        assert_eq!(wanted.found, Names { dns: vec!["pc-1".into(), "pc-1.local".into()], ips: vec![ip] });
    }

    #[test]
    fn a_name_that_could_be_a_top_level_domain_is_not_asked_for_unless_it_is_the_machines_own() {
        let machine = Machine { names: vec!["kitchen".into()], ..Machine::default() };
        let wanted = wanted(&["dev".into(), "xn--p1ai".into(), "kitchen".into(), "pc-1".into()], &machine, &[]);
        assert_eq!(wanted.asked.dns, ["localhost", "kitchen", "pc-1"]);
        assert_eq!(wanted.found.dns, ["dev", "xn--p1ai", "kitchen"]);
    }

    #[test]
    fn the_addresses_that_are_shown_are_those_that_the_certificate_names() {
        let folder = std::env::temp_dir().join(format!("potluck-reach-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        let now = Arc::new(Mutex::new(vec!["192.168.1.5", "fd00::5"]));
        let seen = now.clone();
        let list = move || seen.lock().unwrap().iter().map(|ip| ip.parse().unwrap()).collect::<Vec<IpAddr>>();
        let machine = Machine { names: Vec::new(), addresses: Arc::new(list) };
        let wanted = wanted(&[], &machine, &(machine.addresses)());
        let own = Identity::Own { folder: folder.clone() };
        let certificate = own.load(1_800_000_000, &wanted, "pc").unwrap().certificate;
        let reach = Reach::new(machine, Vec::new(), 1, false, Some(certificate));
        // A lower address of the same network, which causes no other certificate, and a public one, for which the authority may not
        // vouch.
        *now.lock().unwrap() = vec!["192.168.1.5", "203.0.113.9", "fd00::1", "fd00::5"];
        reach.refresh(1_800_000_000);
        assert_eq!(reach.addresses().urls, ["https://192.168.1.5:1", "https://[fd00::5]:1"]);
        *now.lock().unwrap() = vec!["203.0.113.9"];
        reach.refresh(1_800_000_000);
        assert_eq!(reach.addresses().urls, ["https://203.0.113.9:1"], "rather a warning than no way");
        std::fs::remove_dir_all(folder).unwrap();
    }
}
