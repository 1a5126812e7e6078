//! The relay's own authority and the certificates that it signs: made, written, and read again.
//!
//! Whoever installs an authority believes everything it signs. So this one can vouch only for what is local (name constraints), only
//! for servers (extended key usage), and for no further authority.

use std::net::IpAddr;
use std::time::{Duration, UNIX_EPOCH};

use rcgen::{
    BasicConstraints, CertificateParams, CidrSubnet, DnType, ExtendedKeyUsagePurpose, GeneralSubtree, IsCa, Issuer,
    KeyPair, KeyUsagePurpose, NameConstraints, PublicKeyData, SanType,
};
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use x509_parser::extensions::{GeneralName, ParsedExtension};
use x509_parser::prelude::X509Certificate;

use super::decide::{
    AUTHORITY_DAYS, AuthorityFacts, BACKDATED_DAYS, DAY, LEAF_DAYS, LeafFacts, MAX_IPS, Permitted, Wanted,
};
use crate::net::names::{Names, could_be_top_level, network};

/// Names that no public domain has: this machine's, those of multicast DNS (RFC 6762), of home networks (RFC 8375) and of private
/// ones (ICANN), and `lan`, which many routers use.
const LOCAL_NAMES: [&str; 5] = ["localhost", "local", "home.arpa", "internal", "lan"];
/// Addresses that no public server has, with the length of the network's prefix: loopback, private, of one link, and of providers'
/// own networks, which some tunnels use.
const LOCAL_NETS: [(&str, u8); 9] = [
    ("127.0.0.0", 8),
    ("10.0.0.0", 8),
    ("172.16.0.0", 12),
    ("192.168.0.0", 16),
    ("169.254.0.0", 16),
    ("100.64.0.0", 10),
    ("::1", 128),
    ("fc00::", 7),
    ("fe80::", 10),
];
/// Most former addresses in a certificate, to which a laptop may return. Everybody who connects can read them.
const MAX_FORMER_IPS: usize = 8;

/// An authority with its key.
pub struct Authority {
    /// What it is and may do.
    pub facts: AuthorityFacts,
    /// Its certificate.
    pub certificate: CertificateDer<'static>,
    key: KeyPair,
}

/// A certificate with its key.
pub struct Leaf {
    /// What it is.
    pub facts: LeafFacts,
    /// The certificate.
    pub certificate: CertificateDer<'static>,
    key: KeyPair,
}

type Made<T> = Result<T, rcgen::Error>;

impl Authority {
    /// Makes one that may vouch for the wanted names, for what is local, and for what a former one could.
    pub fn make(now: u64, wanted: &Wanted, machine: &str, former: &Permitted) -> Made<Self> {
        let key = KeyPair::generate()?;
        let mut params = CertificateParams::default();
        params.distinguished_name = rcgen::DistinguishedName::new();
        // The key's digits tell two authorities of one machine apart in a list of a system.
        let id: String = params.key_identifier(&key).iter().take(3).map(|byte| format!("{byte:02x}")).collect();
        let machine: String = machine.chars().take(32).collect();
        params.distinguished_name.push(DnType::OrganizationName, "Potluck");
        params.distinguished_name.push(DnType::CommonName, format!("Potluck on {machine} ({id})"));
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        params.name_constraints =
            Some(NameConstraints { permitted_subtrees: subtrees(wanted, former), excluded_subtrees: Vec::new() });
        params.not_before = (UNIX_EPOCH + Duration::from_secs(now.saturating_sub(BACKDATED_DAYS * DAY))).into();
        params.not_after = (UNIX_EPOCH + Duration::from_secs(now + AUTHORITY_DAYS * DAY)).into();
        let certificate = params.self_signed(&key)?.der().clone();
        Self::of(certificate, key).ok_or(rcgen::Error::CouldNotParseCertificate)
    }

    /// Reads one that was written; `None` if it is not one.
    pub fn read(pem: &str) -> Option<Self> {
        let (certificate, key) = read(pem)?;
        Self::of(certificate, key)
    }

    fn of(certificate: CertificateDer<'static>, key: KeyPair) -> Option<Self> {
        let facts = {
            let parsed = parse(&certificate).filter(|parsed| has_key(parsed, &key) && parsed.is_ca())?;
            AuthorityFacts { begins: begin(&parsed), ends: end(&parsed), permitted: permitted(&parsed) }
        };
        Some(Self { facts, certificate, key })
    }

