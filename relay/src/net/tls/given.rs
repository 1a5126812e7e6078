//! A certificate that the relay's owner provides as files, and renews there.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};

use tokio_rustls::rustls::crypto::ring::default_provider;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::sign::CertifiedKey;

use super::{Current, fingerprint};
use crate::error::StartError;

/// The owner's certificate.
pub struct Given {
    certificate: PathBuf,
    key: PathBuf,
    pub(super) current: Arc<Current>,
    fingerprint: RwLock<String>,
}

impl Given {
    pub(super) fn open(certificate: PathBuf, key: PathBuf) -> Result<Self, StartError> {
        let (certified, fingerprint) = read(&certificate, &key)?;
        let current = Arc::new(Current::new(certified));
        Ok(Self { certificate, key, current, fingerprint: RwLock::new(fingerprint) })
    }

    /// Its own, in lower-case hexadecimal digits.
    pub fn fingerprint(&self) -> String {
        self.fingerprint.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Reads the files again.
    ///
    /// # Errors
    /// They cannot be used, or do not belong together, maybe because only one is written yet. What was read before stays.
    pub fn reload(&self) -> Result<(), StartError> {
        let (certified, fingerprint) = read(&self.certificate, &self.key)?;
        self.current.set(certified);
        *self.fingerprint.write().unwrap_or_else(PoisonError::into_inner) = fingerprint;
        Ok(())
    }
}

fn read(certificate: &Path, key: &Path) -> Result<(CertifiedKey, String), StartError> {
    let read = |path: &Path| fs::read(path).map_err(|source| StartError::Read { path: path.to_owned(), source });
    let bad = |path: &Path, reason: String| StartError::Certificate { path: path.to_owned(), reason };
    let chain: Vec<CertificateDer<'static>> = CertificateDer::pem_slice_iter(&read(certificate)?)
        .collect::<Result<_, _>>()
        .map_err(|error| bad(certificate, error.to_string()))?;
    let fingerprint = chain.first().map(|own| fingerprint(own)).unwrap_or_default();
    let private = PrivateKeyDer::from_pem_slice(&read(key)?).map_err(|error| bad(key, error.to_string()))?;
    let certified = CertifiedKey::from_der(chain, private, &default_provider())
        .map_err(|error| bad(certificate, error.to_string()))?;
    Ok((certified, fingerprint))
}
