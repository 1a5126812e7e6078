//! The certificate for HTTPS: given, or created once and kept.
//!
//! Browsers allow WebGPU and OPFS only on secure pages, and no authority signs a certificate for `192.168.…`. So the relay
//! signs its own, and each device asks once whether to trust it.

use std::fs;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use data_encoding::HEXLOWER;
use rcgen::{CertificateParams, DnType, KeyPair, SanType};
use ring::digest::{SHA256, digest};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring::default_provider;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};

use crate::error::StartError;

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
    /// `certificate.pem` and `key.pem` in this folder, created and self-signed if they are missing.
    SelfSigned {
        /// The folder.
        folder: PathBuf,
    },
}

impl Identity {
    /// Whether browsers will warn about it.
    pub fn is_self_signed(&self) -> bool {
        matches!(self, Self::SelfSigned { .. })
    }

    /// Loads the certificate, creating it first if need be, for `addresses`. Also returns its fingerprint: SHA-256 of its
    /// DER form, as lower-case hexadecimal digits.
    ///
    /// # Errors
    /// A file cannot be read or written, or does not hold a certificate or key.
    pub fn acceptor(&self, addresses: &[Ipv4Addr]) -> Result<(TlsAcceptor, String), StartError> {
        let (certificate, key) = match self {
            Self::Files { certificate, key } => (certificate.clone(), key.clone()),
            Self::SelfSigned { folder } => {
                let files = (folder.join("certificate.pem"), folder.join("key.pem"));
                if !files.0.exists() || !files.1.exists() {
                    create(folder, &files.0, &files.1, addresses)?;
                }
                files
            }
        };
        load(&certificate, &key)
    }
}

fn create(folder: &Path, certificate: &Path, key: &Path, addresses: &[Ipv4Addr]) -> Result<(), StartError> {
    let failed = |error: rcgen::Error| StartError::CreateCertificate(error.to_string());
    let pair = KeyPair::generate().map_err(failed)?;
    let mut params = CertificateParams::new(vec!["localhost".to_owned()]).map_err(failed)?;
    params.subject_alt_names.extend(addresses.iter().map(|ip| SanType::IpAddress((*ip).into())));
    params.distinguished_name.push(DnType::CommonName, "Potluck relay");
    params.not_before = rcgen::date_time_ymd(2026, 1, 1);
    params.not_after = rcgen::date_time_ymd(2046, 1, 1);
    let signed = params.self_signed(&pair).map_err(failed)?;
    let unwritable = |path: &Path| {
        let path = path.to_owned();
        move |source| StartError::Write { path, source }
    };
    fs::create_dir_all(folder).map_err(unwritable(folder))?;
    write_private(key, &pair.serialize_pem()).map_err(unwritable(key))?;
    fs::write(certificate, signed.pem()).map_err(unwritable(certificate))
}

#[cfg(unix)]
fn write_private(path: &Path, text: &str) -> std::io::Result<()> {
    use std::io::Write;
    use std::os::unix::fs::OpenOptionsExt;
    fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path)?.write_all(text.as_bytes())
}

#[cfg(not(unix))]
fn write_private(path: &Path, text: &str) -> std::io::Result<()> {
    fs::write(path, text)
}

fn load(certificate: &Path, key: &Path) -> Result<(TlsAcceptor, String), StartError> {
    let read = |path: &Path| fs::read(path).map_err(|source| StartError::Read { path: path.to_owned(), source });
    let bad = |path: &Path, reason: String| StartError::Certificate { path: path.to_owned(), reason };
    let chain: Vec<CertificateDer<'static>> = CertificateDer::pem_slice_iter(&read(certificate)?)
        .collect::<Result<_, _>>()
        .map_err(|error| bad(certificate, error.to_string()))?;
    let fingerprint = chain.first().map(|own| HEXLOWER.encode(digest(&SHA256, own).as_ref())).unwrap_or_default();
    let private = PrivateKeyDer::from_pem_slice(&read(key)?).map_err(|error| bad(key, error.to_string()))?;
    let mut config = ServerConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| bad(certificate, error.to_string()))?
        .with_no_client_auth()
        .with_single_cert(chain, private)
        .map_err(|error| bad(certificate, error.to_string()))?;
    // WebSockets need HTTP/1.1.
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok((TlsAcceptor::from(Arc::new(config)), fingerprint))
}
