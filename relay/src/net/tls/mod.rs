//! The certificate for HTTPS: the owner's, or one that an authority of the relay's own signs.
//!
//! Browsers allow WebGPU and OPFS only on secure pages, and no public authority signs a certificate for `192.168.…`. So the relay has
//! an authority of its own, made once and kept. A device that installs it is warned no more, and iPhones need it: they refuse
//! WebSockets of a page whose certificate was accepted by a press. The certificate itself is renewed while the relay runs
//! ([`decide`]).

mod certificates;
pub mod decide;
mod files;
mod given;
mod keeper;
mod lock;

use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{SystemTime, UNIX_EPOCH};

use data_encoding::HEXLOWER;
use ring::digest::{SHA256, digest};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring::default_provider;
use tokio_rustls::rustls::server::{ClientHello, ResolvesServerCert};
use tokio_rustls::rustls::sign::CertifiedKey;

use crate::error::StartError;
use decide::Wanted;
pub use given::Given;
pub use keeper::Keeper;
pub use lock::FolderLock;

/// The authority's key and certificate, in the folder of [`Identity::Own`].
pub const AUTHORITY_FILE: &str = "authority.pem";
/// The authority before the last one, in case that only the clock was wrong; the second is one on its way there.
const REPLACED_FILES: [&str; 2] = ["authority.pem.1", "authority.pem.2"];
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

    /// Takes the folder that this relay writes keys to, if there is one.
    ///
    /// # Errors
    /// Another relay has it.
    pub fn lock(&self) -> Result<Option<FolderLock>, StartError> {
        match self {
            Self::Files { .. } => Ok(None),
            Self::Own { folder } => FolderLock::take(folder),
        }
    }

    /// Loads the certificate, or makes one for the wanted names. `machine` is how people call this machine.
    ///
    /// # Errors
    /// A file cannot be read or written, or does not hold a certificate or key.
    pub fn load(&self, now: u64, wanted: &Wanted, machine: &str) -> Result<Tls, StartError> {
        match self {
            Self::Files { certificate, key } => {
                let given = Given::open(certificate.clone(), key.clone())?;
                let acceptor = acceptor(certificate, given.current.clone())?;
                Ok(Tls { acceptor, certificate: Certificate::Given(given) })
            }
            Self::Own { folder } => {
                let keeper = Keeper::open(folder.clone(), now, wanted, machine.to_owned())?;
                let acceptor = acceptor(folder, keeper.current.clone())?;
                Ok(Tls { acceptor, certificate: Certificate::Own(keeper) })
            }
        }
    }
}

/// The server's side of TLS.
pub struct Tls {
    /// Accepts connections.
    pub acceptor: TlsAcceptor,
    /// What they get to see.
    pub certificate: Certificate,
}

/// The certificate of a relay, and who renews it.
pub enum Certificate {
    /// The relay itself.
    Own(Keeper),
    /// Its owner.
    Given(Given),
}

impl Certificate {
    /// SHA-256, as lower-case hexadecimal digits, of what native peers accept: the relay's own authority, or the owner's certificate.
    pub fn fingerprint(&self) -> String {
        match self {
            Self::Own(keeper) => keeper.fingerprint(),
            Self::Given(given) => given.fingerprint(),
        }
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

/// Seconds since 1970.
pub fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |passed| passed.as_secs())
}

#[cfg(test)]
mod tests;
