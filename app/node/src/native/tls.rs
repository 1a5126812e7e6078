//! How the relay's certificate is checked: by a known authority, or by its fingerprint.

use std::error::Error as StdError;
use std::io;
use std::sync::Arc;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};

use super::fingerprint::Fingerprint;

/// Accepts the certificate with the fingerprint, whoever signed it; without a fingerprint those that a known authority
/// signed for the relay's name. Nobody else can hold the key of a certificate with the same fingerprint, so its name and
/// dates need no check.
#[derive(Debug)]
struct RelayCertificate {
    fingerprint: Option<Fingerprint>,
    authorities: Arc<WebPkiServerVerifier>,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for RelayCertificate {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        chain: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        status: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let found = Fingerprint::of(certificate);
        match self.fingerprint {
            Some(expected) if found == expected => Ok(ServerCertVerified::assertion()),
            Some(_) => Err(Error::General(format!(
                "its certificate has another fingerprint, {found}: the relay was set up anew, or somebody is in between"
            ))),
            None => self.authorities.verify_server_cert(certificate, chain, name, status, now).map_err(|_| {
                Error::General(format!(
                    "no known authority signed its certificate; if the relay shows the fingerprint {found}, give \
                     --relay-fingerprint {found}"
                ))
            }),
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, certificate, signature, &self.provider.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, certificate, signature, &self.provider.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

/// The configuration of connections to the relay.
///
/// # Errors
/// The TLS library cannot use its own authorities or versions, which does not happen.
pub fn relay_config(fingerprint: Option<Fingerprint>) -> Result<Arc<ClientConfig>, String> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let roots = RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() };
    let authorities = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider.clone());
    let authorities = authorities.build().map_err(|error| error.to_string())?;
    let config = ClientConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(RelayCertificate { fingerprint, authorities, provider }))
        .with_no_client_auth();
    Ok(Arc::new(config))
}

/// The errors of the TLS library among an error and its causes.
fn of_tls<'a>(error: &'a (dyn StdError + 'static)) -> impl Iterator<Item = &'a Error> {
    std::iter::successors(Some(error), |error| cause(*error)).filter_map(|error| error.downcast_ref())
}

/// The cause of an error: what an I/O error wraps, or the source.
fn cause<'a>(error: &'a (dyn StdError + 'static)) -> Option<&'a (dyn StdError + 'static)> {
    match error.downcast_ref::<io::Error>().and_then(io::Error::get_ref) {
        Some(wrapped) => Some(wrapped),
        None => error.source(),
    }
}

/// The sentence of [`RelayCertificate`] inside an error of a library.
pub fn certificate_fault(error: &(dyn StdError + 'static)) -> Option<String> {
    of_tls(error).find_map(|error| match error {
        Error::General(sentence) => Some(sentence.clone()),
        _ => None,
    })
}

/// True if the other side answers without TLS.
pub fn speaks_no_tls(error: &(dyn StdError + 'static)) -> bool {
    of_tls(error).any(|error| matches!(error, Error::InvalidMessage(_)))
}

/// The sentence of [`RelayCertificate`] inside an error of a library, or the error itself.
pub fn explain(error: &(dyn StdError + 'static)) -> String {
    certificate_fault(error).unwrap_or_else(|| error.to_string())
}
