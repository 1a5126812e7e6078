//! The certificate for HTTPS: the owner's, or one that an authority of the relay's own signs.
//!
//! Browsers allow WebGPU and OPFS only on secure pages, and no public authority signs a certificate for `192.168.…`. So the relay has
//! an authority of its own, made once and kept. A device that installs it is warned no more, and iPhones need it: they refuse
//! WebSockets of a page whose certificate was accepted by a press. The certificate itself is renewed while the relay runs
//! ([`decide`]).

mod certificates;
pub mod decide;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::{SystemTime, UNIX_EPOCH};

use data_encoding::HEXLOWER;
use ring::digest::{SHA256, digest};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::crypto::CryptoProvider;
use tokio_rustls::rustls::crypto::ring::default_provider;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::server::{ClientHello, ResolvesServerCert};
use tokio_rustls::rustls::sign::CertifiedKey;
use tokio_rustls::rustls::{self, ServerConfig};
use tracing::{info, warn};

use crate::error::StartError;
use certificates::{Authority, Leaf, certificate_pem, is_self_signed_of_old};
use decide::{Decision, LeafFacts, Reason, Wanted, decide};

/// The authority's key and certificate, in the folder of [`Identity::Own`].
pub const AUTHORITY_FILE: &str = "authority.pem";
/// The key and the certificate that it signed.
pub const LEAF_FILE: &str = "relay.pem";
/// Certificate and key of relays that had no authority yet.
const OLD_FILES: [&str; 2] = ["certificate.pem", "key.pem"];

/// Where the certificate comes from.
#[derive(Clone, Debug)]
pub enum Identity {
    /// PEM files that the owner provides.
    Files {
        /// The chain, the server's own certificate first.
        certificate: PathBuf,
        /// Its private key.
        key: PathBuf,
    },
    /// An authority of the relay's own, kept in this folder and made if it is missing.
    Own {
        /// The folder.
        folder: PathBuf,
    },
}

impl Identity {
    /// Whether browsers warn about it until its authority is installed.
    pub fn is_own(&self) -> bool {
        matches!(self, Self::Own { .. })
    }

    /// Loads the certificate, or makes one for the wanted names. `machine` is how people call this machine.
    ///
    /// # Errors
    /// A file cannot be read or written, or does not hold a certificate or key.
    pub fn load(&self, now: u64, wanted: &Wanted, machine: &str) -> Result<Tls, StartError> {
        match self {
            Self::Files { certificate, key } => Tls::of_files(certificate, key),
            Self::Own { folder } => {
                let keeper = Keeper::open(folder.clone(), now, wanted, machine.to_owned())?;
                let fingerprint = fingerprint(&keeper.authority().certificate);
                let acceptor = acceptor(folder, keeper.current.clone())?;
                Ok(Tls { acceptor, fingerprint, keeper: Some(keeper) })
            }
        }
    }
}

/// The server's side of TLS.
pub struct Tls {
    /// Accepts connections.
    pub acceptor: TlsAcceptor,
    /// SHA-256, as lower-case hexadecimal digits, of what native peers accept: the relay's own authority, or the owner's certificate.
    pub fingerprint: String,
    /// Renews the certificate, if it is the relay's own.
    pub keeper: Option<Keeper>,
}

impl Tls {
    fn of_files(certificate: &Path, key: &Path) -> Result<Self, StartError> {
        let read = |path: &Path| fs::read(path).map_err(|source| StartError::Read { path: path.to_owned(), source });
        let bad = |path: &Path, reason: String| StartError::Certificate { path: path.to_owned(), reason };
        let chain: Vec<CertificateDer<'static>> = CertificateDer::pem_slice_iter(&read(certificate)?)
            .collect::<Result<_, _>>()
            .map_err(|error| bad(certificate, error.to_string()))?;
        let fingerprint = chain.first().map(|own| fingerprint(own)).unwrap_or_default();
        let private = PrivateKeyDer::from_pem_slice(&read(key)?).map_err(|error| bad(key, error.to_string()))?;
        let certified = CertifiedKey::from_der(chain, private, &default_provider())
            .map_err(|error| bad(certificate, error.to_string()))?;
        let acceptor = acceptor(certificate, Arc::new(Current::new(certified)))?;
        Ok(Self { acceptor, fingerprint, keeper: None })
    }
}

fn fingerprint(certificate: &[u8]) -> String {
    HEXLOWER.encode(digest(&SHA256, certificate).as_ref())
}

fn acceptor(path: &Path, current: Arc<Current>) -> Result<TlsAcceptor, StartError> {
    let mut config = ServerConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| StartError::Certificate { path: path.to_owned(), reason: error.to_string() })?
        .with_no_client_auth()
        .with_cert_resolver(current);
    // WebSockets need HTTP/1.1.
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(TlsAcceptor::from(Arc::new(config)))
}

/// The certificate that new connections get.
#[derive(Debug)]
struct Current(RwLock<Arc<CertifiedKey>>);

impl Current {
    fn new(certified: CertifiedKey) -> Self {
        Self(RwLock::new(Arc::new(certified)))
    }

    fn set(&self, certified: CertifiedKey) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(certified);
    }
}

impl ResolvesServerCert for Current {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.0.read().unwrap_or_else(PoisonError::into_inner).clone())
    }
}

struct Kept {
    authority: Arc<Authority>,
    leaf: Leaf,
}

/// Keeps the relay's own authority and its certificate, in memory and in a folder.
pub struct Keeper {
    folder: PathBuf,
    machine: String,
    provider: CryptoProvider,
    current: Arc<Current>,
    kept: Mutex<Kept>,
}

