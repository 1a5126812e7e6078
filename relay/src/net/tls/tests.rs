#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::fs;
use std::time::Duration;

use rcgen::{CertificateParams, DnType, KeyPair};
use tokio_rustls::rustls::client::WebPkiServerVerifier;
use tokio_rustls::rustls::client::danger::ServerCertVerifier;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use tokio_rustls::rustls::{CertificateError, Error, RootCertStore};

use super::certificates::Authority;
use super::decide::{AUTHORITY_DAYS, DAY, Decision, LEAF_DAYS, MAX_IPS, Permitted, Reason};
use super::*;
use crate::net::names::Names;

const NOW: u64 = 1_800_000_000;
const FOUND: [&str; 5] = ["pc-1", "pc-1.local", "192.168.1.5", "fd00::5", "2001:db8::5"];

fn folder(test: &str) -> PathBuf {
    let path = std::env::temp_dir().join(format!("potluck-tls-{test}-{}", std::process::id()));
    let _ = fs::remove_dir_all(&path);
    path
}

fn names(list: &[&str]) -> Names {
    let mut names = Names::default();
    list.iter().for_each(|name| names.add(name));
    names
}

fn wanted(hosts: &[&str], found: &[&str]) -> Wanted {
    let asked = names(&[&["localhost", "127.0.0.1", "[::1]"], hosts].concat());
    Wanted { asked, found: names(found) }
}

fn open(folder: &Path, now: u64, wanted: &Wanted) -> Keeper {
    Keeper::open(folder.to_owned(), now, wanted, "pc-1".into()).unwrap()
}

fn served(keeper: &Keeper) -> Arc<CertifiedKey> {
    keeper.current.0.read().unwrap().clone()
}

/// What a client says that trusts the authority.
fn judge(authority: &CertificateDer<'static>, leaf: &CertificateDer<'_>, name: &str, now: u64) -> Result<(), Error> {
    let mut roots = RootCertStore::empty();
    roots.add(authority.clone()).unwrap();
    let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::new(default_provider()));
    let now = UnixTime::since_unix_epoch(Duration::from_secs(now));
    let name = ServerName::try_from(name.to_owned()).unwrap();
    verifier.build().unwrap().verify_server_cert(leaf, &[], &name, &[], now).map(drop)
}

fn judged(keeper: &Keeper, name: &str, now: u64) -> Result<(), Error> {
    judge(&keeper.authority().certificate, &served(keeper).cert[0], name, now)
}