    /// Its key and its certificate, for a file.
    pub fn to_pem(&self) -> String {
        to_pem(&self.key, &self.certificate)
    }

    /// Signs a certificate for those of the wanted names for which it may vouch. It keeps a few former addresses, so that a laptop
    /// that returns to a network needs no other certificate.
    pub fn sign(&self, now: u64, wanted: &Wanted, former: Option<&LeafFacts>) -> Made<Leaf> {
        let key = KeyPair::generate()?;
        let mut names = self.facts.permitted.of(&wanted.asked);
        let found = self.facts.permitted.of(&wanted.found);
        found.dns.iter().for_each(|name| names.add(name));
        let former = former.map(|leaf| self.facts.permitted.of(&leaf.names).ips).unwrap_or_default();
        found.ips.iter().for_each(|ip| names.add_ip(*ip));
        names.ips.truncate(MAX_IPS);
        // The latest come first.
        let most = (names.ips.len() + MAX_FORMER_IPS).min(MAX_IPS);
        former.iter().for_each(|ip| names.add_ip(*ip));
        names.ips.truncate(most);
        let mut params = CertificateParams::new(names.dns)?;
        params.subject_alt_names.extend(names.ips.into_iter().map(SanType::IpAddress));
        params.distinguished_name = rcgen::DistinguishedName::new();
        params.distinguished_name.push(DnType::OrganizationName, "Potluck");
        params.distinguished_name.push(DnType::CommonName, "Potluck relay");
        params.is_ca = IsCa::ExplicitNoCa;
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        params.use_authority_key_identifier_extension = true;
        let begins = now.saturating_sub(BACKDATED_DAYS * DAY);
        let ends = (begins + LEAF_DAYS * DAY).min(self.facts.ends);
        params.not_before = (UNIX_EPOCH + Duration::from_secs(begins)).into();
        params.not_after = (UNIX_EPOCH + Duration::from_secs(ends)).into();
        let issuer = Issuer::from_ca_cert_der(&self.certificate, &self.key)?;
        let certificate = params.signed_by(&key, &issuer)?.der().clone();
        Leaf::of(certificate, key, self).ok_or(rcgen::Error::CouldNotParseCertificate)
    }
}

impl Leaf {
    /// Reads one that was written; `None` if it is not one.
    pub fn read(pem: &str, authority: &Authority) -> Option<Self> {
        let (certificate, key) = read(pem)?;
        Self::of(certificate, key, authority)
    }

    fn of(certificate: CertificateDer<'static>, key: KeyPair, authority: &Authority) -> Option<Self> {
        let facts = {
            let parsed = parse(&certificate).filter(|parsed| has_key(parsed, &key))?;
            let issuer = parse(&authority.certificate)?;
            LeafFacts {
                begins: begin(&parsed),
                ends: end(&parsed),
                names: names(&parsed),
                is_signed: parsed.issuer() == issuer.subject()
                    && parsed.verify_signature(Some(issuer.public_key())).is_ok(),
            }
        };
        Some(Self { facts, certificate, key })
    }

    /// Its key and its certificate, for a file.
    pub fn to_pem(&self) -> String {
        to_pem(&self.key, &self.certificate)
    }

    /// Its key.
    pub fn key(&self) -> PrivateKeyDer<'static> {
        PrivateKeyDer::Pkcs8(self.key.serialize_der().into())
    }
}

/// What the authority may vouch for. Each name covers all names below it.
fn subtrees(wanted: &Wanted, former: &Permitted) -> Vec<GeneralSubtree> {
    let is_harmless = |name: &&String| !could_be_top_level(name);
    let mut dns: Vec<String> = LOCAL_NAMES.map(str::to_owned).to_vec();
    dns.extend(wanted.asked.dns.iter().chain(wanted.found.dns.iter().filter(is_harmless)).chain(&former.dns).cloned());
    let mut nets: Vec<(IpAddr, u8)> =
        LOCAL_NETS.iter().filter_map(|(ip, bits)| Some((ip.parse().ok()?, *bits))).collect();
    nets.extend(wanted.asked.ips.iter().chain(&wanted.found.ips).map(|ip| match ip {
        IpAddr::V4(_) => (*ip, 32),
        // A machine changes its addresses within its network.
        IpAddr::V6(v6) if !v6.is_loopback() => (network(*v6).into(), 64),
        IpAddr::V6(_) => (*ip, 128),
    }));
    let mut subtrees: Vec<GeneralSubtree> = Vec::new();
    let names = dns.into_iter().map(GeneralSubtree::DnsName);
    let nets = nets.into_iter().map(|(ip, bits)| CidrSubnet::from_addr_prefix(ip, bits));
    let former = former.nets.iter().filter_map(|net| match net {
        (IpAddr::V4(net), IpAddr::V4(mask)) => Some(CidrSubnet::V4(net.octets(), mask.octets())),
        (IpAddr::V6(net), IpAddr::V6(mask)) => Some(CidrSubnet::V6(net.octets(), mask.octets())),
        _ => None,
    });
    for subtree in names.chain(nets.chain(former).map(GeneralSubtree::IpAddress)) {
        if !subtrees.contains(&subtree) {
            subtrees.push(subtree);
        }
    }
    subtrees
}