impl Keeper {
    fn open(folder: PathBuf, now: u64, wanted: &Wanted, machine: String) -> Result<Self, StartError> {
        let provider = default_provider();
        let path = folder.join(AUTHORITY_FILE);
        let authority = match fs::read_to_string(&path) {
            Ok(pem) => Some(Authority::read(&pem).ok_or_else(|| StartError::Certificate {
                path,
                reason: "delete it to have another one made; devices must then install that one".into(),
            })?),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(source) => return Err(StartError::Read { path, source }),
        };
        let leaf = authority.as_ref().and_then(|authority| {
            // A certificate that cannot be used is made again.
            Leaf::read(&fs::read_to_string(folder.join(LEAF_FILE)).ok()?, authority)
        });
        let authority = authority.map(Arc::new);
        let known = authority.as_ref().map(|authority| &authority.facts);
        let decision = decide(now, wanted, known, leaf.as_ref().map(|leaf| &leaf.facts));
        let kept = match (decision, authority, leaf) {
            (Decision::Keep, Some(authority), Some(leaf)) => Kept { authority, leaf },
            (decision, authority, leaf) => {
                renew(&folder, &machine, now, wanted, &decision, authority, leaf.map(|leaf| leaf.facts).as_ref())?
            }
        };
        let current = Arc::new(Current::new(certified(&kept, &provider)?));
        Ok(Self { folder, machine, provider, current, kept: Mutex::new(kept) })
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn authority(&self) -> Arc<Authority> {
        self.kept().authority.clone()
    }

    /// The authority's fingerprint.
    pub fn fingerprint(&self) -> String {
        fingerprint(&self.authority().certificate)
    }

    /// The authority's certificate, as it is installed: DER and PEM.
    pub fn authority_files(&self) -> (Vec<u8>, String) {
        let authority = self.authority();
        (authority.certificate.to_vec(), certificate_pem(&authority.certificate))
    }

    /// Renews what must be renewed at `now`. Connections that are open keep the certificate they began with. Reads and writes files: not
    /// for an async thread.
    ///
    /// # Errors
    /// A file cannot be written.
    pub fn check(&self, now: u64, wanted: &Wanted) -> Result<Decision, StartError> {
        let mut kept = self.kept();
        let decision = decide(now, wanted, Some(&kept.authority.facts), Some(&kept.leaf.facts));
        if decision == Decision::Keep {
            return Ok(decision);
        }
        let authority = Some(kept.authority.clone());
        let renewed = renew(&self.folder, &self.machine, now, wanted, &decision, authority, Some(&kept.leaf.facts))?;
        *kept = renewed;
        self.current.set(certified(&kept, &self.provider)?);
        Ok(decision)
    }
}

/// Makes and writes what a decision asks for.
fn renew(
    folder: &Path,
    machine: &str,
    now: u64,
    wanted: &Wanted,
    decision: &Decision,
    authority: Option<Arc<Authority>>,
    former: Option<&LeafFacts>,
) -> Result<Kept, StartError> {
    let failed = |error: rcgen::Error| StartError::CreateCertificate(error.to_string());
    let (authority, is_new) = match (authority, decision) {
        (Some(authority), Decision::Keep | Decision::NewLeaf(_)) => (authority, false),
        _ => (Arc::new(Authority::make(now, wanted, machine).map_err(failed)?), true),
    };
    let leaf = authority.sign(now, wanted, former).map_err(failed)?;
    write_private(folder, LEAF_FILE, &leaf.to_pem())?;
    // Last: without its authority, a certificate is made again.
    if is_new {
        write_private(folder, AUTHORITY_FILE, &authority.to_pem())?;
    }
    match decision {
        Decision::NewAuthority(Reason::Missing) => info!("the relay has an authority of its own now"),
        Decision::NewAuthority(reason) => warn!("devices must install the relay's authority again: {reason}"),
        Decision::NewLeaf(reason) => info!("the certificate is renewed: {reason}"),
        Decision::Keep => {}
    }
    remove_old(folder);
    Ok(Kept { authority, leaf })
}

fn certified(kept: &Kept, provider: &CryptoProvider) -> Result<CertifiedKey, StartError> {
    // The authority goes along for native peers, which know its fingerprint.
    let chain = vec![kept.leaf.certificate.clone(), kept.authority.certificate.clone()];
    CertifiedKey::from_der(chain, kept.leaf.key(), provider)
        .map_err(|error: rustls::Error| StartError::CreateCertificate(error.to_string()))
}

/// Removes the certificate of a relay that had no authority yet, and its key.
fn remove_old(folder: &Path) {
    let [certificate, key] = OLD_FILES.map(|name| folder.join(name));
    if fs::read(&certificate).is_ok_and(|pem| is_self_signed_of_old(&pem)) {
        for path in [certificate, key] {
            // Nothing reads them any more.
            let _ = fs::remove_file(path);
        }
    }
}

/// Writes a file that only its owner may read. A reader finds the old text or the new one.
fn write_private(folder: &Path, name: &str, text: &str) -> Result<(), StartError> {
    let path = folder.join(name);
    let draft = folder.join(format!(".{name}.{}", std::process::id()));
    let written =
        fs::create_dir_all(folder).and_then(|()| write_draft(&draft, text)).and_then(|()| fs::rename(&draft, &path));
    written.map_err(|source| {
        let _ = fs::remove_file(&draft);
        StartError::Write { path, source }
    })
}

#[cfg(unix)]
fn write_draft(path: &Path, text: &str) -> io::Result<()> {
    use std::io::Write;
    use std::os::unix::fs::OpenOptionsExt;
    let _ = fs::remove_file(path);
    let mut file = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()
}

#[cfg(not(unix))]
fn write_draft(path: &Path, text: &str) -> io::Result<()> {
    fs::write(path, text)
}

/// Seconds since 1970.
pub fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |passed| passed.as_secs())
}

#[cfg(test)]
mod tests;