#[test]
fn the_certificate_names_everything_and_is_kept_with_its_authority() {
    let folder = folder("kept");
    let wanted = wanted(&["potluck.example:8443", "203.0.113.9"], &FOUND);
    let keeper = open(&folder, NOW, &wanted);
    for name in [
        "localhost",
        "127.0.0.1",
        "::1",
        "potluck.example",
        "203.0.113.9",
        "pc-1",
        "pc-1.local",
        "192.168.1.5",
        "fd00::5",
        "2001:db8::5",
    ] {
        judged(&keeper, name, NOW).unwrap_or_else(|error| panic!("{name}: {error}"));
    }
    assert!(judged(&keeper, "other.example", NOW).is_err(), "another name");
    let facts = keeper.kept().leaf.facts.clone();
    assert_eq!(facts.ends - facts.begins, LEAF_DAYS * DAY, "browsers take no certificate that is valid for longer");

    let again = open(&folder, NOW + DAY, &wanted);
    assert_eq!(again.fingerprint(), keeper.fingerprint());
    assert_eq!(served(&again).cert, served(&keeper).cert);
    #[cfg(unix)]
    for file in [AUTHORITY_FILE, LEAF_FILE] {
        use std::os::unix::fs::PermissionsExt;
        let mode = fs::metadata(folder.join(file)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{file} has a private key");
    }
    fs::remove_dir_all(folder).unwrap();
}

/// The clock is moved, and the relay goes on.
#[test]
fn it_is_renewed_before_it_ends_while_the_authority_stays() {
    let folder = folder("clock");
    let wanted = wanted(&[], &FOUND);
    let keeper = open(&folder, NOW, &wanted);
    let (authority, first) = (keeper.fingerprint(), served(&keeper));
    assert_eq!(keeper.check(NOW + 300 * DAY, &wanted).unwrap(), Decision::Keep);
    assert!(Arc::ptr_eq(&first, &served(&keeper)));
    let late = NOW + 340 * DAY;
    assert_eq!(keeper.check(late, &wanted).unwrap(), Decision::NewLeaf(Reason::Ends));
    assert_eq!(keeper.fingerprint(), authority, "no device has to install anything again");
    judged(&keeper, "pc-1.local", late).unwrap();
    let after = NOW + 400 * DAY;
    judged(&keeper, "pc-1.local", after).unwrap();
    let old = judge(&keeper.authority().certificate, &first.cert[0], "pc-1.local", after).unwrap_err();
    assert!(matches!(old, Error::InvalidCertificate(CertificateError::ExpiredContext { .. })), "{old}");
    assert_eq!(keeper.check(late, &wanted).unwrap(), Decision::Keep, "once is enough");
    assert_eq!(served(&open(&folder, late, &wanted)).cert, served(&keeper).cert, "it was written");

    let next = NOW + AUTHORITY_DAYS * DAY;
    assert_eq!(keeper.check(next, &wanted).unwrap(), Decision::NewAuthority(Reason::Ends));
    judged(&keeper, "pc-1.local", next).unwrap();
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn a_new_address_is_named_at_once_and_a_former_one_stays() {
    let folder = folder("moved");
    let keeper = open(&folder, NOW, &wanted(&[], &["192.168.1.5"]));
    let moved = wanted(&[], &["10.0.0.7"]);
    assert_eq!(keeper.check(NOW, &moved).unwrap(), Decision::NewLeaf(Reason::Lacks("10.0.0.7".into())));
    for ip in ["10.0.0.7", "192.168.1.5"] {
        judged(&keeper, ip, NOW).unwrap();
    }
    let back = wanted(&[], &["192.168.1.5"]);
    assert_eq!(keeper.check(NOW, &back).unwrap(), Decision::Keep, "a laptop that comes home causes no new warning");
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn a_name_that_a_person_adds_needs_another_authority_and_a_public_address_that_appears_does_not() {
    let folder = folder("hosts");
    let first = open(&folder, NOW, &wanted(&[], &FOUND));
    let public = wanted(&[], &["198.51.100.7"]);
    assert_eq!(first.check(NOW, &public).unwrap(), Decision::Keep);
    let second = open(&folder, NOW, &wanted(&["potluck.example"], &FOUND));
    assert_ne!(first.fingerprint(), second.fingerprint());
    judged(&second, "potluck.example", NOW).unwrap();
    fs::remove_dir_all(folder).unwrap();
}

/// A clock that jumps cost every device its trust, for good.
#[test]
fn an_authority_outlives_a_clock_that_is_wrong_for_a_while() {
    let wanted = wanted(&[], &FOUND);
    for wrong in [NOW + 12 * 366 * DAY, DAY] {
        let folder = folder("jump");
        let keeper = open(&folder, NOW, &wanted);
        let right = keeper.fingerprint();
        let decision = keeper.check(wrong, &wanted).unwrap();
        assert!(matches!(decision, Decision::NewAuthority(Reason::Ends | Reason::NotBegun)), "{decision:?}");
        let other = keeper.fingerprint();
        assert_ne!(other, right);
        judged(&keeper, "pc-1.local", wrong).unwrap();
        assert!(matches!(keeper.check(NOW, &wanted).unwrap(), Decision::NewAuthority(_)));
        assert_eq!(keeper.fingerprint(), right, "devices have installed this one");
        judged(&keeper, "pc-1.local", NOW).unwrap();
        // Again, now while it starts.
        assert_eq!(open(&folder, wrong, &wanted).fingerprint(), other);
        assert_eq!(open(&folder, NOW, &wanted).fingerprint(), right);
        assert_eq!(open(&folder, NOW, &wanted).check(NOW, &wanted).unwrap(), Decision::Keep);

        fs::remove_file(folder.join(AUTHORITY_FILE)).unwrap();
        let fresh = open(&folder, NOW, &wanted).fingerprint();
        assert!(fresh != right && fresh != other, "who deletes it gets another one");
        assert!(REPLACED_FILES.iter().all(|name| !folder.join(name).exists()), "and no file with an old key stays");
        fs::remove_dir_all(folder).unwrap();
    }
}

#[test]
fn hosts_that_are_asked_for_in_turn_need_one_new_authority_and_not_one_each_time() {
    let folder = folder("turns");
    open(&folder, NOW, &wanted(&["a.example", "203.0.113.9", "2001:db8::9"], &FOUND));
    let both = open(&folder, NOW, &wanted(&["b.example"], &FOUND)).fingerprint();
    for hosts in [["a.example"], ["b.example"], ["203.0.113.9"], ["2001:db8::9"]] {
        let keeper = open(&folder, NOW, &wanted(&hosts, &FOUND));
        assert_eq!(keeper.fingerprint(), both, "{hosts:?}");
        judged(&keeper, hosts[0], NOW).unwrap();
    }
    fs::remove_dir_all(folder).unwrap();
}

/// It was renewed every 15 seconds.
#[test]
fn more_addresses_than_a_certificate_can_have_renew_it_once() {
    let folder = folder("many");
    let machine = crate::net::names::Machine::default();
    let addresses: Vec<_> = (0..100).map(|i| std::net::Ipv4Addr::new(10, 0, 0, i).into()).collect();
    let hosts: Vec<String> = (0..10).map(|i| format!("10.1.0.{i}")).collect();
    let wanted = crate::net::wanted(&hosts, &machine, &addresses);
    let keeper = open(&folder, NOW, &wanted);
    assert_eq!(keeper.check(NOW, &wanted).unwrap(), Decision::Keep);
    assert_eq!(keeper.names().ips.len(), MAX_IPS);
    judged(&keeper, "10.1.0.9", NOW).unwrap();
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn few_former_addresses_stay_and_they_are_the_latest() {
    let folder = folder("former");
    let keeper = open(&folder, NOW, &wanted(&[], &[]));
    for i in 0..20 {
        keeper.check(NOW, &wanted(&[], &[&format!("10.0.0.{i}")])).unwrap();
    }
    for i in 0..20 {
        let is_named = judged(&keeper, &format!("10.0.0.{i}"), NOW).is_ok();
        assert_eq!(is_named, i >= 11, "10.0.0.{i}");
    }
    fs::remove_dir_all(folder).unwrap();
}

/// A full disk: the folder's place is taken by a file.
#[test]
fn a_certificate_that_cannot_be_written_is_used_and_written_later() {
    let folder = folder("full");
    let keeper = open(&folder, NOW, &wanted(&[], &FOUND));
    let (authority, aside) = (keeper.fingerprint(), folder.with_extension("aside"));
    fs::rename(&folder, &aside).unwrap();
    fs::write(&folder, "").unwrap();
    let moved = wanted(&[], &["10.0.0.7"]);
    assert!(keeper.check(NOW, &moved).is_err());
    judged(&keeper, "10.0.0.7", NOW).unwrap();
    let used = served(&keeper);
    assert!(keeper.check(NOW, &moved).is_err());
    assert_eq!(served(&keeper).cert, used.cert, "it is not made again and again");
    let late = NOW + AUTHORITY_DAYS * DAY;
    assert!(keeper.check(late, &moved).is_err());
    assert_eq!(keeper.fingerprint(), authority, "a new authority that would be lost is not given out");
    fs::remove_file(&folder).unwrap();
    fs::rename(&aside, &folder).unwrap();
    assert_eq!(keeper.check(late, &moved).unwrap(), Decision::NewAuthority(Reason::Ends));
    assert_eq!(keeper.check(late, &moved).unwrap(), Decision::Keep);
    assert_eq!(open(&folder, late, &moved).fingerprint(), keeper.fingerprint(), "it was written");
    fs::remove_dir_all(folder).unwrap();
}

#[cfg(unix)]
#[test]
fn a_key_that_others_could_read_is_taken_from_them() {
    use std::os::unix::fs::PermissionsExt;
    let folder = folder("mode");
    open(&folder, NOW, &wanted(&[], &[]));
    let path = folder.join(AUTHORITY_FILE);
    fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
    open(&folder, NOW, &wanted(&[], &[]));
    assert_eq!(fs::metadata(path).unwrap().permissions().mode() & 0o777, 0o600);
    fs::remove_dir_all(folder).unwrap();
}

/// Whoever steals the authority's key cannot use it against other sites.
#[test]
fn clients_refuse_what_the_authority_may_not_vouch_for() {
    let made = Authority::make(
        NOW,
        &wanted(&["potluck.example"], &["dev", "pc-1", "192.168.1.5"]),
        "dev",
        &Permitted::default(),
    )
    .unwrap();
    assert!(!made.facts.permitted.has_dns("bank.dev"), "a machine that is called like a top-level domain");
    let mut thief = Authority::read(&made.to_pem()).unwrap();
    thief.facts.permitted.dns.extend(["bank.example".into(), "bank.dev".into()]);
    thief.facts.permitted.nets.push(("1.1.1.1".parse().unwrap(), "255.255.255.255".parse().unwrap()));
    for name in ["bank.example", "bank.dev", "1.1.1.1"] {
        let leaf = thief.sign(NOW, &Wanted { asked: names(&[name]), found: Names::default() }, None).unwrap();
        assert_eq!(leaf.facts.names, names(&[name]));
        assert!(judge(&made.certificate, &leaf.certificate, name, NOW).is_err(), "{name}");
    }
    let leaf = thief.sign(NOW, &wanted(&["www.potluck.example"], &[]), None).unwrap();
    judge(&made.certificate, &leaf.certificate, "www.potluck.example", NOW).unwrap();
}

#[test]
fn a_self_signed_certificate_of_old_is_replaced_and_another_file_is_not_touched() {
    let folder = folder("old");
    fs::create_dir_all(&folder).unwrap();
    let old = |name: &str| {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
        params.distinguished_name.push(DnType::CommonName, name);
        let [certificate, private] = OLD_FILES.map(|file| folder.join(file));
        fs::write(certificate, params.self_signed(&key).unwrap().pem()).unwrap();
        fs::write(private, key.serialize_pem()).unwrap();
    };
    let left = || OLD_FILES.map(|file| folder.join(file).exists());
    old("somebody else");
    open(&folder, NOW, &wanted(&[], &[]));
    assert_eq!(left(), [true, true]);
    fs::remove_file(folder.join(LEAF_FILE)).unwrap();
    old("Potluck relay");
    judged(&open(&folder, NOW, &wanted(&[], &[])), "localhost", NOW).unwrap();
    assert_eq!(left(), [false, false]);
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn a_broken_certificate_is_made_again_and_a_broken_authority_is_a_sentence() {
    let folder = folder("broken");
    let wanted = wanted(&[], &[]);
    let first = open(&folder, NOW, &wanted);
    fs::write(folder.join(LEAF_FILE), "nonsense").unwrap();
    judged(&open(&folder, NOW, &wanted), "localhost", NOW).unwrap();
    // The certificate of one authority with the key of another.
    let other = Authority::make(NOW, &wanted, "pc-1", &Permitted::default()).unwrap().to_pem();
    let own = fs::read_to_string(folder.join(AUTHORITY_FILE)).unwrap();
    let certificate = own.find("-----BEGIN CERTIFICATE").unwrap();
    let mixed = other[..other.find("-----BEGIN CERTIFICATE").unwrap()].to_owned() + &own[certificate..];
    for broken in ["nonsense", &mixed] {
        fs::write(folder.join(AUTHORITY_FILE), broken).unwrap();
        let error = Keeper::open(folder.clone(), NOW, &wanted, "pc-1".into()).err().unwrap().to_string();
        assert!(error.contains(AUTHORITY_FILE) && error.contains("delete it"), "{error}");
    }
    fs::write(folder.join(AUTHORITY_FILE), own).unwrap();
    assert_eq!(open(&folder, NOW, &wanted).fingerprint(), first.fingerprint());
    fs::remove_dir_all(folder).unwrap();
}