fn permitted(certificate: &X509Certificate<'_>) -> Permitted {
    let mut permitted = Permitted::default();
    let constraints = certificate.name_constraints().ok().flatten();
    let subtrees = constraints.and_then(|extension| extension.value.permitted_subtrees.as_ref());
    for subtree in subtrees.into_iter().flatten() {
        match &subtree.base {
            GeneralName::DNSName(name) => permitted.dns.push((*name).to_owned()),
            GeneralName::IPAddress(bytes) => {
                let (net, mask) = bytes.split_at(bytes.len() / 2);
                permitted.nets.extend(address(net).zip(address(mask)));
            }
            _ => {}
        }
    }
    permitted
}

fn names(certificate: &X509Certificate<'_>) -> Names {
    let mut names = Names::default();
    for extension in certificate.extensions() {
        let ParsedExtension::SubjectAlternativeName(list) = extension.parsed_extension() else { continue };
        for name in &list.general_names {
            match name {
                GeneralName::DNSName(name) => names.add(name),
                GeneralName::IPAddress(bytes) => address(bytes).into_iter().for_each(|ip| names.add_ip(ip)),
                _ => {}
            }
        }
    }
    names
}

fn address(bytes: &[u8]) -> Option<IpAddr> {
    let v4 = <[u8; 4]>::try_from(bytes).map(IpAddr::from);
    v4.or_else(|_| <[u8; 16]>::try_from(bytes).map(IpAddr::from)).ok()
}

fn parse<'a>(certificate: &'a CertificateDer<'_>) -> Option<X509Certificate<'a>> {
    x509_parser::parse_x509_certificate(certificate).ok().map(|(_, parsed)| parsed)
}

fn has_key(certificate: &X509Certificate<'_>, key: &KeyPair) -> bool {
    certificate.public_key().raw == key.subject_public_key_info()
}

fn begin(certificate: &X509Certificate<'_>) -> u64 {
    u64::try_from(certificate.validity().not_before.timestamp()).unwrap_or_default()
}

fn end(certificate: &X509Certificate<'_>) -> u64 {
    u64::try_from(certificate.validity().not_after.timestamp()).unwrap_or_default()
}

fn read(pem: &str) -> Option<(CertificateDer<'static>, KeyPair)> {
    let key = PrivateKeyDer::from_pem_slice(pem.as_bytes()).ok()?;
    let certificate = CertificateDer::from_pem_slice(pem.as_bytes()).ok()?;
    Some((certificate, KeyPair::try_from(&key).ok()?))
}

fn to_pem(key: &KeyPair, certificate: &CertificateDer<'_>) -> String {
    key.serialize_pem() + &certificate_pem(certificate)
}

/// A certificate as PEM.
pub fn certificate_pem(certificate: &CertificateDer<'_>) -> String {
    let text = data_encoding::BASE64.encode(certificate);
    let lines: Vec<&str> = text.as_bytes().chunks(64).filter_map(|line| std::str::from_utf8(line).ok()).collect();
    format!("-----BEGIN CERTIFICATE-----\n{}\n-----END CERTIFICATE-----\n", lines.join("\n"))
}

/// Whether a file is the certificate that relays signed themselves before they had an authority.
pub fn is_self_signed_of_old(pem: &[u8]) -> bool {
    let Ok(certificate) = CertificateDer::from_pem_slice(pem) else { return false };
    parse(&certificate).is_some_and(|parsed| {
        let is_ours =
            parsed.subject().iter_common_name().any(|name| name.as_str().is_ok_and(|name| name == "Potluck relay"));
        is_ours && parsed.subject() == parsed.issuer()
    })
}
